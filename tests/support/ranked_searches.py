"""A search whose answer shares no word with the question, fitted to a third of its size."""

from __future__ import annotations

import json
from typing import Any

from retrieval_cases import articles, conversation, results_of

import trimtab
from trimtab import ArticleRule

MEANT = "A keeper on that cliff earned four hundred and twelve coins."
"""Answers the question of the conversation without a word of it."""


def searches(answer: str = MEANT) -> dict[str, Any]:
    found = articles(5)
    found[3]["content"] = found[3]["content"].replace(". ", f". {answer} ", 9)
    return conversation("openai-chat", [json.dumps({"articles": found})])


def third(rule: ArticleRule, body: dict[str, Any] | None = None) -> Any:
    body = body or searches()
    total = trimtab.measure(body, counter="o200k").total
    limits = trimtab.Settings(window=total // 3, reserve=0, trigger=1.0, target=1.0)
    return trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k", articles=rule))


def shown(fitted: Any) -> list[str]:
    return [
        a["content"] for text in results_of(fitted.request) for a in json.loads(text)["articles"]
    ]
