"""Seven hard cases, built in either format from one plain description.

Knows how a coding session looks.  Does not know trimtab.
"""

from __future__ import annotations

import json
import random
from typing import Any

CASES = (
    "long trace",
    "one giant last result",
    "ten giant parallel results in the last turn",
    "giant call arguments",
    "giant first user message",
    "orphan results in the input",
    "an unanswered call in the input",
)

Turn = tuple[str, list[tuple[str, str, dict[str, Any], str | None]]]
"""(words of the model, [(id, tool, arguments, result or None)])"""

WORDS = [
    "request", "cache", "window", "token", "parser", "result", "session", "error", "index",
    "value", "return", "import", "class", "journal", "module", "branch", "commit", "header",
    "stream", "buffer", "socket", "worker", "thread", "client", "server",
]  # fmt: skip


def _prose(random_: random.Random, words: int) -> str:
    return " ".join(random_.choice(WORDS) for _ in range(words))


def _listing(random_: random.Random, lines: int) -> str:
    return "\n".join(
        f"src/{random_.choice(WORDS)}_{n}.py:{random_.randrange(999)}: {_prose(random_, 8)}"
        for n in range(lines)
    )


def steps(random_: random.Random, count: int, lines: int = 40) -> list[Turn]:
    """A run of ordinary steps, some with parallel calls."""
    turns: list[Turn] = []
    for number in range(count):
        calls = []
        for index in range(1 + (number % 4 == 0) * 2):
            tool = random_.choice(["Read", "Bash", "Grep", "Edit"])
            arguments = {"path": f"src/{random_.choice(WORDS)}.py", "line": number}
            calls.append((f"call_{number}_{index}", tool, arguments, _listing(random_, lines)))
        turns.append((_prose(random_, 12) if number % 3 else "", calls))
    return turns


def conversation(name: str, format: str, seed: int = 1) -> list[dict[str, Any]]:
    """The messages of one case."""
    random_ = random.Random(seed)
    task = "Find why the parser loses the last token. " + _prose(random_, 30)
    turns = steps(random_, 60 if name == CASES[0] else 6)
    if name == CASES[1]:
        turns[-1] = ("", [("last", "Bash", {"command": "make test"}, _listing(random_, 4000))])
    elif name == CASES[2]:
        giant = [(f"p{n}", "Read", {"path": f"f{n}"}, _listing(random_, 800)) for n in range(10)]
        turns[-1] = ("Reading all of them.", giant)
    elif name == CASES[3]:
        for n in range(6):
            content = {"path": f"new_{n}.py", "content": _listing(random_, 900)}
            turns.append(("", [(f"w{n}", "Write", content, "ok")]))
    elif name == CASES[4]:
        task = "Summarize this log.\n" + _listing(random_, 4000)
    elif name == CASES[6]:
        words, calls = turns[3]
        turns[3] = (words, [(*calls[0][:3], None), *calls[1:]])
    messages = (_chat if format == "openai-chat" else _anthropic)(task, turns)
    if name == CASES[5]:
        messages = _orphaned(messages, format)
    return messages


def _chat(task: str, turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": task},
    ]
    for words, calls in turns:
        messages.append({
            "role": "assistant", "content": words or None,
            "tool_calls": [
                {"id": i, "type": "function",
                 "function": {"name": tool, "arguments": json.dumps(arguments)}}
                for i, tool, arguments, _ in calls
            ],
        })  # fmt: skip
        messages += [
            {"role": "tool", "tool_call_id": i, "content": result}
            for i, _, _, result in calls
            if result is not None
        ]
    return messages


def _anthropic(task: str, turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for words, calls in turns:
        said = [{"type": "text", "text": words}] if words else []
        used = [
            {"type": "tool_use", "id": i, "name": tool, "input": arguments}
            for i, tool, arguments, _ in calls
        ]
        messages.append({"role": "assistant", "content": said + used})
        results = [
            {"type": "tool_result", "tool_use_id": i, "content": result}
            for i, _, _, result in calls
            if result is not None
        ]
        messages.append({"role": "user", "content": results or [{"type": "text", "text": "go on"}]})
    return messages


def _orphaned(messages: list[dict[str, Any]], format: str) -> list[dict[str, Any]]:
    """The same without the first two model messages: their results answer nothing."""
    models = [n for n, m in enumerate(messages) if m["role"] == "assistant"][:2]
    return [m for n, m in enumerate(messages) if n not in models]
