"""The journal of edits: which apply to a transcript, the originals they removed, and new edits as
entries, each with the blocks that must be present for it to apply.

Append-only.  ``file_format.py`` has its file format; ``stores/`` keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import UnknownHandle
from trimtab.formats.rules import Repair
from trimtab.journal.cleared_results import retargeted
from trimtab.journal.packed_originals import PackedOriginals
from trimtab.planning.edits import groups_of
from trimtab.transcript.model import Edit, Place
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True)
class Journal:
    """``entries``, oldest first; ``repaired``: names of repairs and of emptied results seen before;
    ``pins``: refs of blocks that are kept whole; ``originals`` by handle."""

    entries: tuple[Edit, ...] = ()
    repaired: frozenset[str] = frozenset()
    originals: dict[str, str] | PackedOriginals = field(default_factory=dict)
    pins: frozenset[str] = frozenset()

    def active(self, transcript: Transcript) -> tuple[Edit, ...]:
        """The edits that apply to ``transcript``: the newest of each block whose needs are met.

        An edit that a newer one overruled in part does not apply, and its other blocks are shown
        whole: an edit older than both must not come back there.  A fold applies on when the client
        empties results that it had replaced; it is returned with the refs that they have now.
        """
        if not self.entries:
            return ()
        refs, claimed, edits = transcript.refs, set[str](), list[Edit]()
        for entry in reversed(self.entries):
            edit = entry
            if entry.anchor and not applies(entry, refs):
                edit = retargeted(transcript, entry)
            if edit.op == "insert":
                if applies(edit, refs) and _ended(transcript, refs[edit.targets[0]], edit.text):
                    edits.append(edit)
                continue
            overruled = not claimed.isdisjoint(edit.targets)
            if (overruled and claimed.issuperset(edit.targets)) or not applies(edit, refs):
                continue
            if edit.op in ("drop", "fold") and groups_of(transcript, edit) is None:
                continue
            if mixes_speakers(edit):
                continue
            claimed.update(edit.targets, entry.targets)
            if edit.op != "restore" and not overruled:
                edits.append(edit)
        return tuple(reversed(edits))

    def add(
        self, edits: Iterable[Edit], originals: Mapping[str, str], repaired: Iterable[str] = ()
    ) -> Journal:
        """The journal with these entries appended.

        No entry is removed; the last entry of a block wins.  An edit that already is the last entry
        of all its blocks is not added; one that later entries overruled is appended again.
        """
        last = _last_entries(self.entries)
        new: list[Edit] = []
        for edit in edits:
            insert = edit.op == "insert"
            if any(last.get((insert, ref)) != edit for ref in edit.targets):
                last.update(((insert, ref), edit) for ref in edit.targets)
                new.append(edit)
        seen = self.repaired.union(repaired)
        kept = {key: text for key, text in originals.items() if key not in self.originals}
        if not new and not kept and len(seen) == len(self.repaired):
            return self
        entries = (*self.entries, *new) if new else self.entries
        return replace(self, entries=entries, repaired=seen, originals=self.originals | kept)

    def pinned(self, refs: Iterable[str], *, pin: bool = True) -> Journal:
        """The journal with these refs pinned, or unpinned if not ``pin``."""
        pins = self.pins | set(refs) if pin else self.pins - set(refs)
        return self if pins == self.pins else replace(self, pins=pins)

    def pin_names(self) -> list[str]:
        """What is pinned, named as for ``pin``: the handle of an edit whose blocks all are, newest
        first, then ``text:…``, ``file:…`` and the refs that are left."""
        left, names = set(self.pins), list[str]()
        for edit in reversed(self.entries):
            if edit.handle and edit.targets and left.issuperset(edit.targets):
                left.difference_update(edit.targets)
                names.append(edit.handle)
        return [*names, *sorted(left)]

    def undone(self, handle: str) -> Edit:
        """The restore that undoes the edit of a handle.  Raises UnknownHandle."""
        for edit in reversed(self.entries):
            if edit.handle == handle and edit.op not in ("restore", "insert"):
                return Edit(
                    "restore", edit.targets, "", "undo", "asked for",
                    handle=handle, anchor=edit.anchor,
                )  # fmt: skip
        raise UnknownHandle(f"no edit here has the handle {handle!r}: history() lists them")


def _last_entries(entries: Iterable[Edit]) -> dict[tuple[bool, str], Edit]:
    """(whether it inserts, ref) → the last entry for this block.  Insertions are next to blocks and
    overrule no other edit."""
    return {(edit.op == "insert", ref): edit for edit in entries for ref in edit.targets}


def _ended(transcript: Transcript, place: Place, text: str) -> bool:
    """Whether a repair's inserted text applies after this block.

    The model's message must end here without calls, and more messages must follow: the client may
    have sent half a turn before.  The next one must not begin with the text already, as it does if
    the client continues from what was sent.
    """
    message = transcript.messages[place.message] if place.message >= 0 else None
    if message is None or message.role != "assistant" or message.calls:
        return False
    following = transcript.messages[place.message + 1 : place.message + 2]
    there = any(m.role == "user" and m.blocks and m.blocks[0].text == text for m in following)
    return place.index + 1 == len(message.blocks) and bool(following) and not there


def mixes_speakers(edit: Edit) -> bool:
    """Whether this is a note as written by releases up to 0.1, which put lines of tools and of the
    model under a wrong speaker.  The steps it replaced are folded again."""
    return edit.op == "drop" and "\n" in edit.text


def applies(edit: Edit, refs: Mapping[str, Any]) -> bool:
    """Whether the witness, targets and needs of an edit are all in the transcript."""
    if edit.witness and edit.witness not in refs:
        return False
    return all(map(refs.__contains__, edit.targets)) and all(map(refs.__contains__, edit.needs))


COMPANY = 2
"""Steps of the model before the witness that an edit needs too: one call alone may recur."""


def with_dependencies(
    transcript: Transcript,
    edits: Iterable[Edit],
    depends_on: Callable[[Place], Iterable[tuple[int, int]]],
) -> Iterator[Edit]:
    """The edits with their ``needs``: blocks of the model before the witness, and for a duplicate
    or superseded block the later block that repeats it."""
    company = _company(transcript)
    for edit in edits:
        needs = company
        if edit.op == "replace" and edit.kind in ("duplicate", "superseded"):
            keys = depends_on(transcript.refs[edit.targets[0]])
            needs = (*company, *(transcript.ref_of[key] for key in keys))
        yield replace(edit, needs=tuple(dict.fromkeys(needs)))


def _company(transcript: Transcript) -> tuple[str, ...]:
    """The newest call or text of the model in each of the last closed steps, because the witness
    alone may not be distinctive."""
    refs_beside: list[str] = []
    closed = [group for group in transcript.groups[-COMPANY - 3 :] if group.closed]
    for group in closed[-COMPANY - 1 :]:
        own = [
            place
            for place in group.places
            if transcript.messages[place.message].role == "assistant"
            and place.block.kind in ("call", "text")
        ]
        refs_beside += [transcript.ref(place) for place in own[-1:]]
    return tuple(refs_beside)


def tip_edits(transcript: Transcript, repairs: Sequence[tuple[str, Repair]]) -> Iterator[Edit]:
    """Insertions for what a repair appended after the last message: the next turn needs it too."""
    for rule, repair in repairs:
        if rule != "last_not_user":
            continue
        number = len(transcript.messages) - 2
        blocks = transcript.messages[number].blocks if number >= 0 else ()
        text = transcript.messages[-1].blocks
        if blocks and text:
            ref = transcript.ref_of[number, len(blocks) - 1]
            yield Edit("insert", (ref,), text[0].text, "repair", repair.message)
