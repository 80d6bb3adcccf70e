"""A session of an agent whose oldest steps are folded into notes, as a log; and a liar's notes.

Knows Anthropic's messages.  Does not know who judges the notes.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from trimtab.logs.recording import Recording

NOTE_WINDOW = 3_000
_HEAD = re.compile(r"^(\d+) (Read|Edit) .*$", re.MULTILINE)


def _step(number: int, tool: str, result: str, **given: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
    return [
        {"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]},
    ]  # fmt: skip


def noted_messages(steps: int = 14) -> list[dict[str, Any]]:
    """Files are read and edited in turn; each has lines that no other has."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Raise the rates everywhere."}]
    for n in range(steps):
        path = f"src/part{n // 2}.py"
        if n % 2:
            old, new = f"rate_{n // 2} = load_rate({n // 2})", f"rate_{n // 2} = raised_rate({n})"
            given = {"file_path": path, "old_string": old, "new_string": new}
            messages += _step(n, "Edit", "The file was updated.", **given)
        else:
            lines = [
                f"error {n // 2}: value_{n}_{k} is not known to part{n // 2}" for k in range(40)
            ]
            lines.insert(20, f"rate_{n // 2} = load_rate({n // 2})")
            messages += _step(n, "Read", "\n".join(lines), file_path=path)
    return [*messages, {"role": "assistant", "content": "All rates are raised."}]


def noted_recording() -> Recording:
    """The session as ``replay`` reads it."""
    return Recording("notes", "notes#0", "anthropic", noted_messages(), model="claude-opus-4-5")


def noted_log(folder: Path) -> Path:
    """The session as a log of Claude Code."""
    path = folder / "session.jsonl"
    lines = [
        {
            "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "s1",
            "type": message["role"],
            "message": {**message, "model": "claude-opus-4-5", "id": f"m{n}"},
        }
        for n, message in enumerate(noted_messages())
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def with_lies(request: dict[str, Any]) -> dict[str, Any]:
    """The request with the first two files of each note exchanged, wherever heads name them."""
    lying = copy.deepcopy(request)
    for message in lying["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            text = block.get("content")
            if block["type"] == "tool_result" and "earlier steps" in str(text)[:40]:
                block["content"] = _HEAD.sub(_other_file, text)
    return lying


def _other_file(head: re.Match[str]) -> str:
    return re.sub(r"part(\d+)", lambda file: f"part{int(file[1]) ^ 1}", head[0])
