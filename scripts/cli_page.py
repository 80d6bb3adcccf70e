"""Writes docs/reference/cli.md from the help of each command.

python scripts/cli_page.py            # write the page
python scripts/cli_page.py --check    # exit 1 where the page says otherwise
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/cli.md"
HEAD = """# Command line

`trimtab --help-all` and `trimtab COMMAND --help-all` print the same; `--help` prints what most
people need.  This page is written by `python scripts/cli_page.py`.
"""


def page() -> str:
    """The page as the commands have it now."""
    os.environ.update(COLUMNS="92", NO_COLOR="1", PYTHON_COLORS="0")
    from trimtab.cli.command_table import COMMANDS
    from trimtab.cli.commands import parser_of
    from trimtab.cli.help_pages import overview

    parts = [HEAD, f"```text\n{overview(everything=True).strip()}\n```\n"]
    for name in COMMANDS:
        text = parser_of(name).format_all().strip()
        parts.append(f"## trimtab {name}\n\n```text\n{text}\n```\n")
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
