"""The result of a call: the request, the report, and the way back to each original.

Knows how an outcome is told.  Does not decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from trimtab.errors import UnknownHandle
from trimtab.model import Edit, Limits
from trimtab.money.observed import Counted
from trimtab.planning.edits import Applied, gone_groups, groups_of, note_host
from trimtab.planning.floor import floor
from trimtab.planning.gone import Gone
from trimtab.settings import NO_WINDOW, calibration_key
from trimtab.telling.report import Report, ReportEdit, ReportRepair
from trimtab.tokens import MESSAGE_TOKENS
from trimtab.turns import fitting
from trimtab.turns.work import Outcome, Work


class Fitted:
    """A request that can be sent, and what was done to it.

    ``request`` has the type that was given, and is the very same object where nothing had to
    change.  ``report`` says what happened and why.
    """

    def __init__(self, outcome: Outcome, originals: Mapping[str, str]) -> None:
        self.request: Any = outcome.sent.returned(outcome.work.source)
        self._outcome, self._failures = outcome, outcome.work.usage.counter.failures
        self._originals = originals
        self.counted = counted(outcome)
        """What we counted of the request that is sent: ``Session.observe`` compares the bill."""

    @cached_property
    def report(self) -> Report:
        """What was done and why; worked out when it is first asked for."""
        return report_of(self._outcome, self._failures)

    @property
    def tokens_after(self) -> int:
        """Tokens of ``request``, as the report has them, without working the report out."""
        return self._outcome.tokens_after

    @property
    def tokens_before(self) -> int:
        """Tokens of the request as it came."""
        return self._outcome.tokens_before

    @property
    def capacity(self) -> int:
        """Tokens that its prompt may have; 0 where there is no window."""
        return 0 if self.window is None else self._outcome.work.force.bounds.capacity

    @property
    def trigger(self) -> int:
        """Tokens above which something is done; 0 where there is no window."""
        return 0 if self.window is None else self._outcome.work.force.bounds.trigger

    @property
    def body_bytes(self) -> int:
        """Encoded bytes of ``request``."""
        return self._outcome.sent.body_bytes

    @property
    def limits(self) -> Limits:
        """The limits that were asked for."""
        return self._outcome.work.settings.limits

    @property
    def window(self) -> int | None:
        """The window in force; None where there is none."""
        window = self._outcome.work.force.window
        return None if window >= NO_WINDOW else window

    @property
    def output_asked(self) -> int:
        """Output tokens that the request itself asks for; 0 where it does not say."""
        asked = self._outcome.work.transcript.facts.max_output
        return asked if type(asked) is int and asked > 0 else 0

    @property
    def format(self) -> str:
        """The format it is in."""
        return str(self._outcome.work.transcript.format.name)

    @property
    def factor(self) -> float:
        """What our count was multiplied with because the model's tokenizer is not ours."""
        return self._outcome.work.usage.counter.factor

    @property
    def longest_counted(self) -> int:
        """Tokens of the longest prompt that the provider has counted of late; 0: not known."""
        work = self._outcome.work
        key = calibration_key(work.settings, work.transcript, work.usage.counter)
        found = work.settings.calibrations.get(key)
        return max((one.billed for one in found.samples), default=0) if found else 0

    @property
    def scale(self) -> float:
        """Provider's tokens for one of ours at the worst, where answers have taught that: what a
        window given to ``fit`` is divided by."""
        work, tokens, signed = self._outcome.work, self.tokens_after, self._outcome.signed
        key = calibration_key(work.settings, work.transcript, work.usage.counter)
        found = work.settings.calibrations.get(key)
        factors = found.factors(tokens - signed, signed, tokens) if found else None
        return factors.worst if factors else 1.0

    @property
    def changed(self) -> bool:
        """Whether what leaves is not what came."""
        return bool(self._outcome.applied) or self._outcome.work.mends is not None

    @property
    def server_state(self) -> bool:
        """Whether the provider holds a part of the conversation that is not in the request."""
        return self._outcome.work.transcript.facts.server_state

    def recall(self, handle: str) -> str:
        """The original behind a handle, exactly: the string of a text, else JSON text.

        Raises UnknownHandle.
        """
        return recall(self._originals, handle)

    def __repr__(self) -> str:
        return f"<Fitted {self.report.tokens_before:,} → {self.report.tokens_after:,} tokens>"


def recall(originals: Mapping[str, str], handle: str) -> str:
    """Look up one handle.  Raises UnknownHandle with what to do."""
    try:
        return originals[handle]
    except UnknownHandle:
        raise
    except KeyError:
        raise UnknownHandle(
            f"no original is kept under {handle!r} here: run the tool again, "
            "or recall it from the session that made the edit"
        ) from None


def counted(outcome: Outcome) -> Counted | None:
    """What a bill can be compared with; None where no model is named."""
    work = outcome.work
    key = calibration_key(work.settings, work.transcript, work.usage.counter)
    return Counted(key, outcome.tokens_after - outcome.signed, outcome.signed) if key else None


def report_of(outcome: Outcome, failures: int) -> Report:
    """The report of one outcome; ``failures``: how often the given counter had failed by then."""
    work = outcome.work
    counter = work.usage.counter
    warnings = list(dict.fromkeys(work.warnings))
    if failures:
        warnings.append(f"the given counter failed {failures} times; the default counted")
    if outcome.step not in ("", "planned"):
        warnings.append(f"fell back to: {outcome.step}")
    if outcome.asked is not None:
        warnings += outcome.asked.warnings()
    return Report(
        reason=_reason(outcome),
        format=work.transcript.format.name,
        format_reason=work.format_reason,
        counter=counter.name,
        factor=counter.factor,
        tokens_before=outcome.tokens_before,
        tokens_after=outcome.tokens_after,
        limits=work.force.as_dict(outcome.target),
        edits=_edits(outcome),
        repairs=_repairs(work),
        warnings=tuple(warnings),
        asked=outcome.asked.as_dict() if outcome.asked else {},
        window_of=work.force.window_of,
        money={**outcome.money.as_dict(), "told": str(outcome.money)} if outcome.money else {},
        calibration=asdict(work.force.factors) if work.force.factors else {},
        _floor=lambda: floor(work),
        _bytes=lambda: (work.source.body_bytes, outcome.sent.body_bytes),
    )


def _edits(outcome: Outcome) -> tuple[ReportEdit, ...]:
    """One row an edit; turns that only go on share them."""
    work, fresh = outcome.work, {edit.handle for edit in outcome.new}
    if not outcome.rows:
        gone = gone_groups(work.transcript, (applied.edit for applied in outcome.applied))
        outcome.rows.extend(_edit(work, applied, gone) for applied in outcome.applied)
    return tuple(replace(row, new=True) if row.handle in fresh else row for row in outcome.rows)


def _reason(outcome: Outcome) -> str:
    """One line: why something happened at all, or why nothing did."""
    work, force = outcome.work, outcome.work.force
    before, after = outcome.tokens_before, outcome.tokens_after
    share = force.trigger
    capacity = f"{force.bounds.capacity:,}"
    if force.reserve:
        capacity = f"{force.bounds.capacity:,} ({force.window:,} less {force.reserve:,} for output)"
    if force.given:
        capacity = (
            f"{force.bounds.capacity:,} (as the provider counts {force.given:,} less "
            f"{force.reserve:,} for output)"
        )
    if not outcome.applied:
        mended = f", {len(_repairs(work))} repair(s)" if work.mends else ""
        if outcome.step == "original":
            return f"{before:,} of {capacity} tokens: sent as it came, it could not be reduced"
        if before > force.bounds.trigger:
            return (
                f"{before:,} of {capacity} tokens is above the trigger {share:.0%}, but fits, and "
                f"nothing can be reduced at little loss{mended}"
            )
        where = "no window given" if force.window >= NO_WINDOW else f"below the trigger {share:.0%}"
        of = "" if force.window >= NO_WINDOW else f" of {capacity}"
        return f"{before:,}{of} tokens, {where}: nothing to reduce{mended}"
    if not outcome.new:
        return (
            f"{before:,} tokens arrived, {after:,} of {capacity} are sent: "
            "the edits of earlier turns stand, nothing new"
        )
    if force.cold and before <= work.force.bounds.capacity:
        idle = work.settings.idle_seconds or 0
        cause = f"{before:,} of {capacity} tokens, and idle for {idle:,.0f} s: the cache is cold"
    elif before > force.bounds.capacity:
        cause = f"{before:,} tokens do not fit into {capacity}"
    elif before > force.bounds.trigger:
        cause = f"{before:,} of {capacity} tokens is above the trigger {share:.0%}"
    else:
        of = "" if force.window >= NO_WINDOW else f" of {capacity}"
        cause = f"{before:,}{of} tokens would fit, but bytes, chars or images do not"
        return f"{cause}: reduced to {after:,}"
    hint = "; trigger=1.0 cuts only when it must" if before <= force.bounds.capacity else ""
    return f"{cause}: reduced to {after:,}{hint}"


def _edit(work: Work, applied: Applied, gone: Gone) -> ReportEdit:
    edit, transcript = applied.edit, work.transcript
    found = applied.paths
    if work.mends is not None:
        found = tuple(work.before_repair(path) for path in found)
    span = transcript.index.span(edit.targets) if edit.op == "drop" else None
    before, chars, tools = _blocks(work, edit) if span is None else _groups(work, *span)
    after = work.usage.counter(edit.text) if edit.text else 0
    first = transcript.refs.get(edit.targets[0]) if edit.targets else None
    if edit.op == "insert":
        before = 0
    elif edit.op == "drop":
        whole = note_host(transcript, groups_of(transcript, edit) or (), gone) is None
        after += work.usage.counter.scaled(MESSAGE_TOKENS) if whole else 0
    elif edit.op == "replace" and first is not None and first.block.label:
        after += work.usage.counter(first.block.label)
    role = ""
    if first is not None:
        role = "head" if first.message < 0 else transcript.messages[first.message].role
    return ReportEdit(
        kind=edit.kind, op=edit.op, path=found[0], paths=found, why=edit.why,
        tokens_before=before, tokens_after=after, loss=edit.loss, handle=edit.handle,
        tool=", ".join(tools) or None, role=role, refs=edit.targets,
        new=False, chars_before=chars, chars_after=len(edit.text),
    )  # fmt: skip


def _groups(work: Work, first: int, last: int) -> tuple[int, int, list[str]]:
    """Tokens, chars and tools of groups[first:last + 1]."""
    index, tokens = work.transcript.index, work.usage.runs(work.transcript).tokens
    chars = index.rows.chars
    return (
        tokens[last + 1] - tokens[first], chars[last + 1] - chars[first], index.tools(first, last)
    )  # fmt: skip


def _blocks(work: Work, edit: Edit) -> tuple[int, int, list[str]]:
    """The same of the blocks an edit stands for."""
    transcript, places = work.transcript, work.places(edit)
    tools = dict.fromkeys(filter(None, (transcript.tool(place) for place in places)))
    tokens = sum(work.usage.block(transcript, place) for place in places)
    for group in (groups_of(transcript, edit) or ()) if edit.op == "drop" else ():
        own = sum(work.usage.block(transcript, place) for place in group.places)
        tokens += work.usage.group(transcript, group) - own  # their frames
    return tokens, sum(len(place.block.text) for place in places), list(tools)


def _repairs(work: Work) -> tuple[ReportRepair, ...]:
    if work.mends is None:
        return ()
    mends = work.mends
    key = work.settings.handle_key
    handles = {index: fitting.taken_handle(value, key) for index, _, value in mends.taken}
    rows = []
    for index, (rule, mend) in enumerate(mends.mends):
        before = mends.at[index]
        touched = dict.fromkeys(work.before_repair(op.path, before) for op in mend.ops)
        path = work.before_repair(mend.path, before)
        rows.append(ReportRepair(rule, path, mend.message, handles.get(index, ""), tuple(touched)))
    return tuple(rows)
