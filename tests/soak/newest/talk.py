"""A conversation as the turns of a client and a model, and the requests that it makes.

Signatures of thinking are made when a request is answered: they are bound to what was really
sent, as a provider binds them.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from soak.newest.words import Words

UNSIGNED = "to be signed"
"""In place of a signature until the request before it has been sent."""


@dataclass
class Turn:
    """What the client adds, and what the model answers to the request that ends with it."""

    client: list[Any]
    model: list[Any]


@dataclass
class Talk:
    """One generated conversation.  ``key``: where its list stands in the body."""

    format: str
    dialect: str
    key: str
    head: dict[str, Any]
    turns: list[Turn]
    model: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)

    def requests(self, sign: Callable[[dict[str, Any], str], str]) -> Requests:
        """Its requests, one after the other."""
        return Requests(self, sign)


class Requests:
    """Grows the body: ``body`` is the next request; ``answered(sent)`` adds the model's turn."""

    def __init__(self, talk: Talk, sign: Callable[[dict[str, Any], str], str]) -> None:
        self.talk, self._sign, self._at, self._history = talk, sign, 0, list[Any]()

    @property
    def body(self) -> dict[str, Any] | None:
        """The next request; None when all are sent.  A new object each time."""
        if self._at >= len(self.talk.turns):
            return None
        turn = self.talk.turns[self._at]
        messages = [*self._history, *turn.client]
        return copy.deepcopy({**self.talk.head, self.talk.key: messages})

    def answered(self, sent: dict[str, Any]) -> None:
        """The model has answered ``sent``."""
        turn = self.talk.turns[self._at]
        self._history += turn.client
        for message in copy.deepcopy(turn.model):
            self._fill(message, sent)
            self._history.append(message)
            sent = {**sent, self.talk.key: [*sent.get(self.talk.key, ()), message]}
        self._at += 1

    def _fill(self, value: Any, sent: dict[str, Any]) -> None:
        if isinstance(value, dict):
            if value.get("signature") == UNSIGNED:
                value["signature"] = self._sign(sent, value.get("thinking", ""))
            for part in value.values():
                self._fill(part, sent)
        elif isinstance(value, list):
            for part in value:
                self._fill(part, sent)


class Writer:
    """What the generators of all formats share: a pending client turn, closed by the model's."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.words = rng, Words(rng)
        self.turns: list[Turn] = []
        self.client: list[Any] = []
        self.features: set[str] = set()

    def model(self, *messages: Any) -> None:
        """The model answers what is pending."""
        self.turns.append(Turn(self.client, list(messages)))
        self.client = []

    def end(self) -> list[Turn]:
        """All turns; the last has no answer."""
        return [*self.turns, Turn(self.client, [])]

    def draw(self, steps: dict[Callable[[], None], int], count: int) -> None:
        """Take so many steps, each as often as its weight says."""
        for step in self.rng.choices(list(steps), weights=list(steps.values()), k=count):
            name = step.__name__.strip("_")
            self.features.add(name)
            step()
