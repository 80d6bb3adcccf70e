"""The beginning of a stream, held back until it is an answer or turns out to be a refusal.

Knows the framings: server-sent events, a JSON array, AWS event-stream frames.  What an event says
is told in ``answers``.  Does not know where the bytes come from or go.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from trimtab.refusals.answers import Verdict, of_event

MOST_BYTES = 65_536
"""Held back at most; a stream that says nothing for so long is passed on."""
_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 and 7 carry their own length."""


class Opening:
    """``feed`` each chunk; once ``verdict`` is not "", stop holding.

    "content": pass on everything held and all that follows.  "refused": ``error`` is the body of
    the refusal; nothing was passed on, so the request may be sent again.  ``end`` says that the
    stream is over.
    """

    def __init__(self, frames: bool = False) -> None:
        self.verdict: Verdict = ""
        self.error: Any = None
        self._frames, self._held, self._at = frames, bytearray(), 0

    def feed(self, chunk: bytes) -> Verdict:
        """The next bytes of the stream."""
        if not self.verdict and chunk:
            self._held += chunk
            self._frame() if self._frames else self._text()
            if not self.verdict and len(self._held) > MOST_BYTES:
                self.verdict = "content"
        return self.verdict

    def end(self) -> Verdict:
        """The stream is over: one without a byte is a refusal, any other an answer."""
        if not self.verdict:
            self.verdict = "content" if self._held.strip() else "refused"
            self.error = b""
        return self.verdict

    @property
    def held(self) -> bytes:
        """All bytes so far."""
        return bytes(self._held)

    def _say(self, event: Any) -> bool:
        """Take one event in; whether that decided it."""
        self.verdict = of_event(event)
        if self.verdict == "refused":
            self.error = event
        return bool(self.verdict)

    def _text(self) -> None:
        start = bytes(self._held[:16]).lstrip()
        if start[:1] in (b"[", b"{"):
            self._json()
            return
        while (end := self._held.find(b"\n", self._at)) >= 0:
            line = bytes(self._held[self._at : end]).strip()
            self._at = end + 1
            if line.startswith(b"data:") and self._say(_loads(line[5:])):
                return

    def _json(self) -> None:
        """The first object of a JSON array, or an object that is the whole body."""
        text = self._held.decode("utf-8", "ignore").lstrip().removeprefix("[").lstrip()
        try:
            self._say(json.JSONDecoder().raw_decode(text)[0])
        except (ValueError, RecursionError):
            return

    def _frame(self) -> None:
        """AWS frames: lengths, headers, payload, checksums (which the client checks)."""
        while len(self._held) - self._at >= 12:
            total = int.from_bytes(self._held[self._at : self._at + 4], "big")
            size = int.from_bytes(self._held[self._at + 4 : self._at + 8], "big")
            if total < 16 + size or total > 16 * MOST_BYTES:
                self.verdict = "content"
                return
            if len(self._held) - self._at < total:
                return
            head = self._held[self._at + 12 : self._at + 12 + size]
            payload = bytes(self._held[self._at + 12 + size : self._at + total - 4])
            self._at += total
            if self._say(_aws_event(_headers(bytes(head)), payload)):
                return


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _chunk(text: Any) -> Any:
    try:
        return _loads(base64.b64decode(text or ""))
    except (ValueError, TypeError):
        return None


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode("latin-1"), data[end] if end < len(data) else -1
        at = end + 1
        size = _SIZES.get(kind)
        if size is None:
            size = int.from_bytes(data[at : at + 2], "big")
            at += 2
        if kind == _STRING:
            found[name] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return found


def _aws_event(headers: dict[str, str], payload: bytes) -> Any:
    """One frame as an event: an exception as an error, a chunk as what is in it."""
    body = _loads(payload)
    if headers.get(":message-type") in ("exception", "error"):
        name = headers.get(":exception-type") or headers.get(":error-code") or "error"
        said = body if isinstance(body, dict) else {"message": payload.decode("utf-8", "replace")}
        return {"error": {"code": name, **said}}
    if headers.get(":event-type") == "chunk" and isinstance(body, dict):
        return _chunk(body.get("bytes"))
    return {**(body if isinstance(body, dict) else {}), "type": headers.get(":event-type")}
