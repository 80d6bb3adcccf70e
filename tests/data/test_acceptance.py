"""Every recorded openai-chat and anthropic conversation, fitted at four windows and judged.

As a test it asserts the figures; as a program it prints them:
``python tests/data/test_acceptance.py``.  Counting and judging are done by judge.py, never by the
library.  Money, speed and recall are measured elsewhere (bench/).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from records import FORMATS, Record, before_last_turn, body, judge, records
from settings_words import as_keywords

import trimtab
from trimtab import CannotFit

pytestmark = pytest.mark.data

WINDOWS = (4_000, 16_000, 64_000, 200_000)
PROCESSES = 2
SAMPLE = 20
"""Every 20th conversation is also taken to its minimum, and to each other limit alone."""


@dataclass
class Row:
    """What became of one request at one window (or under one other limit)."""

    file: str
    id: str
    variant: str  # "before its last turn" | "as it stands"
    limit: str  # a window, or the limit that was set alone
    outcome: str = "same"  # same | fitted | cannot | wrong
    detail: str = ""
    messages: int = 0
    sent: int = 0
    untouched: int = 0
    repairs: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0


@dataclass
class Sweep:
    """All rows, and what they add up to."""

    rows: list[Row] = field(default_factory=list)

    def at(self, limit: str) -> list[Row]:
        return [row for row in self.rows if row.limit == limit]

    def of(self, outcome: str) -> list[Row]:
        return [row for row in self.rows if row.outcome == outcome]


# --- one conversation ----------------------------------------------------------------------------


def variants(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """The request before the last assistant turn, and the conversation as it was recorded."""
    whole = body(record)
    before = before_last_turn(whole)
    if before is not None:
        yield "before its last turn", before
    if before is None or len(before["messages"]) < len(whole["messages"]):
        yield "as it stands", whole


def examine(task: tuple[int, str, Record]) -> list[Row]:
    """All rows of one record."""
    number, file, record = task
    rows = []
    for variant, request in variants(record):
        for window in WINDOWS:
            row = Row(file, record["id"], variant, f"{window:,}")
            rows.append(guarded(row, fitted_at, request, record["format"], window))
        checks = [("no edits", nothing_to_do)]
        if number % SAMPLE == 0:
            checks += [("minimum", minimum_reached), ("request_bytes", bytes_alone)]
            checks += [("result_chars", chars_alone)]
        if judge.images(request, record["format"]):
            checks.append(("images", images_alone))
        if record["meta"].get("http_status") == 200:
            checks.append(("accepted with 200", accepted))
        for name, check in checks:
            rows.append(guarded(Row(file, record["id"], variant, name), check, request, record))
    return rows


def guarded(row: Row, check: Any, request: dict[str, Any], *more: Any) -> Row:
    """The row filled in; an exception that nobody expects is an outcome, too."""
    started = time.perf_counter()
    try:
        check(row, request, *more)
    except CannotFit as error:
        row.outcome, row.detail = "cannot", str(error)
    except Exception as error:
        row.outcome, row.detail = "wrong", f"{type(error).__name__}: {error}"[:300]
    row.seconds = time.perf_counter() - started
    return row


def fit(request: Any, format: str, window: int | None, **more: Any) -> Any:
    return trimtab.fit(
        request, **as_keywords(format=format, window=window, reserve=0, counter="o200k", **more)
    )


def fitted_at(row: Row, request: dict[str, Any], format: str, window: int) -> None:
    row.tokens_before = judge.tokens(request, format)
    fitted = fit(request, format, window)
    row.messages, row.sent = len(request["messages"]), len(fitted.request["messages"])
    row.tokens_after = judge.tokens(fitted.request, format)
    row.repairs = len(fitted.report.repairs)
    row.outcome = "same" if fitted.request is request else "fitted"
    kept = {id(message) for message in fitted.request["messages"]}
    row.untouched = sum(id(message) in kept for message in request["messages"])
    found = legal(request, fitted.request, format)
    if row.tokens_after > window:
        found.append(f"{row.tokens_after} tokens in a window of {window}")
    if fitted.report.tokens_after < row.tokens_after:
        found.append(f"reported {fitted.report.tokens_after} tokens, counted {row.tokens_after}")
    expect(row, found)


def violations(request: Any, format: str) -> list[Any]:
    """What ``check`` has against a request, but for settings that no record has (max_tokens)."""
    found = trimtab.check(request, format=format)
    return [one for one in found if one.rule != "missing_key"]


def legal(request: Any, sent: Any, format: str) -> list[str]:
    """What the judge, the library itself and the thinking rules have against it."""
    found = judge.problems(sent, format)
    found += [f"{one.rule} {one.path}: {one.message}" for one in violations(sent, format)]
    if format == "anthropic":
        found += judge.thinking_problems(request, sent)
    return found


def expect(row: Row, found: list[str]) -> None:
    if found:
        row.outcome, row.detail = "wrong", "; ".join(found)[:300]


# --- the other promises --------------------------------------------------------------------------


def nothing_to_do(row: Row, request: dict[str, Any], record: Record) -> None:
    """No edits: the same object, the same bytes; the judge and the library agree on legality."""
    format, found = record["format"], []
    sound = judge.problems(request, format) == []
    if sound != (violations(request, format) == []):
        found.append(f"sound by the judge: {sound}, by the library: {not sound}")
    if sound:
        raw = json.dumps(request).encode()
        if fit(request, format, 10**9).request is not request:
            found.append("not the same object")
        if fit(raw, format, 10**9).request is not raw:
            found.append("not the same bytes")
    expect(row, found)


def accepted(row: Row, request: dict[str, Any], record: Record) -> None:
    """A provider took the whole recorded request with 200."""
    whole = body(record)
    expect(row, [str(one) for one in violations(whole, record["format"])])


def minimum_reached(row: Row, request: dict[str, Any], record: Record) -> None:
    """Fitting to exactly the minimum succeeds, to one token less raises."""
    format, found = record["format"], []
    try:
        fit(request, format, 20)
        return
    except CannotFit as error:
        minimum = error.minimum
    sent = fit(request, format, minimum).request
    found += legal(request, sent, format)
    row.tokens_after = judge.tokens(sent, format)
    if row.tokens_after != minimum:
        found.append(f"{row.tokens_after} tokens at a minimum of {minimum}")
    try:
        fit(request, format, minimum - 1)
        found.append(f"fits below its minimum of {minimum}")
    except CannotFit:
        row.outcome = "fitted"
    expect(row, found)


def bytes_alone(row: Row, request: dict[str, Any], record: Record) -> None:
    """A quarter of the bytes, or the minimum where that is more; the minimum is then used up."""
    format, found = record["format"], []
    allowed = max(8_000, judge.request_bytes(request) // 4)
    try:
        sent = fit(request, format, 10**9, settings=trimtab.Settings(request_bytes=allowed)).request
    except CannotFit as error:
        allowed = error.minimum
        sent = fit(request, format, 10**9, settings=trimtab.Settings(request_bytes=allowed)).request
        if judge.request_bytes(sent) < 0.9 * allowed:
            found.append(f"{judge.request_bytes(sent)} bytes at a minimum of {allowed}")
    found += legal(request, sent, format)
    if judge.request_bytes(sent) > allowed:
        found.append(f"{judge.request_bytes(sent)} bytes, {allowed} allowed")
    row.outcome = "fitted"
    expect(row, found)


def chars_alone(row: Row, request: dict[str, Any], record: Record) -> None:
    sent = fit(
        request, record["format"], 10**9, settings=trimtab.Settings(result_chars=1_000)
    ).request
    found = legal(request, sent, record["format"])
    longest = max(judge.result_chars(sent, record["format"]), default=0)
    if longest > 1_000:
        found.append(f"a result of {longest} chars, 1,000 allowed")
    row.outcome = "fitted"
    expect(row, found)


def images_alone(row: Row, request: dict[str, Any], record: Record) -> None:
    allowed = judge.images(request, record["format"]) - 1
    sent = fit(request, record["format"], 10**9, settings=trimtab.Settings(images=allowed)).request
    found = legal(request, sent, record["format"])
    if judge.images(sent, record["format"]) > allowed:
        found.append(f"{judge.images(sent, record['format'])} images, {allowed} allowed")
    row.outcome = "fitted"
    expect(row, found)


# --- all of them ---------------------------------------------------------------------------------


def run(data: list[tuple[str, Record]]) -> Sweep:
    """Examine every record, on two cores."""
    tasks = [(number, file, record) for number, (file, record) in enumerate(data)]
    judge.o200k()
    with multiprocessing.Pool(PROCESSES) as pool:
        found = Sweep()
        for rows in pool.imap_unordered(examine, tasks, chunksize=8):
            found.rows += rows
    return found


def untouched_share(rows: list[Row], of: str) -> float:
    """Share of the messages ("sent" or given) that are sent as the very objects that came in.

    Over requests that were edited, pooled; a dropped message counts against the given ones only.
    """
    edited = [row for row in rows if row.outcome == "fitted"]
    total = sum(row.sent if of == "sent" else row.messages for row in edited)
    return sum(row.untouched for row in edited) / max(1, total)


COLUMNS = "{:>18}" + "{:>10}" * 8


def table(sweep: Sweep) -> str:
    """The figures, a line for each limit; then what could not fit and what went wrong."""
    counted = ("same", "fitted", "cannot", "wrong")
    lines = [
        "untouched: messages sent as the very objects that came in, of those sent / of all given",
        COLUMNS.format("limit", "requests", *counted, "of sent", "of given", "s"),
    ]
    for limit in dict.fromkeys(row.limit for row in sweep.rows):
        rows = sweep.at(limit)
        outcomes = Counter(row.outcome for row in rows)
        shares = ["", ""]
        if any(row.messages for row in rows):
            shares = [f"{untouched_share(rows, of):.1%}" for of in ("sent", "given")]
        seconds = f"{sum(row.seconds for row in rows):.1f}"
        counts = [outcomes[name] for name in counted]
        lines.append(COLUMNS.format(limit, len(rows), *counts, *shares, seconds))
    for row in [*sweep.of("cannot"), *sweep.of("wrong")]:
        lines.append(f"{row.outcome} at {row.limit}: {row.file} {row.id} ({row.variant})")
        lines.append(f"    {row.detail}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def sweep(data: list[tuple[str, Record]]) -> Sweep:
    found = run(data)
    print("\n" + table(found))
    return found


def test_whatever_was_recorded_goes_out_legal_and_fits_by_an_independent_count(
    sweep: Sweep,
) -> None:
    assert [(row.id, row.variant, row.limit, row.detail) for row in sweep.of("wrong")] == []


def test_nothing_is_too_big_at_16k_and_above_and_at_most_2_percent_at_4k(sweep: Sweep) -> None:
    for window in WINDOWS:
        rows = sweep.at(f"{window:,}")
        cannot = [row.detail for row in rows if row.outcome == "cannot"]
        assert len(cannot) <= (0.02 * len(rows) if window == 4_000 else 0), cannot


def test_each_other_limit_is_met_alone_and_the_minimum_is_reached(sweep: Sweep) -> None:
    limits = ("minimum", "request_bytes", "result_chars", "images", "accepted with 200")
    assert [row for limit in limits for row in sweep.at(limit) if row.outcome == "cannot"] == []
    assert all(sweep.at(limit) for limit in limits)


def test_at_16k_at_least_60_percent_of_the_messages_sent_are_the_same_objects(sweep: Sweep) -> None:
    assert untouched_share(sweep.at("16,000"), "sent") >= 0.60


def test_broken_conversations_are_repaired(sweep: Sweep) -> None:
    broken = [row for row in sweep.at("200,000") if row.file.startswith("broken-")]
    assert broken
    assert all(row.outcome == "fitted" and row.repairs for row in broken), broken


if __name__ == "__main__":
    if os.environ.get("FILES"):
        chosen = os.environ["FILES"].split(",")
        print(table(run([one for one in records(*FORMATS) if one[0] in chosen])))
    else:
        print(table(run(list(records(*FORMATS)))))
