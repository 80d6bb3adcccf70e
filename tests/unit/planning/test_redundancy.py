"""Rows B8, B11, B17 and B21: what came again later gives way, in every format."""

from __future__ import annotations

import cProfile
import json
import pstats
from typing import Any

import pytest
from redundancy_facts import FILE, OTHER, kinds, of_calls, of_results, redundancy_of, squeezed
from shapes import FORMATS, inputs, results
from tool_calls import FLAGGED, Step, conversation

import trimtab
from trimtab.planning.redundancy import Duplicates, Redundancy
from trimtab.transcript.call_arguments import read_call

TALK, MORE = (
    [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 400) for n in numbers]
    for numbers in (range(4), range(4, 8))
)


def read(path: str = "src/a.py", text: str = FILE, error: bool = False, **more: Any) -> Step:
    return Step("read", {"file_path": path, **more}, text, error)


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_the_older_of_two_equal_results_is_a_duplicate_the_newest_stays(format: str) -> None:
    same = Step("get_page", {"url": "x", "page": 1}, FILE)
    found = of_results(redundancy_of(format, same, Step("ask", {}, "no"), same, same))
    assert [facts.duplicate for facts in found] == ["call", "", "call", ""]


@pytest.mark.row("B8")
def test_a_signature_drops_nulls_and_sorts_keys_at_every_depth() -> None:
    one = read_call("t", '{"b": null, "a": {"z": [1, {"y": null, "x": 2}], "c": "é"}}')
    two = read_call("t", '{"a": {"c": "\\u00e9", "z": [1, {"x": 2}]}}')
    assert one.signature == two.signature == 't::{"a":{"c":"é","z":[1,{"x":2}]}}'
    assert read_call("u", '{"a": 1}').signature != read_call("t", '{"a": 1}').signature
    assert read_call("t", '{"a": [1, 2]}').signature != read_call("t", '{"a": [2, 1]}').signature
    assert read_call("t", "not json").signature == "t::not json"


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_arguments_equal_but_for_nulls_and_order_are_the_same_call(format: str) -> None:
    one = Step("run", {"a": 1, "b": {"c": None, "d": 2}}, FILE)
    two = Step("run", {"b": {"d": 2}, "a": 1, "e": None}, FILE)
    assert [f.duplicate for f in of_results(redundancy_of(format, one, two))] == ["call", ""]


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_the_only_call_of_its_kind_is_no_duplicate(format: str) -> None:
    found = of_results(redundancy_of(format, read(), Step("run", {}, OTHER)))
    assert all(not facts.duplicate and not facts.superseded for facts in found)


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FLAGGED)
def test_a_failed_repeat_never_displaces_a_good_result(format: str) -> None:
    bad = read(text="File not found: src/a.py", error=True)
    found = of_results(redundancy_of(format, read(), bad))
    assert (found[0].duplicate, found[0].superseded) == ("", "")
    again = of_results(redundancy_of(format, read(), read(), bad))
    assert [facts.duplicate for facts in again] == ["call", "", ""]
    for text in (FILE, FILE + "\nError: the disk is gone", f"Partial result:\n{FILE}"):
        found = of_results(redundancy_of(format, read(), read(text=text, error=True)))
        assert (found[0].duplicate, found[0].superseded) == ("", ""), text[-40:]


@pytest.mark.row("B8")
def test_a_failed_repeat_told_by_its_text_never_displaces_a_good_result() -> None:
    bad = read(text="File not found: src/a.py")
    found = of_results(redundancy_of("openai-chat", read(), bad))
    assert (found[0].duplicate, found[0].superseded) == ("", "")


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_side_effecting_tools_are_duplicates_only_where_results_are_equal(format: str) -> None:
    changed = FILE.replace("function_3(", "function_three(")
    one, two = Step("deploy", {"to": "a"}, FILE), Step("deploy", {"to": "a"}, changed)
    assert [f.duplicate for f in of_results(redundancy_of(format, one, two))] == ["", ""]
    assert [f.superseded for f in of_results(redundancy_of(format, one, two))] == ["", ""]
    assert [f.duplicate for f in of_results(redundancy_of(format, one, one))] == ["call", ""]


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_the_same_look_with_another_result_keeps_the_lines_only_it_has(format: str) -> None:
    changed = FILE.replace("function_3(", "function_three(")
    one, two = (Step("list_functions", {"of": "a"}, text) for text in (FILE, changed))
    first, second = of_results(redundancy_of(format, one, two))
    assert (first.duplicate, second.duplicate) == ("near", "")
    assert first.unique == ("def function_3(value_23757): return value_93",)


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_another_page_of_the_same_look_is_another_thing(format: str) -> None:
    one, two = Step("get_next", {}, FILE), Step("get_next", {}, OTHER)
    assert [(f.duplicate, f.superseded) for f in of_results(redundancy_of(format, one, two))] == [
        ("", ""), ("", ""),
    ]  # fmt: skip


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_protected_tools_are_left_alone_whatever_their_case(format: str) -> None:
    options = Duplicates(protected_tools=("READ", "get_*"))
    get = Step("get_page", {}, OTHER)
    found = redundancy_of(format, read(), read(), get, get, duplicates=options)
    assert not any(f.duplicate or f.superseded for f in of_results(found))
    off = redundancy_of(
        format, read(), read(), duplicates=Duplicates(enabled=False, superseded=False)
    )
    assert not any(f.duplicate or f.superseded for f in of_results(off))


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_protected_files_keep_their_results(format: str) -> None:
    body = conversation(format, read("conf/.env"), *TALK, read("conf/.env"), *MORE)
    assert "duplicate" in kinds(squeezed(format, body, 0.9))
    kept = squeezed(format, body, 0.9, protected_paths=["**/.env"])
    assert "duplicate" not in kinds(kept)
    assert results(format, kept.request).count(FILE) == 2


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_equal_call_ids_of_different_calls_are_not_taken_for_the_same(format: str) -> None:
    one = Step("read", {"path": "a"}, FILE, id="call_1")
    two = Step("read", {"path": "b"}, OTHER, id="call_1")
    found = redundancy_of(format, one, two, one._replace(arguments={"path": "c"}, result="short"))
    assert [call.texts for call in found.calls.calls] == [(FILE,), (OTHER,), ("short",)]
    assert not any(f.duplicate or f.superseded for f in of_results(found))


@pytest.mark.row("B8")
@pytest.mark.parametrize("format", FORMATS)
def test_a_long_text_that_another_call_gave_again_is_a_duplicate(format: str) -> None:
    one, two = Step("cat", {"f": 1}, FILE), Step("show", {"g": 2}, FILE)
    assert [f.duplicate for f in of_results(redundancy_of(format, one, two))] == ["text", ""]
    small = [step._replace(result="ok, done") for step in (one, two)]
    assert [f.duplicate for f in of_results(redundancy_of(format, *small))] == ["", ""]


@pytest.mark.row("B8")
def test_what_was_already_taken_out_by_the_client_is_not_pruned_again() -> None:
    stub = "[Output removed to save context - information superseded or no longer needed]"
    body = conversation("openai-chat", read(text=stub), *TALK, read(text=stub), *MORE)
    fitted = squeezed("openai-chat", body, 0.9, preset="in-place")
    assert results("openai-chat", fitted.request).count(stub) == 2


# --- what is shown instead ---------------------------------------------------------------------


@pytest.mark.row("B11")
@pytest.mark.parametrize("format", FORMATS)
def test_a_duplicate_gives_way_to_a_marker_in_the_shape_it_had(format: str) -> None:
    body = conversation(format, read(), *TALK, read(), *MORE)
    before = json.dumps(body)
    fitted = squeezed(format, body, 0.9)
    found = results(format, fitted.request)
    assert found[0] == "[duplicate: the same call gave the same result again later]"
    assert found[5] == FILE
    assert [e.kind for e in fitted.report.edits] == ["duplicate"]
    assert fitted.recall(fitted.report.edits[0].handle) == FILE
    assert json.dumps(body) == before
    assert trimtab.check(fitted.request, format=format) == ()


def _shapes(value: Any) -> Any:
    """A value with its strings taken out."""
    if isinstance(value, dict):
        return {key: _shapes(inner) for key, inner in value.items()}
    return [_shapes(inner) for inner in value] if isinstance(value, list) else type(value)


@pytest.mark.row("B11")
@pytest.mark.parametrize("format", FORMATS)
def test_string_and_blocks_keep_their_types(format: str) -> None:
    body = conversation(format, read(), *TALK, read(), *MORE)
    assert _shapes(squeezed(format, body, 0.9).request) == _shapes(body)


@pytest.mark.row("B11")
def test_a_result_of_several_blocks_keeps_its_list_and_its_image() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                         "data": "aGVsbG8="}}  # fmt: skip
    parts = [{"type": "text", "text": FILE}, image, {"type": "text", "text": OTHER}]
    body = conversation("anthropic", read(text=parts), *TALK, read(text=parts), *MORE)
    fitted = squeezed("anthropic", body, 0.75)
    shown = fitted.request["messages"][2]["content"][0]["content"]
    assert [part["type"] for part in shown] == ["text", "text", "text"]
    assert "the same call gave the same result again later" in shown[0]["text"]
    assert fitted.request["messages"][12]["content"][0]["content"] == parts


@pytest.mark.row("B11")
def test_a_response_object_with_several_keys_becomes_one_result_text() -> None:
    step = Step("read", {"path": "a"}, FILE)
    body = conversation("gemini", step, *TALK, step, *MORE)
    for item in body["contents"]:
        for part in item["parts"]:
            if part.get("functionResponse", {}).get("name") == "read":
                part["functionResponse"]["response"] = {"name": "a", "content": FILE}
    fitted = squeezed("gemini", body, 0.9)
    shown = fitted.request["contents"][2]["parts"][0]["functionResponse"]["response"]
    assert list(shown.values()) == ["[duplicate: the same call gave the same result again later]"]
    assert trimtab.check(fitted.request, format="gemini") == ()


@pytest.mark.row("B11")
def test_an_image_that_came_again_gives_way_too() -> None:
    image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                          "data": "aGVsbG8="}}]  # fmt: skip
    body = conversation("anthropic", read(text=image), *TALK, read(text=image), *MORE)
    fitted = squeezed("anthropic", body, 0.9)
    shown = fitted.request["messages"][2]["content"][0]["content"]
    assert shown[0]["type"] == "text"
    assert shown[0]["text"].startswith("[duplicate: ")


@pytest.mark.row("B17")
@pytest.mark.parametrize("format", FORMATS)
def test_savings_are_told_per_cause_and_never_counted_again(format: str) -> None:
    wrong = Step("edit", {"file_path": "b.py", "old_string": OTHER}, "no", True)
    body = conversation(format, read(), wrong, *TALK, read(), *MORE)
    size = trimtab.fit(
        body, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    session = trimtab.Session(
        window=int(size / 0.95),
        reserve=0,
        target=0.9,
        format=format,
        settings=trimtab.Settings(trigger=0.9, counter="o200k"),
    )
    first = session.fit(body)
    saved = sum(edit.tokens_saved for edit in first.report.edits)
    assert saved == first.report.tokens_before - first.report.tokens_after > 0
    second = session.fit(body)
    assert [edit.new for edit in second.report.edits] == [False] * len(first.report.edits)
    assert sum(edit.tokens_saved for edit in second.report.edits) == saved
    assert "the same call gave the same result again later" in str(second.report)


# --- files read and written again --------------------------------------------------------------


def superseded(format: str, *steps: Any, **options: Any) -> list[str]:
    return [facts.superseded for facts in of_results(redundancy_of(format, *steps, **options))]


WRITE = Step("write", {"file_path": "src/a.py", "content": OTHER}, "ok")
REPLACED = FILE.replace("return", "yield")
CHANGED = FILE.replace("return value_93", "yield value_93")
EDIT = Step("edit", {"file_path": "src/a.py", "old_string": "return", "new_string": "yield"}, "ok")


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FORMATS)
def test_a_read_is_superseded_by_a_later_read_of_the_same_file(format: str) -> None:
    assert superseded(format, read(), read(text=CHANGED)) == ["read", ""]
    assert superseded(format, read(), EDIT, read(text=REPLACED)) == ["read", "", ""]
    assert superseded(format, read("a.py"), read("b.py", CHANGED)) == ["", ""]


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FORMATS)
def test_a_read_is_superseded_by_a_later_successful_write(format: str) -> None:
    assert superseded(format, read(), WRITE) == ["write", ""]
    assert superseded(format, WRITE, read()) == ["", ""]


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FLAGGED)
def test_a_failed_write_or_read_does_not_supersede(format: str) -> None:
    assert superseded(format, read(), WRITE._replace(result="denied", error=True)) == ["", ""]
    assert superseded(format, read(), read(text="gone", error=True)) == ["", ""]


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FORMATS)
def test_partial_reads_do_not_supersede_what_they_do_not_show(format: str) -> None:
    lines = FILE.splitlines(keepends=True)
    part = read(text="".join(lines[9:40]), offset=10, limit=31)
    assert superseded(format, read(), part) == ["", ""]
    assert superseded(format, part, read()) == ["read", ""]


@pytest.mark.row("B21")
@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        ({"offset": 10, "limit": 20}, {"offset": 1, "limit": 40}, "read"),
        ({"offset": 10, "limit": 20}, {"offset": 15, "limit": 40}, ""),
        ({"offset": 10, "limit": 20}, {"offset": 40, "limit": 20}, ""),
        ({"start_line": 10, "end_line": 29}, {"start_line": 5, "end_line": 29}, "read"),
        ({"view_range": [10, 29]}, {"view_range": [1, -1]}, "read"),
        ({"view_range": [10, 29]}, {"view_range": [11, 60]}, ""),
        ({"offset": "10", "limit": "20"}, {}, "read"),
    ],
)
def test_different_ranges_do_not_supersede(
    early: dict[str, Any], late: dict[str, Any], expected: str
) -> None:
    def shown(ranges: dict[str, Any]) -> str:
        call = read_call("read", json.dumps({"file_path": "a", **ranges}))
        return "".join(FILE.splitlines(keepends=True)[call.first - 1 : call.last]).rstrip("\n")

    steps = [read("a", shown(ranges), **ranges) for ranges in (early, late)]
    assert superseded("anthropic", *steps)[0] == expected


@pytest.mark.row("B21")
def test_a_read_that_its_tool_cut_short_stands_only_for_what_it_shows() -> None:
    lines = [f"row_{n} = {n * 7919}" for n in range(1_940)] + FILE.splitlines()
    whole = read(text="\n".join(lines))
    early = read(text="\n".join(lines[1_899:1_959]), offset=1_900, limit=60)
    assert superseded("anthropic", early, whole)[0] == "read"
    assert superseded("anthropic", read(text=FILE, offset=2_100, limit=60), whole)[0] == ""


@pytest.mark.row("B21")
def test_a_stub_in_place_of_a_second_read_does_not_supersede() -> None:
    assert superseded("anthropic", read(), read(text="File unchanged since last read.")) == ["", ""]


@pytest.mark.row("B21")
def test_an_edit_supersedes_only_where_it_replaced_most_of_what_was_read() -> None:
    def edit(old: str) -> Step:
        return Step("edit", {"file_path": "src/a.py", "old_string": old, "new_string": "x"}, "ok")

    assert superseded("anthropic", read(), edit(FILE))[0] == "edit"
    assert superseded("anthropic", read(), edit(FILE[:200]))[0] == ""
    assert superseded("anthropic", read(), edit(OTHER))[0] == ""


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FORMATS)
def test_a_written_text_is_superseded_by_a_later_read_or_write_of_the_file(format: str) -> None:
    found = of_calls(redundancy_of(format, WRITE, read(text=OTHER), read("b"), WRITE, WRITE))
    assert [facts.superseded for facts in found] == ["write", "", "", "write", ""]
    body = conversation(format, WRITE, *TALK, read(text=OTHER), *MORE)
    fitted = squeezed(format, body, 0.9)
    shown = inputs(format, fitted.request)[0]
    shown = json.loads(shown) if isinstance(shown, str) else shown
    assert shown["file_path"] == "src/a.py"
    assert shown["content"].startswith("[superseded, ")


@pytest.mark.row("B21")
@pytest.mark.parametrize("format", FORMATS)
def test_notes_of_old_steps_keep_no_line_of_what_was_overwritten(format: str) -> None:
    write = WRITE._replace(arguments={"file_path": "src/a.py", "content": OTHER + FILE})
    body = conversation(format, read(text=OTHER), *TALK, write, *MORE)
    fitted = squeezed(format, body, 0.4)
    assert "fold" in kinds(fitted)
    told = json.dumps(fitted.request).replace("\\\\n", "\\n").split("\\n")
    assert sum("class Thing0:" in line and "# write" not in line for line in told) <= 1


@pytest.mark.row("B21")
def test_superseding_can_be_switched_off_by_itself() -> None:
    options = Duplicates(superseded=False)
    assert superseded("anthropic", read(), read(text=CHANGED), duplicates=options) == ["", ""]
    found = of_results(redundancy_of("anthropic", read(), read(), duplicates=options))
    assert found[0].duplicate == "call"


@pytest.mark.row("B21")
@pytest.mark.parametrize(
    ("command", "expected"),
    [("sed -n '1,60p' src/a.py", "read"), ("cat src/a.py", "read"), ("sed -n '1,9p' src/a.py", ""),
     ("cat src/a.py; rm src/a.py", ""), ("cat src/b.py", "")],
)  # fmt: skip
def test_plain_reads_in_a_shell_count_as_reads(command: str, expected: str) -> None:
    early = Step("exec_command", {"cmd": "sed -n '1,60p' src/a.py"}, FILE)
    late = Step("exec_command", {"cmd": command, "yield_time_ms": 5}, CHANGED)
    assert superseded("openai-responses", early, late)[0] == expected


def _code(tag: int) -> str:
    return "".join(f"word_{tag}_{n} = call_{tag}({n})\n" for n in range(8))


READS = {
    "one file": lambda n: read(text=_code(n)),
    "different files": lambda n: read(f"src/{n}.py", _code(n)),
    "equal reads": lambda n: read(f"src/{n % 50}.py", _code(n % 50)),
    "ranges": lambda n: read(text=_code(n % 97), offset=n % 97, limit=8),
    "stubs": lambda n: read(text=_code(n) if n % 9 == 0 else "File unchanged since last read."),
    "edits": lambda n: [
        read(text=_code(n)),
        Step("edit", {"file_path": "src/a.py", "old_string": _code(n), "new_string": "x"}, "ok"),
        Step("write", {"file_path": "src/a.py", "content": _code(n)}, "ok"),
    ][n // 20 % 3],
}  # fmt: skip


@pytest.mark.row("X5")
@pytest.mark.parametrize("kind", READS)
def test_each_result_is_searched_for_a_pointer_once_whatever_else_was_read(kind: str) -> None:
    found: Redundancy = redundancy_of("anthropic", *(READS[kind](n) for n in range(400)))
    assert len(found.calls.calls) >= 400  # collected before: only the search is counted
    profile = cProfile.Profile()
    profile.runcall(lambda: [of_results(found), of_results(found)])
    calls = {name[2]: stats[0] for name, stats in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]
    assert calls.get("says_nothing_itself", 0) <= 400
    assert sum(calls.values()) < 400 * 300
