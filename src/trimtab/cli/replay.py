"""``trimtab replay``: real transcripts through reduction policies, measured.

Knows options, progress and files.  Does not know how anything is measured; loads it when run.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trimtab.cli import files
from trimtab.cli.amounts import amount
from trimtab.cli.exits import DONE, MISSING, UNREADABLE, USAGE, Stop
from trimtab.cli.screen import Screen, clean

SHOWN_PROBLEMS = 5


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab replay``."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="logs, or folders of them")
    what = parser.add_argument_group("what is replayed")
    what.add_argument("--window", action="append", type=amount, metavar="TOKENS", help="32k, …")
    what.add_argument(
        "--policy", action="append", metavar="NAME",
        help="one or more, comma-separated; NAME:N where it takes a number (--list names all)",
    )  # fmt: skip
    what.add_argument("--id", metavar="TEXT", help="only recordings with this in their id")
    what.add_argument(
        "--outgrown", action="store_true", help="only recordings that outgrow the smallest window"
    )
    what.add_argument("--limit", type=int, metavar="N", help="a random sample of N recordings")
    what.add_argument("--each", type=int, metavar="N", help="a random sample of N of each source")
    what.add_argument("--seed", type=int, default=0, help="of these samples (default 0)")
    how = parser.add_argument_group("how")
    how.add_argument("--prices", default="claude-5m", metavar="TABLE", help="default claude-5m")
    how.add_argument("--by", choices=("source", "task", "all"), default="source")
    how.add_argument("--engine", choices=("local", "ray"), default="local")
    how.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")
    out = parser.add_argument_group("what is written")
    out.add_argument("--out", metavar="DIR", help="rows.jsonl (taken up again), .json, .csv, .html")
    out.add_argument("--json", metavar="FILE")
    out.add_argument("--csv", metavar="FILE")
    out.add_argument("--html", metavar="FILE")
    look = parser.add_argument_group("looking closer, with --turn N --policy NAME")
    look.add_argument("--turn", type=int, metavar="N", help="the N-th model call, from 0")
    look.add_argument("--show", action="store_true", help="what would be sent, as a diff")
    look.add_argument("--lost", action="store_true", help="what is lost, and where it stood")
    more = parser.add_argument_group("more")
    more.add_argument("--list", action="store_true", help="name policies and price tables")
    more.add_argument(
        "--setup-peers", action="store_true", help="install the other libraries, each by itself"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Read, replay, print the table and write the files."""
    from trimtab.replay import policies, summary, table

    if args.list:
        return _list()
    if args.setup_peers:
        return _setup()
    if not args.files:
        raise Stop(USAGE, "name a FILE or a folder with logs")
    names = [name for text in args.policy or policies.DEFAULT for name in text.split(",") if name]
    windows = args.window or [32_000]
    recordings = _recordings(args, min(windows))
    if args.turn is not None or args.show or args.lost:
        return _closer(args, recordings, names, windows[0])
    results = _results(args, recordings, names, windows)
    by = _group(args.by)
    lines = summary.summarize(results, prices=args.prices, by=by)
    _write(args, results, lines)  # before anything is printed: who reads may stop reading
    print(table.table(lines, prices=args.prices))
    return DONE


def _group(by: str) -> Callable[[Any], str]:
    if by == "all":
        return lambda result: "all"
    if by == "task":
        return lambda result: f"{result['source']}/{result['task'] or 'unknown'}"
    return lambda result: str(result["source"])


def _recordings(args: Namespace, window: int) -> list[Any]:
    from trimtab.replay import engine, reading
    from trimtab.replay.index import Index

    for name in args.files:
        if "://" not in name and not Path(name).exists():
            raise Stop(MISSING, f"{name}: no such file")
    found = reading.read(args.files)
    for problem in found.problems[:SHOWN_PROBLEMS]:
        print(clean(f"trimtab: {problem}"), file=sys.stderr)
    if len(found.problems) > SHOWN_PROBLEMS:
        more = len(found.problems) - SHOWN_PROBLEMS
        print(f"trimtab: and {more} more that could not be read", file=sys.stderr)
    recordings = [r for r in found.recordings if not args.id or args.id in r.id]
    if args.outgrown:
        recordings = [r for r in recordings if Index(r).tokens(r.turns[-1]) > window]
    if args.each is not None:
        recordings = engine.sample_each(recordings, args.each, args.seed)
    if args.limit is not None:
        recordings = engine.sample(recordings, args.limit, args.seed)
    calls = sum(len(recording.turns) for recording in recordings)
    twice = f", {found.duplicates} logged twice" if found.duplicates else ""
    print(
        f"{len(recordings):,} recordings with {calls:,} model calls from {found.files:,} files"
        f"{twice}, {len(found.problems):,} not readable",
        file=sys.stderr,
    )
    if not recordings:
        raise Stop(UNREADABLE, "nothing to replay in there")
    return recordings


def _results(
    args: Namespace, recordings: Sequence[Any], names: Sequence[str], windows: Sequence[int]
) -> list[dict[str, Any]]:
    from trimtab.replay import engine

    path = None
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        path = Path(args.out) / "rows.jsonl"
    return engine.replay(
        recordings, policies=names, windows=windows, store=engine.Store(path),
        engine=args.engine, workers=args.workers, progress=_Progress(),
    )  # fmt: skip


class _Progress:
    """A bar on a terminal; a line every tenth where standard error is a file."""

    def __init__(self) -> None:
        self.screen, self.began, self.said = Screen.of_stdout(), time.monotonic(), -1

    def __call__(self, done: int, total: int) -> None:
        if not total:
            return
        share, seconds = done / total, time.monotonic() - self.began
        text = f"{done:,} of {total:,} calls, {seconds:.0f} s"
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            bar = self.screen.bar(share, 30).ljust(30)
            print(f"\r{bar} {text}", end=end, file=sys.stderr, flush=True)
        elif int(10 * share) > self.said:
            self.said = int(10 * share)
            print(text, file=sys.stderr, flush=True)


def _write(args: Namespace, results: list[dict[str, Any]], lines: Sequence[Any]) -> None:
    from trimtab.replay import report

    folder = Path(args.out) if args.out else None
    targets = {
        kind: getattr(args, kind) or (str(folder / f"replay.{kind}") if folder else None)
        for kind in ("json", "csv", "html")
    }
    for kind, target in targets.items():
        if target:
            text = report.WRITERS[kind](results, lines, args.prices)
            files.write(target, text.encode("utf-8", "replace"))


def _closer(args: Namespace, recordings: Sequence[Any], names: Sequence[str], window: int) -> int:
    from trimtab.replay import debugger

    if args.turn is None or not args.policy or len(names) != 1:
        raise Stop(USAGE, "name one call and one policy: --turn N --policy NAME")
    if len(recordings) > 1:
        print(f"{len(recordings)} recordings, the first is shown; --id chooses", file=sys.stderr)
    look = debugger.look(recordings[0], names[0], window, args.turn)
    screen = Screen.of_stdout()
    if args.show or not args.lost:
        print(debugger.shown(look, colour=screen.colour))
    if args.lost:
        print(debugger.lost(look))
    return DONE


def _list() -> int:
    from trimtab.money import prices
    from trimtab.replay import policies

    print("policies:", *(f"  {name}" for name in policies.names()), sep="\n")
    print("price tables:")
    for table in prices.TABLES.values():
        print(f"  {table.name:10} read {table.read:g}, write {table.write:g}: {table.about}")
    return DONE


def _setup() -> int:
    from trimtab.replay import peers

    for line in peers.setup():
        print(line, flush=True)
    return DONE
