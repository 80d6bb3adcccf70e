"""The contents of a fold, by step: a table of contents, and the messages of single steps.

The original of a fold is a JSON list of messages as given, in any format; steps are cut from the
text itself, so they are exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.errors import InvalidRequest
from trimtab.formats.words import ARGUMENT_KEYS, ID_KEYS, RESULT_KEYS
from trimtab.jsontext import paths, splicing

CONTENTS_CHARS = 4_000
"""A shorter original is shown whole, without a table of contents."""
LINE_CHARS, CALL_CHARS = 100, 60
_SPEAKERS = ("assistant", "model")
_THEIRS = ("user", "tool", "function", "system", "developer")


class FoldedStep(NamedTuple):
    """One step of a fold: its number from 1, its calls (tool and the beginning of the arguments),
    the first line of its results, and the start and end of its messages in the original."""

    number: int
    calls: tuple[str, ...]
    first_line: str
    start: int
    end: int

    @property
    def chars(self) -> int:
        """Its size in characters of JSON."""
        return self.end - self.start

    def __str__(self) -> str:
        calls = "; ".join(self.calls) or "no call"
        detail = f": {self.first_line}" if self.first_line else ""
        return f"step {self.number}: {calls} ({self.chars:,} chars){detail}"


def folded_steps(original: str) -> list[FoldedStep]:
    """The steps of an original that is a list of messages; [] for any other."""
    if not original.startswith("[{"):
        return []
    try:
        items = paths.parse(original)
    except InvalidRequest:
        return []
    if not all(isinstance(item, dict) and _is_message(item) for item in items):
        return []
    spans = splicing.spans(original, [(number,) for number in range(len(items))])
    folded: list[FoldedStep] = []
    for first, last in _runs(items):
        own = items[first : last + 1]
        start, end = spans[(first,)][0], spans[(last,)][1]
        calls = tuple(_call(call) for item in own for call in _calls(item))
        line = next(filter(None, map(_first_line, filter(_is_result, own))), "")
        folded.append(FoldedStep(len(folded) + 1, calls, line, start, end))
    return folded


def steps_of(original: str, first: int, last: int) -> str:
    """The messages of steps ``first`` to ``last`` (from 1) as a JSON list, exactly as given;
    numbers out of range are ignored.  Raises ValueError if no step is left."""
    steps = folded_steps(original)
    chosen = [step for step in steps if first <= step.number <= last]
    if not chosen:
        there = f"it has steps 1 to {len(steps)}" if steps else "it is not made of steps"
        to = f" to {last}" if last != first else ""
        raise ValueError(f"no step {first}{to}: {there}")
    return f"[{original[chosen[0].start : chosen[-1].end]}]"


def contents(steps: Sequence[FoldedStep], chars: int, most: int) -> str:
    """The table of contents as text of at most ``most`` characters."""
    title = (
        f"{len(steps):,} steps were left out together, {chars:,} chars. Recall the same handle "
        f'with steps="1" or steps="1-{min(3, len(steps))}" to read some, or with search to find '
        "lines."
    )
    rows, used = [title], len(title)
    for number, step in enumerate(steps):
        row = str(step)
        used += len(row) + 1
        if used > most - LINE_CHARS:
            rows.append(f"[{len(steps) - number:,} more steps; search finds lines in them too]")
            break
        rows.append(row)
    return "\n".join(rows)


def step_range(value: Any) -> tuple[int, int] | None:
    """``3``, ``"3"``, ``"3-5"`` or ``[3, 5]`` as (first, last); None for None or "".

    Raises ValueError.
    """
    if value is None or (isinstance(value, str) and not value):
        return None
    if isinstance(value, str):
        parts: list[Any] = value.replace("–", "-").split("-")
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else [value]
    whole = [isinstance(p, (int, str)) or (isinstance(p, float) and p.is_integer()) for p in parts]
    try:
        numbers = [int(part) for part in parts] if all(whole) else []
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or min(numbers) < 1:
        raise ValueError('steps is a number from 1 ("3") or a range ("3-5")')
    return numbers[0], numbers[-1]


# --- messages of any format ---


def _is_message(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return item.get("role") in (*_SPEAKERS, *_THEIRS) or (
        isinstance(kind, str)
        and any(word in kind for word in ("call", "result", "output", "reasoning", "thought"))
    ) or any(key in item for key in RESULT_KEYS)  # fmt: skip


def _is_result(item: Mapping[str, Any]) -> bool:
    """Whether the message is not the model's."""
    if (role := item.get("role")) is not None:
        return role in _THEIRS
    kind = str(item.get("type") or "result")
    return not kind.startswith("model") and any(
        word in kind for word in ("result", "output", "user")
    )


def _runs(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """First and last item of each step: the model's text and calls, and their results."""
    first = 0
    for number in range(1, len(items)):
        if _is_result(items[number - 1]) and not _is_result(items[number]):
            yield first, number - 1
            first = number
    yield first, len(items) - 1


def _calls(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every call within a message: an object with a name and arguments."""
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and any(key in value for key in ARGUMENT_KEYS):
            yield value
            return
        for inner in value.values():
            yield from _calls(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _calls(inner)


def _call(call: Mapping[str, Any]) -> str:
    arguments = next(call[key] for key in ARGUMENT_KEYS if key in call)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return _line(f"{call['name']} {arguments}", CALL_CHARS)
    detail = " ".join(text for text in _strings(arguments) if text.strip())
    return _line(f"{call['name']} {detail}", CALL_CHARS)


_PASSED_OVER = frozenset(("role", "type", "name", "status", *ID_KEYS))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        yield str(value)
    else:
        inner = value.values() if isinstance(value, Mapping) else value
        for one in inner:
            yield from _strings(one)


def _first_line(item: Mapping[str, Any]) -> str:
    """The first line of text in a message, without ids and types."""
    bare = _without(item)
    texts = (line for text in _strings(bare) for line in text.splitlines())
    return next((_line(line, LINE_CHARS) for line in texts if line.strip()), "")


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(one) for key, one in value.items() if key not in _PASSED_OVER}
    return [_without(one) for one in value] if isinstance(value, list) else value


def _line(text: str, chars: int) -> str:
    """The text as one printable line of at most ``chars`` characters."""
    bare = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * chars]).split())
    return bare if len(bare) <= chars else bare[: chars - 1] + "…"
