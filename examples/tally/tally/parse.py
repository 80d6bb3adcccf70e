"""Turns a line of an access log into a record.  Knows the line format, not the clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from tally.clock import parse_zone

LINE = re.compile(
    r"(?P<host>\S+) \S+ (?P<user>\S+) "
    r"\[(?P<day>\d{2})/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4})"
    r":(?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2}) (?P<zone>[+-]\d{4})\] "
    r'"(?P<verb>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+" '
    r"(?P<status>\d{3}) (?P<size>\d+|-)(?: req=(?P<request>[0-9a-f]+))?$"
)
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class BadLine(ValueError):
    """A line that is not in the combined format."""


@dataclass(frozen=True, slots=True)
class Record:
    """One request: who, when (aware), what, and how it ended."""

    host: str
    when: datetime
    verb: str
    path: str
    status: int
    size: int
    request: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the server gave up on it (5xx)."""
        return self.status >= 500


def parse_line(line: str) -> Record:
    """Return the record of one line; raise BadLine when it is none."""
    match = LINE.match(line.strip())
    if match is None:
        raise BadLine(f"not in combined format: {line[:60]!r}")
    part = match.groupdict()
    if part["month"] not in MONTHS:
        raise BadLine(f"no such month: {part['month']!r}")
    when = datetime(
        int(part["year"]),
        MONTHS.index(part["month"]) + 1,
        int(part["day"]),
        int(part["hour"]),
        int(part["minute"]),
        int(part["second"]),
        tzinfo=parse_zone(part["zone"]),
    )
    return Record(
        host=part["host"],
        when=when,
        verb=part["verb"],
        path=part["path"],
        status=int(part["status"]),
        size=0 if part["size"] == "-" else int(part["size"]),
        request=part["request"],
    )


def parse_lines(lines: Iterable[str]) -> Iterator[Record | BadLine]:
    """Yield a record or the reason why there is none, line by line; blank lines are silent."""
    for line in lines:
        if not line.strip():
            continue
        try:
            yield parse_line(line)
        except BadLine as reason:
            yield reason
