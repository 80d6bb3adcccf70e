"""Counts records per hour and per path, and prints the counts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from tally.clock import hour_of, spell_zone
from tally.parse import BadLine, Record


@dataclass
class Hour:
    """What happened in one hour."""

    start: datetime
    requests: int = 0
    failed: int = 0
    sent_bytes: int = 0
    paths: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count one record."""
        self.requests += 1
        self.sent_bytes += record.size
        self.paths[record.path] += 1
        if record.failed:
            self.failed += 1
            self.failures.append(record.request or record.path)


@dataclass
class Report:
    """All hours of a report, oldest first."""

    zone: timezone
    hours: list[Hour]
    skipped: int

    def as_dict(self) -> dict[str, object]:
        """The report as JSON-able values."""
        return {
            "zone": spell_zone(self.zone),
            "skipped": self.skipped,
            "hours": [
                {
                    "start": hour.start.isoformat(),
                    "requests": hour.requests,
                    "failed": hour.failed,
                    "sent_bytes": hour.sent_bytes,
                    "paths": dict(hour.paths.most_common()),
                    "failures": hour.failures,
                }
                for hour in self.hours
            ],
        }

    def as_json(self) -> str:
        """The report as pretty JSON."""
        return json.dumps(self.as_dict(), indent=4)

    def as_table(self) -> str:
        """The report for people: one line an hour."""
        lines = [f"hour ({spell_zone(self.zone)})      requests  failed       bytes  busiest path"]
        for hour in self.hours:
            path, count = hour.paths.most_common(1)[0]
            lines.append(
                f"{hour.start:%Y-%m-%d %H:%M}  {hour.requests:8d}  {hour.failed:6d}"
                f"  {hour.sent_bytes:10d}  {path} ({count})"
            )
        lines.append(f"{len(self.hours)} hours, {self.skipped} lines skipped")
        return "\n".join(lines)


def build(records: Iterable[Record | BadLine], zone: timezone) -> Report:
    """Return the report of ``records`` with the hours of ``zone``."""
    hours: dict[datetime, Hour] = {}
    counts: defaultdict[str, int] = defaultdict(int)
    for record in records:
        if isinstance(record, BadLine):
            counts["skipped"] += 1
            continue
        start = hour_of(record.when, zone)
        hours.setdefault(start, Hour(start)).add(record)
    return Report(zone, [hours[start] for start in sorted(hours)], counts["skipped"])
