"""Clients that grow conversations for as long as they are told to, in all formats, and judge them.

A client sends each turn through a door, keeps what comes back, and gives results; it forks, goes
back, and compacts its history by itself.  The provider is in this process: what reached it is
judged against what the client had sent.  Knows nothing of trimtab but the provider.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge_speakers import foreign_pieces
from proxies import ask

from soak.rows import marks, rows, wrong_rows
from soak.speeches import SPEECHES, Speech, Wire
from soak.trial import problems
from trimtab_lab.testing import Answer, Call, Cut, Refuse, Slow, StrictProvider
from trimtab_lab.testing.record import Record

WINDOW = 12_000
"""Tokens, of the provider and of all doors."""
TURNS = 40
"""Of one conversation, at most."""
PATIENCE_SECONDS = 60.0
"""How long a client tries one turn before it is a fault."""
JUDGED = 3
"""One request in so many is compared with what arrived, speaker by speaker."""
HANDLE = re.compile(r'recall\(\\*"(r[0-9A-Za-z_-]+)\\*"')
TURN = "x-soak-turn"


@dataclass
class Findings:
    """What was seen so far; ``handles`` by the store that has to have them, each with the name of
    the conversation that it is of ("": of one without rows)."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    handles: dict[str, dict[str, str]] = field(default_factory=dict)
    slowest_seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, text: str) -> None:
        """Something that must not be."""
        with self.lock:
            self.faults.append(text)

    def count(self, *names: str, **numbers: int) -> None:
        """Add one to each name, and the numbers."""
        with self.lock:
            self.counts.update(names)
            self.counts.update(numbers)

    def left(self, store: str, owner: str, handles: Sequence[str]) -> None:
        """A provider was shown these."""
        with self.lock:
            self.handles.setdefault(store, {}).update(dict.fromkeys(handles, owner))


class Upstream:
    """The provider: calls tools, now and then asks for an original or keeps a note, and has bad
    times on demand."""

    def __init__(self, seed: int) -> None:
        self.rng, self.bad_until, self.steps = random.Random(seed), 0.0, 0
        self.broken = set[str]()
        """Turns whose answer was cut."""
        # A prefix that nobody asks for again is forgotten: this process must not grow by itself.
        self.provider = StrictProvider(self.reply, window=WINDOW, clock=time.monotonic)

    def reply(self, record: Record) -> Any:
        """What it says to one request."""
        answer = self._answer(json.dumps(record.body))
        if time.monotonic() < self.bad_until:
            dice = self.rng.random()
            if dice < 0.3:
                return Refuse("overloaded", status=529)
            if dice < 0.5:
                self.broken.add(turn_of(record))
                return Cut(200, answer)
            return Slow(0.3, 0.0, answer)
        return answer

    def _answer(self, body: str) -> Answer:
        self.steps += 1
        dice, thinking = self.rng.random(), "Let me see." if self.rng.random() < 0.3 else ""
        handles = HANDLE.findall(body)
        ours = {
            "recall": [{"search": "module_7 changed"}, {"search": "Step"}, {}]
            + [{"handle": one} for one in handles[-8:]],
            "note": [{"name": "plan", "text": f"Step {self.steps} comes next."}],
        }
        name = "recall" if dice < 0.1 else "note" if dice < 0.13 else ""
        if f'"name": "{name}"' in body:
            return Answer("Once more.", [Call(name, self.rng.choice(ours[name]))], thinking)
        if dice > 0.93:
            return Answer(f"Step {self.steps} is done.", thinking=thinking)
        calls = [Call("bash", {"command": f"grep -rn part_{self.steps} src/{n}"})
                 for n in range(self.rng.choice((1, 1, 2)))]  # fmt: skip
        return Answer(f"Step {self.steps}.", calls, thinking)

    def taken(self, turn: str) -> list[Record]:
        """The records of one turn, which are let go of."""
        mine = [one for one in self.provider.requests if turn_of(one) == turn]
        for one in mine:
            self.provider.requests.remove(one)
        return mine


def turn_of(record: Record) -> str:
    """Whose request this is: a header says so, or the beginning of the path."""
    return record.headers.get(TURN) or record.path.split("/")[1]


class Door(Protocol):
    """How a client sends."""

    name: str

    def send(self, speech: Speech, body: Wire, headers: dict[str, str]) -> tuple[int, bytes]:
        """Status and body.  Raises OSError, HTTPException or ValueError where none came."""


class Fleet:
    """Replicas of the proxy, whichever answers."""

    name = "proxy"

    def __init__(self, urls: Sequence[str], rng: random.Random) -> None:
        self.urls, self.rng = urls, rng

    def send(self, speech: Speech, body: Wire, headers: dict[str, str]) -> tuple[int, bytes]:
        """To one of them."""
        url = self.rng.choice(self.urls)
        status, _, answer = ask(url, "POST", speech.path, json.dumps(body), headers)
        return status, answer


class LookUps(Protocol):
    """How a program reads what was cut."""

    def one(self, handle: str, owner: str) -> None:
        """Look a handle up, and judge what comes."""


class Client(threading.Thread):
    """One user, conversation after conversation, until ``stop`` is set."""

    def __init__(
        self, name: str, door: Door, store: str, upstream: Upstream, found: Findings,
        stop: threading.Event, look_ups: LookUps,
    ) -> None:  # fmt: skip
        super().__init__(name=name, daemon=True)
        self.door, self.store, self.upstream, self.found = door, store, upstream, found
        self.stop, self.rng, self.look_ups = stop, random.Random(name), look_ups
        self.sent = self.number = 0
        self.hidden = set[str]()
        """Marks that look-ups of the model brought into this conversation."""
        self.shown = list[str]()
        """Handles in the request that was sent last."""

    def run(self) -> None:
        """Talk; an error of ours is a fault too."""
        first = self.rng.randrange(len(SPEECHES))
        try:
            while not self.stop.is_set():
                self.number += 1
                self.hidden = set()
                speech = SPEECHES[(first + self.number) % len(SPEECHES)]
                self.talk(f"{self.name}-{self.number}", speech)
                self.found.count("conversations")
        except Exception as error:
            self.found.fault(f"{self.name}: {type(error).__name__}: {error}")

    def talk(self, name: str, speech: Speech) -> None:
        """One conversation: a list of turns, each of them messages."""
        turns: list[list[Wire]] = [[speech.user(f"Go through the parts of {name}.")]]
        other: list[list[Wire]] = []
        for _ in range(self.rng.randint(8, TURNS)):
            answer = self.asked(name, speech, [one for turn in turns for one in turn])
            if answer is None:
                return
            calls = [call for message in answer for call in speech.calls(message)]
            given = [(call, rows(f"{name}.{self.sent}_{n}", self.rng.randint(20, 90)))
                     for n, call in enumerate(calls)]  # fmt: skip
            said = speech.results(given) if given else [speech.user("Go on.")]
            turns = [*turns, [*answer, *said]]
            if self.shown and self.rng.random() < 0.08:
                self.look_ups.one(self.rng.choice(self.shown), name)
            turns, other = self.moved(name, speech, turns, other)

    def moved(
        self, name: str, speech: Speech, turns: list[list[Wire]], other: list[list[Wire]]
    ) -> tuple[list[list[Wire]], list[list[Wire]]]:
        """The history that is sent next, and the one that it was forked from."""
        dice = self.rng.random()
        if other and dice < 0.2:
            return other, turns
        if len(turns) < 5 or dice < 0.85:
            return turns, other
        if dice < 0.91:
            self.found.count("rewinds")
            return turns[: -self.rng.randint(1, 4)], other
        if dice < 0.97 and not other:
            self.found.count("forks")
            return turns[: -self.rng.randint(1, 3)], turns
        if dice > 0.98:
            self.found.count("compactions of clients")
            text = f"What was done in {name}: {len(turns)} steps. What is left: all others."
            return [[speech.user(text)]], []
        return turns, other

    def asked(self, name: str, speech: Speech, messages: list[Wire]) -> list[Wire] | None:
        """The answer to one turn, whoever gives it; None where it is time to stop."""
        self.sent += 1
        turn = f"{name}.{self.sent}"
        body = speech.body(messages)
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01",
                   "x-claude-code-session-id": name, TURN: turn}  # fmt: skip
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE_SECONDS and not self.stop.is_set():
            try:
                status, answer = self.door.send(speech, body, headers)
                said = speech.said(json.loads(answer)) if status == 200 else None
            except (OSError, http.client.HTTPException, ValueError):
                self.found.count("not answered")  # killed, or cut by the provider
                time.sleep(0.1)
                continue
            records = self.judged(turn, speech, body)
            if said:
                self.found.slowest_seconds = max(
                    self.found.slowest_seconds, time.monotonic() - began
                )
                self.found.count("turns", f"turns by {self.door.name}, {speech.format}")
                return said
            refused = any(record.refusal or record.status != 200 for record in records)
            if refused or turn in self.upstream.broken:
                self.found.count("refusals passed on")
            else:
                self.found.fault(f"{turn}: {status} {answer[:200]!r}")
                return None
            time.sleep(0.1)
        if not self.stop.is_set():
            self.found.fault(f"{turn}: no answer for {PATIENCE_SECONDS:.0f} s")
        return None

    def judged(self, turn: str, speech: Speech, body: Wire) -> list[Record]:
        """What reached the provider for it."""
        owner = turn.partition(".")[0]
        records = self.upstream.taken(turn)
        given = marks(json.dumps(body))
        for number, record in enumerate(records):
            key, text = speech.key, json.dumps(record.body)
            self.found.count("requests", edited=record.body[key] != body[key])
            self.found.count(hidden_rounds=int(number > 0 and not records[number - 1].refusal))
            self.hidden |= marks(text) - given if number else set()
            wrong = [*map(str, record.violations), *wrong_rows(text, owner)]
            wrong += [f"nobody gave {one}" for one in sorted(marks(text) - given - self.hidden)]
            if record.refusal.startswith(("overflow", "rule:")):
                wrong.append(f"refused: {record.refusal}, {record.tokens} tokens")
            self.shown = HANDLE.findall(text)
            self.found.left(self.store, owner, self.shown)
            if self.sent % JUDGED == 0:
                self.found.count("judged")
                wrong += problems({"format": speech.format, "model": speech.model}, record.body)
                # An exchange with our tools is the proxy's and the model's own.
                wrong += [f"{who} never said {piece!r}" for who, piece in
                          foreign_pieces({key: body[key]}, record.body) if
                          "recall" not in text or who != "tool"]  # fmt: skip
            if wrong:
                self.found.fault(f"{turn}, {speech.format}: {wrong[0]}")
        return records
