"""Faults as somebody might write them, to be planted one by one in the library's rules and edits.

Each is a function that patches the library for one format through pytest's ``MonkeyPatch``, with
the mutations under which it shows.  Knows the library from the inside; judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from soak.story import SIX
from trimtab.formats import FORMATS, rules
from trimtab.formats.anthropic import rules as anthropic
from trimtab.formats.bedrock import content_rules as bedrock_content
from trimtab.formats.engine.rule import Finding, Repair
from trimtab.formats.gemini import turn_rules as gemini_turns
from trimtab.formats.repair import content, pairing
from trimtab.jsontext.paths import Delete, Insert, Path, Set
from trimtab.planning import edits, operations, plan_state, reasoning_signatures
from trimtab.transcript.transcript import Transcript

Plant = Callable[[pytest.MonkeyPatch, str], None]


class Fault(NamedTuple):
    """A fault by name, where it can be planted, and the histories that shall catch it.

    ``draw``: how their windows are drawn, None: as always.
    """

    name: str
    plant: Plant
    formats: tuple[str, ...]
    mutations: tuple[tuple[str, ...], ...]
    draw: tuple[str, float] | None = None


# --- how faults are planted -----------------------------------------------------------------------


def _changed(patch: pytest.MonkeyPatch, format: str, **fields: Any) -> None:
    patch.setitem(FORMATS, format, replace(FORMATS[format], **fields))


def silent(*names: str) -> Plant:
    """The scans never report these rules, neither at the entrance nor at the exit."""

    def plant(patch: pytest.MonkeyPatch, format: str) -> None:
        def deaf(scan: Any) -> Any:
            return lambda transcript, open_tail: [
                found for found in scan(transcript, open_tail) if found.rule not in names
            ]

        table = FORMATS[format].rules
        scans = tuple(deaf(scan) for scan in table.scans)
        _changed(patch, format, rules=replace(table, scans=scans))

    return plant


Change = Callable[[Transcript, list[Repair]], list[Repair]]


def repairing(names: tuple[str, ...], change: Change) -> Plant:
    """The repairs of these rules come out changed."""

    def plant(patch: pytest.MonkeyPatch, format: str) -> None:
        def other(make_repairs: Any) -> Any:
            return lambda transcript, tree, found: change(
                transcript, list(make_repairs(transcript, tree, found))
            )

        table = FORMATS[format].rules
        rows = tuple(
            replace(row, make_repairs=other(row.make_repairs)) if row.name in names else row
            for row in table.rows
        )
        _changed(patch, format, rules=replace(table, rows=rows))

    return plant


def _without_last(transcript: Transcript, repairs: list[Repair]) -> list[Repair]:
    return repairs[:-1]


def _without_inserts(transcript: Transcript, repairs: list[Repair]) -> list[Repair]:
    return [
        repair._replace(ops=tuple(op for op in repair.ops if not isinstance(op, Insert)))
        for repair in repairs
    ]


def _without_deletes(transcript: Transcript, repairs: list[Repair]) -> list[Repair]:
    return [
        repair._replace(ops=tuple(op for op in repair.ops if not isinstance(op, Delete)))
        for repair in repairs
    ]


# --- faults that are more than a silent rule ------------------------------------------------------


def _one_side(patch: pytest.MonkeyPatch, format: str) -> None:
    """Ids are respelled in calls alone."""
    whole = pairing.rename_all

    def half(transcript: Any, new: Any) -> Any:
        calls = {
            (number, *part.id_path)
            for number, message in enumerate(transcript.messages)
            for part in message.calls
        }
        depth = len(transcript.base)
        return [op for op in whole(transcript, new) if op.path[depth:] in calls]

    patch.setattr(content, "rename_all", half)


def _calls_alone_are_dropped(patch: pytest.MonkeyPatch, format: str) -> None:
    """A dropped group leaves its results behind."""
    whole = operations._drop

    def half(transcript: Any, *rest: Any) -> Any:
        done = whole(transcript, *rest)
        bearing = {
            (*transcript.base, number)
            for number, message in enumerate(transcript.messages)
            if message.results and not message.calls
        }
        depth = len(transcript.base) + 1
        ops = tuple(
            op for op in done.ops if not (isinstance(op, Delete) and op.path[:depth] in bearing)
        )
        return done._replace(ops=ops)

    patch.setattr(operations, "_drop", half)


def _note_of_the_model(patch: pytest.MonkeyPatch, format: str) -> None:
    """A dropped run becomes a message of the model's, whoever speaks next."""
    for module in (edits, operations, plan_state, reasoning_signatures):
        patch.setattr(module, "note_host", lambda transcript, groups, dropped=None: None)
    patch.setattr(operations, "_stand_in", lambda transcript, groups: "assistant")
    _unchecked(patch, format)


def _unchecked(patch: pytest.MonkeyPatch, format: str) -> None:
    """Nothing is checked on the way out."""
    patch.setattr("trimtab.request.pipeline.broken_rules", lambda measured, after: ((), ()))


def _calls_dropped_unchecked(patch: pytest.MonkeyPatch, format: str) -> None:
    _calls_alone_are_dropped(patch, format)
    _unchecked(patch, format)


def _results_to_the_end(patch: pytest.MonkeyPatch, format: str) -> None:
    """A made-up result is put behind the last message."""

    def change(transcript: Transcript, repairs: list[Repair]) -> list[Repair]:
        end: Path = (*transcript.base, len(transcript.messages))
        return [
            repair._replace(
                ops=tuple(
                    replace(op, path=end)
                    if isinstance(op, Insert) and len(op.path) == len(end)
                    else op
                    for op in repair.ops
                )
            )
            for repair in repairs
        ]

    repairing(("call_unanswered", "result_late"), change)(patch, format)


def _one_mark_more(patch: pytest.MonkeyPatch, format: str) -> None:
    patch.setattr(anthropic, "MAX_MARKS", 5)
    patch.setattr(bedrock_content, "MAX_MARKS", 5)


def _nothing_binds(patch: pytest.MonkeyPatch, format: str) -> None:
    _changed(patch, format, binds_reasoning=lambda facts: False)


def _any_thought_may_go(patch: pytest.MonkeyPatch, format: str) -> None:
    patch.setattr(rules, "may_drop_reasoning", lambda transcript, number: number % 2 == 0)


def _thoughts_go_alone(patch: pytest.MonkeyPatch, format: str) -> None:
    """Reasoning goes, the ids that demand it stay."""
    _changed(patch, format, dependent_paths=lambda transcript, place: ())


def _always_begins(patch: pytest.MonkeyPatch, format: str) -> None:
    """A first user message is found missing where there is one."""

    def scan(transcript: Any, open_tail: bool) -> Iterator[Finding]:
        yield Finding("first_not_user", (*transcript.base, 0), "made up")

    table = FORMATS[format].rules
    _changed(patch, format, rules=replace(table, scans=(*table.scans, scan)))


def _valid_results_are_orphans(patch: pytest.MonkeyPatch, format: str) -> None:
    """The last result of many a message counts as an orphan."""

    def scan(transcript: Any, open_tail: bool) -> Iterator[Finding]:
        for number, message in enumerate(transcript.messages):
            if message.results and number % 4 < 2:
                spot = pairing.LocatedPart(number, message.results[-1])
                path = pairing.path_of_part(transcript, spot)
                yield Finding("orphan_result", path, "made up", spot)

    table = FORMATS[format].rules
    _changed(patch, format, rules=replace(table, scans=(*table.scans, scan)))


def _fresh_ids(patch: pytest.MonkeyPatch, format: str) -> None:
    """Equal call ids are told apart in calls alone, their results left as they were."""

    def change(transcript: Transcript, repairs: list[Repair]) -> list[Repair]:
        return [
            repair._replace(ops=repair.ops[::2] if _pairs(repair) else repair.ops)
            for repair in repairs
        ]

    def _pairs(repair: Repair) -> bool:
        return len(repair.ops) > 1 and all(isinstance(op, Set) for op in repair.ops)

    repairing(("duplicate_call",), change)(patch, format)


def _strays_stay(patch: pytest.MonkeyPatch, format: str) -> None:
    """Results further on are never pulled to their call: it is answered with a made-up one."""
    patch.setattr(pairing, "_stray_results", lambda transcript: {})
    patch.setattr(gemini_turns, "_stray_responses", lambda transcript: [])


# --- the list -------------------------------------------------------------------------------------

_PAIRED = ("openai-chat", "anthropic", "bedrock")
_FLOOR = ("minimum", 1.0)
_NEAR = ("minimum", 1.5)
_ROOMY = ("roomy", 1.0)

FAULTS = (
    Fault("orphans are never reported", silent("orphan_result", "extra_result"), SIX,
          (("orphaned",), ("dropped",))),
    Fault("unanswered calls are never reported", silent("call_unanswered"), SIX,
          (("interrupted",),)),
    Fault("second results are never reported", silent("duplicate_result", "extra_result"), SIX,
          (("duplicated",), ("duplicated", "merged"))),
    Fault("equal call ids are never reported", silent("duplicate_call"),
          (*_PAIRED, "openai-responses"), (("re-id'd",), ("duplicated",))),
    Fault("late results are never reported", silent("result_late"), ("anthropic", "gemini"),
          (("split",), ("swapped",), ("reordered",))),
    Fault("the last unanswered call is forgotten", repairing(("call_unanswered",), _without_last),
          SIX, (("interrupted",),)),
    Fault("calls are answered with nothing", repairing(("call_unanswered",), _without_inserts),
          SIX, (("interrupted",),)),
    Fault("what is taken out stays",
          repairing(("orphan_result", "duplicate_result", "extra_result"), _without_deletes),
          ("openai-chat", "openai-responses", "anthropic", "bedrock"),
          (("orphaned",), ("duplicated",))),
    # Responses takes an output anywhere behind its call: no fault there.
    Fault("made-up results stand at the end", _results_to_the_end,
          tuple(f for f in SIX if f != "openai-responses"), (("interrupted",),)),
    Fault("ids are respelled on one side", _one_side, ("anthropic", "bedrock", "openai-chat"),
          (("re-id'd",), ("re-id'd", "re-id'd")), _ROOMY),
    Fault("equal ids are told apart on one side", _fresh_ids, (*_PAIRED, "openai-responses"),
          (("re-id'd", "re-id'd", "re-id'd"), ("duplicated", "re-id'd", "merged")), _ROOMY),
    Fault("results are left where they strayed", _strays_stay, ("openai-chat", "anthropic"),
          (("swapped", "split"), ("reordered", "split")), _ROOMY),
    Fault("results that stand well are taken out", _valid_results_are_orphans, SIX,
          (("enlarged",),), _ROOMY),
    Fault("groups drop only the call", _calls_alone_are_dropped, SIX, (("enlarged",),), _FLOOR),
    Fault("groups drop only the call, unchecked", _calls_dropped_unchecked, SIX,
          (("enlarged",),), _NEAR),
    Fault("notes are the model's before its thinking", _note_of_the_model,
          ("anthropic", "bedrock"), ((), ("enlarged",)), _NEAR),
    Fault("roles need not alternate", silent("roles_alternate"), ("bedrock",),
          (("split",), ("dropped",))),
    Fault("blank texts are never reported",
          silent("empty_text", "empty_marked", "blank_text", "empty_beside_response"),
          ("anthropic", "bedrock", "gemini"), (("emptied",), ("emptied", "emptied"))),
    Fault("messages without content are never reported",
          silent("no_content", "no_parts", "null_content"),
          tuple(format for format in SIX if format != "gemini-interactions"),
          (("emptied", "emptied", "emptied"),)),
    Fault("a history may begin with the model", silent("first_not_user", "call_order"),
          ("anthropic", "bedrock", "gemini"), (("dropped", "dropped"), ("reordered",))),
    Fault("a history may end with the model", silent("last_not_user"),
          ("anthropic", "bedrock", "gemini"), (("dropped",), ("role-changed",))),
    Fault("five cache marks are let through", _one_mark_more, ("anthropic", "bedrock"), ((),)),
    Fault("unsigned thoughts are let through", silent("reasoning_unsigned"), ("bedrock",), ((),)),
    Fault("missing signatures are let through", silent("signature_missing"), ("gemini",), ((),)),
    Fault("tools need not be declared", silent("toolconfig_missing"), ("bedrock",), ((),)),
    Fault("arguments may be anything", silent("arguments_not_object"),
          ("anthropic", "bedrock", "gemini"), (("emptied", "emptied", "emptied"),)),
    Fault("ids may be spelled anyhow", silent("id_format", "id_too_long", "call_id_too_long"),
          ("openai-chat", "openai-responses", "anthropic", "bedrock"),
          (("re-id'd", "re-id'd"),)),
    Fault("items may stand twice", silent("duplicate_item"), ("openai-responses",),
          (("duplicated",),)),
    Fault("reasoning may stand alone", silent("reasoning_alone"), ("openai-responses",),
          (("dropped",), ("swapped",), ("interrupted",))),
    Fault("no model binds its thinking", _nothing_binds, ("anthropic",), ((), ("enlarged",)),
          _FLOOR),
    Fault("thoughts go without what demands them", _thoughts_go_alone, ("openai-responses",),
          ((), ("enlarged",)), _FLOOR),
    Fault("any other thought may go", _any_thought_may_go, ("anthropic",), ((),), _FLOOR),
    Fault("a first user message is always missing", _always_begins,
          ("anthropic", "bedrock"), ((),)),
)  # fmt: skip
