"""The last requests, for the dashboard: status, times, tokens, and their texts if configured.

Texts are kept in memory only, up to a limit; the oldest are dropped first.
"""

from __future__ import annotations

from collections import deque

from trimtab.proxy.records.request_record import RequestRecord

MAX_REQUESTS = 500
MAX_TEXT_BYTES = 32_000_000
MAX_REQUEST_TEXT_BYTES = 4_000_000


class RecentRequests:
    """Newest last."""

    def __init__(self) -> None:
        self.rows: deque[RequestRecord] = deque(maxlen=MAX_REQUESTS)
        self._held = 0

    def add(self, record: RequestRecord) -> None:
        """Add a request that has ended."""
        if record.texts is not None and record.texts.held_bytes > MAX_REQUEST_TEXT_BYTES:
            record.texts = None
        if len(self.rows) == MAX_REQUESTS:
            self._drop_texts(self.rows[0])
        self.rows.append(record)
        self._held += record.texts.held_bytes if record.texts is not None else 0
        for old in self.rows:
            if self._held <= MAX_TEXT_BYTES:
                break
            self._drop_texts(old)

    def _drop_texts(self, record: RequestRecord) -> None:
        if record.texts is not None:
            self._held -= record.texts.held_bytes
            record.texts = None  # its session keeps the record

    def forget(self, session: str) -> None:
        """Drop the requests of a session."""
        for row in self.rows:
            if row.session == session:
                self._drop_texts(row)
        self.rows = deque((row for row in self.rows if row.session != session), MAX_REQUESTS)

    def newest(self, session: str) -> RequestRecord | None:
        """A session's newest request whose texts are kept; None without one."""
        own = (row for row in reversed(self.rows) if row.session == session)
        return next((row for row in own if row.texts is not None), None)

    def get(self, number: int) -> RequestRecord | None:
        """The request with this number, or None once it is dropped."""
        return next((row for row in reversed(self.rows) if row.request == number), None)
