"""Row C3: articles ordered by a ranker of the user's instead of by shared words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ranked_searches import MEANT, shown, third

import trimtab
from trimtab import ArticleRule

"""Answers the question of the conversation without a word of it."""


def by_meaning(question: str, texts: Sequence[str]) -> list[float]:
    return [float("coins" in text) for text in texts]


@pytest.mark.row("C3")
def test_a_ranker_says_what_answers_the_question_where_words_do_not() -> None:
    asked: list[str] = []

    def rank(question: str, texts: Sequence[str]) -> list[float]:
        asked.append(question)
        return by_meaning(question, texts)

    kept = shown(third(ArticleRule(ranker=rank)))
    assert MEANT in kept[3]
    assert len(kept[3]) > max(len(kept[n]) for n in (0, 1, 2, 4))
    assert len(asked) == 1, "once, however often the block was looked at"
    assert "lighthouse keeper" in asked[0]


@pytest.mark.row("C3")
@pytest.mark.parametrize("wrong", [[], [0.5], [float("nan")] * 5_000])
def test_a_ranker_that_answers_nonsense_is_reported_and_the_request_fits_all_the_same(
    wrong: list[float],
) -> None:
    fitted = third(ArticleRule(ranker=lambda question, texts: wrong))
    assert fitted.report.tokens_after <= fitted.report.limits["capacity"]
    assert any("the ranker gave" in text for text in fitted.report.warnings)
    assert trimtab.check(fitted.request) == ()
