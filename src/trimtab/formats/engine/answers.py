"""Answer tables: where a format's answers have their parts, usage and reason to stop, and how a
stream brings them.  A format's table is in ``<room>/answers.py``, with what no table gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from trimtab.jsontext.paths import Path


class Delta(NamedTuple):
    """What one key of a stream's delta adds to its part."""

    source: Path
    target: Path
    how: Literal["text", "json", "item", "value"] = "text"
    """More of a text; more of a JSON text, which is parsed at the end; one more item of a list;
    the whole value."""


@dataclass(frozen=True)
class AnswerTable:
    """One format's answers.  Paths start from an answer, or from an event."""

    parts: Path
    """The list of parts, items or steps."""
    usage: str = "usage"
    summed: tuple[str, ...] = ()
    """Keys of other numbers, which add up over several answers."""
    stop: str = ""
    """The key of the reason to stop."""
    stops: tuple[str, str] = ("", "")
    """The reason where tools were called, and the one where the model is done."""
    blank: Any = None
    """The part of an answer that says nothing; None if it may have no part."""
    # --- streams ---
    type: str = "type"
    """The key of an event's type; "": its name."""
    opening: tuple[str, ...] = ()
    """How types of events begin that tell of the answer as a whole, before its end."""
    opening_usage: Path = ()
    """The usage in such an event."""
    ending: tuple[str, ...] = ()
    """Types of the events at the end."""
    last: str = ""
    """The key under which the event at the end has the whole answer; "" if it has none."""
    final_usage: str = ""
    """The type of the event at the end that has the usage, where it is no whole answer."""
    index: str = ""
    """The key of a part's number."""
    begins: str = ""
    """The type of an event that begins a part; "": the first with its number does."""
    begun: Path = ()
    """The part in that event."""
    text: Path = ()
    """A piece of text in an event."""
    text_type: tuple[Path, str] | None = None
    """(path, type) of the events that have one; None: all that have it."""
    delta: str = "delta"
    """The key of what an event adds to its part."""
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class SaidError:
    """A refusal, reduced to what every format can express."""

    status: int
    kind: str
    message: str

    @classmethod
    def of(cls, status: int, error: Any) -> Self:
        """``error``: the body of a refusal, as bytes or parsed."""
        tree = error
        if isinstance(error, (bytes, str)):
            try:
                tree = json.loads(error)
            except (ValueError, RecursionError):
                tree = {"message": error.decode() if isinstance(error, bytes) else error}
        if isinstance(tree, list) and tree:
            tree = tree[0]
        inner = tree.get("error") or tree if isinstance(tree, dict) else {}
        details = inner if isinstance(inner, dict) else {"message": inner}
        kinds = (details.get(key) for key in ("type", "status", "code"))
        usual = "rate_limit_exceeded" if status == 429 else "server_error"
        kind = next((kind for kind in kinds if isinstance(kind, str) and kind), usual)
        return cls(status, kind, str(details.get("message") or f"refused with status {status}"))
