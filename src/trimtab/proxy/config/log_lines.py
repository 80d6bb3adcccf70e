"""Log lines of the proxy, as text or as JSON.

A line holds names of ours, counts, sizes and times.  Never a body, a key, a query, or a header's
value.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Literal, TextIO

LOGGER = "trimtab.proxy"
Style = Literal["text", "json"]


class _Lines(logging.Formatter):
    """``12:01:33 anthropic 200 …``, or one JSON object a line."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._line_style = style

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = getattr(record, "facts", {})
        if self._line_style == "json":
            row = {"time": round(record.created, 3), "level": record.levelname.lower()}
            return json.dumps({**row, "message": record.getMessage(), **facts})
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = "  ".join(f"{key}={value}" for key, value in facts.items())
        text = record.getMessage()
        return f"{clock} {text}  {fields}".rstrip() if fields else f"{clock} {text}"


def set_up(style: Style = "text", stream: TextIO | None = None) -> None:
    """Write our log lines to a stream (default stderr)."""
    logger = logging.getLogger("trimtab")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Lines(style))
    handler.addFilter(lambda record: not hasattr(record, "quotes_tool"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def silence() -> None:
    """Write no log lines."""
    logger = logging.getLogger("trimtab")
    logger.handlers = [logging.NullHandler()]
    logger.propagate = False


def say(message: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Log one line with the given fields."""
    logging.getLogger(LOGGER).log(level, "%s", message, extra={"facts": facts})
