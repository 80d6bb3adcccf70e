"""``trimtab convert``: the same conversation in another provider's format.

The request is written to standard output or a file, the list of losses to standard error.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter

import trimtab
from trimtab.cli import files
from trimtab.cli.exit_codes import DONE
from trimtab.cli.logged_requests import add_turn, request_of
from trimtab.cli.options import add_file, add_output
from trimtab.cli.terminal import print_report
from trimtab.jsontext import paths


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab convert``."""
    add_file(parser)
    add_turn(parser)
    parser.add_argument(
        "--to", required=True, metavar="NAME",
        help="openai-chat, openai-responses, anthropic, bedrock, gemini, gemini-interactions",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="NAME", help="format of FILE (default: seen by its shape)"
    )
    parser.add_argument("--model", metavar="NAME", help="the model it is for; written into it")
    add_output(parser)
    parser.add_argument("--json", action="store_true", help="losses, notes and ids as JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Convert, write the request, print what was lost."""
    found = request_of(args)
    converted = trimtab.convert(
        found.data, args.to, format=args.format or found.facts.format, model=args.model
    )
    unseen = files.deliver(args.output, f"{paths.dump(converted.request)}\n".encode())
    _report(converted, as_json=args.json)
    if unseen:
        print(unseen, file=sys.stderr)
    return DONE


def _report(converted: trimtab.conversion.Converted, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(converted.as_dict(), indent=2, ensure_ascii=False), file=sys.stderr)
        return
    count = len(converted.losses)
    lost = f"{count:,} {'loss' if count == 1 else 'losses'}" if count else "nothing was lost"
    lines = [f"{converted.source} → {converted.to}: {lost}"]
    kinds = Counter((loss.what, loss.why) for loss in converted.losses)
    first = {(loss.what, loss.why): loss.path for loss in reversed(converted.losses)}
    for (what, why), times in kinds.items():
        place = paths.escape(first[what, why])
        more = f" and {times - 1:,} more" if times > 1 else ""
        lines.append(f"  lost  {what}: {why} ({place}{more})")
    lines += [f"  note  {note}" for note in converted.notes]
    print_report(lines, sys.stderr, "over" if count else "good")
