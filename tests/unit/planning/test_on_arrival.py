"""Results that no earlier request had: those after the model's last message."""

from __future__ import annotations

from typing import Any

import pytest
from chat_requests import body, call, calls, result, said, user

from trimtab import formats
from trimtab.planning.on_arrival import new_results

PAIR = (calls(call("c1"), call("c2")), result("c1", "one"), result("c2", "two"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user(), *PAIR], ["one", "two"]),
        ([user(), *PAIR, user("And now?")], ["one", "two"]),
        ([user(), *PAIR, said(), user("And now?")], []),
        ([user(), *PAIR, calls(call("c3")), result("c3", "three")], ["three"]),
        ([user()], []),
    ],
    ids=["at the end", "before the user", "answered", "after the next call", "no result"],
)
def test_new_results_are_those_behind_the_models_last_message(
    messages: list[Any], expected: list[str]
) -> None:
    request = body(*messages)
    transcript = formats.read(request, formats.find(request, "openai-chat")[0], model=None)
    assert [place.block.text for place in new_results(transcript)] == expected
