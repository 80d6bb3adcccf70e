"""One call of a model: what is sent, and what is sent after a refusal.

It drives the library's retry flow, and it alone knows what was sent: the body, the fits that made
it, the refusals in between and what the answer cost.  Each step (parse and fit, read an answer,
learn from it) is one job in a worker thread.  An error of ours never breaks a request: the client's
own body is sent instead.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Unpack, cast

from trimtab.formats.body import RequestBody
from trimtab.formats.registry import FormatName
from trimtab.interruption import Interrupted, stopped_by
from trimtab.proxy.callers.tenants import TenantSession
from trimtab.proxy.exchange.held_answer import HeldAnswer
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.http.asgi import Header
from trimtab.proxy.http.budgets import RequestBudget
from trimtab.proxy.http.client_request import ClientRequest
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.worker import in_worker
from trimtab.request.fitted import Fitted, facts_of
from trimtab.retry.flow import Accepted, Done, Flow, Refused, Send, flow
from trimtab.retry.learned_limits import destination_in, key_for
from trimtab.retry.own_header import HEADER
from trimtab.retry.refusals import classify
from trimtab.session import learned_limits
from trimtab.sessions.edit_history import take_back
from trimtab.sessions.session_turns import follow
from trimtab.settings import FitKeywords
from trimtab.telemetry import fault

_MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*"([^"\\]{1,200})"')
_EDGE = 4_000
TOO_SLOW = "making it fit took too long"
FAULT = "fault"

Parse = Callable[[], RequestBody | bytes | None]


class AnsweredRefusal(NamedTuple):
    """A refusal of this call: its status, and its kind as ``retry.refusals`` names it."""

    status: int
    kind: str


class ProviderCall:
    """One call; an answer for which the model looked things up takes several."""

    def __init__(
        self, request: ClientRequest, tenant_session: TenantSession, budget: RequestBudget, *,
        result_chars: int,
    ) -> None:  # fmt: skip
        """``result_chars``: see ``retry.flow``."""
        self._request, self._budget, self._result_chars = request, budget, result_chars
        self._session = tenant_session.session
        self.body = b""
        """What was sent last."""
        self.sends = 0
        self.fits: list[Fitted] = []
        """The fits that were sent, the newest last; none if the body is the client's own."""
        self.refusals: list[AnsweredRefusal] = []
        self.usage = TokenUsage()
        """What the answer cost, as far as it was read."""
        self.fit_milliseconds = 0.0
        self.learned_room: int | None = None
        """Prompt tokens that learned limits allow; None without one."""
        self.note, self.model, self.warnings = "", "", list[str]()
        self.streams = bool(request.route.streams)
        """Whether the client asked for a stream."""
        self._changed = False
        self._source: RequestBody | None = None
        self._text: bytes | None = None
        self._run: Flow | None = None
        self._done: Done | None = None
        self._learned_from_answer = False

    async def first(self, parse: Parse, changed: Callable[[], bool]) -> bytes | None:
        """The body to send; None for the client's own.

        ``parse`` makes the body in the worker thread; it returns None for a body we cannot read.
        ``changed``: whether that body differs from the client's already.
        """
        effect = await in_worker(lambda: self._begin(parse, changed))
        if not isinstance(effect, Send):
            return self._text if self._changed else None
        self.warnings += limit_warnings(effect, self.model, destination_in(self._limits_key))
        if effect.fitted is None:
            self.note = "sent unchanged"
            return self._text if self._changed else None
        if facts_of(effect.fitted).released:
            self.note = "pins gave way to the window"
        self.fits.append(effect.fitted)
        unchanged = effect.request is self._text and not self._changed
        return None if unchanged else effect.request

    def _begin(self, parse: Parse, changed: Callable[[], bool]) -> Send | Done | None:
        """The flow's first effect."""
        began = time.perf_counter()
        self._budget.begin()
        try:
            with stopped_by(self._budget.check):
                body = parse()
        except Interrupted:
            self.note = TOO_SLOW
            body = None
        except Exception as error:
            fault("parse", error)
            self.note = FAULT
            body = None
        if body is None:
            return None
        self._changed = changed()
        if isinstance(body, RequestBody):
            self._source = body
            body = body.given
        assert isinstance(body, bytes)
        self._text = body
        route = self._request.route
        self.streams = wants_stream(body) if route.streams is None else route.streams
        self.model = route.model or model_in(body)
        self._run = flow(
            body, self._fit,
            key=self._limits_key,
            learned=learned_limits(self._session), streaming=self.streams,
            retry_result_chars=self._result_chars, undo=partial(take_back, self._session),
        )  # fmt: skip
        effect = self._next(None)
        if isinstance(effect, Send) and effect.fitted is not None:
            room = effect.limits.prompt_tokens(facts_of(effect.fitted).output_asked)
            self.learned_room = None if room is None else round(room * effect.limits.ratio)
        self.fit_milliseconds = (time.perf_counter() - began) * 1_000
        return effect

    def _fit(self, body: bytes, **keywords: Unpack[FitKeywords]) -> Fitted:
        fit_keywords: FitKeywords = {"format": cast(FormatName, self._request.format), **keywords}
        if self._changed:
            fit_keywords["recall"] = True
        if self._request.route.model:
            fit_keywords["model"] = self._request.route.model
        source = self._source if body is self._text else None
        return self._session.fit(source or body, **fit_keywords)

    async def answered(self, sent: HeldAnswer) -> bytes | None:
        """What to send instead of the request that got this answer; None passes the answer on.

        A whole answer has not been passed on yet, so a prompt that the provider cut without an
        error is noticed in time.
        """
        self.usage = sent.usage
        if sent.streamed and not sent.refused:
            return None
        effect = await in_worker(lambda: self._answered(sent))
        if not isinstance(effect, Send):
            return None
        if effect.fitted is not None:
            self.fits.append(effect.fitted)
        return bytes(effect.request)

    def _answered(self, sent: HeldAnswer) -> Send | Done | None:
        sent.read()
        self._budget.begin()
        if sent.refused:
            kind = classify(sent.status, sent.error).kind
            self.refusals.append(AnsweredRefusal(sent.status, kind))
            return self._next(Refused(sent.status, sent.error, plain(sent.headers)))
        effect = self._next(Accepted(sent.usage.prompt or None, final=False))
        if not isinstance(effect, Send) and sent.usage.prompt:
            self._learn()
        return effect

    async def learn(self) -> None:
        """Learn from what the answer cost as soon as it is known: the client may then hang up and
        send its next request through another replica."""
        if self.usage.prompt and not self._learned_from_answer:
            await in_worker(self._learn)

    def _learn(self) -> None:
        self._learned_from_answer = True
        usage, fitted = self.usage, self.fits[-1] if self.fits else None
        try:
            if self._run is not None:
                _stepped(self._run, Accepted(usage.prompt or None))
            if usage.chained is not None and fitted is not None:
                follow(self._session, usage.chained, fitted)
            if usage.counts is not None and fitted is not None:
                self._session.observe(usage.counts, fitted)
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
            self.note = TOO_SLOW
            self._run = None
            return None
        except Exception as error:
            fault("fit", error)
            self.note = FAULT
            self._run = None
            return None
        if isinstance(effect, Done):
            self._done, self._run = effect, None
        return effect

    @property
    def _limits_key(self) -> str:
        return key_for(self._request.upstream.host, self.model, self._request.credential)

    def headers(self) -> list[Header]:
        """One header that sums up what was sent."""
        if not self.fits or not self.fits[-1].changed:
            return []
        done = self._done or Done(True, self.sends, self.fits[-1])
        return [(HEADER.encode(), done.summary.encode("ascii", "replace"))]


def limit_warnings(effect: Send, model: str, endpoint: str) -> Iterator[str]:
    """One line for each limit that is not in force as it was configured.  ``endpoint``: as
    ``trimtab doctor --forget`` takes it."""
    name = "".join(filter(str.isprintable, model[:80])) or "the model"
    fitted = effect.fitted
    if (why := effect.cannot_fit) is not None:
        yield (
            f"{name}: sent without a new cut, since what cannot be reduced takes "
            f"{why.minimum:,} of {why.allowed:,} ({why.limit})"
        )
    if fitted is None:
        return
    facts = facts_of(fitted)
    if facts.window is None and effect.cannot_fit is None:
        yield (
            f"{name}: its window is not known, nothing is cut before its provider refuses: "
            "give --window, or window in the file"
        )
    elif facts.settings.reserve is None and facts.output_asked > facts.reserve:
        yield (
            f"{name}: {facts.output_given:,} output tokens are asked for, and trimtab keeps "
            f"{facts.reserve:,} free for them (reserve_share)"
        )
    if effect.limits.at and effect.limits.described:
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(effect.limits.until))
        yield (
            f"{name}: the provider refused, so trimtab keeps to {effect.limits.described} until "
            f"{until}; trimtab doctor --forget {shlex.quote(endpoint)} ends it"
        )
    if facts.released:
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
