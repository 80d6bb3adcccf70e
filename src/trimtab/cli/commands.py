"""Finds the command, reads its arguments and runs it.

Only the command that runs is loaded.  Every error becomes one line on standard error and an exit
code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import TextIO

from trimtab.cli import help_pages
from trimtab.cli.command_table import COMMANDS, ELSEWHERE, Command
from trimtab.cli.exit_codes import DONE, INTERNAL, USAGE, ExitWith, code_of
from trimtab.cli.terminal import Terminal, clean
from trimtab.errors import InvalidRequest, TrimtabError
from trimtab.suggestions import nearest


def parser() -> argparse.ArgumentParser:
    """A parser with every command and its options."""
    top = argparse.ArgumentParser(prog="trimtab")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=help_pages.Parser)
    for name, command in COMMANDS.items():
        _load(commands.add_parser(name, help=command.about, command=command), command)
    return top


def parser_of(name: str) -> help_pages.Parser:
    """The parser of one command; no other is loaded."""
    return _load(help_pages.Parser(f"trimtab {name}", COMMANDS[name]), COMMANDS[name])


def _load(parser: help_pages.Parser, command: Command) -> help_pages.Parser:
    getattr(import_module(command.module), command.add)(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        _never_raise_on_odd_characters(stream)
    words = sys.argv[1:] if argv is None else list(argv)
    args = argparse.Namespace()
    try:
        if not words or words[0] not in COMMANDS:
            return _without_a_command(words)
        args = _read(words)
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except ExitWith as stop:
        return _complain(stop.code, str(stop))
    except InvalidRequest as error:
        from trimtab.cli import files

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


def _without_a_command(words: Sequence[str]) -> int:
    """Help, the version, or an error that names the command that was meant."""
    first = words[0] if words else "--help"
    if first in ("-h", "--help", "help") or first == "--help-all":
        print(help_pages.overview(everything=first == "--help-all"), end="")
    elif first in ("-V", "--version"):
        print(f"trimtab {_version()}")
    elif first in ELSEWHERE:
        raise ExitWith(USAGE, f"no command {first}: it is trimtab {ELSEWHERE[first]}")
    else:
        kind = "option" if first.startswith("-") else "command"
        names = ["--help", "--help-all", "--version"] if kind == "option" else [*COMMANDS]
        hint = nearest(first, names) or "; trimtab --help lists them"
        raise ExitWith(USAGE, f"no {kind} {first}{hint}")
    return DONE


def _version() -> str:
    try:
        return metadata.version("trimtab")
    except metadata.PackageNotFoundError:  # run from a source tree
        return "(not installed)"


def _read(words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; the error for an unknown option suggests the most similar one."""
    command = parser_of(words[0])
    args, unknown = command.parse_known_args(words[1:])
    if unknown:
        first = unknown[0].partition("=")[0]
        if now := ELSEWHERE.get(f"{words[0]} {first}"):
            command.error(f"no option {first}: it is trimtab {now}")
        if first.startswith("-"):
            command.error(f"no option {first}{nearest(first, command.option_names())}")
        command.error(f"{first!r} is one argument too many")
    return args


def _complain(code: int, message: str) -> int:
    lead = Terminal.of(sys.stderr).paint("over", "trimtab:")
    print(f"{lead} {clean(' '.join(message.split()))}", file=sys.stderr)
    return code


def _never_raise_on_odd_characters(stream: TextIO) -> None:
    """Make ``stream`` print characters it can't encode, such as lone surrogates, as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
