"""Agents that read, edit and write a few files, and what each file holds after each step.

Knows the tools of four agents.  Does not know the library under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st
from spoken import Called, Script, Step

Style = Literal["claude", "pi", "openhands", "codex"]
STYLES: tuple[Style, ...] = ("claude", "pi", "openhands", "codex")
KINDS = ("read", "read", "edit", "edit", "write", "back", "failed", "run", "said", "user")
OPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(0, 30)),
    min_size=8, max_size=40,
)  # fmt: skip
"""(what is done, number of the file, number of a line)."""
PATHS = ("src/clock.py", "src/words.py", "tests/test_clock.py")


class Done(NamedTuple):
    """What one step did: the truth that a record is judged by."""

    kind: str
    tool: str
    path: str
    result: str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    given: str = ""
    """The text of its arguments."""
    failed: bool = False


@dataclass
class History:
    """The script, what each step with a call did, and the files after each of these."""

    script: Script = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    after: list[dict[str, frozenset[str]]] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    """The model's words, line by line."""


def history(style: Style, ops: list[tuple[str, int, int]]) -> History:
    """The history of such an agent, doing these things in order."""
    world = _World(style)
    for kind, file, line in ops:
        world.do(kind, PATHS[file], line)
    world.history.script.append("And now?")
    return world.history


class _World:
    def __init__(self, style: Style) -> None:
        self.style, self.count = style, 0
        self.files = {path: [self._line(path) for _ in range(14)] for path in PATHS}
        self.taken: dict[str, tuple[list[str], list[str]]] = {}
        """The last edit of each file, which may be taken back."""
        self.history = History(script=["Please mend the clock and its tests."])

    def _line(self, path: str) -> str:
        self.count += 1
        n, stem = self.count, path.rpartition("/")[2].partition(".")[0]
        return f"    {stem}_{n} = measure_{n * 7919}(seconds, of='{stem}', at={n})"

    def do(self, kind: str, path: str, number: int) -> None:
        if kind == "user":
            self.history.script.append(f"The user says {self.count}: mind the clock, please go on.")
            self.count += 1
            return
        if kind == "said":
            return self._call("run", path, words=True)
        lines = self.files[path]
        at = number % len(lines)
        if kind == "read" or kind == "run":
            return self._call(kind, path)
        if kind == "write":
            kept = lines[:at]
            self.files[path] = [*kept, *(self._line(path) for _ in range(6))]
            return self._call("write", path, (), tuple(self.files[path]))
        if kind == "failed":
            return self._call("edit", path, (self._line(path),), (self._line(path),), failed=True)
        old, new = [lines[at]], [self._line(path), self._line(path)]
        if kind == "back" and path in self.taken:
            new, old = self.taken.pop(path)
            if any(line not in lines for line in old):
                return
            at = lines.index(old[0])
        else:
            self.taken[path] = (old, new)
        if at:  # a line that stays, as agents give one
            old, new = [lines[at - 1], *old], [lines[at - 1], *new]
            at -= 1
        if lines[at : at + len(old)] != old:
            return
        lines[at : at + len(old)] = new
        self._call("edit", path, tuple(old), tuple(new))

    def _call(
        self, kind: str, path: str, old: tuple[str, ...] = (), new: tuple[str, ...] = (),
        *, failed: bool = False, words: bool = False,
    ) -> None:  # fmt: skip
        self.count += 1
        tool, given = _asked(self.style, kind, path, "\n".join(old), "\n".join(new), self.count)
        result = self._result(kind, path, failed)
        said = f"The model thinks {self.count}: the clock counts seconds of {path}." * words
        if said:
            self.history.said.add(said)
        self.history.script.append(Step(said, (Called(tool, given, result, failed),)))
        text = "\n".join(str(value) for value in given.values())
        self.history.done.append(Done(kind, tool, path, result, old, new, text, failed))
        self.history.after.append({name: frozenset(rows) for name, rows in self.files.items()})

    def _result(self, kind: str, path: str, failed: bool) -> str:
        if failed:
            return FAILED[self.style]
        if kind == "read":
            return "\n".join(self.files[path])
        if kind == "run":
            rows = (f"test_{self.count}_{n} took {n * 31} seconds: PASSED" for n in range(20))
            return "\n".join(rows)
        return "The file has been updated successfully."


FAILED: dict[Style, str] = {
    "claude": "<tool_use_error>String to replace not found in file.</tool_use_error>",
    "pi": "Could not find the exact text in the file.",
    "openhands": "No replacement was performed, old_str did not appear in the file.",
    "codex": "apply_patch verification failed: Failed to find expected lines in the file",
}


def _asked(
    style: Style, kind: str, path: str, old: str, new: str, number: int
) -> tuple[str, dict[str, Any]]:
    """(tool, arguments) as the agent of this style writes them."""
    command = f"python -m pytest -q tests -k clock_{number}"
    if style == "openhands":
        more: dict[str, Any] = {
            "read": {"command": "view"},
            "edit": {"command": "str_replace", "old_str": old, "new_str": new},
            "write": {"command": "create", "file_text": new},
        }.get(kind, {})
        if kind != "run":
            return "str_replace_editor", {**more, "path": path}
        return "execute_bash", {"command": command}
    if style == "codex":
        if kind in ("read", "run"):
            return "exec_command", {"cmd": f"cat {path}" if kind == "read" else command}
        return "apply_patch", {"input": patch(path, old, new, adds=kind == "write")}
    key = "file_path" if style == "claude" else "path"
    first, second = ("old_string", "new_string") if style == "claude" else ("oldText", "newText")
    tool, given = {
        "read": ("Read", {key: path}),
        "edit": ("Edit", {key: path, first: old, second: new}),
        "write": ("Write", {key: path, "content": new}),
        "run": ("Bash", {"command": command}),
    }[kind]
    return (tool if style == "claude" else tool.lower()), given


def patch(path: str, old: str, new: str, *, adds: bool) -> str:
    """A patch in Codex' notation."""
    if adds:
        rows = [f"*** Add File: {path}", *(f"+{line}" for line in new.split("\n"))]
    else:
        was, now = old.split("\n"), new.split("\n")
        same = [line for line in was if line in now]
        rows = [f"*** Update File: {path}", "@@", *(f" {line}" for line in same)]
        rows += [f"-{line}" for line in was if line not in same]
        rows += [f"+{line}" for line in now if line not in same]
    return "\n".join(["*** Begin Patch", *rows, "*** End Patch"])
