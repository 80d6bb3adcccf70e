"""What to send for one request, and what after a refusal: the library's flow, driven by the proxy.

Knows the flow's effects and who is told about them.  An error of ours never breaks a request: then
what came is sent.  Does not know HTTP.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from trimtab.fitted import Fitted
from trimtab.flow import Accepted, Done, Flow, Refused, Send, flow, settles
from trimtab.proxy import logs
from trimtab.proxy.account import Account
from trimtab.proxy.asgi import Header
from trimtab.proxy.attempt import Sent
from trimtab.proxy.headers import plain
from trimtab.proxy.reading import Usage
from trimtab.reading.source import Source
from trimtab.sending.learned import LearnedLimits, key_for
from trimtab.session import Session

INLINE_BYTES = 20_000
"""Smaller bodies are made to fit on the spot; a thread would cost more than it frees."""
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="trimtab-fit")
_MODEL = re.compile(rb'(?<!\\)"model"\s*:\s*"([^"\\]{1,200})"')
_EDGE = 4_000
T = TypeVar("T")


class Fitting:
    """Fits one request through a session of the library, as often as the flow asks."""

    def __init__(
        self, session: Session, account: Account, learned: LearnedLimits, *, host: str,
        credential: str, format: str, model: str | None, recall: bool = False,
        parse: Callable[[bytes], Source | None] | None = None,
        quick: Callable[[bytes], Source | None] | None = None, far: bool = False,
    ) -> None:  # fmt: skip
        self._session, self._account, self._learned = session, account, learned
        self._host, self._credential = host, credential
        self._format, self._model, self._recall = format, model, recall
        self._parse, self._quick, self._far = parse, quick, far
        self._source: Source | None = None
        self._run: Flow | None = None
        self._fitted: Fitted | None = None
        self._body, self._key = b"", ""
        self._done: Done | None = None

    async def first(self, body: bytes, *, stream: bool) -> bytes | None:
        """The body to send; None: as it came."""
        self._body = body
        model = self._model or model_in(body)
        self._account.model = model
        self._key = key = key_for(self._host, model, self._credential)
        self._run = flow(body, self._fit, key=key, learned=self._learned, streaming=stream)
        began = time.perf_counter()
        self._source = self._at_once(body)
        effect = await self._step(None, short=self._source is not None)
        if not isinstance(effect, Send):
            return None
        if self._source is not None:
            self._account.tree = self._source.tree
        self._fitted = effect.fitted
        if effect.fitted is None:
            self._account.note = "sent as it came"
            return None
        took = (time.perf_counter() - began) * 1_000
        self._account.fitted(effect.fitted, took, await self._room(effect.fitted))
        return None if effect.request is body else effect.request

    def _at_once(self, body: bytes) -> Source | None:
        """The parsed body, where fitting it is sure to be quick."""
        if self._quick is None or self._far:
            return None
        try:
            return self._quick(body)
        except Exception as error:
            logs.fault("quick", error)
            return None

    async def _room(self, fitted: Fitted) -> int | None:
        """Tokens, in our count, that refusals have taught are the most; None: none has."""
        known = await aside(b"", lambda: self._learned.get(self._key), far=self._far)
        return known.prompt_tokens(fitted.output_asked)

    def _fit(self, body: bytes, **keywords: Any) -> Fitted:
        given = {"format": self._format, **keywords}
        if self._recall:
            given["recall"] = True
        if self._model:
            given["model"] = self._model
        if body is not self._body or self._parse is None:
            return self._session.fit(body, **given)
        self._source = self._source or self._parse(body)
        return self._session.fit(self._source or body, **given)

    async def answered(self, sent: Sent) -> bytes | None:
        """What to send instead of what got this answer; None: nothing, pass it on."""
        if sent.refused:
            fields = plain(sent.headers)
            return await self._again(Refused(sent.status, sent.error, fields), sent)
        if sent.streamed:
            return None
        # A whole answer was not passed on yet: a head that was cut off in silence is seen in time.
        return await self._again(Accepted(sent.usage.prompt or None, final=False), sent)

    async def _again(self, reply: Refused | Accepted, sent: Sent) -> bytes | None:
        effect = await self._step(reply, short=settles(reply, self._fitted))
        if isinstance(reply, Refused):
            self._account.refused(sent.status, sent.error)
        if not isinstance(effect, Send):
            return None
        self._fitted = effect.fitted
        if effect.fitted is not None:
            self._account.refitted(effect.fitted)
        return bytes(effect.request)

    async def finished(self, usage: Usage) -> None:
        """What the answer cost is known, and is learned from."""
        try:
            await aside(b"", lambda: self._learned_from(usage), far=self._far)
        except Exception as error:
            logs.fault("observe", error)

    def _learned_from(self, usage: Usage) -> None:
        if self._run is not None:
            _stepped(self._run, Accepted(usage.prompt or None))
        if usage.bill is not None and self._fitted is not None:
            self._session.observe(usage.bill, self._fitted)

    async def _step(
        self, reply: Refused | Accepted | None, *, short: bool = False
    ) -> Send | Done | None:
        """The flow's next effect; None where it has ended before, or failed.  ``short``: it takes
        less time than a thread would."""
        if self._run is None:
            return None
        try:
            body = b"" if short else self._body
            effect = await aside(body, lambda: _stepped(self._run, reply), far=self._far)
        except Exception as error:
            logs.fault("fit", error)
            self._account.note = "fault"
            self._run = None
            return None
        if isinstance(effect, Done):
            self._done, self._run = effect, None
        return effect

    def told(self) -> list[Header]:
        """One header that sums up what was sent."""
        if self._fitted is None or not self._fitted.changed:
            return []
        done = self._done or Done(True, self._account.sends, self._fitted)
        return [(b"x-trimtab", done.summary.encode("ascii", "replace"))]


def _stepped(run: Flow | None, reply: Refused | Accepted | None) -> Send | Done:
    assert run is not None
    try:
        return next(run) if reply is None else run.send(reply)
    except StopIteration as stop:
        done: Done = stop.value
        return done


async def aside(body: bytes, work: Callable[[], T], *, far: bool = False) -> T:
    """Run what takes a processor for a while so that other answers keep flowing.

    ``far``: it may wait for another machine, however short the body is.
    """
    if len(body) <= INLINE_BYTES and not far:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


def model_in(body: bytes) -> str:
    """The model that a body names, looked for at its edges; "" where there is none.

    Only for telling: limits are learned under it, and the pages show it.
    """
    first = _MODEL.search(body[:_EDGE])
    found = first or next(reversed(list(_MODEL.finditer(body[-_EDGE:]))), None)
    return found[1].decode("utf-8", "replace") if found else ""
