"""``trimtab demo``: a recorded session at a window that it outgrows, before and after."""

from __future__ import annotations

import os
import tempfile
from argparse import ArgumentParser, Namespace

from trimtab.cli import files
from trimtab.cli.exit_codes import DONE
from trimtab.cli.terminal import Terminal


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab demo``."""
    parser.add_argument(
        "--html", metavar="FILE", help="where the page goes (default: a temporary file)"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Play the session, print what came of it and write the page."""
    from trimtab_lab.demo import page, played, screen

    demo = played.play(played.recorded())
    text = page.as_html(demo).encode("utf-8", "replace")
    terminal = Terminal.of_stdout()
    if args.html == "-":
        files.write(args.html, text)
        return DONE
    name = args.html or _temporary()
    files.write(name, text)
    print(screen.as_text(demo, terminal))
    print(f"\n{terminal.paint('bold', 'Page')}  {name}\n\n{screen.what_next(terminal)}")
    return DONE


def _temporary() -> str:
    handle, name = tempfile.mkstemp(prefix="trimtab-demo-", suffix=".html")
    os.close(handle)
    return name
