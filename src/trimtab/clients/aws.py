"""boto3: hooks on the events of a ``bedrock-runtime`` client, so that each retry is signed anew.

Handles Converse and ConverseStream, and InvokeModel with Claude's bodies; every other operation
passes through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from trimtab.clients.guard import Guard, Started, WrapKeywords, guard_of
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import Reply, reply_of
from trimtab.clients.sent_fits import SentFits
from trimtab.clients.wrapped_clients import GUARDED_EVENT
from trimtab.errors import InvalidSetting, NotAClient
from trimtab.retry.flow import Accepted, Done, Flow, Refused, Send
from trimtab.retry.own_header import HEADER, ROUNDS
from trimtab.retry.refusals.response_errors import event_verdict
from trimtab.telemetry import cause, logger

if TYPE_CHECKING:
    from trimtab.formats.bedrock.answers import BedrockRewriter
    from trimtab.rounds.recall_rounds import RecallRounds

OPERATIONS = ("Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream")
SERVICE = "bedrock-runtime"
_CONTEXT = "trimtab"
_STREAMS = ("stream", "body")
"""Keys of a parsed answer's events: of ConverseStream, of InvokeModelWithResponseStream."""
Client = TypeVar("Client")


def boto3(client: Client, **keywords: Unpack[WrapKeywords]) -> Client:
    """Wrap a ``bedrock-runtime`` client, or a whole ``boto3.Session``; the very object comes back.

    Keywords are those of ``wrap``.  A retry of ours is sent and signed by botocore, and counts
    among botocore's own attempts.  Raises NotAClient for a client of another service or one wrapped
    already, and InvalidSetting for anything else.
    """
    return hooked(client, guard_of("boto3", keywords, f"boto3.{type(client).__name__}"))


def hooked(client: Client, guard: Guard) -> Client:
    """``client`` with hooks that fit what it sends.  Raises what ``boto3`` raises."""
    events = getattr(getattr(client, "meta", None), "events", None) or getattr(
        client, "events", None
    )
    if events is None:
        raise InvalidSetting(
            f"{type(client).__name__} has no events: give a boto3 client or session"
        )
    service = _service(client)
    if service not in ("", SERVICE):
        raise NotAClient(f"a client of {service} cannot be wrapped: make one of {SERVICE}")
    if events.emit(GUARDED_EVENT):  # a client has the hooks of the session that made it
        raise NotAClient(
            f"this {type(client).__name__} is wrapped already, itself or by its session: use it, "
            "or make a new one"
        )
    hooks = _Hooks(guard, client if service else None)
    events.register(GUARDED_EVENT, hooks.fits)
    for operation in OPERATIONS:
        name = f"{SERVICE}.{operation}"
        events.register(f"before-call.{name}", hooks.before_call, unique_id=f"trimtab-{name}")
        events.register(f"needs-retry.{name}", hooks.needs_retry, unique_id=f"trimtab-retry-{name}")
    return client


def _service(client: Any) -> str:
    """The name of the client's service; "" for a session."""
    model = getattr(getattr(client, "meta", None), "service_model", None)
    return str(getattr(model, "service_name", ""))


class _BotocoreCall:
    """One call of the client: the body it was to send, its retry flow, and its rounds if it offers
    the recall tool."""

    def __init__(
        self, guard: Guard, params: Mapping[str, Any], target: RequestTarget | None = None, *,
        can_send: bool = False,
    ) -> None:  # fmt: skip
        """``target``: that of a later round, whose answer another call takes; ``can_send``: whether
        the rounds of a stream can be sent while it is read."""
        self.guard, self._can_send = guard, can_send
        self.body: bytes = params["body"]
        self.url = str(params["url"])
        self.flow: Flow | None = None
        self.rounds: RecallRounds | None = None
        self._started: Started | None = None
        self._is_round, self.target = target is not None, target
        self._shown: BedrockRewriter | None = None
        """Makes the caller's answer, of what botocore has parsed."""
        self.first: bytes = self.begin()

    def begin(self) -> bytes:
        """Start a flow; return the first body to send."""
        if self._is_round:
            return self._next_flow(self.body)
        if self.rounds is not None:  # botocore has sent again; rounds that are over stay so
            return self._next_flow(self.rounds.sent)
        started = self.guard.start(
            "POST", self.url, {}, lambda: self.body, streams_rewritten=self._can_send
        )
        if started is None:
            return self.body
        self._started = started
        self.flow, self.target, self.rounds, _ = started
        first: bytes = next(self.flow).request
        return first

    def _next_flow(self, body: bytes) -> bytes:
        assert self.target is not None
        self.flow = self.guard.round_flow(body, self.target)
        first: bytes = next(self.flow).request
        return first

    def without_recall(self, http: Any, done: Done) -> bytes | None:
        """The body without the recall tool, where the provider refused it for that."""
        if self._started is None or done.accepted:
            return None
        error = http.content if http.status_code >= 400 else b""  # a stream is not read here
        self.flow = self.guard.without_recall(self._started, done, error)
        if self.flow is None:
            return None
        self._started = self.rounds = None
        first: bytes = next(self.flow).request
        return first

    def next_round(self, http: Any, parsed: dict[str, Any]) -> bytes | None:
        """The body of the next round after an answer, ``parsed`` by botocore from ``http``; None
        after the last one: then ``parsed`` is what all rounds said."""
        rounds = self.rounds
        if rounds is None or "stream" in parsed:
            return None
        from trimtab.formats.bedrock.answers import BedrockRewriter
        from trimtab.rounds.answer_steps import guarded

        if self._shown is None:
            self._shown = BedrockRewriter()
            self._shown.ours, self._shown.sums_prompts = rounds.rewriter.ours, True
        for rewriter, tree in ((rounds.rewriter, json.loads(http.content)), (self._shown, parsed)):
            rewriter.begin()
            rewriter.take_full_response(tree)
        body = guarded(rounds.follow)
        if body is not None:
            rounds.next_begins()
            self._shown = self._shown.started_over() if rounds.only_last else self._shown
            return self._next_flow(body)
        guarded(rounds.remember)
        if rounds.rounds > 1 or rounds.rewriter.recalls:
            parsed |= self._shown.answer()
        return None

    def next_step(self, reply: Reply) -> Send | Done:
        """The flow's reaction to ``reply``; a new flow if botocore itself has sent again."""
        if self.flow is None:
            self.begin()
        assert self.flow is not None
        try:
            return self.flow.send(reply)
        except StopIteration as stop:
            self.flow = None
            done: Done = stop.value
            return done


class _Hooks:
    """Handlers of two events: before the request is made, and after its answer."""

    def __init__(self, guard: Guard, client: Any = None) -> None:
        """``client`` sends the later rounds of a stream; None, for a session: they are not sent."""
        self._guard, self._client = guard, client
        self._round = ContextVar[tuple[bytes, RequestTarget] | None]("round", default=None)
        """The body of a stream's later round, while it is sent."""

    def fits(self, **_: Any) -> SentFits:
        """What the client has sent, for ``trimtab.of``."""
        return self._guard.fits

    def before_call(self, params: dict[str, Any], **_: Any) -> None:
        """Put the fitted body into botocore's request; the caller's parameters don't change."""
        if not isinstance(params.get("body"), (bytes, bytearray)):
            return
        if (later := self._round.get()) is not None:
            params["body"], target = later
            call = _BotocoreCall(self._guard, params, target)
        else:
            params["body"] = bytes(params["body"])
            call = _BotocoreCall(self._guard, params, can_send=self._client is not None)
        if call.flow is not None:
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
            step = call.next_step(_reply(http, parsed))
            if isinstance(step, Done):
                self._guard.observe(parsed, step)
                following = call.next_round(http, parsed) if step.accepted else None
                following = following or call.without_recall(http, step)
                if following is not None:
                    request_dict["body"] = following
                    return 0.0
                fields = parsed.setdefault("ResponseMetadata", {}).setdefault("HTTPHeaders", {})
                fields[HEADER] = step.summary
                if call.rounds is not None and step.accepted:
                    fields[ROUNDS] = str(call.rounds.rounds)
                    self._join_rounds(call, parsed, fields)
                return None
        except Exception as error:
            logger().warning("not sent again: %s", cause(error))
            return None
        request_dict["body"] = step.request
        return 0.0

    def _join_rounds(
        self, call: _BotocoreCall, parsed: dict[str, Any], fields: dict[str, str]
    ) -> None:
        """Let the stream of an answer go on with its later rounds."""
        rounds, target, events = call.rounds, call.target, parsed.get("stream")
        if rounds is not None and target is not None and isinstance(events, _HeldEvents):
            from trimtab.clients.aws_streams import RoundsStream

            send = partial(self._send_round, target)
            parsed["stream"] = RoundsStream(rounds, events, send, fields)

    def _send_round(self, target: RequestTarget, body: bytes) -> Any:
        """The events of a later round.  It is sent by the client's own method, with ``body`` in
        place of what that makes of its parameters; so botocore signs it and retries it."""
        nothing = [{"role": "user", "content": [{"text": "."}]}]
        token = self._round.set((body, target))
        try:
            return self._client.converse_stream(modelId=target.model, messages=nothing)["stream"]
        finally:
            self._round.reset(token)


def _reply(http: Any, parsed: dict[str, Any]) -> Reply:
    if http.status_code >= 400:
        error = http.content or parsed.get("Error", parsed)  # botocore keeps only what it knows
        return reply_of(http.status_code, error, dict(http.headers))
    for key in _STREAMS:
        if _is_stream(parsed.get(key)):
            parsed[key], reply = _opened(parsed[key])
            return reply
    if parsed.get("body") is not None:  # InvokeModel: a stream that only the caller reads
        return Accepted()
    return reply_of(200, parsed)


def _is_stream(value: Any) -> bool:
    from botocore.eventstream import EventStream

    return isinstance(value, EventStream)


def _opened(events: Any) -> tuple[_HeldEvents, Reply]:
    """A stream read until its first content, with the events read put before the rest."""
    from botocore.exceptions import EventStreamError

    held = _HeldEvents(events)
    try:
        for event in held.rest:
            held.first.append(event)
            verdict = event_verdict(_plain(event))
            if verdict:
                refused = verdict == "refused"
                return held, Refused(200, _plain(event)) if refused else Accepted()
    except EventStreamError as error:
        held.error = error
        return held, Refused(200, {"error": _named(error)})
    return held, Accepted() if held.first else Refused(200, b"")


def _plain(event: Mapping[str, Any]) -> Any:
    """An event as other streams have it: a dict with its type, or the parsed bytes of a chunk."""
    name: str = next(iter(event), "")
    value: Any = event.get(name)
    if name == "chunk":
        try:
            return json.loads(value["bytes"])
        except (KeyError, TypeError, ValueError):
            return None
    return {**(value if isinstance(value, dict) else {}), "type": name}


def _named(error: Any) -> dict[str, str]:
    """The code and message of an exception in a stream."""
    fields = error.response.get("Error", {})
    return {"code": str(fields.get("Code", "")), "message": str(fields.get("Message", ""))}


class _HeldEvents:
    """A botocore stream: the events already read, then the rest, or the stream's error."""

    def __init__(self, events: Any) -> None:
        self.first: list[Any] = []
        self.rest: Iterator[Any] = iter(events)
        self.error: Exception | None = None
        self._events = events

    def __iter__(self) -> Iterator[Any]:
        """All events in order."""
        yield from self.first
        if self.error is not None:
            raise self.error
        yield from self.rest

    def close(self) -> None:
        """Release the connection."""
        self._events.close()


__all__ = ["OPERATIONS", "boto3"]
