"""The packaged embedding model, offline: its numbers, and what they keep.

Belongs to the world tier: the extra "embed" brings the weights.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import world_needs
from retrieval_cases import articles, conversation, results_of

import trimtab
from trimtab import ArticleRule
from trimtab.cli import main
from trimtab.reducers.articles import embedding
from trimtab.settings import EmbeddingRanker

pytestmark = pytest.mark.world

QUESTION = "How much was the lighthouse keeper at Ymir rock paid?"
MEANT = "The lamp man there earned four hundred coins a year."
"""Answers the question of the conversation without a word of it that tells."""


@pytest.fixture
def ranker(monkeypatch: pytest.MonkeyPatch) -> EmbeddingRanker:
    """The packaged model, in a process that can open no connection."""
    for name in ("onnxruntime", "tokenizers", *(file[0] for file in FILES)):
        world_needs.module(name, "embed")

    def refused(*_: Any) -> None:
        pytest.fail("a connection is opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    return EmbeddingRanker()


FILES = (embedding.WEIGHTS, embedding.TOKENIZER)


def searches() -> dict[str, Any]:
    found = articles(5)
    parts = found[3]["content"].split(". ")
    found[3]["content"] = ". ".join([*parts[:15], MEANT.rstrip("."), *parts[15:]])
    return conversation("openai-chat", [json.dumps({"articles": found})])


def half(rule: ArticleRule) -> Any:
    body = searches()
    total = trimtab.measure(body, counter="o200k").total
    limits = trimtab.Settings(window=total // 2, reserve=0, trigger=1.0, target=1.0)
    return trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k", articles=rule))


def text_of(fitted: Any) -> str:
    return "".join(results_of(fitted.request))


def test_the_packaged_model_knows_what_is_meant(ranker: EmbeddingRanker) -> None:
    near, far = ranker(QUESTION, [MEANT, "The river froze early that winter near the abbey."])
    assert near > far + 0.1


@pytest.mark.row("C3")
def test_the_packaged_model_keeps_an_answer_that_shares_no_word_with_the_question(
    ranker: EmbeddingRanker,
) -> None:
    rule = ArticleRule(ranker=ranker)
    fitted = half(rule)
    assert MEANT in text_of(fitted)
    assert fitted.report.warnings == ()
    assert MEANT not in text_of(half(ArticleRule()))
    embedding._unit.cache_clear()
    assert half(rule).request == fitted.request


def test_a_text_means_the_same_alone_and_among_others(ranker: EmbeddingRanker) -> None:
    others = [f"The {word} was rebuilt." for word in ("castle", "bridge", "school")]
    alone = ranker(QUESTION, [MEANT])
    embedding._unit.cache_clear()
    assert ranker(QUESTION, [*others, MEANT, *others])[3:4] == alone


def test_the_command_line_takes_the_packaged_model(
    ranker: EmbeddingRanker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = searches()
    file = tmp_path / "request.json"
    file.write_text(json.dumps(body))
    window = trimtab.measure(body, counter="o200k").total // 2
    options = ("--no-config", "--counter", "o200k", "--window", window, "--reserve", 0)
    options += ("--trigger", 1, "--target", 1, "--articles-ranker", "embed")
    assert main(["fit", str(file), *map(str, options)]) == 0
    assert json.loads(capsys.readouterr().out) == half(ArticleRule(ranker=ranker)).request


def test_other_weights_are_refused_and_words_decide(
    ranker: EmbeddingRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "SHA256", "0" * 64)
    for memo in (embedding._loaded, embedding._unit):
        memo.cache_clear()
    fitted = half(ArticleRule(ranker=EmbeddingRanker(most_chars=5_000)))
    embedding._loaded.cache_clear()
    assert any("weights are not those of" in text for text in fitted.report.warnings)
    assert fitted.request == half(ArticleRule()).request
