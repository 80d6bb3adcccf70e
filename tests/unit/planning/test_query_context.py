"""Which words a result is ranked by: the last question, and what calls since then looked for."""

from __future__ import annotations

import json
from typing import Any

from trimtab import formats
from trimtab.planning.query_context import QUESTION_CHARS, QueryContext
from trimtab.reducers import Config


def context(*messages: dict[str, Any]) -> QueryContext:
    request = list(messages)
    return QueryContext(formats.read(request, formats.FORMATS["openai-chat"]), Config(len))


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def search(number: int, **arguments: Any) -> list[dict[str, Any]]:
    function = {"name": "search", "arguments": json.dumps(arguments)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"found {number}"},
    ]


def test_the_question_is_the_last_that_the_user_said_whatever_the_system_says_behind_it() -> None:
    found = context(
        said("Where is the parser?"), said("In src.", "assistant"), said("One line.", "system")
    )
    assert found.question == "Where is the parser?"


def test_a_question_keeps_both_ends_where_it_is_longer_than_its_limit() -> None:
    whole = "a" * (QUESTION_CHARS // 2) + "b" * (QUESTION_CHARS // 2)
    assert context(said(whole)).question == whole
    assert context(said(whole[:-1] + "xb")).question == f"{whole[: QUESTION_CHARS // 2]}\n" + (
        whole[QUESTION_CHARS // 2 + 1 : -1] + "xb"
    )


def test_a_result_is_ranked_by_what_the_calls_since_the_user_spoke_looked_for() -> None:
    found = context(
        said("Find it."), *search(1, q="long ago"),
        said("Look again."), *search(2, q="parser bug"), *search(3, q="lexer bug", n=7),
    )  # fmt: skip
    places = {p.block.text: p for n in range(8) for p in found.transcript.places_in(n)}
    assert found.about(places["found 2"]).query.split("\n") == ["lexer bug", "parser bug"]
    assert found.about(places["found 1"]).query.split("\n") == [
        "lexer bug", "parser bug", "long ago",
    ]  # fmt: skip
    assert found.about(places["I look."]).query == "", "only a result is ranked"
