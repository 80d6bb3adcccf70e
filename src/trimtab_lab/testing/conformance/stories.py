"""Conversations of coding agents as plain values, independent of any provider's format.

Every line is made of random words and numbers, so that any 40 chars of it identify the speaker.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

CHARS_PER_TOKEN = 3.2
"""The ratio for the texts made here; measured with o200k: 2.9 to 3.4."""

TOOLS = ("read", "bash", "grep", "edit", "write")
CODE = "code_execution"
"""The server's tool: it runs code that may call the client's tools."""
SEARCH = "find_tools"
"""A search for deferred tools, of the client's or of the server's."""
DEFERRED = ("trace", "profile")
"""Tools that are loaded only when a search has found them."""

_WORDS = (
    "request", "cache", "window", "token", "parser", "result", "session", "error", "index",
    "value", "import", "journal", "module", "branch", "commit", "header", "stream", "buffer",
    "socket", "worker", "thread", "client", "server", "lexer", "scope", "folder", "column",
)  # fmt: skip

_CONSTRAINTS = (
    "Never change the file config/{word}_{n}.toml.",
    "You must keep the public name {word}_{n}() as it is.",
    "Do not run the command make {word}-{n} on this machine.",
    "Always write the unit of {word} number {n} in the log line.",
)


@dataclass(frozen=True, slots=True)
class StoryCall:
    """A call and its result; None: the call was interrupted.

    ``by_server``: the provider runs it, so its result is in a message of the model; ``finds``: the
    deferred tool that its result loads.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    result: str | None
    error: bool = False
    by_server: bool = False
    finds: str = ""


@dataclass(frozen=True, slots=True)
class StoryTurn:
    """A turn of the user, of the system, or of the model with its calls and their results.

    ``lost``: the model's message is missing, but the results are there; ``early``: the results
    stand before it; ``answered``: calls of the turn before whose results the server gives in this
    one; ``effort``: the system's message says nothing and only sets this.
    """

    speaker: str
    text: str = ""
    calls: tuple[StoryCall, ...] = ()
    thinking: str = ""
    lost: bool = False
    early: bool = False
    answered: tuple[StoryCall, ...] = ()
    effort: str = ""

    @property
    def results(self) -> tuple[StoryCall, ...]:
        """The calls that the client answers."""
        return tuple(c for c in self.calls if c.result is not None and not c.by_server)

    @property
    def is_damaged(self) -> bool:
        """Whether a provider would refuse it."""
        return self.lost or self.early or any(call.result is None for call in self.calls)


@dataclass(frozen=True, slots=True)
class Story:
    """A conversation; ``summary``: the provider's summary of earlier, compacted turns; ``offers``:
    which of CODE and SEARCH it has beside TOOLS."""

    turns: tuple[StoryTurn, ...]
    system: str = "You are a careful engineer. Answer briefly."
    summary: str = ""
    constraints: tuple[str, ...] = ()
    offers: frozenset[str] = frozenset()

    @property
    def is_damaged(self) -> bool:
        """Whether a provider would refuse the unchanged conversation."""
        return any(turn.is_damaged for turn in self.turns)

    def until(self, end: int) -> Story:
        """The first ``end`` turns, with the constraints in them."""
        turns = self.turns[:end]
        user_words = " ".join(turn.text for turn in turns if turn.speaker == "user")
        constraints = tuple(text for text in self.constraints if text in user_words)
        return replace(self, turns=turns, constraints=constraints)

    def requests(self) -> list[Story]:
        """The conversation at each model call, oldest first.  What the system says in it is sent
        with what stands before it."""
        speakers = [*(turn.speaker for turn in self.turns), ""]
        ends = [
            number
            for number, turn in enumerate(self.turns, 1)
            if (turn.speaker != "model" or (turn.calls and not turn.early))
            and speakers[number] != "system"
        ][self.turns[0].speaker == "system" :]
        return [self.until(end) for end in ends]


@dataclass(slots=True)
class Teller:
    """Generates random texts, calls and turns; the same seed gives the same story."""

    random: random.Random
    _calls: int = 0
    constraints: list[str] = field(default_factory=list)

    def word(self) -> str:
        """One word."""
        return self.random.choice(_WORDS)

    def words(self, count: int) -> str:
        """So many words."""
        return " ".join(self.random.choice(_WORDS) for _ in range(count))

    def name(self) -> str:
        """An identifier that is unlikely to occur twice."""
        return f"{self.word()}_{self.random.randrange(10**5)}"

    def constraint(self) -> str:
        """A sentence that demands or forbids something; it is added to ``constraints``."""
        text = self.random.choice(_CONSTRAINTS)
        sentence = text.format(word=self.word(), n=self.random.randrange(10**4))
        self.constraints.append(sentence)
        return sentence

    def user(self, words: int = 20, constraint: bool = False) -> StoryTurn:
        """The user asks for something."""
        request = f"Please look at {self.name()} next: {self.words(words)}."
        return StoryTurn("user", f"{request} {self.constraint()}" if constraint else request)

    def output(self, tokens: int) -> str:
        """A tool's output: a listing, a log, rows of JSON or a traceback."""
        kind = self.random.randrange(4)
        lines: list[str] = []
        chars = int(tokens * CHARS_PER_TOKEN)
        while chars > 0:
            lines.append(self._line(kind, len(lines)))
            chars -= len(lines[-1]) + 1
        if kind == 2:
            return "[" + ",\n".join(lines) + "]"
        return "\n".join(lines) or "ok"

    def _line(self, kind: int, number: int) -> str:
        name, amount = self.name(), self.random.randrange(10**4)
        if kind == 0:
            return f"src/{name}.py:{amount}: {self.words(6)}"
        if kind == 1:
            level = "ERROR" if amount % 17 == 0 else "INFO"
            time = f"2026-05-01T12:{number % 60:02}:00Z"
            return f"{time} {level} {name} took {amount} ms {self.words(4)}"
        if kind == 2:
            row = {"id": number, "name": name, "amount": amount, "note": self.words(4)}
            return json.dumps(row)
        return f'  File "lib/{name}.py", line {amount}, in {self.word()}: {self.words(4)}'

    def call(self, tokens: int, tool: str = "", *, result: bool = True) -> StoryCall:
        """A call whose result has about so many tokens."""
        self._calls += 1
        tool = tool or self.random.choice(TOOLS[:3])
        arguments: dict[str, Any] = {"path": f"src/{self.name()}.py"}
        if tool == "bash":
            arguments = {"command": f"run {self.name()}", "timeout": self.random.randrange(9, 99)}
        output = self.output(tokens) if result else None
        error = result and self.random.randrange(12) == 0
        return StoryCall(f"call_{self._calls:04}", tool, arguments, output, error)

    def writing(self, tokens: int) -> StoryCall:
        """A call whose arguments have about so many tokens."""
        self._calls += 1
        arguments = {"path": f"src/{self.name()}.py", "content": self.output(tokens)}
        return StoryCall(f"call_{self._calls:04}", "write", arguments, "written")

    def again(self, call: StoryCall) -> StoryCall:
        """The same call once more, with the same result."""
        self._calls += 1
        return StoryCall(f"call_{self._calls:04}", call.tool, call.arguments, call.result)

    def running(self) -> StoryCall:
        """Code that the server runs, which calls tools of the client."""
        self._calls += 1
        arguments = {"code": f"print(await read('src/{self.name()}.py'))"}
        result = f"{self.name()} is {self.random.randrange(10**6)}"
        return StoryCall(f"call_{self._calls:04}", CODE, arguments, result, by_server=True)

    def finding(self, tool: str, *, by_server: bool) -> StoryCall:
        """A search that loads a deferred tool."""
        self._calls += 1
        arguments = {"pattern": tool}
        id = f"call_{self._calls:04}"
        return StoryCall(id, SEARCH, arguments, "", by_server=by_server, finds=tool)

    def system(self, *, effort: str = "") -> StoryTurn:
        """The system speaks in mid-conversation, or only sets an effort."""
        text = "" if effort else f"Of {self.name()} only the agents {self.words(9)} are left."
        return StoryTurn("system", text, effort=effort)

    def model(self, *calls: StoryCall, words: int = 8, thinking: bool = False) -> StoryTurn:
        """The model speaks and calls."""
        text = f"I look at {self.name()}: {self.words(words)}." if words else ""
        thinking_text = f"Perhaps {self.name()} is at fault: {self.words(12)}." if thinking else ""
        return StoryTurn("model", text, calls, thinking_text)

    def story(self, turns: list[StoryTurn], summary: str = "") -> Story:
        """The story of these turns."""
        offers = {call.tool for turn in turns for call in turn.calls} & {CODE, SEARCH}
        return Story(
            tuple(turns), summary=summary, constraints=tuple(self.constraints),
            offers=frozenset(offers),
        )  # fmt: skip


def texts(story: Story) -> Iterator[tuple[str, str]]:
    """(speaker, text) of every text of user, model and tools."""
    for turn in story.turns:
        yield turn.speaker, turn.text
        if turn.thinking:
            yield "model", turn.thinking
        for call in turn.calls:
            yield from (("model", v) for v in call.arguments.values() if isinstance(v, str))
            if call.result is not None:
                yield "tool", call.result
