"""``trimtab completion``: a script for the shell, written by shtab from the commands' options."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from trimtab.cli.exit_codes import DONE
from trimtab.errors import MissingExtra


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab completion``."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL",
                        help="yours")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingExtra(
            "trimtab completion needs shtab: pip install 'trimtab[completion]'"
        ) from None
    from trimtab.cli.commands import parser

    print(shtab.complete(parser(), args.shell))
    return DONE
