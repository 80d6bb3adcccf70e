"""One source tree under measurement: told over a pipe what to run, answers with milliseconds.

    PYTHONPATH=TREE python bench/paired_worker.py

Started by ``paired.py``.  Reads one JSON list a line, [method, arguments …] of ``Worker``, and
writes what it returns as one line.  Uses only ``Session``, ``fit`` and their reports, so that it
runs on any tree.
"""

from __future__ import annotations

import gc
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import trimtab

TURNS = 500
"""Model turns of the conversation, two messages each: 1,000 messages, about 200k tokens."""
ROOM = 400
"""Turns that may follow."""
BEGUN = 350
"""Turns with which a session begins whose batches are measured; one batch later it is as any."""
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {"window": 10**7},
    "standing": {"window": 128_000},
    "many": {"window": 128_000, "preset": "in-place"},
    "small": {"window": 40_000},
}
"""``standing``: a fold of everything old; ``many``: hundreds of edits, each at its place."""
COUNTED: dict[str, Any] = {"counter": "o200k"}  # as trees had it before settings were one value
if hasattr(trimtab, "Settings"):
    COUNTED = {"settings": trimtab.Settings(**COUNTED)}
WORDS: list[str] = re.findall(
    r"\w+",
    """
    request cache window token parser result session error index value return import class journal
    module branch commit header stream buffer socket worker thread client server queue retry
    timeout schema column record handler config loader writer reader cursor layout
    """,
)
TOOLS = ("Read", "Grep", "Bash", "Edit", "Glob", "Write", "Fetch", "Task")


# --- the conversation ----------------------------------------------------------------------------


class Turns:
    """A made-up coding session, the same for the same seed: what the model says, calls and gets.

    Results have 800 to 2,000 characters times ``size``.
    """

    def __init__(self, seed: int, count: int = TURNS + ROOM, size: float = 1.0) -> None:
        self.count, self._size = count, size
        self._random = random.Random(seed)
        self.task = f"Find out why number {seed} of the workers loses its token, and mend it."
        self._paths = [f"src/{self._word()}/{self._word()}_{n}.py" for n in range(80)]

    def _word(self) -> str:
        return self._random.choice(WORDS)

    def _name(self) -> str:
        return f"{self._word()}_{self._word()}{self._random.randrange(100)}"

    def _code(self, size: int) -> str:
        lines, pick = list[str](), self._random
        while size > 0:
            line = pick.choice((
                "def {0}(self, {1}: str, {2}: int = {3}) -> {4}:",
                "    if {0}.{1} is None and {2} < {3}:",
                "        return self.{0}({1}, {2}[{3}])",
                "    {0} = {1}.get({2!r}, {3})  # {4}",
                "    raise ValueError(f'{0} of {1}: {{{2}}} is no {4}')",
                "    for {0}, {1} in enumerate({2}[{3}:]):",
                "    log.debug('%s {1} %d', {0}, {3})",
            )).format(
                self._name(), self._word(), self._word(), pick.randrange(5000), self._word()
            )  # fmt: skip
            lines.append(line)
            size -= len(line) + 1
        return "\n".join(lines)

    def _lines(self, size: int) -> str:
        lines, pick = list[str](), self._random
        while size > 0:
            line = pick.choice((
                "{0}:{1}: {2} = {3}({4})",
                "tests/test_{4}.py::test_{2} PASSED [{1}%]",
                "E       AssertionError: {2} != {3} in {0}, line {1}",
                "2026-03-0{5} 12:{6}:{6} INFO {4} {2} took {1} ms",
                "{0}  {1} bytes  {3}",
            )).format(
                pick.choice(self._paths), pick.randrange(2000), self._name(), self._name(),
                self._word(), pick.randrange(1, 10), pick.randrange(10, 60),
            )  # fmt: skip
            lines.append(line)
            size -= len(line) + 1
        return "\n".join(lines)

    def __iter__(self) -> Iterator[tuple[str, str, dict[str, Any], str]]:
        """For each turn: words, tool, arguments, result."""
        pick = self._random
        for number in range(self.count):
            tool = TOOLS[min(int(pick.expovariate(0.6)), len(TOOLS) - 1)]
            path = pick.choice(self._paths)
            size = int(self._size * (800 + 1200 * pick.random() ** 2))
            given: dict[str, Any] = {"path": path, "offset": number}
            if tool in ("Edit", "Write"):
                given = {"path": path, "text": self._code(300)}
                size = int(self._size * 800)
            elif tool in ("Bash", "Grep"):
                given = {"command": f"grep -rn {self._name()} {path} | head -{number}"}
            said = f"The {self._word()} of {path} may hold {self._name()}; I look at it next."
            result = self._code(size) if tool in ("Read", "Write", "Edit") else self._lines(size)
            yield said, tool, given, result


def anthropic(turns: Turns) -> dict[str, Any]:
    """The session as an Anthropic request."""
    tools = [
        {"name": name, "description": f"{name}: {' '.join(WORDS)}.",
         "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
        for name in TOOLS
    ]  # fmt: skip
    messages: list[dict[str, Any]] = [{"role": "user", "content": turns.task}]
    for number, (said, tool, given, result) in enumerate(turns):
        id = f"toolu_{number:06}"
        call = {"type": "tool_use", "id": id, "name": tool, "input": given}
        answer = {"type": "tool_result", "tool_use_id": id, "content": result}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": said}, call]},
            {"role": "user", "content": [answer]},
        ]
    return {"model": "claude-sonnet-4-5", "max_tokens": 4096, "system": " ".join(WORDS * 20),
            "tools": tools, "messages": messages}  # fmt: skip


def openai_chat(turns: Turns) -> dict[str, Any]:
    """The same as a request of OpenAI's Chat Completions."""
    tools = [
        {"type": "function", "function": {
            "name": name, "description": f"{name}: {' '.join(WORDS)}.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
        for name in TOOLS
    ]  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": " ".join(WORDS * 20)},
        {"role": "user", "content": turns.task},
    ]
    for number, (said, tool, given, result) in enumerate(turns):
        id = f"call_{number:06}"
        call = {"id": id, "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given)}}  # fmt: skip
        messages += [
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": result},
        ]
    return {"model": "gpt-5.1", "max_completion_tokens": 4096, "tools": tools,
            "messages": messages}  # fmt: skip


FORMATS: dict[str, Callable[[Turns], dict[str, Any]]] = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
}


# --- sessions ------------------------------------------------------------------------------------


class Walk:
    """A session that is played turn by turn, as an agent's client would send it."""

    def __init__(
        self, format: str, edits: str, turns: Turns | None = None, *, as_bytes: bool = False
    ) -> None:
        turns = turns or Turns(1)
        self.whole, self.as_bytes = FORMATS[format](turns), as_bytes
        self.messages = self.whole["messages"]
        self.head = len(self.messages) - 2 * turns.count
        self.session = trimtab.Session(**COUNTED, **SETTINGS[edits])
        self.turn, self.batches = 0, list[int]()
        self.done: Any = None

    def request(self, turn: int) -> Any:
        """What the client sends after so many turns of the model."""
        body = {**self.whole, "messages": self.messages[: self.head + 2 * turn]}
        if not self.as_bytes:
            return body
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()

    def play(self, turn: int, *, first: int | None = None) -> None:
        """Go on to a turn, every one of them fitted; ``first``: where a session begins."""
        start = self.turn + 1 if first is None else first
        for number in range(start, turn + 1):
            self.one(number)

    def one(self, turn: int) -> float:
        """Milliseconds of the turn."""
        request = self.request(turn)
        spent, self.done = timed(lambda: self.session.fit(request))
        self.turn = turn
        if any(edit.new for edit in self.done.report.edits):
            self.batches.append(turn)
        return spent


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of processor time, and what came of it."""
    start = time.process_time()
    done = call()
    return 1000 * (time.process_time() - start), done


class Worker:
    """What ``paired.py`` may ask for."""

    def __init__(self) -> None:
        self.walk: Walk | None = None
        self.due: list[int] = []

    def where(self) -> str:
        """The file of the package that is measured."""
        return str(trimtab.__file__)

    def prepare(self, format: str, edits: str, as_bytes: bool) -> dict[str, Any]:
        """A session of 500 turns; one with edits was played from 250 on, batch by batch."""
        self.walk = walk = Walk(format, edits, as_bytes=as_bytes)
        walk.play(TURNS, first=TURNS - 1 if edits == "none" else 250)
        report = walk.done.report
        return {"tokens": report.tokens_before, "edits": len(report.edits),
                "batches": len(walk.batches)}  # fmt: skip

    def turn(self) -> dict[str, float]:
        """One new turn that makes no batch, and the same request once more."""
        walk = self.walk
        assert walk is not None
        while True:
            had = len(walk.batches)
            gc.collect()
            spent = walk.one(walk.turn + 1)
            if len(walk.batches) == had:
                break
        request = walk.request(walk.turn)  # bytes: equal, but another object
        gc.collect()
        again, _ = timed(lambda: walk.session.fit(request))
        return {"turn": spent, "again": again, "at": walk.turn}

    def find_batches(self, format: str, edits: str) -> list[int]:
        """Play a session once, so that it is known which of its turns make a batch."""
        walk = Walk(format, edits)
        walk.play(TURNS + 60, first=BEGUN)
        self.walk, self.due = None, [turn for turn in walk.batches if turn > BEGUN + 2]
        return self.due

    def before_cut(self, format: str, edits: str, number: int) -> None:
        """A session played up to the next turn that makes a batch."""
        turn, walk = self.due[number % len(self.due)], self.walk
        if walk is None or walk.turn >= turn:
            self.walk = walk = Walk(format, edits)
            walk.play(turn - 1, first=BEGUN)
        walk.play(turn - 1)

    def batch(self) -> dict[str, float]:
        """That turn."""
        walk = self.walk
        assert walk is not None
        gc.collect()
        spent = walk.one(walk.turn + 1)
        assert walk.batches[-1] == walk.turn, "no batch was made"
        return {"batch": spent, "at": walk.turn}

    def unseen(self, format: str, edits: str, seed: int) -> None:
        """A conversation of which nothing was seen before."""
        self.walk = Walk(format, edits, Turns(1_000 + seed))

    def first_sight(self, edits: str) -> dict[str, float]:
        """All of it at once."""
        assert self.walk is not None
        request = self.walk.request(TURNS)
        gc.collect()
        spent, _ = timed(lambda: trimtab.fit(request, **COUNTED, **SETTINGS[edits]))
        return {"first": spent}

    def begin(self, format: str, edits: str, count: int) -> None:
        """A session of so many turns with short results, not yet played."""
        self.walk = Walk(format, edits, Turns(2_000, count, 0.33))

    def go_on(self, turns: int) -> float:
        """What its next turns cost in all."""
        walk = self.walk
        assert walk is not None
        gc.collect()
        return sum(walk.one(walk.turn + 1) for _ in range(turns))

    def rest(self) -> None:
        """Let go of everything."""
        self.walk = None
        gc.collect()


def main() -> None:
    """Answer line by line."""
    worker = Worker()
    for line in sys.stdin:
        name, *given = json.loads(line)
        print(json.dumps(getattr(worker, name)(*given)), flush=True)


if __name__ == "__main__":
    main()
