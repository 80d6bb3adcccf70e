"""Writes docs/reference/cli.md from the help of each command.

python scripts/cli_page.py            # write the page
python scripts/cli_page.py --check    # exit 1 where the page says otherwise
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/cli.md"
HEAD = """# Command line

`trimtab COMMAND --help` prints the same. This page is written by `python scripts/cli_page.py`.
"""


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with its parser, in the order of the help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def page() -> str:
    """The page as the parsers have it now."""
    os.environ.update(COLUMNS="92", NO_COLOR="1", PYTHON_COLORS="0")
    from trimtab.cli.commands import parser

    whole = parser()
    parts = [HEAD, f"```text\n{whole.format_help().strip()}\n```\n"]
    for name, command in commands(whole):
        parts.append(f"## trimtab {name}\n\n```text\n{command.format_help().strip()}\n```\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or compare."""
    text = page()
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
