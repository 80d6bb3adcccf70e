"""A provider that can be refused by: what it takes, what it answers, what it remembers.

Knows how a judged request becomes a response.  Does not know HTTP (``app`` and ``server`` do) nor
any provider's shapes (``wire``, ``refusals``).  Without a clock of yours it knows no time: equal
runs get equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.testing import wire as wires
from trimtab.testing.answers import Answer, Call
from trimtab.testing.binding import sign
from trimtab.testing.cache import Hit, PrefixCache, rule_for
from trimtab.testing.faults import Cut, Refuse, Script, Slow, Step, Steps, as_answer
from trimtab.testing.judge import Judged, Policy, judge, numbers
from trimtab.testing.prefix import after_all
from trimtab.testing.record import Record
from trimtab.testing.refusals import Refusal, Shape, Style, refusal, style_for, styles
from trimtab.testing.server import Server
from trimtab.testing.wire import Bill, Reply, Route, Wire
from trimtab.testing.wire.base import arguments, dump, hex_id
from trimtab.testing.wire.openai_responses import history, output, response_id
from trimtab.tokens import Counter, counter_for


@dataclass(frozen=True, slots=True)
class Response:
    """What goes out: chunks of the body, seconds to wait, and after how many bytes to break."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    streamed: bool = False
    first: float = 0.0
    between: float = 0.0
    cut: int | None = None


class StrictProvider(Server):
    """A fake provider that is as strict as the real ones, for tests.

    ``with StrictProvider(["hello"], window=8_000) as provider:`` listens on ``provider.url`` (a
    thread, 127.0.0.1, a free port); ``provider.app`` is the same as an ASGI app.  All five
    formats are answered at their native paths, plain and streaming.

    - ``script``: answers and faults in order, or a function from a ``Record`` to one; ``answer``
      is what follows when they are used up.  Only accepted requests use them up.
    - ``window``: tokens of prompt and requested output; ``counter`` counts them ("o200k", any
      counter or function; None: the best for the model).
    - ``style``: whose words and habits, see ``styles()``; None: each format's own provider.
    - ``overflow_as``: how an overflow shows; None: as that style does it.
    - ``request_bytes``, ``result_chars`` (of one tool result), ``images``: more limits.
    - ``bind_thinking``: refuse signed thinking whose prefix moved, for models that bind it.
    - ``clock``: seconds, to let cache entries expire; None: they never do.
    - ``max_requests``: refuse all after so many, against clients that loop.

    ``provider.requests`` is the log.  Raises InvalidSetting; MissingExtra when started without
    the extra "testing".
    """

    def __init__(
        self,
        script: Script = (),
        *,
        window: int | None = None,
        counter: str | Callable[[str], int] | Counter | None = "o200k",
        style: str | None = None,
        overflow_as: Shape | None = None,
        request_bytes: int | None = None,
        result_chars: int | None = None,
        images: int | None = None,
        bind_thinking: bool = True,
        answer: Answer | str = "OK",
        clock: Callable[[], float] | None = None,
        max_requests: int | None = None,
        secret: str = "trimtab",
    ) -> None:
        super().__init__()
        style_for(style, "")
        for name, number in (("window", window), ("request_bytes", request_bytes)):
            if number is not None and number <= 0:
                raise InvalidSetting(f"{name}={number!r}: give a whole number above 0")
        self.requests: list[Record] = []
        self._policy = Policy(
            window, counter, request_bytes, result_chars, images, bind_thinking, secret
        )
        self._style, self._overflow_as, self._most = style, overflow_as, max_requests
        self._steps = Steps(script, as_answer(answer))
        self._cache = PrefixCache(clock)
        self._stored: dict[str, list[Any]] = {}

    # --- one request -------------------------------------------------------------------------

    def respond(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Response:
        """The response to one HTTP request; what happened is appended to ``requests``."""
        found = wires.find(path, query)
        if found is None or method != "POST":
            error = {"message": f"Unknown request URL: {method} {path}", "type": "not_found"}
            return Response(404, _json_type(), (dump({"error": error}),))
        wire, route = found
        style = style_for(self._style, wire.format)
        record = Record(
            len(self.requests) + 1, wire.format, route.operation, path, None, dict(headers),
            route.model, body_bytes=len(body),
        )  # fmt: skip
        self.requests.append(record)
        response = self._answered(wire, route, style, record, body)
        record.status = response.status
        return response

    def _answered(
        self, wire: Wire, route: Route, style: Style, record: Record, body: bytes
    ) -> Response:
        try:
            record.body = tree = json.loads(body)
        except ValueError:
            return self._refused(wire, style, record, "rule:no_json", {"message": _NO_JSON})
        record.stream = wire.streams(tree) if route.streams is None else route.streams
        asked = wire.request(tree, route)
        whole = self._remembered(asked) if wire.format == "openai-responses" else asked
        if whole is None:
            facts = {"id": asked["previous_response_id"]}
            return self._refused(wire, style, record, "response_not_found", facts)
        judged = judge(self._policy, wire, style, whole, record)
        if self._most is not None and record.number > self._most:
            judged = Judged("rule:max_requests", {"message": f"{self._most} requests are enough"})
        shape = self._shape(wire, style, record, judged.when)
        if judged.when and shape not in ("truncate", "finish"):
            return self._refused(wire, style, record, judged.when, judged.facts, shape)
        if route.operation == "count":
            return Response(200, self._headers(wire, record), (dump(wire.counted(record.tokens)),))
        if judged.when:
            record.refusal = judged.when
            if shape == "finish":
                return self._spoken(
                    wire, route, style, record, judged, whole, Answer(stop="window")
                )
            self._forget_oldest(record, judged)
        step = self._steps.next(record)
        if isinstance(step, Refuse):
            return self._scripted(wire, style, record, step)
        return self._spoken(wire, route, style, record, judged, whole, step)

    def _remembered(self, asked: Any) -> Any:
        """The request with what ``previous_response_id`` stands for; None if nothing does."""
        before = asked.get("previous_response_id") if isinstance(asked, dict) else None
        if before is None:
            return asked
        if before not in self._stored:
            return None
        rest = {key: value for key, value in asked.items() if key != "previous_response_id"}
        return {**rest, "input": [*self._stored[before], *history(asked)]}

    def _forget_oldest(self, record: Record, judged: Judged) -> None:
        """Leave messages out from the front until the prompt fits, and say nothing."""
        window, chain = self._policy.window or record.tokens, judged.units
        head = max((unit.tokens for unit in chain if unit.message < 0), default=0)
        ends = {unit.message: unit.tokens for unit in chain if unit.message >= 0}
        total = record.tokens
        kept = [
            head + total - end for end in (head, *ends.values()) if head + total - end <= window
        ]
        shown = max(kept, default=head)
        record.truncated, record.tokens = total - shown, shown

    # --- answers -----------------------------------------------------------------------------

    def _spoken(
        self, wire: Wire, route: Route, style: Style, record: Record, judged: Judged, whole: Any,
        step: Step,
    ) -> Response:  # fmt: skip
        assert not isinstance(step, Refuse)
        answer = as_answer(step.answer if isinstance(step, (Cut, Slow)) else step)
        rule = rule_for(wire.format, style.name, judged.model)
        whole_prompt = not record.truncated
        hit = (
            self._cache.take(judged.model or "", judged.units, rule) if whole_prompt else Hit(0, 0)
        )
        record.cached_tokens, record.written_tokens = hit
        reply = self._reply(wire, style, record, judged, whole, answer, route.listed)
        if wire.format == "openai-responses" and whole.get("store") is not False:
            self._stored[response_id(reply)] = [*history(whole), *output(reply)]
        chunks = tuple(wire.events(reply)) if record.stream else (dump(wire.whole(reply)),)
        response = Response(200, self._headers(wire, record), chunks, record.stream)
        if isinstance(step, Cut):
            return replace(response, cut=step.after_bytes)
        if isinstance(step, Slow):
            return replace(response, first=step.first, between=step.between)
        return response

    def _reply(
        self, wire: Wire, style: Style, record: Record, judged: Judged, whole: Any,
        answer: Answer, listed: bool = False,
    ) -> Reply:  # fmt: skip
        count = counter_for(self._policy.counter, model=judged.model, format=wire.format)
        pattern = style.call_id or wire.call_id
        calls = tuple(
            call if call.id else Call(call.name, call.arguments, _call_id(pattern, record, n, call))
            for n, call in enumerate(answer.calls)
        )
        said = [answer.text, *(call.name for call in calls), *(arguments(call) for call in calls)]
        thinking = count(answer.thinking) if answer.thinking else 0
        spoken = thinking + sum(count(text) for text in said if text)
        before = after_all(judged.units, {"role": "assistant"})
        return Reply(
            record.number, record.model or "model", answer.text, answer.thinking,
            sign(self._policy.secret, answer.thinking, before), calls,
            Bill(record.tokens, record.cached_tokens, record.written_tokens, spoken, thinking),
            answer.stop, whole, record.dropped, listed, style.name,
        )  # fmt: skip

    def _headers(self, wire: Wire, record: Record) -> tuple[tuple[str, str], ...]:
        kind = wire.stream_type if record.stream else "application/json"
        return (("content-type", kind), *wire.headers(record.number, None))

    # --- refusals ----------------------------------------------------------------------------

    def _shape(self, wire: Wire, style: Style, record: Record, when: str) -> Shape:
        if not when.startswith("overflow"):
            return "status"
        shape = self._overflow_as or style.shape(wire.format, record.stream)
        return "status" if shape.endswith("-stream") and not record.stream else shape

    def _scripted(self, wire: Wire, style: Style, record: Record, step: Refuse) -> Response:
        given = record.tokens if step.input is None else step.input
        output = record.output if step.output is None else step.output
        tight = max(1, given * 3 // 4)
        limit = step.limit or (tight if step.when.startswith("rate") else self._policy.window)
        facts = numbers(given, output, limit or tight)
        facts |= {"seconds": step.retry_after if step.retry_after is not None else 1}
        facts |= {"bytes": record.body_bytes, "index": 0, "block": 0, "next": 1, "message": ""}
        shape = step.shape or self._shape(wire, style, record, step.when)
        if shape in ("truncate", "finish"):
            shape = "status"
        return self._refused(wire, style, record, step.when, facts, shape, step)

    def _refused(
        self, wire: Wire, style: Style, record: Record, when: str, facts: Mapping[str, object],
        shape: Shape = "status", step: Refuse | None = None,
    ) -> Response:  # fmt: skip
        record.refusal = when
        request_id = f"req_{record.number:08x}"
        known = {**facts, "model": record.model or "model", "request_id": request_id}
        if step is not None and step.body is not None:
            made = Refusal(when, step.status or 400, step.body, shape)
        else:
            made = refusal(style, wire.format, when, known, shape=shape)
        if step is not None and step.status is not None:
            made = replace(made, status=step.status)
        more = wire.headers(record.number, made)
        if step is not None and step.retry_after is not None:
            more = (*more, ("retry-after", f"{step.retry_after:g}"))
        if record.stream and shape in ("in-stream", "empty-stream"):
            judged = Judged(model=record.model)
            reply = self._reply(wire, style, record, judged, record.body, Answer())
            chunks = tuple(wire.broken(reply, made)) if shape == "in-stream" else ()
            return Response(200, self._headers(wire, record), chunks, True)
        plain = isinstance(made.body, str)
        kind = (("content-type", "text/plain"),) if plain else _json_type()
        body = made.body.encode() if plain else dump(made.body)
        return Response(made.status, (*kind, *more), (body,))


_NO_JSON = "We could not parse the JSON body of your request."


def _json_type() -> tuple[tuple[str, str], ...]:
    return (("content-type", "application/json"),)


def _call_id(pattern: str, record: Record, number: int, call: Call) -> str:
    """An id in the provider's fashion, the same in each equal run."""
    digits = hex_id(f"{record.number}/{number}", 32)
    lengths = {f"hex{chars}": digits[:chars] for chars in (9, 12, 22, 24)}
    return pattern.format(name=call.name, number=record.number * 100 + number, **lengths)


__all__ = ["Response", "StrictProvider", "styles"]
