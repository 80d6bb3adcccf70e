"""``trimtab replay``: recorded conversations through reduction policies, measured."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.amounts import many
from trimtab.cli import files
from trimtab.cli.exit_codes import DONE, UNREADABLE, USAGE, ExitWith
from trimtab.cli.logs import read_logs
from trimtab.cli.options import amounts_of
from trimtab.cli.progress import Progress
from trimtab.cli.terminal import Terminal, print_report
from trimtab.errors import MissingExtra

if TYPE_CHECKING:
    from trimtab.logs.recording import Recording
    from trimtab_lab.replay.summary import ReplaySummary

WINDOW = 100_000
"""Tokens, where no --window is given; the first line says so."""


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab replay``."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="logs, or folders of them")
    what = parser.add_argument_group("what is replayed")
    what.add_argument(
        "--window", action="append", type=amounts_of, metavar="TOKENS",
        help="one or more: 60k,100k,200k (default 100k)",
    )  # fmt: skip
    what.add_argument(
        "--advise", action="store_true",
        help="compare windows from 32k to the model's own, and say which to use",
    )  # fmt: skip
    what.add_argument(
        "--policy", action="append", metavar="NAME",
        help="one or more, comma-separated; NAME:N where it takes a number (--list names all); "
        "MODULE:CLASS or FILE.py:CLASS for one of yours",
    )  # fmt: skip
    what.add_argument("--id", metavar="TEXT", help="only recordings with this in their id")
    what.add_argument(
        "--outgrown", action=BooleanOptionalAction, default=True,
        help="only recordings that outgrow the smallest window (default), or all of them",
    )  # fmt: skip
    what.add_argument(
        "--above", type=float, default=1.0, metavar="N",
        help="of these, only those of more than N windows (default 1)",
    )  # fmt: skip
    what.add_argument("--limit", type=int, metavar="N", help="a random sample of N recordings")
    what.add_argument("--each", type=int, metavar="N", help="a random sample of N of each source")
    what.add_argument("--seed", type=int, default=0, help="of these samples (default 0)")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--prices", metavar="TABLE",
        help="default: claude-1h where the logs' cache writes were mostly for an hour, "
        "else claude-5m",
    )  # fmt: skip
    how.add_argument(
        "--columns", choices=("plain", "all"), default="plain",
        help="figures that explain themselves, or every one by source",
    )  # fmt: skip
    how.add_argument(
        "--by", choices=("source", "task", "all"), default="source",
        help="one row of the table for each of these (default: source)",
    )  # fmt: skip
    how.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")
    how.add_argument(
        "--keep-warm", action="store_true",
        help="play pings that keep an idle session's cache warm instead: each cap with what it "
        "saves (logs with times and usage)",
    )  # fmt: skip
    out = parser.add_argument_group("what is written")
    out.add_argument("--out", metavar="DIR", help="rows.jsonl (taken up again), .json, .csv, .html")
    out.add_argument("--json", metavar="FILE", help="all figures")
    out.add_argument("--csv", metavar="FILE", help="the rows of the table")
    out.add_argument("--html", metavar="FILE", help="a page")
    look = parser.add_argument_group("looking closer, with --turn N --policy NAME")
    look.add_argument("--turn", type=int, metavar="N", help="the N-th model call, from 0")
    look.add_argument("--show", action="store_true", help="what would be sent, as a diff")
    look.add_argument("--lost", action="store_true", help="what is lost, and where it stood")
    more = parser.add_argument_group("more")
    more.add_argument("--list", action="store_true", help="name policies and price tables")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Read, replay, print the table and write the files."""
    from trimtab_lab.replay import advice, policies, summary, table, verdict

    if args.list:
        return _list()
    if not args.files:
        raise ExitWith(USAGE, "name a FILE or a folder with logs")
    if args.keep_warm:
        return _keep_warm(args)
    if args.advise and args.policy:
        raise ExitWith(USAGE, "--advise compares windows: leave out --policy")
    names = [name for text in args.policy or policies.DEFAULT for name in text.split(",") if name]
    windows = [window for group in args.window or [] for window in group]
    if not windows and not args.advise:
        windows = [WINDOW]
        print(f"no --window given: {WINDOW:,} tokens", file=sys.stderr)
    if args.html:
        _check_pages()  # before hours of work
    recordings, left_out = _recordings(args, min(windows or advice.WINDOWS))
    named, args.prices = args.prices or "", args.prices or _paid(recordings)
    if args.turn is not None or args.show or args.lost:
        return _closer(args, recordings, names, windows[0])
    if args.advise:
        names, windows = list(advice.POLICIES), windows or advice.windows_for(recordings)
    results = _results(args, recordings, names, windows)
    summed = summary.ReplaySummary.of(
        results, prices=args.prices, by=_group(args.by), left_out=left_out, named=bool(named)
    )
    _write(args, summed)  # before anything is printed: who reads may stop reading
    if args.advise:
        return _advise(summed, left_out)
    print_report(verdict.verdict(summed.pooled, left_out, named).splitlines(), sys.stdout)
    print(f"\n{verdict.plain_table(summed.pooled, args.prices, named)}")
    if args.columns == "all":
        print(f"\n{table.table(summed.lines, prices=args.prices)}")
    return DONE


def _advise(summed: ReplaySummary, left_out: int) -> int:
    """Print what each window would have done, and which one to use."""
    from trimtab_lab.replay import advice, verdict

    offered = advice.choices(summed.pooled, in_dollars=not summed.named)
    if not offered:
        raise ExitWith(UNREADABLE, "trimtab failed at every window: look at one with --window 200k")
    print(f"{advice.table(offered)}\n\n{advice.sentence(offered)}")
    if left_out:
        print(verdict.left_out_note(left_out))
    return DONE


def _paid(recordings: Sequence[Recording]) -> str:
    """The price table of the cache that most of the recorded writes went to."""
    usages = [usage for one in recordings for usage in one.usages if usage is not None]
    hour, short = (sum(getattr(u, kind) for u in usages) for kind in ("written_1h", "written"))
    return "claude-1h" if hour > short else "claude-5m"


def _keep_warm(args: Namespace) -> int:
    """Print the savings by pings to an idle session's cache, for each cap on their cost."""
    import json

    from trimtab_lab.replay.bill import keep_warm
    from trimtab_lab.replay.bill.conversations import conversations

    sessions = keep_warm.warm_sessions(conversations(read_logs(args.files).recordings))
    if not sessions:
        raise ExitWith(
            UNREADABLE,
            "no session with times, usage and a cache of known lifetime: nothing can be measured",
        )
    results = keep_warm.frontier(sessions)
    if args.json:
        rows = [result.as_dict() for result in results]
        files.write(args.json, (json.dumps(rows, indent=2) + "\n").encode())
    if args.json != "-":
        print(keep_warm.as_text(sessions, results))
    return DONE


def _check_pages() -> None:
    from trimtab_lab.replay import html_report

    html_report.template()


def _group(by: str) -> Callable[[Any], str]:
    if by == "all":
        return lambda result: "all"
    if by == "task":
        return lambda result: f"{result['source']}/{result['task'] or 'unknown'}"
    return lambda result: str(result["source"])


def _recordings(args: Namespace, window: int) -> tuple[list[Any], int]:
    """(recordings to replay, how many were left out because they fit the window)."""
    from trimtab_lab.replay import job_runner
    from trimtab_lab.replay.recording_index import RecordingIndex

    logs = read_logs(args.files)
    recordings = [r for r in logs.recordings if not args.id or args.id in r.id]
    left_out = 0
    if args.outgrown and args.turn is None:
        sizes = [RecordingIndex(r).billed_tokens(r.turns[-1]) for r in recordings]
        left_out = sum(size <= window for size in sizes)
        least = max(1.0, args.above) * window
        recordings = [r for r, size in zip(recordings, sizes, strict=True) if size > least]
    if args.each is not None:
        recordings = job_runner.sample_each(recordings, args.each, args.seed)
    if args.limit is not None:
        recordings = job_runner.sample(recordings, args.limit, args.seed)
    calls = sum(len(recording.turns) for recording in recordings)
    twice = f", {logs.duplicates} logged twice" if logs.duplicates else ""
    print(
        f"{many(len(recordings), 'recording')} with {many(calls, 'model call')} from "
        f"{many(logs.files, 'file')}{twice}, {len(logs.problems):,} not readable",
        file=sys.stderr,
    )
    if not recordings:
        whole = "it fits" if left_out == 1 else f"all {left_out:,} fit"
        why = f": {whole} {window:,} tokens whole; --no-outgrown plays them"
        if not left_out:
            why = ": give logs of coding agents, as in ~/.claude/projects, or a corpus"
        raise ExitWith(UNREADABLE, f"nothing to replay in {' '.join(args.files)}{why}")
    return recordings, left_out


def _results(
    args: Namespace, recordings: Sequence[Any], names: Sequence[str], windows: Sequence[int]
) -> list[dict[str, Any]]:
    from trimtab_lab.replay import job_runner

    path = None
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        path = Path(args.out) / "rows.jsonl"
    return job_runner.replay(
        recordings, policies=names, windows=windows, store=job_runner.ResultFile(path),
        workers=args.workers, progress=Progress(),
    )  # fmt: skip


def _write(args: Namespace, summed: ReplaySummary) -> None:
    from trimtab_lab.replay import report

    folder = Path(args.out) if args.out else None
    targets = {
        kind: getattr(args, kind) or (str(folder / f"replay.{kind}") if folder else None)
        for kind in ("json", "csv", "html")
    }
    for kind, target in targets.items():
        if target:
            try:
                text = report.WRITERS[kind](summed)
            except MissingExtra as error:
                if getattr(args, kind):
                    raise
                print(f"trimtab: {Path(target).name} not written: {error}", file=sys.stderr)
                continue
            files.write(target, text.encode("utf-8", "replace"))


def _closer(args: Namespace, recordings: Sequence[Any], names: Sequence[str], window: int) -> int:
    from trimtab_lab.replay import call_inspector

    if args.turn is None or not args.policy or len(names) != 1:
        raise ExitWith(USAGE, "name one call and one policy: --turn N --policy NAME")
    if len(recordings) > 1:
        print(
            f"{many(len(recordings), 'recording')}, the first is shown; --id chooses",
            file=sys.stderr,
        )
    call = call_inspector.inspect_call(recordings[0], names[0], window, args.turn)
    terminal = Terminal.of_stdout()
    if args.show or not args.lost:
        print(call_inspector.request_diff(call, colour=terminal.colour))
    if args.lost:
        print(call_inspector.lost_identifiers(call))
    return DONE


def _list() -> int:
    from trimtab.pricing import prices
    from trimtab_lab.replay import policies

    print("policies:", *(f"  {name}" for name in policies.BUILT_IN), sep="\n")
    print("price tables:")
    for table in prices.TABLES.values():
        print(f"  {table.name:10} read {table.read:g}, write {table.write:g}: {table.about}")
    return DONE
