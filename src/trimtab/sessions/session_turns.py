"""The turns of a session: which conversation a request belongs to, what it is fitted with, and what
is kept of the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from trimtab.errors import StoreError, expect_text
from trimtab.forking import Lock
from trimtab.formats.engine.sdk_objects import as_mapping
from trimtab.formats.gemini_interactions.streamed_steps import StreamedSteps
from trimtab.formats.incremental_json import IncrementalParser
from trimtab.journal.archive import Archived, of_transcript
from trimtab.jsontext import paths
from trimtab.pricing.observed_usage import PREFIX as CALIBRATIONS
from trimtab.pricing.observed_usage import Observed
from trimtab.request.applied import taken_by_repair
from trimtab.request.fitted import Fitted, facts_of
from trimtab.request.measured import MeasuredRequest
from trimtab.request.pipeline import FitResult, prepare
from trimtab.request.received import TurnInputs
from trimtab.sessions.control import control_arm_settings, is_control
from trimtab.sessions.conversation import Conversation, conversation_id
from trimtab.sessions.edit_history import EditHistory
from trimtab.sessions.response_chains import ResponseChains, unchained
from trimtab.sessions.turn import Turn, take_turn
from trimtab.settings import FitKeywords, Settings, check_names, with_keywords

if TYPE_CHECKING:
    from trimtab.sessions.conversation_store import ConversationStore
    from trimtab.sessions.pruning import Prunable, Pruned
    from trimtab.stores.base import Store


class PruneKeywords(FitKeywords, total=False):
    """The keywords of ``sweep`` and ``preview``."""

    conversation: str | None


WARM_SECONDS = 240
"""Every prompt cache lives longer than this after its last use."""


class SessionTurns(EditHistory):
    """The base class of ``Session`` for taking turns."""

    def __init__(
        self,
        settings: Settings,
        store: str | Store | None,
        tenant: str,
        conversation: str | None,
        journal: Mapping[str, Any] | None,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(store, tenant, journal)
        self._settings, self._conversation_name, self._clock = settings, conversation, clock
        self._observed, self._chains = Observed(), ResponseChains()
        self._last_fitted: Fitted | None = None
        self._parser = IncrementalParser()
        self._lock = Lock()
        self._way_back = 'undo: session.undo("{}")'

    def _with(self, keywords: FitKeywords) -> Settings:
        """The session's settings, overridden by the keywords of a call."""
        check_names(keywords, FitKeywords.__annotations__.keys(), "fit")
        return with_keywords(self._settings, keywords)

    def _fit_whole(self, request: Any, inputs: TurnInputs, name: str | None) -> Fitted:
        """Fit a request; in full where the history that the server adds does not fit."""
        fitted = self._fit_once(request, inputs, name)
        facts = facts_of(fitted)
        given = facts.given()
        link = self._chains.link(given)
        if link is None:
            return fitted
        facts.held_tokens = link.tokens
        fits = not facts.capacity or link.tokens + fitted.tokens_after <= facts.capacity
        if fits and not link.detached:
            return fitted
        whole: Any = unchained(given, link)
        if not isinstance(request, (dict, list)):
            whole = paths.dump(whole) if isinstance(request, str) else paths.dump(whole).encode()
        fitted = self._fit_once(whole, inputs, name)
        facts_of(fitted).chained = given
        return fitted

    def _fit_once(self, request: Any, inputs: TurnInputs, name: str | None) -> Fitted:
        """Fit a request as it is; ``name``: that of its conversation."""
        wanted = inputs.settings
        if self._conversations is not None or isinstance(request, bytes):
            request = self._parser.parse(request)
        conversation = self._conversation_of(request, wanted, name)
        in_control_arm = bool(wanted.control) and self._is_in_control_arm(
            conversation, request, wanted
        )
        with conversation:
            if in_control_arm and not conversation.journal.entries:
                wanted = control_arm_settings(wanted)
            minute = int(self._clock() // 60)
            inputs = replace(
                inputs,
                settings=wanted,
                calibrations=self._observed.calibrations,
                way_back=self._way_back,
                idle_seconds=self._idle_seconds(conversation, minute),
            )
            turn, fitted = self._take_turn(conversation, request, inputs)
            if not turn.is_client_request:
                conversation.stats.sent_minute = minute
                self._count(conversation, turn.result, fitted)
                self._fitted_last = fitted
            if wanted.control:
                outgrown = ", outgrown" if conversation.journal.entries else ""
                fitted.arm = f"control{outgrown}" if in_control_arm else "treated"
            facts = facts_of(fitted)
            self._observed.last, facts.hint = facts.counted, name
            self._last, self._last_fitted = conversation, fitted
            fitted.conversation = conversation.id or name or self._conversation_name or ""
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
        self, conversation: Conversation, request: Any, inputs: TurnInputs
    ) -> tuple[Turn, Fitted]:
        """Fit a request as the next turn, and keep its new edits."""
        if self._conversations is not None:
            return self._conversations.turn(conversation, request, inputs)
        turn, fitted, conversation.journal = take_turn(request, conversation.turn_inputs(inputs))
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
        wanted = with_keywords(facts_of(fitted).settings, keywords)
        inputs = TurnInputs(wanted, destination=destination, refused=tuple(refused))
        return self._fit_whole(request, inputs, facts_of(fitted).hint)

    def _read_calibrations(self, conversations: ConversationStore) -> None:
        """Read the calibrations that other sessions stored."""
        facts = conversations.new_facts(CALIBRATIONS)
        with self._lock:
            self._observed.take(facts.items())

    # --- a request that is not sent yet ---

    def _measured(
        self, request: Any, keywords: PruneKeywords
    ) -> tuple[Conversation, MeasuredRequest]:
        """The conversation of a request, and the request as the next ``fit`` would read it."""
        if (name := keywords.pop("conversation", None)) is not None:
            expect_text("conversation", name)
        wanted, conversations, conversation = self._with(keywords), self._conversations, self._last
        inputs = TurnInputs(wanted, calibrations=self._observed.calibrations)
        if conversations is not None:
            request = self._parser.parse(request)
            id = conversation_id(request, wanted.format)
            conversation = conversations.conversation(id, name or self._conversation_name)
            inputs = replace(inputs, handle_key=conversations.refresh(conversation))
        with conversation:
            return conversation, prepare(request, conversation.turn_inputs(inputs))


# --- for our own doors, not called by users ---


def follow(session: SessionTurns, answer: Any, fitted: Fitted) -> None:
    """Record the history behind an answer's id.  A later request that names the id can then be
    sent in full once the server's history no longer fits.  ``Session.observe`` does it too.

    ``answer``: a whole one, or the events of its stream, one by one."""
    facts, whole = facts_of(fitted), as_mapping(answer)
    if isinstance(whole, Mapping) and "event_type" in whole:
        facts.streamed = facts.streamed or StreamedSteps()
        whole = facts.streamed.take(whole)
    session._chains.take(
        facts.given(), whole, fitted.tokens_after, facts.scale, was_whole=facts.chained is not None
    )


def shortened(session: SessionTurns, messages: Any, settings: Settings) -> Fitted:
    """Fit a part of a request: its messages stay, their texts are shortened in place, and nothing
    is refused.  ``settings`` win over the session's.  Raises what ``fit`` raises but CannotFit."""
    inputs = TurnInputs(session._settings | settings, keeps_messages=True)
    return session._fit_once(messages, inputs, None)


def prunable(
    session: SessionTurns, request: Any, **keywords: Unpack[PruneKeywords]
) -> list[Prunable]:
    """The results that may be taken out, oldest first."""
    from trimtab.sessions import pruning

    return pruning.prunable(session._measured(request, keywords)[1])


def take_out(
    session: SessionTurns,
    request: Any,
    choose: Callable[[MeasuredRequest], Pruned],
    **keywords: Unpack[PruneKeywords],
) -> Pruned:
    """Take the chosen results out of the next request on.  What cannot be taken out is reported
    with the reason.  Raises StoreError if the edits are not stored."""
    conversation, measured = session._measured(request, keywords)
    pruned = choose(measured)
    if pruned.edits:
        with conversation:
            if session._conversations is None:
                conversation.journal = conversation.journal.add(pruned.edits, pruned.originals)
            elif problem := session._conversations.save(
                conversation, conversation.journal.add(pruned.edits, {}), pruned.originals
            ):
                raise StoreError(problem)
    return pruned


def undone_by(session: SessionTurns, means: str) -> None:
    """Let the log say how an edit of this session is undone; ``{}`` in ``means`` is its handle."""
    session._way_back = f"undo: {means}"


def store_of(session: SessionTurns) -> ConversationStore | None:
    """What a session keeps its conversations in; None without a store."""
    return session._conversations


def stored_facts(session: SessionTurns, prefix: str) -> dict[str, Any]:
    """Facts in the store whose names begin with ``prefix``, by name; {} without a store."""
    conversations = session._conversations
    facts = {} if conversations is None else conversations.facts(prefix)
    return {name: json.loads(value) for name, value in facts.items()}


class RequestOriginals:
    """What the recall tool answers from, for one request: what the edits of its conversation take
    out of it, whatever its session fits at the same time."""

    def __init__(
        self, session: SessionTurns, request: Any, **keywords: Unpack[PruneKeywords]
    ) -> None:
        self._session, self._request, self._keywords = session, request, keywords

    def recall(self, handle: str) -> str:
        """See ``Originals``."""
        return self._session.recall(handle)

    @property
    def archive(self) -> tuple[Archived, ...]:
        """What is taken out of the request, newest first.  Raises TrimtabError."""
        _, measured = self._session._measured(self._request, self._keywords.copy())
        return of_transcript(measured.transcript, measured.active, taken_by_repair(measured))
