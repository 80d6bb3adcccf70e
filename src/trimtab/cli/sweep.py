"""``trimtab sweep``: take the newest tool results out of a conversation, recallable."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

import trimtab
from trimtab.amounts import many
from trimtab.cli import files, journal_file
from trimtab.cli.exit_codes import DONE
from trimtab.cli.options import add_output, add_request, amount, setting
from trimtab.cli.store_options import STORES, add_tenant
from trimtab.cli.terminal import print_report
from trimtab.journal import file_format
from trimtab.session import SessionKeywords
from trimtab.settings import NO_WINDOW, Settings


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab sweep``."""
    add_request(parser, "format", "model", "counter", "protected_tools")
    parser.add_argument(
        "--newest", type=amount, metavar="N",
        help="how many results, newest first (default: all that came since the user spoke)",
    )  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--journal", metavar="FILE", help="keep the choice and the originals there")
    where.add_argument(
        "--store", metavar="URL",
        help=f"keep them there: who fits this conversation with it next sends no more; {STORES}",
    )  # fmt: skip
    add_tenant(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Sweep, write the request, and print what was removed."""
    data = files.request_of(args)
    keywords: SessionKeywords = {
        "window": NO_WINDOW, "reserve": 0,
        "recall": args.journal is not None or args.store is not None,
        "format": setting(args, "format"), "model": setting(args, "model"),
        "settings": Settings(
            trigger=1.0, counter=setting(args, "counter"),
            protected_tools=setting(args, "protected_tools") or (),
        ),
    }  # fmt: skip
    if args.store is not None:
        keywords["store"], keywords["tenant"] = args.store, args.tenant
    elif args.journal is not None:
        keywords["journal"] = file_format.to_dict(journal_file.load(args.journal))
    session = trimtab.Session(**keywords)
    try:
        removed = session.sweep(data, args.newest).done
        fitted = session.fit(data)
        if args.journal is not None:
            journal_file.save(args.journal, session.journal)
    finally:
        session.close()
    unseen = files.deliver(args.output, fitted.request)
    lines = [f"{result.tokens:>9,} tokens  {result.about}" for result in removed]
    before, after = fitted.tokens_before, fitted.tokens_after
    lines.append(f"{many(len(removed), 'result')} taken out: {before:,} → {after:,} tokens")
    if removed and args.journal is None and args.store is None:
        lines.append("the originals are not kept: --journal FILE or --store URL would keep them")
    lines += [unseen] if unseen else []
    print_report(lines, sys.stderr, "")
    return DONE
