"""``trimtab recall``: what the recall tool answers a model, on the command line.

Without a handle a list of what was taken out, or a file's last reading; with one exactly the
original, or a part; why it was taken out; or every original into files.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from trimtab.amounts import many
from trimtab.cli import files, journal_file
from trimtab.cli.exit_codes import DONE, NO_ORIGINAL, UNREADABLE, USAGE, ExitWith
from trimtab.cli.originals import OfStore, add_source, handle_of, originals_of
from trimtab.cli.store_options import store_of
from trimtab.cli.terminal import clean
from trimtab.journal import excerpts
from trimtab.journal.archive import Originals
from trimtab.journal.folded_steps import CONTENTS_CHARS, folded_steps, step_range, steps_of
from trimtab.stores.tenant import OURS
from trimtab.transcript.model import Edit


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab recall``."""
    parser.add_argument(
        "handle",
        metavar="HANDLE",
        nargs="?",
        help="of a cut, or how it begins; a list without one, or of a conversation by its id",
    )
    add_source(parser)
    parser.add_argument(
        "--steps", type=_steps, metavar="N[-M]", help="only step N, or N to M, of a fold"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--range",
        type=_range,
        metavar="A:B",
        help="only characters A up to B, of --steps or of all; either may be left out",
    )
    what.add_argument(
        "--lines", metavar="N[-M]", help="only line N, or N to M, from 1, of --steps or of all"
    )
    what.add_argument("--whole", action="store_true", help="all steps of a fold, as JSON")
    what.add_argument(
        "--file", metavar="PATH", help="how this file was read last, and its edits since"
    )
    what.add_argument(
        "--why", action="store_true", help="when and why it was taken out, in place of the original"
    )
    what.add_argument(
        "--all", metavar="DIR", help="write every original into files of this folder; of a store "
        "DIR/TENANT/CONVERSATION/HANDLE"
    )  # fmt: skip
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="file for the original")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print exactly the original or a part of it; for several folded steps, their table of
    contents, unless the whole is asked for."""
    if args.steps and (args.whole or args.file or args.why or args.all):
        raise ExitWith(USAGE, "--steps is for a HANDLE alone, or with --lines or --range")
    if args.all is not None:
        return _all(args)
    originals = originals_of(args)
    if args.handle is not None:
        args.handle = handle_of(originals, args.handle) or None
    if args.handle is None or args.file is not None or args.lines is not None:
        return _looked_up(args, originals)
    text = originals.recall(args.handle)
    if args.why:
        text = _reasons(args, originals)
    elif args.steps is not None or args.range is not None:
        try:
            text = text if args.steps is None else steps_of(text, *args.steps)
        except ValueError as error:
            print(f"trimtab: {error}", file=sys.stderr)
            return NO_ORIGINAL
        text = text if args.range is None else excerpts.part(text, *args.range)
    elif not args.whole and len(text) > CONTENTS_CHARS and (steps := folded_steps(text))[1:]:
        size = f"{len(steps):,} steps, {len(text):,} characters"
        print(f"{size}. One: --steps 1. All: --whole.", file=sys.stderr)
        text = "".join(f"{step}\n" for step in steps)
    files.write(args.output, text.encode("utf-8", "surrogatepass"))
    return DONE


def _all(args: Namespace) -> int:
    """Write each original into its own file, readable by its owner alone."""
    if args.handle is not None:
        raise ExitWith(USAGE, "HANDLE or --all DIR, not both")
    count = 0
    for place, text in _kept(args):
        # A dot is quoted too: a conversation may be called "..".
        file = Path(args.all, *(quote(name, safe=" ").replace(".", "%2E") for name in place))
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ExitWith(UNREADABLE, f"{file.parent}: {error.strerror}: name another") from None
        files.write(str(file), text.encode("utf-8", "surrogatepass"), private=True)
        count += 1
    print(f"{count:,} originals in {args.all}", file=sys.stderr)
    return DONE


def _kept(args: Namespace) -> Iterator[tuple[tuple[str, ...], str]]:
    """(names for its file, text) of every original."""
    from trimtab import stores

    if args.journal is not None:
        made = journal_file.load(args.journal, must_exist=True).originals
        yield from (((handle,), text) for handle, text in made.items())
        return
    store = store_of(args)
    for row in store.conversations():
        if row.tenant.startswith(OURS) or args.tenant not in (None, row.tenant):
            continue
        tenant = stores.open(store, row.tenant)
        for handle in store.handles(row.tenant, row.conversation):
            if (original := tenant.original(handle)) is not None:
                yield (row.tenant, row.conversation, handle), original.text


def _reasons(args: Namespace, originals: Originals) -> str:
    """A line for each entry of the journal under the handle, oldest first."""
    dated: list[tuple[int | None, Edit]]
    if isinstance(originals, OfStore):
        dated = [*originals.reader_of(args.handle).edits(args.handle)]
    else:
        made = journal_file.load(args.journal, must_exist=True).entries
        dated = [(None, edit) for edit in made if edit.handle == args.handle]
    lines = [
        f"{'' if at is None else datetime.fromtimestamp(at, UTC).isoformat() + '  '}"
        f"{_what(edit)}, {many(len(edit.targets), 'text')}: {clean(edit.why)}\n"
        for at, edit in dated
    ]
    return "".join(lines) or "no edit: a repair, or the provider's compaction, took it out\n"


def _what(edit: Edit) -> str:
    """``fold``, or ``replace, log``: what was done, and its kind where that says more."""
    return edit.op if edit.kind == edit.op else f"{edit.op}, {edit.kind}"


def _looked_up(args: Namespace, originals: Originals) -> int:
    """Print what the recall tool answers."""
    if args.handle is not None and args.file is not None:
        raise ExitWith(USAGE, "HANDLE or --file PATH, not both")
    if args.handle is None and (args.why or args.whole or args.steps or args.range):
        raise ExitWith(USAGE, "name a HANDLE: without one there are a list and --file PATH")
    names = ("handle", "file", "steps", "lines")
    said = excerpts.answer(originals, {name: getattr(args, name) for name in names})
    if said.failed:
        print(f"trimtab: {said.text}", file=sys.stderr)
        return NO_ORIGINAL
    text = said.text.replace(excerpts.HOW, "trimtab recall HANDLE --steps N reads one")
    files.write(args.output, f"{text}\n".encode("utf-8", "surrogatepass"))
    return DONE


def _steps(text: str) -> tuple[int, int] | None:
    try:
        return step_range(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _range(text: str) -> tuple[int | None, int | None]:
    """``"100:250"``, ``"100:"`` or ``":250"``."""
    first, colon, second = text.partition(":")
    if not colon or any(part and not part.isdecimal() for part in (first, second)):
        raise ArgumentTypeError(f"{text!r} is no range: give A:B, in characters from 0")
    return (int(first) if first else None), (int(second) if second else None)
