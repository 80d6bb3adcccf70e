"""Turns put into the order that targets demand.

Knows the safe normal form: a system head, then a user, then model turns each with its results
right behind it and before anything else.  Does not know any provider's keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.conversion.media import named
from trimtab.conversion.neutral import (
    Account,
    Call,
    Choice,
    Media,
    Neutral,
    Part,
    Reasoning,
    Result,
    Role,
    Text,
    Tool,
    Turn,
)
from trimtab.model import Path
from trimtab.rules.content import BEGIN, GO_ON, PLACEHOLDER


class Demands(NamedTuple):
    """What a target demands of the order of turns, and which parts it takes."""

    joins_users: bool = False
    """Neighbouring user messages have to be one."""
    late_system: bool = False
    """A system message may stand within the conversation."""
    begins_with_user: bool = False
    ends_with_user: bool = False
    refuses_blanks: bool = False
    """A text of nothing but white space is refused (an empty one is never written)."""
    takes_marks: bool = False
    takes_custom: bool = False
    """Free-form tools, whose argument is a text."""
    declares_tools: bool = False
    """Tools have to be declared where calls or results stand in the conversation."""
    declares_always: bool = False
    """Even for a bare list of messages, which becomes a body by it."""
    unique_ids: bool = False
    """No two calls of the whole request may have one id (elsewhere: of one turn)."""
    takes_open_reasoning: bool = False
    """Reasoning whose words are open goes along as text."""


@dataclass
class Step:
    """One speaker's parts, joined; ``results`` are the answers to the calls among them."""

    role: Role
    parts: list[Part]
    path: Path
    name: str = ""
    results: list[Result] = field(default_factory=list)


class Shaped(NamedTuple):
    """The system turns at the head, and the conversation."""

    head: tuple[Turn, ...]
    steps: list[Step]


def shape(neutral: Neutral, demands: Demands, account: Account) -> Shaped:
    """The turns in the order the target demands; what cannot stay is listed."""
    turns = neutral.turns
    count = 0
    while count < len(turns) and turns[count].role == "system":
        count += 1
    head = [
        turn._replace(parts=tuple(_texts(_carried(turn.parts, demands, account), account)))
        for turn in turns[:count]
    ]
    steps = _results_home(_late_system(turns[count:], demands, account), demands, account)
    steps = list(_speaking(steps, account))
    if demands.joins_users:
        steps = _users_joined(steps, account)
    for index, step in enumerate(steps):
        if not step.parts and not (index and steps[index - 1].results):
            step.parts.append(Text(PLACEHOLDER, step.path))
            account.notes["empty user messages given a placeholder"] += 1
    steps = [step for step in steps if step.parts]
    return Shaped(tuple(t for t in head if t.parts), _ended(steps, demands, account))


def _texts(parts: Iterable[Part], account: Account) -> Iterator[Text]:
    """A system prompt has only words."""
    for part in parts:
        if isinstance(part, Media):
            yield named(part, account)
        elif isinstance(part, Text):
            yield part


def _late_system(turns: Iterable[Turn], demands: Demands, account: Account) -> Iterator[Turn]:
    for turn in turns:
        if turn.role == "system" and not demands.late_system:
            account.lose(turn.path, "system role", "within the conversation: became a user message")
            yield turn._replace(role="user")
        else:
            yield turn


def _carried(parts: Iterable[Part], demands: Demands, account: Account) -> Iterator[Part]:
    """The parts without reasoning, blanks and cache marks that the target does not take."""
    for part in parts:
        if isinstance(part, Reasoning):
            if part.text and demands.takes_open_reasoning:
                if part.sealed:
                    account.lose(part.path, "signature", "only the words of the reasoning go along")
                yield part
            else:
                account.lose(part.path, "reasoning", "another provider's reasoning is refused")
            continue
        if isinstance(part, Text) and not part.text.strip():
            if not part.text:
                continue
            if demands.refuses_blanks:
                account.lose(part.path, "blank text", "a text of white space alone is refused")
                continue
        if isinstance(part, Call) and part.custom and not demands.takes_custom:
            account.lose(part.path, "custom call", "its text became the argument 'input'")
            part = part._replace(arguments={"input": part.arguments}, custom=False)
        if part.mark is not None and not demands.takes_marks:
            account.lose(part.path, "cache mark")
            part = part._replace(mark=None)
        yield part


def _results_home(turns: Iterable[Turn], demands: Demands, account: Account) -> list[Step]:
    """Steps with each result at the step that called; a result without a call stays a part."""
    steps: list[Step] = []
    calls = _OpenCalls(demands.unique_ids, account)
    for turn in turns:
        parts = list(_carried(turn.parts, demands, account))
        if turn.role == "user":
            others: list[Part] = []
            for part in parts:
                found = calls.answered(part) if isinstance(part, Result) else None
                if found is None:
                    others.append(part)
                    continue
                if found[0] is not steps[-1] or others:
                    account.notes["tool results moved right behind their call"] += 1
                found[0].results.append(found[1])
            if others or not parts:
                steps.append(Step("user", others, turn.path, turn.name))
            continue
        last = steps[-1] if steps else None
        if turn.role == "assistant" and last and last.role == "assistant" and not last.results:
            account.notes["neighbouring assistant messages joined"] += 1
        else:
            last = Step(turn.role, [], turn.path, turn.name)
            steps.append(last)
        last.parts += [calls.made(p, last) if isinstance(p, Call) else p for p in parts]
    return steps


class _OpenCalls:
    """Which step waits for the result of an id; repeated ids are told apart where they must."""

    def __init__(self, unique: bool, account: Account) -> None:
        self._unique, self._account = unique, account
        self._waiting: dict[str, list[tuple[Step, str]]] = {}
        self._seen: set[str] = set()

    def made(self, call: Call, step: Step) -> Call:
        """The call, under an id of its own where another had it before."""
        old = new = call.id
        number = 1
        while self._unique and new in self._seen:
            number += 1
            new = f"{old}_{number}"
        self._seen.add(new)
        waiting = self._waiting.get(old)
        if not waiting or waiting[-1][0] is not step:  # the newest step that used the id waits
            waiting = self._waiting[old] = []
        waiting.append((step, new))
        if new != old:
            self._account.repeated[new] = old
            self._account.notes["repeated call ids told apart"] += 1
            return call._replace(id=new)
        return call

    def answered(self, result: Result) -> tuple[Step, Result] | None:
        """The step that called and the result under the call's id; None for an orphan."""
        waiting = self._waiting.get(result.id)
        if not waiting:
            return None
        step, new = waiting.pop(0)
        return step, result if new == result.id else result._replace(id=new)


def _users_joined(steps: list[Step], account: Account) -> list[Step]:
    out: list[Step] = []
    for step in steps:
        if step.role == "user" and out and out[-1].role == "user":
            out[-1].parts += step.parts
            account.notes["neighbouring user messages joined"] += 1
        else:
            out.append(step)
    return out


def _speaking(steps: list[Step], account: Account) -> Iterator[Step]:
    for step in steps:
        if step.parts or step.role == "user":
            yield step
        else:
            account.notes[f"empty {step.role} messages left out"] += 1


def _ended(steps: list[Step], demands: Demands, account: Account) -> list[Step]:
    spoken = [step for step in steps if step.role != "system"]
    if demands.begins_with_user and (not spoken or spoken[0].role == "assistant"):
        account.notes["a first user message was added"] += 1
        steps.insert(0, Step("user", [Text(BEGIN, ())], ()))
    last = steps[-1] if steps else None
    if demands.ends_with_user and last is not None and last.role == "assistant":
        waiting = any(isinstance(part, Call) for part in last.parts)
        if not waiting and not last.results:
            account.notes["a last user message was added"] += 1
            steps.append(Step("user", [Text(GO_ON, ())], ()))
    return steps


def calls_last(step: Step, account: Account) -> tuple[list[Part], list[Call]]:
    """The other parts and the calls of a model step, for targets that keep them apart."""
    others: list[Part] = []
    calls: list[Call] = []
    late = False
    for part in step.parts:
        if isinstance(part, Call):
            calls.append(part)
        else:
            late = late or bool(calls)
            others.append(part)
    if late:
        account.lose(step.path, "order", f"{account.to} keeps text before the calls of a message")
    return others, calls


def tools_for(neutral: Neutral, demands: Demands, account: Account) -> tuple[Tool, ...]:
    """The tools as the target takes them, where it must have some also those only called."""
    must = demands.declares_always or (demands.declares_tools and not neutral.bare)
    if neutral.tools or not (must and neutral.has_tool_blocks):
        return tuple(_tool(tool, demands, account) for tool in neutral.tools)
    names = list(dict.fromkeys(call.name for call in neutral.calls)) or ["unknown_tool"]
    account.notes[f"tools declared as seen in the calls: {', '.join(names)}"] += 1
    return tuple(Tool(name, "", object_schema(None), ()) for name in names)


def _tool(tool: Tool, demands: Demands, account: Account) -> Tool:
    if tool.mark is not None and not demands.takes_marks:
        account.lose(tool.path, "cache mark")
        tool = tool._replace(mark=None)
    if tool.custom is not None and not demands.takes_custom:
        account.lose(tool.path, "custom tool", "became a function with one argument 'input'")
        text = {"type": "object", "properties": {"input": {"type": "string"}}}
        return tool._replace(schema={**text, "required": ["input"]}, custom=None)
    return tool._replace(schema=object_schema(tool.schema))


def choice_for(neutral: Neutral, tools: tuple[Tool, ...], account: Account) -> Choice | None:
    """Which tool to call, where there are tools to choose from."""
    if neutral.choice is not None and not tools:
        if neutral.choice.mode in ("any", "tool"):
            account.lose(neutral.choice.path, "tool choice", "there are no tools to choose from")
        return None
    return neutral.choice


def object_schema(schema: object) -> dict[str, object]:
    """A JSON Schema that says it is of an object, as every provider demands."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    return schema if "type" in schema else {"type": "object", **schema}
