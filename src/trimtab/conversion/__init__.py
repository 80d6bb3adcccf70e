"""Any of the five request formats to any other, with an account of what could not go along.

Knows what comes out of a conversion.  The work stands in turning.py and is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.conversion.loss import Loss

__all__ = ["Converted", "Loss", "convert"]


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


def convert(
    request: Any, to: str = "bedrock", *, format: str | None = None, model: str | None = None
) -> Converted:
    """The same conversation in another provider's format.

    ``request``: a body (dict), a bare list of messages, or JSON as str or bytes; never changed.
    ``to``: "openai-chat", "openai-responses", "anthropic", "bedrock" or "gemini".
    ``format``: what the request is in; None: detected.
    ``model``: the model it is for.  None: the request's own between formats of one provider, else
    no model is written.

    A valid request becomes a valid one: roles are joined, results put behind their calls, ids and
    names respelled where the target forbids them.  An invalid one is converted as it is; ``repair``
    mends it.  Payloads of images and documents stay base64 text.

    Raises InvalidRequest, InvalidSetting.
    """
    from trimtab.conversion.turning import turned  # the formats are loaded when one is converted

    return turned(request, to, format, model)
