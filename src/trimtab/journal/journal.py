"""Which edits are active for this transcript, what they took away, and new edits as entries: each
with what else has to be there for it to count.

Append-only.  How entries are written down: ``file_format.py``; where: ``stores/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.errors import UnknownHandle
from trimtab.planning.edits import groups_of
from trimtab.rules import Repair
from trimtab.transcript.model import Edit, Place
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True)
class Journal:
    """Entries oldest first; ``repaired`` names repairs seen before; ``pins`` are refs that stay
    whole; ``originals`` by handle."""

    entries: tuple[Edit, ...] = ()
    repaired: frozenset[str] = frozenset()
    originals: Mapping[str, str] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()

    def active(self, transcript: Transcript) -> tuple[Edit, ...]:
        """The edits that count here: all they need is present, the newest of each target."""
        if not self.entries:
            return ()
        refs, claimed, edits = transcript.refs, set[str](), list[Edit]()
        for edit in reversed(self.entries):
            taken = edit.op != "insert" and not claimed.isdisjoint(edit.targets)
            if taken or not stands(edit, refs):
                continue
            if edit.op == "insert":
                if _ended(transcript, refs[edit.targets[0]], edit.text):
                    edits.append(edit)
                continue
            if edit.op in ("drop", "fold") and groups_of(transcript, edit) is None:
                continue
            if mixes_speakers(edit):
                continue
            claimed.update(edit.targets)
            if edit.op != "restore":
                edits.append(edit)
        return tuple(reversed(edits))

    def add(
        self, edits: Iterable[Edit], originals: Mapping[str, str], repaired: Iterable[str] = ()
    ) -> Journal:
        """A journal with these entries behind the others.

        Nothing is taken out and the last entry of a block wins.  An edit that is the last entry of
        all its blocks already says nothing new; an older one that others have overruled is
        appended once more.
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
        return replace(self, entries=entries, repaired=seen, originals={**self.originals, **kept})

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


def _last_entries(entries: Iterable[Edit]) -> dict[tuple[bool, str], Edit]:
    """(whether it inserts, ref) → the last entry for this block.  Insertions stand beside blocks
    and overrule no other edit."""
    return {(edit.op == "insert", ref): edit for edit in entries for ref in edit.targets}


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


def mixes_speakers(edit: Edit) -> bool:
    """Whether this is a note as releases up to 0.1 wrote them: lines of tools and of the model,
    in the words of one who said neither.  What it stands for is folded anew."""
    return edit.op == "drop" and "\n" in edit.text


def stands(edit: Edit, refs: Mapping[str, Any]) -> bool:
    """Whether all that an edit needs is in the transcript."""
    if edit.witness and edit.witness not in refs:
        return False
    return all(map(refs.__contains__, edit.targets)) and all(map(refs.__contains__, edit.needs))


COMPANY = 2
"""Steps of the model before the witness that have to be there too: a call alone may come again."""


def resting_edits(
    transcript: Transcript,
    edits: Iterable[Edit],
    rests_on: Callable[[Place], Iterable[tuple[int, int]]],
) -> Iterator[Edit]:
    """The edits with their ``needs``: what the model said before the witness; and what came again
    later may be left out only while the later one is there."""
    company = _company(transcript)
    for edit in edits:
        needs = company
        if edit.op == "replace" and edit.kind in ("duplicate", "superseded"):
            keys = rests_on(transcript.refs[edit.targets[0]])
            needs = (*company, *(transcript.ref_of[key] for key in keys))
        yield replace(edit, needs=tuple(dict.fromkeys(needs)))


def _company(transcript: Transcript) -> tuple[str, ...]:
    """The newest call or words of the model in each of the last closed steps: the witness may be
    a part that says little."""
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
    """What repair put behind the last message: it has to stand there again next turn."""
    for rule, repair in repairs:
        if rule != "last_not_user":
            continue
        number = len(transcript.messages) - 2
        blocks = transcript.messages[number].blocks if number >= 0 else ()
        text = transcript.messages[-1].blocks
        if blocks and text:
            ref = transcript.ref_of[number, len(blocks) - 1]
            yield Edit("insert", (ref,), text[0].text, "repair", repair.message)
