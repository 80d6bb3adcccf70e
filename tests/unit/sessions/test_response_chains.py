"""Which histories at a provider's server count as seen, and how many are kept.

Knows what OpenAI bills for a turn of a conversation.  The clients are in doors/clients/test_chains.
"""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab.sessions import response_chains
from trimtab.sessions.response_chains import ResponseChains

WINDOW = 20_000
LONG = "again " * 19_950
SAID = {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}]}  # fmt: skip
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
TOOLS = [{"type": "function", "name": f"f{number}", "description": "does a thing " * 20,
          "parameters": {"type": "object", "properties": {}}} for number in range(20)]  # fmt: skip
IMAGE = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}


def user(*content: Any) -> list[Any]:
    words = [{"type": "input_text", "text": one} if isinstance(one, str) else one
             for one in content]  # fmt: skip
    return [{"type": "message", "role": "user", "content": words}]


class Conversation:
    """A conversation at the server: it bills what it holds, ``extra`` tokens of it unseen here."""

    def __init__(self, session: trimtab.Session) -> None:
        self.session, self.held, self.turns = session, 0, 0

    def turn(
        self, input: Any, *, extra: int = 0, output: Any = (SAID,), status: str = "completed",
        bills: bool = True, again: bool = False, **more: Any,
    ) -> None:  # fmt: skip
        request = {"model": "gpt-5.1", "conversation": "conv_1", "input": input, **more}
        fitted = self.session.fit(request)
        self.turns += 1
        self.held += fitted.tokens_after + extra
        usage = {"input_tokens": self.held, "output_tokens": 5} if bills else None
        answer = {"id": f"resp_{self.turns}", "status": status, "output": list(output),
                  "usage": usage}  # fmt: skip
        for _ in range(2 if again else 1):
            self.session.observe(answer, fitted)
        self.held += 5 if status == "completed" else -fitted.tokens_after

    def sent_whole(self) -> int | None:
        """Tokens of the history with which the next turn, LONG, is sent; None if it is sent alone,
        without a history."""
        request = {"model": "gpt-5.1", "conversation": "conv_1", "input": LONG}
        fitted = self.session.fit(request)
        return None if "conversation" in fitted.request else fitted.tokens_before


def spoken(turn: dict[str, Any]) -> list[Any]:
    """What a turn adds to the conversation."""
    if turn.get("status") == "failed":
        return []
    input = turn["input"]
    own = [{"role": "user", "content": input}] if isinstance(input, str) else input
    return [*own, *turn.get("output", (SAID,))]


SEEN: dict[str, list[dict[str, Any]]] = {
    "texts": [{"input": "hello there"}, {"input": "word number seven is here. " * 100}],
    "tools that come later": [{"input": user("hello " * 50)},
                              {"input": user("hello"), "tools": TOOLS}],
    "tools that go": [{"input": user("hello"), "tools": TOOLS}, {"input": user("hello " * 50)}],
    "a failed answer": [{"input": user("hello " * 500)},
                        {"input": user("two"), "output": (), "status": "failed", "bills": False},
                        {"input": user("two")}],
    "a web search": [{"input": user("hello " * 50)},
                     {"input": user("search"), "output": (SEARCH, SAID), "extra": 8_000,
                      "tools": [{"type": "web_search"}]}],
    "an image": [{"input": user("look", IMAGE), "extra": 700},
                 {"input": user("look", IMAGE), "extra": 2_000}],
    "no bills": [{"input": user("hello " * 5_000), "bills": False},
                 {"input": user("two"), "bills": False}],
    "an answer observed twice": [{"input": user("hello " * 50), "again": True},
                                 {"input": user("two"), "again": True}],
}  # fmt: skip


@pytest.mark.parametrize("turns", SEEN.values(), ids=SEEN)
def test_a_conversation_that_was_seen_is_sent_whole_once_it_does_not_fit(turns: Any) -> None:
    held = Conversation(trimtab.Session(window=WINDOW))
    for turn in turns:
        held.turn(**turn)
    items = [item for turn in turns for item in spoken(turn)]
    items.append({"role": "user", "content": LONG})
    assert held.sent_whole() == trimtab.measure({"model": "gpt-5.1", "input": items}).total


def test_a_conversation_with_items_from_elsewhere_is_not_sent_whole_without_them() -> None:
    for added_at in range(3):  # before the first turn, between two turns
        held = Conversation(trimtab.Session(window=WINDOW))
        for turn in range(3):
            held.turn(user("word " * 900), extra=300 * (turn == added_at))
        held.turn(user("and now " * 5_000))
        assert held.sent_whole() is None


def answer(name: str, chars: int = 100) -> Any:
    output = [{"type": "message", "content": "x" * chars}]
    usage = {"input_tokens": 10, "output_tokens": 1}
    return {"id": name, "status": "completed", "output": output, "usage": usage}


def behind(name: str) -> Any:
    return {"previous_response_id": name, "input": "a"}


def seen(chains: ResponseChains, *names: str) -> list[str]:
    return [name for name in names if chains.link(behind(name)) is not None]


def test_of_several_chains_those_used_least_recently_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(response_chains, "MAX_CHARS", 1_000)
    chains = ResponseChains()
    for name in "abc":
        chains.take({"input": "a"}, answer(f"{name}0", 200), 10)
    chains.take(behind("a0"), answer("a1", 200), 10)
    chains.take(behind("c0"), answer("c1", 200), 10)
    assert seen(chains, "a0", "a1", "b0", "c0", "c1") == ["c0", "c1"]


def test_turns_that_go_on_from_one_answer_are_forgotten_one_by_one_and_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(response_chains, "MAX_CHARS", 2_000)
    chains = ResponseChains()
    chains.take({"input": "a"}, answer("root"), 10)
    for number in range(100):
        chains.take(behind("root"), answer(f"r{number}"), 10)
    kept = seen(chains, "root", *(f"r{number}" for number in range(100)))
    assert kept[0] == "root"
    assert kept[1:] == [f"r{number}" for number in range(100 - len(kept) + 1, 100)]
    assert 5 < len(kept) < 20


def test_an_answer_that_is_observed_twice_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_chains, "MAX_CHARS", 1_000)
    chains = ResponseChains()
    for _ in range(20):
        chains.take({"input": "a"}, answer("r0"), 10)
        chains.take(behind("r0"), answer("r1"), 10)
    assert seen(chains, "r0", "r1") == ["r0", "r1"]
    for number in range(20):
        chains.take({"input": "a"}, answer(f"q{number}"), 10)
    assert seen(chains, "r0", "r1", "q0", "q19") == ["q19"]


@pytest.mark.parametrize(
    "odd",
    [{"input": ["[1]"]}, {"input": [{"type": ["a"]}]}, {"tools": [{"type": {}}]}, {"tools": 5},
     {"input": [{"type": "message", "content": [{"type": {}}, 5]}]}],
    ids=str,
)  # fmt: skip
def test_a_turn_of_an_odd_shape_is_kept_like_any(odd: Any) -> None:
    chains, turn = ResponseChains(), {"input": "a", "conversation": "conv_1", **odd}
    chains.take(turn, answer("r0"), 10)
    assert chains.link(turn) is not None
