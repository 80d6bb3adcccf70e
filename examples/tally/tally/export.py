"""Writes a report as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

from tally.report import Report

COLUMNS = ("hour", "requests", "failed", "bytes", "busiest")


def rows(report: Report) -> list[tuple[object, ...]]:
    """One row an hour, in the order of COLUMNS."""
    found = []
    for hour in report.hours:
        busiest, _ = hour.paths.most_common(1)[0]
        start = hour.start.strftime("%Y-%m-%d %H:%M")
        found.append((start, hour.requests, hour.failed, hour.sent_bytes, busiest))
    return found


def write_csv(report: Report, target: Path) -> int:
    """Write the report to ``target`` and return the number of rows."""
    table = rows(report)
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(table)
    return len(table)
