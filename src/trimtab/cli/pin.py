"""``trimtab pin``: keep a sentence, a file or a block of a conversation whole in every cut."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import closing
from pathlib import Path

import trimtab
from trimtab import stores
from trimtab.cli import journal_file
from trimtab.cli.exit_codes import DONE, NO_ORIGINAL, USAGE, ExitWith
from trimtab.cli.originals import OfStore, add_source, handle_of, named_conversation, originals_of
from trimtab.cli.store_options import store_of
from trimtab.cli.terminal import clean
from trimtab.journal import file_format
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.settings import NO_WINDOW
from trimtab.transcript.protected import FILE_PIN, TEXT_PIN


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab pin``."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "handle", metavar="HANDLE", nargs="?", help="put the original of this cut back"
    )
    what.add_argument("--text", help="keep the newest block that has these words")
    what.add_argument(
        "--file",
        metavar="PATH",
        help="keep the newest read of this file, and calls about it since then",
    )
    what.add_argument("--list", action="store_true", help="show what is pinned")
    parser.add_argument("--remove", action="store_true", help="no longer keep it")
    add_source(parser)
    parser.add_argument(
        "--conversation",
        metavar="ID",
        default="",
        help="in this one (default: the one written last)",
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Pin, unpin or list, and say what was done."""
    if not (args.handle or args.text or args.file or args.list):
        raise ExitWith(USAGE, "name a HANDLE, --text WORDS or --file PATH; --list shows all pins")
    told = _in_journal(args) if args.journal else _in_store(args)
    print("\n".join(map(clean, told)), file=sys.stdout if args.list else sys.stderr)
    return DONE


def _in_journal(args: Namespace) -> list[str]:
    is_new = not Path(args.journal).exists()
    pins_words = (args.text or args.file) and not args.remove
    journal = journal_file.load(args.journal, must_exist=not pins_words)
    session = trimtab.Session(journal=file_format.to_dict(journal), window=NO_WINDOW)
    if args.list:
        return session.pins() or ["nothing is pinned"]
    if args.handle:
        originals = originals_of(args)
        args.handle = handle_of(originals, args.handle)
        if args.handle not in originals.handles():
            raise ExitWith(
                NO_ORIGINAL, f"no cut has the handle {args.handle!r}: trimtab recall --journal "
                f"{args.journal} lists them"
            )  # fmt: skip
    named, before = args.handle or args.text or args.file, session.pins()
    if args.remove:
        session.unpin(args.handle or "", text=args.text or "", file=args.file or "")
        if session.pins() == before:
            return [f"{named} was not pinned; --list shows all pins"]
    elif args.handle:
        session.undo(args.handle)
    else:
        session.pin(text=args.text or "", file=args.file or "")
    journal_file.save(args.journal, session.journal)
    new = f" in {args.journal}, a new file" if is_new else ""
    if args.remove:
        return [f"{named} is no longer pinned"]
    if args.handle:
        return [f"{named} is undone: its original is sent again from the next request on"]
    return [f"{named} is pinned{new}"]


def _in_store(args: Namespace) -> list[str]:
    reader = _reader(args)
    if args.list:
        return reader.pins(args.conversation) or ["nothing is pinned"]
    if args.handle:
        session = trimtab.Session(store=args.store, tenant=args.tenant, window=NO_WINDOW)
        with closing(session):
            session.unpin(args.handle) if args.remove else session.undo(args.handle)
        if args.remove:
            return [f"{args.handle} is no longer pinned"]
        return [f"{args.handle} is undone: its original is sent again from the next request on"]
    pin = f"{TEXT_PIN}{args.text}" if args.text else f"{FILE_PIN}{args.file}"
    return [reader.pin_words(pin, args.conversation, pinned=not args.remove)]


def _reader(args: Namespace) -> OriginalsReader:
    """Of ``--tenant``, else of the tenant that has the handle or the conversation, else of the one
    that was written last."""
    store = store_of(args)
    originals = OfStore(args, store)
    if args.handle:
        args.handle = handle_of(originals, args.handle)
        return originals.reader_of(args.handle)
    tenant = originals.tenants[0]
    if args.conversation:
        tenant, args.conversation, _ = named_conversation(
            store, originals.tenants, args.conversation
        )
    return OriginalsReader(stores.open(store, tenant), time.time)
