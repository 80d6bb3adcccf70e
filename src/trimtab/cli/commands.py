"""Every command with its parser, and how one is run.

Every error becomes one line on standard error and an exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import NoReturn, TextIO

from trimtab.cli import (
    check,
    convert,
    explain,
    files,
    fit,
    mcp,
    pin,
    proxy,
    recall,
    status,
    store,
    sweep,
)
from trimtab.cli.examples import epilog
from trimtab.cli.exit_codes import INTERNAL, MEANINGS, USAGE, ExitWith, code_of
from trimtab.cli.laboratory import options
from trimtab.cli.terminal import clean
from trimtab.errors import InvalidRequest, TrimtabError
from trimtab.setting_kinds import nearest

_COMMANDS = {
    "fit": (fit.add_fit, "make a request fit, write it and say what was done"),
    "check": (check.add, "say which rules of the provider a request breaks"),
    "explain": (explain.add, "show what fills the window"),
    "convert": (convert.add, "write a request in another provider's format"),
    "recall": (recall.add, "print the original that an edit replaced, or a part of it"),
    "pin": (pin.add, "keep a sentence or a file of a conversation whole in every cut"),
    "sweep": (sweep.add, "take the newest tool results out of a conversation"),
    "mcp": (mcp.add, "serve the originals of a store to an MCP client"),
    "doctor": (store.add_doctor, "read everything that a store keeps and say what is wrong"),
    "purge": (store.add_purge, "delete old conversations from a store"),
    "stats": (store.add_stats, "print what all sessions of a store came to"),
    "batch": (options("batch"), "make whole corpora of requests fit, for training and evaluation"),
    "replay": (options("replay"), "play recorded transcripts through policies and measure them"),
    "conform": (
        options("conform"),
        "test whatever makes conversations fit: what it keeps, what it breaks",
    ),
    "bill": (
        options("bill"),
        "say what conversations cost, and what they would have cost otherwise",
    ),
    "run": (proxy.add_run, "run a coding agent behind a proxy of its own"),
    "proxy": (proxy.add_proxy, "sit between agents and providers"),
    "status": (status.add, status.ABOUT),
}


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, like all commands."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"trimtab: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    codes = "\n".join(f"  {code:>2}  {meaning}" for code, meaning in MEANINGS.items())
    top = _Parser(
        prog="trimtab",
        description="Makes an agent's conversation fit a model's limits, so that it is accepted.\n"
        "FILE is the body of a request (or a bare list of messages) as JSON; - is "
        "standard input.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"trimtab {_version()}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, (add, about) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=about, description=f"{about.capitalize()}.", epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.set_defaults(parser=command)
        add(command)
    return top


def _version() -> str:
    try:
        return metadata.version("trimtab")
    except metadata.PackageNotFoundError:  # run from a source tree
        return "(not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        _never_raise_on_odd_characters(stream)
    args = _read(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except ExitWith as stop:
        return _complain(stop.code, str(stop))
    except InvalidRequest as error:
        return _complain(code_of(error, getattr(args, "data", None)), files.about(args, error))
    except TrimtabError as error:
        return _complain(code_of(error, getattr(args, "data", None)), str(error))
    except BrokenPipeError:
        # The reader (head, a pager) has gone.  Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as shells have it
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("TRIMTAB_TRACEBACK"):
            raise
        about = f"{type(error).__name__}: {error}"
        return _complain(INTERNAL, f"a fault of trimtab, please report it: {about}")


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; the error for an unknown option suggests the most similar one."""
    top = parser()
    args, unknown = top.parse_known_args(argv)
    if unknown:
        command: argparse.ArgumentParser = args.parser
        hint = nearest(unknown[0].partition("=")[0], _options(command))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return args


def _options(command: argparse.ArgumentParser) -> set[str]:
    words = command.format_help().replace(",", " ").replace("[", " ").split()
    return {word for word in words if word.startswith("--")}


def _complain(code: int, message: str) -> int:
    print(f"trimtab: {clean(' '.join(message.split()))}", file=sys.stderr)
    return code


def _never_raise_on_odd_characters(stream: TextIO) -> None:
    """Make ``stream`` print characters it can't encode, such as lone surrogates, as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
