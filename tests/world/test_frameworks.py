"""A tool loop in each agent framework, with the framework's real package in its own environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "frameworks"))

from table import FRAMEWORKS, run

pytestmark = pytest.mark.world
CASES = [
    (name, streams)
    for name, framework in FRAMEWORKS.items()
    for streams in (False, True)[: 1 + framework.streams]
]


@pytest.mark.parametrize(
    ("name", "streams"), CASES, ids=[f"{n}-{'stream' if s else 'plain'}" for n, s in CASES]
)
def test_a_loop_that_outgrows_the_window_ends_and_the_framework_sees_no_refusal(name, streams):
    outcome = run(FRAMEWORKS[name], streams)
    assert outcome.works, outcome
