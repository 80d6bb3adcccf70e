"""Row C3: articles ordered by an embedding model, here a tiny one of ours.

Knows what the model is asked and what stands then.  The real one: world/test_embedding.py.
"""

from __future__ import annotations

import builtins
import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ranked_searches import shown
from ranked_searches import third as third_of
from retrieval_cases import articles, conversation

import trimtab
from trimtab import ArticleRule, config
from trimtab.errors import MissingExtra
from trimtab.settings import EmbeddingRanker

MEANT = "A keeper on that cliff earned four hundred and twelve coins."
"""Answers "How much was the lighthouse keeper at Ymir rock paid?" with one of its words."""
TOPICS = (("paid", "earned", "coins"), ("keeper", "lighthouse", "cliff"), ("river", "canal"))


def tiny(text: str) -> list[float]:
    """How often each topic is met: a model of three dimensions."""
    return [float(sum(text.count(word) for word in topic)) for topic in TOPICS]


def searches(answer: str = MEANT) -> dict[str, Any]:
    found = articles(5)
    found[3]["content"] = found[3]["content"].replace(". ", f". {answer} ", 9)
    return conversation("openai-chat", [json.dumps({"articles": found})])


def third(rule: ArticleRule, body: dict[str, Any] | None = None) -> Any:
    return third_of(rule, body or searches())


@pytest.mark.row("C3")
def loaded(table: dict[str, Any], source: str) -> config.Loaded:
    return config.Loaded(dict(config.read_table(table, config.SETTINGS, source, [])))


def test_an_embedding_model_keeps_what_means_the_answer() -> None:
    fitted = third(ArticleRule(ranker=EmbeddingRanker(tiny)))
    kept = shown(fitted)
    assert MEANT in kept[3]
    assert len(kept[3]) > max(len(kept[n]) for n in (0, 1, 2, 4))
    assert fitted.report.warnings == ()
    assert trimtab.check(fitted.request) == ()


@pytest.mark.row("C3")
def test_the_same_request_gives_the_same_bytes_whatever_was_read_before() -> None:
    first = third(ArticleRule(ranker=EmbeddingRanker(tiny))).request
    EmbeddingRanker(tiny)("coins", ["earned", "river", "canal"])
    assert json.dumps(third(ArticleRule(ranker=EmbeddingRanker(tiny))).request) == json.dumps(first)


@pytest.mark.row("C3")
def test_cosines_are_rounded_and_stay_between_0_and_1() -> None:
    def signed(text: str) -> list[float]:
        return [1.0, float(len(text)) - 4]

    rank = EmbeddingRanker(signed)
    assert rank("four", ["four", "two", "sixteen chars ..", ""]) == [1.0, 0.707, 0.083, 0.243]
    assert EmbeddingRanker(lambda text: [0.0, -1.0] if text else [0.0, 1.0])("", ["x"]) == [0.0]
    assert EmbeddingRanker(lambda text: [0.0])("x", ["y"]) == [0.0], "a text that says nothing"


@pytest.mark.row("C3")
def test_so_many_characters_of_a_result_are_read_the_likeliest_first() -> None:
    read: list[str] = []

    def model(text: str) -> list[float]:
        read.append(text)
        return [1.0]

    texts = [f"nothing of that kind {n}" for n in range(50)]
    texts[40] = "the lighthouse was new"
    ranks = EmbeddingRanker(model, most_chars=100)("which lighthouse?", texts)
    assert read[:3] == ["which lighthouse?", texts[40], texts[0]]
    assert sum(map(len, read[1:])) <= 100
    assert [place for place, rank in enumerate(ranks) if rank] == [0, 1, 2, 40]


@pytest.mark.row("C3")
def test_a_text_is_read_once_however_often_it_comes() -> None:
    read: list[str] = []

    def model(text: str) -> list[float]:
        read.append(text)
        return tiny(text)

    rule = ArticleRule(ranker=EmbeddingRanker(model))
    third(rule)
    before = len(read)
    body = searches()
    body["messages"][0]["content"] += " Please."
    third(rule, body)
    assert len(set(read)) == len(read)
    assert len(read) - before <= 1, "no more than the new question"


def breaks(text: str) -> list[float]:
    raise RuntimeError("out of memory")


@pytest.mark.row("C3")
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (breaks, "RuntimeError: out of memory"),
        (lambda text: [], "gave no vector of finite numbers"),
        (lambda text: [float("nan")], "gave no vector of finite numbers"),
        (lambda text: [1.0] * len(text), "ValueError"),
        (lambda text: "words", "ValueError"),
    ],
)
def test_a_model_that_fails_leaves_the_order_to_shared_words_with_one_warning(
    model: Callable[[str], Sequence[float]], said: str
) -> None:
    fitted = third(ArticleRule(ranker=EmbeddingRanker(model)))
    (warning,) = fitted.report.warnings
    assert warning.startswith("articles by shared words, their ranker failed: ")
    assert said in warning
    assert fitted.request == third(ArticleRule()).request


@pytest.mark.row("C3")
def test_the_words_they_share_have_their_part_where_a_ranker_says_nothing() -> None:
    def silent(question: str, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)

    answer = "The lighthouse keeper at Ymir rock was paid 412 crowns."
    body = searches(answer)
    assert answer in shown(third(ArticleRule(ranker=silent), body))[3]
    alone = third(ArticleRule(ranker=silent, ranker_share=1.0), body)
    assert alone.request != third(ArticleRule(ranker=silent), body).request


# --- the extra ---------------------------------------------------------------------------------


def test_without_the_extra_one_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'trimtab\[embed\]'"):
        EmbeddingRanker()
    with pytest.raises(MissingExtra, match=r"pip install 'trimtab\[embed\]'"):
        loaded({"articles": {"ranker": "embed"}}, "here").settings()


def test_nothing_is_imported_or_read_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    real = builtins.__import__

    def watched(name: str, *rest: Any) -> Any:
        assert name.partition(".")[0] not in ("onnxruntime", "tokenizers", "numpy")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", watched)
    given = loaded({"articles": {"ranker": "embed", "ranker_share": 0.3}}, "here").settings()
    assert given.articles == ArticleRule(ranker=EmbeddingRanker(), ranker_share=0.3)


def test_words_alone_are_what_a_file_gets_by_default() -> None:
    given = loaded({"articles": {"ranker": "words"}}, "here").settings()
    assert given.articles == ArticleRule()
