"""The result of a call: the request, the report, and the way back to each original.

Says what was done; decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from trimtab import pipeline, wire
from trimtab.effective_limits import calibration_key
from trimtab.errors import UnknownHandle, expect_text
from trimtab.journal.folded_steps import FoldedStep, folded_steps, step_range, steps_of
from trimtab.minimum import minimum
from trimtab.pipeline import FitResult
from trimtab.planning.advice import advice, size_in_bytes
from trimtab.planning.dropped_ranges import IntervalSet, folded_tokens
from trimtab.planning.edits import dropped_groups, groups_of, note_host
from trimtab.planning.operations import Applied
from trimtab.prepared_request import PreparedRequest
from trimtab.pricing.observed_usage import Counted
from trimtab.report import EditLoss, Report, ReportEdit, ReportRepair
from trimtab.settings import NO_WINDOW, Settings
from trimtab.transcript.model import Edit
from trimtab.transcript.tokens import MESSAGE_TOKENS


class Fitted:
    """A request that can be sent, and what was done to it.

    ``request`` has the type that was given, and is the very same object where nothing had to
    change.  ``report`` says what happened and why.  It can be pickled and copied.
    """

    def __init__(self, result: FitResult, originals: Mapping[str, str]) -> None:
        self.request: Any = result.sent.returned(result.prepared.body)
        self._result, self._failures = result, result.prepared.sizes.counter.failures
        self._originals = originals
        self.arm = ""
        """Of an experiment (the setting ``control``): treated, control or control, outgrown."""
        self.held_tokens = 0
        """Tokens that the provider's server holds for it besides, as they were billed."""
        self.chained: Any = None
        """The request as the client made it, where its history was put into it."""
        self.streamed: Any = None
        """The steps of the answer so far, where it comes as events that a session observes."""

    @cached_property
    def counted(self) -> Counted | None:
        """What we counted of the request that is sent: ``Session.observe`` compares the bill."""
        return counted(self._result)

    @cached_property
    def report(self) -> Report:
        """What was done and why; worked out when it is first asked for."""
        return report_of(self._result, self._failures)

    @cached_property
    def tokens_after(self) -> int:
        """Tokens of ``request``, as the report has them, without working the report out."""
        return self._result.tokens_after

    @cached_property
    def tokens_before(self) -> int:
        """Tokens of the request as it came."""
        return self._result.tokens_before

    @cached_property
    def capacity(self) -> int:
        """Tokens that its prompt may have; 0 where there is no window."""
        return 0 if self.window is None else self._result.prepared.limits.bounds.capacity

    @cached_property
    def trigger(self) -> int:
        """Tokens above which something is done; 0 where there is no window."""
        return 0 if self.window is None else self._result.prepared.limits.bounds.trigger

    @cached_property
    def body_bytes(self) -> int:
        """Encoded bytes of ``request``."""
        return self._result.sent.body_bytes

    @cached_property
    def longest_result(self) -> int:
        """Chars of the longest tool result in ``request``, which is read for it."""
        sent, format = self._result.sent, self._result.prepared.transcript.format
        return wire.read(sent.tree, format).longest_result()

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self._result.prepared.settings

    @cached_property
    def window(self) -> int | None:
        """The window in force; None where there is none."""
        window = self._result.prepared.limits.window
        return None if window >= NO_WINDOW else window

    @cached_property
    def output_asked(self) -> int:
        """Output tokens that the request itself asks for; 0 where it does not say."""
        asked = self._result.prepared.transcript.facts.max_output
        return asked if type(asked) is int and asked > 0 else 0

    @cached_property
    def format(self) -> str:
        """The format it is in."""
        return str(self._result.prepared.transcript.format.name)

    @cached_property
    def factor(self) -> float:
        """What our count was multiplied with because the model's tokenizer is not ours."""
        return self._result.prepared.sizes.counter.factor

    @cached_property
    def longest_counted(self) -> int:
        """Tokens of the longest prompt that the provider has counted of late; 0: not known."""
        prepared = self._result.prepared
        key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
        found = prepared.facts.calibrations.get(key)
        return max((one.billed for one in found.samples), default=0) if found else 0

    @cached_property
    def scale(self) -> float:
        """Provider's tokens for one of ours at the worst, where answers have taught that: what a
        window given to ``fit`` is divided by."""
        prepared, tokens, signed = self._result.prepared, self.tokens_after, self._result.signed
        key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
        found = prepared.facts.calibrations.get(key)
        factors = found.factors(tokens - signed, signed, tokens) if found else None
        return factors.worst if factors else 1.0

    def advice(self, unit: str = "tokens") -> str:
        """What to do where the provider finds even this too large, by what fills the request as it
        came, in tokens or bytes; "" where nothing takes most of it."""
        arrived, sizes = self._result.prepared.arrived, self._result.prepared.sizes
        in_bytes = unit == "bytes"
        rows = ((p, size_in_bytes(p) if in_bytes else sizes.block(arrived, p))
                for p in arrived.places())  # fmt: skip
        return advice(arrived, rows, unit)

    @cached_property
    def changed(self) -> bool:
        """Whether what leaves is not what came."""
        return bool(self._result.applied) or self._result.prepared.repairs is not None

    @cached_property
    def managed(self) -> bool:
        """Whether the provider is asked to clear or compact it, so that it may take more of it
        than its window."""
        return self._result.prepared.transcript.facts.managed

    @cached_property
    def server_state(self) -> bool:
        """Whether the provider holds a part of the conversation that is not in the request."""
        return self._result.prepared.transcript.facts.server_state

    def given(self) -> Any:
        """The parsed request as the client made it; None where that is not known any more."""
        result = vars(self).get("_result")
        if self.chained is not None or result is None:
            return self.chained
        return result.prepared.body.tree

    def recall(self, handle: str, *, steps: int | str | tuple[int, int] | None = None) -> str:
        """The original behind a handle, exactly: the string of a text, else JSON text; of steps
        that were folded together some by number (``3``, ``"3-5"``), see ``contents``.

        Raises UnknownHandle; ValueError where there are no such steps.
        """
        text = recall(self._originals, handle)
        asked = step_range(steps)
        return text if asked is None else steps_of(text, *asked)

    def contents(self, handle: str) -> list[FoldedStep]:
        """The steps that were folded together under a handle; [] for any other original.

        Raises UnknownHandle.
        """
        return folded_steps(self.recall(handle))

    def __getstate__(self) -> dict[str, Any]:
        """All that it tells, worked out: what it was made from has the caller's functions in it."""
        known = {name: getattr(self, name) for name, value in vars(Fitted).items()
                 if isinstance(value, cached_property)}  # fmt: skip
        own = {"request": self.request, "_originals": dict(self._originals)}
        return {**own, "held_tokens": self.held_tokens, "chained": None, "streamed": None, **known}

    def __repr__(self) -> str:
        return f"<Fitted {self.report.tokens_before:,} → {self.report.tokens_after:,} tokens>"


def recall(originals: Mapping[str, str], handle: str) -> str:
    """Look up one handle.  Raises UnknownHandle with what to do."""
    expect_text("handle", handle)
    try:
        return originals[handle]
    except UnknownHandle:
        raise
    except KeyError:
        raise UnknownHandle(
            f"no original is kept under {handle!r} here: run the tool again, "
            "or recall it from the session that made the edit"
        ) from None


def counted(result: FitResult) -> Counted | None:
    """What a bill can be compared with; None where no model is named."""
    prepared = result.prepared
    key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
    if not key:
        return None
    managed = prepared.transcript.facts.managed
    return Counted(key, result.tokens_after - result.signed, result.signed, managed)


EXPECTED = "this request is expected to be refused: no step made it smaller; report the steps above"
"""Told where the ladder of fallbacks ends above a limit."""


def report_of(result: FitResult, failures: int) -> Report:
    """The report of one result; ``failures``: how often the given counter had failed by then."""
    prepared = result.prepared
    counter = prepared.sizes.counter
    warnings = list(dict.fromkeys(prepared.warnings))
    if failures:
        warnings.append(f"the given counter failed {failures} times; the default counted")
    if result.step not in ("", "planned"):
        warnings.append(f"fell back to: {result.step}")
    if result.is_refusal_expected:
        warnings.append(EXPECTED)
    if result.asked is not None:
        warnings += result.asked.warnings()
    return Report(
        reason=_reason(result),
        format=prepared.transcript.format.name,
        format_reason=prepared.format_reason,
        counter=counter.name,
        factor=counter.factor,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        limits=prepared.limits.as_dict(result.target),
        edits=_edits(result),
        repairs=_repairs(prepared),
        warnings=tuple(warnings),
        asked=result.asked.as_dict() if result.asked else {},
        window_of=prepared.limits.window_of,
        money={**result.money.as_dict(), "told": str(result.money)} if result.money else {},
        calibration=asdict(prepared.limits.factors) if prepared.limits.factors else {},
        _losses=lambda: _losses(result),
        _floor=lambda: minimum(prepared),
        _bytes=lambda: (prepared.body.body_bytes, result.sent.body_bytes),
    )


def _edits(result: FitResult) -> tuple[ReportEdit, ...]:
    """One row an edit."""
    prepared, fresh = result.prepared, {edit.handle for edit in result.new}
    dropped = dropped_groups(prepared.transcript, (applied.edit for applied in result.applied))
    rows = (_edit(prepared, applied, dropped) for applied in result.applied)
    return tuple(replace(row, new=True) if row.handle in fresh else row for row in rows)


def _losses(result: FitResult) -> tuple[EditLoss, ...]:
    """What each new edit took out that stands nowhere else in what is sent."""
    prepared, fresh = result.prepared, {edit.handle for edit in result.new}
    read, transcript = prepared.cache.lines, prepared.transcript
    sent = prepared.cache.read_changed(result.sent, prepared.repaired, transcript)
    kept = [read(place.block) for place in sent.places()]
    names = frozenset[str]().union(*(lines.names for lines in kept))
    rows = {line.text.strip() for lines in kept for line in lines.lines}
    found = []
    for applied in result.applied:
        edit = applied.edit
        if edit.handle not in fresh or not edit.targets:
            continue
        gone = [read(place.block) for place in prepared.places(edit)]
        lines = {line.text.strip() for one in gone for line in one.lines} - rows - {""}
        own = dict.fromkeys(n for one in gone for line in one.lines for n in line.names)
        found.append(EditLoss(
            edit.handle, prepared.before_repair(applied.paths[0]), edit.kind, edit.why,
            len(lines), tuple(name for name in own if name not in names),
            f'recall("{edit.handle}") has it, Session.undo("{edit.handle}") puts it back',
        ))  # fmt: skip
    return tuple(found)


def _reason(result: FitResult) -> str:
    """One line: why something happened at all, or why nothing did."""
    prepared, limits = result.prepared, result.prepared.limits
    before, after = result.tokens_before, result.tokens_after
    share = limits.trigger
    capacity = f"{limits.bounds.capacity:,}"
    if limits.reserve:
        capacity = (
            f"{limits.bounds.capacity:,} ({limits.window:,} less {limits.reserve:,} for output)"
        )
    if limits.given:
        capacity = (
            f"{limits.bounds.capacity:,} (as the provider counts {limits.given:,} less "
            f"{limits.reserve:,} for output)"
        )
    if not result.applied:
        repaired = f", {len(_repairs(prepared))} repair(s)" if prepared.repairs else ""
        if result.step == "original":
            return f"{before:,} of {capacity} tokens: sent as it came, it could not be reduced"
        if before > limits.bounds.trigger:
            return (
                f"{before:,} of {capacity} tokens is above the trigger {share:.0%}, but fits, and "
                f"nothing can be reduced at little loss{repaired}"
            )
        where = (
            "no window given" if limits.window >= NO_WINDOW else f"below the trigger {share:.0%}"
        )
        of = "" if limits.window >= NO_WINDOW else f" of {capacity}"
        return f"{before:,}{of} tokens, {where}: nothing to reduce{repaired}"
    if not result.new:
        return (
            f"{before:,} tokens arrived, {after:,} of {capacity} are sent: "
            "the edits of earlier turns stand, nothing new"
        )
    if limits.cold and before <= prepared.limits.bounds.capacity:
        idle = prepared.idle_seconds or 0
        cause = f"{before:,} of {capacity} tokens, and idle for {idle:,.0f} s: the cache is cold"
    elif before > limits.bounds.capacity:
        cause = f"{before:,} tokens do not fit into {capacity}"
    elif before > limits.bounds.trigger:
        cause = f"{before:,} of {capacity} tokens is above the trigger {share:.0%}"
    else:
        of = "" if limits.window >= NO_WINDOW else f" of {capacity}"
        cause = f"{before:,}{of} tokens would fit, but {_why_below(prepared)}"
        return f"{cause}: reduced to {after:,}"
    hint = "; trigger=1.0 cuts only when it must" if before <= limits.bounds.capacity else ""
    return f"{cause}: reduced to {after:,}{hint}"


def _why_below(prepared: PreparedRequest) -> str:
    """Why anything was done below the trigger."""
    if prepared.too_many_images or prepared.too_long_result:
        return "bytes, chars or images do not"
    if prepared.dead_weight_due:
        return "dead weight among them pays for the cache it breaks"
    if prepared.arriving:
        return "new results are shown smaller from the start"
    return "bytes, chars or images do not"


def _edit(prepared: PreparedRequest, applied: Applied, dropped: IntervalSet) -> ReportEdit:
    edit, transcript = applied.edit, prepared.transcript
    found = applied.paths
    if prepared.repairs is not None:
        found = tuple(prepared.before_repair(path) for path in found)
    span = transcript.table.span(edit.targets) if edit.op in ("drop", "fold") else None
    before, chars, tools = _blocks(prepared, edit) if span is None else _groups(prepared, *span)
    texts = [text for text in (edit.text, edit.said, edit.asked, edit.arguments) if text]
    after = prepared.sizes.counter(edit.text) if edit.text else 0
    first = transcript.refs.get(edit.targets[0]) if edit.targets else None
    if edit.op == "insert":
        before = 0
    elif edit.op == "fold":
        before, after = folded_tokens(transcript, prepared.sizes, edit)
    elif edit.op == "drop":
        whole = note_host(transcript, groups_of(transcript, edit) or (), dropped) is None
        after += prepared.sizes.counter.scaled(MESSAGE_TOKENS) if whole else 0
    elif edit.op == "replace" and first is not None and first.block.label:
        after += prepared.sizes.counter(first.block.label)
    role = ""
    if first is not None:
        role = "head" if first.message < 0 else transcript.messages[first.message].role
    return ReportEdit(
        kind=edit.kind, op=edit.op, path=found[0], paths=found, why=edit.why,
        tokens_before=before, tokens_after=after, loss=edit.loss, handle=edit.handle,
        tool=", ".join(tools) or None, role=role, refs=edit.targets,
        new=False, chars_before=chars, chars_after=sum(map(len, texts)),
    )  # fmt: skip


def _groups(prepared: PreparedRequest, first: int, last: int) -> tuple[int, int, list[str]]:
    """Tokens, chars and tools of groups[first:last + 1]."""
    table, tokens = prepared.transcript.table, prepared.sizes.runs(prepared.transcript).tokens
    chars = table.chars
    return (
        tokens[last + 1] - tokens[first], chars[last + 1] - chars[first], table.tools(first, last)
    )  # fmt: skip


def _blocks(prepared: PreparedRequest, edit: Edit) -> tuple[int, int, list[str]]:
    """The same of the blocks an edit stands for."""
    transcript, places = prepared.transcript, prepared.places(edit)
    tools = dict.fromkeys(filter(None, (transcript.tool(place) for place in places)))
    tokens = sum(prepared.sizes.block(transcript, place) for place in places)
    for group in (groups_of(transcript, edit) or ()) if edit.op in ("drop", "fold") else ():
        own = sum(prepared.sizes.block(transcript, place) for place in group.places)
        tokens += prepared.sizes.group(transcript, group) - own  # their frames
    return tokens, sum(len(place.block.text) for place in places), list(tools)


def _repairs(prepared: PreparedRequest) -> tuple[ReportRepair, ...]:
    if prepared.repairs is None:
        return ()
    repairs = prepared.repairs
    key = prepared.facts.handle_key
    handles = {index: pipeline.taken_handle(value, key) for index, _, value in repairs.taken}
    rows = []
    for index, (rule, repair) in enumerate(repairs.repairs):
        before = repairs.at[index]
        touched = dict.fromkeys(prepared.before_repair(op.path, before) for op in repair.ops)
        path = prepared.before_repair(repair.path, before)
        rows.append(
            ReportRepair(rule, path, repair.message, handles.get(index, ""), tuple(touched))
        )
    return tuple(rows)
