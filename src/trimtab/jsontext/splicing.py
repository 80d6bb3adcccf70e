"""Applies operations on paths to JSON as source text, and locates the values at paths in it.

``parse(splice(text, ops)) == apply(parse(text), ops)``, key order included.  ``splice`` changes no
character except in the touched values, their commas and the whitespace between deleted neighbours:
number spellings, escapes, duplicate keys and layout stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from trimtab.jsontext.parsing import ValueSpan, dump, is_same, layout
from trimtab.jsontext.paths import (
    Delete,
    OpNode,
    Path,
    PathOp,
    Set,
    check_inserts,
    plan,
    raise_missing,
)


def splice(text: str, ops: Iterable[PathOp]) -> str:
    """The source text after ``ops``: new values in compact JSON, everything else unchanged.

    Without ops it is the same object.  Linear in the text, about the cost of ``json.loads``.
    """
    root = plan(ops)
    return _spliced(text, root, ()) if root.op or root.opens else text


def _spliced(text: str, node: OpNode, path: Path) -> str:
    pieces: list[str] = []
    done = 0
    cuts: list[_Cut] = []
    _cut(text, layout(text, node), node, path, cuts)
    for start, end, new in sorted(cuts):
        pieces += (text[done:start], new)
        done = end
    return "".join((*pieces, text[done:]))


def cuts(
    starts: Sequence[int],
    ends: Sequence[int],
    data: bytes,
    ops: Iterable[PathOp],
    key: str,
    known: dict[Path, SetValue],
) -> list[tuple[int, int, bytes]]:
    """The changes that ``ops`` make in the list at ``key``, in order, as (start, end, new bytes).

    ``starts`` and ``ends`` bound its items in ``data``; at least one, each op below the list.
    ``known``: values that were set before; what is set now is added.
    """
    node, count, item_cuts = plan(ops).at((key,)), len(starts), list[tuple[int, int, bytes]]()
    for index, child in node.below.items():
        if not isinstance(index, int) or not 0 <= index < count:
            raise_missing((key, index))
        if isinstance(child.op, Delete):
            continue
        start, end, only = starts[index], ends[index], child.only_set
        now = None if only is None else _set_again(known.get(only.path), only, data, start, end)
        if now is None:
            text = _spliced(data[start:end].decode(), child, (key, index))
            item_cuts.append((start, end, text.encode()))
        else:
            known[now.path] = now
            item_cuts.append((start + now.start, start + now.end, now.written))
    check_inserts(node, count, (key,))
    new = {index: [dump(value) for value in some] for index, some in node.inserts.items()}
    deleted = {index for index in node.deleted if isinstance(index, int)}
    gaps = _gap_cuts(ValueSpan(0, 0, (), starts, ends, {}), deleted, new)
    return sorted([*item_cuts, *((start, end, text.encode()) for start, end, text in gaps)])


class SetValue(NamedTuple):
    """A value that was set, and its JSON: ``start`` and ``end`` bound the value that it replaced,
    in the bytes of the item of the list."""

    path: Path
    start: int
    end: int
    value: Any
    written: bytes


def _set_again(
    known: SetValue | None, op: Set, data: bytes, start: int, end: int
) -> SetValue | None:
    """The value that ``op`` sets in the item data[start:end], of which two steps of its path lead
    to the item; None if nothing stands at its path yet.  ``known``: what was set there before."""
    if known is None:
        text, path = data[start:end].decode(), op.path[2:]
        span = spans(text, [path]).get(path)
        if span is None:
            return None
        first = len(text[: span[0]].encode())
        last = first + len(text[slice(*span)].encode())
    elif is_same(known.value, op.value):
        return known
    else:
        first, last = known.start, known.end
    return SetValue(op.path, first, last, op.value, dump(op.value).encode())


def spans(text: str, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """(start, end) in chars of the values at ``paths``; paths that do not exist are left out."""
    asked = tuple(paths)
    root = OpNode()
    for path in asked:
        root.at(path)
    if not asked:
        return {}
    top = layout(text, root)
    by_path: dict[Path, tuple[int, int]] = {}
    for path in asked:
        span: ValueSpan | None = top
        for key in path:
            span = span.inner.get(key) if span else None
        if span:
            by_path[path] = (span.start, span.end)
    return by_path


_Cut = tuple[int, int, str]
"""(start, end, new text)."""


def _cut(text: str, span: ValueSpan, node: OpNode, path: Path, cuts: list[_Cut]) -> None:
    """Add the changes at and below one path to ``cuts``; they do not overlap and are unordered."""
    if isinstance(node.op, Set):
        cuts.append((span.start, span.end, dump(node.op.value)))
        return
    first = text[span.start]
    new: dict[int, list[str]] = {}
    for key, child in node.below.items():
        inner = span.inner.get(key)
        if inner is not None:
            if not isinstance(child.op, Delete):
                _cut(text, inner, child, (*path, key), cuts)
        elif first == "{" and isinstance(key, str) and isinstance(child.op, Set):
            member = f"{dump(key)}:{dump(child.op.value)}"
            new.setdefault(len(span.starts), []).append(member)
        else:
            raise_missing((*path, key))
    gone = node.deleted
    deleted: set[int] = set()
    if gone:
        keys = enumerate(span.keys) if first == "{" else ((key, key) for key in gone)
        deleted = {index for index, key in keys if key in gone and isinstance(index, int)}
    if node.inserts:
        check_inserts(node, len(span.starts) if first == "[" else -1, path)
        new = {index: [dump(value) for value in some] for index, some in node.inserts.items()}
    if deleted or new:
        cuts += _gap_cuts(span, deleted, new)


def _gap_cuts(span: ValueSpan, deleted: set[int], new: dict[int, list[str]]) -> Iterator[_Cut]:
    """The changes between the surviving elements of a container, one cut for each gap.

    A gap is named by the survivor before it (−1: none).  Its text goes from that survivor's end
    to the end of the last deleted element, so the comma and layout after it stay; without a
    survivor before, from the first element's start to that of the survivor after.
    """
    gaps: dict[int, tuple[list[str], int]] = {}
    before = -1
    for index in sorted(deleted | new.keys()):
        if index - 1 not in deleted:
            before = index - 1
        texts = gaps[before][0] if before in gaps else []
        gaps[before] = (texts + new.get(index, []), index + (index in deleted))
    count = len(span.starts)
    for before, (texts, after) in gaps.items():
        if before >= 0:
            yield span.ends[before], span.ends[after - 1], "".join("," + text for text in texts)
        elif after < count:
            yield span.starts[0], span.starts[after], "".join(text + "," for text in texts)
        elif count:
            yield span.starts[0], span.ends[-1], ",".join(texts)
        else:
            yield span.start + 1, span.start + 1, ",".join(texts)
