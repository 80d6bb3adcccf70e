"""A made-up agent session that grows turn by turn, and what of it is sent.

Knows Anthropic Messages as a client writes them.  Every result is different, so that nothing but
room is a reason for an edit.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from hard_cases import WORDS

WINDOW = 6_000
"""Which thirty turns do not fit into."""


def step(number: int, seed: int = 0, lines: int = 18) -> list[dict[str, Any]]:
    """A call of the model and its result, some 400 tokens."""
    rng = random.Random(1000 * seed + number)
    text = "\n".join(
        f"src/{rng.choice(WORDS)}_{number}.py:{rng.randrange(999)}: "
        + " ".join(rng.choice(WORDS) for _ in range(9))
        for _ in range(lines)
    )
    call_id = f"toolu_{seed}_{number}"
    call = {"type": "tool_use", "id": call_id, "name": "Grep", "input": {"n": number}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def request(turns: int, seed: int = 0) -> dict[str, Any]:
    """The request after so many turns; the same turns are the same bytes."""
    first = {"role": "user", "content": f"Find the lost token of session {seed}."}
    messages = [first, *(message for n in range(turns) for message in step(n, seed))]
    return {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": copy.deepcopy(messages)}


def grown(turns: int, seed: int = 0, first: int = 1) -> list[dict[str, Any]]:
    """Every request of a session, one a turn."""
    return [request(number, seed) for number in range(first, turns + 1)]


KEYWORDS: dict[str, Any] = {"window": WINDOW, "counter": "o200k"}
