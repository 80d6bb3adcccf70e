"""``trimtab search``: finds lines in what was cut, as the recall tool does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from trimtab.cli import files
from trimtab.cli.exit_codes import DONE, NO_ORIGINAL, ExitWith
from trimtab.cli.originals import add_source, handle_of, originals_of
from trimtab.journal import excerpts


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab search``."""
    parser.add_argument("text", metavar="TEXT", help="words of the line")
    parser.add_argument(
        "handle", metavar="HANDLE", nargs="?", help="only in the original of this cut"
    )
    add_source(parser)
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="file for the lines")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print the lines, each with its handle."""
    originals = originals_of(args)
    handle = args.handle and handle_of(originals, args.handle)
    found = excerpts.answer(originals, {"handle": handle, "search": args.text})
    if found.failed:
        raise ExitWith(NO_ORIGINAL, found.text)
    files.write(args.output, f"{found.text}\n".encode("utf-8", "surrogatepass"))
    return DONE
