"""Clients of a fleet that grow conversations for as long as they are told to, and judge them.

A client sends each turn to either of its two replicas and goes to the other where one does not
answer; it forks and rewinds.  The provider is in this process: what reached it is judged against
what the client had sent.  Knows nothing of trimtab but the provider.
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
from typing import Any

from judge import problems
from judge_speakers import foreign_pieces
from proxies import ask
from proxy_story import JSON, TOOLS, listing

from trimtab_lab.testing import Answer, Call, Cut, Refuse, Slow, StrictProvider
from trimtab_lab.testing.record import Record

WINDOW = 12_000
"""Tokens, of the provider and of the proxies."""
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
    """What was seen so far; ``handles`` by the store that has to have them."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    handles: dict[str, set[str]] = field(default_factory=dict)
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


class Upstream:
    """The provider: calls a tool at each turn, now and then asks for an original, and has bad
    times on demand."""

    def __init__(self, seed: int) -> None:
        self.rng, self.bad_until = random.Random(seed), 0.0
        self.broken = set[str]()
        """Turns whose answer was cut."""
        self.provider = StrictProvider(self.reply, window=WINDOW)

    def reply(self, record: Record) -> Any:
        """What it says to one request."""
        step = len(record.body["messages"]) // 2
        answer = Answer(f"Step {step}.", [Call("bash", {"command": f"grep -rn part_{step} src"})])
        dice = self.rng.random()
        if time.monotonic() < self.bad_until:
            if dice < 0.3:
                return Refuse("overloaded", status=529)
            if dice < 0.5:
                self.broken.add(record.headers.get(TURN, ""))
                return Cut(200, answer)
            return Slow(0.3, 0.0, answer)
        found = HANDLE.findall(json.dumps(record.body["messages"])) if dice < 0.08 else []
        offered = any(tool.get("name") == "recall" for tool in record.body.get("tools", ()))
        if found and offered:
            return Answer("Once more.", [Call("recall", {"handle": self.rng.choice(found)})])
        return answer

    def taken(self, turn: str) -> list[Record]:
        """The records of one turn, which are let go of."""
        mine = [one for one in self.provider.requests if one.headers.get(TURN) == turn]
        for one in mine:
            self.provider.requests.remove(one)
        return mine


class Client(threading.Thread):
    """One user, conversation after conversation, until ``stop`` is set."""

    def __init__(
        self, name: str, urls: Sequence[str], store: str, upstream: Upstream, found: Findings,
        stop: threading.Event,
    ) -> None:  # fmt: skip
        super().__init__(name=name, daemon=True)
        self.urls, self.store, self.upstream, self.found = urls, store, upstream, found
        self.stop, self.rng = stop, random.Random(name)
        self.sent = 0

    def run(self) -> None:
        """Talk; an error of ours is a fault too."""
        number = 0
        try:
            while not self.stop.is_set():
                number += 1
                self.talk(f"{self.name}-{number}")
                self.found.count("conversations")
        except Exception as error:
            self.found.fault(f"{self.name}: {type(error).__name__}: {error}")

    def talk(self, name: str) -> None:
        """One conversation; it forks, rewinds, and says something in between."""
        start: list[Any] = [{"role": "user", "content": f"Go through the parts of {name}."}]
        messages = start
        for _ in range(self.rng.randint(8, TURNS)):
            if self.stop.is_set():
                return
            answer = self.asked(name, messages)
            if answer is None:
                return
            results = [
                {"type": "tool_result", "tool_use_id": part["id"], "content":
                 listing(self.sent, self.rng.randint(20, 90))}
                for part in answer if part["type"] == "tool_use"
            ]  # fmt: skip
            said = {"role": "user", "content": results or "Go on."}
            messages = [*messages, {"role": "assistant", "content": answer}, said]
            if len(messages) > 9 and self.rng.random() < 0.06:
                messages = messages[: -2 * self.rng.randint(1, 4)]
                self.found.count("rewinds")

    def asked(self, name: str, messages: list[Any]) -> list[Any] | None:
        """The answer to one turn, whichever replica gives it; None where it is time to stop."""
        self.sent += 1
        turn = f"{name}/{self.sent}"
        body = json.dumps({
            "model": "claude-opus-5-5", "max_tokens": 1_000, "tools": TOOLS, "messages": messages,
        })  # fmt: skip
        headers = {**JSON, "x-claude-code-session-id": name, TURN: turn}
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE_SECONDS and not self.stop.is_set():
            url = self.rng.choice(self.urls)
            try:
                status, _, answer = ask(url, "POST", "/v1/messages", body, headers)
                content = json.loads(answer).get("content") if status == 200 else None
            except (OSError, http.client.HTTPException, ValueError):
                self.found.count("not answered")  # killed, or cut by the provider
                time.sleep(0.1)
                continue
            records = self.judged(turn, messages)
            if status == 200 and content:
                self.found.slowest_seconds = max(
                    self.found.slowest_seconds, time.monotonic() - began
                )
                self.found.count("turns")
                return list(content)
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

    def judged(self, turn: str, messages: list[Any]) -> list[Record]:
        """What reached the provider for it."""
        records = self.upstream.taken(turn)
        for record in records:
            self.found.count("requests", edited=record.body["messages"] != messages)
            if record.violations:
                self.found.fault(f"{turn}: {record.violations[0]}")
            if record.refusal.startswith(("overflow", "rule:")):
                self.found.fault(f"{turn}: refused: {record.refusal}, {record.tokens} tokens")
            text = json.dumps(record.body["messages"])
            with self.found.lock:
                self.found.handles.setdefault(self.store, set()).update(HANDLE.findall(text))
            if self.sent % JUDGED == 0:
                self.found.count("judged")
                wrong = problems(record.body, "anthropic")
                foreign = foreign_pieces({"messages": messages}, record.body)
                # An exchange with the recall tool is the proxy's and the model's own.
                wrong += [f"{who} never said {piece!r}" for who, piece in foreign if
                          "recall" not in text or who != "tool"]  # fmt: skip
                if wrong:
                    self.found.fault(f"{turn}: {wrong[0]}")
        return records
