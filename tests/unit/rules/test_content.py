"""Parts that a provider refuses are taken out; a message left empty gets one short text."""

from __future__ import annotations

from typing import Any

import pytest
from chat_requests import said, text, user

import trimtab
from trimtab.rules.content import PLACEHOLDER

EMPTY, STANDS, INSTEAD = text(""), text("stands"), text(PLACEHOLDER)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([EMPTY], [INSTEAD]),
        ([EMPTY, EMPTY, EMPTY], [INSTEAD]),
        ([EMPTY, STANDS, EMPTY], [STANDS]),
        ([STANDS], [STANDS]),
    ],
    ids=["one", "three", "around another", "none"],
)
def test_empty_texts_go_and_one_text_stands_where_nothing_else_would(
    parts: list[Any], expected: list[Any]
) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9,
            "messages": [user("hi"), said("Hm."), user(parts)]}  # fmt: skip
    assert trimtab.repair(body).request["messages"][2]["content"] == expected
