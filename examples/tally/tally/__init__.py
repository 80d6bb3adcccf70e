"""Counts requests per hour from access logs."""

from tally.clock import hour_of, parse_zone
from tally.parse import Record, parse_line, parse_lines
from tally.report import Report, build

__all__ = ["Record", "Report", "build", "hour_of", "parse_line", "parse_lines", "parse_zone"]
