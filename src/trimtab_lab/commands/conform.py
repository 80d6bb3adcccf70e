"""``trimtab conform``: runs the conformance suite on a tool that shortens conversations."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace

from trimtab.cli import files
from trimtab.cli.exit_codes import DONE, USAGE, VIOLATIONS, ExitWith
from trimtab.cli.options import amount
from trimtab.cli.terminal import Terminal, clean
from trimtab.formats import FORMATS

MIN_WINDOW = 4_000
"""Below it the head and the user's constraints alone fill much of the window."""


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab conform``."""
    parser.add_argument(
        "target", metavar="TARGET",
        help="module:function, messages:module:function, langchain:module:factory or the URL of "
        "a gateway; a function takes a request, and the window if it likes, and returns a request "
        "or messages; one behind messages: takes a list of messages; a factory returns a "
        "middleware",
    )  # fmt: skip
    parser.add_argument(
        "--format", action="append", choices=FORMATS, dest="formats",
        help="a format that the target speaks; may be repeated (default: all it can take)",
    )  # fmt: skip
    parser.add_argument(
        "--window", type=amount, default=8_000, metavar="N",
        help="tokens that the cases are made for (default: 8k)",
    )  # fmt: skip
    parser.add_argument(
        "--cases", type=amount, default=60, metavar="N",
        help="the hard cases, then drawn ones (default: 60)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="N", help="only this case")
    parser.add_argument(
        "--slack", type=float, default=0.0, metavar="SHARE",
        help="by how much a prompt may be above the window, for a target with a tokenizer of its "
        "own: 0.1 is 10 %% (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--factory", action="store_true",
        help="the callable makes the target, once for each conversation: "
        "trimtab conform --factory trimtab:Session",
    )  # fmt: skip
    gateway = parser.add_argument_group("a gateway")
    gateway.add_argument(
        "--upstream", default="127.0.0.1:0", metavar="HOST:PORT",
        help="where our strict provider listens: point the gateway there (default: a free port)",
    )  # fmt: skip
    gateway.add_argument(
        "--start", default="", metavar="COMMAND",
        help="starts the gateway; {upstream} in it is the provider's URL",
    )  # fmt: skip
    out = parser.add_argument_group("output")
    out.add_argument("--json", metavar="FILE", help="everything that was found; - is stdout")
    out.add_argument("--junit", metavar="FILE", help="a report for CI")
    out.add_argument("--badge", metavar="FILE", help="an SVG: how many properties hold")
    parser.set_defaults(run=_run)


def _run(args: Namespace) -> int:
    """Run the cases and print the scoreboard; return 1 if anything failed."""
    # Loaded here: the suite is more than all other commands need.
    from trimtab_lab.testing.conformance import Options, TargetOptions, open_target, output, run
    from trimtab_lab.testing.conformance.cases import case

    if args.window < MIN_WINDOW:
        raise ExitWith(USAGE, f"--window {args.window}: cases are made for {MIN_WINDOW:,} and up")
    if args.seed is not None:
        try:
            case(args.seed, args.window)
        except LookupError as error:
            raise ExitWith(USAGE, f"--seed {args.seed}: {error}") from None
    only = () if args.seed is None else (args.seed,)
    options = Options(args.window, args.cases, args.slack, tuple(args.formats or ()), only)
    target_options = TargetOptions(args.window, args.factory, args.upstream, args.start)
    target = open_target(args.target, target_options)
    try:
        scoreboard = run(target, options, _progress if sys.stderr.isatty() else None)
    finally:
        target.close()
    _clear()
    for name, render in (("json", output.to_json), ("junit", output.to_junit),
                         ("badge", output.to_badge)):  # fmt: skip
        if path := getattr(args, name):
            files.write(path, render(scoreboard).encode())
    if args.json != "-":
        terminal = Terminal.of_stdout()

        def paint(passed: bool, text: str) -> str:
            return terminal.paint("good" if passed else "over", text)

        lines = output.table(scoreboard, _again(args), paint).split("\n")
        print("\n".join(lines if terminal.colour else map(clean, lines)))
    return DONE if scoreboard.passed else VIOLATIONS


def _again(args: Namespace) -> str:
    """The command line without the options for cases and outputs."""
    words = ["trimtab", "conform"]
    words += ["--factory"] if args.factory else []
    words += ["--window", str(args.window)]
    words += ["--slack", str(args.slack)] if args.slack else []
    words += ["--upstream", args.upstream] if not args.upstream.endswith(":0") else []
    words += ["--start", args.start] if args.start else []
    return shlex.join([*words, args.target])


def _progress(format: str, seed: int) -> None:
    print(f"\r{format}, seed {seed}\x1b[K", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
