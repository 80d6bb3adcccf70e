"""``trimtab check``: would the provider accept this request?

Knows how violations are printed.  Does not know a single rule.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

import trimtab
from trimtab import formats, paths
from trimtab.cli import files
from trimtab.cli.exits import DONE, VIOLATIONS
from trimtab.cli.options import add_request
from trimtab.cli.screen import clean


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab check``."""
    add_request(parser, counts=False, judges=True)
    parser.add_argument("--json", action="store_true", help="violations as JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print each violation: where, which rule, in the provider's own words."""
    tree = paths.parse(paths.decode(files.request_of(args)))
    format, reason = formats.find(tree, args.format)
    found = trimtab.check(tree, format=format.name, model=args.model, open_tail=args.open_tail)
    if args.json:
        rows = [
            {**violation._asdict(), "path": paths.escape(violation.path)} for violation in found
        ]
        print(json.dumps({"format": format.name, "violations": rows}, indent=2))
    elif found:
        for violation in found:
            print(clean(f"{paths.escape(violation.path)}: {violation.rule}: {violation.message}"))
    else:
        count = len(paths.get(tree, format.base(tree)))
        print(f"accepted: {format.name} ({reason}), {count:,} messages, no rule broken")
    return VIOLATIONS if found else DONE
