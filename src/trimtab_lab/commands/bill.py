"""``trimtab bill``: what conversations cost, and what they would have cost otherwise."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from trimtab.amounts import many
from trimtab.cli import files
from trimtab.cli.exit_codes import DONE, UNREADABLE, USAGE, ExitWith
from trimtab.cli.logs import read_logs
from trimtab.cli.options import amount
from trimtab.cli.progress import Progress
from trimtab.cli.store_options import existing_store
from trimtab.cli.terminal import print_report

if TYPE_CHECKING:
    from trimtab_lab.replay.bill.report import Bill

STORE_SCHEMES = ("sqlite", "redis", "rediss", "postgresql", "postgres")

GROUPS = ("session", "agent", "day", "model", "source", "tenant")


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab bill``."""
    parser.add_argument(
        "logs", nargs="+", metavar="LOGS|STORE",
        help="session logs of coding agents, or folders of them; or the store of a proxy: "
        "sqlite:///file.db, redis://…, postgresql://…",
    )  # fmt: skip
    parser.add_argument(
        "--by", choices=GROUPS, default="session", help="whose rows are printed; default: session"
    )
    parser.add_argument(
        "--window", type=amount, metavar="TOKENS",
        help="compare policies at this window (default: the one that each conversation had)",
    )  # fmt: skip
    parser.add_argument(
        "--paid-only", action="store_true", help="what was paid, without other policies"
    )
    parser.add_argument("--json", metavar="FILE", help="all figures; - is standard output")
    parser.add_argument("--csv", metavar="FILE", help="a line for each session, day and model")
    parser.add_argument("--html", metavar="FILE", help="the same as a page")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Read, add up, print and write the files."""
    from trimtab_lab.replay.bill import report

    if args.html:
        report.template()  # before the work
    stores = [name for name in args.logs if name.partition("://")[0] in STORE_SCHEMES]
    if stores and len(args.logs) > 1:
        raise ExitWith(USAGE, "one store, or logs: not both")
    bill = _of_store(stores[0], args.by) if stores else _of_logs(args)
    targets = {kind: getattr(args, kind) for kind in report.WRITERS if getattr(args, kind)}
    for kind, target in targets.items():
        files.write(target, report.WRITERS[kind](bill).encode("utf-8", "replace"))
    if "-" not in targets.values():
        print_report(report.as_text(bill).splitlines(), sys.stdout)
    return DONE


def _of_store(url: str, by: str) -> Bill:
    from trimtab_lab.replay.bill.store import bill_of_store

    bill = bill_of_store(existing_store(url), by=by)
    if not bill.calls:
        raise ExitWith(UNREADABLE, "no usage in this store: a proxy writes it, `trimtab proxy`")
    return bill


def _of_logs(args: Namespace) -> Bill:
    from trimtab_lab.replay.bill.logs import bill_of

    logs = read_logs(args.logs)
    bill = bill_of(
        logs.recordings, by=args.by, policies=not args.paid_only, window=args.window,
        progress=Progress("conversations"),
    )  # fmt: skip
    if not bill.calls:
        raise ExitWith(
            UNREADABLE,
            f"no usage in {many(logs.files, 'file')} of {' '.join(args.logs)}: a bill needs logs "
            "that say what each call was billed, as in ~/.claude/projects",
        )
    return bill
