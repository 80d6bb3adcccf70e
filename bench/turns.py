"""Prints what a turn costs in a session: nothing to do, standing edits, a store, and n turns.

    python bench/turns.py [sqlite:///… redis://… postgresql://…]

Wall time of made-up coding sessions (varied lines).  ``nothing to do`` is the very request again,
with the caller's own objects; ``goes on`` has one new turn; a *wait* is what a store adds to a turn
that made an edit, told by the same session without one.  Growth: × is to half as many turns.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

from speed import conversation  # noqa: E402

import trimtab  # noqa: E402

RUNS = 30
MARKS = (75, 150, 300, 600, 1200)
"""Turns up to which the cost of a long session is told."""


def wall_ms(session: trimtab.Session, request: Any) -> float:
    """Milliseconds of one turn."""
    start = time.perf_counter()
    session.fit(request)
    return 1000 * (time.perf_counter() - start)


def told(name: str, times: list[float]) -> None:
    """Median, 99th percentile and least."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    print(f"  {name:44} {statistics.median(times):8.3f} {p99:8.3f} {ordered[0]:8.3f}")


def turns(store: str | None) -> None:
    """A request of some 200k tokens: the same again, and going on."""
    whole = conversation(420)
    messages = whole["messages"]
    for name, window in (("nothing to do", 10**7), ("standing edits", 128_000)):
        session = trimtab.Session(
            window=window, store=store, settings=trimtab.Settings(counter="o200k")
        )
        request = {**whole, "messages": messages[:-80]}
        session.fit(request)
        session.fit(request)
        told(f"{name}, again", [wall_ms(session, request) for _ in range(RUNS)])
        longer = [{**whole, "messages": messages[:number]} for number in range(-78, 0, 2)]
        told(f"{name}, goes on", [wall_ms(session, one) for one in longer])
        session.close()


def growth(format: str, marks: tuple[int, ...]) -> None:
    """One session, and what all its turns cost up to each mark; what is counted is counted before
    and the garbage collector rests, so that only the work of turns is told."""
    print(f" {format}")
    for name, window, broken in (
        ("no edit", 10**7, False), ("a call without result", 10**7, True),
        ("batches", 40_000, False), ("batches, early", 10_000, False),
    ):  # fmt: skip
        if broken and format != "anthropic":  # a conversion would mend it
            continue
        request = conversation(marks[-1], 500)
        if broken:
            request["messages"][4]["content"] = "Stop. Go on with the next one."
        if format != "anthropic":
            request = trimtab.convert(request, format, format="anthropic").request
        played(request, window)
        gc.collect()
        gc.disable()
        times, batches = played(request, window)
        gc.enable()
        before = 0.0
        for mark in marks:
            spent, had = 1000 * sum(times[:mark]), batches[mark - 1]
            grown = f"×{spent / before:.2f}" if before else ""
            print(f"  {name}, {mark:5} turns, {had:3} batches {spent:12.1f} {grown:>8}")
            before = spent


def played(request: dict[str, Any], window: int) -> tuple[list[float], list[int]]:
    """Seconds of processor time of each turn of a session, and how many batches it had by then."""
    session = trimtab.Session(window=window, settings=trimtab.Settings(counter="o200k"))
    key = next(key for key in ("messages", "input", "contents") if key in request)
    messages, times, batches, had = request[key], list[float](), list[int](), 0
    for number in range(1, len(messages) + 1, 2):
        start = time.process_time()
        done = session.fit({**request, key: messages[:number]})
        times.append(time.process_time() - start)
        had += any(edit.new for edit in done.report.edits)
        batches.append(had)
    return times, batches


def waits(url: str) -> None:
    """What a store adds to turns that make edits, and to those that do not."""
    with_edit: list[float] = []
    without: list[float] = []
    for seed in range(6):
        request = conversation(120, 400 + seed)
        request["messages"][0]["content"] += f" {seed} {time.time_ns()}"
        own = trimtab.Session(window=12_000, store=url, settings=trimtab.Settings(counter="o200k"))
        spent: list[float] = []
        _timed(own, spent)
        messages = request["messages"]
        for number in range(1, len(messages) + 1, 2):
            spent.clear()
            done = own.fit({**request, "messages": messages[:number]})
            new = any(edit.new for edit in done.report.edits)
            (with_edit if new else without).append(sum(spent))
        own.close()
    if with_edit:
        told(f"store: a turn with an edit ({len(with_edit)})", with_edit)
    told(f"store: a turn without ({len(without)})", without)


def _timed(session: trimtab.Session, spent: list[float]) -> None:
    """Have a session's store calls measured."""
    conversations: Any = session._conversations

    def timed(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return call(*given, **named)
        finally:
            spent.append(1000 * (time.perf_counter() - start))

    for name in ("conversation", "refresh", "has_news", "save", "new_facts"):
        setattr(conversations, name, partial(timed, getattr(conversations, name)))


def main() -> None:
    """Print the table."""
    print(f"  {'milliseconds':44} {'median':>8} {'p99':>8} {'least':>8}")
    turns(None)
    with tempfile.TemporaryDirectory() as folder:
        file = f"sqlite:///{folder}/bench.db"
        print(" with SQLite")
        turns(file)
        for url in (file, *sys.argv[1:]):
            print(f" {url.split(':')[0]}")
            waits(url)
    growth("anthropic", MARKS)
    for format in ("gemini", "openai-chat", "bedrock", "openai-responses"):
        growth(format, MARKS[2:4])


if __name__ == "__main__":
    main()
