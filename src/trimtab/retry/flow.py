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
  fitted strictly smaller and sent again: three sends at most, the last as small as what is named
  or seen allows.
- Refusal that names a rule or a field (pairing, reasoning, empty content, …): ``fit`` repairs what
  breaks it, and the request is sent again if nothing breaks it any more: two sends more at most.
  It is never treated as a refusal for size.
- Refusal without a reason (``raw: "ERROR"``, an empty body): one more send with long tool results
  cut.  Once is a coincidence; if it comes again, later requests are cut before their first send.
- An answer is never thrown away: a count that is too short for what was sent is only compared with
  the next one.
- Rate, authentication, server and unrecognised errors pass through after one send.  If the
  provider's own compaction was unavailable, the same request is sent once more.
- What by our count can't fit is sent without a new cut: the answer teaches the count, or a refusal
  names the window.  If nothing can shrink, the caller gets the provider's error.
- An error of ours never stops a request, unless ``strict``.

This file knows the order of these steps, but not HTTP, formats, stores or reductions.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.amounts import many
from trimtab.errors import CannotFit, InvalidRequest, InvalidSetting
from trimtab.events import OnEvent, RefusalEvent, RetryEvent
from trimtab.formats.registry import FORMATS
from trimtab.formats.repair.named_rules import OUTPUT, is_of_endpoint
from trimtab.request.fitted import Fitted, facts_of, note_learned
from trimtab.retry import limits_from_refusals, refusal_repairs, truncation_check
from trimtab.retry.effects import Accepted, Done, Refused, Send, SendStats
from trimtab.retry.guesses import RESULT_CHARS
from trimtab.retry.learned_limits import (
    CONVERSATIONS,
    NO_LIMITS,
    LearnedLimits,
    ModelLimits,
    destination_in,
)
from trimtab.retry.limits_from_refusals import SentRequest
from trimtab.retry.refusals import Refusal, classify
from trimtab.retry.truncation_check import Counts
from trimtab.sessions.response_chains import state_named
from trimtab.settings import NO_WINDOW
from trimtab.telemetry import cause, emit, listening, logger

MAX_SIZE_SENDS = 3
"""Sends of one request that is refused for its size."""
MAX_FORM_SENDS = 2
"""Sends more for refusals that name a rule or a field."""
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
    first: Fitted | None = None,
) -> Flow:
    """Drive one request from ``fit`` to its answer; see the head of this file.

    ``fit``: ``session.fit``, or any function with its keywords (window, reserve, settings);
    and ``destination`` and ``refused`` of ``Session.fit``;
    ``key``: what learned limits are kept under (``learned_limits.key_for``);
    ``retry_result_chars``: chars to which every tool result is cut after a refusal without a
    reason, 0: no such retry; ``streaming``: only for the log; ``undo``: called with the fit that
    was made on that guess, if no send was accepted; ``strict``: raise what ``fit`` raises instead
    of sending the request unchanged; ``first``: the fit that was sent already.
    """
    learned = LearnedLimits() if learned is None else learned
    run = _RequestFlow(
        request, fit, key, learned, retry_result_chars, streaming, strict, on_event, undo, first
    )
    stats = SendStats() if stats is None else stats
    try:
        done = yield from run.steps()
    except Exception as error:
        if strict:
            raise
        logger().warning("not sent again: %s", cause(error))
        done = Done(run.accepted, run.attempt, None)
    stats.count(done.fitted, answered=done.accepted, sends=done.attempts)
    stats.refusals += len(done.refusals)
    stats.retries += done.attempts - 1
    stats.recovered += done.accepted and done.attempts > 1
    stats.seconds += run.seconds
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
    given: Fitted | None = None
    """The first fit, if it was sent already."""
    raw: ModelLimits = NO_LIMITS
    """What was known of this model at first, for every conversation."""
    limits: ModelLimits = NO_LIMITS
    """The limits that applied to the last send."""
    fitted: Fitted | None = None
    cannot_fit: CannotFit | None = None
    guess: Fitted | None = None
    """The fit that was sent after a refusal without a reason."""
    repaired: Fitted | None = None
    """The fit that was sent after a refusal that named a rule."""
    sent_again: bool = False
    """Whether the unchanged request was sent again, because compaction was unavailable."""
    refused_chars: int = 0
    """Chars of the longest tool result in a request that was refused without a reason."""
    cut_chars: int = 0
    """Chars to which its tool results were cut."""
    rules: tuple[str, ...] = ()
    """Rules that refusals of this request named, and rules of its endpoint."""
    words: dict[str, Any] = field(default_factory=dict)
    """Keywords by which the last send was made smaller."""
    first_sent: SentRequest | None = None
    """What was sent when it was first refused for its size."""
    size_sends: int = 1
    form_sends: int = 0
    cut_short: bool = False
    unseen: str = ""
    """The message ``UNSEEN`` with the id of a history that only the provider has; else ""."""
    seconds: float = 0.0
    attempt: int = 1
    accepted: bool = False

    def steps(self) -> Flow:
        """Send, read the reply, repeat with a smaller or repaired request while there is one."""
        self.fitted = self._first()
        if self.cannot_fit is not None:
            message = "sent without a new cut, it will probably be refused: %s"
            logger().error(message, self.cannot_fit)
        refusals: list[Refusal] = []
        attempt, since = 1, self.learned.clock()
        while True:
            sent = self.request if self.fitted is None else self.fitted.request
            self.attempt = attempt
            reply = yield Send(sent, attempt, self.fitted, self.cannot_fit, self.limits)
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
            smaller = self._smaller(refusal)
            if smaller is None:
                advice = self._given_up(refusal, attempt, before)
                return Done(
                    False, attempt, before, tuple(refusals), self.cannot_fit, advice, self.unseen
                )
            self._log_retry(refusal, before, smaller)
            self.fitted, self.cannot_fit, attempt = smaller, None, attempt + 1

    # --- fitting -----------------------------------------------------------------------------

    def _first(self) -> Fitted | None:
        """The first fit; None if the request can't be read or fitted and is sent unchanged."""
        try:
            self.raw = raw = self.learned.get(self.key)
            self.rules = rules_of(raw)
            fitted = self._fit_any() if self.given is None else self.given
            raw = raw.by_counter(facts_of(fitted).counter)
            self.limits = raw.for_conversation(fitted.conversation)
            if raw is NO_LIMITS or self.given is not None:
                return fitted
            return self._fitted_to_known_limits(fitted, raw)
        except InvalidRequest:
            return None
        except CannotFit as error:
            if self.strict:
                raise
            self.cannot_fit = error
        except Exception as error:
            if self.strict:
                raise
            logger().warning("sent unchanged: %s", cause(error))
        return None

    def _fit(self, request: Any, **words: Any) -> Fitted:
        """Fit for this destination, with the rules that it is known to refuse."""
        if self.key:
            words["destination"] = destination_in(self.key)
        if self.rules:
            words["refused"] = self.rules
        return self.fit(request, **words)

    def _fit_any(self) -> Fitted:
        """Fit.  If the window is unknown, or by our count nothing fits in it, only repair: the
        answer tells how the provider counts, or a refusal names the window."""
        try:
            return self._fit(self.request)
        except InvalidSetting:
            if self.strict:
                raise
        except CannotFit as error:
            if self.strict:
                raise
            self.cannot_fit = error
        return self._fit(self.request, window=NO_WINDOW, reserve=0)

    def _fitted_to_known_limits(self, fitted: Fitted, raw: ModelLimits) -> Fitted:
        """``fitted``, or the request fitted again for what refusals taught, which is also known
        where nothing fits in the window that the caller gave."""
        try:
            again = fitted_to_known_limits(self.request, fitted, self._fit, raw)
        except CannotFit as error:
            if self.strict:
                raise
            self.cannot_fit = error
            return fitted
        if self.limits.prompt_tokens(facts_of(fitted).output_asked) is not None:
            self.cannot_fit = None
        return again

    def _smaller(self, refusal: Refusal) -> Fitted | None:
        """The request to send after ``refusal``; None if it can't be made smaller or repaired."""
        try:
            if refusal.about_size:
                return self._reduced(refusal)
            if refusal.kind in ("invalid_pairing", "invalid_other"):
                return self._repaired(refusal)
            if refusal.rule == "compaction_unavailable" and not self.sent_again:
                self.sent_again = True
                return self.fitted
        except CannotFit as error:  # one of the caller's own window says more
            self.cannot_fit = self.cannot_fit or error
        except Exception as error:
            logger().warning("not sent again: %s", cause(error))
        return None

    def _reduced(self, refusal: Refusal) -> Fitted | None:
        last, unnamed = self.fitted, limits_from_refusals.names_nothing(refusal)
        if last is None or self.size_sends == MAX_SIZE_SENDS:
            return None
        if unnamed and not self.result_chars:
            return None
        raw = self._known_limits()
        sent = sent_as(last, raw, full=True)
        if not unnamed:
            if not limits_from_refusals.may_be_too_large(refusal, sent):
                return None
            raw = self._learn(refusal, sent, raw)
        ask = limits_from_refusals.output_to_ask_for(refusal, sent)
        if ask is not None:
            self.rules, sent = (*self.rules, f"{OUTPUT}{ask}"), replace(sent, output=ask)
        room = self.limits.prompt_tokens(sent.output)
        if ask is not None and room is not None and room >= sent.tokens:
            words = self._same_window(last)  # only the output was in the way
        else:
            words = limits_from_refusals.keywords_for_retry(
                refusal, sent, self.limits, facts_of(last).settings, self.first_sent,
                self.result_chars,
            )  # fmt: skip
            if not words:
                return None
        smaller = self._fit(self.request, **words)
        if refusal.rule == "images" and not _strictly_smaller(smaller, last, refusal):
            words = limits_from_refusals.keywords_for_retry(  # none could be made smaller
                refusal, sent, self.limits, facts_of(smaller).settings, self.first_sent
            )
            smaller = self._fit(self.request, **words)
        if ask is None and not _strictly_smaller(smaller, last, refusal):
            return None
        if unnamed and "settings" in words:
            self._note_cut_results(last, sent, words["settings"].result_chars)
        self.guess = smaller if unnamed else self.guess
        self.words, self.size_sends = words, self.size_sends + 1
        self.first_sent = self.first_sent or sent
        _note_room(smaller, self.limits, sent.output)
        return smaller

    def _known_limits(self) -> ModelLimits:
        """What is known of the endpoint, by the counter of this request."""
        counter = "" if self.fitted is None else facts_of(self.fitted).counter
        limits = self.learned.get(self.key, counter)
        return replace(limits, counter=counter) if limits is NO_LIMITS and counter else limits

    def _same_window(self, last: Fitted) -> dict[str, Any]:
        """The keywords of the last send."""
        return self.words or ({} if facts_of(last).window is not None else {"window": NO_WINDOW})

    def _note_cut_results(self, last: Fitted, sent: SentRequest, chars: int) -> None:
        """Remember what was cut on a guess.  A result as long as the longest that the provider
        took in an earlier turn can't be what it refused."""
        self.cut_chars = chars
        was_taken_before = facts_of(last).longest_answered_result >= sent.longest_result
        self.refused_chars = 0 if was_taken_before else sent.longest_result

    def _learn(self, refusal: Refusal, sent: SentRequest, raw: ModelLimits) -> ModelLimits:
        """What the refusal told this conversation; ``limits`` are what now holds for it."""
        talk = "" if self.fitted is None else self.fitted.conversation
        fresh = limits_from_refusals.learn_from_refusal(refusal, sent, raw, talk)
        if fresh is not raw:
            self.learned.put(self.key, fresh)
            self._tell_learned(fresh, refusal)
        self.limits = fresh.for_conversation(talk)
        return fresh

    def _tell_learned(self, fresh: ModelLimits, refusal: Refusal) -> None:
        """Log what was learned, from what and until when."""
        dated = replace(fresh, at=self.learned.clock())
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(dated.until))
        by_all = any(len(told) >= CONVERSATIONS for told in fresh.told.values())
        whom = "all conversations" if by_all else "this conversation"
        logger().info(
            "learned from a refusal (%s %s) of %s: %s, for %s until %s; "
            "trimtab doctor --forget %s takes it back",
            refusal.kind, refusal.rule, destination_in(self.key) or "this model",
            fresh.described, whom, until, shlex.quote(destination_in(self.key) or "all"),
        )  # fmt: skip

    def _repaired(self, refusal: Refusal) -> Fitted | None:
        """The request repaired for the rules that the refusal named, if nothing breaks them then.

        All rules of a kind at once, and rules that were named before stay repaired.
        """
        last = self.fitted
        if last is None or facts_of(last).server_state or self.form_sends == MAX_FORM_SENDS:
            return None
        if self.repaired is None:
            self.repaired = last  # what is taken back if none of it helps
        spoken = facts_of(last).spoken
        named = refusal_repairs.rules_named(refusal, last.request, spoken)
        if not named or set(named) <= set(self.rules):
            return None
        self.rules = tuple(dict.fromkeys((*self.rules, *named)))
        again = self._fit(self.request, **self._same_window(last))
        if again.request == last.request:
            return None
        if set(named) & set(refusal_repairs.rules_named(refusal, again.request, spoken)):
            return None  # its cause is still there
        self.form_sends, self.repaired = self.form_sends + 1, again
        return again

    # --- what came back ----------------------------------------------------------------------

    def _read(self, reply: Refused | Accepted) -> Refusal | None:
        if isinstance(reply, Refused):
            return classify(reply.status, reply.body, reply.headers)
        if reply.prompt_tokens is not None and self.fitted is not None:
            self._compare_count(reply.prompt_tokens, self.fitted)
        return None

    def _compare_count(self, theirs: int, fitted: Fitted) -> None:
        """Learn a limit if the provider silently truncates, as some servers of the chat format do:
        from the next request on.  One short count is only kept, to be compared."""
        counts, format = _counts(theirs, fitted), FORMATS[facts_of(fitted).format]
        if not format.cuts_silently or not truncation_check.is_short_count(counts):
            return
        raw = self._known_limits()
        before = Counts(*raw.short) if raw.short else None
        if truncation_check.is_truncated(counts, before):
            cut = Refusal("too_long", theirs, None, "lower_bound", "silent_truncation", "tokens")
            self._learn(cut, sent_as(fitted, raw), raw)
            self.cut_short = True
        elif (next_one := truncation_check.count_to_compare(counts, before)) != before:
            self.learned.put(self.key, replace(raw, short=next_one))

    def _accepted(self) -> None:
        if self.fitted is None:
            return
        if self.attempt > 1:
            self._keep_what_helped(self.fitted.conversation)
            self.raw = self.learned.get(self.key)
        raw = self.raw
        if raw is NO_LIMITS:
            return  # no limit that the answer could contradict
        facts = facts_of(self.fitted)
        if not self.cut_short and not facts.managed:
            tokens = self.fitted.tokens_after
            self.learned.accepted(self.key, tokens, facts.output_asked, facts.counter)
        if raw.unnamed is not None and not self.refused_chars:
            self.learned.accepted_chars(self.key, facts.longest_result)

    def _keep_what_helped(self, talk: str) -> None:
        """Remember with the endpoint what a refusal told of it: a field, a spelling, a length."""
        raw = self._known_limits()
        fresh, named = raw, self.rules
        for rule in filter(is_of_endpoint, named):
            told = tuple(dict.fromkeys((*fresh.rules.get(rule, ()), talk)))[-CONVERSATIONS:]
            fresh = replace(fresh, rules={**fresh.rules, rule: told})
            if fresh.limit is None and fresh.refused is None:  # else a guess would last as long
                fresh = replace(fresh, exactness="exact")
        for rule in named:
            if rule.startswith(OUTPUT):
                most = int(rule.removeprefix(OUTPUT))
                fresh = replace(fresh, output=most).taught("output", talk, fresh)
        if self.refused_chars:
            times = 0 if fresh.unnamed is None else fresh.unnamed[3]
            now = self.learned.clock()
            fresh = replace(fresh, unnamed=(self.cut_chars, self.refused_chars, now, times + 1))
        if fresh != raw:
            self.learned.put(self.key, fresh)

    def _given_up(self, refusal: Refusal, attempt: int, last: Fitted | None) -> str:
        """Undo a guess, log that the refusal is final, and return advice for the user."""
        for tried in (self.guess, self.repaired if self.form_sends else None):
            if tried is not None and self.undo is not None:
                self.undo(tried)
        seen = last is None or facts_of(last).held_tokens
        state = None if last is None or seen else state_named(facts_of(last).given())
        if refusal.kind == "too_long" and state is not None:
            self.unseen = UNSEEN.format(*state)
            logger().error("%s", self.unseen)
        if refusal.about_size:
            advice = self._advice(refusal, last)
            why = f": {self.cannot_fit or advice}" if self.cannot_fit or advice else ""
            logger().warning(
                "the provider still refuses after %s (%s)%s",
                many(attempt, "send"),
                refusal.kind,
                why,
            )
            return advice
        return ""

    def _advice(self, refusal: Refusal, last: Fitted | None) -> str:
        if self.cannot_fit is not None:
            return self.cannot_fit.hint
        try:
            in_bytes = refusal.kind == "too_large" and refusal.unit in ("bytes", "images", "")
            unit = "bytes" if in_bytes else "tokens"
            return facts_of(last).advice(unit) if last is not None else ""
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
        asked, instead = (facts_of(one).output_asked if one else 0 for one in (after, before))
        if 0 < asked < instead and after.tokens_after == self._refused_tokens:
            logger().warning(
                "sent again with %s output tokens instead of %s, due to a provider's refusal (%s)",
                f"{asked:,}", f"{instead:,}", refusal.kind,
            )  # fmt: skip
            return
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
        return {"format": facts_of(self.fitted).format}


def rules_of(limits: ModelLimits) -> tuple[str, ...]:
    """The rules of an endpoint that hold for every conversation."""
    lowered = limits.output is not None and len(limits.told.get("output", ())) >= CONVERSATIONS
    return (*limits.known_rules, *([f"{OUTPUT}{limits.output}"] if lowered else []))


def fitted_to_known_limits(request: Any, fitted: Fitted, fit: Fit, limits: ModelLimits) -> Fitted:
    """``fitted``, or ``request`` fitted again with ``fit`` where it is above a learned limit."""
    mine = limits.for_conversation(fitted.conversation)
    sent = sent_as(fitted, mine)
    words = limits_from_refusals.keywords_for_known_limits(mine, facts_of(fitted).settings, sent)
    again = fit(request, **words) if words else fitted
    _note_room(again, mine, sent.output)
    return again


def _note_room(fitted: Fitted, limits: ModelLimits, output: int) -> None:
    """Note the most tokens that the provider takes, if a refusal taught it, for the report."""
    room = limits.prompt_tokens(output)
    if room is not None:
        note_learned(fitted, room, limits.limit)


def sent_as(fitted: Fitted, limits: ModelLimits, full: bool = False) -> SentRequest:
    """The sizes of a fitted request; bytes and longest result are 0 unless ``full`` or needed for
    ``limits``."""
    facts = facts_of(fitted)
    size = facts.body_bytes if full or limits.request_bytes else 0
    longest = facts.longest_result if full or limits.unnamed else 0
    return SentRequest(
        fitted.tokens_after + facts.held_tokens, size, facts.output_asked, facts.window,
        facts.scale, longest, facts.managed, facts.server_state and not facts.held_tokens,
    )  # fmt: skip


def _strictly_smaller(now: Fitted, before: Fitted, refusal: Refusal) -> bool:
    mine, theirs = facts_of(now), facts_of(before)
    if refusal.kind == "too_long":
        held = theirs.held_tokens if theirs.server_state and not mine.server_state else 0
        return now.tokens_after < before.tokens_after + held
    if refusal.unit == "pixels":  # fewer pixels may be more bytes
        return bool(now.request != before.request)
    return mine.body_bytes < theirs.body_bytes


def _counts(theirs: int, fitted: Fitted) -> Counts:
    return Counts(theirs, int(fitted.tokens_after / max(facts_of(fitted).factor, 1.0)))


__all__ = ["Accepted", "Done", "Fit", "Flow", "Refused", "Send", "SendStats", "flow"]
