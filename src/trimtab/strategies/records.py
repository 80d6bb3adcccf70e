"""JSON results: lists of records as tables, then fewer of their rows; the rest in less detail.

Knows in which order these are worth trying and how small they may get.  Does not know how a table
is made, which rows matter, or what of a nested value does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, loss_of, smaller
from trimtab.strategies.blobs import LOSS as BLOB_LOSS
from trimtab.strategies.cells import spelled
from trimtab.strategies.fewer_rows import ranked, shown
from trimtab.strategies.json_digest import ALL, DETAILS, Detail, digest
from trimtab.strategies.marker import recall_call
from trimtab.strategies.tables import Tables, lay, lists, read

SMALLEST_TOKENS = 60
LEAST_ROWS = 0.6
"""Share of a text that the rows of its tables must be; else all of it gets less detail."""
CELLS = (Detail(500, 40), Detail(125, 8))
GAP_TOKENS = 7
"""What ``[214 rows left out]`` costs on its line."""

Texts = Iterator[tuple[str, str]]
"""(what would be shown, why) of each level, large to small."""


def records(block: Block, config: Config) -> Iterator[Offer]:
    """Levels of a JSON result: as tables (loss 0), then fewer rows or less detail."""
    if block.kind != "result":
        return
    tree, lines = read(block.text)
    if tree is None:
        return
    laid = lay(tree, lines=lines)
    text = laid.text(laid.rows) if laid else ""
    last, total = block.text, config.count(block.text)
    if laid and smaller(text, last, config.count):
        yield Offer("replace", text, 0.0, "table", "records as rows, each key once")
        last, total = text, config.count(text)
    lean = digest(tree, ALL)
    if lean != tree:
        text = _whole(lean, lines)
        if smaller(text, last, config.count):
            yield Offer("replace", text, BLOB_LOSS, "blobs", "encoded runs to head and size")
            last, tree, laid = text, lean, lay(lean, lines=lines)
    fetch = recall_call(block.text, config)
    note = f"{fetch} has all" if fetch else "run the tool again to see all"
    mostly_rows = laid is not None and _size(laid) >= LEAST_ROWS * len(text)
    found = _fewer_rows if mostly_rows else _less_detail
    for new, why in found(tree, lines, config, note):
        if smaller(new, last, config.count):
            yield Offer("replace", new, loss_of(config.count(new), total), "records", why)
            last = new


def _whole(tree: Any, lines: bool) -> str:
    laid = lay(tree, lines=lines)
    return spelled(tree) if laid is None else laid.text(laid.rows)


def _size(laid: Tables) -> int:
    """Characters of all rows."""
    return sum(len(row) + 1 for rows in laid.rows for row in rows)


def _less_detail(tree: Any, lines: bool, config: Config, note: str) -> Texts:
    for detail in DETAILS:
        less = spelled(digest(tree, detail))
        yield f"[JSON in less detail; {note}]\n{less}", f"strings of at most {detail.chars} chars"


def _fewer_rows(tree: Any, lines: bool, config: Config, note: str) -> Texts:
    """All rows with long strings cut, then texts of 60 × 2ⁿ tokens with fewer rows."""
    laid = lay(tree, lines=lines)
    for detail in CELLS:
        shorter = digest(tree, detail, frozenset(map(id, lists(tree))))
        less = lay(shorter, lines=lines)
        if laid and less and 10 * _size(less) <= 9 * _size(laid):
            tree, laid = shorter, less
            yield laid.text(laid.rows, note), f"cells of at most {detail.chars} chars"
    assert laid is not None
    rows, text = laid.rows, laid.text(laid.rows)
    order = sorted(
        (tier, place, number, row)
        for number, one in enumerate(rows)
        for tier, place, row in ranked(one)
    )
    tokens, bare = config.count(text), config.count(laid.text([()] * len(rows), note))
    costs = [[tokens / len(text) * (len(row) + 1) + GAP_TOKENS for row in one] for one in rows]
    budget = SMALLEST_TOKENS
    while budget * 8 <= tokens * 3:
        budget *= 2
    while budget > bare and SMALLEST_TOKENS <= budget <= tokens * 3 // 4:
        room = float(budget - bare)
        for _ in range(4):
            kept = _within(order, costs, room)
            new = laid.text([shown(*pair) for pair in zip(rows, kept, strict=True)], note)
            over = config.count(new) - budget
            if over <= 0:
                break
            room -= over + room / 16
        if over <= 0 and any(kept):
            yield new, f"{sum(map(len, kept)):,} of {len(order):,} rows"
        budget //= 2


def _within(
    order: list[tuple[int, float, int, int]], costs: list[list[float]], room: float
) -> list[set[int]]:
    """The rows of each table that have room, the first in order first."""
    kept = [set[int]() for _ in costs]
    for _, _, number, row in order:
        if costs[number][row] <= room:
            room -= costs[number][row]
            kept[number].add(row)
    return kept
