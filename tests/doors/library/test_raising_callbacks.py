"""A function of the caller that raises costs its own effect, never the request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from retrieval_cases import articles, conversation
from shapes import FORMATS

import trimtab
from trimtab.reducers.articles.article import ArticleRule


def broken(*given: Any) -> Any:
    raise RuntimeError("the caller's own mistake")


SETTINGS: dict[str, dict[str, Any]] = {
    "pins": {"pins": [broken]},
    "counter": {"counter": broken},
    "extra_reducers": {"extra_reducers": [broken]},
    "summarizer": {"summarizer": broken},
    "ranker": {"articles": ArticleRule(ranker=broken)},
    "on_event": {"on_event": broken},
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_function_that_raises_is_done_without_and_is_told_of(
    name: str, format: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = conversation(format, [json.dumps({"articles": articles(9, seed=n)}) for n in range(3)])
    size = trimtab.measure(body, counter="o200k").total
    base = {"window": size * 2 // 3, "reserve": 0, "counter": "o200k"}
    plain = trimtab.fit(body, settings=trimtab.Settings(**base))
    fitted = trimtab.fit(body, settings=trimtab.Settings(**{**base, **SETTINGS[name]}))
    assert plain.report.edits
    if name not in ("counter", "summarizer"):  # other tokens; articles in another order
        assert fitted.request == plain.request
    assert fitted.report.tokens_after <= base["window"]
    assert trimtab.check(fitted.request) == ()
    assert any(
        word in record.getMessage()
        for record in caplog.records
        for word in ("RuntimeError", "the caller's own mistake")
    )


def test_a_pin_that_raises_for_some_blocks_still_pins_the_others() -> None:
    def pin(block: Any) -> bool:
        return bool(block.text.index("KEEP") >= 0)  # ValueError where there is none

    results = ["filler words " * 900, "KEEP this " + "and that " * 900, "more filler " * 900]
    body: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Go."}]}
    for number, text in enumerate(results):
        call = {"id": f"c{number}", "type": "function",
                "function": {"name": "read", "arguments": "{}"}}  # fmt: skip
        body["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]
    body["messages"].append({"role": "user", "content": "And now?"})
    settings = trimtab.Settings(pins=[pin], counter="o200k")
    fitted = trimtab.fit(body, window=3_500, reserve=0, settings=settings)
    assert results[1] in str(fitted.request)
    assert results[0] not in str(fitted.request)
    (warning,) = [text for text in fitted.report.warnings if "pin" in text]
    assert warning.startswith("the pin pin raised ValueError, and does not pin what it raises for")
