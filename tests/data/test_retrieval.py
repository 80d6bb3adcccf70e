"""Retrieval conversations cut to a share of their tokens: how many answers stay verbatim."""

from __future__ import annotations

import sys

import pytest
from records import ROOT, folder
from world_needs import absent

sys.path.append(str(ROOT / "bench"))

import retrieval

from trimtab import ArticleRule

pytestmark = pytest.mark.data

MUST = {0.60: (95, 92), 0.50: (95, 85), 0.30: (90, 65)}
"""Share of the tokens → % of answers, % of whole passages of documentation."""


@pytest.fixture(scope="module")
def where():
    found = folder()
    if found is None or not any(found.glob("rag-*.jsonl.gz")):
        absent("no retrieval conversations here: set TRIMTAB_DATA")
    return found


@pytest.mark.parametrize("share", MUST)
def test_answers_stay_verbatim_wherever_they_stand(where, share):
    kept = retrieval.measure(where, ArticleRule(), share)
    answers, passages = MUST[share]
    assert kept.of["answers"] >= 50
    assert kept.percent("answers") >= answers
    assert kept.percent("passages") >= passages
    assert abs(kept.percent("first call") - kept.percent("last call")) <= 10
    assert kept.over == 0
    assert kept.seconds / kept.tokens * 1e5 <= 0.5, "seconds of CPU per 100,000 tokens"


def test_the_just_in_time_rule_fits_too(where):
    kept = retrieval.measure(where, ArticleRule.just_in_time(), 0.50)
    assert kept.over == 0
    assert kept.percent("answers") >= 83
