"""Reduces JSON results: lists of records to tables, then to fewer rows; other JSON to less detail,
which keeps ids, paths, numbers and errors and shortens prose and long lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from trimtab.reducers.base import Config, Offer, loss_of, recall_call, smaller
from trimtab.reducers.blobs import LOSS as BLOB_LOSS
from trimtab.reducers.blobs import shorten_blobs
from trimtab.reducers.json_tree import CUT_KEY, Literal, Members, shorten_string
from trimtab.reducers.query_terms import MIN_RARE, RARE, QueryTerms, places, rare_names
from trimtab.reducers.tables import Tables, lay_out, read_json, record_lists, to_json
from trimtab.transcript.model import Block

# --- the levels ---

SMALLEST_TOKENS = 60
MIN_ROWS = 0.6
"""Least share of a text that is rows of tables; below it, the whole text gets less detail."""
GAP_TOKENS = 7
"""Tokens of a line ``[214 rows left out]``."""

Texts = Iterator[tuple[str, str]]
"""(text shown, reason) of each level, large to small."""


def records(block: Block, config: Config) -> Iterator[Offer]:
    """Offers for a JSON result: as tables (loss 0), then fewer rows or less detail."""
    if block.kind != "result":
        return
    tree, lines = read_json(block.text)
    if tree is None:
        return
    laid = lay_out(tree, lines=lines)
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
            last, tree, laid = text, lean, lay_out(lean, lines=lines)
    fetch = recall_call(block.text, config)
    note = f"{fetch} has all" if fetch else "run the tool again to see all"
    mostly_rows = laid is not None and _size(laid) >= MIN_ROWS * len(text)
    shorter = _fewer_rows if mostly_rows else _less_detail
    for new, why in shorter(tree, lines, block.text, config, note):
        if smaller(new, last, config.count):
            yield Offer("replace", new, loss_of(config.count(new), total), "records", why)
            last = new


def records_to(block: Block, config: Config, tokens: int) -> Offer | None:
    """JSON with as much detail, or as many rows, as fit into ``tokens``; None if nothing fits."""
    tree, lines = read_json(block.text)
    total = config.count(block.text)
    if block.kind != "result" or tree is None or not SMALLEST_TOKENS <= tokens < total:
        return None
    fetch = recall_call(block.text, config)
    note = f"{fetch} has all" if fetch else "run the tool again to see all"
    lean = digest(tree, ALL)
    laid = lay_out(lean, lines=lines)
    if laid is not None and _size(laid) >= MIN_ROWS * len(_whole(lean, lines)):
        return _rows_within(laid, config, note, tokens, total)
    low, high, best = 0, len(block.text), None
    wanted = values_by_terms(lean, block.text, config.terms)
    while high - low > max(low // 16, 1):
        middle = (low + high) // 2
        detail = Detail(middle, max(middle // 5, 2), max(middle // 3, 8), wanted)
        text = f"[JSON in less detail; {note}]\n{to_json(digest(lean, detail))}"
        if (used := config.count(text)) <= tokens:
            why = f"strings of at most {middle:,} chars"
            low, best = middle, Offer("replace", text, loss_of(used, total), "records", why)
        else:
            high = middle
    return best


def _rows_within(laid: Tables, config: Config, note: str, tokens: int, total: int) -> Offer | None:
    """The tables with as many rows as fit into ``tokens``."""
    ranked = _RankedRows(laid, config, note)
    fewer = ranked.within(tokens)
    if fewer is None:
        return None
    text, why = fewer
    return Offer("replace", text, loss_of(config.count(text), total), "records", why)


def _whole(tree: Any, lines: bool) -> str:
    laid = lay_out(tree, lines=lines)
    return to_json(tree) if laid is None else laid.text(laid.rows)


def _size(laid: Tables) -> int:
    """Characters of all rows."""
    return sum(len(row) + 1 for rows in laid.rows for row in rows)


def _less_detail(tree: Any, lines: bool, text: str, config: Config, note: str) -> Texts:
    wanted = values_by_terms(tree, text, config.terms)
    for detail in DETAILS:
        less = to_json(digest(tree, detail._replace(terms=wanted)))
        yield f"[JSON in less detail; {note}]\n{less}", f"strings of at most {detail.chars} chars"


def _fewer_rows(tree: Any, lines: bool, text: str, config: Config, note: str) -> Texts:
    """Levels: all rows with long strings cut, then texts of 60 × 2ⁿ tokens with fewer rows."""
    laid = lay_out(tree, lines=lines)
    for detail in CELLS:
        shorter = digest(tree, detail, frozenset(map(id, record_lists(tree))))
        less = lay_out(shorter, lines=lines)
        if laid and less and 10 * _size(less) <= 9 * _size(laid):
            tree, laid = shorter, less
            yield laid.text(laid.rows, note), f"cells of at most {detail.chars} chars"
    assert laid is not None
    ranked = _RankedRows(laid, config, note)
    budget = SMALLEST_TOKENS
    while budget * 8 <= ranked.tokens * 3:
        budget *= 2
    while budget > ranked.bare and SMALLEST_TOKENS <= budget <= ranked.tokens * 3 // 4:
        if (fewer := ranked.within(budget)) is not None:
            yield fewer
        budget //= 2


class _RankedRows:
    """The rows of tables, ranked by how important it is to keep them."""

    def __init__(self, laid: Tables, config: Config, note: str) -> None:
        self._laid, self._config, self._note = laid, config, note
        rows, text = laid.rows, laid.text(laid.rows)
        self._order = sorted(
            (tier, place, number, row)
            for number, one in enumerate(rows)
            for tier, place, row in _rank_by_terms(one, config.terms)
        )
        self.tokens = config.count(text)
        self.bare = config.count(laid.text([()] * len(rows), note))
        self._costs = [
            [self.tokens / len(text) * (len(row) + 1) + GAP_TOKENS for row in one] for one in rows
        ]

    def within(self, budget: int) -> tuple[str, str] | None:
        """The text with the best rows that fit into ``budget`` tokens, and the reason; None if
        none fit."""
        rows, room = self._laid.rows, float(budget - self.bare)
        for _ in range(4):
            kept = _within(self._order, self._costs, room)
            pairs = zip(rows, kept, strict=True)
            new = self._laid.text([kept_rows(*pair) for pair in pairs], self._note)
            over = self._config.count(new) - budget
            if over <= 0:
                break
            room -= over + room / 16
        if over > 0 or not any(kept):
            return None
        return new, f"{sum(map(len, kept)):,} of {len(self._order):,} rows"


def _rank_by_terms(rows: Sequence[str], terms: QueryTerms) -> Iterator[tuple[int, float, int]]:
    """``rank_rows``, with the class −1 for rows that have a rare name that is asked for."""
    text = "\n".join(rows)
    wanted: dict[int, float] = {}
    for at, share in (places(text, terms) if terms else {}).items():
        row = text.count("\n", 0, at)
        wanted[row] = wanted.get(row, 0.0) + share
    for tier, place, row in rank_rows(rows):
        rare = wanted.get(row, 0.0) * RARE >= MIN_RARE
        yield (-1, -wanted[row], row) if rare else (tier, place, row)


def _within(
    order: list[tuple[int, float, int, int]], costs: list[list[float]], room: float
) -> list[set[int]]:
    """The rows of each table that fit into ``room``, in the given order."""
    kept = [set[int]() for _ in costs]
    for _, _, number, row in order:
        if costs[number][row] <= room:
            room -= costs[number][row]
            kept[number].add(row)
    return kept


# --- less detail ---

LONGEST_ID = 200
"""Most characters of an id, path or address: a string without a blank."""
_ERROR = re.compile(r"error|fail|exception|fatal|denied|refused|invalid|warn", re.IGNORECASE)
_SAMPLE = 2_000


class Detail(NamedTuple):
    """Most characters of a string (four times as many for errors), items of a list, members of an
    object; ``terms``: values, by ``id``, that are kept because they are asked for."""

    chars: int
    items: int = 1 << 60
    members: int = 1 << 60
    terms: frozenset[int] = frozenset()


ALL = Detail(1 << 60)
"""Full detail; only encoded and minified runs are shortened."""
DETAILS = (
    Detail(1_000, 200, 400), Detail(500, 60, 200), Detail(250, 30, 120), Detail(125, 12, 60),
    Detail(80, 6, 30), Detail(60, 3, 15), Detail(24, 2, 8),
)  # fmt: skip
"""From much to little."""
CELLS = (Detail(500, 40), Detail(125, 8))
"""Levels of detail for the cells of a table."""


def digest(tree: Any, detail: Detail, whole: frozenset[int] = frozenset()) -> Any:
    """The parsed tree reduced to ``detail``; counts of what was left out are strings.

    ``whole``: lists, by ``id``, that keep all their items.
    """
    if isinstance(tree, Literal):
        return tree if len(tree) <= LONGEST_ID else f"[{len(tree):,} digits cut]"
    if isinstance(tree, str):
        return _string(tree, detail)
    if isinstance(tree, Members):
        return _object(tree, detail, whole)
    return _list(tree, detail, whole) if isinstance(tree, list) else tree


def _string(whole: str, detail: Detail) -> str:
    text = shorten_blobs(whole)
    if len(text) <= detail.chars or (id(whole) in detail.terms and len(text) <= NAMED_CHARS):
        return text
    if len(text) <= LONGEST_ID and not any(map(str.isspace, text)):
        return text
    return shorten_string(text, detail.chars * 4 if _ERROR.search(text[:_SAMPLE]) else detail.chars)


def _list(items: list[Any], detail: Detail, whole: frozenset[int]) -> list[Any]:
    """Keep the ends, items that mention an error, and an even spread; note a count in each gap."""
    if len(items) <= detail.items or id(items) in whole:
        return [digest(item, detail, whole) for item in items]
    failed = {number for number, item in enumerate(items) if _speaks(item)}
    wanted = [number for number, item in enumerate(items) if id(item) in detail.terms]
    wanted = wanted[:MAX_NAMED_ITEMS]
    others = (number for _, _, number in rank_items(len(items), failed, set()))
    order = {*wanted, *islice(others, max(0, detail.items - len(wanted)))}
    items_shown: list[Any] = []
    last = -1
    for number in sorted(order):
        if number > last + 1:
            items_shown.append(f"[{number - last - 1:,} items left out]")
        items_shown.append(digest(items[number], detail, whole))
        last = number
    return items_shown


def _object(members: Members, detail: Detail, whole: frozenset[int]) -> Members:
    """Keep the first members and those that mention an error, in their order."""
    most = detail.members
    kept = [
        (key, digest(value, detail, whole))
        for number, (key, value) in enumerate(members)
        if number < most
        or id(value) in detail.terms
        or (number < 5 * most and (_ERROR.search(key) or _speaks(value)))
    ]
    if len(kept) < len(members):
        kept.append((CUT_KEY, f"[{len(members) - len(kept):,} members left out]"))
    return Members(kept)


NAMED_CHARS, MAX_NAMED_ITEMS = 1_000, 40
"""Longest string that is kept whole because it is asked for, and most such items of a list."""


def values_by_terms(tree: Any, text: str, terms: QueryTerms) -> frozenset[int]:
    """The ids of the values that tell what is asked for, and of all that they are in: an object
    with a rare name in it or as its key, whole if it is small."""
    names = rare_names(text, terms) if terms else ()
    kept: set[int] = set()
    if names:
        _mark(tree, names, kept)
    return frozenset(kept)


def _mark(value: Any, names: tuple[str, ...], kept: set[int]) -> bool:
    """Whether a name is in this value; marks those in which one is."""
    if isinstance(value, str):
        found = any(name in value for name in names)
    elif isinstance(value, Members):
        found = False
        for key, inner in value:
            keyed = any(name in key for name in names)
            if keyed:
                _mark_all(inner, kept)
            if _mark(inner, names, kept) or keyed:
                found = True
                if isinstance(inner, str) or keyed:  # a plain member: its siblings tell about it
                    _mark_plain(value, kept)
    elif isinstance(value, list):
        marks = [_mark(inner, names, kept) for inner in value]  # all of them: it marks
        found = any(marks)
    else:
        return False
    if found:
        kept.add(id(value))
    return found


def _mark_plain(members: Members, kept: set[int]) -> None:
    if len(members) <= MAX_NAMED_ITEMS:
        kept.update(id(inner) for _, inner in members if not isinstance(inner, list))


def _mark_all(value: Any, kept: set[int]) -> None:
    kept.add(id(value))
    if isinstance(value, list):
        inner = [one for _, one in value] if isinstance(value, Members) else value
        for one in inner[:MAX_NAMED_ITEMS]:
            _mark_all(one, kept)


def _speaks(value: Any) -> bool:
    """Whether a string, or one inside an object, mentions an error."""
    if isinstance(value, Members):
        return any(
            _ERROR.search(key) and inner not in (None, False, "", [], "0")
            if type(inner) is not str
            else _ERROR.search(inner[:_SAMPLE]) or (inner and _ERROR.search(key))
            for key, inner in value[:40]
        )
    return type(value) is str and bool(_ERROR.search(value[:_SAMPLE]))


# --- which rows of a long list are kept: its ends, errors, outliers, and an even spread ---

_FAILED = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|s)?|exception|fatal|panic|denied|refused|critical|crash(?:ed)?|"
    r"time(?:d )?-?out)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
MAX_FAILED = 0.25
"""If a larger share of the rows mentions failure, the list is about failures, and those rows are
not preferred."""
MAX_CELLS = 32


def rank_rows(rows: Sequence[str]) -> Iterator[tuple[int, float, int]]:
    """(class, place within it, row), the most important row first.

    Classes: 0 the first and the last row, 1 errors, 2 outliers, 3 all others, ordered so that the
    first n are spread evenly for any n.
    """
    failed = {n for n, row in enumerate(rows) if _FAILED.search(row)}
    return rank_items(len(rows), failed, set(_standing_out(rows)))


def rank_items(size: int, failed: set[int], odd: set[int]) -> Iterator[tuple[int, float, int]]:
    """``rank_rows`` for ``size`` items; ``failed`` mention errors, ``odd`` are outliers."""
    if len(failed) > max(1, MAX_FAILED * size):
        failed = set()
    bits = max(1, (size - 1).bit_length())

    def spread(number: int) -> int:  # its bits reversed: 0, a half, a quarter, three quarters …
        return int(f"{number:0{bits}b}"[::-1], 2)

    seen = set[int]()
    for tier, rows in enumerate(({0, size - 1}, failed, odd)):
        for place, row in sorted((spread(row), row) for row in rows - seen):
            yield tier, place / (1 << bits), row
        seen |= rows
    for place in range(1 << bits):
        row = spread(place)
        if row < size and row not in seen:
            yield 3, place / (1 << bits), row


def kept_rows(rows: Sequence[str], kept: set[int]) -> Iterator[str]:
    """The kept rows in order, with the number of rows left out in each gap."""
    gone = 0
    for number, row in enumerate(rows):
        if number not in kept:
            gone += 1
            continue
        if gone:
            yield rows_left_out(gone)
        gone = 0
        yield row
    if gone:
        yield rows_left_out(gone)


def rows_left_out(rows: int) -> str:
    """``[214 rows left out]``"""
    return f"[{rows:,} row{'s' * (rows > 1)} left out]"


def _standing_out(rows: Sequence[str]) -> Iterator[int]:
    """Rows with the smallest or largest number of a column, or with a rare value."""
    table = [row.split("\t")[:MAX_CELLS] for row in rows]
    for at in range(max(map(len, table))):
        cells = [row[at] if at < len(row) else "" for row in table]
        tally = Counter(cells)
        if 2 <= len(tally) <= max(3, len(rows) // 10):
            few = {cell for cell, times in tally.items() if times <= max(1, len(rows) // 50)}
            yield from (n for n, cell in enumerate(cells) if cell in few)
        elif len(tally) > 1:
            numbers = [(float(cell), n) for n, cell in enumerate(cells) if _NUMBER.fullmatch(cell)]
            if 2 * len(numbers) > len(rows):
                yield min(numbers)[1]
                yield max(numbers)[1]
