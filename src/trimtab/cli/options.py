"""The options that the commands share: which file, and how the request in it is read.

Knows their names and help.  Does not know what the commands do with them.
"""

from __future__ import annotations

from argparse import ArgumentParser


def add_request(parser: ArgumentParser, *, counts: bool, judges: bool) -> None:
    """FILE, --format, --model; --counter where tokens are counted, --open-tail where rules are."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE")
    reading = parser.add_argument_group("how the request is read")
    reading.add_argument("--format", metavar="NAME", help="one of the five formats (default: seen)")
    reading.add_argument("--model", metavar="NAME", help="where the request names none")
    if counts:
        reading.add_argument("--counter", metavar="NAME", help="how tokens are counted: o200k, …")
    if judges:
        reading.add_argument(
            "--open-tail", action="store_true", help="calls at the very end are being answered"
        )
