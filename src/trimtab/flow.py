"""Sending a request, once for everybody: a generator that asks to send and is told what came back.

    run = flow(request, session.fit, key=key, learned=learned)
    effect = next(run)                                 # Send(request, attempt, …)
    while True:
        reply = <send effect.request>                  # in any way: sync, async, a proxy
        try:
            effect = run.send(Refused(status, body, headers) or Accepted())
        except StopIteration as stop:
            return <the last reply>, stop.value        # Done: what happened, for logs and headers

The driver returns the last reply it got, whatever it is: a provider's own error comes out as it
came.  It holds a stream back until the first content event (``refusals.openings``) and sends in
``Refused`` for an error inside HTTP 200; once a byte was passed on it sends ``Accepted`` and
nothing is sent again.  A step may take as long as ``fit`` does: an async driver may run
``run.send`` in a thread.

- Fits, sends, reads the refusal (``refusals.classify``), learns the limit (``learned``), fits
  strictly smaller, sends again: three sends at most.
- A refusal that names a rule (pairing, reasoning, empty content, …) gets that rule's repair and
  one more send; it is never treated as size.
- A refusal that says nothing (``raw: "ERROR"``, an empty body) is answered once, and only where
  the request is plausibly large.
- Rate, authentication, server errors, and what nobody recognises pass through: one send.
- Where nothing can shrink, the provider's error stands.  An error of ours never stops a request.

Knows the order of these steps.  Does not know HTTP, formats, stores, or how anything is reduced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from trimtab.errors import CannotFit, InvalidRequest, InvalidSetting
from trimtab.fitted import Fitted
from trimtab.refusals import Refusal, classify
from trimtab.sending import mending, tighter, truncation
from trimtab.sending.learned import NOTHING, Learned, LearnedLimits, host_of
from trimtab.sending.sends import Accepted, Done, Refused, Send, Totals
from trimtab.sending.tighter import Sent
from trimtab.sending.truncation import Counts
from trimtab.settings import NO_WINDOW
from trimtab.telling.events import OnEvent, RefusalEvent, RetryEvent, emit, listening
from trimtab.telling.log import logger

MOST_SENDS = 3
Fit = Callable[..., Fitted]
Flow = Generator[Send, Refused | Accepted, Done]


def flow(
    request: Any,
    fit: Fit,
    *,
    key: str = "",
    learned: LearnedLimits | None = None,
    retry_result_chars: int | None = None,
    streaming: bool = False,
    strict: bool = False,
    on_event: OnEvent | None = None,
    undo: Callable[[Fitted], object] | None = None,
    totals: Totals | None = None,
) -> Flow:
    """Drive one request from ``fit`` to its answer; see the head of this file.

    ``fit``: ``session.fit``, or any function with its keywords (window, reserve, limits);
    ``key``: whose limits are learned (``learned.key_for``); ``retry_result_chars``: to what a
    refusal that says nothing but "ERROR" cuts every tool result, however small the request;
    ``streaming``: for the log; ``undo``: called with a result that was made on a guess and was
    refused as well; ``strict``: raise what ``fit`` raises instead of sending what came.
    """
    learned = LearnedLimits() if learned is None else learned
    run = _Run(request, fit, key, learned, retry_result_chars, streaming, strict, on_event, undo)
    totals = Totals() if totals is None else totals
    try:
        done = yield from run.steps()
    except Exception as error:
        if strict:
            raise
        logger().warning("not sent again: %s: %s", type(error).__name__, _short(error))
        done = Done(run.accepted, run.attempt, None)
    totals.requests += 1
    totals.refusals += len(done.refusals)
    totals.retries += done.attempts - 1
    totals.recovered += done.accepted and done.attempts > 1
    totals.seconds += run.seconds
    if done.fitted is not None and done.fitted.changed:
        totals.changed += 1
        totals.tokens_saved += done.fitted.report.tokens_before - done.fitted.tokens_after
    return done


@dataclass
class _Run:
    """One request on its way through its sends."""

    request: Any
    fit: Fit
    key: str
    learned: LearnedLimits
    result_chars: int | None
    streaming: bool
    strict: bool
    on_event: OnEvent | None
    undo: Callable[[Fitted], object] | None
    fitted: Fitted | None = None
    cannot_fit: CannotFit | None = None
    guessed: bool = False
    mends: tuple[str, ...] = ()
    cut_short: bool = False
    seconds: float = 0.0
    attempt: int = 1
    accepted: bool = False

    def steps(self) -> Flow:
        """Send, read what came back, and again while that is worth it."""
        self.fitted = self._first()
        refusals: list[Refusal] = []
        attempt, since = 1, self.learned.clock()
        while True:
            sent = self.request if self.fitted is None else self.fitted.request
            self.attempt = attempt
            reply = yield Send(sent, attempt, self.fitted)
            self.accepted = isinstance(reply, Accepted)
            refusal = self._read(reply)
            if attempt > 1:
                self.seconds = max(self.learned.clock() - since, 0.0)
                self._tell_retry(refusals[-1], refusal is None, attempt)
            if refusal is None:
                self._accepted()
                return Done(True, attempt, self.fitted, tuple(refusals))
            if not refusals:
                since = self.learned.clock()
            refusals.append(refusal)
            self._tell_refusal(refusal, reply, attempt)
            before = self.fitted
            smaller = self._smaller(refusal, attempt) if attempt < MOST_SENDS else None
            if smaller is None:
                self._given_up(refusal, attempt)
                return Done(False, attempt, before, tuple(refusals), self.cannot_fit)
            self._log_retry(refusal, before, smaller)
            self.fitted, attempt = smaller, attempt + 1

    # --- fitting -----------------------------------------------------------------------------

    def _first(self) -> Fitted | None:
        """What is sent first; None: as it came, because we cannot read or fit it."""
        try:
            known = self.learned.get(self.key)
            for rule in known.mends:
                better = mending.mended(self.request, rule)
                self.request = self.request if better is None else better
            fitted = self._fit_any()
            if known is NOTHING:
                return fitted
            words = tighter.known_keywords(known, fitted.limits, sent_as(fitted, known))
            return self.fit(self.request, **words) if words else fitted
        except InvalidRequest:
            return None
        except CannotFit as error:
            self.cannot_fit = error
            logger().error("sent as it came, it will probably be refused: %s", error)
        except Exception as error:
            if self.strict:
                raise
            logger().warning("sent as it came: %s: %s", type(error).__name__, _short(error))
            return None
        if self.strict:
            raise self.cannot_fit
        return None

    def _fit_any(self) -> Fitted:
        """Fit; where nobody knows a window, only repairs, until the provider names one."""
        try:
            return self.fit(self.request)
        except InvalidSetting:
            if self.strict:
                raise
            return self.fit(self.request, window=NO_WINDOW, reserve=0)

    def _smaller(self, refusal: Refusal, attempt: int) -> Fitted | None:
        """What to send instead; None where nothing smaller or better can be had."""
        try:
            if refusal.about_size:
                return self._reduced(refusal, attempt)
            if refusal.kind in ("invalid_pairing", "invalid_other"):
                return self._repaired(refusal)
        except CannotFit as error:
            self.cannot_fit = error
        except Exception as error:
            logger().warning("not sent again: %s: %s", type(error).__name__, _short(error))
        return None

    def _reduced(self, refusal: Refusal, attempt: int) -> Fitted | None:
        last = self.fitted
        if last is None or self.guessed:
            return None
        known = self.learned.get(self.key)
        sent = sent_as(last, known, full=True)
        bare = refusal.rule in ("opaque", "no_body")
        forced = refusal.rule == "opaque" and self.result_chars is not None
        if not forced and not tighter.plausible(refusal, sent):
            return None
        if not bare:
            known = self._learn(refusal, sent, known)
        words = tighter.keywords(refusal, sent, known, last.limits, attempt, self.result_chars)
        if not words:
            return None
        self.guessed = bare
        smaller = self.fit(self.request, **words)
        if not _strictly_smaller(smaller, last, refusal):
            return None
        return smaller

    def _learn(self, refusal: Refusal, sent: Sent, known: Learned) -> Learned:
        fresh = tighter.learn(refusal, sent, known)
        if fresh is not known:
            self.learned.put(self.key, fresh)
        return fresh

    def _repaired(self, refusal: Refusal) -> Fitted | None:
        """The same request with that rule mended, whoever we thought has it."""
        state = self.fitted is not None and self.fitted.server_state
        if state or refusal.rule in self.mends:
            return None
        better = mending.mended(self.request, refusal.rule)
        if better is None:
            return None
        self.request, self.mends = better, (*self.mends, refusal.rule)
        return self.fit(better, window=NO_WINDOW) if self.fitted is None else self.fit(better)

    # --- what came back ----------------------------------------------------------------------

    def _read(self, reply: Refused | Accepted) -> Refusal | None:
        if isinstance(reply, Refused):
            return classify(reply.status, reply.body, reply.headers)
        tokens, fitted = reply.prompt_tokens, self.fitted
        if tokens is None or fitted is None or not self._truncated(tokens, fitted):
            return None
        cut = Refusal("too_long", tokens, None, "lower_bound", "silent_truncation", "tokens")
        if reply.final:
            known = self.learned.get(self.key)
            self._learn(cut, sent_as(fitted, known), known)
            self.cut_short = True
            return None
        return cut

    def _truncated(self, theirs: int, fitted: Fitted) -> bool:
        """Whether the provider left out a part of what was sent, as servers of the chat format
        do; what is not certain is compared with its next count."""
        counts = _counts(theirs, fitted)
        if fitted.format != "openai-chat" or not truncation.short(counts):
            return False
        known, host = self.learned.get(self.key), host_of(self.key)
        before = Counts(*known.short) if known.short else None
        if truncation.certain(counts, host, fitted.longest_counted, before):
            return True
        if (next_one := truncation.kept(counts, before)) != before:
            self.learned.put(self.key, replace(known, short=next_one))
        return False

    def _accepted(self) -> None:
        if lasting := tuple(rule for rule in self.mends if mending.lasts(rule)):
            known = self.learned.get(self.key)
            self.learned.put(self.key, replace(known, mends=(*known.mends, *lasting)))
        if self.fitted is not None and not self.cut_short:
            self.learned.accepted(self.key, self.fitted.tokens_after, self.fitted.output_asked)

    def _given_up(self, refusal: Refusal, attempt: int) -> None:
        if attempt > 1 and self.guessed and self.undo is not None and self.fitted is not None:
            self.undo(self.fitted)
        if refusal.about_size:
            why = f": {self.cannot_fit}" if self.cannot_fit else ""
            logger().warning(
                "the provider's refusal stands after %d send(s) (%s)%s", attempt, refusal.kind, why
            )

    # --- telling -----------------------------------------------------------------------------

    def _tell_refusal(self, refusal: Refusal, reply: Refused | Accepted, attempt: int) -> None:
        status = reply.status if isinstance(reply, Refused) else 200
        if refusal.rule == "opaque" and "logging" in sys.modules:
            logger().debug(
                "provider's %s with raw metadata and no reason: will try with smaller tool results",
                status,
            )
        if listening(self.on_event):
            emit(self.on_event, RefusalEvent(
                kind=refusal.kind, status=status, limit=refusal.limit,
                requested=refusal.requested, exactness=refusal.exactness, attempt=attempt,
                **self._about(),
            ))  # fmt: skip

    def _tell_retry(self, refusal: Refusal, accepted: bool, attempt: int) -> None:
        if listening(self.on_event) and self.fitted is not None:
            emit(self.on_event, RetryEvent(
                kind=refusal.kind, outcome="accepted" if accepted else "refused", attempt=attempt,
                tokens_before=self._refused_tokens, tokens_after=self.fitted.tokens_after,
                milliseconds=round(1_000 * self.seconds, 3), **self._about(),
            ))  # fmt: skip

    _refused_tokens: int = 0

    def _log_retry(self, refusal: Refusal, before: Fitted | None, after: Fitted) -> None:
        self._refused_tokens = before.tokens_after if before else after.report.tokens_before
        did = "reducing it" if refusal.about_size else f"mending {refusal.rule}"
        if refusal.rule == "opaque":
            did = "compressing tool responses"
        logger().warning(
            "retrying %srequest after %s due to a provider's refusal (%s): %d → %d tokens",
            "streaming " if self.streaming else "", did, refusal.kind,
            self._refused_tokens, after.tokens_after,
        )  # fmt: skip

    def _about(self) -> dict[str, Any]:
        if self.fitted is None:
            return {}
        return {"format": self.fitted.format}


def sent_as(fitted: Fitted, known: Learned, full: bool = False) -> Sent:
    """A fitted request in numbers; its bytes only where somebody needs them."""
    size = fitted.body_bytes if full or known.request_bytes else 0
    return Sent(fitted.tokens_after, size, fitted.output_asked, fitted.window, fitted.scale)


def _strictly_smaller(now: Fitted, before: Fitted, refusal: Refusal) -> bool:
    if refusal.kind == "too_long":
        return now.tokens_after < before.tokens_after
    return now.body_bytes < before.body_bytes


def settles(reply: Refused | Accepted, fitted: Fitted | None) -> bool:
    """Whether nothing is fitted after this reply: the flow's next step takes no time."""
    if isinstance(reply, Refused):
        return False
    tokens = reply.prompt_tokens
    if tokens is None or fitted is None or fitted.format != "openai-chat":
        return True
    return not truncation.short(_counts(tokens, fitted))


def _counts(theirs: int, fitted: Fitted) -> Counts:
    return Counts(theirs, int(fitted.tokens_after / max(fitted.factor, 1.0)))


def _short(error: Exception) -> str:
    return str(error)[:300]


__all__ = ["Accepted", "Done", "Fit", "Flow", "Refused", "Send", "Totals", "flow", "settles"]
