"""One log line for each request: sizes, times and counts, never content."""

from __future__ import annotations

import logging

from trimtab.proxy.addons.base import Addon
from trimtab.proxy.addons.records import Records
from trimtab.proxy.config import log_lines
from trimtab.proxy.exchange.exchange import Exchange


class RequestLog(Addon):
    """``records``: what is kept of each request."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def response(self, exchange: Exchange) -> None:
        """Write its line."""
        request, status = exchange.request, exchange.reply.status
        turn = self._records.of(exchange)[-1]
        facts: dict[str, object] = {"status": status, "seconds": round(turn.seconds, 3)}
        if turn.session:
            facts |= {
                "session": turn.session, "turn": turn.number, "tokens": turn.sent,
                "saved": turn.saved, "edits": turn.edits, "new": turn.new, "sends": turn.sends,
                "fit_ms": round(turn.fit_ms, 1), "cached": turn.cached,
            }  # fmt: skip
        if exchange.error:
            facts["error"] = exchange.error
        level = logging.WARNING if exchange.error or status >= 500 else logging.INFO
        log_lines.say(f"{request.upstream.name} {request.route.operation}", level=level, **facts)
