"""Retrieval results to try on: articles with known sentences, in every shape that tools give.

Knows the shapes and the five formats.  Asserts nothing and does not know the library.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from shapes import MODELS, Items, request, turn, user

Articles = list[dict[str, Any]]

_WORDS = [
    "river", "castle", "engine", "harbour", "winter", "market", "council", "bridge", "treaty",
    "garden", "railway", "museum", "province", "valley", "island", "coal", "parish", "border",
    "theatre", "fortress", "mayor", "canal", "school", "abbey",
]  # fmt: skip
ANSWER = "The lighthouse keeper at Ymir rock was paid 412 crowns in 1871."
QUESTION = "How much was the lighthouse keeper at Ymir rock paid?"


def prose(seed: int, sentences: int) -> str:
    """Made-up sentences, no two alike."""
    random_ = random.Random(seed)
    return " ".join(
        f"The {' '.join(random_.choices(_WORDS, k=7))} of {random_.randrange(1500, 1800)} "
        f"stood near the {random_.choice(_WORDS)}."
        for _ in range(sentences)
    )


def articles(
    number: int, sentences: int = 30, seed: int = 0, answer: int | None = None
) -> Articles:
    """So many articles; article ``answer`` has the answer in its middle."""
    found = []
    for index in range(number):
        text = prose(1000 * seed + index, sentences)
        if index == answer:
            parts = text.split(". ")
            parts.insert(len(parts) // 2, ANSWER.rstrip("."))
            text = ". ".join(parts)
        found.append({
            "title": f"Article {seed}-{index}", "url": f"https://ex.org/{seed}/{index}",
            "content": text, "metadata": {"source": "wiki", "n": index},
        })  # fmt: skip
    return found


def _plain(items: Articles) -> str:
    return "\n\n".join(
        f"[{n}] {a['title']}\nURL: {a['url']}\n\n{a['content']}" for n, a in enumerate(items, 1)
    )


def _headings(items: Articles) -> str:
    return "Results:\n\n" + "\n".join(
        f"## {a['title']}\n{a['url']}\n\n{a['content']}\n" for a in items
    )


def _sources(items: Articles) -> str:
    return "\n\n".join(f"### {a['title']}\n\nSource: {a['url']}\n\n{a['content']}" for a in items)


def _titles(items: Articles) -> str:
    return "\n---\n".join(
        f"Title: {a['title']}\nURL: {a['url']}\nContent: {a['content']}" for a in items
    )


def _tags(items: Articles) -> str:
    return "\n".join(
        f'<document index="{n}">\n<title>{a["title"]}</title>\n<source>{a["url"]}</source>\n'
        f"<document_content>\n{a['content']}\n</document_content>\n</document>"
        for n, a in enumerate(items, 1)
    )


def _hits(items: Articles) -> str:
    hits = [
        {"_id": str(n), "_score": 9.5 - n,
         "_source": {"title": a["title"], "url": a["url"], "body": a["content"]}}
        for n, a in enumerate(items)
    ]  # fmt: skip
    return json.dumps({"took": 7, "hits": {"total": {"value": len(hits)}, "hits": hits}})


def _documents(items: Articles) -> str:
    return json.dumps({"documents": [
        {"id": f"d{n}", "page_content": a["content"],
         "metadata": {"title": a["title"], "source": a["url"], "relevance_score": 4.5 - n / 9}}
        for n, a in enumerate(items)
    ]})  # fmt: skip


SHAPES: dict[str, Callable[[Articles], str]] = {
    "articles": lambda items: json.dumps({"articles": items}),
    "articles, indented": lambda items: json.dumps({"articles": items}, indent=2),
    "articles, escaped": lambda items: json.dumps({"q": "ё" * 20, "articles": items}),
    "results": lambda items: json.dumps({"query": "q", "results": items, "count": len(items)}),
    "bare list": lambda items: json.dumps(items),
    "status and data": lambda items: json.dumps({"status": "ok", "data": {"articles": items}}),
    "nested hits": _hits,
    "documents": _documents,
    "JSON lines": lambda items: "\n".join(map(json.dumps, items)),
    "numbered text": _plain,
    "headings": _headings,
    "headings and sources": _sources,
    "Title: sections": _titles,
    "tags": _tags,
}


def conversation(
    format: str, results: list[str], question: str = QUESTION, model: str = ""
) -> dict[str, Any]:
    """A question and so many searches with these results."""
    items: Items = user(format, question)
    for number, result in enumerate(results):
        items += turn(format, f"call_{number:03}", {"query": question}, result, "")
    if format == "anthropic":  # no thinking, so that nothing else can be left out
        for item in items:
            if isinstance(item["content"], list):
                item["content"] = [p for p in item["content"] if p.get("type") != "thinking"]
    return request(format, items, model or MODELS[format])


def results_of(body: dict[str, Any]) -> list[str]:
    """The text of each tool result, in any format."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("role") == "tool":
                found.append(value["content"])
            elif value.get("type") == "function_call_output":
                found.append(value["output"])
            elif value.get("type") == "tool_result":
                found.append(value["content"])
            elif "toolResult" in value:
                found.append(value["toolResult"]["content"][0]["text"])
            elif "functionResponse" in value:
                found.append(value["functionResponse"]["response"]["output"])
            else:
                for inner in value.values():
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(body)
    return found
