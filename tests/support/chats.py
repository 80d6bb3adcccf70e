"""Long chats of short turns, in five formats: questions of some 25 words, answers of some 60; some
questions say what must or must never be done.  Knows the wire formats through ``spoken``.
"""

from __future__ import annotations

import random
from typing import Any

import spoken
from spoken import Called, Script, Step

WORDS = (
    *("garden", "river", "window", "basket", "letter", "market", "summer", "engine", "copper"),
    *("marble", "forest", "signal", "planet", "button", "candle", "ticket", "bridge", "violin"),
    *("harbor", "pepper", "lemon", "carpet", "mirror", "pencil", "saddle", "tunnel"),
)
CONSTRAINTS = {
    3: "You must never write to the folder named archive.",
    40: "Always answer in plain British English.",
    300: "Do not use any library that needs a compiler.",
    700: "The total must stay below 900 euros.",
}
"""Turn → what the user demands there."""


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def script(
    turns: int, *, tools: bool = False, constraints: bool = True, answer: int = 58
) -> Script:
    """So many closed turns and a last question; ``tools``: in every third one is called;
    ``answer``: words of each."""
    rng, found = random.Random(7), list[str | Step]()
    for number in range(turns):
        said = f"Question {number}: {words(rng, 23)}?"
        if constraints and number in CONSTRAINTS:
            said = f"{said} {CONSTRAINTS[number]}"
        found.append(said)
        if tools and number % 3 == 0:
            made = Called("look_up", {"key": f"key-{number}"}, f"value {number}: {words(rng, 30)}")
            found.append(Step("", (made,)))
        found.append(Step(f"Answer {number}: {words(rng, answer)}."))
    return [*found, f"Question {turns}: {words(rng, 23)}?"]


def requests(format: str, whole: Script) -> list[dict[str, Any]]:
    """Every request of the chat, one a question and one a result."""
    found = []
    for end in range(1, len(whole) + 1):
        before = whole[end - 1]
        if isinstance(before, str) or before.calls:
            found.append(spoken.written(format, whole[:end]))
    return found
