"""Work out from a call's arguments what it does: its signature, the files it names, whether it
reads or writes them.

The argument keys and tool names known here are those that coding agents use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from posixpath import normpath
from typing import Any, Literal, NamedTuple

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import parse

Action = Literal["read", "write", "edit", "look", "other"]
"""``look`` reads something other than a file (search, listing); ``other`` may have side effects."""


class CallArguments(NamedTuple):
    """What the arguments of one call say.

    ``signature``: tool and arguments as one text, without nulls and with sorted keys.  ``files``:
    the files it reads or writes, with forward slashes.  ``first``/``last``: the lines that a read
    requests, from 1 and inclusive (None: to the end).  ``old``: the text that an edit replaces.
    """

    signature: str
    action: Action
    files: tuple[str, ...] = ()
    first: int = 1
    last: int | None = None
    old: str = ""


PATH_KEYS = frozenset(
    ("path", "filepath", "absolutepath", "notebookpath", "targetfile", "filename", "file", "uri")
)
OLD_KEYS = frozenset(("oldstring", "oldtext", "oldstr"))
CONTENT_KEYS = frozenset(("content", "contents", "filetext", "text"))
_PATCH_FILE = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?|--- (?:a/)?)"
    r"([^\t\r\n]+)",
    re.MULTILINE,
)
PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "\n+++ ")

_READS = frozenset(("read", "readfile", "readtextfile", "view", "viewfile", "openfile", "fsread"))
_WRITES = frozenset(("write", "writefile", "createfile", "fswrite", "create"))
_EDITS = frozenset(("edit", "editfile", "multiedit", "strreplace", "replace", "searchreplace"))
_BY_COMMAND = frozenset(("strreplaceeditor", "strreplacebasededittool", "texteditor"))
_COMMANDS: dict[str, Action] = {"view": "read", "create": "write", "str_replace": "edit"}
_LOOKS = frozenset(
    ("grep", "glob", "ls", "get", "list", "search", "read", "view", "find", "fetch", "query",
     "describe", "show", "count", "lookup", "retrieve", "websearch", "webfetch", "inspect")
)  # fmt: skip
_CHANGES = frozenset(
    ("replace", "write", "edit", "update", "delete", "set", "create", "remove", "send", "run",
     "execute", "exec", "apply", "patch", "insert", "move", "cancel", "book", "save", "post", "put")
)  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_SHELLS = frozenset(("bash", "shell", "execcommand", "terminal", "runshellcommand", "powershell"))
_FILE = r"""(?P<file>'[^'$`]+'|"[^"$`\\]+"|[^\s'"$`|&;<>*?(){}\[\]\\]+)"""
_LINES = r"sed -n '?(?P<a>\d{1,9}),(?P<b>\d{1,9})p'?"
_SHELL_READS = (
    re.compile(rf"(?:cat|cat -n|nl -ba) {_FILE}"),
    re.compile(rf"{_LINES} {_FILE}"),
    re.compile(rf"(?:cat -n|nl -ba) {_FILE} ?\| ?{_LINES}"),
)
_HARMLESS = frozenset(
    ("cat", "head", "tail", "nl", "wc", "ls", "rg", "grep", "pwd", "stat", "file", "cut")
)
_GIT_LOOKS = frozenset(("status", "diff", "log", "show", "blame", "grep", "ls-files", "rev-parse"))
_QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
_STAGE = re.compile(r"\|\||[|;\n]")


def read_call(tool: str, text: str, *, free: bool = False) -> CallArguments:
    """Classify one call by its tool and arguments; ``free``: the input is plain text, not JSON."""
    try:
        tree = None if free else parse(text)
    except InvalidRequest:
        tree = None
    if not isinstance(tree, dict):
        return CallArguments(f"{tool}::{text}", "other", files=tuple(_patched(text)))
    signature = f"{tool}::{_canonical(text)}"
    files = named_files(tree)
    action = _action(tool, tree)
    if action == "read":
        first, last = _lines(tree)
        return CallArguments(signature, action, files, first, last)
    if action == "edit":
        return CallArguments(signature, action, files, old=_joined(tree, OLD_KEYS))
    if is_shell(tool):
        return _shell(signature, tree, files)
    return CallArguments(signature, action, files)


def _canonical(text: str) -> str:
    """The arguments as JSON without nulls and with keys sorted at every depth."""
    tree = json.loads(text.removeprefix("\ufeff"), object_hook=_without_nulls)
    return json.dumps(tree, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if inner is not None}


def named_files(arguments: Any) -> tuple[str, ...]:
    """Files that a call's arguments name, under the usual keys or in a patch, with forward
    slashes."""
    names: dict[str, None] = {}
    for key, value in strings_in(arguments):
        if key in PATH_KEYS or (key.endswith("s") and key[:-1] in PATH_KEYS):
            names[slashed(value)] = None
        elif any(mark in value for mark in PATCH_MARKS):
            names.update(dict.fromkeys(_patched(value)))
    return tuple(names)


def written_text(text: str) -> str:
    """The new content of the file from the arguments of a write; "" if they do not hold it."""
    try:
        return _joined(parse(text), CONTENT_KEYS)
    except InvalidRequest:
        return ""


def files_in_text(text: str, *, free: bool = False) -> tuple[str, ...]:
    """``named_files`` for arguments given as text; ``free``: plain text, not JSON."""
    try:
        tree = None if free else parse(text)
    except InvalidRequest:
        tree = None
    return tuple(_patched(text)) if tree is None else named_files(tree)


def _patched(text: str) -> Iterator[str]:
    """The files that a patch adds, updates, deletes or moves to."""
    if any(mark in text for mark in PATCH_MARKS):
        for match in _PATCH_FILE.finditer(text):
            if match[1] != "/dev/null":
                yield slashed(match[1].strip())


def slashed(path: str) -> str:
    path = path.removeprefix("file://").replace("\\", "/")
    return normpath(path) if path else path


def strings_in(tree: Any) -> Iterator[tuple[str, str]]:
    """(key, value) of every string, with keys as ``plain_key`` writes them.  The items of an array
    have the array's key."""
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            stack += [(plain_key(name), inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(key, inner) for inner in reversed(value)]


def plain_key(name: str) -> str:
    """``file_path``, ``filePath`` and ``file-path`` → ``filepath``."""
    return name.lower().replace("_", "").replace("-", "")


def _joined(tree: Any, keys: frozenset[str]) -> str:
    return "\n".join(value for key, value in strings_in(tree) if key in keys)


def _action(tool: str, tree: dict[str, Any]) -> Action:
    last = re.split(r"__|[./:]", tool)[-1] or tool
    name = plain_key(last)
    keys = {plain_key(key) for key in tree}
    if name in _BY_COMMAND:
        return _COMMANDS.get(str(tree.get("command")), "other")
    names_file = bool(keys & PATH_KEYS)
    if name in _READS and names_file:
        return "read"
    if name in _WRITES and names_file and keys & CONTENT_KEYS:
        return "write"
    if name in _EDITS and names_file:
        return "edit"
    words = [word.lower() for word in _WORD.findall(last.replace("_", " ").replace("-", " "))]
    looks = words and (words[0] in _LOOKS or name in _LOOKS) and not _CHANGES & set(words)
    return "look" if looks else "other"


def _lines(tree: dict[str, Any]) -> tuple[int, int | None]:
    """First and last line that a read requests."""
    plain = {plain_key(key): value for key, value in tree.items()}
    window = plain.get("viewrange")
    if isinstance(window, list) and len(window) == 2:
        first, last = _number(window[0]), _number(window[1])
    else:
        first, last = (
            next((n for key in keys if (n := _number(plain.get(key))) is not None), None)
            for keys in (("startline", "linestart", "offset"), ("endline", "lineend"))
        )
        count = _number(plain.get("limit"))
        if last is None and count is not None:
            last = max(first or 1, 1) + count - 1
    return max(first or 1, 1), last if last is None or last > 0 else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if type(value) is int else None


def is_shell(tool: str) -> bool:
    """Whether a tool runs commands."""
    return plain_key(tool) in _SHELLS


def _shell(signature: str, tree: dict[str, Any], files: tuple[str, ...]) -> CallArguments:
    """Classify a shell command: "read" of one file, "look" if it changes nothing, else "other"."""
    plain = {plain_key(key): value for key, value in tree.items()}
    command = plain.get("command", plain.get("cmd"))
    if isinstance(command, list):
        command = command[-1] if command and command[:-1] in (["bash", "-lc"], ["sh", "-c"]) else ""
    if not isinstance(command, str) or len(command) > 4_000:
        return CallArguments(signature, "other", files)
    folder = plain.get("workdir", plain.get("cwd", ""))
    for pattern in _SHELL_READS:
        if match := pattern.fullmatch(command.strip()):
            fields = match.groupdict()
            name = fields["file"].strip("'\"")
            path = f"{folder}/{name}" if folder and not name.startswith("/") else name
            first, last = int(fields.get("a") or 1), int(fields["b"]) if fields.get("b") else None
            return CallArguments(signature, "read", (slashed(path),), max(first, 1), last)
    return CallArguments(signature, "look" if _only_looks(command) else "other", files)


def _only_looks(command: str) -> bool:
    """Whether every program in a command line is known to be read-only."""
    bare = _QUOTED.sub("q", command.replace("2>&1", "").replace("2>/dev/null", ""))
    bare = bare.replace("&&", ";")
    if any(sign in bare for sign in "<>`$&\\(){}"):
        return False
    stages = [stage.split() for stage in _STAGE.split(bare)]
    return bool(stages) and all(_looks(words) for words in stages)


def _looks(words: list[str]) -> bool:
    if words[:1] == ["git"]:
        return len(words) > 1 and words[1] in _GIT_LOOKS
    if words[:1] == ["sed"]:
        return words[1:2] == ["-n"] and "-i" not in words
    if words[:1] == ["cd"]:
        return True
    return bool(words) and words[0] in _HARMLESS
