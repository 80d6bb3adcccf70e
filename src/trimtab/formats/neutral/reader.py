"""Reads a request of any format into a neutral request, by the format's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Any

from trimtab.formats.engine.pairs import PairKey, paired
from trimtab.formats.engine.parts import NeutralPart, PartRow, value_at
from trimtab.formats.neutral.choice_shapes import matched
from trimtab.formats.neutral.payloads import arguments_of, unflagged_items
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
    Role,
    Setting,
    TextPart,
    Tool,
    ToolChoice,
)
from trimtab.formats.neutral.table import ConversionTable
from trimtab.jsontext.paths import Path


class NeutralReader:
    """Reads one request.  A format's own reader adds what its tables don't give."""

    def __init__(self, table: ConversionTable, log: ConversionLog) -> None:
        self.table, self.parts, self.log = table, table.parts, log
        self._keys_of_rows: dict[tuple[PartRow, str], list[tuple[Path, frozenset[str]]]] = {}
        self._unnamed = Counter[str]()
        self._made = set[str]()

    def read(self, tree: Any) -> NeutralRequest:
        """A body, or a bare list of messages."""
        tree, key = self.plain(tree), self.parts.messages
        if isinstance(tree, list):
            return NeutralRequest(tuple(self._turns(tree, ())), bare=True)
        self._list_unknown(tree)
        messages = tree.get(key) or []
        if isinstance(messages, str):
            messages = [{"role": "user", self.parts.content: messages}]
        messages = [messages] if isinstance(messages, dict) else messages
        turns = (*self._head(tree), *self._turns(messages, (key,)))
        return NeutralRequest(
            turns, tuple(self._tools(tree)), self.choice(tree), self.settings(tree)
        )

    # --- what a format's own reader may replace ---

    def plain(self, tree: Any) -> Any:
        """The request in the spelling that the tables have."""
        return tree

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        """The medium of a part; its texts, where it consists of texts."""
        raise NotImplementedError

    def result_item(self, part: NeutralPart) -> JsonPart:
        """An item of a result that is neither text nor medium."""
        self.log.lose(part.path, _word(part), "carried as JSON")
        return JsonPart(part.value, part.path)

    def result_value(self, part: NeutralPart) -> tuple[list[ResultItem], bool]:
        """The content of a result that is no text and no list, and whether it is an error."""
        where = part.path_of(part.row.payload)
        return ([] if part.payload is None else [JsonPart(part.payload, where)]), part.failed

    def failed(self, part: NeutralPart) -> bool:
        """Whether a result has its error flag set."""
        return part.failed

    def reasoning(self, part: NeutralPart) -> Any:
        """The readable reasoning: a text, or a list of texts."""
        return part.payload

    def lose(self, part: NeutralPart) -> None:
        """List a part that no other provider has."""
        self.log.lose(part.path, _word(part))

    def declaration(self, tool: Any) -> Any:
        """The object that has the tool's name and schema; None for a tool of the server."""
        return value_at(tool, self.parts.tools.within)

    def schema(self, declaration: Any) -> Any:
        """The JSON Schema of a tool's arguments."""
        return value_at(declaration, self.parts.tools.schema)

    def free_form(self, tool: Any, declaration: Any) -> Any:
        """The declaration of a free-form tool; None for any other."""
        return None

    def mark(self, value: Any) -> CacheMark:
        """The cache breakpoint that a part or a tool carries, or is."""
        point = value.get("cache_control") if isinstance(value, dict) else None
        return str(point.get("ttl") or "") if isinstance(point, dict) else None

    # --- messages ---

    def _head(self, body: Any) -> list[NeutralTurn]:
        path = self.table.head
        value = body.get(path[0]) if path else None
        if isinstance(value, dict):
            value = value_at(value, path[1:])
        if not value:
            return []
        found = self.parts.read_content(self.table.content, value, path, "system")
        return [NeutralTurn("system", tuple(self._parts(found, {})), path[:1], "system")]

    def _turns(self, messages: Any, base: Path) -> list[NeutralTurn]:
        turns: list[NeutralTurn] = []
        for number, message in enumerate(messages):
            turn = self._turn(message, (*base, number))
            if (
                turn
                and self.parts.of_items
                and turns
                and turn.role == turns[-1].role == "assistant"
            ):
                turns[-1] = turns[-1]._replace(parts=turns[-1].parts + turn.parts)
            elif turn:
                turns.append(turn)
        return self._paired(turns)

    def _turn(self, message: Any, path: Path) -> NeutralTurn | None:
        parts = self.parts
        speaker, is_item = parts.speaker(message), parts.item(message) is not None
        if (
            self.parts.of_items and not is_item and speaker == "other"
        ):  # an item of a type without a row
            word = str(message.get("type") or "item")
            self.lose(NeutralPart("other", path, word, PartRow("other"), message))
            return None
        found = (part._replace(path=(*path, *part.path)) for part in parts.read(message))
        spoken = tuple(self._parts(found, message))
        if not is_item:
            known_keys = {"role", parts.item_by, *parts.parts, *self.table.quiet}
            self.list_unknown(message, known_keys, path)
            if speaker == "other":
                self.log.lose(path, "role", f"the role {message.get('role')} became user")
        role: Role = speaker if speaker in ("system", "assistant") else "user"
        if parts.of_items and not spoken and (is_item or role == "assistant"):
            return None
        if parts.of_items and role == "assistant":
            path = spoken[0].path
        return NeutralTurn(role, spoken, path, message["role"] if role == "system" else "")

    def _parts(self, found: Iterable[NeutralPart], message: Any) -> list[Part]:
        parts: list[Part] = []
        for part in found:
            if part.type != self.parts.mark or not self.parts.by_key:
                parts += self.part(part, message)
            elif parts and not isinstance(parts[-1], ReasoningPart):
                parts[-1] = parts[-1]._replace(mark=self.mark(part.value))
            else:
                why = "nothing that can carry it is before it"
                self.log.lose(part.path, "cache mark", why)
        return parts

    def part(self, part: NeutralPart, message: Any) -> list[Part]:
        """One part of a message; nothing where it cannot be carried."""
        mark = self.mark(part.value if isinstance(part.value, dict) else message)
        if part.kind == "text":
            return [self._text(part)._replace(mark=mark)] if part.payload else []
        if part.kind == "call":
            return [self._call(part)._replace(mark=mark)]
        if part.kind == "result":
            self._list_unknown_of_part(part)
            return [self.result(part)]
        if part.kind == "reasoning":
            sealed = not isinstance(part.value, str)
            return [ReasoningPart(_texts(self.reasoning(part)), part.path, sealed)]
        if part.kind == "media":
            return [medium._replace(mark=mark) for medium in self.media(part)]
        if isinstance(part.value, str):
            return [TextPart(part.value, part.path)]
        self.lose(part)
        return []

    def _text(self, part: NeutralPart) -> TextPart:
        self._list_unknown_of_part(part)
        if part.type == "refusal":
            self.log.lose(part.path, "refusal", "carried as text")
        return TextPart(part.payload, part.path_of(part.row.payload))

    def _call(self, part: NeutralPart) -> CallPart:
        self._list_unknown_of_part(part)
        custom, value = part.row.spelling == "string", part.payload
        if not custom:
            value = arguments_of(value, part.path_of(part.row.payload), self.log)
        return CallPart(part.id or self._new_id(part.name), part.name, value, part.path, custom)

    def result(self, part: NeutralPart) -> ResultPart:
        """A result under its given id, if it has one; ``_paired`` names the call it answers."""
        value, where = part.payload, part.path_of(part.row.payload)
        error, marks = self.failed(part), [self.mark(part.value)]
        items: list[Any] = []
        if isinstance(value, str) or _is_list_of_objects(value):
            for item in self.parts.read_content(self.table.content, value, where):
                marks.append(self.mark(item.value))
                if item.kind == "text":
                    items.append(self._text(item))
                else:
                    media = item.kind == "media"
                    items += self.part(item, {}) if media else [self.result_item(item)]
        else:
            items, error = self.result_value(part)
        if self.table.says_errors:
            items, flagged = unflagged_items(items)
            error = error or flagged
        mark = next((mark for mark in marks if mark is not None), None)
        return ResultPart(part.id, part.name, tuple(items), part.path, error, mark)

    # --- ids ---

    def _new_id(self, name: str) -> str:
        """The id of a call that has none: ``name:index``, the n-th such call of that tool."""
        id = f"{name}:{self._unnamed[name]}"
        self._unnamed[name] += 1
        self._made.add(id)
        return id

    def _paired(self, turns: list[NeutralTurn]) -> list[NeutralTurn]:
        """The turns with each result under the id of the call it answers."""
        results = (p for turn in turns for p in turn.parts if isinstance(p, ResultPart))
        if not self._made and all(result.id for result in results):
            return turns
        return [turn for run in _runs(turns) for turn in self._paired_run(run)]

    def _paired_run(self, run: list[NeutralTurn]) -> list[NeutralTurn]:
        calls = [p for turn in run for p in turn.parts if isinstance(p, CallPart)]
        results = [p for turn in run for p in turn.parts if isinstance(p, ResultPart)]
        pairs = paired(
            [PairKey("" if call.id in self._made else call.id, call.name) for call in calls],
            [PairKey(result.id, result.name) for result in results],
        )
        ids = iter(
            (result.id or f"{result.name}:unasked") if index is None else calls[index].id
            for result, index in zip(results, pairs, strict=True)
        )
        return [
            turn._replace(parts=tuple(
                part._replace(id=next(ids)) if isinstance(part, ResultPart) else part
                for part in turn.parts
            ))
            for turn in run
        ]  # fmt: skip

    # --- settings and tools ---

    def settings(self, body: Any) -> dict[str, Setting]:
        """The parameters that are set, by our names."""
        settings: dict[str, Setting] = {}
        for section, names in self.table.settings.items():
            source = value_at(body, section) or {}
            for key, name in names.items():
                value = source.get(key)
                if name == "stop" and isinstance(value, str):
                    value = [value]
                if value is not None and name not in settings:
                    settings[name] = Setting(value, (*section, key))
        return settings

    def _declared(self, body: Any) -> Iterator[tuple[Path, Any, Any]]:
        """(path, tool, its declaration)."""
        listed = self.parts.tools.listed
        for place in (self.parts.tools.path, *self.table.more_tools):
            tools = value_at(body, place) or ()
            for number, tool in enumerate([tools] if isinstance(tools, dict) else tools):
                path = (*place, number)
                if not listed:
                    yield path, tool, self.declaration(tool)
                    continue
                self.log.rest(tool, (listed,), path)
                for index, inner in enumerate(tool.get(listed) or ()):
                    yield (*path, listed, index), inner, inner

    def _tools(self, body: Any) -> list[Tool]:
        tools: list[Tool] = []
        for path, tool, declaration in self._declared(body):
            mark = self.mark(tool)
            if not isinstance(declaration, dict) or not declaration.get("name"):
                if mark is not None and tools:  # a breakpoint of its own
                    tools[-1] = tools[-1]._replace(mark=mark)
                else:
                    word = str(tool.get("type") or tool.get("name") or next(iter(tool), "tool"))
                    self.log.lose(path, word, "a tool of the server")
                continue
            known_keys = {*_TOOL, *self.table.quiet, str(self.parts.tools.schema[0])}
            self.log.rest(declaration, known_keys, path)
            name, about = str(declaration["name"]), str(declaration.get("description") or "")
            schema, custom = self.schema(declaration), self.free_form(tool, declaration)
            tools.append(Tool(name, about, schema, path, declaration.get("strict"), custom, mark))
        return tools

    def choice(self, body: Any) -> ToolChoice | None:
        """Which tool has to be called."""
        for path in (self.parts.tools.choice, *self.table.more_choices):
            value = value_at(body, path)
            for mode, shapes in self.table.choices.items():
                for shape in shapes:
                    name = matched(shape, value)
                    if name is None:
                        continue
                    if isinstance(shape, dict):
                        self.log.rest(value, shape.keys() | self.table.quiet, path)
                    return ToolChoice(mode, path, name)  # type: ignore[arg-type]
            if value:
                self.log.lose(path, "tool choice")
        return None

    # --- what nobody reads ---

    def _list_unknown(self, body: Any) -> None:
        """List the keys of a body, and of its sections, that no table names."""
        table = self.table
        settings = ((*section, key) for section, names in table.settings.items() for key in names)
        keys_by_place: dict[Path, set[Any]] = {(): {*table.head[:1], table.parts.messages}}
        more = (*table.more_tools, *table.more_choices)
        tools = table.parts.tools
        for place in (*settings, tools.path, tools.choice, *more):
            for depth, key in enumerate(place):
                keys_by_place.setdefault(place[:depth], set()).add(key)
        for path, keys in keys_by_place.items():
            if section := value_at(body, path):
                self.log.rest(section, keys, path)

    def _list_unknown_of_part(self, part: NeutralPart) -> None:
        if not isinstance(part.value, dict):
            return
        found = self._keys_of_rows.get((part.row, part.type))
        if found is None:
            found = self._keys_of_rows[part.row, part.type] = self._known_keys(part)
        for place, keys in found:
            self.list_unknown(value_at(part.value, place), keys, (*part.path, *place))

    def _known_keys(self, part: NeutralPart) -> list[tuple[Path, frozenset[str]]]:
        """The keys of a part and of its objects that its row names."""
        row, quiet = part.row, self.table.quiet | {"type", "role"}
        keys_by_place: dict[Path, frozenset[str]] = {(): quiet | {part.type}}
        for place in (row.id, row.name, row.payload, row.error):
            for depth in range(min(len(place), 2)):
                keys = keys_by_place.get(place[:depth], self.table.quiet)
                keys_by_place[place[:depth]] = keys | {str(place[depth])}
        return list(keys_by_place.items())

    def list_unknown(self, value: Any, known_keys: Set[str], path: Path) -> None:
        """List the keys of an object that are not known and have no usual value."""
        if isinstance(value, dict) and not value.keys() <= known_keys:
            usual = {key for key, usual in self.table.usual.items() if value.get(key) == usual}
            self.log.rest(value, known_keys | usual, path)


_TOOL = frozenset(("type", "name", "description", "strict", "format", "cache_control"))


def _runs(turns: list[NeutralTurn]) -> Iterator[list[NeutralTurn]]:
    """What the model said in a row, with what came before it spoke again."""
    run: list[NeutralTurn] = []
    for turn in turns:
        if run and turn.role == "assistant" != run[-1].role:
            yield run
            run = []
        run.append(turn)
    yield run


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _word(part: NeutralPart) -> str:
    return part.type or str(next(iter(part.value), "empty block"))


def _texts(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "\n\n".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    return str(value) if isinstance(value, str) else ""
