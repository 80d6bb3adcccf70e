"""The rules of Gemini Interactions, as data, and the repairs that only it needs.

Few refusals of this API have been published.  What its models refuse through ``generateContent``
(calls and results in unequal numbers, a call that no user's words precede) is taken to be refused
here too; sources: quoted error texts, Google's documentation, google-genai's types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable, Shape
from trimtab.formats.gemini.rules import NAME_FORMAT
from trimtab.formats.gemini_interactions import format as gemini_interactions
from trimtab.formats.repair.content import (
    BEGIN,
    PLACEHOLDER,
    make_arguments_object,
    scan_flaws,
    scan_unreadable,
    unreadable_row,
)
from trimtab.formats.repair.orphan_results import remove_orphan_results
from trimtab.formats.repair.pairing import answer_calls, rename_calls, scan_pairing
from trimtab.formats.repair.tool_names import GEMINI_NAME, scan_tool_names
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Set
from trimtab.transcript.transcript import Transcript

_COUNTS = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)
_COUNTS_SOURCE = "microsoft/vscode issue #299295; google-gemini/gemini-cli issue #16132"


def _no_input(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    facts = transcript.facts
    if not (transcript.messages or facts.server_state or facts.extra.get("asks")):
        yield Finding("no_input", transcript.base, "there is nothing to answer")


def _begin(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A short step of the user as the whole input."""
    for finding in findings:
        step = gemini_interactions.text_message("user", BEGIN)
        yield Repair(finding.path, "a first user step was added", (Set(finding.path, [step]),))


def _shape(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A bare text becomes a step of the user; what is no step at all is taken out."""
    for finding in findings:
        value = paths.get(tree, finding.path)
        if isinstance(value, str) and value:
            step = gemini_interactions.text_message("user", value)
            yield Repair(finding.path, "a text made a step of the user", (Set(finding.path, step),))
        else:
            done = "something that is no step was taken out"
            yield Repair(finding.path, done, (Delete(finding.path),), (finding.path,))


def _fill(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A short text as the only content."""
    for finding in findings:
        number, _ = finding.data
        path = (*transcript.base, number, "content")
        op = Set(path, [gemini_interactions.text_part(PLACEHOLDER)])
        yield Repair(path, "a step without content was given a text", (op,))


def _say_nothing(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """An empty text as the result."""
    for finding in findings:
        path = (*finding.path, "result")
        yield Repair(path, "a missing result was made an empty text", (Set(path, ""),))


TABLE = RuleTable(
    rows=(
        unreadable_row(
            "'utf-8' codec can't encode character '\\ud800': surrogates not allowed",
            "NousResearch/hermes-agent PR #102771: no client can write it as UTF-8",
        ),
        Rule(
            "no_input",
            "Invalid request: 'input' is required.",
            "Gemini API reference, Interactions: input",
            _begin,
            sure="certain",
        ),
        Rule(
            "not_a_step",
            "Input should be a valid dictionary or object to extract fields from",
            "google-genai 3.4: InteractionsInput is a text, contents or steps",
            _shape,
            sure="certain",
        ),
        Rule(
            "no_content",
            "Please ensure that every step of the input has content.",
            "Gemini's refusal of contents without parts; google-genai 3.4: UserInputStep",
            _fill,
        ),
        NAME_FORMAT,
        Rule(
            "arguments_not_object",
            "Invalid value at 'input[1].arguments' (type.googleapis.com/google.protobuf.Struct)",
            "google-genai 3.4: FunctionCallStep.arguments is an object",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "result_missing",
            "Missing result in content of type function_result",
            "google-genai 3.4: FunctionResultStep.result is required; google/adk-python issue "
            "#4381 has the words for call_id",
            _say_nothing,
            sure="certain",
        ),
        Rule("duplicate_call", _COUNTS, _COUNTS_SOURCE, rename_calls, sure="certain"),
        Rule("call_unanswered", _COUNTS, _COUNTS_SOURCE, answer_calls, sure="certain"),
        Rule("result_late", _COUNTS, _COUNTS_SOURCE, answer_calls, sure="certain"),
        Rule(
            "orphan_result",
            "Missing call_id in content of type function_result",
            "google/adk-python issue #4381; for ids that name no call: " + _COUNTS_SOURCE,
            remove_orphan_results,
            sure="certain",
        ),
        Rule("duplicate_result", _COUNTS, _COUNTS_SOURCE, remove_orphan_results, sure="certain"),
    ),
    scans=(
        scan_unreadable,
        scan_tool_names(GEMINI_NAME),
        _no_input,
        scan_pairing,
        scan_flaws(
            {
                "step": "not_a_step",
                "no-content": "no_content",
                "arguments": "arguments_not_object",
                "result": "result_missing",
            }
        ),
    ),
    may_drop_reasoning=lambda transcript, number: False,
)
"""Thoughts go with their step or not at all: a client without server state gives back every one
as it came (Gemini API documentation, thought signatures)."""

SHAPE = Shape(
    "google-genai 3.6: InteractionsInput",
    ("user", "model"),
    "Please use a valid role: user, model.",
    content_error="{place}: Input should be a valid list, not {value}",
    role_optional=True,
    untyped=True,
)
