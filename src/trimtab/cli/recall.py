"""``trimtab recall``: an original back, whole, in part, or the lines that hold some words.

Knows where originals may be kept: the file of ``fit --journal``, or a store.  Does not know how an
edit was made.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trimtab.cli import files, journal_file
from trimtab.cli.exits import DONE, MISSING, NO_ORIGINAL, Stop
from trimtab.cli.screen import clean
from trimtab.errors import UnknownHandle
from trimtab.fitted import recall
from trimtab.turns import passages
from trimtab.turns.stored import Stored

MOST_NAMED = 50
STORES = "sqlite:///file.db, redis://…, postgresql://…"


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab recall``."""
    parser.add_argument("handle", metavar="HANDLE", help="as the report prints it")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--journal", metavar="FILE", help="of an earlier fit --journal")
    where.add_argument("--store", metavar="URL", help=STORES)
    add_tenant(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--range", type=_range, metavar="A:B", help="characters A up to B; either may be left out"
    )
    what.add_argument("--search", metavar="TEXT", help="only the lines that hold these words")
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="file for the original")
    parser.set_defaults(run=run)


def add_tenant(parser: ArgumentParser) -> None:
    """--tenant NAME."""
    parser.add_argument("--tenant", default="default", metavar="NAME", help="whose part of a store")


def stored(args: Namespace) -> Stored:
    """The tenant's originals in the store that the options name."""
    from trimtab import stores

    return Stored(stores.open(args.store, args.tenant), time.time)


def others(args: Namespace) -> str:
    """Whose originals a store has, where it has none of the tenant named; else ""."""
    from trimtab import stores

    known = {row.tenant for row in stores.open_store(args.store).kept()}
    if args.tenant in known:
        return ""
    names = ", ".join(f"--tenant {name}" for name in sorted(known)[:MOST_NAMED])
    here = f"here are: {names}" if names else "a proxy's are called like --tenant anthropic/local"
    return clean(f"nothing of tenant {args.tenant}; {here}")


def run(args: Namespace) -> int:
    """Print the exact original or part of it, not a character more."""
    if args.journal is not None:
        originals = journal_file.load(args.journal, must_exist=True).originals
        text = recall(originals, args.handle)
    else:
        _there(args.store)
        try:
            text = stored(args).recall(args.handle)
        except UnknownHandle as error:
            more = others(args)
            raise UnknownHandle(f"{error}; {more}" if more else str(error)) from None
    if args.search is not None:
        found = passages.hits(text, args.search, most=len(text) + 1)
        if not found:
            print("trimtab: no line of the original holds that", file=sys.stderr)
            return NO_ORIGINAL
        text = "".join(f"{hit.start}:{hit.end}\t{hit.text}\n" for hit in found)
    elif args.range is not None:
        text = passages.part(text, *args.range)
    files.write(args.output, text.encode("utf-8", "surrogatepass"))
    return DONE


def _there(url: str) -> None:
    """Who only reads makes no new file where a name was mistyped."""
    parts = urlsplit(url)
    file = Path(unquote(parts.path)[1:])
    if parts.scheme == "sqlite" and not file.is_file():
        raise Stop(MISSING, f"{file}: no such file")


def _range(text: str) -> tuple[int | None, int | None]:
    """``"100:250"``, ``"100:"`` or ``":250"``."""
    first, colon, second = text.partition(":")
    if not colon or any(part and not part.isdecimal() for part in (first, second)):
        raise ArgumentTypeError(f"{text!r} is no range: give A:B, in characters from 0")
    return (int(first) if first else None), (int(second) if second else None)
