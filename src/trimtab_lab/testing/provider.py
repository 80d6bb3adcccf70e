"""The strict provider: takes requests, answers or refuses them, caches prefixes, keeps a log.

``server`` speaks HTTP, ``http_apis`` has each provider's formats, ``refusals`` the error texts.
Without a ``clock`` no time passes, so equal runs get equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.errors import expect
from trimtab.transcript.tokens import Counter, counter_for
from trimtab_lab.testing import http_apis
from trimtab_lab.testing.faults import (
    Cut,
    Refuse,
    Script,
    ScriptRunner,
    ScriptStep,
    Slow,
    as_answer,
)
from trimtab_lab.testing.http_apis import ApiRoute, HttpApi, ModelReply, UsageCounts, compaction
from trimtab_lab.testing.http_apis.answers import Answer, Call
from trimtab_lab.testing.http_apis.base import arguments, dump, hex_id, inner
from trimtab_lab.testing.http_apis.hosted_claude import hosted
from trimtab_lab.testing.http_apis.refusals import (
    ErrorResponse,
    Shape,
    Style,
    error_response,
    style_for,
    styles,
)
from trimtab_lab.testing.http_apis.server import LocalServer, Response
from trimtab_lab.testing.judge import ProviderConfig, Verdict, judge, numbers
from trimtab_lab.testing.prefix_cache import CacheHit, PrefixCache, rule_for
from trimtab_lab.testing.prompt_parts import after_all
from trimtab_lab.testing.record import Record
from trimtab_lab.testing.signed_reasoning import sign

LOG_PATH = "/_requests"
"""The path of the log over HTTP, for tests in other languages."""


class StrictProvider(LocalServer):
    """A fake provider that is as strict as the real ones, for tests.

    ``with StrictProvider(["hello"], window=8_000) as provider:`` listens on ``provider.url`` (a
    thread, 127.0.0.1, a free port); ``provider.app`` is the same as an ASGI app.  All six
    formats are answered at their native paths, plain and streaming.

    - ``script``: answers and faults in order, or a function from a ``Record`` to one; ``answer``:
      the answer when the script is used up.  Only accepted requests take a step of the script.
    - ``window``: tokens of prompt and requested output; ``counter`` counts them ("o200k", any
      counter or function; None: the best for the model).
    - ``style``: the provider to imitate, see ``styles()``; None: each format's own provider.
    - ``overflow_as``: how an overflow is reported; None: as the style does.
    - ``request_bytes``, ``result_chars`` (of one tool result), ``images``, ``image_pixels`` (of
      the longest side; needs Pillow), ``image_bytes`` (of one, in base64): more limits.
    - ``bind_thinking``: refuse signed thinking whose prefix moved, for models that bind it.
    - ``clock``: seconds, to let cache entries expire; None: they never do.
    - ``max_requests``: refuse all later requests, as a guard against clients that loop.

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
        image_pixels: int | None = None,
        image_bytes: int | None = None,
        bind_thinking: bool = True,
        answer: Answer | str = "OK",
        clock: Callable[[], float] | None = None,
        max_requests: int | None = None,
        secret: str = "trimtab",
    ) -> None:
        super().__init__()
        style_for(style, "")
        for name, number in (("window", window), ("request_bytes", request_bytes)):
            above = number is None or (type(number) is int and number > 0)
            expect(above, name, number, "a whole number above 0")
        self.requests: list[Record] = []
        self._config = ProviderConfig(
            window,
            counter,
            request_bytes,
            result_chars,
            images,
            image_pixels,
            image_bytes,
            bind_thinking,
            secret,
        )
        self._style, self._overflow_as, self._most = style, overflow_as, max_requests
        self._steps = ScriptRunner(script, as_answer(answer))
        self._cache = PrefixCache(clock)
        self._stored: dict[str, list[Any]] = {}

    def _log(self, method: str) -> Response:
        """The log for clients that can't read ``requests``: GET returns it, DELETE clears it."""
        if method not in ("GET", "DELETE"):
            return Response(405, _json_type(), (dump({"error": f"{method} {LOG_PATH}"}),))
        requests = [record.as_dict() for record in self.requests]
        if method == "DELETE":
            self.requests.clear()
        return Response(200, _json_type(), (dump({"requests": requests}),))

    # --- one request -------------------------------------------------------------------------

    def respond(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Response:
        """The response to one HTTP request; a record of it is appended to ``requests``."""
        if path == LOG_PATH:
            return self._log(method)
        if path.endswith("/conversations") and method == "POST":
            return self._conversation(body)
        inside = hosted(path, body) if method == "POST" else None
        if inside is not None:
            if inside.problem:
                return inside.refused()
            done = self.respond(method, inside.path, "", headers, inside.body)
            self.requests[-1].path = path
            return inside.response(done)
        api_route = http_apis.find(path, query)
        if api_route is None or method != "POST":
            error = {"message": f"Unknown request URL: {method} {path}", "type": "not_found"}
            return Response(404, _json_type(), (dump({"error": error}),))
        api, route = api_route
        style = style_for(self._style, api.format)
        record = Record(
            len(self.requests) + 1, api.format, route.operation, path, None, dict(headers),
            route.model, body_bytes=len(body),
        )  # fmt: skip
        self.requests.append(record)
        response = self._answered(api, route, style, record, body)
        record.status = response.status
        return response

    def _answered(
        self, api: HttpApi, route: ApiRoute, style: Style, record: Record, body: bytes
    ) -> Response:
        try:
            record.body = tree = json.loads(body)
        except ValueError:
            return self._refused(api, style, record, "rule:no_json", {"message": _NO_JSON})
        record.stream = api.streams(tree) if route.streams is None else route.streams
        request = api.request(tree, route)
        whole = self._remembered(api, request)
        if whole is None:
            facts = {"id": _state(http_apis.STATEFUL[api.format].states, request)}
            return self._refused(api, style, record, "response_not_found", facts)
        judged = judge(self._config, api, style, whole, record)
        if self._most is not None and record.number > self._most:
            judged = Verdict("rule:max_requests", {"message": f"{self._most} requests are enough"})
        shape = self._shape(api, style, record, judged.when)
        if judged.when and shape not in ("truncate", "finish"):
            return self._refused(api, style, record, judged.when, judged.facts, shape)
        if route.operation == "count":
            return Response(200, self._headers(api, record), (dump(api.counted(record.tokens)),))
        if judged.when:
            record.refusal = judged.when
            if shape == "finish":
                return self._spoken(api, route, style, record, judged, whole, Answer(stop="window"))
            self._forget_oldest(record, judged)
        if inner(tree, "prompt_cache_options", "prewarm") is True:
            return self._spoken(api, route, style, record, judged, whole, Answer(""))
        step = self._steps.next(record)
        if isinstance(step, Refuse):
            return self._scripted(api, style, record, step)
        return self._spoken(api, route, style, record, judged, whole, step)

    def _conversation(self, body: bytes) -> Response:
        """Create an OpenAI conversation, which later requests may name."""
        name = f"conv_{hex_id(f'conversation {len(self._stored)}', 48)}"
        self._stored[name] = (json.loads(body) if body else {}).get("items") or []
        facts = {"object": "conversation", "created_at": 1767225600, "metadata": {}}
        return Response(200, _json_type(), (dump({"id": name, **facts}),))

    def _remembered(self, api: HttpApi, tree: Any) -> Any:
        """The request with the history that it names put in front; None if that is unknown."""
        stateful = http_apis.STATEFUL.get(api.format)
        if stateful is None or not isinstance(tree, dict):
            return tree
        before = _state(stateful.states, tree)
        if before is None:
            return tree
        if before not in self._stored:
            return None
        fields = {key: value for key, value in tree.items() if key not in stateful.states}
        return {**fields, "input": [*self._stored[before], *stateful.history(tree)]}

    def _forget_oldest(self, record: Record, judged: Verdict) -> None:
        """Silently drop the oldest messages until the prompt fits."""
        window, chain = self._config.window or record.tokens, judged.prompt_parts
        head = max((part.tokens for part in chain if part.message < 0), default=0)
        ends = {part.message: part.tokens for part in chain if part.message >= 0}
        total = record.tokens
        sizes = [
            head + total - end for end in (head, *ends.values()) if head + total - end <= window
        ]
        kept_tokens = max(sizes, default=head)
        record.truncated, record.tokens = total - kept_tokens, kept_tokens

    # --- answers -----------------------------------------------------------------------------

    def _spoken(
        self, api: HttpApi, route: ApiRoute, style: Style, record: Record, judged: Verdict,
        whole: Any, step: ScriptStep,
    ) -> Response:  # fmt: skip
        assert not isinstance(step, Refuse)
        answer = as_answer(step.answer if isinstance(step, (Cut, Slow)) else step)
        rule = rule_for(api.format, style.name, judged.model)
        whole_prompt = not record.truncated
        hit = (
            self._cache.take(judged.model or "", judged.prompt_parts, rule)
            if whole_prompt
            else CacheHit(0, 0)
        )
        record.cached_tokens, record.written_tokens = hit
        reply = self._reply(api, style, record, judged, whole, answer, route.listed)
        stateful = http_apis.STATEFUL.get(api.format)
        if stateful is not None:
            steps = [*stateful.history(whole), *stateful.output(reply)]
            if whole.get("store") is not False:
                self._stored[stateful.reply_id(reply)] = steps
            if conversation := _state(("conversation",), record.body):
                self._stored[conversation] = steps
        chunks = tuple(api.events(reply)) if record.stream else (dump(api.response_body(reply)),)
        response = Response(200, self._headers(api, record), chunks, record.stream)
        if isinstance(step, Cut):
            return replace(response, cut=step.after_bytes)
        if isinstance(step, Slow):
            return replace(response, first=step.first, between=step.between)
        return response

    def _reply(
        self, api: HttpApi, style: Style, record: Record, judged: Verdict, whole: Any,
        answer: Answer, listed: bool = False,
    ) -> ModelReply:  # fmt: skip
        count = counter_for(self._config.counter, model=judged.model, format=api.format)
        pattern = style.call_id or api.call_id
        calls = tuple(
            call if call.id else Call(call.name, call.arguments, _call_id(pattern, record, n, call))
            for n, call in enumerate(answer.calls)
        )
        texts = [answer.text, *(call.name for call in calls), *(arguments(call) for call in calls)]
        thinking = count(answer.thinking) if answer.thinking else 0
        spoken = thinking + sum(count(text) for text in texts if text)
        before = after_all(judged.prompt_parts, {"role": "assistant"})
        compacted = compaction.due(
            api.format, whole, record.tokens, self._config.secret, record.number
        )
        return ModelReply(
            record.number, record.model or "model", answer.text, answer.thinking,
            sign(self._config.secret, answer.thinking, before), calls,
            UsageCounts(
                record.tokens, record.cached_tokens, record.written_tokens, spoken, thinking
            ),
            answer.stop, whole, record.dropped, listed, style.name, compacted,
        )  # fmt: skip

    def _headers(self, api: HttpApi, record: Record) -> tuple[tuple[str, str], ...]:
        kind = api.stream_type if record.stream else "application/json"
        return (("content-type", kind), *api.headers(record.number, None))

    # --- refusals ----------------------------------------------------------------------------

    def _shape(self, api: HttpApi, style: Style, record: Record, when: str) -> Shape:
        if not when.startswith("overflow"):
            return "status"
        shape = self._overflow_as or style.shape(api.format, record.stream)
        return "status" if shape.endswith("-stream") and not record.stream else shape

    def _scripted(self, api: HttpApi, style: Style, record: Record, step: Refuse) -> Response:
        prompt = record.tokens if step.input is None else step.input
        output = record.output if step.output is None else step.output
        tight = max(1, prompt * 3 // 4)
        limit = step.limit or (tight if step.when.startswith("rate") else self._config.window)
        facts = numbers(prompt, output, limit or tight)
        facts |= {"seconds": step.retry_after if step.retry_after is not None else 1}
        facts |= {"bytes": record.body_bytes, "index": 0, "block": 0, "next": 1, "message": ""}
        shape = step.shape or self._shape(api, style, record, step.when)
        if shape in ("truncate", "finish"):
            shape = "status"
        return self._refused(api, style, record, step.when, facts, shape, step)

    def _refused(
        self, api: HttpApi, style: Style, record: Record, when: str, facts: Mapping[str, object],
        shape: Shape = "status", step: Refuse | None = None,
    ) -> Response:  # fmt: skip
        record.refusal = when
        request_id = f"req_{record.number:08x}"
        facts = {**facts, "model": record.model or "model", "request_id": request_id}
        if step is not None and step.body is not None:
            error = ErrorResponse(when, step.status or 400, step.body, shape)
        else:
            error = error_response(style, api.format, when, facts, shape=shape)
        if step is not None and step.status is not None:
            error = replace(error, status=step.status)
        headers = api.headers(record.number, error)
        if step is not None and step.retry_after is not None:
            headers = (*headers, ("retry-after", f"{step.retry_after:g}"))
        if record.stream and shape in ("in-stream", "empty-stream"):
            judged = Verdict(model=record.model)
            reply = self._reply(api, style, record, judged, record.body, Answer())
            chunks = tuple(api.broken(reply, error)) if shape == "in-stream" else ()
            return Response(200, self._headers(api, record), chunks, True)
        plain = isinstance(error.body, str)
        kind = (("content-type", "text/plain"),) if plain else _json_type()
        body = error.body.encode() if plain else dump(error.body)
        return Response(error.status, (*kind, *headers), (body,))


def _state(keys: Sequence[str], tree: Any) -> str | None:
    """The id of the stored history that the request names; None if it names none."""
    for key in keys:
        value = tree.get(key)
        if isinstance(id := value.get("id") if isinstance(value, dict) else value, str):
            return id
    return None


_NO_JSON = "We could not parse the JSON body of your request."


def _json_type() -> tuple[tuple[str, str], ...]:
    return (("content-type", "application/json"),)


def _call_id(pattern: str, record: Record, number: int, call: Call) -> str:
    """A call id in the provider's form, the same in each equal run."""
    digits = hex_id(f"{record.number}/{number}", 32)
    lengths = {f"hex{chars}": digits[:chars] for chars in (9, 12, 22, 24)}
    return pattern.format(name=call.name, number=record.number * 100 + number, **lengths)


__all__ = ["Response", "StrictProvider", "styles"]
