"""Row C3: articles ordered by a ranker of the user's instead of by shared words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ranked_searches import MEANT, searches, shown, third

import trimtab
from trimtab import ArticleRule


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


@pytest.mark.row("C3")
def test_a_ranker_that_fails_leaves_the_order_to_shared_words_with_one_warning() -> None:
    def breaks(question: str, texts: Sequence[str]) -> list[float]:
        raise RuntimeError("out of memory")

    fitted = third(ArticleRule(ranker=breaks))
    (warning,) = fitted.report.warnings
    assert warning == "articles by shared words, their ranker failed: RuntimeError: out of memory"
    assert fitted.request == third(ArticleRule()).request


@pytest.mark.row("C3")
def test_shared_words_count_where_a_ranker_says_nothing() -> None:
    answer = "The lighthouse keeper at Ymir rock was paid 412 crowns."
    body = searches(answer)
    silent = ArticleRule(ranker=lambda question, texts: [0.0] * len(texts))
    assert answer in shown(third(silent, body))[3]
