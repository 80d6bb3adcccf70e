"""What stands around the rules: prose of the model, small questions of the user, steps of tools."""

# A sentence stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import json
from random import Random
from typing import Any

from answerable.tokens import of_text

from own_prose.pastes import KINDS, NAMES, OBJECTS, PARTS, VERBS, paste

Message = dict[str, Any]
READ = {
    "type": "function",
    "function": {
        "name": "read_file", "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}  # fmt: skip


def body(messages: list[Message]) -> dict[str, Any]:
    """A request; the tool is declared only where it was called."""
    tools = {"tools": [READ]} if any(m["role"] == "tool" for m in messages) else {}
    return {"model": "gpt-5.1", "messages": messages, **tools}


def user(*parts: str) -> Message:
    """A message of the user, its parts set apart by blank lines."""
    return {"role": "user", "content": "\n\n".join(part for part in parts if part)}


def question(random: Random) -> str:
    """A question of the user, different each time."""
    one, thing, number = random.choice(PARTS), random.choice(OBJECTS), random.randrange(100, 999)
    return random.choice((
        f"How would you count the {thing}s that the {one} left behind in week {number % 52}?",
        f"What does the {one} do with {thing} {number} when it comes twice?",
        f"{random.choice(NAMES)} asks why {thing} {number} was {random.choice(VERBS)}, what do we say?",
        f"And how long does the {one} need for {number} {thing}s?",
    ))  # fmt: skip


def answer(random: Random, tokens: int) -> Message:
    """Prose of the model, of about so many tokens."""
    said, room = list[str](), tokens
    while room > 0:
        one, other = random.sample(PARTS, 2)
        thing, number = random.choice(OBJECTS), random.randrange(100, 999)
        said.append(random.choice((
            f"The {one} reads each {thing} once and passes it on to the {other} in groups of {number}.",
            f"Looking at {thing} {number}, the {other} seems to wait until the {one} has answered.",
            f"One way would be to let the {one} mark the {thing} and to count the marks in the {other}.",
            f"In my experience {number} {thing}s an hour are easily within reach of the {one}.",
            f"It was {random.choice(VERBS)} first and only then seen by the {other}, hence the gap of {number}.",
        )))  # fmt: skip
        room -= of_text(said[-1]) + 1
    return {"role": "assistant", "content": " ".join(said)}


def steps(seed: object, count: int, tokens: int) -> list[Message]:
    """Calls of a tool and their results, each of so many tokens."""
    random, found = Random(f"steps {seed}"), list[Message]()
    for number in range(count):
        path = f"{random.choice(PARTS)}/{random.choice(OBJECTS)}_{random.randrange(9999)}.txt"
        kind, name = random.choice(list(KINDS)), f"call_{seed}_{number}".replace(" ", "_")
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        call = {"id": name, "type": "function", "function": function}
        result = paste(kind, tokens, f"{seed} {number}").text
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        found.append({"role": "tool", "tool_call_id": name, "content": result})
    return found
