"""The policies that are compared, each a function from the history so far to what is sent."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trimtab
from answerable.reader import Recaller
from answerable.tokens import count, of_message
from answerable.worlds import DECLARED, MODEL, USER, Question, World
from trimtab.logs.recording import Recording
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.recording_index import RecordingIndex

MODEL_NAME = "gpt-5.1"
TRIGGER = 0.9
"""Share of the window at which the others act, as ``trimtab replay`` has them."""
COUNTED = 300
"""Tokens by which the count of ``trimtab replay`` may differ from that here."""
SUMMARY_CHARS = 6_000
"""Of a scripted summary, some 1,500 tokens: what models write there."""


@dataclass(frozen=True)
class Sent:
    """What a policy sends; ``asked``: tokens in and out of calls to a model of its own."""

    request: dict[str, Any]
    recaller: Recaller | None = None
    asked: tuple[int, int] = (0, 0)


Step = Callable[[list[dict[str, Any]]], Sent]
"""Called with the whole history before each model call, in order."""


def body(messages: list[dict[str, Any]], tools: Sequence[Any] = DECLARED) -> dict[str, Any]:
    """A request."""
    declared = {"tools": list(tools)} if tools else {}
    return {"model": MODEL_NAME, "messages": messages, **declared}


def start(name: str, world: World, window: int) -> Step:
    """Begin a policy over one world."""
    if name.startswith("trimtab"):
        return _trimtab(name.partition(":")[2] or "balanced", window)
    if name == "head-tail":
        return _head_tail(window)
    if name == "langchain-clear":
        return _langchain_clear(window)
    if name in ("summarize", "compaction"):
        return _summarized(window, MODEL if name == "compaction" else USER)
    return _replayed(name, world, window)


def last(name: str, world: World, window: int) -> Sent:
    """What a policy sends at the end, after all that it sent before."""
    step, sent = start(name, world, window), None
    for turn in world.turns:
        sent = step(world.messages[:turn])
    assert sent is not None, "a world has turns"
    return sent


def equal(name: str, world: World, window: int) -> Sent:
    """The last request of a session without tools, with as many tokens as trimtab:balanced sends.

    ``name`` is a key of ``EQUAL``, or a preset of trimtab's, which is the measure of none else.
    """
    preset: Any = name.partition(":")[2] if name.startswith("trimtab") else "balanced"
    session = trimtab.Session(window=window, reserve=0, preset=preset, clock=lambda: 0.0)
    request: dict[str, Any] = {}
    for turn in world.turns:
        request = dict(session.fit(body(world.messages[:turn], ())).request)
    if name in EQUAL:
        request = body(EQUAL[name](world.messages, count(request)), ())
    return Sent(request)


NAMES = (
    "none", "drop-oldest-safe", "mask-old-observations", "langchain-clear", "summarize",
    "compaction", "head-tail", "trimtab:balanced", "trimtab:economy",
    "trimtab:in-place",
)  # fmt: skip
ALONE = "fact-alone"
PAIRED = ("trimtab:balanced", "head-tail", "oldest-out", ALONE)
"""What ``model_reader`` asks in pairs."""
SHOWN = {
    "none": "nothing is done", "drop-oldest-safe": "safe cut: the oldest steps go",
    "mask-old-observations": "old results masked", "langchain-clear": "LangChain clears results",
    "summarize": "summary in a user message (scripted)",
    "compaction": "native compaction (simulated)",
    "head-tail": "head and tail of each result, as many tokens as trimtab:balanced",
    "oldest-out": "the oldest steps go, as many tokens as trimtab:balanced",
    "fact-alone": "only the messages that name what is asked about",
}  # fmt: skip


def available(name: str) -> bool:
    """Whether what it needs is installed."""
    return name != "langchain-clear" or importlib.util.find_spec("langchain") is not None


def _replayed(name: str, world: World, window: int) -> Step:
    """A policy of ``trimtab replay``."""
    recording = Recording("", world.name, "openai-chat", world.messages, model=MODEL_NAME,
                          tools=DECLARED)  # fmt: skip
    step = find(name).start(RecordingIndex(recording), window - COUNTED)
    return lambda messages: Sent(step(body(messages)).request)


def _langchain_clear(window: int) -> Step:
    """LangChain's own ``ClearToolUsesEdit``, as its middleware applies it."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))
    import worker

    shrink = worker.langchain_clear(window)

    def step(messages: list[dict[str, Any]]) -> Sent:
        kept = shrink(messages)["messages"]
        return Sent(body([messages[one] if isinstance(one, int) else one for one in kept]))

    return step


# --- summaries ---


SHARES = {USER: 0.5, MODEL: 0.25, "tool": 0.25}
"""Of a summary: what each had to say."""


def _lines(messages: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What a scripted summary takes from messages: the words of user and model, and of each result
    the beginning of its third line, where the first ones are mere headings."""
    said: dict[str, list[str]] = {role: [] for role in SHARES}
    for message in messages:
        text = str(message.get("content") or "")
        if message["role"] == "tool":
            text = " ".join(text.split("\n")[2:3])[:120]
        if message["role"] in said and text:
            said[message["role"]].append(text)
    return said


def script(said: Mapping[str, list[str]]) -> str:
    """A scripted summary: of each speaker the newest lines, as far as their share goes."""
    rows = ["Here is a summary of the conversation to date:"]
    for role, lines in said.items():
        room, kept = SHARES[role] * SUMMARY_CHARS, list[str]()
        for line in reversed(lines):
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        rows += reversed(kept)
    return "\n".join(rows)


def _summarized(window: int, speaker: str) -> Step:
    """At the trigger all but the newest half window becomes a summary (USER: as LangChain's
    middleware writes it), or all of it (MODEL: as a provider's compaction block)."""
    said: dict[str, list[str]] = {role: [] for role in SHARES}
    given: list[dict[str, Any]] = []
    taken = 1

    def step(messages: list[dict[str, Any]]) -> Sent:
        nonlocal given, taken
        asked = (0, 0)
        sent = [messages[0], *given, *messages[taken:]]
        if count(body(sent)) > TRIGGER * window:
            last = len(messages) if speaker == MODEL else _cut(messages, taken, window // 2)
            asked = (count(body([*given, *messages[taken:last]])), 0)
            for role, lines in _lines(messages[taken:last]).items():
                said[role] += lines
            given, taken = [{"role": speaker, "content": script(said)}], last
            asked = asked[0], of_message(given[0])
            sent = [messages[0], *given, *messages[taken:]]
        return Sent(body(sent), asked=asked)

    return step


def _cut(messages: list[dict[str, Any]], first: int, keep: int) -> int:
    """Where the newest messages of so many tokens begin; never at a result."""
    at = len(messages) - 1
    while at > first and count(body(messages[at - 1 :])) <= keep:
        at -= 1
    while at < len(messages) and messages[at]["role"] == "tool":
        at += 1
    return at


# --- ours ---


@dataclass(frozen=True)
class _SessionRecaller:
    """The recall tool and the search of a session, as a model is offered them."""

    session: trimtab.Session

    def recall(self, arguments: Mapping[str, Any]) -> str:
        """See ``Recaller``."""
        call = {"id": "r", "type": "function",
                "function": {"name": "recall", "arguments": json.dumps(arguments)}}  # fmt: skip
        result = trimtab.recall_tool("openai-chat").execute(self.session, call)
        return str(result["content"])

    def search(self, words: str) -> list[tuple[str, int, int, str]]:
        """See ``Recaller``."""
        return [(hit.handle, hit.start, hit.end, hit.text) for hit in self.session.search(words)]


def _trimtab(preset: Any, window: int) -> Step:
    """A session with the recall tool declared, everything else at its default."""
    session = trimtab.Session(
        window=window, reserve=0, preset=preset, recall=True, clock=lambda: 0.0
    )
    tool = trimtab.recall_tool("openai-chat").definition
    recaller = _SessionRecaller(session)
    return lambda messages: Sent(session.fit(body(messages, [*DECLARED, tool])).request, recaller)


# --- head and tail ---


def head_tail(messages: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Of each result of more than ``most`` characters its beginning and its end are left."""
    half = most // 2

    def text(whole: str) -> str:
        left_out = f"\n[{len(whole) - 2 * half:,} characters left out]\n"
        cut = whole[:half] + left_out + whole[len(whole) - half :]
        return cut if len(cut) < len(whole) else whole

    return [{**m, "content": text(m["content"])} if m["role"] == "tool" else m for m in messages]


def _head_tail(window: int) -> Step:
    """Wherever trimtab:balanced makes a cut, all results so far are cut to head and tail, as long
    as they may be for the same number of tokens; until its next cut they stay so."""
    session = trimtab.Session(window=window, reserve=0, recall=True, clock=lambda: 0.0)
    tool = trimtab.recall_tool("openai-chat").definition
    kept: list[dict[str, Any]] = []
    taken = 0

    def step(messages: list[dict[str, Any]]) -> Sent:
        nonlocal kept, taken
        fitted = session.fit(body(messages, [*DECLARED, tool]))
        sent = [*kept, *messages[taken:]]
        if any(edit.new for edit in fitted.report.edits) or count(body(sent)) > window:
            kept, taken = _as_large(messages, count(fitted.request)), len(messages)
            sent = kept
        return Sent(body(sent))

    return step


def _as_large(
    messages: list[dict[str, Any]], size: int, tools: Sequence[Any] = DECLARED
) -> list[dict[str, Any]]:
    """Head and tail of all results, within so many tokens; with nothing of them if need be."""
    low, high = 0, max(len(str(m.get("content") or "")) for m in messages)
    while high - low > 8:
        middle = (low + high) // 2
        if count(body(head_tail(messages, middle), tools)) <= size:
            low = middle
        else:
            high = middle
    return head_tail(messages, low)


# --- the oldest steps go ---


def oldest_out(messages: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """The newest steps whole, within so many tokens."""
    return next(kept for kept in _newest(messages) if count(body(kept, ())) <= size)


def _newest(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """All messages, then without the oldest step, then the two oldest, …; system text and the
    user's words all stay."""
    steps = [at for at, message in enumerate(messages) if message["role"] == MODEL]
    for first in (*steps, len(messages)):
        yield [m for at, m in enumerate(messages) if at >= first or m["role"] in ("system", USER)]


def newest_head_tail(messages: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """Heads and tails of the newest steps' results, within so many tokens: of as many steps as can
    have ``LEAST`` characters each."""
    kept: list[dict[str, Any]] = []
    for kept in _newest(messages):
        if count(body(head_tail(kept, LEAST), ())) <= size:
            break
    return _as_large(kept, size, ())


LEAST = 200
EQUAL = {"head-tail": newest_head_tail, "oldest-out": oldest_out}
"""Cuts to a number of tokens, of sessions without tools."""


# --- only what is asked for ---


def fact_alone(world: World, question: Question) -> Sent:
    """The messages that name what is asked about, calls with their results, and no others."""
    wanted = [question.entity in json.dumps(message) for message in world.messages]
    pairs = {id for m, here in zip(world.messages, wanted, strict=True) if here for id in _ids(m)}
    ends = (0, 1, len(world.messages) - 1)
    kept = [
        message
        for at, (message, here) in enumerate(zip(world.messages, wanted, strict=True))
        if here or at in ends or pairs & set(_ids(message))
    ]
    return Sent(body(kept, ()))


def _ids(message: Mapping[str, Any]) -> list[str]:
    """Of the calls of a message, or of the one that it answers."""
    own = [call["id"] for call in message.get("tool_calls") or []]
    return own or [one for one in [message.get("tool_call_id")] if one]
