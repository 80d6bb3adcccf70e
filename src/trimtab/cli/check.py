"""``trimtab check``: would the provider accept this request, by its rules and by its window?

With ``--session``: is what the notes of a recorded session say true?
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any

import trimtab
from trimtab import formats
from trimtab.cli.exit_codes import DONE, VIOLATIONS
from trimtab.cli.logged_requests import add_turn, is_log, request_of
from trimtab.cli.options import add_request, setting
from trimtab.cli.terminal import Terminal, clean
from trimtab.formats.repair.shape import MISSING_KEY
from trimtab.jsontext import paths
from trimtab.jsontext.parsing import parse_bytes


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab check``."""
    add_request(parser, "format", "model", "counter", "window", "open_tail")
    add_turn(parser)
    parser.add_argument(
        "--session", action="store_true",
        help="FILE is a log, or a folder of them: fit each session at --window, and check that its "
        "notes are true",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="violations as JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print each violation (the place, the rule, the provider's own words), or the size."""
    if args.session:
        # Nothing of the library imports the laboratory by name.
        return int(import_module("trimtab_lab.commands.check_session").run(args))
    asked_for = request_of(args)
    tree = parse_bytes(asked_for.data)
    asked: dict[str, Any] = {
        "format": setting(args, "format") or asked_for.facts.format,
        "model": setting(args, "model") or asked_for.facts.model,
    }
    format, _ = formats.find(tree, asked["format"])
    found = trimtab.check(tree, open_tail=bool(setting(args, "open_tail")), doubtful=True, **asked)
    if is_log(args):  # an agent's log has messages and model, not all that was sent
        found = tuple(violation for violation in found if violation.rule != MISSING_KEY)
    violations = [violation for violation in found if violation.certain]
    measured = trimtab.measure(tree, counter=setting(args, "counter"), **asked)
    window = setting(args, "window") or measured.window
    too_long = bool(window and measured.total > window)
    if args.json:
        rows = [
            {**violation._asdict(), "path": paths.escape(violation.path)} for violation in found
        ]
        sizes = {"tokens": measured.total, "window": window, "too_long": too_long}
        print(json.dumps({"format": measured.format, **sizes, "violations": rows}, indent=2))
        return VIOLATIONS if violations or too_long else DONE
    terminal = Terminal.of_stdout()
    for violation in found:
        doubt = "" if violation.certain else "may be refused: "
        rule = clean(f"{paths.escape(violation.path)}: {violation.rule}")
        rule = terminal.paint("over" if violation.certain else "bold", rule)
        print(terminal.wrapped(f"{rule}: {doubt}{clean(violation.message)}"))
    counted = f"{measured.total:,} tokens, counted by {measured.counter}"
    if window and too_long:
        verdict = terminal.paint("over", "too long")
        print(f"{verdict}: {counted}; the window is {window:,}: trimtab fit makes it fit")
    elif not violations:
        messages = len(paths.get(tree, format.base(tree)))
        size = f"{counted}, of {window:,}" if window else counted
        verdict = terminal.paint("good", "accepted")
        print(f"{verdict}: {format.name} ({measured.reason}), {messages:,} messages, "
              f"no {'certain ' if found else ''}rule broken; {size}")  # fmt: skip
    return VIOLATIONS if violations or too_long else DONE
