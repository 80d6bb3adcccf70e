"""Holds back the beginning of a stream until it is known to be an answer or an error.

Reads server-sent events, a JSON array and AWS event-stream frames.  ``response_errors`` decides
whether an event is an error.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.formats.engine.aws_event_stream import AwsFrame, AwsFrameReader
from trimtab.retry.refusals.response_errors import Verdict, event_verdict

MAX_BYTES = 65_536
"""At most so many bytes are held back; then an undecided stream is passed on."""
_MAX_FRAME_BYTES = 16 * MAX_BYTES


class StreamStart:
    """Call ``feed`` with each chunk until ``verdict`` is not "".

    "content": pass on everything held and all that follows.  "refused": ``error`` is the body of
    the refusal; nothing was passed on, so the request may be sent again.  Call ``end`` when the
    stream is over.
    """

    def __init__(self, frames: bool = False) -> None:
        self.verdict: Verdict = ""
        self.error: Any = None
        self._frames = AwsFrameReader(_MAX_FRAME_BYTES) if frames else None
        self._held, self._at = bytearray(), 0

    def feed(self, chunk: bytes) -> Verdict:
        """Take the next bytes of the stream; return the verdict so far."""
        if not self.verdict and chunk:
            self._held += chunk
            if self._frames is None:
                self._text()
            else:
                self._read_frames(self._frames.feed(chunk))
            if not self.verdict and len(self._held) > MAX_BYTES:
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
        """Take one event; return whether the verdict is now known."""
        self.verdict = event_verdict(event)
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

    def _read_frames(self, frames: Iterable[AwsFrame]) -> None:
        for frame in frames:
            if frame.malformed:
                self.verdict = "content"
            elif self._say(_aws_event(frame.headers, frame.payload)):
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


def _aws_event(headers: Mapping[str, str], payload: bytes) -> Any:
    """One frame as an event: an exception becomes an error, a chunk its parsed content."""
    body = _loads(payload)
    if headers.get(":message-type") in ("exception", "error"):
        name = headers.get(":exception-type") or headers.get(":error-code") or "error"
        error = body if isinstance(body, dict) else {"message": payload.decode("utf-8", "replace")}
        return {"error": {"code": name, **error}}
    if headers.get(":event-type") == "chunk" and isinstance(body, dict):
        return _chunk(body.get("bytes"))
    return {**(body if isinstance(body, dict) else {}), "type": headers.get(":event-type")}
