"""A conversation as a script of who says what, written in each of the five formats.

Every text is told apart by its speaker: what is sent can be traced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st
from shapes import FORMATS, MODELS, Call, exchange, named, request, sealed, thought, user

__all__ = ["FORMATS", "Called", "Script", "Step", "lines", "scripts", "written"]


class Called(NamedTuple):
    """One call of a step: the tool, its arguments, and what came back."""

    tool: str
    arguments: dict[str, Any]
    result: str
    error: bool = False


class Step(NamedTuple):
    """What the model said, called, and got back; no calls: it only spoke."""

    words: str
    calls: tuple[Called, ...] = ()


Script = list[str | Step]
"""A text is the user's."""


def lines(who: str, number: int, count: int, width: int = 9) -> str:
    """Lines that nobody else says."""
    words = ("parser", "journal", "window", "cache", "token", "branch", "index", "commit")
    rows = (
        f"{who} {number}.{row} says {who}_{number}_{row} "
        + " ".join(f"{words[(number * 7 + row * 3 + n) % 8]}-{who}" for n in range(width))
        for row in range(count)
    )
    return "\n".join(rows)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Conversations of a dozen turns, with steps of one to three calls, some of which failed."""
    number, found = 0, list[str | Step]()
    for _ in range(draw(st.integers(1, 6))):
        number += 1
        found.append(lines("user", number, draw(st.integers(1, 12))))
        for _ in range(draw(st.integers(0, 5))):
            calls = []
            for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
                number += 1
                arguments: dict[str, Any] = {"path": f"src/file_{number}.py"}
                if draw(st.booleans()):
                    arguments["text"] = lines("agent", number, draw(st.integers(1, 30)))
                back = lines("tool", number, draw(st.integers(1, 40)))
                calls.append(Called("write", arguments, back, draw(st.integers(0, 5)) == 0))
            number += 1
            words = lines("agent", number, 2) if draw(st.booleans()) else ""
            found.append(Step(words, tuple(calls)))
        number += 1
        found.append(Step(lines("agent", number, draw(st.integers(1, 20)))))
    found.append(lines("user", number + 1, 2))
    return found


def written(format: str, script: Script, model: str = "") -> dict[str, Any]:
    """The request."""
    items: list[Any] = []
    for number, said in enumerate(script):
        items += user(format, said) if isinstance(said, str) else _step(format, said, number)
    usual = "gpt-5.1" if format == "openai-chat" else MODELS[format]
    return request(format, items, model or usual, "write")


def _step(format: str, step: Step, number: int) -> list[Any]:
    """A turn; where it calls, Claude's and OpenAI's models thought before."""
    calls = [Call(f"call{number:03d}x{n}", *one) for n, one in enumerate(step.calls)]
    if not calls:
        return exchange(format, [], [], step.words)
    first = calls[0].id
    thoughts = {
        "anthropic": [thought(format, f"think {first}", "s" * 80)],
        "openai-responses": [thought(format, "", f"gAAAA{first}" * 9, first)],
    }
    items = named(exchange(format, calls, thoughts.get(format, []), step.words))
    if step.words and format == "openai-responses":
        items[1]["id"] = f"msg_{first}"
    return sealed(items, f"seal{first}" * 8)
