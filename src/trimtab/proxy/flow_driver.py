"""Drives the library's retry flow for one request: what to send first, and after a refusal.

Each step (parse and fit, read an answer, learn from it) is one call in a worker thread.  An error
of ours never breaks a request: the client's own body is sent instead.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Unpack

from trimtab.formats.body import RequestBody
from trimtab.formats.detect import FormatName
from trimtab.interruption import Interrupted, stopped_by
from trimtab.proxy.held_answer import HeldAnswer
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.http.asgi import Header
from trimtab.proxy.http.budgets import RequestBudget
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.records.request_recorder import RequestRecorder
from trimtab.request.fitted import Fitted
from trimtab.retry.flow import Accepted, Done, Flow, Refused, Send, flow
from trimtab.retry.guesses import RESULT_CHARS
from trimtab.retry.learned_limits import LearnedLimits, key_for
from trimtab.retry.own_header import HEADER
from trimtab.session import Session
from trimtab.settings import FitKeywords
from trimtab.telemetry import fault

_MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*"([^"\\]{1,200})"')
_EDGE = 4_000
TOO_SLOW = "making it fit took too long"


class FlowDriver:
    """Fits one request through a session of the library, as often as the flow asks.

    ``streams``: whether the client asked for a stream; None reads it from the body.
    """

    def __init__(
        self, session: Session, recorder: RequestRecorder, learned: LearnedLimits, *, host: str,
        credential: str, format: FormatName, model: str | None, budget: RequestBudget,
        streams: bool | None = None,
        result_chars: int = RESULT_CHARS,
    ) -> None:  # fmt: skip
        self._session, self._recorder, self._learned = session, recorder, learned
        self._host, self._credential = host, credential
        self._format, self._model, self._streams = format, model, streams
        self.streams = bool(streams)
        self._result_chars, self._budget = result_chars, budget
        self._recall = False
        self._body: bytes | None = None
        self._source: RequestBody | None = None
        self._run: Flow | None = None
        self._fitted: Fitted | None = None
        self._done: Done | None = None
        self._learned_from_answer = False

    async def first(
        self, parse: Callable[[], RequestBody | bytes | None], recall: Callable[[], bool]
    ) -> bytes | None:
        """The body to send; None for the client's own.

        ``parse`` makes the body in the worker thread; it returns None for a body we cannot read.
        ``recall``: whether that body offers the recall tool, and so differs from the client's.
        """
        effect, room, milliseconds = await in_worker(lambda: self._begin(parse, recall))
        if not isinstance(effect, Send):
            return self._body if self._recall else None
        self._fitted = effect.fitted
        for text in limit_warnings(effect, self._recorder.model):
            self._recorder.warn(text)
        if effect.fitted is None:
            self._recorder.note = "sent unchanged"
            return self._body if self._recall else None
        if effect.fitted.released:
            self._recorder.note = "pins gave way to the window"
        self._recorder.fitted(effect.fitted, milliseconds, room)
        unchanged = effect.request is self._body and not self._recall
        return None if unchanged else effect.request

    def _begin(
        self, parse: Callable[[], RequestBody | bytes | None], recall: Callable[[], bool]
    ) -> tuple[Send | Done | None, int | None, float]:
        """The flow's first effect, the prompt tokens that learned limits allow (None without a
        learned limit), and the milliseconds it took."""
        began = time.perf_counter()
        self._budget.begin()
        try:
            with stopped_by(self._budget.check):
                body = parse()
        except Interrupted:
            self._recorder.note = TOO_SLOW
            body = None
        except Exception as error:
            fault("parse", error)
            self._recorder.note = "fault"
            body = None
        if body is None:
            return None, None, 0.0
        self._recall = recall()
        if isinstance(body, RequestBody):
            self._source = body
            body = body.given
        assert isinstance(body, bytes)
        self._body = body
        self.streams = wants_stream(body) if self._streams is None else self._streams
        model = self._model or model_in(body)
        self._recorder.model = model
        self._run = flow(
            body, self._fit, key=key_for(self._host, model, self._credential),
            learned=self._learned, streaming=self.streams,
            retry_result_chars=self._result_chars, undo=self._session.take_back,
        )  # fmt: skip
        effect, room = self._next(None), None
        if isinstance(effect, Send) and effect.fitted is not None:
            room = effect.known.prompt_tokens(effect.fitted.output_asked)
        return effect, room, (time.perf_counter() - began) * 1_000

    def _fit(self, body: bytes, **keywords: Unpack[FitKeywords]) -> Fitted:
        given: FitKeywords = {"format": self._format, **keywords}
        if self._recall:
            given["recall"] = True
        if self._model:
            given["model"] = self._model
        source = self._source if body is self._body else None
        return self._session.fit(source or body, **given)

    async def answered(self, sent: HeldAnswer) -> bytes | None:
        """What to send instead of the request that got this answer; None passes the answer on.

        A whole answer has not been passed on yet, so a prompt that the provider cut without an
        error is noticed in time.
        """
        if sent.streamed and not sent.refused:
            return None
        effect = await in_worker(lambda: self._answered(sent))
        if not isinstance(effect, Send):
            return None
        self._fitted = effect.fitted
        if effect.fitted is not None:
            self._recorder.refitted(effect.fitted)
        return bytes(effect.request)

    def _answered(self, sent: HeldAnswer) -> Send | Done | None:
        sent.read()
        self._budget.begin()
        if sent.refused:
            self._recorder.refused(sent.status, sent.error)
            return self._next(Refused(sent.status, sent.error, plain(sent.headers)))
        effect = self._next(Accepted(sent.usage.prompt or None, final=False))
        if not isinstance(effect, Send) and sent.usage.prompt:
            self._learn(sent.usage)
        return effect

    async def finished(self, usage: TokenUsage) -> None:
        """Learn from what the answer cost."""
        if not self._learned_from_answer:
            await in_worker(lambda: self._learn(usage))

    def _learn(self, usage: TokenUsage) -> None:
        self._learned_from_answer = True
        try:
            if self._run is not None:
                _stepped(self._run, Accepted(usage.prompt or None))
            if usage.chained is not None and self._fitted is not None:
                self._session.follow(usage.chained, self._fitted)
            if usage.counts is not None and self._fitted is not None:
                self._session.observe(usage.counts, self._fitted)
        except Exception as error:
            fault("observe", error)

    def _next(self, reply: Refused | Accepted | None) -> Send | Done | None:
        """The flow's next effect; None where it has ended before, or failed."""
        if self._run is None:
            return None
        try:
            with stopped_by(self._budget.check):
                effect = _stepped(self._run, reply)
        except Interrupted:
            self._recorder.note = TOO_SLOW
            self._run = None
            return None
        except Exception as error:
            fault("fit", error)
            self._recorder.note = "fault"
            self._run = None
            return None
        if isinstance(effect, Done):
            self._done, self._run = effect, None
        return effect

    def headers(self) -> list[Header]:
        """One header that sums up what was sent."""
        if self._fitted is None or not self._fitted.changed:
            return []
        done = self._done or Done(True, self._recorder.sends, self._fitted)
        return [(HEADER.encode(), done.summary.encode("ascii", "replace"))]


def limit_warnings(effect: Send, model: str) -> Iterator[str]:
    """One line for each limit that is not in force as it was configured."""
    name = "".join(filter(str.isprintable, model[:80])) or "the model"
    fitted = effect.fitted
    if (why := effect.cannot_fit) is not None:
        yield (
            f"{name}: sent unchanged, since what cannot be reduced takes {why.minimum:,} of "
            f"{why.allowed:,} ({why.limit})"
        )
    if fitted is None:
        return
    if fitted.window is None:
        yield (
            f"{name}: its window is not known, nothing is cut before its provider refuses: "
            "give --window, or window in the file"
        )
    elif fitted.settings.reserve is None and fitted.output_asked > fitted.reserve:
        yield (
            f"{name}: {fitted.output_asked:,} output tokens are asked for; of the window "
            f"{fitted.reserve:,} are kept free for them (reserve_share)"
        )
    if effect.known.at and effect.known.described:
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(effect.known.until))
        yield (
            f"{name}: a refusal taught {effect.known.described}; this holds until {until}, or "
            "until trimtab doctor --forget"
        )
    if fitted.released:
        yield "pins gave way to the window: what was undone or pinned did not fit"


def _stepped(run: Flow, reply: Refused | Accepted | None) -> Send | Done:
    try:
        return next(run) if reply is None else run.send(reply)
    except StopIteration as stop:
        done: Done = stop.value
        return done


def model_in(body: bytes) -> str:
    """The model that a body names, searched for at its beginning and end; "" if none is found.

    Used only as the key of learned limits and for display.
    """
    first = _MODEL.search(body[:_EDGE])
    match = first or next(reversed(list(_MODEL.finditer(body[-_EDGE:]))), None)
    return match[1].decode("utf-8", "replace") if match else ""


def wants_stream(body: bytes) -> bool:
    """Whether a body asks for a stream, judged by its beginning and end.  A wrong guess is
    harmless: it only decides whether an answer without a content type is held like a stream."""
    edges = body[:_EDGE] + body[-_EDGE:]
    return b'"stream":true' in edges or b'"stream": true' in edges
