"""Conversations over their turns: edits made once stay where they are.

Knows the order of a turn: take up what others wrote, decide, keep, send.  In memory it is one
conversation and does no I/O; with a store it is any number of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab import config
from trimtab.errors import InvalidSetting, StoreError, UnknownHandle
from trimtab.fitted import Fitted, recall
from trimtab.model import Edit, Limits
from trimtab.money.observed import PREFIX as CALIBRATIONS
from trimtab.money.observed import Observed
from trimtab.reading.grown import Grown
from trimtab.settings import Settings, joined_settings
from trimtab.turns import journal_format, passages
from trimtab.turns.conversation import Conversation, root_of
from trimtab.turns.journal import Journal
from trimtab.turns.totals import PREFIX as STATS
from trimtab.turns.totals import Totals
from trimtab.turns.turn import asking, fitted, room_left

if TYPE_CHECKING:
    from trimtab.reading.source import Source
    from trimtab.stores.base import Store
    from trimtab.turns.pruning import Prunable, Pruned
    from trimtab.turns.shelf import Shelf
    from trimtab.turns.work import Work


_TOKENS_A_BYTE = 2
"""No tokenizer has more than one, and no factor is above 2."""


class Found(NamedTuple):
    """A line of an original that holds what was searched for, and where it begins and ends."""

    handle: str
    line: int
    start: int
    end: int
    text: str


class Session:
    """Fits requests turn by turn; each edit is made once and then stays.

    Takes the keywords of ``fit``.  In memory it is one conversation; ``journal`` is what
    ``session.journal`` of an earlier session returned.  With ``store`` (a URL, or a ``Store``) it
    is any number of conversations of one ``tenant``: each is found by what it begins with, in any
    process, and everything stays recallable.  ``conversation`` is a name by which one is found
    again whose beginning the client has changed; ``fit`` takes one for each request too.
    ``clock`` (seconds) tells how long a conversation lay idle, and so whether its cache is cold.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        reserve: int | None = None,
        limits: Limits | None = None,
        journal: Mapping[str, Any] | None = None,
        store: str | Store | None = None,
        tenant: str = "default",
        conversation: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        **keywords: Any,
    ) -> None:
        self._clock = clock
        self._settings = asking(joined_settings(window, reserve, limits, **keywords))
        self._observed = Observed()
        self._grown = Grown()
        self._lock = Lock()
        self._shelf: Shelf | None = None
        self._last = Conversation("")
        self._hint = conversation
        self._name = os.urandom(6).hex()
        if store is not None:
            if journal is not None:
                raise InvalidSetting("journal= and store= both say what came before: give one")
            self._shelf = _shelf(store, tenant)
        elif journal is not None:
            self._last.journal = journal_format.from_dict(journal)

    @classmethod
    def from_config(cls, folder: str | os.PathLike[str] = ".", **keywords: Any) -> Session:
        """A session with what files and environment say (see ``load_settings``); keywords win.

        Raises InvalidSetting.
        """
        return cls(**{**config.load_settings(folder), **keywords})

    # --- turns ---

    def fit(self, request: Any, *, conversation: str | None = None, **keywords: Any) -> Fitted:
        """Fit one request; keywords override the session's for this call.

        Raises what ``trimtab.fit`` raises; a failed call leaves the journal as it was.  A store
        that does not answer is a warning in the report.
        """
        wanted = replace_settings(self._settings, keywords)
        shelf = self._shelf
        if shelf is not None or isinstance(request, bytes):
            request = self._grown.source(request)
        if shelf is not None:
            root = root_of(request, wanted.format)
            one = shelf.conversation(root, conversation or self._hint)
            self._learned(shelf)
        else:
            one = self._last
        with one.lock:
            wanted = replace(wanted, calibrations=self._observed.calibrations)
            now, before = self._clock(), one.sent_at
            if wanted.idle_seconds is None and before is not None:
                wanted = replace(wanted, idle_seconds=max(0.0, now - before))
            if shelf is None:
                wanted = one.pinned(wanted)
                turn, done, one.journal = fitted(request, wanted, one.known, one.journal)
            else:
                turn, done = shelf.turn(one, request, wanted)
            if not turn.internal:
                one.sent_at, one.room = now, room_left(turn.outcome)
                one.totals.add(turn.outcome, done)
                if shelf is not None:
                    shelf.state(f"{STATS}{one.root}/{self._name}", one.totals.as_dict())
            self._observed.last = done.counted
            self._last = one
        return done

    def goes_on(self, source: Source, news: int, format: str | None = None) -> bool:
        """Whether ``fit`` is sure to be quick: of a conversation fitted before only the last
        ``news`` bytes are new, and they are far from filling the room that was left."""
        shelf, one = self._shelf, self._last
        if shelf is not None:
            found = shelf.at_hand(root_of(source, format))
            if found is None:
                return False
            one = found
        if _TOKENS_A_BYTE * news >= one.room or not one.lock.acquire(blocking=False):
            return False
        one.lock.release()
        return True

    async def afit(self, request: Any, **keywords: Any) -> Fitted:
        """``fit`` in a thread, so that an event loop goes on."""
        import asyncio

        return await asyncio.to_thread(self.fit, request, **keywords)

    def observe(self, answer: Any, fitted: Fitted | None = None) -> None:
        """Learn from the usage in an answer how the provider counts this model's tokens.

        ``answer``: a response of any of the five formats as JSON, bytes or the client's object, an
        event of a stream that has a usage, or a usage by itself; what has none is passed over.
        ``fitted``: what it answers; None: the request this session fitted last.
        """
        with self._lock:
            fact = self._observed.answer(answer, fitted.counted if fitted else None)
        if fact is not None and self._shelf is not None:
            self._shelf.teach(fact[0], json.loads(fact[1]))

    def _learned(self, shelf: Shelf) -> None:
        """Take up what other sessions learned."""
        lessons = shelf.lessons(CALIBRATIONS)
        with self._lock:
            self._observed.take(lessons.items())

    # --- facts ---

    def facts(self, prefix: str) -> dict[str, Any]:
        """Small facts kept beside the conversations, by name; {} without a store."""
        if self._shelf is None:
            return {}
        return {name: json.loads(value) for name, value in self._shelf.facts(prefix).items()}

    def fact(self, name: str) -> Any:
        """One of these facts; None where there is none, no store, or no answer of it."""
        return None if self._shelf is None else self._shelf.fact(name)

    def keep(self, name: str, value: Any) -> None:
        """Keep a JSON-able fact in the store, if there is one: where it is on another machine
        before this returns, else some time soon."""
        if self._shelf is not None:
            self._shelf.teach(name, value)

    # --- what the model gives up ---

    def prunable(self, request: Any, **keywords: Any) -> list[Prunable]:
        """The results that ``prune`` may take out, oldest first."""
        from trimtab.turns.pruning import prunable

        _, work = self._work(request, keywords)
        return prunable(work)

    def prune(self, request: Any, names: Sequence[str], **keywords: Any) -> Pruned:
        """Take results out from the next ``fit`` on, as if they had been cut: recallable.

        What cannot be taken out is told with the reason.  Raises StoreError where it is not kept.
        """
        from trimtab.turns.pruning import prune

        one, work = self._work(request, keywords)
        done = prune(work, names, recall=work.settings.recall, key=work.settings.handle_key)
        if done.edits:
            with one.lock:
                if self._shelf is None:
                    one.journal = one.journal.add(done.edits, done.originals)
                elif problem := self._shelf.save(
                    one, one.journal.add(done.edits, {}), done.originals
                ):
                    raise StoreError(problem)
        return done

    def _work(self, request: Any, keywords: Mapping[str, Any]) -> tuple[Conversation, Work]:
        """A request read as its next ``fit`` would read it."""
        from trimtab.turns.work import prepare

        wanted, shelf, one = replace_settings(self._settings, keywords), self._shelf, self._last
        if shelf is not None:
            request = self._grown.source(request)
            one = shelf.known(root_of(request, wanted.format))
            wanted = replace(wanted, handle_key=shelf.begin(one))
        with one.lock:
            return one, prepare(request, one.pinned(wanted), one.known, one.journal)

    # --- originals ---

    def recall(self, handle: str, start: int | None = None, end: int | None = None) -> str:
        """The original behind a handle, exactly; of it characters ``start`` to ``end``.

        Raises UnknownHandle, StoreError.
        """
        if self._shelf is None:
            text = recall(self._last.journal.originals, handle)
        else:
            text = self._shelf.original(handle).text
        return passages.part(text, start, end)

    def search(self, text: str, handle: str | None = None, *, most: int = 20) -> list[Found]:
        """The lines that hold a text (or all of its words), whatever its case: of one original, or
        of all of the conversation fitted last, the newest first.

        Raises UnknownHandle, StoreError.
        """
        found = list[Found]()
        for name in [handle] if handle else reversed(self._handles()):
            hits = passages.hits(self.recall(name), text, most - len(found))
            found += [Found(name, *hit) for hit in hits]
            if len(found) >= most:
                break
        return found

    def _handles(self) -> Sequence[str]:
        if self._shelf is None:
            return list(self._last.journal.originals)
        return self._shelf.handles(self._last.root)

    # --- the user's say ---

    def pin(self, ref: str) -> None:
        """Keep a block whole from now on: ``ref`` as a report names it, or the handle of an edit,
        whose blocks then are not reduced any further.  Raises UnknownHandle."""
        one, edit = self._edit(ref)
        self._add(one, lambda journal: journal.pinned(edit.targets if edit else [ref]))

    def unpin(self, ref: str) -> None:
        """Take a pin back; names are those of ``pin``.  Raises UnknownHandle."""
        one, edit = self._edit(ref)
        refs = edit.targets if edit else [ref]
        self._add(one, lambda journal: journal.pinned(refs, pin=False))

    def undo(self, handle: str) -> None:
        """Show the original of an edit again from the next request on, and pin it.

        The prompt cache is lost from there on.  Where it does not fit, ``fit`` raises CannotFit
        until ``unpin``.  Raises UnknownHandle.
        """
        one, _ = self._edit(handle)
        restore = one.journal.undone(handle)
        self._add(one, lambda journal: journal.add([restore], {}).pinned(restore.targets))

    def shown(self, handle: str) -> str:
        """What is sent in place of an original; "" where it is taken out.  Raises UnknownHandle."""
        _, edit = self._edit(handle)
        return "" if edit is None else edit.text

    def history(self) -> list[dict[str, Any]]:
        """Every entry of the journal of the conversation fitted last, oldest first."""
        return [
            {"op": edit.op, "kind": edit.kind, "why": edit.why, "loss": edit.loss,
             "handle": edit.handle, "refs": list(edit.targets)}
            for edit in self._last.journal.entries
        ]  # fmt: skip

    def stats(self) -> dict[str, Any]:
        """What all turns came to; with a store those of every process, kept or not yet kept."""
        total = Totals()
        if self._shelf is None:
            return self._last.totals.as_dict()
        self._shelf.writer.flush()
        facts = self._shelf.facts(STATS)
        for row in facts.values():
            total.join(Totals.from_dict(json.loads(row)))
        return {**total.as_dict(), **self._shelf.as_dict()}

    @property
    def journal(self) -> dict[str, Any]:
        """All edits and originals of the conversation fitted last, JSON-able;
        ``Session(journal=…)`` continues it.  Raises StoreError."""
        journal = self._last.journal
        if self._shelf is not None:
            originals = {name: self.recall(name) for name in self._handles()}
            journal = replace(journal, originals=originals)
        return journal_format.to_dict(journal)

    def _edit(self, name: str) -> tuple[Conversation, Edit | None]:
        """The conversation and the edit of a handle; None for the ref of a block."""
        one = self._last
        found = next((e for e in reversed(one.journal.entries) if e.handle == name), None)
        if found is None and "." not in name:
            if self._shelf is None:
                raise UnknownHandle(f"no edit has the handle {name!r}: history() lists them")
            one = self._shelf.known(self._shelf.original(name).conversation)
            self._shelf.begin(one)
            found = next((e for e in reversed(one.journal.entries) if e.handle == name), None)
        return one, found

    def _add(self, one: Conversation, change: Callable[[Journal], Journal]) -> None:
        """Go on with a changed journal.  Raises StoreError where only this process knows of it."""
        with one.lock:
            after = change(one.journal)
            if self._shelf is None:
                one.journal = after
            elif problem := self._shelf.save(one, after, {}):
                raise StoreError(problem)

    def close(self) -> None:
        """Keep what is not kept yet, as long as the store answers, and let go of it."""
        if self._shelf is not None:
            self._shelf.close()


def _shelf(store: str | Store, tenant: str) -> Shelf:
    """Loaded only where a store is asked for."""
    from trimtab import stores
    from trimtab.turns.shelf import Shelf

    return Shelf(stores.open(store, tenant))


def replace_settings(base: Settings, keywords: Mapping[str, Any]) -> Settings:
    """The session's settings with some of them replaced.  Raises InvalidSetting."""
    if not keywords:
        return base
    own = dict(keywords)
    limits = own.pop("limits", None) or base.limits
    rest = {name: getattr(base, name) for name in base.__dataclass_fields__ if name != "limits"}
    return joined_settings(
        own.pop("window", None), own.pop("reserve", None), limits, **{**rest, **own}
    )
