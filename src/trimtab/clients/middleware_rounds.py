"""The rounds of a whole answer behind the middleware of Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.clients.http_copies import rewritten_whole
from trimtab.clients.httpx_clients import library_of
from trimtab.retry.flow import Done
from trimtab.retry.own_header import ROUNDS
from trimtab.rounds.answer_steps import NextRound, Read, Show, Step, Work, steps
from trimtab.rounds.recall_rounds import RecallRounds


class Rounds:
    """Yields the body of each later round; give what came back to ``answered`` before the next."""

    def __init__(self, rounds: RecallRounds, response: Any) -> None:
        self._rounds, self._response = rounds, response
        self._refused = False
        self._whole = b""

    def answered(self, response: Any, done: Done) -> None:
        """Take the answer of a later round, or its refusal."""
        self._response, self._refused = response, not done.accepted

    def __iter__(self) -> Iterator[bytes]:
        """The bodies to send."""
        run = steps(self._rounds, None)
        step: Step = next(run)
        while True:
            reply: Any = None
            if isinstance(step, Read):
                reply = self._response.http_response.content
            elif isinstance(step, Work):
                reply = step.call()
            elif isinstance(step, NextRound):
                yield step.body
                if self._refused:
                    return
            elif isinstance(step, Show):
                self._whole = step.data
            try:
                step = run.send(reply)
            except StopIteration:
                return

    def joined(self) -> Any:
        """The one response; that of a refused round as it is."""
        http = self._response.http_response
        if not self._refused and self._whole != http.content:
            module = library_of(type(http))
            self._response.http_response = http = rewritten_whole(module, http, self._whole)
        http.headers[ROUNDS] = str(self._rounds.rounds)
        return self._response
