"""A journal as JSON, in this version and every earlier one.

A *file* holds a whole journal; a *row* is one entry of a stream that several processes append to.
For each version there is a step to the next.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from trimtab.errors import InvalidSetting
from trimtab.journal.journal import Journal
from trimtab.journal.packed_originals import PackedOriginals
from trimtab.transcript.model import Edit, EditFigures

VERSION = 4
_WITHOUT_PAYLOADS = 3
"""The version that is written where no edit has a payload: earlier releases read it."""

Tree = dict[str, Any]


def _to_2(file: Mapping[str, Any]) -> Tree:
    """Version 2 added ``needs`` of an edit, and pins."""
    edits = [{**row, "needs": []} for row in file["edits"]]
    return {**file, "version": 2, "edits": edits, "pins": []}


def _to_3(file: Mapping[str, Any]) -> Tree:
    """Version 3 added the edit ``fold``, which keeps each speaker's words separate."""
    return {**file, "version": 3}


def _to_4(file: Mapping[str, Any]) -> Tree:
    """Version 4 added ``payload`` of an edit: the data of an image that was made smaller."""
    return {**file, "version": 4}


CONVERTERS: Mapping[int, Callable[[Mapping[str, Any]], Tree]] = {1: _to_2, 2: _to_3, 3: _to_4}
"""Version → the step to the next one."""


def to_dict(journal: Journal) -> Tree:
    """The whole journal, JSON-able, with the version of this format."""
    return {
        "version": VERSION if any(e.payload for e in journal.entries) else _WITHOUT_PAYLOADS,
        "edits": [_written(edit) for edit in journal.entries],
        "figures": [edit.figures and list(edit.figures) for edit in journal.entries],
        "mended": sorted(journal.repaired),
        "pins": sorted(journal.pins),
        "originals": dict(journal.originals),
    }


def from_dict(data: Mapping[str, Any]) -> Journal:
    """The journal that ``to_dict`` of this or an earlier release wrote.

    Raises InvalidSetting for anything else.
    """
    if not isinstance(data, Mapping) or "version" not in data:
        raise InvalidSetting(
            "this is not a journal of trimtab (it has no version): give what session.journal "
            "returned"
        )
    try:
        while (version := data["version"]) in CONVERTERS:
            data = CONVERTERS[version](data)
        _check(version)
        known = data.get("figures") or [None] * len(data["edits"])
        edits = tuple(map(_read, data["edits"], known))
        pins, repaired = frozenset(data["pins"]), frozenset(data["mended"])
        return Journal(edits, repaired, PackedOriginals(dict(data["originals"])), pins)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidSetting(
            f"this journal is damaged ({error!r}): give what session.journal returned"
        ) from None


class JournalRow(NamedTuple):
    """One entry of a stream.  ``id`` is a digest of its content and the number of equal entries
    before it, so that the same decision by two processes at once is one entry."""

    id: str
    data: bytes


def rows(before: Journal, after: Journal, at: int) -> list[JournalRow]:
    """The rows that ``after`` has beyond ``before``; ``at``: seconds since 1970."""
    entries: list[tuple[Tree, int, EditFigures | None]] = []
    times = Tally(before.entries)
    for edit in after.entries[len(before.entries) :]:
        entries.append(({"edit": _written(edit)}, times[edit], edit.figures))
        times[edit] += 1
    entries += [({"mended": key}, 0, None) for key in sorted(after.repaired - before.repaired)]
    entries += [({"pin": ref}, at, None) for ref in sorted(after.pins - before.pins)]
    entries += [({"unpin": ref}, at, None) for ref in sorted(before.pins - after.pins)]
    return [_row(entry, age, figures, at) for entry, age, figures in entries]


def _row(entry: Tree, age: int, figures: EditFigures | None, at: int) -> JournalRow:
    """``figures`` are beside the decision: they are no part of it, nor of its id."""
    text = json.dumps(entry, sort_keys=True)
    id = hashlib.blake2b(f"{age} {text}".encode(), digest_size=12).hexdigest()
    more = {} if figures is None else {"figures": figures}
    version = VERSION if "payload" in entry.get("edit", {}) else _WITHOUT_PAYLOADS
    row = {"v": version, "id": id, "at": at, **entry, **more}
    return JournalRow(id, json.dumps(row).encode())


def replayed(journal: Journal, data: Iterable[bytes]) -> Journal:
    """The journal with rows of a stream appended; rows of a newer release are ignored."""
    edits, repaired = list[Edit](), list[str]()
    for one in data:
        row = json.loads(one)
        if row["v"] > VERSION:
            continue
        if "edit" in row:
            edits.append(_read(row["edit"], row.get("figures")))
        elif "mended" in row:
            repaired.append(row["mended"])
        else:
            journal = journal.pinned([row.get("pin") or row["unpin"]], pin="pin" in row)
    return journal.add(edits, {}, repaired)


def dated_edits(data: Iterable[bytes]) -> Iterator[tuple[int, Edit]]:
    """The edits in rows of a stream, each with its time of writing (seconds since 1970); rows of a
    newer release are ignored."""
    for one in data:
        row = json.loads(one)
        if "edit" in row and row["v"] <= VERSION:
            yield row["at"], _read(row["edit"], row.get("figures"))


def _check(version: Any) -> None:
    if version != VERSION:
        raise InvalidSetting(
            f"this journal has version {version}, this release reads up to {VERSION}: "
            "update trimtab"
        )


_KEYS = {"model_text": "said", "user_text": "asked"}


def _written(edit: Edit) -> Tree:
    """Its fields; the texts of a fold keep the names that journals have always had."""
    row = {**asdict(edit), "targets": list(edit.targets), "needs": list(edit.needs)}
    del row["figures"]
    if not edit.payload:
        del row["payload"]
    return {_KEYS.get(name, name): value for name, value in row.items()}


def _read(row: Mapping[str, Any], figures: Sequence[Any] | None) -> Edit:
    names = {key: name for name, key in _KEYS.items()}
    fields = {names.get(key, key): value for key, value in row.items()}
    refs = {"targets": tuple(row["targets"]), "needs": tuple(row["needs"])}
    known = None if figures is None else EditFigures(*figures)
    return Edit(**{**fields, **refs, "figures": known})
