"""Runs the recall tool for the model between a client and its provider; the client never sees the
calls.

This file says how its calls are answered over several rounds.  ``declaration`` says which requests
get the tool; the format's rewriter makes one answer of theirs.
"""

from __future__ import annotations

from typing import Any

from trimtab.formats import FORMATS
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.rewriter import dumped
from trimtab.formats.openai_responses.answers import OpenAIResponsesRewriter
from trimtab.jsontext import paths, splicing
from trimtab.jsontext.parsing import encode
from trimtab.rounds import offered_tools
from trimtab.rounds.declaration import (
    INTERNAL,
    OWN,
    asks_for_structure,
    declaring,
    why_undeclared,
)
from trimtab.rounds.hidden_exchanges import HiddenExchanges, hidden_exchange
from trimtab.rounds.request_layouts import history, with_turn
from trimtab.rounds.stored_exchanges import StoredExchanges
from trimtab.session import Session
from trimtab.telemetry import fault, logger


def rewritable(format: str, *, listed: bool, framed: bool) -> bool:
    """Whether calls of our tools can be removed from answers of this format, streams included.

    ``listed``: a stream is one JSON array; ``framed``: it consists of AWS event-stream frames.
    """
    # Claude's own events in frames of AWS are not written.
    return not listed and framed == FORMATS[format].rewriter.framed


MAX_ROUNDS = 6
"""Model calls for one answer at most; later recalls are not answered."""


class RecallRounds:
    """One request with the recall tool, over all its rounds."""

    def __init__(
        self, format: str, session: Session, memory: HiddenExchanges,
        facts: StoredExchanges | None, *, prune: bool = False, notes: bool = False,
        model: str | None = None, alone: bool = False, sums_prompts: bool = False,
    ) -> None:  # fmt: skip
        """``prune``, ``notes``: whether the tools for pruning and for notes are offered too;
        ``alone``: whether a request
        without tools gets ours; ``sums_prompts``: whether the client is told the prompts of all
        rounds as one sum, or that of the last round."""
        self._format, self._conversation = format, ""
        self._session, self._memory, self._facts = session, memory, facts
        self._names, self._model, self._alone = offered_tools.names(prune, notes), model, alone
        self._body: Any = None
        self._client_messages: list[Any] = []
        self._real: list[Any] = []
        self.sent = b""
        """The body of the newest round, if the request offers the tool."""
        self.rounds = 1
        self.ready = False
        """Whether the request offers the tool."""
        self.only_last = False
        """Whether the client gets the text of the last round only: a JSON value has to be whole."""
        self.why_not = ""
        """Why it does not, if it does not: see ``declaration``."""
        self.rewriter = FORMATS[format].rewriter()
        self.rewriter.ours = frozenset(self._names)
        self.rewriter.sums_prompts = sums_prompts

    def prepared(self, source: RequestBody, conversation: str) -> bytes | None:
        """The request with the recall tool and the hidden exchanges; None if it stays as it is.

        A request that does not get the tool has the exchanges all the same: the signatures of later
        reasoning cover them.
        """
        try:
            return self._prepared(source.text or "", source.tree, conversation)
        except Exception as error:
            fault("recall", error)
            return None

    def _prepared(self, text: str, body: Any, conversation: str) -> bytes | None:
        self.why_not = why_not = why_undeclared(self._format, body, self._names, alone=self._alone)
        if why_not in (OWN, INTERNAL):
            return None
        self._conversation = conversation
        self._client_messages = history(self._format, body)
        restored = self._memory.followed(body, self._facts)
        restored = self._memory.restored(self._format, conversation, restored, self._facts)
        if why_not:
            # Calls without tools are refused.
            no_tools = FORMATS[self._format].table.tools.of(body) is None
            return None if restored is body or no_tools else dumped(restored)
        tools = [offered_tools.definition(self._format, name) for name in self._names]
        added = declaring(self._format, body, tools)
        self._body = paths.apply(restored, added)
        self.only_last = asks_for_structure(self._format, body)
        # If nothing was restored, all other bytes stay as they were.
        same = restored is body
        prepared = encode(splicing.splice(text, added)) if same else dumped(self._body)
        self.ready, self.sent = True, prepared
        return prepared

    def follow(self) -> bytes | None:
        """The next round's request, with the results of this round's recalls; None without a
        round."""
        rewriter = self.rewriter
        real = rewriter.real()
        if not rewriter.recalls or rewriter.has_client_calls or self.rounds >= MAX_ROUNDS:
            return None
        results = self._results(last=self.rounds == MAX_ROUNDS - 1)
        before = len(history(self._format, self._body))
        self._body = with_turn(self._format, self._body, real, results)
        self._real += history(self._format, self._body)[before:]
        self.rounds += 1
        self.sent = dumped(self._body)
        return self.sent

    def next_begins(self) -> None:
        """The next round was accepted: its end is that of the answer."""
        self.rewriter.discard_round_end()
        if self.only_last:
            self.rewriter = self.rewriter.started_over()

    def _results(self, *, last: bool = False) -> list[Any]:
        return [
            offered_tools.result(
                self._format, self._session, self._body, call, self._model, last=last
            )
            for call in self.rewriter.recalls
        ]

    def remember(self) -> None:
        """Store what the client did not see of this answer, for its next requests."""
        rewriter = self.rewriter
        real, results = rewriter.real(), list[Any]()
        if rewriter.recalls:
            results = self._results()
            if not rewriter.has_client_calls:
                logger().warning(
                    "a model answered with nothing but recalls %d times, and was given no more: "
                    "the client got what else it said, which may be nothing",
                    MAX_ROUNDS,
                )
        if not self._real and not results:
            return
        stored = self._body.get("store") is not False
        if stored and isinstance(rewriter, OpenAIResponsesRewriter):
            first, last = rewriter.first_id, rewriter.last_id
            for name in {first, last} if results else {first}:  # a client may have read either
                self._memory.follow(self._conversation, name, last, results, self._facts)
        if not FORMATS[self._format].results_in_user:
            real, results = [*real, *results], []
        key, hidden = hidden_exchange(
            self._format, self._client_messages, rewriter.visible(), [*self._real, *real], results
        )
        self._memory.put(self._conversation, key, hidden, self._facts)
