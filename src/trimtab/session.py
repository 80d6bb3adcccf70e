"""``Session`` fits the requests of a conversation turn by turn; an edit, once made, stays.

What users call is here; how a turn is taken is in ``sessions/session_turns.py``, what is read and
changed between turns in ``sessions/edit_history.py``.  Without a store a session is one
conversation and does no I/O; with a store it serves any number of conversations.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from trimtab import config
from trimtab.errors import TrimtabError, expect, expect_text
from trimtab.formats.engine.sdk_objects import as_mapping
from trimtab.formats.gemini_interactions.streamed_steps import StreamedSteps
from trimtab.formats.registry import FormatName
from trimtab.planning.presets import PresetName
from trimtab.request.fitted import Fitted, withdrawal_of
from trimtab.request.pipeline import run
from trimtab.request.received import TurnInputs
from trimtab.sessions.session_turns import PruneKeywords, SessionTurns
from trimtab.sessions.turn import with_summarizer
from trimtab.settings import FitKeywords, Settings, naming_nearest, with_keywords

if TYPE_CHECKING:
    from trimtab.retry.learned_limits import LearnedLimits
    from trimtab.sessions.pruning import Pruned
    from trimtab.stores.base import Store


class SessionKeywords(FitKeywords, total=False):
    """The keywords of ``Session``."""

    store: str | Store | None
    tenant: str
    conversation: str | None
    journal: Mapping[str, Any] | None
    clock: Callable[[], float]


class Session(SessionTurns):
    """Fits requests turn by turn; each edit is made once and then stays.

    Takes the keywords of ``fit``.  Without a store it is one conversation; ``journal`` continues
    an earlier session and is what its ``session.journal`` returned.

    With ``store`` (a URL or a ``Store``) it is any number of conversations of one ``tenant``.  A
    conversation is found by its first messages, in any process, and every original stays
    recallable.  ``conversation`` names one whose first messages the client changes; ``fit``
    and ``prune`` take such a name for each request too.  ``clock`` returns seconds since the epoch;
    it measures by the minute how long a conversation lay idle, and so whether the prompt cache has
    expired.  The minute is kept in the store: replicas and restarts agree.
    """

    @naming_nearest
    def __init__(
        self,
        *,
        window: int | str | None = None,
        reserve: int | str | None = None,
        model: str | None = None,
        format: FormatName | None = None,
        preset: PresetName | None = None,
        target: float | str | None = None,
        recall: bool | None = None,
        settings: Settings | None = None,
        store: str | Store | None = None,
        tenant: str = "default",
        conversation: str | None = None,
        journal: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        expect(callable(clock), "clock", clock, "a function that returns seconds")
        if conversation is not None:
            expect_text("conversation", conversation)
        wanted = with_keywords(
            Settings(),
            {"window": window, "reserve": reserve, "model": model, "format": format,
             "preset": preset, "target": target, "recall": recall, "settings": settings},
        )  # fmt: skip
        super().__init__(with_summarizer(wanted), store, tenant, conversation, journal, clock)
        self._learned: LearnedLimits | None = None

    @classmethod
    def from_config(
        cls, folder: str | os.PathLike[str] = ".", **keywords: Unpack[SessionKeywords]
    ) -> Session:
        """A session with the settings of files and environment (``load_settings``); keywords win.

        Raises InvalidSetting.
        """
        loaded = config.load_settings(folder)
        keywords["settings"] = with_keywords(loaded, {"settings": keywords.get("settings")})
        return cls(**keywords)

    @property
    def settings(self) -> Settings:
        """The session's settings; keywords of a single ``fit`` win over them."""
        return self._settings

    # --- turns ---

    def fit(
        self,
        request: Any,
        *,
        conversation: str | None = None,
        destination: str | None = None,
        refused: Sequence[str] = (),
        **keywords: Unpack[FitKeywords],
    ) -> Fitted:
        """Fit one request.  Keywords are those of ``trimtab.fit`` and win over the session's.

        ``destination``, ``refused``: for who drives ``trimtab.flow``: where the request goes
        (``flow``'s key), and the rules that refusals named.  Without a destination, what
        ``refused()`` learned of the model applies.

        Raises what ``trimtab.fit`` raises; a failed call leaves the journal as it was.  A store
        that does not answer is a warning in the report, not an error.
        """
        if conversation is not None:
            expect_text("conversation", conversation)
        inputs = TurnInputs(
            self._with(keywords), destination=destination or "", refused=tuple(refused)
        )
        fitted = self._fit_whole(request, inputs, conversation)
        if destination is not None or (self._learned is None and self._conversations is None):
            return fitted
        from trimtab.retry import by_hand

        again = partial(self._fit_again, fitted)
        return by_hand.with_known_limits(fitted, again, self.learned)

    async def afit(
        self, request: Any, *, conversation: str | None = None, **keywords: Unpack[FitKeywords]
    ) -> Fitted:
        """``fit`` in a thread, so that it does not block the event loop."""
        import asyncio

        return await asyncio.to_thread(self.fit, request, conversation=conversation, **keywords)

    def observe(self, answer: Any, fitted: Fitted | None = None) -> None:
        """Learn from the usage in an answer how the provider counts this model's tokens.

        ``answer``: a response in any of the six formats (JSON, bytes or the client's object), an
        event of a stream, or a usage alone.  An answer without a usage is ignored.  ``fitted``: the
        request that it answers; None: the one this session fitted last.
        """
        given = fitted is None or isinstance(fitted, Fitted)
        expect(given, "fitted", fitted, "what fit returned")
        if isinstance(answer, str):
            expect(answer.lstrip()[:1] == "{", "answer", answer, "a response, or its JSON")
        if (answered := fitted or self._last_fitted) is not None:
            self.follow(answer, answered)
            if answered.attempts is not None:
                from trimtab.retry import by_hand

                by_hand.accepted(answered)
        with self._lock:
            fact = self._observed.answer(answer, fitted.counted if fitted else None)
        if fact is not None and self._conversations is not None:
            self._conversations.write_fact_soon(fact[0], json.loads(fact[1]))

    def follow(self, answer: Any, fitted: Fitted) -> None:
        """Record the history behind an answer's id.  A later request that names the id can then be
        sent in full once the server's history no longer fits.  ``observe`` calls this.

        ``answer``: a whole one, or the events of its stream, one by one."""
        whole = as_mapping(answer)
        if isinstance(whole, Mapping) and "event_type" in whole:
            fitted.streamed = fitted.streamed or StreamedSteps()
            whole = fitted.streamed.take(whole)
        self._chains.take(
            fitted.given(), whole, fitted.tokens_after, fitted.scale,
            was_whole=fitted.chained is not None,
        )  # fmt: skip

    # --- after a refusal ---

    @property
    def learned(self) -> LearnedLimits:
        """What refusals taught of endpoints and models; kept in the store, if there is one."""
        from trimtab.retry.learned_limits import LearnedLimits
        from trimtab.retry.stored_limits import StoredLimits

        if self._learned is None:
            stored = self._conversations
            self._learned = LearnedLimits(None if stored is None else StoredLimits(stored))
        return self._learned

    def refused(self, error: Any, fitted: Fitted) -> Fitted | None:
        """The next attempt after the provider refused ``fitted.request``; None if there is none,
        and the error is the caller's.

            fitted = session.fit(request)
            while True:
                try:
                    answer = client.messages.create(**fitted.request)
                    break
                except anthropic.APIStatusError as error:
                    fitted = session.refused(error, fitted)
                    if fitted is None:
                        raise
            session.observe(answer, fitted)

        ``error``: the exception of any SDK, or (status, body).  What helped is remembered for this
        conversation, and by ``observe`` for the model.
        """
        from trimtab.retry import by_hand

        expect(isinstance(fitted, Fitted), "fitted", fitted, "what fit returned")
        again = partial(self._fit_again, fitted)
        return by_hand.next_attempt(error, fitted, again, self.learned, self.take_back)

    def take_back(self, fitted: Fitted) -> None:
        """Undo the new edits of ``fitted``, and forget the rules that it was repaired for: they
        were a guess, and the provider refused it as well."""
        for edit in fitted.report.edits:
            if edit.new:
                self.undo(edit.handle)
                self.unpin(edit.handle)
        if keys := withdrawal_of(fitted):
            stored, last = self._conversations, self._last
            conversation = last if stored is None else stored.by_id(fitted.conversation)
            self._add(conversation, lambda journal: journal.add((), {}, keys))

    # --- results removed on request (pruning) ---

    def prune(
        self, request: Any, names: Sequence[str], **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Remove results from the next ``fit`` on; their originals stay recallable.

        What cannot be removed is reported with the reason.  Keywords are those of ``fit``, and
        ``conversation``.  Raises StoreError if the store does not keep the edits.
        """
        from trimtab.sessions.pruning import prune

        return self._take_out_results(request, keywords, lambda measured: prune(measured, names))

    def distill(
        self, request: Any, words: Mapping[str, str], **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune``; ``words``: each result's name → the model's text in its place."""
        from trimtab.sessions.pruning import distill

        return self._take_out_results(request, keywords, lambda measured: distill(measured, words))

    def compress(
        self, request: Any, first: str, last: str, words: str, **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune`` for all results from ``first`` to ``last``: the model's ``words`` replace
        them and the long arguments of their calls."""
        from trimtab.sessions.pruning import compress

        return self._take_out_results(
            request, keywords, lambda measured: compress(measured, first, last, words)
        )

    def preview(self, request: Any, **keywords: Unpack[PruneKeywords]) -> Fitted:
        """The request as a cut made now would leave it, due or not: ``report`` says what would be
        taken.  Nothing is kept of it, and the next ``fit`` does what it would have done.  Raises
        what ``fit`` raises."""
        conversation, measured = self._measured(request, keywords)
        with conversation:
            inputs = replace(measured.inputs, is_preview=True)
            result = run(replace(measured, inputs=inputs))
        return Fitted(result, result.originals)

    def sweep(
        self, request: Any, most: int | None = None, **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune`` for the newest ``most`` results; None: all since the last user message."""
        from trimtab.sessions.pruning import sweep

        return self._take_out_results(request, keywords, lambda measured: sweep(measured, most))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TrimtabError(
            "a Session has locks and a store and cannot be pickled or copied: in the other process "
            "make Session(journal=session.journal), or Session(store=…) with the same store"
        )
