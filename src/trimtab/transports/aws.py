"""boto3: the events of a ``bedrock-runtime`` client, so that each retry is signed anew.

Knows botocore's events, its request dict and its streams.  Converse and ConverseStream, and
InvokeModel with Claude's bodies; every other operation passes through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.flow import Accepted, Done, Flow, Refused, Send
from trimtab.refusals.answers import of_body, prompt_tokens
from trimtab.refusals.openings import Opening
from trimtab.telling.log import logger
from trimtab.transports.guard import HEADER, Guard, guard_of

OPERATIONS = ("Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream")
_CONTEXT = "trimtab"
_STREAMS = ("stream", "body")
"""Where a parsed answer has its events: of ConverseStream, of InvokeModelWithResponseStream."""


def boto3(client: Any, *, guard: Guard | None = None, **keywords: Any) -> Any:
    """Guard a ``bedrock-runtime`` client, or a whole ``boto3.Session``; the very object comes back.

    ``keywords`` are those of ``Guard``.  A retry of ours is sent and signed by botocore; with its
    own retries it counts as one of the attempts.  Raises InvalidSetting for anything else.
    """
    guard = guard_of(guard, keywords)
    events = getattr(getattr(client, "meta", None), "events", None) or getattr(
        client, "events", None
    )
    if events is None:
        raise InvalidSetting(
            f"{type(client).__name__} has no events: give a boto3 client or session"
        )
    hooks = _Hooks(guard)
    for operation in OPERATIONS:
        name = f"bedrock-runtime.{operation}"
        events.register(f"before-call.{name}", hooks.before_call, unique_id=f"trimtab-{name}")
        events.register(f"needs-retry.{name}", hooks.needs_retry, unique_id=f"trimtab-retry-{name}")
    return client


class _Call:
    """One call of the client: what it was to send, and the flow it is in."""

    def __init__(self, guard: Guard, params: Mapping[str, Any]) -> None:
        self.guard = guard
        self.body: bytes = params["body"]
        self.url = str(params["url"])
        self.run: Flow | None = None
        self.first: bytes = self.begin()

    def begin(self) -> bytes:
        """A flow from the start; what it sends first."""
        started = self.guard.start("POST", self.url, {}, lambda: self.body)
        if started is None:
            return self.body
        self.run = started[0]
        first: bytes = next(self.run).request
        return first

    def tell(self, reply: Refused | Accepted) -> Send | Done:
        """What the flow does about this reply; a new flow where botocore sends again by itself."""
        if self.run is None:
            self.begin()
        assert self.run is not None
        try:
            return self.run.send(reply)
        except StopIteration as stop:
            self.run = None
            done: Done = stop.value
            return done


class _Hooks:
    """The two events: before the request is made, and when its answer is there."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def before_call(self, params: dict[str, Any], **_: Any) -> None:
        """Put the fitted body into botocore's own request; the caller's parameters stay."""
        if not isinstance(params.get("body"), (bytes, bytearray)):
            return
        params["body"] = bytes(params["body"])
        call = _Call(self._guard, params)
        if call.run is not None:
            params["context"][_CONTEXT] = call
            params["body"] = call.first

    def needs_retry(
        self, response: Any, request_dict: dict[str, Any], operation: Any, **_: Any
    ) -> float | None:
        """Seconds to wait before the next attempt with a smaller body; None: not ours to retry."""
        call = request_dict.get("context", {}).get(_CONTEXT)
        if call is None or response is None:
            return None
        try:
            http, parsed = response
            step = call.tell(_reply(http, parsed))
            if isinstance(step, Done):
                self._guard.observe(parsed, step)
                parsed.setdefault("ResponseMetadata", {}).setdefault("HTTPHeaders", {})[HEADER] = (
                    step.summary
                )
                return None
        except Exception as error:
            logger().warning("not sent again: %s: %s", type(error).__name__, error)
            return None
        request_dict["body"] = step.request
        return 0.0


def _reply(http: Any, parsed: dict[str, Any]) -> Refused | Accepted:
    if http.status_code >= 400:
        return Refused(http.status_code, parsed.get("Error", parsed), dict(http.headers))
    for key in _STREAMS:
        if hasattr(parsed.get(key), "_event_generator"):
            return _opened(parsed[key])
    body = parsed.get("body")
    if body is not None:  # InvokeModel: a stream of bytes that only the caller reads
        return Accepted()
    error = of_body(parsed)
    return Accepted(prompt_tokens(parsed), final=False) if error is None else Refused(200, error)


def _opened(events: Any) -> Refused | Accepted:
    """Read a stream of events until it says something, and put what was read before the rest."""
    raw, opening = events._raw_stream, Opening(frames=True)
    chunks: list[bytes] = []
    pieces = raw.stream()
    for piece in pieces:
        chunks.append(piece)
        if opening.feed(piece):
            break
    else:
        opening.end()
    events._raw_stream = _Replay(chunks, pieces, raw)
    if opening.verdict == "refused":
        return Refused(200, opening.error)
    return Accepted()


class _Replay:
    """A raw stream of botocore's: what was read, then the rest."""

    def __init__(self, chunks: list[bytes], more: Iterator[bytes], raw: Any) -> None:
        self._chunks, self._more, self._raw = chunks, more, raw

    def stream(self) -> Iterator[bytes]:
        """All pieces in order."""
        yield from self._chunks
        yield from self._more

    def close(self) -> None:
        """Give the connection back."""
        self._raw.close()


__all__ = ["OPERATIONS", "boto3"]
