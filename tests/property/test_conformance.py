"""Our own sessions under the conformance suite, in every format; the long run by environment.

TRIMTAB_CONFORM=500 runs so many cases.
"""

from __future__ import annotations

import os

import pytest

import trimtab
from trimtab_lab.testing.conformance import NAMES, Options, TargetOptions, run
from trimtab_lab.testing.conformance.callable_target import CallableTarget
from trimtab_lab.testing.conformance.writing import FORMATS

WINDOW = 4_000
FEW = (2, 4, 6, 9, 10, 12, *range(14, 20), 104)
"""Cases that ask for every property between them."""
MANY = int(os.environ.get("TRIMTAB_CONFORM", "0"))


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_keeps_every_property(format: str) -> None:
    target = CallableTarget("ours", trimtab.Session, TargetOptions(WINDOW, factory=True))
    only = () if MANY else FEW
    found = run(target, Options(WINDOW, MANY, formats=(format,), only=only))
    assert {row.name: row.failures for row in found.rows} == dict.fromkeys(NAMES, ())
    asked = {row.name for row in found.rows if row.judged}
    assert asked == set(NAMES) - ({"sealed"} if format in ("openai-chat", "gemini") else set())
