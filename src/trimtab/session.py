"""``Session`` fits the requests of a conversation turn by turn; an edit, once made, stays.

A turn reads what other processes stored, plans, stores the new edits and returns the request.
Without a store a session is one conversation and does no I/O; with a store it serves any number of
conversations.  What is read and changed between turns is in ``sessions/edit_history.py``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack

from trimtab import config
from trimtab.errors import StoreError, TrimtabError, expect, expect_text
from trimtab.forking import Lock
from trimtab.formats.detect import FormatName
from trimtab.formats.incremental_json import IncrementalParser
from trimtab.journal.archive import Archived, of_transcript
from trimtab.jsontext import paths
from trimtab.planning.presets import PresetName
from trimtab.pricing.observed_usage import PREFIX as CALIBRATIONS
from trimtab.pricing.observed_usage import Observed
from trimtab.pricing.reported_usage import as_mapping
from trimtab.request.fitted import Fitted, withdrawal_of
from trimtab.request.pipeline import FitResult
from trimtab.request.prepared_request import SessionFacts
from trimtab.sessions.control import is_control, untouched
from trimtab.sessions.conversation import Conversation, conversation_id
from trimtab.sessions.edit_history import EditHistory
from trimtab.sessions.response_chains import ResponseChains, unchained
from trimtab.sessions.streamed_steps import StreamedSteps
from trimtab.sessions.turn import Turn, take_turn, with_summarizer
from trimtab.settings import FitKeywords, Settings, check_names, naming_nearest, with_keywords

if TYPE_CHECKING:
    from trimtab.request.prepared_request import PreparedRequest
    from trimtab.retry.learned_limits import LearnedLimits
    from trimtab.sessions.conversation_store import ConversationStore
    from trimtab.sessions.pruning import Prunable, Pruned
    from trimtab.stores.base import Store


class SessionKeywords(FitKeywords, total=False):
    """The keywords of ``Session``."""

    store: str | Store | None
    tenant: str
    conversation: str | None
    journal: Mapping[str, Any] | None
    clock: Callable[[], float]


class SentTo(NamedTuple):
    """Where a request goes, as ``flow``'s key names it, and the rules that refusals of it named."""

    destination: str = ""
    refused: Sequence[str] = ()


class PruneKeywords(FitKeywords, total=False):
    """The keywords of ``prune`` and similar methods."""

    conversation: str | None


WARM_SECONDS = 240
"""Every prompt cache lives longer than this after its last use."""


class Session(EditHistory):
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
        self._clock = clock
        self._settings = with_summarizer(
            with_keywords(
                Settings(),
                {"window": window, "reserve": reserve, "model": model, "format": format,
                 "preset": preset, "target": target, "recall": recall, "settings": settings},
            )
        )  # fmt: skip
        super().__init__(store, tenant, journal)
        self._observed, self._chains = Observed(), ResponseChains()
        self._last_fitted: Fitted | None = None
        self._learned: LearnedLimits | None = None
        self._parser = IncrementalParser()
        self._lock = Lock()
        self._conversation_name = conversation

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
        wanted = self._with(keywords)
        fitted = self._fit_to(request, wanted, conversation, SentTo(destination or "", refused))
        if destination is not None or (self._learned is None and self._conversations is None):
            return fitted
        from trimtab.retry import by_hand

        again = partial(self._fit_again, fitted)
        return by_hand.with_known_limits(fitted, again, self.learned)

    def _fit_to(
        self, request: Any, wanted: Settings, conversation: str | None, sent_to: SentTo
    ) -> Fitted:
        fitted = self._fitted(request, wanted, conversation, sent_to)
        given = fitted.given()
        link = self._chains.link(given)
        if link is None:
            return fitted
        fitted.held_tokens = link.tokens
        fits = not fitted.capacity or link.tokens + fitted.tokens_after <= fitted.capacity
        if fits and not link.detached:
            return fitted
        # the server's history does not fit: send all of it ourselves
        whole: Any = unchained(given, link)
        if not isinstance(request, (dict, list)):
            whole = paths.dump(whole) if isinstance(request, str) else paths.dump(whole).encode()
        fitted = self._fitted(whole, wanted, conversation, sent_to)
        fitted.chained = given
        return fitted

    def _fitted(self, request: Any, wanted: Settings, name: str | None, sent_to: SentTo) -> Fitted:
        if self._conversations is not None or isinstance(request, bytes):
            request = self._parser.parse(request)
        conversation = self._conversation_of(request, wanted, name)
        in_control_arm = bool(wanted.control) and self._is_in_control_arm(
            conversation, request, wanted
        )
        with conversation:
            if in_control_arm and not conversation.journal.entries:
                wanted = untouched(wanted)
            minute = int(self._clock() // 60)
            facts = SessionFacts(
                calibrations=self._observed.calibrations,
                idle_seconds=self._idle_seconds(conversation, minute),
                destination=sent_to.destination,
                refused=tuple(sent_to.refused),
            )
            turn, fitted = self._take_turn(conversation, request, wanted, facts)
            if not turn.is_client_request:
                conversation.stats.sent_minute = minute
                self._count(conversation, turn.result, fitted)
                self._fitted_last = fitted
            if wanted.control:
                outgrown = ", outgrown" if conversation.journal.entries else ""
                fitted.arm = f"control{outgrown}" if in_control_arm else "treated"
            self._observed.last = fitted.counted
            self._last, self._last_fitted = conversation, fitted
            fitted.conversation = conversation.id or name or self._conversation_name or ""
            fitted.hint = name
        return fitted

    def _idle_seconds(self, conversation: Conversation, minute: int) -> float | None:
        """Seconds since any process last sent a request of this conversation, by the minute; None
        for its first.  The store is asked where this process would take the cache for lost."""
        last = conversation.stats.sent_minute
        if self._conversations is not None and 60 * (minute - last) > WARM_SECONDS:
            last = max(last, self._conversations.sent_minute(conversation))
        return 60.0 * max(0, minute - last) if last else None

    def _conversation_of(self, request: Any, wanted: Settings, name: str | None) -> Conversation:
        """The conversation of a request, by its name or its first messages."""
        if self._conversations is None:
            return self._last
        id = conversation_id(request, wanted.format)
        conversation = self._conversations.conversation(id, name or self._conversation_name)
        self._read_calibrations(self._conversations)
        return conversation

    def _take_turn(
        self, conversation: Conversation, request: Any, wanted: Settings, facts: SessionFacts
    ) -> tuple[Turn, Fitted]:
        """Fit a request as the next turn, and keep its new edits."""
        if self._conversations is not None:
            return self._conversations.turn(conversation, request, wanted, facts)
        turn, fitted, conversation.journal = take_turn(
            request, wanted, conversation.cache, conversation.journal, facts
        )
        return turn, fitted

    def _count(self, conversation: Conversation, result: FitResult, fitted: Fitted) -> None:
        """Add a turn to the conversation's statistics."""
        conversation.stats.add(result, fitted)
        if self._conversations is not None:
            self._conversations.write_stats(conversation)

    def _is_in_control_arm(
        self, conversation: Conversation, request: Any, wanted: Settings
    ) -> bool:
        """Whether a conversation is in the control arm; its id, or first request, decides."""
        if not conversation.control_key:
            known = conversation.id or self._conversation_name
            conversation.control_key = known or conversation_id(
                self._parser.parse(request), wanted.format
            )
        return is_control(conversation.control_key, wanted.control)

    async def afit(
        self, request: Any, *, conversation: str | None = None, **keywords: Unpack[FitKeywords]
    ) -> Fitted:
        """``fit`` in a thread, so that it does not block the event loop."""
        import asyncio

        return await asyncio.to_thread(self.fit, request, conversation=conversation, **keywords)

    def _with(self, keywords: FitKeywords) -> Settings:
        """The session's settings, overridden by the keywords of a call."""
        check_names(keywords, FitKeywords.__annotations__.keys(), "fit")
        return with_keywords(self._settings, keywords)

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

    def _fit_again(
        self,
        fitted: Fitted,
        request: Any,
        *,
        destination: str = "",
        refused: Sequence[str] = (),
        **keywords: Unpack[FitKeywords],
    ) -> Fitted:
        """Fit the request of ``fitted`` again, with its settings and for its conversation."""
        wanted = with_keywords(fitted.settings, keywords)
        return self._fit_to(request, wanted, fitted.hint, SentTo(destination, refused))

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

    def _read_calibrations(self, conversations: ConversationStore) -> None:
        """Read the calibrations that other sessions stored."""
        facts = conversations.new_facts(CALIBRATIONS)
        with self._lock:
            self._observed.take(facts.items())

    # --- results removed on request (pruning) ---

    def prune(
        self, request: Any, names: Sequence[str], **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Remove results from the next ``fit`` on; their originals stay recallable.

        What cannot be removed is reported with the reason.  Keywords are those of ``fit``, and
        ``conversation``.  Raises StoreError if the store does not keep the edits.
        """
        from trimtab.sessions.pruning import prune

        return self._take_out_results(request, keywords, lambda prepared: prune(prepared, names))

    def distill(
        self, request: Any, words: Mapping[str, str], **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune``; ``words``: each result's name → the model's text in its place."""
        from trimtab.sessions.pruning import distill

        return self._take_out_results(request, keywords, lambda prepared: distill(prepared, words))

    def compress(
        self, request: Any, first: str, last: str, words: str, **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune`` for all results from ``first`` to ``last``: the model's ``words`` replace
        them and the long arguments of their calls."""
        from trimtab.sessions.pruning import compress

        return self._take_out_results(
            request, keywords, lambda prepared: compress(prepared, first, last, words)
        )

    def preview(self, request: Any, **keywords: Unpack[PruneKeywords]) -> Fitted:
        """The request as a cut made now would leave it, due or not: ``report`` says what would be
        taken.  Nothing is kept of it, and the next ``fit`` does what it would have done.  Raises
        what ``fit`` raises."""
        from trimtab.request.pipeline import run

        conversation, prepared = self._prepared(request, keywords)
        with conversation:
            result = run(replace(prepared, facts=replace(prepared.facts, is_preview=True)))
        return Fitted(result, result.originals)

    def sweep(
        self, request: Any, most: int | None = None, **keywords: Unpack[PruneKeywords]
    ) -> Pruned:
        """Like ``prune`` for the newest ``most`` results; None: all since the last user message."""
        from trimtab.sessions.pruning import sweep

        return self._take_out_results(request, keywords, lambda prepared: sweep(prepared, most))

    def _take_out_results(
        self,
        request: Any,
        keywords: PruneKeywords,
        choose: Callable[[PreparedRequest], Pruned],
    ) -> Pruned:
        """Add the chosen edits to the journal.  Raises StoreError if they are not stored."""
        conversation, prepared = self._prepared(request, keywords)
        pruned = choose(prepared)
        if pruned.edits:
            with conversation:
                if self._conversations is None:
                    conversation.journal = conversation.journal.add(pruned.edits, pruned.originals)
                elif problem := self._conversations.save(
                    conversation, conversation.journal.add(pruned.edits, {}), pruned.originals
                ):
                    raise StoreError(problem)
        return pruned

    def _prepared(
        self, request: Any, keywords: PruneKeywords
    ) -> tuple[Conversation, PreparedRequest]:
        """The conversation of a request, and the request as the next ``fit`` would read it."""
        from trimtab.request.pipeline import prepare

        if (name := keywords.pop("conversation", None)) is not None:
            expect_text("conversation", name)
        wanted, conversations, conversation = self._with(keywords), self._conversations, self._last
        facts = SessionFacts(calibrations=self._observed.calibrations)
        if conversations is not None:
            request = self._parser.parse(request)
            id = conversation_id(request, wanted.format)
            conversation = conversations.conversation(id, name or self._conversation_name)
            facts = replace(facts, handle_key=conversations.refresh(conversation))
        with conversation:
            return conversation, prepare(
                request, wanted, conversation.cache, conversation.journal, facts
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TrimtabError(
            "a Session has locks and a store and cannot be pickled or copied: in the other process "
            "make Session(journal=session.journal), or Session(store=…) with the same store"
        )


# --- for our own entry points, not called by users ---


def prunable(session: Session, request: Any, **keywords: Unpack[PruneKeywords]) -> list[Prunable]:
    """The results that ``Session.prune`` may remove, oldest first."""
    from trimtab.sessions import pruning

    return pruning.prunable(session._prepared(request, keywords)[1])


def store_of(session: Session) -> ConversationStore | None:
    """What a session keeps its conversations in; None without a store."""
    return session._conversations


def stored_facts(session: Session, prefix: str) -> dict[str, Any]:
    """Facts in the store whose names begin with ``prefix``, by name; {} without a store."""
    conversations = session._conversations
    facts = {} if conversations is None else conversations.facts(prefix)
    return {name: json.loads(value) for name, value in facts.items()}


class RequestOriginals:
    """What the recall tool answers from, for one request: what the edits of its conversation take
    out of it, whatever its session fits at the same time."""

    def __init__(self, session: Session, request: Any, **keywords: Unpack[PruneKeywords]) -> None:
        self._session, self._request, self._keywords = session, request, keywords

    def recall(self, handle: str) -> str:
        """See ``Originals``."""
        return self._session.recall(handle)

    @property
    def archive(self) -> tuple[Archived, ...]:
        """What is taken out of the request, newest first.  Raises TrimtabError."""
        from trimtab.request.pipeline import taken_out

        _, prepared = self._session._prepared(self._request, self._keywords.copy())
        return of_transcript(prepared.transcript, prepared.active, taken_out(prepared))
