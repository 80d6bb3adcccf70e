"""The command line: python -m tally LOGS [--json | --csv FILE] [--zone OFFSET]."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tally.clock import parse_zone
from tally.export import write_csv
from tally.parse import BadLine, Record, parse_lines
from tally.report import build


def read(folder: Path) -> Iterator[Record | BadLine]:
    """Every line of every log in the folder, file by file."""
    for path in sorted(folder.glob("*.log")):
        with path.open() as file:
            yield from parse_lines(file)


def main() -> None:
    """Parse the arguments and print or write the report."""
    parser = argparse.ArgumentParser(prog="tally")
    parser.add_argument("logs", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--zone", type=parse_zone, default=parse_zone("Z"))
    args = parser.parse_args()
    report = build(read(args.logs), args.zone)
    if args.csv:
        print(f"{write_csv(report, args.csv)} rows written to {args.csv}")
    elif args.json:
        print(report.as_json())
    else:
        print(report.as_table())


if __name__ == "__main__":
    main()
