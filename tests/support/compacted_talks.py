"""Conversations with a provider that compacts, as clients hold them, drawn from a seed.

``ways``: the client keeps what was compacted ("kept") or leaves it out ("dropped"), with
Anthropic's threshold or OpenAI's; or it asks for a signed block and goes on from there
("on demand").
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compacting_provider import Compacting

WAYS = ("kept", "dropped", "on demand", "responses kept", "responses dropped")
WORDS = ("parser", "token", "lexer", "node", "visit", "emit", "scope", "frame", "stack", "value")
Send = Callable[[dict[str, Any]], dict[str, Any]]
"""A request → the answer; raises where it is refused."""


@dataclass
class Told:
    """What came of one conversation."""

    turns: int = 0
    compactions: int = 0
    cut_behind: int = 0
    """Requests with a compaction in which something was cut."""
    faults: list[str] = field(default_factory=list)


@dataclass
class Drawn:
    """One conversation: the provider's window, when it compacts, and in which way."""

    seed: int
    way: str
    window: int
    trigger: int
    turns: int

    @property
    def responses(self) -> bool:
        """Whether it is held in OpenAI's format."""
        return self.way.startswith("responses")


def drawn(seed: int) -> Drawn:
    """By turns each way."""
    draw = random.Random(seed)
    window = draw.choice((5_000, 7_000, 10_000))
    trigger = int(window * draw.choice((0.3, 0.5, 0.7)))
    return Drawn(seed, WAYS[seed % len(WAYS)], window, trigger, draw.randint(10, 24))


def lines(draw: random.Random) -> str:
    """What a tool returns."""
    count = draw.choice((5, 40, 90, 140))
    word, number = draw.choice, draw.randint
    return "".join(
        f"src/{word(WORDS)}_{n}.py:{number(1, 999)}: {word(WORDS)} = {number(0, 9_999)}\n"
        for n in range(count)
    )


def hold(talk: Drawn, send: Send) -> Told:
    """Hold it to its end."""
    draw, told = random.Random(talk.seed + 1), Told()
    history: list[Any] = [{"role": "user", "content": f"Mend the parser, case {talk.seed}."}]
    if talk.responses:
        history[0]["type"] = "message"
    while told.turns < talk.turns:
        told.turns += 1
        compacts = told.turns < talk.turns * 0.4  # then it is left to the library
        answer = send(_request(talk, history, talk.trigger if compacts else 10**6))
        if talk.responses:
            _openai(talk, draw, history, answer["output"], told)
        else:
            _claude(talk, draw, history, answer["content"], told)
            if talk.way == "on demand" and compacts and draw.random() < 0.7 and len(history) > 4:
                _on_demand(talk, history, send, told)
    return told


def _request(talk: Drawn, history: list[Any], trigger: int = 0) -> dict[str, Any]:
    tool = {"name": "read", "description": "Read a file"}
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    if talk.responses:
        rows = [{"type": "compaction", "compact_threshold": trigger}]
        tool |= {"type": "function", "parameters": schema}
        return {"model": "gpt-5.5", "tools": [tool], "input": copy.deepcopy(history),
                "store": False, "context_management": rows}  # fmt: skip
    asked = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": copy.deepcopy(history),
             "tools": [{**tool, "input_schema": schema}]}  # fmt: skip
    if talk.way != "on demand":
        row = {"type": "input_tokens", "value": trigger}
        edit = {"type": "compact_20260112", "trigger": row}
        asked["context_management"] = {"edits": [edit]}
    return asked


def _claude(
    talk: Drawn, draw: random.Random, history: list[Any], content: list[Any], told: Told
) -> None:
    compacted = content[0]["type"] == "compaction"
    told.compactions += compacted
    if compacted and talk.way == "dropped":
        history.clear()
    history.append({"role": "assistant", "content": content})
    results = [
        {"type": "tool_result", "tool_use_id": part["id"], "content": lines(draw)}
        for part in content
        if part["type"] == "tool_use"
    ]
    history.append({"role": "user", "content": results or f"And now part {told.turns}?"})


def _on_demand(talk: Drawn, history: list[Any], send: Send, told: Told) -> None:
    """The last message of the user goes behind the block that stands for all before it."""
    last = history[-1]
    if not isinstance(last["content"], str):
        return  # a call waits for its result: nothing to compact yet
    answer = send({**_request(talk, history[:-1]), "compaction": {"type": "summarize"}})
    history[:] = [{"role": "assistant", "content": answer["content"]}, last]
    told.compactions += 1


def _openai(
    talk: Drawn, draw: random.Random, history: list[Any], output: list[Any], told: Told
) -> None:
    for item in output:
        if item["type"] == "compaction":
            told.compactions += 1
            if talk.way.endswith("dropped"):
                history.clear()
        history.append(item)
    called = [item["call_id"] for item in output if item["type"] == "function_call"]
    for call_id in called:
        history.append({"type": "function_call_output", "call_id": call_id, "output": lines(draw)})
    if not called:
        history.append({"type": "message", "role": "user", "content": f"Part {told.turns}?"})


def through(session: Any, provider: Compacting, talk: Drawn, told: Told) -> Send:
    """Fit each request, and compare: legal, blocks to the letter, counted as the provider does."""

    def send(request: dict[str, Any]) -> dict[str, Any]:
        fitted = session.fit(copy.deepcopy(request))
        status, answer = provider.answer(fitted.request, talk.responses)
        asked = provider.asked[-1]
        key = "input" if talk.responses else "messages"
        if status != 200:
            told.faults.append(f"seed {talk.seed}: refused: {asked.refusal}: {answer}")
            raise ValueError(asked.refusal)
        if asked.blocks != blocks(request[key]):
            told.faults.append(f"seed {talk.seed}: a block was changed")
        told.cut_behind += bool(asked.blocks and fitted.changed)
        if abs(fitted.tokens_after - asked.live) > 0.02 * asked.live:
            told.faults.append(f"seed {talk.seed}: {fitted.tokens_after} for {asked.live}")
        session.observe(answer, fitted)
        return answer

    return send


def blocks(messages: list[Any]) -> list[Any]:
    """The compactions in a history."""
    found = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [message]
        found += [part for part in parts if part.get("type") == "compaction"]
    return found
