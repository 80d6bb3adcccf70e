"""Which edits are active for this transcript, and what they took away.

Knows refs, witnesses and the order of entries; append-only.  Does not know sizes, JSON text of
requests, or where it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trimtab.edits import groups_of
from trimtab.errors import InvalidSetting
from trimtab.model import Edit, Transcript

VERSION = 1


@dataclass(frozen=True)
class Journal:
    """Entries oldest first; ``mended`` names repairs seen before; ``originals`` by handle."""

    entries: tuple[Edit, ...] = ()
    mended: frozenset[str] = frozenset()
    originals: Mapping[str, str] = field(default_factory=dict)

    def active(self, transcript: Transcript) -> tuple[Edit, ...]:
        """The edits that count here: targets and witness present, the newest of each target."""
        if not self.entries:
            return ()
        refs, claimed, found = transcript.refs, set[str](), list[Edit]()
        for edit in reversed(self.entries):
            if not all(ref in refs for ref in (*edit.targets, *filter(None, [edit.witness]))):
                continue
            if edit.op == "insert":
                if refs[edit.targets[0]].message + 1 < len(transcript.messages):
                    found.append(edit)
                continue
            if claimed.intersection(edit.targets):
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
        """A journal with these entries behind the others; the same edit twice is one entry."""
        known = set(self.entries)
        new = tuple(edit for edit in dict.fromkeys(edits) if edit not in known)
        seen = self.mended.union(mended)
        kept = {key: text for key, text in originals.items() if key not in self.originals}
        if not new and not kept and len(seen) == len(self.mended):
            return self
        return Journal((*self.entries, *new), seen, {**self.originals, **kept})

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, with the version of this file format."""
        return {
            "version": VERSION,
            "edits": [{**asdict(edit), "targets": list(edit.targets)} for edit in self.entries],
            "mended": sorted(self.mended),
            "originals": dict(self.originals),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Journal:
        """The journal that ``as_dict`` wrote.  Raises InvalidSetting for anything else."""
        try:
            version = data["version"]
            if version != VERSION:
                raise InvalidSetting(
                    f"this journal has version {version}, this release reads {VERSION}: "
                    "update trimtab"
                )
            edits = tuple(
                Edit(**{**row, "targets": tuple(row["targets"])}) for row in data["edits"]
            )
            return cls(edits, frozenset(data["mended"]), dict(data["originals"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidSetting(
                f"this is not a journal of trimtab ({error!r}): give what session.journal returned"
            ) from None
