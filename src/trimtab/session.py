"""``Session`` fits the requests of a conversation turn by turn; an edit, once made, stays.

A turn reads what other processes stored, plans, stores the new edits and returns the request.
Without a store a session is one conversation and does no I/O; with a store it serves any number of
conversations.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack

from trimtab import config
from trimtab.errors import (
    InvalidSetting,
    StoreError,
    TrimtabError,
    UnknownHandle,
    expect,
    expect_text,
)
from trimtab.fitted import Fitted, recall
from trimtab.journal import excerpts, file_format
from trimtab.journal.folded_steps import FoldedStep, folded_steps, step_range, steps_of
from trimtab.journal.journal import Journal
from trimtab.jsontext import paths
from trimtab.planning.presets import PresetName
from trimtab.prepared_request import SessionFacts
from trimtab.pricing.observed_usage import PREFIX as CALIBRATIONS
from trimtab.pricing.observed_usage import Observed
from trimtab.pricing.reported_usage import as_mapping
from trimtab.sessions.control import is_control, untouched
from trimtab.sessions.conversation import Conversation, conversation_id
from trimtab.sessions.response_chains import ResponseChains, unchained
from trimtab.sessions.stats import PREFIX as STATS
from trimtab.sessions.stats import ConversationStats
from trimtab.sessions.streamed_steps import StreamedSteps
from trimtab.sessions.turn import take_turn, with_summarizer
from trimtab.settings import (
    FitKeywords,
    Settings,
    check_names,
    naming_nearest,
    with_keywords,
)
from trimtab.transcript.model import Edit
from trimtab.wire.body import RequestBody
from trimtab.wire.detect import FormatName
from trimtab.wire.incremental_json import IncrementalParser

if TYPE_CHECKING:
    from trimtab.prepared_request import PreparedRequest
    from trimtab.sessions.compactions import Compactions
    from trimtab.sessions.conversation_store import ConversationStore
    from trimtab.sessions.pruning import Prunable, Pruned
    from trimtab.stores.base import Store


class SearchHit(NamedTuple):
    """A line of an original that matches a search.

    ``start``, ``end``: its characters in the original.
    """

    handle: str
    line: int
    start: int
    end: int
    text: str


class SessionKeywords(FitKeywords, total=False):
    """The keywords of ``Session``."""

    store: str | Store | None
    tenant: str
    conversation: str | None
    journal: Mapping[str, Any] | None
    clock: Callable[[], float]


class PruneKeywords(FitKeywords, total=False):
    """The keywords of ``prune`` and similar methods."""

    conversation: str | None


class Session:
    """Fits requests turn by turn; each edit is made once and then stays.

    Takes the keywords of ``fit``.  Without a store it is one conversation; ``journal`` continues
    an earlier session and is what its ``session.journal`` returned.

    With ``store`` (a URL or a ``Store``) it is any number of conversations of one ``tenant``.  A
    conversation is found by its first messages, in any process, and every original stays
    recallable.  ``conversation`` names one whose first messages the client changes; ``fit``
    and ``prune`` take such a name for each request too.  ``clock`` returns seconds; it measures
    how long a conversation lay idle, and so whether the prompt cache has expired.
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._settings = with_summarizer(
            with_keywords(
                Settings(),
                {"window": window, "reserve": reserve, "model": model, "format": format,
                 "preset": preset, "target": target, "recall": recall, "settings": settings},
            )
        )  # fmt: skip
        self._observed, self._chains = Observed(), ResponseChains()
        self._last_fitted: Fitted | None = None
        self._parser = IncrementalParser()
        self._lock = Lock()
        self._conversations: ConversationStore | None = None
        self._last = Conversation("")
        self._conversation_name = conversation
        self._compactions_made: Compactions | None = None
        self._stats_writer_id = os.urandom(6).hex()
        if store is not None:
            if journal is not None:
                raise InvalidSetting("journal= and store= both say what came before: give one")
            self._conversations = _conversation_store(store, tenant)
        elif journal is not None:
            self._last.journal = file_format.from_dict(journal)

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
        self, request: Any, *, conversation: str | None = None, **keywords: Unpack[FitKeywords]
    ) -> Fitted:
        """Fit one request.  Keywords are those of ``trimtab.fit`` and win over the session's.

        Raises what ``trimtab.fit`` raises; a failed call leaves the journal as it was.  A store
        that does not answer is a warning in the report, not an error.
        """
        if conversation is not None:
            expect_text("conversation", conversation)
        wanted = self._with(keywords)
        fitted = self._fitted(request, wanted, conversation)
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
        fitted = self._fitted(whole, wanted, conversation)
        fitted.chained = given
        return fitted

    def _fitted(self, request: Any, wanted: Settings, name: str | None) -> Fitted:
        conversations = self._conversations
        if conversations is not None or isinstance(request, bytes):
            request = self._parser.parse(request)
        if conversations is not None:
            root = conversation_id(request, wanted.format)
            conversation = conversations.conversation(root, name or self._conversation_name)
            self._read_calibrations(conversations)
        else:
            conversation = self._last
        asks_provider, compacted, compaction_edit = wanted.compaction == "provider", None, None
        if asks_provider:
            given = RequestBody.of(request)
            request, compacted, compaction_edit = self._compactions.applied(conversation, given)
            request = request.given if request is given else request
        in_control_arm = bool(wanted.control) and self._is_in_control_arm(
            conversation, request, wanted
        )
        with conversation.lock:
            if in_control_arm and not conversation.journal.entries:
                wanted = untouched(wanted)
            now, before = self._clock(), conversation.sent_at
            facts = SessionFacts(
                calibrations=self._observed.calibrations,
                idle_seconds=None if before is None else max(0.0, now - before),
                compacted=compaction_edit,
            )
            if conversations is None:
                turn, fitted, conversation.journal = take_turn(
                    request, wanted, conversation.cache, conversation.journal, facts
                )
            else:
                turn, fitted = conversations.turn(conversation, request, wanted, facts)
            if not turn.is_client_request:
                conversation.sent_at = now
                conversation.stats.add(turn.result, fitted)
                if conversations is not None:
                    conversations.write_fact_later(
                        f"{STATS}{conversation.id}/{self._stats_writer_id}",
                        conversation.stats.as_dict(),
                    )
            if wanted.control:
                outgrown = ", outgrown" if conversation.journal.entries else ""
                fitted.arm = f"control{outgrown}" if in_control_arm else "treated"
            if asks_provider:
                fitted.compaction_offer = self._compactions.offer(
                    conversation, given, compacted, turn.result
                )
            self._observed.last = fitted.counted
            self._last, self._last_fitted = conversation, fitted
        return fitted

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

    @property
    def _compactions(self) -> Compactions:
        """Loaded on first use: few sessions have compactions."""
        from trimtab.sessions.compactions import Compactions

        if self._compactions_made is None:
            self._compactions_made = Compactions(self._conversations)
        return self._compactions_made

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
        with self._lock:
            fact = self._observed.answer(answer, fitted.counted if fitted else None)
        if fact is not None and self._conversations is not None:
            self._conversations.write_fact_now(fact[0], json.loads(fact[1]))

    def compacted(self, fitted: Fitted, answer: Any) -> bool:
        """Use the provider's answer to ``fitted.compaction_offer`` from the next ``fit`` on, in
        place of the edits that this ``fit`` made; False if it cannot be used."""
        expect(isinstance(fitted, Fitted), "fitted", fitted, "what fit returned")
        if fitted.compaction_offer is None:
            return False
        conversation, offer = fitted.compaction_offer
        if not self._compactions.take(conversation, offer, as_mapping(answer)):
            return False
        for edit in fitted.report.edits:
            if edit.new and edit.op != "compact":
                self.undo(edit.handle)
                self.unpin(edit.handle)
        return True

    def follow(self, answer: Any, fitted: Fitted) -> None:
        """Record the history behind an answer's id.  A later request that names the id can then be
        sent in full once the server's history no longer fits.  ``observe`` calls this.

        ``answer``: a whole one, or the events of its stream, one by one."""
        whole = as_mapping(answer)
        if isinstance(whole, Mapping) and "event_type" in whole:
            fitted.streamed = fitted.streamed or StreamedSteps()
            whole = fitted.streamed.take(whole)
        was_whole = fitted.chained is not None
        self._chains.take(fitted.given(), whole, fitted.tokens_after, was_whole)

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
            with conversation.lock:
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
        from trimtab.pipeline import prepare

        if (name := keywords.pop("conversation", None)) is not None:
            expect_text("conversation", name)
        wanted, conversations, conversation = self._with(keywords), self._conversations, self._last
        facts = SessionFacts()
        if conversations is not None:
            request = self._parser.parse(request)
            root = conversation_id(request, wanted.format)
            conversation = conversations.conversation(root, name or self._conversation_name)
            facts = SessionFacts(handle_key=conversations.refresh(conversation))
        with conversation.lock:
            return conversation, prepare(
                request, wanted, conversation.cache, conversation.journal, facts
            )

    # --- originals ---

    def recall(
        self,
        handle: str,
        start: int | None = None,
        end: int | None = None,
        *,
        steps: int | str | tuple[int, int] | None = None,
    ) -> str:
        """The exact original behind a handle.

        ``start``, ``end``: only these characters.  ``steps``: only these steps of a fold, by number
        (``3``, ``"3-5"``; ``contents`` lists them).

        Raises UnknownHandle, StoreError; ValueError if there are no such steps.
        """
        expect_text("handle", handle)
        if self._conversations is None:
            text = recall(self._last.journal.originals, handle)
        else:
            text = self._conversations.original(handle).text
        if (asked := step_range(steps)) is not None:
            text = steps_of(text, *asked)
        return excerpts.part(text, start, end)

    def contents(self, handle: str) -> list[FoldedStep]:
        """The steps of the fold behind a handle; [] for any other original.

        Raises UnknownHandle, StoreError.
        """
        return folded_steps(self.recall(handle))

    def search(self, text: str, handle: str | None = None, *, most: int = 20) -> list[SearchHit]:
        """Lines of originals that contain a text, or all of its words; case is ignored.

        Searches one original, or all of the conversation fitted last, newest first.  If no line
        matches, returns the passages that match the words best.

        Raises UnknownHandle, StoreError.
        """
        expect(type(most) is int and most > 0, "most", most, "a whole number above 0")
        expect_text("text", text)
        results = list[SearchHit]()
        names = self._handles() if handle is None else [handle]
        for name in reversed(names):
            hits = excerpts.hits(self.recall(name), text, most - len(results))
            results += [SearchHit(name, *hit) for hit in hits]
            if len(results) >= most:
                break
        if not results:
            best = excerpts.best_passages(((name, self.recall(name)) for name in names), text, most)
            results = [SearchHit(name, *hit) for name, hit in best]
        return results

    def _handles(self) -> Sequence[str]:
        if self._conversations is None:
            return list(self._last.journal.originals)
        return self._conversations.handles(self._last.id)

    # --- pins, undo and reports ---

    def pin(self, ref: str) -> None:
        """Keep a block whole from now on, as long as it fits.  ``ref`` is a block's ref in a
        report, or the handle of an edit: then its blocks stay as the edit left them.  For a block
        that must be kept in any case, use the setting ``pins``.  Raises UnknownHandle."""
        conversation, edit = self._edit(ref)
        self._add(conversation, lambda journal: journal.pinned(edit.targets if edit else [ref]))

    def unpin(self, ref: str) -> None:
        """Remove a pin; ``ref`` as for ``pin``.  Raises UnknownHandle."""
        conversation, edit = self._edit(ref)
        refs = edit.targets if edit else [ref]
        self._add(conversation, lambda journal: journal.pinned(refs, pin=False))

    def undo(self, handle: str) -> None:
        """Show the original of an edit again from the next request on, and pin it.

        The prompt cache breaks at that block.  If the original does not fit beside what cannot be
        reduced, it is reduced again, and the report warns of it.  Raises UnknownHandle.
        """
        if self._last.compactions and self._compactions.undo(self._last, handle):
            return
        conversation, _ = self._edit(handle)
        restore = conversation.journal.undone(handle)
        self._add(conversation, lambda journal: journal.add([restore], {}).pinned(restore.targets))

    def shown(self, handle: str) -> str:
        """The text sent in place of an original; "" if the original is removed.

        For a fold it is only the result that replaces all others, without the words of model and
        user that are kept beside it.

        Raises UnknownHandle.
        """
        _, edit = self._edit(handle)
        return "" if edit is None else edit.text

    def history(self) -> list[dict[str, Any]]:
        """Every entry of the journal of the conversation fitted last, oldest first, followed by its
        provider's compactions."""
        compacted = self._compactions.history(self._last) if self._last.compactions else []
        return [
            {"op": edit.op, "kind": edit.kind, "why": edit.why, "loss": edit.loss,
             "handle": edit.handle, "refs": list(edit.targets)}
            for edit in self._last.journal.entries
        ] + compacted  # fmt: skip

    def stats(self) -> dict[str, Any]:
        """Totals over all turns of this conversation; with a store, of all conversations of the
        tenant, in every process."""
        total = ConversationStats()
        if self._conversations is None:
            return self._last.stats.as_dict()
        self._conversations.writer.flush()
        facts = self._conversations.facts(STATS)
        for row in facts.values():
            total.join(ConversationStats.from_dict(json.loads(row)))
        return {**total.as_dict(), **self._conversations.as_dict()}

    @property
    def journal(self) -> dict[str, Any]:
        """All edits and originals of the conversation fitted last, as JSON-able data.
        ``Session(journal=…)`` continues from it.  Raises StoreError."""
        journal = self._last.journal
        if self._conversations is not None:
            originals = {name: self.recall(name) for name in self._handles()}
            journal = replace(journal, originals=originals)
        return file_format.to_dict(journal)

    def _edit(self, name: str) -> tuple[Conversation, Edit | None]:
        """The conversation and the edit of a handle; None for a ref of a block, which has a dot."""
        expect_text("name", name)
        conversation = self._last
        edit = _last_edit(conversation.journal, name)
        if edit is None and "." not in name:
            if self._conversations is None:
                raise UnknownHandle(f"no edit has the handle {name!r}: history() lists them")
            root = self._conversations.original(name).conversation
            conversation = self._conversations.by_id(root)
            self._conversations.refresh(conversation)
            edit = _last_edit(conversation.journal, name)
        return conversation, edit

    def _add(self, conversation: Conversation, change: Callable[[Journal], Journal]) -> None:
        """Change the journal.  Raises StoreError if the store does not keep the change."""
        with conversation.lock:
            after = change(conversation.journal)
            if self._conversations is None:
                conversation.journal = after
            elif problem := self._conversations.save(conversation, after, {}):
                raise StoreError(problem)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TrimtabError(
            "a Session has locks and a store and cannot be pickled or copied: in the other process "
            "make Session(journal=session.journal), or Session(store=…) with the same store"
        )

    def close(self) -> None:
        """Write everything still waiting, as long as the store answers, and close the store."""
        if self._conversations is not None:
            self._conversations.close()


# --- for our own entry points, not called by users ---


def prunable(session: Session, request: Any, **keywords: Unpack[PruneKeywords]) -> list[Prunable]:
    """The results that ``Session.prune`` may remove, oldest first."""
    from trimtab.sessions import pruning

    return pruning.prunable(session._prepared(request, keywords)[1])


def stored_facts(session: Session, prefix: str) -> dict[str, Any]:
    """Facts in the store whose names begin with ``prefix``, by name; {} without a store."""
    kept = session._conversations
    facts = {} if kept is None else kept.facts(prefix)
    return {name: json.loads(value) for name, value in facts.items()}


def stored_fact(session: Session, name: str) -> Any:
    """One fact of the store; None if it is missing or no store answers."""
    return None if session._conversations is None else session._conversations.fact(name)


def keep_fact(session: Session, name: str, value: Any) -> None:
    """Write a JSON-able fact to the store, if there is one.  A store on another machine has it
    before this returns; a local one soon after."""
    if session._conversations is not None:
        session._conversations.write_fact_now(name, value)


def _last_edit(journal: Journal, handle: str) -> Edit | None:
    """The last edit in the journal with this handle."""
    return next((edit for edit in reversed(journal.entries) if edit.handle == handle), None)


def _conversation_store(store: str | Store, tenant: str) -> ConversationStore:
    """The conversations in a store; imported only if a store is used."""
    from trimtab import stores
    from trimtab.sessions.conversation_store import ConversationStore

    return ConversationStore(stores.open(store, tenant))
