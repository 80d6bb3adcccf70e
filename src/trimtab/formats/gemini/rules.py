"""The rules of Gemini generateContent, as data, and the scans and repairs that only it needs.

``turn_rules.py`` has the scan and repairs of calls and responses, ``engine/pairs.py`` matches them.
Sources: quoted error texts, Google's documentation, recorded requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable, Shape
from trimtab.formats.gemini import format as gemini
from trimtab.formats.gemini.turn_rules import (
    answer_calls,
    located_parts,
    remove_orphan_responses,
    scan_pairing,
)
from trimtab.formats.repair.content import (
    BEGIN,
    PLACEHOLDER,
    append_user_message,
    insert_first_user,
    make_arguments_object,
    remove_parts,
    scan_ends,
    scan_flaws,
    scan_unreadable,
    unreadable_row,
)
from trimtab.formats.repair.pairing import last_turn_start, path_of_part, turn_ranges
from trimtab.formats.repair.tool_names import GEMINI_NAME, respell_names, scan_tool_names
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, PathOp, Set
from trimtab.transcript.model import Facts, Message
from trimtab.transcript.transcript import Transcript

SIGNED = frozenset({"gemini-3"})
"""Dialects that demand thought signatures."""
NEWER = SIGNED | {"gemini-3-image"}
SENTINEL = "skip_thought_signature_validator"
"""The placeholder for a missing signature (Google's page on thought signatures)."""


# --- order, roles, shapes --------------------------------------------------------------------


def _order(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings call_order and calls_apart."""
    messages = transcript.messages
    for turn_range in turn_ranges(transcript):
        if turn_range.first and turn_range.end - turn_range.first == 1:
            continue
        bearing = [i for i in range(turn_range.first, turn_range.end) if messages[i].calls]
        if not bearing:
            continue
        # Cached content may end with the user's words.
        if turn_range.first == 0 and not transcript.facts.server_state:
            yield Finding("call_order", (*transcript.base, 0), "no user speaks before this call")
        for number in bearing[1:]:
            path = (*transcript.base, number)
            yield Finding("calls_apart", path, "calls of one turn in several contents")


def _merge_contents(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Contents of one turn of the model merged into the first that has a call."""
    base, messages = transcript.base, transcript.messages
    for finding in findings:
        number = finding.path[-1]
        assert isinstance(number, int)
        host = number - 1  # nothing but the model's stands between it and the call before
        while host and messages[host].role == messages[host - 1].role == "assistant":
            host -= 1
        parts = paths.get(tree, (*finding.path, "parts"))
        end = (*base, host, "parts", messages[host].width)
        ops: list[PathOp] = [Insert(end, part) for part in parts]
        done = "merged into the content before it"
        yield Repair(finding.path, done, (*ops, Delete(finding.path)))


def _begin(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A short user content before the call."""
    for finding in findings:
        message = gemini.text_message("user", BEGIN)
        yield Repair(
            finding.path, "a first user content was added", (Insert(finding.path, message),)
        )


def _roles(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    for number, message in enumerate(transcript.messages):
        if message.role == "other":
            yield Finding("invalid_role", (*transcript.base, number), "no such role")


def _respell_roles(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """``model`` for what other formats call the model, ``user`` for the rest."""
    for finding in findings:
        old = paths.get(tree, finding.path).get("role")
        new = "model" if old in ("assistant", "MODEL", "ai") else "user"
        yield Repair(finding.path, f"role {old!r} is {new!r}", (Set((*finding.path, "role"), new),))


def _fill(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """A short text as the only part."""
    for finding in findings:
        op = Set(finding.path, [gemini.text_part(PLACEHOLDER)])
        yield Repair(finding.path, "a content without parts was given a text", (op,))


def _open_responses(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """A response that is no object is kept inside one."""
    for finding in findings:
        key = gemini.data_key(paths.get(tree, finding.path))
        assert key is not None
        path = (*finding.path, key, "response")
        op = Set(path, {"result": paths.get(tree, path)})
        yield Repair(path, "a response put into an object", (op,))


# --- thought signatures ----------------------------------------------------------------------


def _begins_turn(message: Message) -> bool:
    """Whether a message begins a turn: text of the user without responses.  Text beside a response
    may not count for the provider, and a turn taken too long is harmless, one too short is
    refused."""
    return (
        message.role == "user"
        and not message.results
        and any(block.kind == "text" and block.text for block in message.blocks)
    )


def _unsigned(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """Findings for steps of the current turn whose first call has no signature."""
    if transcript.facts.dialect not in SIGNED:
        return
    messages = transcript.messages
    start = len(messages) - 1
    while start > 0 and not _begins_turn(messages[start]):
        start -= 1
    for turn_range in turn_ranges(transcript, last_turn_start(transcript, start + 1)):
        calls = (
            located_parts(messages, turn_range.first, turn_range.end, "call")
            if turn_range.end > start
            else ()
        )
        if calls and calls[0].part.flaw == "unsigned":
            detail = f"function call {calls[0].part.tool} has no signature"
            path = path_of_part(transcript, calls[0])
            yield Finding("signature_missing", path, detail, calls[0])


def _sign(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """The sentinel that Google documents, in place of the signature."""
    for finding in findings:
        snake = "function_call" in paths.get(tree, finding.path)
        key = "thought_signature" if snake else "thoughtSignature"
        op = Set((*finding.path, key), SENTINEL)
        yield Repair(finding.path, "a lost thought signature was made up for", (op,))


def _may_drop_thought(transcript: Transcript, number: int) -> bool:
    """Whether thoughts may be dropped: those of earlier turns; in the current turn only if no
    signature is required."""
    if transcript.facts.dialect not in SIGNED:
        return True
    return any(_begins_turn(message) for message in transcript.messages[number + 1 :])


def _refuses_model_last(facts: Facts) -> bool:
    return facts.dialect in NEWER


_PAIRS = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)
_AFTER_CALL = (
    "Please ensure that function response turn comes immediately after a function call turn."
)

NAME_FORMAT = Rule(
    "name_format",
    "GenerateContentRequest.tools[0].function_declarations[27].name: Invalid function "
    "name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.) or dashes (-), with a maximum length of 64.",
    "google-gemini/gemini-cli issues #2966, #7869; kaitranntt/ccs issue #25 (colons too)",
    respell_names,
)

TABLE = RuleTable(
    rows=(
        unreadable_row(
            "'utf-8' codec can't encode character '\\ud800': surrogates not allowed",
            "NousResearch/hermes-agent PR #102771: no client can write it as UTF-8",
        ),
        Rule(
            "no_messages",
            "Unable to submit request because at least one contents field is required.",
            "Calcium-Ion/new-api-horizon issue #24",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "invalid_role",
            "Please use a valid role: user, model.",
            "Gemini API reference: role is 'user' or 'model' ('function' is taken too)",
            _respell_roles,
            sure="certain",
        ),
        Rule(
            "no_parts",
            "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
            "egoist/chatwise-releases issue #250; in Vertex's words: router-for-me/CLIProxyAPI "
            "issue #176",
            _fill,
            sure="certain",
        ),
        Rule(
            "empty_part",
            "* contents[2].parts[1].data: required oneof field 'data' must have one initialized "
            "field",
            "54xzh/FLIT issue #69",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "empty_beside_response",
            "* contents[2].parts[1].data: required oneof field 'data' must have one initialized "
            "field",
            "54xzh/FLIT issue #69 (an empty text as the only part was accepted)",
            remove_parts,
            sure="certain",
        ),
        NAME_FORMAT,
        Rule(
            "arguments_not_object",
            "Invalid value at 'contents[1].parts[0].function_call.args' "
            "(type.googleapis.com/google.protobuf.Struct)",
            "Gemini API reference: args is a Struct",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "response_not_object",
            'Invalid JSON payload received. Unknown name "response" at '
            "'contents[2].parts[0].function_response': Proto field is not repeating, cannot start "
            "list.",
            "vercel/ai PR #3589",
            _open_responses,
            sure="certain",
        ),
        Rule(
            "call_unanswered",
            _PAIRS,
            "microsoft/vscode issue #299295; google-gemini/gemini-cli issue #4217",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "result_late",
            _PAIRS,
            "parallel responses in contents of their own: cloudwego/eino-ext issue #571, "
            "docker/docker-agent PR #2959, crewAIInc/crewAI PR #4693",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "extra_result",
            _PAIRS,
            "microsoft/vscode issue #299295: also said of responses too many",
            remove_orphan_responses,
            sure="certain",
        ),
        Rule(
            "orphan_result",
            _AFTER_CALL,
            "lobehub/lobehub issue #7298; langchain-ai/langchain issue #27799",
            remove_orphan_responses,
            sure="certain",
        ),
        Rule(
            "call_order",
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn.",
            "continuedev/continue issue #11164; google-gemini/gemini-cli issue #11814",
            _begin,
            sure="certain",
        ),
        Rule(
            "signature_missing",
            "Function call is missing a thought_signature in functionCall parts. This is required "
            "for tools to work correctly, and missing thought_signature may lead to degraded "
            "model performance.",
            "lbjlaq/Antigravity-Manager issue #3202; in Vertex's words: GewoonJaap/gemini-cli-"
            "openai issue #156",
            _sign,
            sure="certain",
            dialects=SIGNED,
        ),
        Rule(
            "last_not_user",
            "Requests ending with a model turn are not supported",
            "decolua/9router PR #3055; crewAIInc/crewAI PR #6973",
            append_user_message,
            sure="certain",
            dialects=NEWER,
        ),
        Rule(
            "mixed_response",
            "a user turn with function responses should hold nothing else",
            "anomalyco/opencode PR #43479; livekit/agents PR #3509 (no refusal is quoted)",
            remove_parts,
            sure="inferred",
        ),
        Rule(
            "calls_apart",
            "parallel calls belong in one content: only the first of them carries a signature",
            "pipecat-ai/pipecat PR #3420 (neighbouring contents of one role were accepted)",
            _merge_contents,
        ),
    ),
    scans=(
        scan_unreadable,
        scan_tool_names(GEMINI_NAME),
        _roles,
        scan_flaws(
            {
                "no-parts": "no_parts",
                "no-data": "empty_part",
                "blank-beside": "empty_beside_response",
                "arguments": "arguments_not_object",
                "response": "response_not_object",
            }
        ),
        scan_pairing,
        _order,
        _unsigned,
        scan_ends(first_user=False, last_user=_refuses_model_last),
    ),
    may_drop_reasoning=_may_drop_thought,
    limits={"request_bytes": 20 * 1024 * 1024},
)

SHAPE = Shape(
    "Gemini API reference: Content",
    content_error="Invalid value at '{place}' (type.googleapis.com/"
    "google.ai.generativelanguage.v1beta.Part), {value}",
    role_optional=True,
    texts=False,
)
