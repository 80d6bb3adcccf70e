"""``trimtab fit``: make a request fit.

Knows the options and where output goes: the request to standard output or a file, the report to
standard error.  Does not know how anything is reduced.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

import trimtab
from trimtab import config, paths
from trimtab.cli import files, journal_file
from trimtab.cli.amounts import amount, share
from trimtab.cli.exits import DONE
from trimtab.cli.options import add_request
from trimtab.cli.screen import clean
from trimtab.fitted import Fitted
from trimtab.model import SURE_TRIGGER, TRIGGER, Limits
from trimtab.presets import PRESETS
from trimtab.setting_keys import LIMITS
from trimtab.telling.report import Report
from trimtab.turns import journal_format

_SHOWN = 5
"""Recall lines in a report; the other handles stand in the report as JSON."""


def add_fit(parser: ArgumentParser) -> None:
    """The options of ``trimtab fit``."""
    add_request(parser, counts=True, judges=True)
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--window", type=amount, metavar="N",
        help="tokens the model takes, output included: 32k, 128_000, 1m (default: the model's, "
        "where our table has it)",
    )  # fmt: skip
    limits.add_argument("--request-bytes", type=amount, metavar="N", help="bytes of the body")
    limits.add_argument("--result-chars", type=amount, metavar="N", help="of one tool result")
    limits.add_argument("--images", type=amount, metavar="N", help="in the whole request")
    when = parser.add_argument_group("when and how far")
    when.add_argument(
        "--reserve", type=amount, metavar="N",
        help="output tokens to keep free (default: what the request asks for, where the model "
        "shares its window)",
    )  # fmt: skip
    when.add_argument(
        "--trigger", type=share, metavar="X",
        help=f"share of the window above which something happens at all ({TRIGGER}, or "
        f"{SURE_TRIGGER} where counts are exact; 1 cuts only when it must)",
    )  # fmt: skip
    when.add_argument(
        "--target", type=share, metavar="X",
        help="share of the room that a cut goes down to (default: the preset's)",
    )  # fmt: skip
    when.add_argument(
        "--preset", choices=tuple(PRESETS),
        help="cautious: until it is full only what is lossless or came again; balanced (default): "
        f"down to {PRESETS['balanced'].target}; deep: down to {PRESETS['deep'].target}; in-place: "
        "each old result where it stands, none folded into a note",
    )  # fmt: skip
    when.add_argument(
        "--calls-left", type=amount, metavar="N",
        help="tool calls still to come: cut no earlier and no deeper than they need",
    )  # fmt: skip
    when.add_argument(
        "--prices", metavar="TABLE",
        help="say what the cut does to the bill (tables: trimtab replay --list)",
    )  # fmt: skip
    when.add_argument(
        "--idle", type=amount, metavar="SECONDS",
        help="since the last request: where the cache has expired, a cut is free and comes earlier",
    )  # fmt: skip
    when.add_argument(
        "--no-config", action="store_true",
        help="read no trimtab.toml, no pyproject.toml and no TRIMTAB_* variables",
    )  # fmt: skip
    what = parser.add_argument_group("what may be touched")
    what.add_argument(
        "--protect-tool", action="append", default=[], metavar="GLOB",
        help="touch calls and results of these tools last; may be repeated",
    )  # fmt: skip
    what.add_argument("--recall", action="store_true", help="the model has a recall tool")
    what.add_argument("--strict", action="store_true", help="refuse a broken request, repair none")
    what.add_argument(
        "--thinking", choices=("drop", "drop_block"),
        help="what becomes of signed thinking behind an edit: taken out (default), or the "
        "provider is asked to",
    )  # fmt: skip
    what.add_argument(
        "--quote-embedded", action="store_true",
        help="mark tool output that stands as text in a user's message as a quote",
    )  # fmt: skip
    _add_articles(parser)
    out = parser.add_argument_group("output")
    out.add_argument("-o", "--output", default="-", metavar="OUT", help="file for the request")
    out.add_argument(
        "--journal", metavar="FILE",
        help="keep the choice and the originals there, and go on from it if it exists",
    )  # fmt: skip
    out.add_argument("--json", action="store_true", help="report as JSON")
    parser.set_defaults(run=run_fit)


def _add_articles(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("lists of articles, and summaries by a model")
    group.add_argument(
        "--articles", choices=("match", "position", "just-in-time"),
        help="which articles of a search go first: what matches the question least (default), the "
        "last of the list, or each to 30%% from the last of the newest result on",
    )  # fmt: skip
    group.add_argument(
        "--articles-keep", type=amount, metavar="N", help="best articles of a list that stay whole"
    )
    group.add_argument(
        "--articles-ranker", choices=("words", "embed"),
        help="what matches a question: shared words (default), or meaning too, by an embedding "
        "model on this machine (extra embed)",
    )  # fmt: skip
    group.add_argument(
        "--summarizer", metavar="URL",
        help="endpoint of a model that says articles and old steps in its own words; the only "
        "connection that is ever opened",
    )  # fmt: skip
    group.add_argument("--summarizer-model", metavar="NAME", help="the model to ask there")
    group.add_argument(
        "--summarizer-key-env", metavar="VAR", help="the variable that holds the endpoint's key"
    )


def run_fit(args: Namespace) -> int:
    """Fit, keep the originals where asked, write the request, report."""
    settings, told = _settings(args)
    data = files.request_of(args)
    lines: list[str] = []
    if args.journal is None:
        fitted = trimtab.fit(data, **settings)
    else:
        fitted, lines = _fit_and_keep(data, settings, args.journal)
    files.write(args.output, fitted.request)
    if told and not args.json:
        print("\n".join(map(clean, told)), file=sys.stderr)
    _report(fitted.report, lines, as_json=args.json)
    return DONE


def _settings(args: Namespace) -> tuple[dict[str, Any], list[str]]:
    """The keywords of ``fit``: options before what files and environment say; lines about these."""
    loaded = config.Loaded(env=os.environ) if args.no_config else config.load()
    _take_tables(loaded.values, args)
    settings = loaded.keywords()
    given = {
        "format": args.format, "model": args.model, "counter": args.counter,
        "preset": args.preset, "thinking": args.thinking, "recall": args.recall or None,
        "open_tail": args.open_tail or None, "strict": args.strict or None,
        "quote_embedded": args.quote_embedded or None, "calls_left": args.calls_left,
        "prices": args.prices, "idle_seconds": args.idle,
    }  # fmt: skip
    settings |= {key: value for key, value in given.items() if value is not None}
    settings["protected_tools"] = (*settings.get("protected_tools", ()), *args.protect_tool)
    limits = {key: getattr(args, key) for key in LIMITS}
    limits = {key: value for key, value in limits.items() if value is not None}
    settings["limits"] = replace(settings.get("limits", Limits()), **limits)
    told = [f"settings from {', '.join(loaded.sources)}"] if loaded.sources else []
    return settings, told + [f"warning: {problem}" for problem in loaded.problems]


def _take_tables(values: dict[str, Any], args: Namespace) -> None:
    """Options that stand in a table among the settings."""
    given = {
        "articles": {
            "rule": args.articles, "keep": args.articles_keep, "ranker": args.articles_ranker,
        },
        "summarizer": {
            "url": args.summarizer, "model": args.summarizer_model,
            "key_env": args.summarizer_key_env,
        },
    }  # fmt: skip
    for table, keys in given.items():
        if found := {key: value for key, value in keys.items() if value is not None}:
            values[table] = {**values.get(table, {}), **found}


def _fit_and_keep(data: bytes, settings: dict[str, Any], name: str) -> tuple[Fitted, list[str]]:
    """Fit within the session of a journal file; the lines that get the largest originals back."""
    session = trimtab.Session(**settings, journal=journal_format.to_dict(journal_file.load(name)))
    fitted = session.fit(data)
    journal_file.save(name, session.journal)
    places = {edit.handle: edit.path for edit in fitted.report.edits if edit.handle}
    places |= {repair.handle: repair.path for repair in fitted.report.repairs if repair.handle}
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
    shown = str(report).splitlines()
    if lines:
        shown += ["originals are kept; the largest come back with", *(f"  {row}" for row in lines)]
    print("\n".join(map(clean, shown)), file=sys.stderr)
