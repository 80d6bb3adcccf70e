"""Conversations in which somebody asks for a fact by its name, as requests of a format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import trimtab
from asked.contents import KINDS, made
from asked.facts import Content, Fact
from asked.source import LANGUAGES

ASKERS = ("first user text", "newest user text", "producing call", "later call", "nobody")
PLACES = ("newest", "fold")
MODELS = {"anthropic": "claude-sonnet-4-5"}
SYSTEM = "You are the agent of a small company. Use the tools, and answer from what they give."
TOOLS = {"bash": ("command", "description"), "read_file": ("path", "looking_for"),
         "query": ("sql", "purpose"), "fetch": ("url", "prompt"),
         "edit_file": ("path", "old", "new")}  # fmt: skip
FILLERS, MIN_FILLER, MAX_FILLER = 40, 10, 30
"""Texts to choose further results from, and how many steps follow what is to be folded."""


@dataclass(frozen=True)
class Step:
    """One model turn with one call and its result."""

    tool: str
    arguments: Mapping[str, str]
    result: str
    said: str = ""


@dataclass(frozen=True)
class Conversation:
    """``target``: which step's result holds the fact.  ``newest``: the model's words after the last
    step and the user's next text, if they had any."""

    first: str
    steps: tuple[Step, ...]
    target: int
    newest: tuple[str, str] | None = None

    def with_results(self, results: Sequence[str]) -> Conversation:
        """The same with other results."""
        steps = (replace(s, result=r) for s, r in zip(self.steps, results, strict=True))
        return replace(self, steps=tuple(steps))


@cache
def _fillers(held_out: bool) -> tuple[Step, ...]:
    """Further steps of 300 to 1,200 tokens, of all kinds."""
    draw, kinds, found = random.Random(f"fillers/{held_out}"), list(KINDS), list[Step]()
    for number in range(FILLERS):
        kind = kinds[number % len(kinds)]
        content = made(kind, f"filler/{number}", held_out, draw.uniform(0.07, 0.12))
        found.append(_producing(kind, content, None, draw))
    return tuple(found)


def _producing(kind: str, content: Content, fact: Fact | None, draw: random.Random) -> Step:
    """The call that gives a content; with a fact its arguments name it."""
    why = fact.asked if fact else "all of it, for the record"
    if kind in LANGUAGES:
        arguments = {"path": content.source, **({"looking_for": why} if fact else {})}
        return Step("read_file", arguments, content.text)
    if kind == "psql":
        sql = f"select * from {content.source} order by {draw.choice(['opened', 'town'])}"
        return Step("query", {"sql": sql, "purpose": why}, content.text)
    if kind == "html table":
        return Step("fetch", {"url": content.source, "prompt": why}, content.text)
    command = {
        "grep": f"grep -rn {content.source} src", "coverage": content.source,
        "diff": content.source, "pytest, the failure": "pytest -v --durations=0",
        "pytest, a named test": "pytest -v --durations=0",
        "json list": f"curl -s https://api.example{content.source}",
    }.get(kind, f"cat {content.source}")  # fmt: skip
    if fact and draw.random() < 0.5:
        return Step("bash", {"command": f"{command}  # {fact.asked}"}, content.text)
    return Step("bash", {"command": command, "description": f"Read {why}"}, content.text)


def _later(fact: Fact, draw: random.Random) -> Step:
    """A call after it that names it, and a result that does not answer."""
    return draw.choice([
        Step("bash", {"command": f"grep -rn '{fact.name}' docs notes"}, "(no output)"),
        Step("bash", {"command": f"git log --oneline -S '{fact.name}'"}, "no commits"),
        Step("bash", {"command": "ls notes", "description": f"See whether notes tell {fact.asked}"},
             "todo.md\nplan.md"),
        Step("edit_file", {"path": "notes/todo.md", "old": "- next",
                           "new": f"- next\n- find {fact.asked}"}, "edited notes/todo.md"),
    ])  # fmt: skip


WORDINGS: tuple[Callable[[str], str], ...] = (
    lambda asked: f"Please find out {asked}.", lambda asked: f"I need to know {asked}.",
    lambda asked: f"Look this up for me: {asked}. A short answer will do.",
    lambda asked: f"Before we go on: {asked}? I have to tell a colleague.",
)  # fmt: skip


def conversation(
    kind: str, content: Content, fact: Fact, asker: str, place: str, draw: random.Random,
    held_out: bool = False,
) -> Conversation:  # fmt: skip
    """Somebody asks for the fact; the content is the newest long result, or has to be folded."""
    question = draw.choice(WORDINGS)(fact.asked)
    first = question if asker == ASKERS[0] else "Have a look at this, I will tell you what I need."
    named = fact if asker == "producing call" else None
    steps = [_producing(kind, content, named, draw)]
    if place == "fold":
        free = [one for one in _fillers(held_out) if not _tells(one, fact)]
        steps += draw.choices(free, k=draw.randint(MIN_FILLER, MAX_FILLER))
    if asker == "later call":
        steps.insert(draw.randint((len(steps) + 1) // 2, len(steps)), _later(fact, draw))
    newest = ("I have read it.", question) if asker == "newest user text" else None
    return Conversation(first, tuple(steps), 0, newest)


def _tells(step: Step, fact: Fact) -> bool:
    return any(words in step.result or words in str(step.arguments)
               for words in (fact.name, fact.answer))  # fmt: skip


def request(talk: Conversation, format: str) -> dict[str, Any]:
    """The request, in ``anthropic``, ``openai-chat``, or what trimtab converts this to."""
    if format == "anthropic":
        return _anthropic(talk)
    chat = _chat(talk)
    if format == "openai-chat":
        return chat
    return cast("dict[str, Any]", trimtab.convert(chat, cast(Any, format)).request)


def _schema(names: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def _chat(talk: Conversation) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM}, {"role": "user", "content": talk.first},
    ]  # fmt: skip
    for number, step in enumerate(talk.steps):
        function = {"name": step.tool, "arguments": json.dumps(dict(step.arguments))}
        call = {"id": f"call_{number:04}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": step.said or None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": step.result},
        ]
    if talk.newest:
        roles = zip(("assistant", "user"), talk.newest, strict=True)
        messages += [{"role": role, "content": text} for role, text in roles]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": _schema(names)}}
        for name, names in TOOLS.items()
    ]
    return {"model": "gpt-5.1", "messages": messages, "tools": tools}


def _anthropic(talk: Conversation) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": talk.first}]
    for number, step in enumerate(talk.steps):
        call = {"type": "tool_use", "id": f"toolu_{number:04}", "name": step.tool,
                "input": dict(step.arguments)}  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": step.result}
        messages += [
            {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]},
        ]  # fmt: skip
    if talk.newest:
        roles = zip(("assistant", "user"), talk.newest, strict=True)
        messages += [{"role": role, "content": text} for role, text in roles]
    tools = [{"name": name, "input_schema": _schema(names)} for name, names in TOOLS.items()]
    return {"model": MODELS["anthropic"], "max_tokens": 4_096, "system": SYSTEM,
            "messages": messages, "tools": tools}  # fmt: skip
