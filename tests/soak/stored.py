"""Library sessions on stores that fail, with a clock that jumps, for as long as they are told to.

    Stored(seed, url).turn()

Each turn grows one of several conversations, opens the session anew now and then, and judges what
is sent: legal, within the window, nobody's words in another's name, every handle recallable.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from judge import problems
from judge_speakers import foreign_pieces
from long_sessions import WINDOW, request
from settings_words import as_keywords

import trimtab
from soak.clients import Findings
from soak.user_code import every_other_row, on_event
from trimtab import stores
from trimtab.errors import StoreError
from trimtab.stores.base import Store

JUMPS = (-86_400.0, -3_600.0, -1.0, 1.0, 301.0, 3_601.0, 7 * 86_400.0)
"""Seconds by which a clock is set."""
MAX_TURNS = 50
"""Of one conversation."""
FAILS = 0.02
"""Share of the calls to a store that fail before or after they were carried out."""


class Faulty:
    """A store of which some calls fail: half of those that do are carried out all the same."""

    def __init__(self, inner: Store, rng: random.Random) -> None:
        self.inner, self.rng, self.failing = inner, rng, True
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in ("write", "read", "original", "handles", "fact", "facts"):
            return found

        def call(*args: Any, **keywords: Any) -> Any:
            dice = self.rng.random() if self.failing else 1.0
            if dice < FAILS / 2:
                self.failed += 1
                raise StoreError(f"{name} fails: planted")
            done = found(*args, **keywords)
            if dice < FAILS:
                self.failed += 1
                raise StoreError(f"{name} fails behind its work: planted")
            return done

        return call


class Stored(threading.Thread):
    """Conversations through one store, until ``stop`` is set."""

    def __init__(self, seed: int, url: str, found: Findings, stop: threading.Event) -> None:
        super().__init__(name=f"stored-{seed}", daemon=True)
        self.rng, self.found, self.stop = random.Random(seed), found, stop
        self.store = Faulty(stores.open_store(url), self.rng)
        self.url, self.now, self.seed = url, 1e9, seed * 1_000_000
        self.turns, self.pinned = dict[int, int](), dict[int, str]()
        self.session = self.opened()

    def opened(self) -> trimtab.Session:
        """As after a restart."""
        store: Any = self.store
        words = {
            "window": WINDOW, "counter": "o200k", "recall": True, "clock": self.clock,
            "extra_reducers": [every_other_row], "on_event": on_event,
        }  # fmt: skip
        return trimtab.Session(store=store, **as_keywords(**words))

    def clock(self) -> float:
        """Seconds, of a clock that is set now and then."""
        self.now += 1
        return self.now

    def run(self) -> None:
        """Turn by turn."""
        try:
            while not self.stop.is_set():
                self.turn()
                time.sleep(0.02)
            self.last()
        except Exception as error:
            self.found.fault(f"{self.name}: {type(error).__name__}: {error}")

    def turn(self) -> None:
        """One request of one conversation."""
        rng = self.rng
        if rng.random() < 0.1:
            self.now += rng.choice(JUMPS)
            self.found.count("clock jumps")
        if rng.random() < 0.05:
            self.session = self.opened()
            self.found.count("sessions opened anew")
        if len(self.turns) < 4:
            self.seed += 1
            self.turns[self.seed] = 14
        seed = rng.choice(list(self.turns))
        self.turns[seed] += 1
        number = self.turns[seed]
        if number >= MAX_TURNS:
            del self.turns[seed]
        if rng.random() < 0.05:
            number = max(3, number - rng.randint(1, 12))  # a rewind
        given = request(number, seed)
        done = self.session.fit(given)
        self.found.count("library turns")
        wrong = problems(done.request, "anthropic")
        if rng.random() < 0.2:
            wrong += [f"{who} never said {piece!r}" for who, piece in
                      foreign_pieces(given, done.request)]  # fmt: skip
        if done.report.tokens_after > WINDOW:
            wrong.append(f"{done.report.tokens_after} tokens > {WINDOW}")
        wrong += [text for text in done.report.warnings if "fell back" in text]
        if wrong:
            self.found.fault(f"{self.name}, session {seed}, {number} turns: {wrong[0]}")
        shown = str(done.request)
        self.pins(seed, number, given, shown, done)
        mine = {one.handle for one in done.report.edits if one.handle and one.handle in shown}
        self.found.left(self.url, str(seed), sorted(mine))

    def pins(self, seed: int, number: int, given: Any, shown: str, done: trimtab.Fitted) -> None:
        """What the user pinned is there, or the report says that it gave way; now and then it
        pins its newest result, or takes a cut back."""
        result = given["messages"][-1]["content"][0]["content"]
        pinned = self.pinned.get(seed)
        if pinned and pinned in str(given) and pinned.split("\n")[0] not in shown:
            self.found.count("pins that gave way")
            if not any("pin" in text for text in done.report.warnings):
                self.found.fault(f"{self.name}, session {seed}, {number} turns: a pin is not there")
        try:
            if self.rng.random() < 0.02:
                self.session.pin(text=result.split("\n")[0])
                self.pinned[seed] = result
                self.found.count("pins")
            elif done.report.edits and self.rng.random() < 0.02:
                self.session.undo(self.rng.choice(done.report.edits).handle)
                self.found.count("cuts taken back")
        except trimtab.TrimtabError:  # the store fails, or there is nothing to take back
            self.found.count("pins refused")

    def last(self) -> None:
        """Write what waits."""
        self.found.count(store_calls_failed=self.store.failed)
        self.store.failing = False
        self.session.stats()
        self.session.close()
