"""The retry protocol as a generator: it yields requests to send and receives the replies.

    run = flow(request, session.fit, key=key, learned=learned)
    effect = next(run)                                 # Send(request, attempt, …)
    while True:
        reply = <send effect.request>                  # by any means: sync, async, a proxy
        try:
            effect = run.send(Refused(status, body, headers) or Accepted())
        except StopIteration as stop:
            return <the last reply>, stop.value        # Done: what happened, for logs and headers

The driver returns the last reply unchanged, also when that is the provider's error.  It holds a
stream back until the first content event (``refusals.stream_start``) and sends in ``Refused`` for
an error inside HTTP 200; once a byte was passed on it sends in ``Accepted``, and there are no more
sends.  A step may take as long as ``fit`` does: an async driver may run ``run.send`` in a thread.

- Refusal for size: ``refusals.classify`` reads it, ``learned`` keeps the limit, the request is
  fitted strictly smaller and sent again: three sends at most.
- Refusal that names a rule (pairing, reasoning, empty content, …): that rule's repair and one more
  send; it is never treated as a refusal for size.
- Refusal without a reason (``raw: "ERROR"``, an empty body): one more send with long tool results
  cut; if that is accepted, later requests are cut before their first send.
- Rate, authentication, server and unrecognised errors pass through after one send.  If the
  provider's own compaction was unavailable, the same request is sent once more.
- If nothing can shrink, the caller gets the provider's error.  An error of ours never stops a
  request, unless ``strict``.

This file knows the order of these steps, but not HTTP, formats, stores or reductions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from trimtab.errors import CannotFit, InvalidRequest, InvalidSetting
from trimtab.events import OnEvent, RefusalEvent, RetryEvent
from trimtab.fitted import Fitted
from trimtab.retry import limits_from_refusals, refusal_repairs, truncation_check
from trimtab.retry.effects import Accepted, Done, Refused, Send, SendStats
from trimtab.retry.guesses import RESULT_CHARS
from trimtab.retry.learned_limits import NO_LIMITS, LearnedLimits, ModelLimits, host_of
from trimtab.retry.limits_from_refusals import SentRequest
from trimtab.retry.refusals import Refusal, classify
from trimtab.retry.truncation_check import Counts
from trimtab.sessions.response_chains import state_named
from trimtab.settings import NO_WINDOW
from trimtab.telemetry import emit, listening, logger

MOST_SENDS = 3
UNSEEN = (
    "refused as too long: what came before is at the server under {}={!r} and was not seen here, "
    "or not to its end: it cannot be made shorter; send every turn of this chain through one "
    "session, wrapped client or proxy, or set store=False and send the whole input"
)
Fit = Callable[..., Fitted]
Flow = Generator[Send, Refused | Accepted, Done]


def flow(
    request: Any,
    fit: Fit,
    *,
    key: str = "",
    learned: LearnedLimits | None = None,
    retry_result_chars: int = RESULT_CHARS,
    streaming: bool = False,
    strict: bool = False,
    on_event: OnEvent | None = None,
    undo: Callable[[Fitted], object] | None = None,
    stats: SendStats | None = None,
) -> Flow:
    """Drive one request from ``fit`` to its answer; see the head of this file.

    ``fit``: ``session.fit``, or any function with its keywords (window, reserve, settings);
    ``key``: what learned limits are kept under (``learned_limits.key_for``);
    ``retry_result_chars``: chars to which every tool result is cut after a refusal without a
    reason, 0: no such retry; ``streaming``: only for the log; ``undo``: called with the fit that
    was made on that guess, if no send was accepted; ``strict``: raise what ``fit`` raises instead
    of sending the request unchanged.
    """
    learned = LearnedLimits() if learned is None else learned
    run = _RequestFlow(
        request, fit, key, learned, retry_result_chars, streaming, strict, on_event, undo
    )
    stats = SendStats() if stats is None else stats
    try:
        done = yield from run.steps()
    except Exception as error:
        if strict:
            raise
        logger().warning("not sent again: %s: %s", type(error).__name__, _short(error))
        done = Done(run.accepted, run.attempt, None)
    stats.requests += 1
    stats.refusals += len(done.refusals)
    stats.retries += done.attempts - 1
    stats.recovered += done.accepted and done.attempts > 1
    stats.seconds += run.seconds
    if done.fitted is not None and done.fitted.changed:
        stats.changed += 1
        stats.tokens_saved += done.fitted.tokens_before - done.fitted.tokens_after
    return done


@dataclass
class _RequestFlow:
    """The state of one request over its sends."""

    request: Any
    fit: Fit
    key: str
    learned: LearnedLimits
    result_chars: int
    streaming: bool
    strict: bool
    on_event: OnEvent | None
    undo: Callable[[Fitted], object] | None
    known: ModelLimits = NO_LIMITS
    """The limits that applied to the last send."""
    fitted: Fitted | None = None
    cannot_fit: CannotFit | None = None
    guess: Fitted | None = None
    """The fit that was sent after a refusal without a reason."""
    sent_again: bool = False
    """Whether the unchanged request was sent again, because compaction was unavailable."""
    refused_chars: int = 0
    """Chars of the longest tool result in a request that was refused without a reason."""
    repaired_rules: tuple[str, ...] = ()
    cut_short: bool = False
    unseen: str = ""
    """The message ``UNSEEN`` with the id of a history that only the provider has; else ""."""
    seconds: float = 0.0
    attempt: int = 1
    accepted: bool = False

    def steps(self) -> Flow:
        """Send, read the reply, repeat with a smaller or repaired request while there is one."""
        self.fitted = self._first()
        refusals: list[Refusal] = []
        attempt, since = 1, self.learned.clock()
        while True:
            sent = self.request if self.fitted is None else self.fitted.request
            self.attempt = attempt
            reply = yield Send(sent, attempt, self.fitted, self.cannot_fit, self.known)
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
                advice = self._given_up(refusal, attempt, before)
                return Done(
                    False, attempt, before, tuple(refusals), self.cannot_fit, advice, self.unseen
                )
            self._log_retry(refusal, before, smaller)
            self.fitted, attempt = smaller, attempt + 1

    # --- fitting -----------------------------------------------------------------------------

    def _first(self) -> Fitted | None:
        """The first fit; None if the request can't be read or fitted and is sent unchanged."""
        try:
            known = self.known = self.learned.get(self.key)
            for rule in known.mends:
                better = refusal_repairs.repaired_for(self.request, rule)
                self.request = self.request if better is None else better
            fitted = self._fit_any()
            if known is NO_LIMITS:
                return fitted
            known = self.known = known.by_counter(fitted.counter)
            words = limits_from_refusals.keywords_for_known_limits(
                known, fitted.settings, sent_as(fitted, known)
            )
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
        """Fit; if the window is unknown, only repair, until a refusal names the window."""
        try:
            return self.fit(self.request)
        except InvalidSetting:
            if self.strict:
                raise
            return self.fit(self.request, window=NO_WINDOW, reserve=0)

    def _smaller(self, refusal: Refusal, attempt: int) -> Fitted | None:
        """The request to send after ``refusal``; None if it can't be made smaller or repaired."""
        try:
            if refusal.about_size:
                return self._reduced(refusal, attempt)
            if refusal.kind in ("invalid_pairing", "invalid_other"):
                return self._repaired(refusal)
            if refusal.rule == "compaction_unavailable" and not self.sent_again:
                self.sent_again = True
                return self.fitted
        except CannotFit as error:
            self.cannot_fit = error
        except Exception as error:
            logger().warning("not sent again: %s: %s", type(error).__name__, _short(error))
        return None

    def _reduced(self, refusal: Refusal, attempt: int) -> Fitted | None:
        last, unnamed = self.fitted, limits_from_refusals.names_nothing(refusal)
        if last is None or (unnamed and (self.guess or not self.result_chars)):
            return None
        known = self._known_limits()
        sent = sent_as(last, known, full=True)
        if not unnamed:
            if not limits_from_refusals.may_be_too_large(refusal, sent):
                return None
            known = self._learn(refusal, sent, known)
        words = limits_from_refusals.keywords_for_retry(
            refusal, sent, known, last.settings, attempt, self.result_chars
        )
        if not words:
            return None
        self.refused_chars = sent.longest_result if unnamed and "settings" in words else 0
        smaller = self.fit(self.request, **words)
        self.guess = smaller if unnamed else self.guess
        if not _strictly_smaller(smaller, last, refusal):
            return None
        return smaller

    def _known_limits(self) -> ModelLimits:
        """What is known of the endpoint, by the counter of this request."""
        counter = "" if self.fitted is None else self.fitted.counter
        known = self.learned.get(self.key, counter)
        return replace(known, counter=counter) if known is NO_LIMITS and counter else known

    def _learn(self, refusal: Refusal, sent: SentRequest, known: ModelLimits) -> ModelLimits:
        fresh = limits_from_refusals.learn_from_refusal(refusal, sent, known)
        if fresh is not known:
            self.learned.put(self.key, fresh)
        self.known = fresh
        return fresh

    def _repaired(self, refusal: Refusal) -> Fitted | None:
        """The request repaired for the refusal's rule, whatever dialect was detected."""
        state = self.fitted is not None and self.fitted.server_state
        if state or refusal.rule in self.repaired_rules:
            return None
        better = refusal_repairs.repaired_for(self.request, refusal.rule)
        if better is None:
            return None
        self.request, self.repaired_rules = better, (*self.repaired_rules, refusal.rule)
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
            known = self._known_limits()
            self._learn(cut, sent_as(fitted, known), known)
            self.cut_short = True
            return None
        return cut

    def _truncated(self, theirs: int, fitted: Fitted) -> bool:
        """Whether the provider silently truncated the request, as some servers of the chat format
        do.  An uncertain count is kept and compared with the next one."""
        counts = _counts(theirs, fitted)
        if fitted.format != "openai-chat" or not truncation_check.is_short_count(counts):
            return False
        known, host = self._known_limits(), host_of(self.key)
        before = Counts(*known.short) if known.short else None
        if truncation_check.is_truncated(counts, host, fitted.longest_counted, before):
            return True
        if (next_one := truncation_check.count_to_compare(counts, before)) != before:
            self.learned.put(self.key, replace(known, short=next_one))
        return False

    def _accepted(self) -> None:
        if lasting := tuple(
            rule for rule in self.repaired_rules if refusal_repairs.is_lasting(rule)
        ):
            known = self._known_limits()
            self.learned.put(self.key, replace(known, mends=(*known.mends, *lasting)))
        if self.refused_chars:
            known, now = self._known_limits(), self.learned.clock()
            unnamed = (self.result_chars, self.refused_chars, now)
            self.learned.put(self.key, replace(known, unnamed=unnamed))
        if self.known is NO_LIMITS or self.fitted is None:
            return  # no limit that the answer could contradict
        if not self.cut_short and not self.fitted.managed:
            tokens, output = self.fitted.tokens_after, self.fitted.output_asked
            self.learned.accepted(self.key, tokens, output, self.fitted.counter)

    def _given_up(self, refusal: Refusal, attempt: int, last: Fitted | None) -> str:
        """Undo a guess, log that the refusal is final, and return advice for the user."""
        if attempt > 1 and self.guess is not None and self.undo is not None:
            self.undo(self.guess)
        seen = last is None or last.held_tokens
        state = None if last is None or seen else state_named(last.given())
        if refusal.kind == "too_long" and state is not None:
            self.unseen = UNSEEN.format(*state)
            logger().error("%s", self.unseen)
        if refusal.about_size:
            advice = self._advice(refusal, last)
            why = f": {self.cannot_fit or advice}" if self.cannot_fit or advice else ""
            logger().warning(
                "the provider's refusal stands after %d send(s) (%s)%s", attempt, refusal.kind, why
            )
            return advice
        return ""

    def _advice(self, refusal: Refusal, last: Fitted | None) -> str:
        if self.cannot_fit is not None:
            return self.cannot_fit.hint
        try:
            in_bytes = refusal.kind == "too_large" and refusal.unit in ("bytes", "images", "")
            return last.advice("bytes" if in_bytes else "tokens") if last is not None else ""
        except Exception as error:  # advice must never cost the answer
            logger().warning("no advice: %s", type(error).__name__)
            return ""

    # --- reporting -----------------------------------------------------------------------------

    def _tell_refusal(self, refusal: Refusal, reply: Refused | Accepted, attempt: int) -> None:
        status = reply.status if isinstance(reply, Refused) else 200
        if refusal.rule == "opaque" and self.result_chars and "logging" in sys.modules:
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
        self._refused_tokens = before.tokens_after if before else after.tokens_before
        did = "reducing it" if refusal.about_size else f"repairing {refusal.rule}"
        if after is before:
            did = "nothing was changed"
        if limits_from_refusals.names_nothing(refusal):
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


def sent_as(fitted: Fitted, known: ModelLimits, full: bool = False) -> SentRequest:
    """The sizes of a fitted request; bytes and longest result are 0 unless ``full`` or needed for
    ``known``."""
    size = fitted.body_bytes if full or known.request_bytes else 0
    longest = fitted.longest_result if full or known.unnamed else 0
    return SentRequest(
        fitted.tokens_after + fitted.held_tokens, size, fitted.output_asked, fitted.window,
        fitted.scale, longest, fitted.managed, fitted.server_state and not fitted.held_tokens,
    )  # fmt: skip


def _strictly_smaller(now: Fitted, before: Fitted, refusal: Refusal) -> bool:
    if refusal.kind == "too_long":
        held = before.held_tokens if before.server_state and not now.server_state else 0
        return now.tokens_after < before.tokens_after + held
    return now.body_bytes < before.body_bytes


def _counts(theirs: int, fitted: Fitted) -> Counts:
    return Counts(theirs, int(fitted.tokens_after / max(fitted.factor, 1.0)))


def _short(error: Exception) -> str:
    return str(error)[:300]


__all__ = ["Accepted", "Done", "Fit", "Flow", "Refused", "Send", "SendStats", "flow"]
