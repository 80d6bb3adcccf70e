"""Writes a neutral request in any format, by the format's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trimtab.formats.engine.parts import put
from trimtab.formats.neutral.choice_shapes import filled
from trimtab.formats.neutral.ids import ConversionTarget
from trimtab.formats.neutral.media import named
from trimtab.formats.neutral.payloads import flagged, json_text
from trimtab.formats.neutral.request import (
    CacheMark,
    CallPart,
    ConversionLog,
    JsonPart,
    MediaPart,
    NeutralRequest,
    NeutralTurn,
    Part,
    ReasoningPart,
    ResultItem,
    ResultPart,
    TextPart,
    Tool,
    ToolChoice,
)
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.turn_order import OrderedTurn, choice_for, ordered, tools_for
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path


class NeutralWriter:
    """Writes one request.  A format's own writer adds what its tables don't give."""

    def __init__(
        self,
        table: ConversionTable,
        neutral: NeutralRequest,
        target: ConversionTarget,
        log: ConversionLog,
    ) -> None:
        self.table, self.parts = table, table.parts
        self.neutral, self.target, self.log = neutral, target, log
        self._names = {call.id: call.name for call in neutral.calls}
        self._text_type = next(iter(table.content))
        self.moved: list[Part] = []
        """Media of results, which the target takes only behind them."""

    def write(self) -> dict[str, Any]:
        """A body."""
        rules, log = self.rules(), self.log
        shaped = ordered(self.neutral, rules, log)
        sections = self._settings(rules)
        body: dict[str, Any] = sections.pop((), {})
        value, first = self.head(shaped.head)
        if value:
            body = put(body, self.table.head, value)
        body[self.parts.messages] = self._messages(first, shaped.steps)
        tools, table = tools_for(self.neutral, rules, log), self.parts.tools
        if tools:
            values = [value for tool in tools for value in self.marked(self.tool(tool), tool.mark)]
            body = put(body, table.path, [{table.listed: values}] if table.listed else values)
        choice = self.choice(choice_for(self.neutral, tools, log))
        if choice is not None:
            body = put(body, table.choice, choice)
        for section, settings in sections.items():
            key = str(section[0])
            body[key] = {**settings, **body.get(key, {})}
        return body

    # --- what a format's own writer may replace ---

    def rules(self) -> TargetRules:
        """What this target requires."""
        return self.table.rules

    def head(self, turns: Sequence[NeutralTurn]) -> tuple[Any, Sequence[NeutralTurn]]:
        """The system prompt beside the messages, and the system turns that are messages."""
        if not self.table.head:
            return None, turns
        return self.content([part for turn in turns for part in turn.parts]), ()

    def message(self, role: str, content: Any) -> Any:
        """A message that holds parts."""
        roles = self.parts.roles
        word = role if role in roles else next(w for w, one in roles.items() if one == role)
        return {"role": word, self.parts.content: content}

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """The messages of the model, its results not among them."""
        yield self.message("assistant", self.content(step.parts))

    def user_message(self, parts: Iterable[Part]) -> Iterable[Any]:
        """What the user says, with results where they are parts of it."""
        yield self.message("user", self.content(parts))

    def content(self, parts: Iterable[Part]) -> Any:
        """The content of a message."""
        parts = list(parts)
        values = [value for part in parts for value in self.values(part)]
        alone = self.table.plain_text and len(parts) == 1 and isinstance(parts[0], TextPart)
        return values[0]["text"] if alone and self._is_text(values[0]) else values

    def media(self, part: MediaPart) -> Any:
        """A medium as a part; None where the target does not take it."""
        raise NotImplementedError

    def result_content(self, result: ResultPart) -> Any:
        """The content of a result: a text alone as a string."""
        values = self.result_values(result)
        return values[0]["text"] if len(values) == 1 and self._is_text(values[0]) else values or ""

    def result_values(self, result: ResultPart) -> list[Any]:
        """The items of a result, the first of which says where it is an error without a flag."""
        values = [value for item in result.items for value in self.result_item(result, item)]
        if result.error and self.table.says_errors:
            if not values or not self._is_text(values[0]):
                values.insert(0, self.text(""))
            values[0]["text"] = flagged(values[0]["text"])
        return values

    def result_item(self, result: ResultPart, item: ResultItem) -> Iterable[Any]:
        if isinstance(item, MediaPart):
            return self.values(item)
        text = json_text(item, self.log) if isinstance(item, JsonPart) else item.text
        if text.strip() or not self.table.rules.refuses_blanks or len(result.items) == 1:
            return [self.text(text)]
        self.log.lose(item.path, "blank text", "a text of white space alone is refused")
        return []

    def call(self, call: CallPart, id: str, name: str) -> Any:
        """A tool call."""
        type, row = self.parts.call
        value = paths.dump(call.arguments) if row.spelling == "json-string" else call.arguments
        return self._built({"type": type}, ((row.id, id), (row.name, name), (row.payload, value)))

    def result(self, result: ResultPart, id: str) -> list[Any]:
        """A result, with its cache breakpoint."""
        type, row = self.parts.result
        places = [(row.id, id)]
        if "name" in row.written:
            tool = result.name or self._names.get(result.id) or "tool"
            places.append((row.name, self.target.names(tool)))
        places.append((row.payload, self.result_content(result)))
        if result.error and row.failed and "error" in row.written:
            places.append((row.error, row.failed[0]))
        return self.marked(self._built({self.parts.item_by: type}, places), result.mark)

    def _built(self, start: dict[str, Any], places: Iterable[tuple[Path, Any]]) -> Any:
        out = {} if self.parts.by_key else start
        for path, value in places:
            out = put(out, path, value)
        return out

    def marked(self, value: Any, mark: CacheMark) -> list[Any]:
        """A part or a tool with a cache breakpoint of this lifetime; None: without one."""
        if mark is not None:
            value["cache_control"] = {"type": "ephemeral", **({"ttl": mark} if mark else {})}
        return [value]

    def tool(self, tool: Tool) -> Any:
        """The declaration of a tool."""
        table, strict = self.parts.tools, self.strict(tool)
        about = {"description": tool.description} if tool.description else {}
        inner = put({"name": self.target.names(tool.name), **about}, table.schema, tool.schema)
        inner |= {"strict": strict} if strict is not None else {}
        if table.within and not table.listed:
            return put(table.outer, table.within, inner)
        return {**table.outer, **inner}

    def strict(self, tool: Tool) -> bool | None:
        """What a declaration says of strictness; None: nothing."""
        return tool.strict or None

    def choice(self, choice: ToolChoice | None) -> Any:
        """Which tool to call; None where nothing has to be said."""
        if choice is None:
            return None
        name = self.target.names(choice.name) if choice.mode == "tool" else ""
        return filled(self.table.choices[choice.mode][0], name)

    # --- messages ---

    def _messages(self, first: Iterable[NeutralTurn], steps: Iterable[OrderedTurn]) -> list[Any]:
        out = [self.message(turn.name or turn.role, self.content(turn.parts)) for turn in first]
        waiting: list[ResultPart] = []  # for the user message that results are a part of
        for step in steps:
            if step.role == "assistant":
                out += self._user_turn(waiting)
                out += self.model_turn(step)
                waiting = step.results
                if not self.table.mixes_results:
                    out += self._user_turn(waiting)
                    waiting = []
            elif step.role == "user":
                out += self._user_turn([*waiting, *step.parts])
                waiting = []
            else:
                out.append(self.message(step.name or step.role, self.content(step.parts)))
        return out + list(self._user_turn(waiting))

    def _user_turn(self, parts: Sequence[Part]) -> Iterator[Any]:
        """Results and what the user says, in one message or apart."""
        if self.table.mixes_results:
            yield from self.user_message(parts) if parts else ()
            return
        results = [value for p in parts if isinstance(p, ResultPart) for value in self.values(p)]
        words = [p for p in parts if isinstance(p, (TextPart, MediaPart))]
        moved, self.moved = self.moved, []
        if not self.parts.items and results:
            yield self.message("user", [*results, *(v for p in moved for v in self.values(p))])
            moved = []
        elif results:
            yield from results
        if moved or words:
            yield from self.user_message([*moved, *words])

    def values(self, part: Part) -> list[Any]:
        """A part as the format has it, with its cache breakpoint."""
        if isinstance(part, ResultPart):
            return self.result(part, self.target.ids(part.id))
        if isinstance(part, ReasoningPart):
            return [self.text(part.text)]
        if isinstance(part, CallPart):
            self._names[part.id] = part.name
            value = self.call(part, self.target.ids(part.id), self.target.names(part.name))
        elif isinstance(part, MediaPart):
            value = self.media(part) or self.text(named(part, self.log).text)
        else:
            value = self.text(part.text)
        return self.marked(value, part.mark)

    def text(self, text: str) -> Any:
        return {"text": text} if self.parts.by_key else {"type": self._text_type, "text": text}

    def _is_text(self, value: Any) -> bool:
        return bool(value.keys() == self.text("").keys())

    # --- settings ---

    def _settings(self, rules: TargetRules) -> dict[Path, dict[str, Any]]:
        """The parameters the target has, by section; the others are listed."""
        out: dict[Path, dict[str, Any]] = {}
        written = self.table.written
        for name, (value, path) in self.neutral.settings.items():
            place = written.get(name)
            most = rules.max_temperature if name == "temperature" else None
            if most is not None and value > most:
                self.log.lose(path, name, f"{most} is the highest here")
                value = most
            if place is not None:
                out.setdefault(place[:-1], {})[str(place[-1])] = value
            elif name == "model":
                self.log.notes["the model is named in the URL, not in the body"] += 1
            elif name != "parallel" and value is not False:
                self.log.lose(path, name)
        if (limit := rules.default_output) and not self.neutral.bare:
            place = written["max_output"]
            if "max_output" not in self.neutral.settings:
                out.setdefault(place[:-1], {})[str(place[-1])] = limit
                note = f"{place[-1]}: {limit} was added, which this format requires"
                self.log.notes[note] += 1
        return out
