"""Puts turns into the order that the target requires.

The safe normal form is a system head, then a user turn, then model turns, each with its results
directly behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.formats.neutral.media import named
from trimtab.formats.neutral.request import (
    CallPart,
    ConversionLog,
    MediaPart,
    NeutralRequest,
    NeutralTurn,
    Part,
    ReasoningPart,
    ResultPart,
    Role,
    TextPart,
    Tool,
    ToolChoice,
)
from trimtab.formats.neutral.table import TargetRules
from trimtab.formats.repair.content import BEGIN, GO_ON, PLACEHOLDER
from trimtab.jsontext.paths import Path


@dataclass
class OrderedTurn:
    """One speaker's parts, joined; ``results`` are the answers to the calls among them."""

    role: Role
    parts: list[Part]
    path: Path
    name: str = ""
    results: list[ResultPart] = field(default_factory=list)


class OrderedTurns(NamedTuple):
    """The system turns at the head, and the conversation."""

    head: tuple[NeutralTurn, ...]
    steps: list[OrderedTurn]


def ordered(neutral: NeutralRequest, target_rules: TargetRules, log: ConversionLog) -> OrderedTurns:
    """The turns in the order the target requires; what cannot stay is listed."""
    turns = neutral.turns
    count = 0
    while count < len(turns) and turns[count].role == "system":
        count += 1
    head = [
        turn._replace(parts=tuple(_texts(_carried(turn.parts, target_rules, log), log)))
        for turn in turns[:count]
    ]
    steps = _with_results(_late_system(turns[count:], target_rules, log), target_rules, log)
    steps = list(_without_empty(steps, log))
    if target_rules.joins_users:
        steps = _with_joined_users(steps, log)
    for index, step in enumerate(steps):
        if not step.parts and not (index and steps[index - 1].results):
            step.parts.append(TextPart(PLACEHOLDER, step.path))
            log.notes["empty user messages given a placeholder"] += 1
    steps = [step for step in steps if step.parts]
    return OrderedTurns(
        tuple(t for t in head if t.parts), _with_user_ends(steps, target_rules, log)
    )


def _texts(parts: Iterable[Part], log: ConversionLog) -> Iterator[TextPart]:
    """A system prompt has only text."""
    for part in parts:
        if isinstance(part, MediaPart):
            yield named(part, log)
        elif isinstance(part, TextPart):
            yield part


def _late_system(
    turns: Iterable[NeutralTurn], target_rules: TargetRules, log: ConversionLog
) -> Iterator[NeutralTurn]:
    for turn in turns:
        if turn.role == "system" and not target_rules.late_system:
            log.lose(turn.path, "system role", "within the conversation: became a user message")
            yield turn._replace(role="user", name="")
        else:
            yield turn


def _carried(
    parts: Iterable[Part], target_rules: TargetRules, log: ConversionLog
) -> Iterator[Part]:
    """The parts without reasoning, blanks and cache marks that the target does not take."""
    for part in parts:
        if isinstance(part, ReasoningPart):
            if part.text and target_rules.takes_open_reasoning:
                if part.sealed:
                    log.lose(part.path, "signature", "only the words of the reasoning go along")
                yield part
            else:
                log.lose(part.path, "reasoning", "another provider's reasoning is refused")
            continue
        if isinstance(part, TextPart) and not part.text.strip():
            if not part.text:
                continue
            if target_rules.refuses_blanks:
                log.lose(part.path, "blank text", "a text of white space alone is refused")
                continue
        if isinstance(part, CallPart) and part.custom and not target_rules.takes_custom:
            log.lose(part.path, "custom call", "its text became the argument 'input'")
            part = part._replace(arguments={"input": part.arguments}, custom=False)
        if part.mark is not None and not target_rules.takes_marks:
            log.lose(part.path, "cache mark")
            part = part._replace(mark=None)
        yield part


def _with_results(
    turns: Iterable[NeutralTurn], target_rules: TargetRules, log: ConversionLog
) -> list[OrderedTurn]:
    """Steps with each result at the step that called; a result without a call stays a part."""
    steps: list[OrderedTurn] = []
    calls = _OpenCalls(target_rules.unique_ids, log)
    for turn in turns:
        parts = list(_carried(turn.parts, target_rules, log))
        if turn.role == "user":
            others: list[Part] = []
            for part in parts:
                answered = calls.match_result(part) if isinstance(part, ResultPart) else None
                if answered is None:
                    others.append(part)
                    continue
                if answered[0] is not steps[-1] or others:
                    log.notes["tool results moved right behind their call"] += 1
                answered[0].results.append(answered[1])
            if others or not parts:
                steps.append(OrderedTurn("user", others, turn.path, turn.name))
            continue
        last = steps[-1] if steps else None
        if turn.role == "assistant" and last and last.role == "assistant" and not last.results:
            log.notes["neighbouring assistant messages joined"] += 1
        else:
            last = OrderedTurn(turn.role, [], turn.path, turn.name)
            steps.append(last)
        last.parts += [calls.register(p, last) if isinstance(p, CallPart) else p for p in parts]
    return steps


class _OpenCalls:
    """Which turn waits for the result of an id; repeated ids are made unique where required."""

    def __init__(self, unique: bool, log: ConversionLog) -> None:
        self._unique, self._log = unique, log
        self._waiting: dict[str, list[tuple[OrderedTurn, str]]] = {}
        self._seen: set[str] = set()

    def register(self, call: CallPart, step: OrderedTurn) -> CallPart:
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
            self._log.repeated[new] = old
            self._log.notes["repeated call ids told apart"] += 1
            return call._replace(id=new)
        return call

    def match_result(self, result: ResultPart) -> tuple[OrderedTurn, ResultPart] | None:
        """The step that called and the result under the call's id; None for an orphan."""
        waiting = self._waiting.get(result.id)
        if not waiting:
            return None
        step, new = waiting.pop(0)
        return step, result if new == result.id else result._replace(id=new)


def _with_joined_users(steps: list[OrderedTurn], log: ConversionLog) -> list[OrderedTurn]:
    out: list[OrderedTurn] = []
    for step in steps:
        if step.role == "user" and out and out[-1].role == "user":
            out[-1].parts += step.parts
            log.notes["neighbouring user messages joined"] += 1
        else:
            out.append(step)
    return out


def _without_empty(steps: list[OrderedTurn], log: ConversionLog) -> Iterator[OrderedTurn]:
    for step in steps:
        if step.parts or step.role == "user":
            yield step
        else:
            log.notes[f"empty {step.role} messages left out"] += 1


def _with_user_ends(
    steps: list[OrderedTurn], target_rules: TargetRules, log: ConversionLog
) -> list[OrderedTurn]:
    spoken = [step for step in steps if step.role != "system"]
    if target_rules.begins_with_user and (not spoken or spoken[0].role == "assistant"):
        log.notes["a first user message was added"] += 1
        steps.insert(0, OrderedTurn("user", [TextPart(BEGIN, ())], ()))
    last = steps[-1] if steps else None
    if target_rules.ends_with_user and last is not None and last.role == "assistant":
        waiting = any(isinstance(part, CallPart) for part in last.parts)
        if not waiting and not last.results:
            log.notes["a last user message was added"] += 1
            steps.append(OrderedTurn("user", [TextPart(GO_ON, ())], ()))
    return steps


def calls_last(step: OrderedTurn, log: ConversionLog) -> tuple[list[Part], list[CallPart]]:
    """The other parts and the calls of a model step, for targets that keep them apart."""
    others: list[Part] = []
    calls: list[CallPart] = []
    late = False
    for part in step.parts:
        if isinstance(part, CallPart):
            calls.append(part)
        else:
            late = late or bool(calls)
            others.append(part)
    if late:
        log.lose(step.path, "order", f"{log.to} keeps text before the calls of a message")
    return others, calls


def tools_for(
    neutral: NeutralRequest, target_rules: TargetRules, log: ConversionLog
) -> tuple[Tool, ...]:
    """The tools as the target takes them, where it must have some also those only called."""
    must = target_rules.declares_always or (target_rules.declares_tools and not neutral.bare)
    if neutral.tools or not (must and neutral.has_tool_blocks):
        return tuple(_tool(tool, target_rules, log) for tool in neutral.tools)
    names = list(dict.fromkeys(call.name for call in neutral.calls))
    if not names:  # results alone: what they answer is not in this request
        return ()
    log.notes[f"tools declared as seen in the calls: {', '.join(names)}"] += 1
    return tuple(Tool(name, "", object_schema(None), ()) for name in names)


def _tool(tool: Tool, target_rules: TargetRules, log: ConversionLog) -> Tool:
    if tool.mark is not None and not target_rules.takes_marks:
        log.lose(tool.path, "cache mark")
        tool = tool._replace(mark=None)
    if tool.custom is not None and not target_rules.takes_custom:
        log.lose(tool.path, "custom tool", "became a function with one argument 'input'")
        text = {"type": "object", "properties": {"input": {"type": "string"}}}
        return tool._replace(schema={**text, "required": ["input"]}, custom=None)
    return tool._replace(schema=object_schema(tool.schema))


def choice_for(
    neutral: NeutralRequest, tools: tuple[Tool, ...], log: ConversionLog
) -> ToolChoice | None:
    """Which tool to call, where there are tools to choose from."""
    if neutral.choice is not None and not tools:
        if neutral.choice.mode in ("any", "tool"):
            log.lose(neutral.choice.path, "tool choice", "there are no tools to choose from")
        return None
    return neutral.choice


def object_schema(schema: object) -> dict[str, object]:
    """The JSON Schema with ``type`` set to object, as every provider requires."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    return schema if "type" in schema else {"type": "object", **schema}
