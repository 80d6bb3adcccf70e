"""``trimtab batch``: whole corpora of requests made to fit, for training and evaluation."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import Any

from trimtab.amounts import many
from trimtab.cli.exit_codes import DONE, UNREADABLE, VIOLATIONS, ExitWith
from trimtab.cli.options import add_no_config, add_settings, amount, loaded_settings
from trimtab.cli.progress import ProgressLine
from trimtab.cli.terminal import clean
from trimtab.config import SETTINGS

SHARD_BYTES = 32_000_000
_REDRAWN_SECONDS = 0.2


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab batch``: every setting, and how the work is done."""
    parser.add_argument(
        "source", metavar="SRC", help="a file, a folder or an address such as s3://bucket/folder"
    )
    parser.add_argument("out", metavar="DST", help="a new folder, or that of a run to go on with")
    add_no_config(parser)
    how = parser.add_argument_group("how")
    how.add_argument(
        "--key", metavar="NAME",
        help="key or column that holds the request (default: the record itself, or the key that "
        "logs use: body, request, …)",
    )  # fmt: skip
    how.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    how.add_argument(
        "--engine", choices=("local", "ray"), default="local",
        help="this machine (default), or Ray Data on the cluster that RAY_ADDRESS names",
    )  # fmt: skip
    how.add_argument(
        "--shard-bytes", type=amount, default=SHARD_BYTES, metavar="BYTES",
        help="bytes of input for one file of output (default 32m); what a kill can lose",
    )  # fmt: skip
    how.add_argument(
        "--allow-failures", action="store_true",
        help="exit with 0 though records failed (default: 1)",
    )  # fmt: skip
    how.add_argument(
        "--originals", action="store_true",
        help="also write what was cut in originals/, for trimtab recall --journal FILE; with "
        "--recall markers name the handles",
    )  # fmt: skip
    add_settings(parser, SETTINGS)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Fit the corpus and print a summary."""
    from trimtab_lab import batch

    loaded = loaded_settings(args)
    for line in (*(f"settings from {one}" for one in loaded.sources), *loaded.problems):
        print(clean(line), file=sys.stderr)
    try:
        finished = batch.run(
            args.source, args.out, settings=loaded.settings(), key=args.key, jobs=args.jobs,
            engine=args.engine, shard_bytes=args.shard_bytes, originals=args.originals,
            progress=_BatchProgress(),
        )  # fmt: skip
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            name = error.filename or args.source
            raise ExitWith(UNREADABLE, f"{name}: {error.strerror or error}") from None
        raise ExitWith(UNREADABLE, f"{error}; start it again to go on") from None
    print("\n".join(map(clean, _summary(finished, args.out))), file=sys.stderr)
    records, errors = finished.manifest["records"], finished.manifest["errors"]
    if not records["written"]:
        none = f"none of {many(records['read'], 'record')} could be fitted"
        advice = {
            "InvalidRequest: no request": "; --key names where a record has its request",
            "InvalidRequest: not JSON": "; give JSON lines (.jsonl), JSON (.json) or .parquet",
        }
        (cause,) = errors if len(errors) == 1 else ("",)
        raise ExitWith(VIOLATIONS, none + advice.get(cause, ""))
    return VIOLATIONS if records["failed"] and not args.allow_failures else DONE


def _summary(finished: Any, out: str) -> list[str]:
    tree = finished.manifest
    records, distinct = tree["records"], tree["distinct"]
    lines = [
        f"{records['written']:,} of {records['read']:,} records written to {out}, "
        f"{distinct['changed']:,} of them changed: "
        f"{distinct['tokens_before']:,} → {distinct['tokens_after']:,} tokens"
    ]
    if records["repeated"]:
        lines.append(f"{records['repeated']:,} the same as an earlier one, counted once")
    if finished.taken_up:
        lines.append(f"{finished.taken_up:,} of {finished.shards:,} shards were done already")
    lines += [
        f"  {kind:16} ×{sums['count']:<9,} {sums['tokens_before']:>13,} → "
        f"{sums['tokens_after']:>13,} tokens"
        for kind, sums in distinct["edits"].items()
    ]
    if repairs := distinct["repairs"]:
        by_rule = ", ".join(f"{count:,} × {rule}" for rule, count in repairs.items())
        total = many(sum(repairs.values()), "repair")
        lines.append(f"  {total}: {by_rule}; --strict makes errors of them")
    if records["failed"]:
        lines.append(f"{records['failed']:,} could not be fitted: see {out}/errors")
        for kind, count in tree["errors"].items():
            # a manifest of an older version has no first errors
            first = tree.get("first_errors", {}).get(kind)
            why = f", first {_place(first)}: {first['message']}" if first else ""
            lines.append(f"  {count:,} × {kind}{why}")
    return lines


def _place(first: dict[str, Any]) -> str:
    """``in.jsonl, line 3 (byte 286,723)``."""
    if "line" in first:
        return f"{first['file']}, line {first['line']:,} (byte {first['at']:,})"
    unit = {"parquet": "row", "session": "conversation"}.get(first.get("kind", ""))
    return f"{first['file']}, {unit} {first['at'] + 1:,}" if unit else str(first["file"])


class _BatchProgress:
    """Progress with rate and time left."""

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._drawn = self._line.began

    def __call__(self, done: int, total: int, fresh: int) -> None:
        if not total:
            return
        now = time.monotonic()
        if self._line.is_terminal:
            if done < total and fresh and now - self._drawn < _REDRAWN_SECONDS:
                return
            self._drawn = now
        self._line.show(done / total, _pace(done, total, fresh, now - self._line.began))


def _pace(done: int, total: int, fresh: int, seconds: float) -> str:
    """``1,204 of 10,000 MB, 3.1 MB/s, 47:20 left``."""
    text = f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
    if not fresh or seconds <= 0:
        return text
    left = int((total - done) * seconds / fresh)
    minutes, left = divmod(left, 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
    return f"{text}, {fresh / seconds / 1e6:,.1f} MB/s, {clock} left"
