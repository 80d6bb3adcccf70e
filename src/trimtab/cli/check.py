"""``trimtab check``: would the provider accept this request?"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

import trimtab
from trimtab import wire
from trimtab.cli.exit_codes import DONE, VIOLATIONS
from trimtab.cli.logged_requests import add_turn, request_of
from trimtab.cli.options import add_request, setting
from trimtab.cli.terminal import clean
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab check``."""
    add_request(parser, "format", "model", "open_tail")
    add_turn(parser)
    parser.add_argument("--json", action="store_true", help="violations as JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print each violation: the place, the rule, and the provider's own words."""
    tree = parse_bytes(request_of(args))
    format, reason = wire.find(tree, setting(args, "format"))
    violations = trimtab.check(
        tree, format=setting(args, "format"), model=setting(args, "model"),
        open_tail=bool(setting(args, "open_tail")),
    )  # fmt: skip
    if args.json:
        rows = [
            {**violation._asdict(), "path": paths.escape(violation.path)}
            for violation in violations
        ]
        print(json.dumps({"format": format.name, "violations": rows}, indent=2))
    elif violations:
        for violation in violations:
            print(clean(f"{paths.escape(violation.path)}: {violation.rule}: {violation.message}"))
    else:
        count = len(paths.get(tree, format.base(tree)))
        print(f"accepted: {format.name} ({reason}), {count:,} messages, no rule broken")
    return VIOLATIONS if violations else DONE
