"""The only copy of something never gives way to what does not hold it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import SIX
from tool_calls import Step, conversation

import trimtab

FILE = "".join(f"def function_{n}(value_{n * 7919}): return value_{n * 31}\n" for n in range(400))
ONE_LINE = json.dumps({f"key_{n}": f"value {n * 7919}" for n in range(2_500)})
TALK, MORE = (
    [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 40) for n in numbers]
    for numbers in (range(8), range(8, 16))
)


def read(text: str, **more: Any) -> Step:
    return Step("Read", {"file_path": "src/a.py", **more}, text)


def write(text: str) -> Step:
    return Step("Write", {"file_path": "src/a.py", "content": text}, "The file was written.")


def look(text: str) -> Step:
    return Step("get_record", {"id": "a"}, text)


UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read tool_result in this "
    "conversation is still current — refer to that instead of re-reading."
)
LONG_STUB = "\n".join([*["This file was shown before; nothing is new."] * 400])
CASES = {
    "a stub for what was written": (write(FILE), read(UNCHANGED)),
    "a stub for one line that was written": (write(ONE_LINE), read(UNCHANGED)),
    "a stub for one line": (read(ONE_LINE), read(UNCHANGED)),
    "a word for one line": (read(ONE_LINE), read("done")),
    "an error that no flag tells": (read(ONE_LINE), read("Error: the disk did not answer")),
    "a stub as long as the file": (read(FILE), read(LONG_STUB)),
    "another text of the same length": (read(FILE), read(FILE.replace("value", "thing"))),
    "one long line among many short ones": (
        read(ONE_LINE + "\n" + FILE[:2_000]),
        read("{}\n" + FILE[:2_000]),
    ),
    "an error for what was written": (write(FILE), read("Error: ENOENT: no such file")),
    "a written stub": (read(FILE), write("# the rest is as it was\n")),
    "a look that points back": (look(ONE_LINE), look("Same as above.")),
    "a look that lost its long line": (look(ONE_LINE + "\na\nb\nc"), look("a\nb\nc")),
}


def shrunk(format: str, body: dict[str, Any]) -> Any:
    """The body fitted a little below its own size: dead weight goes first."""
    size = trimtab.fit(
        body, window=10**9, format=format, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=int(size / 0.95), reserve=0, trigger=0.9, target=0.9)
    return trimtab.fit(body, format=format, settings=limits | trimtab.Settings(counter="o200k"))


@pytest.mark.parametrize("format", SIX)
@pytest.mark.parametrize("name", CASES)
def test_what_holds_less_supersedes_nothing(name: str, format: str) -> None:
    early, late = CASES[name]
    body = conversation(format, early, *TALK, late, *MORE)
    kinds = {edit.kind for edit in shrunk(format, body).report.edits}
    assert not kinds & {"superseded", "duplicate"}


def test_what_a_later_read_lacks_unexplained_stays_with_the_marker() -> None:
    own = "ODD = 'this line stands in the first read alone'"
    lines = FILE.splitlines()
    early = read("\n".join([*lines[:200], own, *lines[200:]]))
    body = conversation("anthropic", early, *TALK, read(FILE, note="again"), *MORE)
    shown = shrunk("anthropic", body).request["messages"][2]["content"][0]["content"]
    assert shown.startswith("[superseded: the same file was read again later")
    assert shown.splitlines()[1:] == [own]


def test_what_an_edit_replaced_may_be_missing_in_a_later_read() -> None:
    edit = {"file_path": "src/a.py", "old_string": "value", "new_string": "thing"}
    body = conversation(
        "anthropic", read(FILE), *TALK, Step("Edit", {**edit, "replace_all": True}, "ok"),
        read(FILE.replace("value", "thing")), *MORE,
    )  # fmt: skip
    shown = shrunk("anthropic", body).request["messages"][2]["content"][0]["content"]
    assert shown == "[superseded: the same file was read again later]"
