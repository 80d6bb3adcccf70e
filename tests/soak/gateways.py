"""A gateway of the soak that calls ``POST /v1/compress`` of either replica, and goes on with what
comes back.

It looks up what was shortened at the other door, ``/v1/retrieve``, and judges both.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gateway_client import GatewayClient
from judge import problems
from judge_speakers import foreign_pieces

from soak.clients import PATIENCE_SECONDS, Findings
from soak.rows import rows, wrong_rows
from trimtab.journal.hashes import handle_at

TURNS = 30


class Gateway(threading.Thread):
    """Conversation after conversation, until ``stop`` is set."""

    def __init__(
        self, name: str, urls: Sequence[str], store: str, found: Findings, stop: threading.Event
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.urls, self.store, self.found, self.stop = urls, store, found, stop
        self.rng = random.Random(name)

    def run(self) -> None:
        """Talk; an error of ours is a fault too."""
        number = 0
        try:
            while not self.stop.is_set():
                number += 1
                self.talk(f"{self.name}-{number}")
        except Exception as error:
            self.found.fault(f"{self.name}: {type(error).__name__}: {error}")

    def talk(self, name: str) -> None:
        """One conversation in rows of Chat Completions."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Read {name}."}
        ]  # fmt: skip
        given = dict[str, str]()
        for number in range(TURNS):
            text = rows(f"{name}.{number}", self.rng.randint(20, 60))
            call = {"name": "grep", "arguments": json.dumps({"pattern": f"{name} {number}"})}
            given[text] = f"call_{number}"
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": given[text], "type": "function", "function": call}]},
                {"role": "tool", "tool_call_id": given[text], "content": text},
            ]  # fmt: skip
            client = GatewayClient("", session=name)
            sent = self.tried(client, partial(GatewayClient.sent, messages=messages))
            if sent is None:
                return
            self.found.count("requests of a gateway", shortened=int(sent != messages))
            self.judge(name, messages, sent)
            handles = [handle_at(digits) for digits in client.hashes]
            self.found.left(self.store, name, handles)
            if client.hashes and self.rng.random() < 0.2:
                self.look_up(name, self.rng.choice(client.hashes), given)
            time.sleep(0.05)

    def judge(self, name: str, messages: list[Any], sent: list[Any]) -> None:
        """Legal, nobody's words in another's name, and only results were shortened."""
        wrong = problems({"messages": sent}, "openai-chat")
        wrong += [f"{who} never said {piece!r}" for who, piece in
                  foreign_pieces({"messages": messages}, {"messages": sent})]  # fmt: skip
        wrong += wrong_rows(json.dumps(sent), name)
        rest = [[one for one in part if one["role"] != "tool"] for part in (messages, sent)]
        wrong += ["changed what is no result"] if rest[0] != rest[1] else []
        if wrong:
            self.found.fault(f"{name}, a gateway: {wrong[0]}")

    def look_up(self, name: str, digits: str, given: dict[str, str]) -> None:
        """What the model behind the gateway gets for a hash is one of the results."""
        text = self.tried(GatewayClient(""), partial(GatewayClient.original, digits=digits))
        if text is not None:
            self.found.count("look-ups by gateways")
            if text not in given:
                self.found.fault(f"{name}: /v1/retrieve/{digits} gives {text[:200]!r}")

    def tried(self, client: GatewayClient, act: Callable[[GatewayClient], Any]) -> Any:
        """What comes of it at any replica, as often as there is nothing; None: it is time to
        stop."""
        until, said = time.monotonic() + PATIENCE_SECONDS, ""
        while time.monotonic() < until and not self.stop.is_set():
            client.url = self.rng.choice(self.urls)
            try:
                found = act(client)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                said = f"{type(error).__name__}: {error}"
            else:
                if found is not None:
                    return found
                said = "nothing is kept"
            self.found.count("not answered")
            time.sleep(0.3)
        if not self.stop.is_set():
            self.found.fault(f"{self.name}: never: {said[:300]}")
        return None
