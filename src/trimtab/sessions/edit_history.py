"""The edits of a session's conversations: their originals, pins, undo and reports.

Plans nothing and fits nothing: ``Session`` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict, Unpack

from trimtab.errors import (
    InvalidSetting,
    StoreError,
    UnknownHandle,
    expect,
    expect_text,
    handle_in,
)
from trimtab.forking import loading
from trimtab.journal import excerpts, file_format
from trimtab.journal.archive import (
    Archived,
    ArchivedStep,
    Originals,
    of_edits,
    steps_in,
    steps_of_archive,
)
from trimtab.journal.folded_steps import step_range, steps_of
from trimtab.journal.history import history_of
from trimtab.journal.journal import Journal
from trimtab.journal.passages import find
from trimtab.report import ReportEdit
from trimtab.request.fitted import Fitted, facts_of, recall, whole_handle
from trimtab.request.fitted_facts import withdrawal_of
from trimtab.sessions.conversation import Conversation
from trimtab.sessions.stats import PREFIX as STATS
from trimtab.sessions.stats import ConversationStats
from trimtab.settings import check_names
from trimtab.suggestions import SuggestsNames
from trimtab.transcript.model import Edit
from trimtab.transcript.protected import FILE_PIN, TEXT_PIN

if TYPE_CHECKING:
    from trimtab.sessions.conversation_store import ConversationStore
    from trimtab.stores.base import Store


class SearchHit(NamedTuple):
    """A line of an original that matches a search.

    ``start``, ``end``: its characters in the original.  ``step``: of a fold, the step that ``line``
    is counted in, for ``look_up(handle=…, steps=…, lines=…)``; else 0.
    """

    handle: str
    line: int
    start: int
    end: int
    text: str
    step: int = 0


class LookUp(TypedDict, total=False):
    """The arguments of the recall tool."""

    search: str | None
    file: str | None
    handle: str | None
    steps: str | None
    lines: str | None
    start: int | None
    end: int | None


class EditHistory(SuggestsNames):
    """The base class of ``Session`` for what happens between turns.

    Has the conversation fitted last and, with a store, all conversations of a tenant.
    """

    _GUESSES: ClassVar[Mapping[str, str]] = {
        "edits": "report.edits", "cuts": "report.edits", "tokens_saved": "report.tokens_saved",
        "messages": "fit(request).messages", "add": "fit", "append": "fit", "compact": "fit",
        "restore": "undo", "prune": "sweep", "originals": "archive", "save": "journal",
        "window": "settings.window", "model": "settings.model",
    }  # fmt: skip

    def __init__(
        self, store: str | Store | None, tenant: str, journal: Mapping[str, Any] | None
    ) -> None:
        self._conversations: ConversationStore | None = None
        self._last = Conversation("")
        self._fitted_last: Fitted | None = None
        """The last request that was a turn of a conversation."""
        if store is not None:
            if journal is not None:
                raise InvalidSetting("journal= and store= both say what came before: give one")
            self._conversations = _conversation_store(store, tenant)
        elif journal is not None:
            self._last.journal = file_format.from_dict(journal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Write everything still waiting, as long as the store answers, and close the store.

        A closed session can be used; then each call waits for its writes (2 s at most, see
        ``FLUSH_SECONDS``) and leaves no thread behind.
        """
        if self._conversations is not None:
            self._conversations.close()

    # --- originals ---

    def recall(
        self,
        handle: str | ReportEdit | Archived,
        start: int | None = None,
        end: int | None = None,
        *,
        steps: int | str | tuple[int, int] | None = None,
    ) -> str:
        """The exact original behind a handle, its beginning, or the edit itself.

        ``start``, ``end``: only these characters.  ``steps``: only these steps of folded ones,
        numbered as in their note (``3``, ``"3-5"``).

        Raises UnknownHandle, StoreError; ValueError if there are no such steps.
        """
        text = self._original(handle_in(handle))
        if (wanted_steps := step_range(steps)) is not None:
            text = steps_of(text, *wanted_steps)
        return excerpts.part(text, start, end)

    def _original(self, handle: str) -> str:
        if self._conversations is None:
            return recall(self._last.journal.originals, whole_handle(handle, self._handles()))
        try:
            return self._conversations.original(handle).text
        except UnknownHandle:
            whole = whole_handle(handle, self._handles())
            if whole == handle:
                raise
            return self._conversations.original(whole).text

    def search(self, text: str, handle: str | None = None, *, most: int = 20) -> list[SearchHit]:
        """Lines of originals that contain a text, or all of its words; case is ignored.

        Searches one original, or all of the conversation fitted last, newest first.  If no line
        matches, returns the passages that match the words best.

        Raises UnknownHandle, StoreError.
        """
        if handle is None:
            return lines_with(self, self.archive, text, most)
        return _lines_in(steps_in(Archived(handle), self.recall(handle)), text, most)

    @property
    def archive(self) -> tuple[Archived, ...]:
        """What was taken out of the conversation fitted last, newest first.

        With a store it is what that request lacks: others may begin with the same message.
        """
        return archive_of(self, self._fitted_last)

    def look_up(self, **asked: Unpack[LookUp]) -> str:
        """What the recall tool answers: a list of what was left out, lines with the words of
        ``search``, the last reading of a ``file``, or of a ``handle`` the whole, ``steps``,
        ``start`` to ``end`` or ``lines``.  Never raises for a look-up of nothing that is there."""
        check_names(asked, LookUp.__annotations__.keys(), "look_up")
        return excerpts.answer(self, asked).text

    def _handles(self) -> Sequence[str]:
        if self._conversations is None:
            return list(self._last.journal.originals)
        return self._conversations.handles(self._last.id)

    # --- pins, undo and reports ---

    def pin(
        self, ref: str | ReportEdit = "", *, text: str = "", file: str = "", conversation: str = ""
    ) -> None:
        """Keep something whole from now on, as long as it fits.  ``text``: the newest block that
        has these words; ``file``: the newest read of this path and the calls about it since then;
        both come back whole where they were cut.  ``ref``: a block's ref in a report, or an edit or
        its handle, whose blocks stay as the edit left them.  For what must be kept in any case use
        the setting ``pins``.  ``conversation``: its id in the store; "": the one fitted last.
        Raises UnknownHandle."""
        named, pins = self._named(handle_in(ref), text, file, conversation)
        self._add(named, lambda journal: journal.pinned(pins))

    def unpin(
        self, ref: str | ReportEdit = "", *, text: str = "", file: str = "", conversation: str = ""
    ) -> None:
        """Remove a pin, named as for ``pin``.  Raises UnknownHandle."""
        named, pins = self._named(handle_in(ref), text, file, conversation)
        self._add(named, lambda journal: journal.pinned(pins, pin=False))

    def pins(self, conversation: str = "") -> list[str]:
        """What is pinned in a conversation, named as for ``pin``: handles, ``text:…``, ``file:…``
        and refs."""
        return self._conversation(conversation).journal.pin_names()

    def _named(self, ref: str, text: str, file: str, id: str) -> tuple[Conversation, Sequence[str]]:
        """(the conversation, the pins as a journal has them)."""
        given = [name for name in (ref, text, file) if name != ""]
        expect(len(given) == 1, "pin", given, "one of a ref, text= and file=")
        expect_text("pin", given[0])
        expect_text("conversation", id)
        if ref != "":
            conversation, edit = self._edit(ref)
            return conversation, edit.targets if edit else [ref]
        return self._conversation(id), [f"{TEXT_PIN}{text}" if text else f"{FILE_PIN}{file}"]

    def _conversation(self, id: str) -> Conversation:
        """The conversation with this id in the store, as it is now; "": the one fitted last."""
        if not id or self._conversations is None:
            return self._last
        conversation = self._conversations.by_id(id)
        self._conversations.refresh(conversation)
        return conversation

    def undo(self, handle: str | ReportEdit) -> str:
        """Show the original of an edit again from the next request on, and pin it.  Returns what
        follows from it, in words.

        The prompt cache breaks at that block.  What comes back needs room: other parts, newer ones
        too, may be cut for it.  If the original does not fit beside what cannot be reduced, it is
        reduced again, and the report warns of it.  A newer edit that replaced this one is taken
        back with it, and what else that one changed may be cut again.  Raises UnknownHandle.
        """
        handle = handle_in(handle)
        conversation, _ = self._edit(handle)
        restore = conversation.journal.undone(handle)
        rows = {row.handle: row for row in history_of(conversation.journal.entries, {})}
        self._add(conversation, lambda journal: journal.add([restore], {}).pinned(restore.targets))
        return _undone_words(handle, rows[handle].replaced_by)

    def shown(self, handle: str | ReportEdit) -> str:
        """The text sent in place of an original; "" if the original is removed.

        For a fold it is only the result that replaces all others, without the words of model and
        user that are kept beside it.

        Raises UnknownHandle.
        """
        _, edit = self._edit(handle_in(handle))
        return "" if edit is None else edit.text

    def history(self, conversation: str = "") -> list[ReportEdit]:
        """Every edit of a conversation, oldest first, undone ones too.  ``conversation``: its id in
        the store; "": the one fitted last."""
        one, times = self._conversation(conversation), dict[Edit, int]()
        if self._conversations is not None:
            times = self._conversations.times(one)
        return history_of(one.journal.entries, times)

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
            id = self._conversations.original(name).conversation
            conversation = self._conversations.by_id(id)
            self._conversations.refresh(conversation)
            edit = _last_edit(conversation.journal, name)
        return conversation, edit

    def _add(self, conversation: Conversation, change: Callable[[Journal], Journal]) -> None:
        """Change the journal.  Raises StoreError if the store does not keep the change."""
        with conversation:
            after = change(conversation.journal)
            if self._conversations is None:
                conversation.journal = after
            elif problem := self._conversations.save(conversation, after, {}):
                raise StoreError(problem)


def _undone_words(handle: str, replaced_by: str) -> str:
    """What an undo does, for a reader."""
    words = f"{handle} is undone: the next request has its original, and may cut other parts for it"
    if replaced_by:
        words += (
            f". {replaced_by} had replaced it and is taken back too: what else that changed may be "
            "cut again"
        )
    return words


def take_back(session: EditHistory, fitted: Fitted) -> None:
    """Undo the new edits of ``fitted``, and forget the rules that it was repaired for: they were a
    guess, and the provider refused it as well."""
    for edit in fitted.report.edits:
        if edit.new:
            session.undo(edit.handle)
            session.unpin(edit.handle)
    if keys := withdrawal_of(facts_of(fitted)):
        stored, last = session._conversations, session._last
        conversation = last if stored is None else stored.by_id(fitted.conversation)
        session._add(conversation, lambda journal: journal.add((), {}, keys))


def undone_edits(history: EditHistory, conversation: str = "") -> list[Edit]:
    """The edits of single blocks that were undone, and not made again since."""
    undone = dict[str, Edit | None]()
    made = dict[str, Edit]()
    for edit in history._conversation(conversation).journal.entries:
        if edit.op == "restore":
            undone[edit.handle] = made.get(edit.handle)
        elif edit.op == "replace":
            made[edit.handle], undone[edit.handle] = edit, None
    return [edit for edit in undone.values() if edit is not None]


def archive_of(history: EditHistory, fitted: Fitted | None) -> tuple[Archived, ...]:
    """What was taken out of a conversation whose last request is ``fitted``, newest first."""
    lacks = () if fitted is None else fitted.archive
    if history._conversations is not None:
        return lacks
    # A client that keeps what was sent sends our text the next time, and no edit applies to it.
    known = {one.handle for one in lacks}
    made = of_edits(history._last.journal.entries)
    return (*lacks, *(one for one in made if one.handle not in known))


def lines_with(
    originals: Originals, archive: Iterable[Archived], text: str, most: int
) -> list[SearchHit]:
    """The lines of ``Session.search`` in these originals."""
    return _lines_in(steps_of_archive(originals, archive, excerpts.MAX_READ_CHARS), text, most)


def _lines_in(steps: Iterable[ArchivedStep], text: str, most: int) -> list[SearchHit]:
    expect(type(most) is int and most > 0, "most", most, "a whole number above 0")
    return [
        SearchHit(step.archived.handle, *hit.moved(step.offset), step=step.number)
        for step, hit in find(steps, text, most)
    ]


def _last_edit(journal: Journal, handle: str) -> Edit | None:
    return next((edit for edit in reversed(journal.entries) if edit.handle == handle), None)


def _conversation_store(store: str | Store, tenant: str) -> ConversationStore:
    """The conversations in a store; imported only if a store is used."""
    with loading:
        from trimtab import stores
        from trimtab.sessions.conversation_store import ConversationStore

        return ConversationStore(stores.open(store, tenant))
