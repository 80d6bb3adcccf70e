"""Rows B3–B6, B9, B10, B13–B15 and B20: failed calls, what is protected, what is still running."""

from __future__ import annotations

import json
from typing import Any

import pytest
from redundancy_facts import (
    AT_ONCE,
    FILE,
    OTHER,
    kinds,
    of_calls,
    of_results,
    redundancy_of,
    squeezed,
    tool_calls,
)
from shapes import FORMATS, inputs, items_of, results
from tool_calls import FLAGGED, Step, conversation

import trimtab
from trimtab.planning.redundancy import FailedInputs, Redundancy
from trimtab.reducers import Config, levels
from trimtab.reducers.base import BlockFacts
from trimtab.transcript.model import Block
from trimtab.transcript.protected import compiled, matches, protected
from trimtab.transcript.tool_calls import CallReader, category, says_failed

WRONG = Step(
    "edit", {"file_path": "src/a.py", "old_string": FILE, "new_string": "x", "replace_all": False},
    "oldString not found in content", True,
)  # fmt: skip
TALK = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 300) for n in range(8)]


def failed(format: str, *turns: Any, **options: Any) -> list[str]:
    return [facts.failed for facts in of_calls(redundancy_of(format, *turns, **options))]


def blocks(found: Redundancy, calls: bool = False) -> list[tuple[tuple[int, int], str]]:
    """Where each block stands and its kind; ``calls``: of those alone that belong to a call."""
    places = (p for p in found.transcript.places() if p.block.call_id or not calls)
    return [((p.message, p.index), p.block.kind) for p in places]


# --- what is known of a call -------------------------------------------------------------------


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FORMATS)
def test_a_call_is_known_with_tool_input_error_turn_and_result(format: str) -> None:
    first, second = tool_calls(format, Step("read", {"path": "a"}, "text"), WRONG)
    assert (first.tool, first.arguments.signature) == ("read", 'read::{"path":"a"}')
    assert (first.turn, first.failed, first.texts) == (0, "", ("text",))
    assert (second.tool, second.turn, second.failed) == ("edit", 1, "validation")


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FORMATS)
def test_ids_that_differ_only_by_case_do_not_collide(format: str) -> None:
    one = Step("read", {"path": "a"}, "first", id="call_abc")
    two = Step("read", {"path": "b"}, "second", id="call_ABC")
    found = tool_calls(format, [one, two])
    assert [(call.arguments.files, call.texts) for call in found] == [
        (("a",), ("first",)),
        (("b",), ("second",)),
    ]


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FORMATS)
def test_an_id_used_again_in_a_later_turn_is_another_call(format: str) -> None:
    steps = [Step("read", {"path": f"{n}"}, f"text {n}", n == 1, id="call_1") for n in range(3)]
    found = tool_calls(format, *steps)
    assert [call.texts for call in found] == [("text 0",), ("text 1",), ("text 2",)]
    if format in FLAGGED:
        assert [bool(call.failed) for call in found] == [False, True, False]


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("arguments", ["{not json", "", "[1]", '{"a": 1', "null", '"text"'])
def test_arguments_that_are_no_json_object_are_known_as_their_text(
    format: str, arguments: str
) -> None:
    step = Step("read", arguments, "text", True)
    (found,) = tool_calls(format, step)
    assert found.arguments.signature == f"read::{arguments}"
    both = redundancy_of(format, step, WRONG, failed_inputs=AT_ONCE)
    assert bool(of_calls(both)[0].failed) == (format in FLAGGED)


@pytest.mark.row("B3")
@pytest.mark.parametrize("format", FLAGGED)
def test_what_is_known_is_refreshed_when_a_status_changes(format: str) -> None:
    reader = CallReader()
    step = Step("read", {"path": "a"}, "no such file")
    for error in (False, True, False):
        (found,) = tool_calls(format, step._replace(error=error), reader=reader)
        assert bool(found.failed) == error


@pytest.mark.row("B3")
def test_nothing_known_is_forgotten_however_many_calls_there_are() -> None:
    steps = [Step("read", {"path": f"{n}"}, f"text {n}") for n in range(1_200)]
    found = tool_calls("anthropic", *steps)
    assert [call.arguments.files for call in found] == [(f"{n}",) for n in range(1_200)]


@pytest.mark.row("B3")
def test_parallel_calls_without_ids_are_answered_in_the_order_of_their_names() -> None:
    read, grep = Step("read", {"path": "a"}, "A"), Step("grep", {"q": 1}, "G")
    body = conversation("gemini", [read, grep, read._replace(result="B")])
    for item in items_of(body):
        for part in item["parts"]:
            for key in ("functionCall", "functionResponse"):
                part.get(key, {}).pop("id", None)
    found = tool_calls("gemini", body)
    assert [call.texts for call in found] == [("A",), ("G",), ("B",)]


# --- error state -------------------------------------------------------------------------------


@pytest.mark.row("B4")
@pytest.mark.parametrize("format", FLAGGED)
def test_the_flag_of_the_format_marks_a_failed_call(format: str) -> None:
    good, bad = tool_calls(format, Step("run", {}, "done"), Step("run", {}, "went wrong", True))
    assert (good.failed, bad.failed) == ("", "other")
    alone = redundancy_of(format, Step("run", {}, "x", True), failed_inputs=AT_ONCE)
    assert of_calls(alone)[0].failed


@pytest.mark.row("B4")
@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_responses_item_fails_by_its_status(status: str) -> None:
    body = conversation("openai-responses", Step("run", {}, "half"))
    items_of(body)[2]["status"] = status
    assert [call.failed for call in tool_calls("openai-responses", body)] == ["other"]
    items_of(body)[2]["status"] = "completed"
    assert [call.failed for call in tool_calls("openai-responses", body)] == [""]


@pytest.mark.row("B4")
def test_a_chat_message_with_an_error_status_failed() -> None:
    body = conversation("openai-chat", Step("run", {}, "went wrong"), Step("run", {}, "fine"))
    body["messages"][2]["status"] = "error"
    body["messages"][4]["status"] = "success"
    assert [bool(call.failed) for call in tool_calls("openai-chat", body)] == [True, False]


@pytest.mark.row("B4")
def test_an_empty_error_beside_an_output_is_no_error() -> None:
    body = conversation("gemini", Step("run", {}, "fine"), Step("run", {}, "wrong"))
    for item, error in zip((2, 4), (None, "exit 1"), strict=True):
        part = body["contents"][item]["parts"][0]["functionResponse"]
        part["response"] = {"output": "text", "error": error}
    assert [bool(call.failed) for call in tool_calls("gemini", body)] == [False, True]


KNOWN = [
    ("edit", "oldString not found in content", "validation"),
    ("edit", "File /src/a.py not found", "file system"),
    ("edit", "Found multiple matches for oldString. Provide more lines.", "validation"),
    ("edit", "oldString and newString must be different", "validation"),
    ("write", "File /etc/passwd is not in the current working directory", "file system"),
    ("read", "File not found: /src/b.py\n\nDid you mean one of these?\n/src/a.py", "file system"),
    ("read", "Cannot read binary file: /bin/ls", "file system"),
    ("read", "The user has blocked you from reading .env files", "permission"),
    ("bash", "Command terminated after exceeding timeout 120000 ms", "state"),
    ("bash", "Command aborted by user", "state"),
    ("bash", "Tool execution aborted", "state"),
    ("grep", "pattern is required", "validation"),
    ("grep", "ripgrep failed: regex parse error", "parse"),
    ("apply_patch", "Failed to parse patch: no hunks", "parse"),
    ("apply_patch", "Failed to find context 'def f():' in a.py", "validation"),
    ("apply_patch", "No files were modified.", "state"),
    ("anything", "The user rejected permission to use this specific tool call.", "permission"),
]


@pytest.mark.row("B5")
@pytest.mark.parametrize(("tool", "text", "kind"), KNOWN)
def test_known_error_texts_of_a_tool_mark_a_failed_call(tool: str, text: str, kind: str) -> None:
    assert says_failed(tool, text)
    (found,) = tool_calls("openai-chat", Step(tool, {}, text))
    assert found.failed == kind


@pytest.mark.row("B5")
@pytest.mark.parametrize("format", FORMATS)
def test_known_texts_count_in_every_format(format: str) -> None:
    (found,) = tool_calls(format, Step("edit", {}, "oldString not found in content"))
    assert found.failed == "validation"


@pytest.mark.row("B5")
@pytest.mark.parametrize(("tool", "text", "_kind"), KNOWN[:-1])
def test_another_tools_text_or_a_quoted_one_is_no_error(tool: str, text: str, _kind: str) -> None:
    if not text.startswith(("Tool execution", "The user has blocked")):  # of any tool
        assert not says_failed("weather", text)
    assert not says_failed(tool, f"00001| {text}")
    assert not says_failed(tool, f"tests/test_edit.py:4: raise Error({text!r})")
    assert not says_failed(tool, f"{text}\n" + "2024-01-01 12:00:00 INFO request served\n" * 100)


@pytest.mark.row("B5")
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("./run.sh", "Command aborted by user\nINFO next job has begun\n"),
        ("./run.sh", "Tool execution aborted\n3 of 4 jobs done"),
        ("tail -n 1 app.log", "Command aborted by user"),
        (
            "grep -rh 'exceeding timeout' docs | head -1",
            "Command terminated after exceeding timeout",
        ),
        ("python -c 'print(\"Tool execution aborted\")'", "Tool execution aborted"),
    ],
)
def test_a_short_quotation_of_an_error_text_in_the_output_of_a_command_is_no_error(
    command: str, text: str
) -> None:
    (found,) = tool_calls("openai-chat", Step("bash", {"command": command}, text))
    assert found.failed == ""
    (flagged,) = tool_calls("anthropic", Step("bash", {"command": command}, text, True))
    assert flagged.failed, "a flag says so whatever the text"


@pytest.mark.row("B5")
def test_the_error_of_a_command_is_one_still() -> None:
    for text in ("Command aborted by user", "Command terminated after exceeding timeout 9 ms\n"):
        (found,) = tool_calls("openai-chat", Step("bash", {"command": "make deploy"}, text))
        assert found.failed == "state"


# --- categories --------------------------------------------------------------------------------


@pytest.mark.row("B6")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("EACCES: permission denied, open '/etc/shadow'", "permission"),
        ("The user doesn't want to proceed with this tool use.", "permission"),
        ("ENOENT: no such file or directory, stat 'x'", "file system"),
        ("File does not exist.", "file system"),
        ("Invalid arguments: 'limit' must be a number", "validation"),
        ("<tool_use_error>String to replace not found in file.", "validation"),
        ("connect ECONNREFUSED 127.0.0.1:80", "network"),
        ("getaddrinfo ENOTFOUND example.org", "network"),
        ("Failed to parse JSON at line 3", "parse"),
        ("File has been modified since read, read it again", "state"),
        ("doom loop: the same call three times", "state"),
        ("Request failed with status code: 500", "network"),
        ("Request failed: socket hang up", "network"),
        ("Request timed out", "network"),
        ("Error: timeout of 30000ms exceeded", "network"),
        ("Response too large (exceeds 5MB limit)", "network"),
        ("File content (300000 tokens) is too large", "file system"),
        ("Command terminated after exceeding timeout 120000 ms", "state"),
        ("Exit code 1\n3 tests of 40 went wrong", "other"),
        ("", "other"),
    ],
)
def test_an_error_has_a_category_and_what_is_not_known_is_other(text: str, kind: str) -> None:
    assert category(text) == kind


@pytest.mark.row("B6")
@pytest.mark.parametrize("format", FORMATS)
def test_the_category_is_shown_in_the_report(format: str) -> None:
    fitted = squeezed(format, conversation(format, WRONG, *TALK), 0.85)
    (edit,) = [edit for edit in fitted.report.edits if edit.kind == "failed-input"]
    assert edit.why == "the call failed (validation)"


@pytest.mark.row("B6")
def test_the_categories_are_counted_in_the_statistics_of_a_session() -> None:
    other = WRONG._replace(arguments={**WRONG.arguments, "file_path": "src/b.py"})
    refused = other._replace(result="EACCES: permission denied")
    body = conversation("anthropic", WRONG, other, refused, *TALK)
    session = trimtab.Session(
        window=int(trimtab.measure(body).total * 1.2),
        reserve=0,
        settings=trimtab.Settings(early=100, trigger=1.0, prices="none"),
    )
    session.fit(body)
    assert session.stats()["failed"] == {"validation": 2, "permission": 1}
    assert trimtab.Session(window=10_000).stats()["failed"] == {}


# --- age ---------------------------------------------------------------------------------------


def aged(format: str, after: int, **options: int) -> bool:
    steps = [Step("ask", {"n": n}, f"answer {n}") for n in range(after)]
    return bool(failed(format, WRONG, *steps, failed_inputs=FailedInputs(**options))[0])


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_inputs_go_only_after_five_calls_and_four_turns(format: str) -> None:
    assert [aged(format, after) for after in (0, 3, 4, 5, 6)] == [False, False, False, True, True]
    assert [aged(format, n, min_calls=0) for n in (3, 4)] == [False, True]


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_an_age_of_zero_means_that_none_is_too_recent(format: str) -> None:
    assert aged(format, 0, min_calls=0, min_turns=0)
    both = failed(format, WRONG, WRONG, failed_inputs=AT_ONCE)
    assert both == ["validation", "validation"]


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_with_fewer_calls_than_the_age_nothing_goes(format: str) -> None:
    steps = [WRONG] * 4
    assert not any(failed(format, *steps, failed_inputs=FailedInputs(min_calls=9, min_turns=0)))


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_age_counts_all_calls_also_parallel_and_protected_ones(format: str) -> None:
    parallel = [Step("todowrite", {"n": n}, "ok") for n in range(5)]
    options = FailedInputs(min_calls=5, min_turns=0, protected_tools=("todowrite",))
    assert failed(format, WRONG, parallel, failed_inputs=options)[0] == "validation"
    assert failed(format, WRONG, parallel)[0] == ""  # five calls, but one turn


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_the_input_goes_and_the_error_text_stays(format: str) -> None:
    body = conversation(format, WRONG, *TALK)
    fitted = squeezed(format, body, 0.85)
    assert results(format, fitted.request)[0] == "oldString not found in content"
    assert FILE not in json.dumps(inputs(format, fitted.request)[0])
    off = squeezed(format, body, 0.85, failed_inputs=FailedInputs(enabled=False))
    assert "failed-input" not in kinds(off)


# --- what is shown -----------------------------------------------------------------------------


@pytest.mark.row("B10")
@pytest.mark.parametrize("format", FORMATS)
def test_keys_and_types_stay_and_arguments_stay_an_object_or_its_text(format: str) -> None:
    body = conversation(format, WRONG, *TALK)
    fitted = squeezed(format, body, 0.85)
    shown = inputs(format, fitted.request)[0]
    assert type(shown) is type(inputs(format, body)[0])
    shown = json.loads(shown) if isinstance(shown, str) else shown
    assert shown == {
        "file_path": "src/a.py",
        "old_string": f"[input of a failed call, {len(FILE):,} chars, left out]",
        "new_string": "x",
        "replace_all": False,
    }
    assert trimtab.check(fitted.request, format=format) == ()
    assert json.loads(fitted.recall(fitted.report.edits[0].handle))["old_string"] == FILE


def offered(text: str, spelling: str = "json-string", **more: Any) -> list[str]:
    config = Config(count=len, facts=BlockFacts(failed="validation"))
    block = Block("call", ("a",), ("a",), text, spelling=spelling, **more)  # type: ignore[arg-type]
    return [offer.text for offer in levels(block, config) if offer.kind == "failed-input"]


@pytest.mark.row("B10")
def test_nested_values_lists_and_numbers_keep_their_places() -> None:
    one, two = "a" * 90, "b" * 90
    given = f'{{"edits": [{{"old": "{one}", "n": 1.50, "ok": null}}, "{two}"], "n": 1e400}}'
    (text,) = offered(given)
    note = "[input of a failed call, 90 chars, left out]"
    assert text == f'{{"edits":[{{"old":"{note}","n":1.50,"ok":null}},"{note}"],"n":1e400}}'


@pytest.mark.row("B10")
@pytest.mark.parametrize(
    "arguments", ['{"a": "short"}', "{}", "[1]", "not json", '{"a": [1, 2, 3]}', "null", ""]
)
def test_what_has_no_long_value_or_is_no_object_is_left(arguments: str) -> None:
    assert offered(arguments) == []


@pytest.mark.row("B10")
def test_free_text_input_gives_way_to_a_note() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n" + "-x\n+y\n" * 50
    (text,) = offered(patch, "string")
    assert text == f"[input of a failed call, {len(patch)} chars, left out]"


@pytest.mark.row("B10")
def test_a_note_is_not_replaced_by_a_note() -> None:
    (text,) = offered('{"old": "%s"}' % ("a" * 500))
    assert offered(text) == []


@pytest.mark.row("B10")
def test_sealed_inputs_stay_as_they_are() -> None:
    assert offered('{"old": "%s"}' % ("a" * 500), sealed=True) == []


# --- what is protected -------------------------------------------------------------------------


@pytest.mark.row("B13")
@pytest.mark.parametrize(
    ("glob", "hits"),
    [("edit", True), ("EDIT", True), ("ed*", True), ("e??t", True), ("*", True), ("edi", False),
     ("e?t", False), ("[de]dit", True), ("", False)],
)  # fmt: skip
def test_protected_tools_are_globs_whatever_their_case(glob: str, hits: bool) -> None:
    assert matches(["Edit"], (glob,)) == matches(["Edit"], glob) == hits
    options = FailedInputs(min_calls=0, min_turns=0, protected_tools=(glob,))
    assert failed("anthropic", WRONG, failed_inputs=options) == ["" if hits else "validation"]


@pytest.mark.row("B13")
@pytest.mark.parametrize(
    "tool",
    ["task", "todowrite", "todoread", "prune", "batch", "write", "edit", "skill", "compress",
     "plan_enter", "plan_exit"],
)  # fmt: skip
@pytest.mark.parametrize("format", FORMATS)
def test_a_protected_tool_keeps_input_and_result(format: str, tool: str) -> None:
    steps = [WRONG._replace(tool=tool), Step(tool, {"a": 1}, OTHER), *TALK[:4],
             Step(tool, {"a": 1}, OTHER), *TALK[4:]]  # fmt: skip
    body = conversation(format, *steps)
    fitted = squeezed(format, body, 0.6, protected_tools=[tool.upper()])
    assert tool not in {edit.tool for edit in fitted.report.edits}
    shown, given = inputs(format, fitted.request), inputs(format, body)
    assert all(value in shown for value in (given[0], given[1], given[6]))
    assert results(format, fitted.request).count(OTHER) == 2


@pytest.mark.row("B14")
@pytest.mark.parametrize(
    ("glob", "path", "hits"),
    [
        ("*.env", "conf/.env", True),
        ("*.env", "conf/x.env.txt", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/very/deep/a.py", True),
        ("**/secrets/**", "home/me/secrets/k/key.pem", True),
        ("**/secrets/**", "home/me/mysecrets/key.pem", False),
        ("**/.env", ".env", True),
        ("?.txt", "a.txt", True),
        ("?.txt", "ab.txt", False),
        ("config/**", "config/a/b", True),
        ("/etc/*", "/etc/passwd", True),
        ("/etc/*", "/home/etc/passwd", False),
        ("C:\\\\work\\\\*.py", "C:/work/a.py", True),
        ("src\\\\*.py", "src/a.py", True),
        ("a.b", "axb", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[", "[", True),
    ],
)
def test_path_globs(glob: str, path: str, hits: bool) -> None:
    (pattern,) = compiled((glob.replace("\\\\", "\\"),))
    assert bool(pattern.fullmatch(path)) == hits


@pytest.mark.row("B14")
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "conf/.env"},
        {"file_path": "/work/conf/.env"},
        {"filePath": "conf\\.env"},
        {"absolute_path": "C:\\work\\conf\\.env"},
        {"notebook-path": "./conf/x/../.env"},
        {"paths": ["a.py", "conf/.env"]},
        {"edits": [{"file": "a.py"}, {"file": "conf/.env"}]},
        {"patch": "*** Begin Patch\n*** Update File: conf/.env\n@@\n-A=1\n+A=2\n*** End Patch"},
        {"input": "*** Begin Patch\n*** Update File: a.py\n*** Move to: conf/.env\n"},
        {"diff": "--- a/conf/.env\n+++ b/conf/.env\n@@ -1 +1 @@\n-A=1\n+A=2\n"},
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_call_that_names_a_protected_file_keeps_input_and_result(
    format: str, arguments: dict[str, Any]
) -> None:
    found = redundancy_of(
        format, Step("any", arguments, OTHER), Step("any", {"path": "b.py"}, FILE)
    )
    keep = protected(found.transcript, (), ("**/.env",))
    assert [at in keep for at, _ in blocks(found, calls=True)] == [True, True, False, False]


@pytest.mark.row("B14")
def test_a_patch_given_as_free_text_names_its_files() -> None:
    body = conversation("openai-responses", Step("apply_patch", {}, "ok"))
    items = items_of(body)
    items[1] = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch",
                "input": "*** Begin Patch\n*** Update File: conf/.env\n@@\n"}  # fmt: skip
    items[2] = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    found = redundancy_of("openai-responses", body)
    keep = protected(found.transcript, (), ("*.env",))
    assert [at in keep for at, _ in blocks(found, calls=True)] == [True] * 2


# --- turns -------------------------------------------------------------------------------------


@pytest.mark.row("B15")
@pytest.mark.parametrize("format", FORMATS)
def test_the_newest_turns_can_be_protected_a_turn_is_one_step_of_the_model(format: str) -> None:
    steps = [Step("run", {"n": n}, f"{n} " + OTHER) for n in range(8)]
    body = conversation(format, *steps[:7], steps[7:])
    off = squeezed(format, body, 0.3)
    on = squeezed(format, body, 0.3, protected_turns=4)
    found = results(format, on.request)
    assert found[-4:] == results(format, body)[-4:]
    assert results(format, off.request)[-4:] != results(format, body)[-4:]


@pytest.mark.row("B15")
@pytest.mark.parametrize("format", FORMATS)
def test_parallel_calls_are_one_turn_and_users_words_are_none(format: str) -> None:
    parallel = [Step("run", {"n": n}, f"{n} " + OTHER) for n in range(3)]
    found = redundancy_of(format, Step("run", {}, FILE), parallel)
    keep = protected(found.transcript, (), (), 1)
    kept = [at in keep for at, kind in blocks(found) if kind == "result"]
    assert kept == [False, True, True, True]
    assert [call.turn for call in found.calls.calls] == [0, 1, 1, 1]


# --- what is still running ---------------------------------------------------------------------


def running(format: str, *steps: Any) -> dict[str, Any]:
    """The conversation while its last call is being run."""
    body = conversation(format, *steps)
    del items_of(body)[-1 if format == "bedrock" else -2 :]
    return body


@pytest.mark.row("B20")
@pytest.mark.parametrize("format", FORMATS)
def test_a_call_that_is_still_running_is_not_touched_and_displaces_nothing(format: str) -> None:
    read = Step("read", {"path": "a", "note": "n" * 4_000}, FILE)
    body = running(format, read, *TALK, read)
    found = redundancy_of(format, body)
    assert of_results(found)[0].duplicate == of_results(found)[0].superseded == ""
    fitted = squeezed(format, body, 0.2, open_tail=True)
    assert inputs(format, fitted.request)[-1] == inputs(format, body)[-1]
    assert trimtab.check(fitted.request, format=format, open_tail=True) == ()
