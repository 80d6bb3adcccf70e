"""Answer tables: where a format's answers have their parts, usage and reason to stop, and how a
stream brings them.  A format's table is in its ``answers.py``, with what no table gives."""

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


class UsageKeys(NamedTuple):
    """The keys of the billed tokens in a usage."""

    input: str
    output: str
    cached: str
    """Read from the cache."""
    written: str = ""
    """Put into it."""
    thought: str = ""
    """Thinking, where it is no part of the output."""
    details: str = ""
    """The object in which the two of the cache are, if they are not beside the input."""
    apart: bool = False
    """Whether the two of the cache are no part of the input."""
    within: str = ""
    """The object of a usage in which the input and the output are; "": the usage itself."""


@dataclass(frozen=True)
class AnswerTable:
    """One format's answers.  Paths start from an answer, or from an event."""

    parts: Path
    """The list of parts, items or steps."""
    tokens: UsageKeys
    usage: str = "usage"
    summed: tuple[str, ...] = ()
    """Keys of other numbers, which add up over several answers."""
    stop: str = ""
    """The key of the reason to stop."""
    stops: tuple[str, str] = ("", "")
    """The reason where tools were called, and the one where the model is done."""
    blank: Any = None
    """The part of an answer that says nothing; None if it may have no part."""
    structured: tuple[tuple[Path, tuple[str, ...]], ...] = ()
    """(path, values) in a request by which the whole text has to be one JSON value; without
    values: any that is true."""
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
class AnswerError:
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


def added(first: Any, second: Any, keys: UsageKeys) -> Any:
    """Two usages added: the later prompt, the sum of both outputs."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second if isinstance(second, dict) else first
    total = {**first, **second}
    if keys.within:
        inner = added(first.get(keys.within), second.get(keys.within), keys._replace(within=""))
        return {**total, keys.within: inner}
    for key in (keys.output, keys.thought):
        if type(first.get(key)) is int and type(second.get(key)) is int:
            total[key] = first[key] + second[key]
    return total


def summed(first: Any, second: Any) -> Any:
    """Two usages added, number by number, as deep as they go; of texts the later one."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        return {key: summed(first.get(key), second.get(key)) for key in keys}
    if isinstance(first, list) and isinstance(second, list):
        return _by_modality([*first, *second])
    numbers = [value for value in (first, second) if type(value) in (int, float)]
    return sum(numbers) if len(numbers) == 2 else first if second is None else second


def _by_modality(rows: list[Any]) -> list[Any]:
    """Gemini's details: one row a modality."""
    by_name = dict[Any, Any]()
    for row in rows:
        name = row.get("modality") if isinstance(row, dict) else None
        by_name[name] = summed(by_name.get(name), row)
    return list(by_name.values())
