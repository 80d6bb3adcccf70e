"""What a call changed in files: the arguments of the edit tools of known agents, and of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.transcript.call_arguments import read_call
from trimtab.transcript.file_edits import FileEdit, file_edits

PATCH = """*** Begin Patch
*** Update File: src/clock.py
@@ def parse(text):
-    return int(text)
+    return int(text, 10)
*** Add File: src/new.py
+import sys
+
*** Delete File: src/old.py
*** End Patch"""
DIFF = """diff --git a/src/clock.py b/src/clock.py
--- a/src/clock.py
+++ b/src/clock.py
@@ -1,2 +1,2 @@
 import re
-x = 1
+x = 2
--- a/src/gone.py
+++ /dev/null
-y = 1
"""
PATCHED = [
    FileEdit("src/clock.py", "    return int(text)", "    return int(text, 10)"),
    FileEdit("src/new.py", "", "import sys\n", whole=True),
    FileEdit("src/old.py", "", "", whole=True),
]
DIFFED = [
    FileEdit("src/clock.py", "x = 1", "x = 2"),
    FileEdit("src/gone.py", "y = 1", "", whole=True),
]
HEREDOC = f"apply_patch <<'EOF'\n{PATCH}\nEOF"

JSON: dict[str, tuple[str, Any, list[FileEdit]]] = {
    "Claude Code's Edit": (
        "Edit",
        {"file_path": "/w/a.py", "old_string": "x = 1", "new_string": "x = 2", "replace_all": True},
        [FileEdit("/w/a.py", "x = 1", "x = 2")],
    ),
    "Claude Code's MultiEdit": (
        "MultiEdit",
        {"file_path": "a.py", "edits": [
            {"old_string": "x = 1", "new_string": "x = 2"},
            {"old_string": "y = 1", "new_string": ""},
        ]},
        [FileEdit("a.py", "x = 1", "x = 2"), FileEdit("a.py", "y = 1", "")],
    ),
    "Claude Code's Write": (
        "Write", {"file_path": "a.py", "content": "x = 1\n"},
        [FileEdit("a.py", "", "x = 1\n", whole=True)],
    ),
    "Claude Code's NotebookEdit": (
        "NotebookEdit", {"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "x = 2"},
        [FileEdit("n.ipynb", "", "x = 2")],
    ),
    "Codex' apply_patch, a function": ("apply_patch", {"input": PATCH}, PATCHED),
    "Codex' apply_patch in its shell": (
        "shell", {"command": ["bash", "-lc", HEREDOC], "workdir": "/w"}, PATCHED,
    ),
    "Codex' apply_patch in exec_command": ("exec_command", {"cmd": HEREDOC}, PATCHED),
    "pi's edit": (
        "edit", {"path": "a.py", "oldText": "x = 1", "newText": "x = 2"},
        [FileEdit("a.py", "x = 1", "x = 2")],
    ),
    "pi's edit of several places": (
        "edit",
        {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]},
        [FileEdit("a.py", "x = 1", "x = 2")],
    ),
    "pi's write": (
        "write", {"path": "a.py", "content": "x"}, [FileEdit("a.py", "", "x", whole=True)],
    ),
    "OpenHands' view": ("str_replace_editor", {"command": "view", "path": "a.py"}, []),
    "OpenHands' create": (
        "str_replace_editor", {"command": "create", "path": "a.py", "file_text": "x = 1"},
        [FileEdit("a.py", "", "x = 1", whole=True)],
    ),
    "OpenHands' str_replace": (
        "str_replace_editor",
        {"command": "str_replace", "path": "a.py", "old_str": "x = 1", "new_str": "x = 2"},
        [FileEdit("a.py", "x = 1", "x = 2")],
    ),
    "OpenHands' insert": (
        "str_replace_editor",
        {"command": "insert", "path": "a.py", "insert_line": 3, "new_str": "x = 2"},
        [FileEdit("a.py", "", "x = 2")],
    ),
    "OpenCode's edit": (
        "edit", {"filePath": "a.py", "oldString": "x = 1", "newString": "x = 2"},
        [FileEdit("a.py", "x = 1", "x = 2")],
    ),
    "Gemini CLI's replace": (
        "replace", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"},
        [FileEdit("a.py", "x = 1", "x = 2")],
    ),
    "a tool of another's with files in a list": (
        "update_files",
        {"files": [
            {"path": "a.py", "old_text": "x", "new_text": "y"},
            {"path": "b.py", "old_text": "v", "new_text": "w"},
        ]},
        [FileEdit("a.py", "x", "y"), FileEdit("b.py", "v", "w")],
    ),
    "a message with a path is no write": ("send", {"path": "a.py", "content": "x = 1"}, []),
    "a search is no edit": ("grep", {"path": "src", "pattern": "x"}, []),
    "a diff in some argument": ("submit", {"answer": DIFF}, DIFFED),
    "a path as Windows writes it": (
        "Edit", {"file_path": r"src\a.py", "old_string": "x", "new_string": "y"},
        [FileEdit("src/a.py", "x", "y")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON)
def test_each_agents_tools_say_what_they_changed_where(name: str) -> None:
    tool, arguments, expected = JSON[name]
    text = json.dumps(arguments)
    writes = read_call(tool, text).action == "write"
    assert file_edits(text, writes=writes) == expected


def test_codex_patch_as_a_custom_tool_is_plain_text() -> None:
    assert file_edits(PATCH, free=True) == PATCHED
    assert file_edits(DIFF, free=True) == DIFFED


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"x"', '{"path": 5, "content": 6}'])
def test_arguments_that_say_nothing_of_files_are_no_edit(text: str) -> None:
    assert file_edits(text, writes=True) == []
    assert file_edits(text, free=True) == []


def test_a_moved_file_is_gone_and_its_new_lines_are_in_the_file_it_became() -> None:
    moved = PATCH.replace("*** Update File: src/clock.py\n",
                          "*** Update File: src/clock.py\n*** Move to: src/time.py\n")  # fmt: skip
    gone = FileEdit("src/clock.py", "", "", whole=True)
    became = PATCHED[0]._replace(path="src/time.py")
    assert file_edits(moved, free=True) == [gone, became, *PATCHED[1:]]


def test_a_file_that_moves_unchanged_is_gone_where_it_was() -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** End Patch"
    gone, became = FileEdit("a.py", "", "", whole=True), FileEdit("b.py", "", "")
    assert file_edits(text, free=True) == [gone, became]


def test_the_name_of_a_patched_file_ends_before_its_time() -> None:
    text = "--- a/x.py\t2026-01-01\n+++ b/x.py\t2026-01-02\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert file_edits(text, free=True) == [FileEdit("x.py", "x = 1", "x = 2")]


def test_a_file_that_a_diff_adds_is_whole() -> None:
    text = "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert file_edits(text, free=True) == [FileEdit("x.py", "", "x = 1", whole=True)]


def test_what_follows_a_patch_in_a_command_is_no_line_of_it() -> None:
    text = f"{HEREDOC}\n-not this\n+nor this"
    assert file_edits(json.dumps({"cmd": text})) == PATCHED


def test_a_line_of_a_patch_that_begins_with_the_sign_itself_is_a_line() -> None:
    text = "*** Update File: a.sql\n@@\n--- old comment\n-x\n++++ new comment\n+y\n"
    assert file_edits(text, free=True) == [
        FileEdit("a.sql", "-- old comment\nx", "+++ new comment\ny")
    ]
