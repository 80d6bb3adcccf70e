"""The record of old steps: what was done, to what, with what outcome, and what is still true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from redundancy_facts import place, redundancy_of
from tool_calls import Step

from trimtab.planning.line_selection import CandidateLines
from trimtab.planning.lines import Lines, lines_of
from trimtab.planning.record import (
    Entry,
    StepRecord,
    add_sources,
    edits_of,
    listed_first,
    quoted_rows,
)
from trimtab.transcript.model import Block

FILE = "import re\n\ndef parse(text):\n    return int(text)\n"
OLD, NEW = "    return int(text)", "    return int(text, 10)"


def read(path: str = "a.py", text: str = FILE, **more: Any) -> Step:
    return Step("Read", {"file_path": path, **more}, text)


def edit(old: str = OLD, new: str = NEW, path: str = "a.py", **more: Any) -> Step:
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return Step("Edit", arguments, "The file has been updated.", **more)


def write(text: str, path: str = "a.py") -> Step:
    return Step("Write", {"file_path": path, "content": text}, "ok")


def bash(command: str, result: str = "", **more: Any) -> Step:
    return Step("Bash", {"command": command}, result, **more)


def entries_of(*turns: Step | list[Step], format: str = "anthropic") -> list[Entry]:
    """The entries of a conversation, each with its lines."""
    found = redundancy_of(format, *turns)
    entries: list[Entry] = []
    for call in found.calls.calls:
        block = place(found, call.inputs[0]).block
        header, edits = lines_of(block).header, edits_of(call, block)
        entries.append(Entry(call.turn + 1, call.turn, call, header, edits))

    def blocks(entry: Entry) -> tuple[Block | None, Sequence[Block]]:
        results = [place(found, key).block for key in entry.call.outputs]
        return place(found, entry.call.inputs[0]).block, results

    def make(entry: Entry, kind: str, block: Block, lines: Lines) -> CandidateLines:
        return CandidateLines(kind, lines, 0.25, entry)

    first = min(entry.step for entry in entries)
    for entry in entries:
        entry.step, entry.group = entry.step - first + 1, entry.group - first + 1
    add_sources(entries, blocks, make, lines_of, lambda entry: True)
    return entries


def whole(*turns: Step | list[Step], format: str = "anthropic") -> list[str]:
    """The rows of a record with every line that may be shown."""
    entries = entries_of(*turns, format=format)
    for entry in entries:
        entry.listed = True
        for source in entry.sources:
            source.kept = set(range(len(source.lines)))
    return StepRecord(entries).text().split("\n")


def heads(*turns: Step | list[Step], format: str = "anthropic") -> list[str]:
    """The heads alone."""
    return [entry.head for entry in entries_of(*turns, format=format)]


# --- heads ---

HEADS: dict[str, tuple[Step, str]] = {
    "a read": (read(), "1 Read a.py → 5 lines"),
    "a read of some lines": (read(offset=40, limit=20), "1 Read a.py 40–59 → 5 lines"),
    "a read to the end": (read(offset=40), "1 Read a.py 40–end → 5 lines"),
    "an edit": (edit(), "1 Edit a.py → ok, +1 −1"),
    "an edit of several places": (
        Step("MultiEdit", {"file_path": "a.py", "edits": [
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]}, "ok"),
        "1 MultiEdit a.py → ok, +2 −2",
    ),
    "a write": (write(FILE), "1 Write a.py → ok, +5 −0"),
    "a cell of a notebook": (
        Step("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x = 1"}, "Updated cell"),
        "1 NotebookEdit n.ipynb → ok, +1 −0",
    ),
    "a patch of two files": (
        Step("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n"
             "*** Add File: b.py\n+z\n*** End Patch"}, "Success. Updated the following files"),
        "1 apply_patch a.py, b.py → ok, +2 −1",
    ),
    "a patch of many files": (
        Step("apply_patch", {"input": "*** Begin Patch\n" + "".join(
            f"*** Add File: {name}.py\n+z\n" for name in "abcde") + "*** End Patch"}, "ok"),
        "1 apply_patch a.py, b.py, c.py, … → ok, +5 −0",
    ),
    "OpenHands' view": (
        Step("str_replace_editor", {"command": "view", "path": "a.py", "view_range": [3, 9]}, FILE),
        "1 str_replace_editor a.py 3–9 → 5 lines",
    ),
    "OpenHands' insert": (
        Step("str_replace_editor",
             {"command": "insert", "path": "a.py", "insert_line": 3, "new_str": "x"}, "ok"),
        "1 str_replace_editor a.py → ok, +1 −0",
    ),
    "a command": (bash("ls -la", "a.py\nb.py"), "1 Bash ls -la → 2 lines"),
    "a command that reads a file": (bash("cat a.py", FILE), "1 Bash cat a.py → 5 lines"),
    "a command that says one thing": (bash("pwd", "/src"), "1 Bash pwd → /src"),
    "a command that says nothing": (bash("mkdir x", ""), "1 Bash mkdir x → no output"),
    "a long line": (bash("date", "x" * 500), "1 Bash date → 500 chars"),
    "exit code in front": (
        bash("pytest", "Exit code: 1\nFAILED a\nFAILED b"), "1 Bash pytest → exit 1, 3 lines"),
    "exit code behind": (
        bash("pytest", "FAILED a\nProcess exited with code 2"), "1 Bash pytest → exit 2, 2 lines"),
    "exit code 0": (bash("pytest", "2 passed\nExit code: 0"), "1 Bash pytest → 2 lines"),
    "an exit code alone": (bash("x", "exited with code 127"), "1 Bash x → exit 127"),
    "an error": (
        edit(error=True)._replace(result="String to replace not found in file."),
        "1 Edit a.py → error: String to replace not found in file.",
    ),
    "another's tool": (
        Step("get_ticket", {"id": "T-7", "full": True}, "open"), "1 get_ticket T-7 → open",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_a_steps_head_says_tool_object_and_outcome(name: str) -> None:
    step, expected = HEADS[name]
    assert heads(step) == [expected]


def test_calls_of_one_step_have_its_number_each() -> None:
    assert heads([read("a.py"), read("b.py")], bash("ls", "x")) == [
        "1 Read a.py → 5 lines",
        "1 Read b.py → 5 lines",
        "2 Bash ls → x",
    ]


def test_a_read_says_which_step_changed_its_file_next() -> None:
    found = heads(read(), read("b.py"), edit(), edit(NEW, "    return 0"), read())
    assert found[0] == "1 Read a.py → 5 lines, edited in step 3"
    assert found[1] == "2 Read b.py → 5 lines"
    assert found[4] == "5 Read a.py → 5 lines"


def test_an_edit_that_failed_changed_nothing() -> None:
    failed = edit(error=True)._replace(result="String to replace not found in file.")
    rows = whole(read(), failed)
    assert rows[0] == "1 Read a.py → 5 lines"
    assert f" {OLD}" in rows
    assert not any(row[:1] in "+-" for row in rows)


# --- lines ---


def test_an_edits_new_text_is_told_apart_from_the_old_and_from_what_it_left() -> None:
    rows = whole(edit(f"def parse(text):\n{OLD}", f"def parse(text):\n{NEW}"))
    assert rows == ["1 Edit a.py → ok, +1 −1", f"-{OLD}", " def parse(text):", f"+{NEW}"]


def test_where_a_call_changed_several_files_each_line_is_under_its_own() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n"
        "*** Add File: b.py\n+y = 1\n*** End Patch"
    )
    rows = whole(Step("apply_patch", {"input": patch}, "Done"))
    assert rows == [
        "1 apply_patch a.py, b.py → ok, +2 −1", " a.py:", "-x = 1", "+x = 2", " b.py:", "+y = 1",
    ]  # fmt: skip


def test_a_patch_in_a_custom_tool_of_codex_is_an_edit_too() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
    items = [
        {"role": "user", "content": "Go."},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done"},
        {"role": "user", "content": "And?"},
    ]
    body: Any = {"model": "gpt-5.5", "input": items}
    assert whole(body, format="openai-responses") == [
        "1 apply_patch a.py → ok, +1 −1", "-x = 1", "+x = 2",
    ]  # fmt: skip


def test_a_result_has_a_blank_before_each_line_and_no_line_that_the_head_shows() -> None:
    assert whole(bash("ls", "a.py\nb.py"), bash("pwd", "/src")) == [
        "1 Bash ls → 2 lines", " a.py", " b.py", "2 Bash pwd → /src",
    ]  # fmt: skip


def test_what_a_command_was_given_is_shown_where_the_head_does_not_show_it() -> None:
    rows = whole(bash("python - <<'E'\nprint(1)\nE", "1"))
    assert rows[0] == "1 Bash python - <<'E' → 1"
    assert " print(1)" in rows


def test_gaps_between_lines_of_one_text_are_marked() -> None:
    (entry,) = entries_of(bash("ls", "\n".join("abcdef")))
    result = entry.sources[-1]
    result.kept = {0, 1, 4}
    assert StepRecord([entry]).text().split("\n")[1:] == [" a", " b", " …", " e"]


# --- what is no longer true ---

STALE: dict[str, tuple[list[Step], set[str], set[str]]] = {
    "a read that an edit changed": ([read(), edit()], {f"+{NEW}"}, {f" {OLD}"}),
    "a read that a write replaced": (
        [read(), write("x = 1\n")], {"+x = 1"}, {" import re", f" {OLD}", " def parse(text):"},
    ),
    "lines that the write kept": ([read(), write("import re\n")], {" import re"}, {f" {OLD}"}),
    "an edit that an edit changed": (
        [edit(), edit(NEW, "    return 0")], {"+    return 0"}, {f"+{NEW}"},
    ),
    "an edit that a write replaced": ([edit(), write("x = 1\n")], {"+x = 1"}, {f"+{NEW}"}),
    "a write that an edit changed": (
        [write(FILE), edit()], {"+import re", f"+{NEW}"}, {f"+{OLD}"},
    ),
    "an edit taken back": ([read(), edit(), edit(NEW, OLD)], {f" {OLD}", f"+{OLD}"}, {f"+{NEW}"}),
    "another file": ([read(), edit(path="b.py")], {f" {OLD}", f"+{NEW}"}, set()),
    "a read after the edit": ([edit(), read(text=FILE.replace(OLD, NEW))], {f" {NEW}"}, set()),
    "a read by a command": ([bash("cat a.py", FILE), edit()], {f"+{NEW}"}, {f" {OLD}"}),
    "the output of a command": (
        [bash("grep -n int a.py", f"{OLD}\n{OLD} # twice"), edit()], {f" {OLD}"}, set(),
    ),
    "two places of one call": (
        [Step("MultiEdit", {"file_path": "a.py", "edits": [
            {"old_string": "x = 1", "new_string": "x = 2"},
            {"old_string": "x = 2", "new_string": "x = 3"}]}, "ok")],
        {"+x = 3"}, {"+x = 2"},
    ),
    "a file that a patch deleted": (
        [read(), Step("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a.py\n"
                      "*** End Patch"}, "Done")],
        set(), {" import re", f" {OLD}"},
    ),
    "a file that a patch moved": (
        [read(), Step("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n"
                      f"*** Move to: b.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch"}, "Done")],
        {" b.py:", f"+{NEW}"}, {" import re", f" {OLD}", " a.py:"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_no_line_is_shown_that_a_later_step_is_known_to_have_changed(name: str) -> None:
    steps, there, gone = STALE[name]
    rows = set(whole(*steps))
    assert there <= rows
    assert not gone & rows


def test_what_an_edit_replaced_is_shown_as_replaced_and_nothing_else() -> None:
    rows = whole(read(), edit())
    assert [row for row in rows if row.strip("+- ") == OLD.strip()] == [f"-{OLD}"]


# --- which steps have a line of their own ---


def listed(entries: Sequence[Entry], *steps: int) -> list[str]:
    for entry in entries:
        entry.listed = entry.step in steps
    return StepRecord(entries).text().split("\n")


def test_neighbours_of_which_nothing_is_shown_are_one_line() -> None:
    steps = [read("a.py"), read("b.py"), bash("ls", "x\ny"), edit(), bash("pwd", "/"), read("c.py")]
    entries = entries_of(*steps)
    assert listed(entries, 4) == [
        "1–3: 2 Read of a.py, b.py, 1 Bash",
        "4 Edit a.py → ok, +1 −1",
        "5–6: 1 Bash, 1 Read of c.py",
    ]
    assert listed(entries, 4, 5)[2:] == ["5 Bash pwd → /", "6 Read c.py → 5 lines"]
    assert listed(entries) == [""]


def test_a_line_for_several_steps_counts_files_and_failures() -> None:
    failed = bash("make", "No rule to make target", error=True)
    steps = [read("a.py"), read("b.py"), read("c.py"), read("a.py"), failed, failed, edit()]
    assert listed(entries_of(*steps), 7)[0] == "1–6: 4 Read of 3 files, 2 Bash (2 failed)"


def test_the_newest_get_a_line_first_and_of_the_older_half_those_that_changed_or_failed() -> None:
    entries = entries_of(
        read("a.py"), edit(), bash("make", "Exit code: 2\nno rule"), bash("ls", "x\ny"),
        bash("pwd", "/"), edit(NEW, OLD), read("b.py"), read("c.py"),
    )  # fmt: skip
    assert [entry.step for entry in listed_first(entries)] == [8, 7, 6, 5, 3, 2, 4, 1]


# --- read again ---


def test_the_rows_of_a_record_are_found_again_under_their_steps() -> None:
    text = "\n".join(whole(read("b.py"), bash("ls", "x\ny"), edit()))
    assert quoted_rows(text) == {
        1: set(filter(None, FILE.split("\n"))), 2: {"x", "y"}, 3: {OLD, NEW},
    }  # fmt: skip
    assert quoted_rows(f"1–3: 3 Read of 2 files\n stray\n4 Bash ls → ok\n{' row'}") == {4: {"row"}}


def test_lines_that_an_agent_puts_around_an_output_are_left_out_of_it() -> None:
    text = (
        "Chunk ID: 86f177\nWall time: 1.2 seconds\nProcess exited with code 1\n"
        "Original token count: 30\nOutput:\n30 pass\n2 fail"
    )
    rows = whole(bash("bun test", text))
    assert rows[0] == "1 Bash bun test → exit 1, 7 lines"
    assert rows[1:] == [" 30 pass", " 2 fail"]


def test_steps_that_failed_by_their_exit_code_alone_are_counted_in_a_line_for_several() -> None:
    failed = [bash(f"make {n}", "Process exited with code 2\nno rule\nstop") for n in range(2)]
    assert StepRecord(entries_of(*failed)).rows() == ["1–2: 2 Bash (2 failed)"]


def test_the_folder_that_a_command_changes_to_does_not_hide_the_command() -> None:
    rows = whole(bash("cd /home/me/app && npm test", "ok\nok"))
    assert rows[0].startswith("1 Bash npm test → ")


def test_an_edit_that_only_takes_out_shows_what_it_took_out_alone() -> None:
    rows = whole(edit(old="first = 1\nsecond = 2\nthird = 3", new="first = 1\nthird = 3"))
    assert rows == ["1 Edit a.py → ok, +0 −1", "-second = 2"]
