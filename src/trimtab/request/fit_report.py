"""The report of a fit, made from its result on first use."""

from __future__ import annotations

from dataclasses import asdict, replace

from trimtab.amounts import many
from trimtab.journal.history import row_of
from trimtab.planning.dropped_ranges import IntervalSet
from trimtab.planning.operations import Applied
from trimtab.report import EditLoss, Report, ReportEdit, ReportRepair
from trimtab.request.applied import taken_handle
from trimtab.request.edit_figures import dropped_in, figures_of
from trimtab.request.limits import EffectiveLimits
from trimtab.request.measured import MeasuredRequest, calls_since_cut
from trimtab.request.minimum import minimum
from trimtab.request.pipeline import AS_RECEIVED, FitResult
from trimtab.request.planned import is_dead_weight_due, pays_above, reduce
from trimtab.settings import NO_WINDOW

EXPECTED = "this request is expected to be refused: no step made it smaller; report the steps above"
"""Told where the ladder of fallbacks ends above a limit."""


def report_of(result: FitResult, failures: int, learned: tuple[int, int] | None = None) -> Report:
    """The report of one result; ``failures``: how often the caller's counter had failed by then;
    ``learned``: the limit that a refusal taught, as ``FittedFacts.learned``."""
    measured = result.measured
    counter = measured.sizes.counter
    warnings = list(dict.fromkeys(result.warnings))
    if failures:
        times = f"failed {failures} times ({counter.problem})"
        warnings.append(f"the given counter {times}; the default counted")
    if result.fell_back:
        warnings.append(f"fell back to: {result.step}")
    if result.is_refusal_expected:
        warnings.append(EXPECTED)
    if result.answers is not None:
        warnings += result.answers.warnings()
    if tools := measured.tools_advice():
        warnings.append(tools)
    limits = dict(measured.limits.as_dict(result.target))
    if learned is not None:
        room, window = learned
        limits |= {"window": window or room, "capacity": min(room, measured.limits.bounds.capacity)}
    return Report(
        reason=_reason(result, _capacity(measured, learned)),
        format=measured.transcript.format.name,
        format_reason=measured.received.format_reason,
        counter=counter.name,
        factor=counter.factor,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        limits=limits,
        edits=_edits(result),
        repairs=_repairs(measured),
        warnings=tuple(warnings),
        summaries=result.answers.as_dict() if result.answers else {},
        window_of="" if learned else measured.limits.window_of,
        money={**result.cost.as_dict(), "told": str(result.cost)} if result.cost else {},
        calibration=_calibration(measured.limits, is_learned=learned is not None),
        _losses=lambda: _losses(result),
        _minimum=lambda: minimum(measured),
        _bytes=lambda: (measured.received.body.body_bytes, result.sent.body_bytes),
    )


def _calibration(limits: EffectiveLimits, *, is_learned: bool) -> dict[str, float]:
    if limits.factors is None:
        return {}
    room = 0 if is_learned else max(limits.given - limits.reserve, 0)
    return {**asdict(limits.factors), "room": room}


def _edits(result: FitResult) -> tuple[ReportEdit, ...]:
    """One row for each edit."""
    measured, fresh = result.measured, {edit.handle for edit in result.new}
    dropped = dropped_in(measured, result.applied)
    rows = (_edit(measured, applied, dropped) for applied in result.applied)
    return tuple(replace(row, new=True) if row.handle in fresh else row for row in rows)


def _losses(result: FitResult) -> tuple[EditLoss, ...]:
    """What each new edit removed that occurs nowhere else in the request sent."""
    measured, fresh = result.measured, {edit.handle for edit in result.new}
    read, transcript = measured.inputs.cache.lines, measured.transcript
    sent = measured.inputs.cache.read_changed(result.sent, measured.repaired.body, transcript)
    kept = [read(place.block) for place in sent.places()]
    names = set[str]().union(*(lines.names for lines in kept))
    rows = {line.strip() for lines in kept for line in lines}
    losses = []
    for applied in result.applied:
        edit = applied.edit
        if edit.handle not in fresh or not edit.targets:
            continue
        gone = [read(place.block) for place in measured.repaired.places(edit)]
        lines = {line.strip() for one in gone for line in one} - rows - {""}
        own = dict.fromkeys(name for one in gone for name in one.names)
        losses.append(EditLoss(
            edit.handle, measured.repaired.before_repair(applied.paths[0]), edit.kind, edit.why,
            len(lines), tuple(name for name in own if name not in names),
        ))  # fmt: skip
    return tuple(losses)


def _capacity(measured: MeasuredRequest, learned: tuple[int, int] | None) -> str:
    """The most tokens that the prompt may have, and where the number is from."""
    limits, most = measured.limits, measured.limits.bounds.capacity
    less = f" less {limits.reserve:,} for output" if limits.reserve else ""
    if learned is not None:
        room, window = learned
        source = f"a refusal named {window:,}{less}" if window else "learned from refusals"
        return f"{min(room, most):,} ({source})"
    if limits.given or not less:  # where it is scaled, the line on counts explains it
        return f"{most:,}"
    return f"{most:,} ({limits.window:,}{less})"


def _reason(result: FitResult, capacity: str) -> str:
    """One line: why the request was changed, or why not."""
    measured, limits = result.measured, result.measured.limits
    before, after = result.tokens_before, result.tokens_after
    share = f"{100 * limits.trigger:.0f} %"
    if not result.applied:
        repaired = f", {many(len(_repairs(measured)), 'repair')}" if measured.repaired.made else ""
        if result.step == AS_RECEIVED:
            return f"{before:,} of {capacity} tokens: sent unchanged, it could not be reduced"
        if before > limits.bounds.trigger:
            return (
                f"{before:,} tokens fit into {capacity}: above the trigger of {share}, but a cut "
                f"now would lose much{repaired}"
            )
        if limits.window >= NO_WINDOW:
            return f"{before:,} tokens, no window given: nothing was cut{repaired}"
        return (
            f"{before:,} tokens, room for {capacity}: below the trigger of {share}, nothing was "
            f"cut{repaired}"
        )
    if not result.new and measured.inputs.is_preview:
        return f"{after:,} of {capacity} tokens are sent: a cut made now would take nothing more"
    if not result.new:
        return (
            f"{before:,} tokens arrived, {after:,} of {capacity} are sent: the edits of earlier "
            "turns apply, and nothing new was cut"
        )
    if limits.cold and before <= measured.limits.bounds.capacity:
        idle = measured.idle_seconds or 0
        cause = f"{before:,} of {capacity} tokens, and idle for {idle:,.0f} s: the cache is cold"
    elif limits.cleared:
        cause = f"{before:,} tokens arrived; the client emptied an old result: the cache is lost"
    elif before > limits.bounds.capacity:
        cause = f"{before:,} tokens do not fit into {capacity}"
    elif before > limits.bounds.trigger:
        cause = f"{before:,} of {capacity} tokens is above the trigger of {share}"
    else:
        of = "" if limits.window >= NO_WINDOW else f" of {capacity}"
        cause = f"{before:,}{of} tokens would fit, but {_why_below(measured, before)}"
        return f"{cause}: reduced to {after:,}"
    hint = ". trigger=1.0 cuts only when it must" if before <= limits.bounds.capacity else ""
    room = ""
    if result.target is not None and after <= result.target:
        room = f". Target: {result.target:,}, so that the next turns fit too"
    return f"{cause}: reduced to {after:,}{room}{hint}"


def _why_below(measured: MeasuredRequest, tokens: int) -> str:
    """Why the request was reduced although it is below the trigger."""
    if measured.too_many_images or measured.too_large_image or measured.too_long_result:
        return "bytes, chars or images do not"
    inputs = reduce(measured)
    if is_dead_weight_due(measured, inputs):
        return "dead weight among them pays for the cache it breaks"
    if measured.inputs.is_preview:
        return "this is what a cut would do now"
    if goal := pays_above(measured, inputs, tokens):
        return (
            f"{calls_since_cut(measured)} calls without a cut pay for the cache that one down to "
            f"{goal:,} breaks"
        )
    return "bytes, chars or images do not"


def _edit(measured: MeasuredRequest, applied: Applied, dropped: IntervalSet) -> ReportEdit:
    edit, paths_sent = applied.edit, applied.paths
    if measured.repaired.made is not None:
        paths_sent = tuple(measured.repaired.before_repair(path) for path in paths_sent)
    texts = (edit.text, edit.model_text, edit.user_text, edit.arguments)
    row = row_of(replace(edit, figures=figures_of(measured, applied, dropped)))
    return replace(
        row, path=paths_sent[0], paths=paths_sent, chars_after=sum(map(len, texts)),
        chars_before=sum(len(place.block.text) for place in measured.repaired.places(edit)),
    )  # fmt: skip


def _repairs(measured: MeasuredRequest) -> tuple[ReportRepair, ...]:
    if measured.repaired.made is None:
        return ()
    repairs, before_repair = measured.repaired.made, measured.repaired.before_repair
    key = measured.inputs.handle_key
    handles: dict[int, list[str]] = {}
    for index, _, value in repairs.taken:
        handles.setdefault(index, []).append(taken_handle(value, key))
    rows = []
    for index, (rule, repair) in enumerate(repairs.repairs):
        before = repairs.at[index]
        touched = dict.fromkeys(before_repair(op.path, before) for op in repair.ops)
        path = before_repair(repair.path, before)
        taken = tuple(dict.fromkeys(handles.get(index, ())))  # equal values have one handle
        last = taken[-1] if taken else ""
        rows.append(ReportRepair(rule, path, repair.message, last, tuple(touched), taken))
    return tuple(rows)
