"""``trimtab fit``: make a request fit.

The request is written to standard output or a file, the report to standard error.
"""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace

import trimtab
from trimtab.cli import files, journal_file
from trimtab.cli.exit_codes import DONE
from trimtab.cli.logged_requests import add_turn, request_of
from trimtab.cli.options import (
    add_no_config,
    add_output,
    add_request,
    add_settings,
    loaded_settings,
)
from trimtab.cli.terminal import clean, print_report
from trimtab.config import SETTINGS
from trimtab.journal import file_format
from trimtab.jsontext import paths
from trimtab.report import Report
from trimtab.request.fitted import Fitted
from trimtab.settings import Settings

_SHOWN = 5
"""How many recall lines a report shows; the JSON report has all handles."""


def add_fit(parser: ArgumentParser) -> None:
    """The options of ``trimtab fit``: every setting, and the input and output files."""
    add_request(parser)
    add_turn(parser)
    add_no_config(parser)
    out = parser.add_argument_group("output")
    add_output(out)
    out.add_argument(
        "--journal", metavar="FILE",
        help="keep the choice and the originals there, and go on from it if it exists",
    )  # fmt: skip
    out.add_argument(
        "--dry-run", action="store_true",
        help="write nothing: report what a cut would take now, even if none is due",
    )  # fmt: skip
    out.add_argument("--json", action="store_true", help="report as JSON")
    add_settings(parser, SETTINGS)
    parser.set_defaults(run=run_fit)


def run_fit(args: Namespace) -> int:
    """Fit, keep the originals if ``--journal`` is given, write the request, print the report."""
    settings, source_lines = _settings(args)
    data, facts = request_of(args)
    settings = facts | settings
    lines: list[str] = []
    if args.dry_run:
        journal = file_format.to_dict(journal_file.load(args.journal)) if args.journal else None
        fitted = trimtab.Session(settings=settings, journal=journal).preview(data)
        _report(fitted.report, lines, as_json=args.json)
        return DONE
    if args.journal is None:
        fitted = trimtab.fit(data, settings=settings)
    else:
        fitted, lines = _fit_and_keep(data, settings, args.journal)
    unseen = files.deliver(args.output, fitted.request)
    if source_lines and not args.json:
        print("\n".join(map(clean, source_lines)), file=sys.stderr)
    _report(fitted.report, lines, as_json=args.json)
    if unseen:
        print(unseen, file=sys.stderr)
    return DONE


def _settings(args: Namespace) -> tuple[Settings, list[str]]:
    """(settings, lines about their sources); options override files and environment."""
    loaded = loaded_settings(args)
    source_lines = [f"settings from {', '.join(loaded.sources)}"] if loaded.sources else []
    warnings = [f"warning: {problem}" for problem in loaded.problems]
    return loaded.settings(), source_lines + warnings


def _fit_and_keep(data: bytes, settings: Settings, name: str) -> tuple[Fitted, list[str]]:
    """Fit within the session of a journal file; also return the commands that recall the largest
    originals."""
    journal = file_format.to_dict(journal_file.load(name))
    session = trimtab.Session(settings=settings, journal=journal)
    fitted = session.fit(data)
    journal_file.save(name, session.journal)
    places = {edit.handle: edit.path for edit in fitted.report.edits if edit.handle}
    for repair in fitted.report.repairs:
        places |= dict.fromkeys(repair.handles, repair.path)
    chars = {handle: len(session.recall(handle)) for handle in places}
    largest = sorted(places, key=lambda handle: -chars[handle])[:_SHOWN]
    return fitted, [
        f"trimtab recall {handle} --journal {shlex.quote(name)}"
        f"  # {paths.escape(places[handle])}, {chars[handle]:,} chars"
        for handle in largest
    ]


def _report(report: Report, lines: list[str], *, as_json: bool) -> None:
    if as_json:
        tree = {**report.as_dict(), **({"recall": lines} if lines else {})}
        print(json.dumps(tree, indent=2, ensure_ascii=False), file=sys.stderr)
        return
    print_report(report.lines(), sys.stderr)
    if lines:
        print("originals are kept; the largest come back with", file=sys.stderr)
        print("\n".join(f"  {clean(line)}" for line in lines), file=sys.stderr)
    elif any(edit.handle for edit in report.edits):
        print("no original is kept: --journal FILE keeps them", file=sys.stderr)
