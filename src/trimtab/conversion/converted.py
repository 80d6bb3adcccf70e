"""The result of a conversion: the new request, id and name maps, losses and notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.formats.neutral.request import Loss


@dataclass(frozen=True)
class Converted:
    """A request in another format.

    ``request`` is the new body (a bare list where one was given and nothing has to stand beside
    it).  ``ids`` maps each call id that was given to the one that is sent, ``original_ids`` the
    other way; ``names`` and ``original_names`` do so for tools that had to be renamed.
    ``losses`` lists what could not be carried, or only in another form; ``notes`` what was added,
    joined or moved.  ``source`` and ``to`` are the formats.
    """

    request: Any
    source: str
    to: str
    ids: Mapping[str, str]
    original_ids: Mapping[str, str]
    names: Mapping[str, str]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]

    @property
    def original_names(self) -> dict[str, str]:
        """Tool name as sent → as given, of those that were renamed."""
        return {new: old for old, new in self.names.items()}

    def as_dict(self) -> dict[str, Any]:
        """Everything but the request, JSON-able."""
        return {
            "source": self.source,
            "to": self.to,
            "ids": dict(self.ids),
            "original_ids": dict(self.original_ids),
            "names": dict(self.names),
            "losses": [{**loss._asdict(), "path": list(loss.path)} for loss in self.losses],
            "notes": list(self.notes),
        }
