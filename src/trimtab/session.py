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
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

from trimtab import config
from trimtab.errors import TrimtabError, expect, expect_text
from trimtab.formats.registry import FormatName
from trimtab.planning.presets import PresetName
from trimtab.report import Report
from trimtab.request.fitted import Fitted, facts_of
from trimtab.request.pipeline import run
from trimtab.request.received import TurnInputs
from trimtab.sessions.edit_history import take_back
from trimtab.sessions.session_turns import PruneKeywords, SessionTurns, follow, take_out
from trimtab.sessions.turn import with_summarizer
from trimtab.settings import (
    FitKeywords,
    KeywordsOfFit,
    Settings,
    naming_nearest,
    with_keywords,
)

if TYPE_CHECKING:
    from trimtab.retry.learned_limits import LearnedLimits
    from trimtab.sessions.pruning import Pruned
    from trimtab.stores.base import Store

R = TypeVar("R")


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
    expired.  The minute is kept in the store: replicas and restarts agree.  ``with Session(…) as
    session`` closes it at the end.
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

    @property
    def report(self) -> Report:
        """The report of the last ``fit``.  Raises TrimtabError before the first one."""
        if self._last_fitted is None:
            raise TrimtabError("no request was fitted yet: call session.fit(request) first")
        return self._last_fitted.report

    def __repr__(self) -> str:
        settings = self._settings
        window = "the model's" if settings.window is None else f"{settings.window:,} tokens"
        last = "no request yet" if self._last_fitted is None else repr(self.report)[1:-1]
        return f"<Session, window: {window}; {last}>"

    # --- turns ---

    def fit(
        self,
        request: R,
        window: int | str | None = None,
        *,
        conversation: str | None = None,
        destination: str | None = None,
        refused: Sequence[str] = (),
        **keywords: Unpack[KeywordsOfFit],
    ) -> Fitted[R]:
        """Fit one request.  Keywords are those of ``trimtab.fit`` and win over the session's.

        ``destination``, ``refused``: for who drives ``trimtab.retry.flow``: where the request goes
        (``flow``'s key), and the rules that refusals named.  Without a destination, what
        ``refused()`` learned of the model applies.

        Raises what ``trimtab.fit`` raises; a failed call leaves the journal as it was.  A store
        that does not answer is a warning in the report, not an error.
        """
        if conversation is not None:
            expect_text("conversation", conversation)
        inputs = TurnInputs(
            self._with({"window": window, **keywords}),
            destination=destination or "",
            refused=tuple(refused),
        )
        fitted = self._fit_whole(request, inputs, conversation)
        if destination is not None or (self._learned is None and self._conversations is None):
            return fitted
        from trimtab.retry import by_hand

        again = partial(self._fit_again, fitted)
        return by_hand.with_known_limits(fitted, again, learned_limits(self))

    async def afit(
        self,
        request: R,
        window: int | str | None = None,
        *,
        conversation: str | None = None,
        **keywords: Unpack[KeywordsOfFit],
    ) -> Fitted[R]:
        """``fit`` in a thread, so that it does not block the event loop."""
        import asyncio

        return await asyncio.to_thread(
            lambda: self.fit(request, window, conversation=conversation, **keywords)
        )

    def observe(self, answer: Any, fitted: Fitted | None = None) -> None:
        """Learn from the usage in an answer how the provider counts this model's tokens.

        ``answer``: a response in any of the six formats (JSON, bytes or the client's object), an
        event of a stream, or a usage alone.  An answer without a usage is ignored.  ``fitted``: the
        request that it answers; None: the one this session fitted last.
        """
        an_answer = answer is not None and not isinstance(answer, (Fitted, list, tuple))
        expect(an_answer, "answer", answer, "the provider's response, or an event of its stream")
        given = fitted is None or isinstance(fitted, Fitted)
        expect(given, "fitted", fitted, "what fit returned")
        if isinstance(answer, str):
            expect(answer.lstrip()[:1] == "{", "answer", answer, "a response, or its JSON")
        if (answered := fitted or self._last_fitted) is not None:
            follow(self, answer, answered)
            if facts_of(answered).attempts is not None:
                from trimtab.retry import by_hand

                by_hand.accepted(answered)
        with self._lock:
            fact = self._observed.answer(answer, facts_of(fitted).counted if fitted else None)
        if fact is not None and self._conversations is not None:
            self._conversations.write_fact_soon(fact[0], json.loads(fact[1]))

    # --- after a refusal ---

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

        an_error = error is not None and not isinstance(error, (str, bytes, int, Fitted))
        expect(an_error, "error", error, "the exception that the SDK raised, or (status, body)")
        expect(isinstance(fitted, Fitted), "fitted", fitted, "what fit returned")
        again = partial(self._fit_again, fitted)
        return by_hand.next_attempt(
            error, fitted, again, learned_limits(self), partial(take_back, self)
        )

    # --- before a cut ---

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
        """Take the newest ``most`` tool results out, from the next ``fit`` on; None: all since the
        last user message.  Their originals stay recallable.

        What is protected, short, or of the step that is going on stays.  Keywords are those of
        ``fit``, and ``conversation``.  Raises StoreError if the store does not keep the edits.
        """
        from trimtab.sessions import pruning

        return take_out(self, request, lambda measured: pruning.sweep(measured, most), **keywords)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TrimtabError(
            "a Session has locks and a store and cannot be pickled or copied: in the other process "
            "make Session(journal=session.journal), or Session(store=…) with the same store"
        )


def learned_limits(session: Session) -> LearnedLimits:
    """What refusals taught a session of endpoints and models; kept in the store, if there is
    one."""
    from trimtab.retry.learned_limits import LearnedLimits
    from trimtab.retry.stored_limits import StoredLimits

    if session._learned is None:
        stored = session._conversations
        session._learned = LearnedLimits(None if stored is None else StoredLimits(stored))
    return session._learned
