"""Which edits are active for this transcript, and what they took away.

Knows refs, witnesses and the order of entries; append-only.  Does not know sizes, JSON text of
requests, how entries are written down (``journal_format``), or where (``stores``).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trimtab.errors import UnknownHandle
from trimtab.model import Edit, Place, Transcript
from trimtab.planning.edits import groups_of


@dataclass(frozen=True)
class Journal:
    """Entries oldest first; ``mended`` names repairs seen before; ``pins`` are refs that stay
    whole; ``originals`` by handle."""

    entries: tuple[Edit, ...] = ()
    mended: frozenset[str] = frozenset()
    originals: Mapping[str, str] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()

    def active(self, transcript: Transcript) -> tuple[Edit, ...]:
        """The edits that count here: all they need is present, the newest of each target."""
        if not self.entries:
            return ()
        refs, claimed, found = transcript.refs, set[str](), list[Edit]()
        for edit in reversed(self.entries):
            taken = edit.op != "insert" and not claimed.isdisjoint(edit.targets)
            if taken or not stands(edit, refs):
                continue
            if edit.op == "insert":
                if _ended(transcript, refs[edit.targets[0]], edit.text):
                    found.append(edit)
                continue
            if edit.op == "drop" and groups_of(transcript, edit) is None:
                continue
            claimed.update(edit.targets)
            if edit.op != "restore":
                found.append(edit)
        return tuple(reversed(found))

    def add(
        self, edits: Iterable[Edit], originals: Mapping[str, str], mended: Iterable[str] = ()
    ) -> Journal:
        """A journal with these entries behind the others; the same edit twice is one entry.

        After a restore it is another: what was undone may be done again.
        """
        known, restores = set(self._known), self.restores.copy()
        new: list[Edit] = []
        for edit in edits:
            if (key := (edit, restores[edit.targets[0]])) not in known:
                known.add(key)
                new.append(edit)
                if edit.op == "restore":
                    restores.update(edit.targets)
        seen = self.mended.union(mended)
        kept = {key: text for key, text in originals.items() if key not in self.originals}
        if not new and not kept and len(seen) == len(self.mended):
            return self
        entries = (*self.entries, *new) if new else self.entries
        after = replace(self, entries=entries, mended=seen, originals={**self.originals, **kept})
        after.__dict__["_known"] = frozenset(known)  # it hashes every edit
        return after

    def pinned(self, refs: Iterable[str], *, pin: bool = True) -> Journal:
        """A journal in which these refs are pinned, or no longer are."""
        pins = self.pins | set(refs) if pin else self.pins - set(refs)
        return self if pins == self.pins else replace(self, pins=pins)

    def undone(self, handle: str) -> Edit:
        """The restore that takes back the edit of a handle.  Raises UnknownHandle."""
        for edit in reversed(self.entries):
            if edit.handle == handle and edit.op not in ("restore", "insert"):
                return Edit("restore", edit.targets, "", "undo", "asked for", handle=handle)
        raise UnknownHandle(f"no edit here has the handle {handle!r}: history() lists them")

    @cached_property
    def _known(self) -> frozenset[tuple[Edit, int]]:
        """Every entry with how many restores of its target stood before it."""
        before: Tally[str] = Tally()
        found = []
        for edit in self.entries:
            found.append((edit, before[edit.targets[0]]))
            if edit.op == "restore":
                before.update(edit.targets)
        return frozenset(found)

    @cached_property
    def restores(self) -> Tally[str]:
        """How often each ref was restored: tells an edit from the same edit done again."""
        return Tally(ref for edit in self.entries if edit.op == "restore" for ref in edit.targets)


def _ended(transcript: Transcript, place: Place, text: str) -> bool:
    """Whether the model's words end here, and the conversation goes on behind them: what repair
    put there then has a place only so, as the client may have sent half of a turn before; or
    may go on from what was sent, in which the text stands."""
    message = transcript.messages[place.message] if place.message >= 0 else None
    if message is None or message.role != "assistant" or message.calls:
        return False
    following = transcript.messages[place.message + 1 : place.message + 2]
    there = any(m.role == "user" and m.blocks and m.blocks[0].text == text for m in following)
    return place.index + 1 == len(message.blocks) and bool(following) and not there


def stands(edit: Edit, refs: Mapping[str, Any]) -> bool:
    """Whether all that an edit needs is in the transcript."""
    if edit.witness and edit.witness not in refs:
        return False
    return all(map(refs.__contains__, edit.targets)) and all(map(refs.__contains__, edit.needs))
