"""The last requests, for the dashboard: status, times, tokens, and their texts if configured.

Texts are kept in memory only, up to a limit; the oldest are dropped first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MOST = 500
MOST_TEXT_BYTES = 32_000_000
MOST_ONE_TEXT = 4_000_000


@dataclass(slots=True)
class RequestTexts:
    """Bodies of one request: as received, as sent, and the answer as the client got it.

    ``encoding``: the content encoding of the first; ``cut``: whether the answer was longer.
    """

    came: bytes
    went: bytes
    answer: bytes
    encoding: str = ""
    cut: bool = False

    @property
    def held_bytes(self) -> int:
        """Bytes in memory.  A request sent unchanged is counted once: both bodies are one
        object."""
        sent = 0 if self.went is self.came else len(self.went)
        return len(self.came) + sent + len(self.answer)


@dataclass(slots=True)
class RequestRecord:
    """One forwarded request and its outcome; ``session`` is "" if it belongs to none."""

    number: int
    when: float
    upstream: str
    path: str
    operation: str
    client: str = ""
    model: str = ""
    session: str = ""
    status: int = 0
    seconds: float = 0.0
    first_byte: float = 0.0
    arrived: int = 0
    sent: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    sends: int = 1
    problem: str = ""
    texts: RequestTexts | None = field(default=None, repr=False)

    @property
    def failed(self) -> bool:
        """Whether the client got no answer, or an error."""
        return not 0 < self.status < 400


class RecentRequests:
    """Newest last.  ``keeps_texts``: whether their texts are kept."""

    def __init__(self) -> None:
        self.keeps_texts = False
        self.rows: deque[RequestRecord] = deque(maxlen=MOST)
        self._count = 0
        self._held = 0

    def next_number(self) -> int:
        """The number of a new request, counted from 1."""
        self._count += 1
        return self._count

    def add(self, record: RequestRecord) -> None:
        """Add a request that has ended."""
        if record.texts is not None and (
            not self.keeps_texts or record.texts.held_bytes > MOST_ONE_TEXT
        ):
            record.texts = None
        if len(self.rows) == MOST and (oldest := self.rows[0].texts) is not None:
            self._held -= oldest.held_bytes
        self.rows.append(record)
        self._held += record.texts.held_bytes if record.texts is not None else 0
        for old in self.rows:
            if self._held <= MOST_TEXT_BYTES:
                break
            if old.texts is not None:
                self._held -= old.texts.held_bytes
                old.texts = None

    def newest(self, session: str) -> RequestRecord | None:
        """A session's newest request whose texts are kept; None without one."""
        own = (row for row in reversed(self.rows) if row.session == session)
        return next((row for row in own if row.texts is not None), None)

    def get(self, number: int) -> RequestRecord | None:
        """The request with this number, or None once it is dropped."""
        return next((row for row in reversed(self.rows) if row.number == number), None)
