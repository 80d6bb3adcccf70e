"""The figures of an edit where it was made: its tokens, steps, tool and speaker.

A journal keeps them with the edit, so that its history needs no request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trimtab.planning.dropped_ranges import IntervalSet, folded_tokens
from trimtab.planning.edits import dropped_groups, groups_of, note_host
from trimtab.planning.operations import Applied
from trimtab.request.measured import MeasuredRequest
from trimtab.transcript.model import Edit, EditFigures
from trimtab.transcript.tokens import MESSAGE_TOKENS


def dropped_in(measured: MeasuredRequest, applied: tuple[Applied, ...]) -> IntervalSet:
    """The groups that these edits drop."""
    edits = [one.edit for one in applied]
    drops = any(edit.op == "drop" for edit in edits)
    return dropped_groups(measured.transcript, edits if drops else ())


def with_figures(
    measured: MeasuredRequest, applied: tuple[Applied, ...], new: Sequence[Edit]
) -> Iterator[Edit]:
    """The new edits; those that were applied with their figures."""
    of_edit, dropped = {one.edit: one for one in applied}, dropped_in(measured, applied)
    for edit in new:
        one = of_edit.get(edit)
        yield edit if one is None else replace(edit, figures=figures_of(measured, one, dropped))


def replaced_tokens(active: Sequence[Edit], new: Sequence[Edit]) -> Counter[str]:
    """Tokens that edits of earlier turns had saved and that ``new`` edits of the same blocks save
    in their place, by the kind of the earlier edit."""
    changed = {ref for edit in new if edit.op != "insert" for ref in edit.targets}
    tokens = Counter[str]()
    for edit in active:
        if edit.op != "insert" and edit.figures and not changed.isdisjoint(edit.targets):
            tokens[edit.kind] += edit.figures.tokens_before - edit.figures.tokens_after
    return tokens


def figures_of(measured: MeasuredRequest, applied: Applied, dropped: IntervalSet) -> EditFigures:
    """The figures of one edit; ``dropped``: all groups that are dropped with it."""
    edit, transcript = applied.edit, measured.transcript
    places, sizes = measured.repaired.places(edit), measured.sizes
    first = places[0] if places else None
    groups = (groups_of(transcript, edit) or ()) if edit.op in ("drop", "fold") else ()
    if edit.op == "fold":
        before, after = folded_tokens(transcript, sizes, edit)
    else:
        before, after = 0, sizes.counter(edit.text) if edit.text else 0
    if edit.op == "drop":
        before = sum(sizes.group(transcript, group) for group in groups)
        whole = note_host(transcript, groups, dropped) is None
        after += sizes.counter.scaled(MESSAGE_TOKENS) if whole else 0
    elif edit.op in ("replace", "remove"):
        before = sum(sizes.block(transcript, place) for place in places)
    if edit.payload:  # an image costs the same at any size
        after = before
    elif edit.op == "replace" and first is not None and first.block.label:
        after += sizes.counter(first.block.label)
    # What goes in whole groups goes with its calls, which name the tools of all results.
    tool = (lambda place: place.block.tool) if groups else transcript.tool
    tools, role = dict.fromkeys(filter(None, map(tool, places))), ""
    if first is not None:
        role = "head" if first.message < 0 else transcript.messages[first.message].role
    return EditFigures(before, after, len(groups), ", ".join(tools), role)
