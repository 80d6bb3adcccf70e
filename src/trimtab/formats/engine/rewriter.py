"""Turns the model's answers over several rounds into one answer for the client.

A rewriter takes the answers of one format, whole or event by event.  It leaves out the calls of
our own tools, and holds the end of an answer until it is known whether another round follows.
What is said here for all formats reads their tables; ``answers.py`` of the format has the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self

from trimtab.formats.engine.answers import AnswerError, AnswerTable, added, summed
from trimtab.formats.engine.parts import NeutralPart, PartTable, put, value_at
from trimtab.formats.engine.stream_events import StreamEvent, parsed, server_sent
from trimtab.jsontext.paths import Path

BREAK = "\n\n"
"""Between the texts of two rounds, which the model said as two messages."""
_DONE = b"[DONE]"


class StreamAssembler(Protocol):
    """Puts an answer together from the events of its stream."""

    def take(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The whole answer after its last event, else None."""
        ...


class AnswerRewriter:
    """Rewrites the answers of one format: parts get new numbers, those of our own calls are left
    out, later rounds go on counting."""

    answers: ClassVar[AnswerTable]
    table: ClassVar[PartTable]
    framed: ClassVar[bool] = False
    """Whether it writes AWS event-stream frames."""
    assembler: ClassVar[Callable[[], StreamAssembler] | None] = None
    """Puts the answer together where the last event of a stream has only a part of it."""

    def __init__(self) -> None:
        self.ours: frozenset[str] = frozenset()
        """Names of the tools that we run ourselves."""
        self.sums_prompts = False
        """Whether the prompts of all rounds are one sum, or the last one is told: a client that
        reads from it how full the window is would compact too early."""
        self.has_client_calls = False
        """Whether this round has calls for the client too."""
        self.first_id = self.last_id = ""
        """The ids of the first answer, which the client knows, and of the last one."""
        self._usage: Any = None
        self._sums: dict[str, Any] = {}
        self._ends_open = self._runs_on = False
        self._rounds = self._next = 0
        self._before: list[Any] = []
        """What the client has received in the rounds before."""
        self._last: dict[str, Any] = {}
        self._done = b""
        self._opening_usage: Any = None
        self._clear()

    def _clear(self) -> None:
        self.has_client_calls = False
        self._parts: dict[int, Any] = {}
        """The parts of this round by their number."""
        self._json: dict[int, tuple[Path, str]] = {}
        """Number → where the JSON goes that is still being streamed."""
        self._new_index: dict[int, int] = {}
        self._end: list[tuple[str, dict[str, Any]]] = []
        self._break: tuple[int, int | None, str] | None = None
        """(part, content in it) of this round, and what is before its text, for the client."""

    def started_over(self) -> Self:
        """A rewriter that has shown nothing yet, and knows what the rounds before it cost."""
        fresh = type(self)()
        fresh.ours, fresh.sums_prompts = self.ours, self.sums_prompts
        fresh._usage, fresh._sums = self._usage, self._sums
        return fresh

    def begin(self) -> None:
        """Begin a round."""
        if self._rounds:
            self._before += self._for_client()
        self._rounds += 1
        self._clear()
        self._runs_on = self._ends_open

    # --- parts ---------------------------------------------------------------------------------

    def is_ours(self, part: Any) -> bool:
        """Whether this is a call of one of our tools."""
        found = self.table.read_one(part)
        return found.kind == "call" and found.name in self.ours

    @property
    def recalls(self) -> list[Any]:
        """The calls of our tools in this round."""
        return [part for part in self._whole_parts() if self.is_ours(part)]

    def _whole_parts(self) -> list[Any]:
        return [self._finished(index) for index in sorted(self._parts)]

    def _finished(self, index: int) -> Any:
        """A part with its arguments parsed."""
        part = self._parts[index]
        if index not in self._json:
            return part
        path, text = self._json[index]
        try:
            return put(part, path, json.loads(text or "{}"))
        except ValueError:
            return put(part, path, {})

    def real(self) -> list[Any]:
        """This round as messages of the history."""
        return self._as_messages([p for p in self._whole_parts() if not self._is_empty(p)])

    def visible(self) -> list[Any]:
        """What the client has received over all rounds, as messages of the history."""
        return self._as_messages([*self._before, *self._for_client()])

    def _as_messages(self, parts: list[Any]) -> list[Any]:
        return parts if self.table.of_items else [self.table.model_message(parts)]

    def _is_empty(self, part: Any) -> bool:
        """Whether a part says nothing; some providers refuse such a one."""
        if self.table.of_items:
            return False
        found = self.table.read_one(part)
        return not part or (found.kind == "text" and not found.payload and not found.seal)

    def _for_client(self) -> list[Any]:
        return [
            self._with_lead(index, self._finished(index))
            for index in sorted(self._parts)
            if not self.is_ours(self._parts[index])
        ]

    def _take(self, index: int, part: Any) -> bool:
        """Take one part in; returns whether it is one of our calls."""
        self._parts[index] = part
        found = self.table.read_one(part)
        ours = found.kind == "call" and found.name in self.ours
        self.has_client_calls |= found.kind == "call" and not ours
        return ours

    # --- where one round's text runs into the next ---------------------------------------------

    def break_before(self, text: str) -> str:
        """A blank line where ``text`` would run into the last word of an earlier round, as in
        "I need itdone"; else "".  To be asked for each text that the client gets, in order."""
        if not text:
            return ""
        runs_on = self._runs_on and not text[0].isspace()
        self._runs_on, self._ends_open = False, not text[-1].isspace()
        return BREAK if runs_on else ""

    def _find_break(self, index: int, part: Any) -> None:
        """Look for it in a part that came whole."""
        for inner, found in self._texts_in(part):
            if lead := self.break_before(found.payload):
                self._break = (index, inner, lead)

    def _texts_in(self, part: Any) -> Iterator[tuple[int | None, NeutralPart]]:
        """(number, text) of each text in an item; (None, text) of a part that is one."""
        if not self.table.of_items:
            found = self.table.read_one(part)
            if found.kind == "text":
                yield None, found
            return
        for found in self.table.read(part):
            if found.row.payload == ("text",) and len(found.path) == 2:
                yield int(found.path[1]), found

    def _with_lead(self, index: int, part: Any) -> Any:
        """A part for the client."""
        if self._break is None or self._break[0] != index:
            return part
        _, wanted, lead = self._break
        for inner, found in self._texts_in(part):
            if wanted in (None, inner):
                led = with_lead(found.value, found.row.payload, lead)
                return led if inner is None else put(part, found.path, led)
        return part

    # --- whole answers -------------------------------------------------------------------------

    def take_full_response(self, tree: Any) -> None:
        """Take a round's whole answer."""
        self._take_answer(tree)
        for index, part in self._parts.items():
            if not self.is_ours(part):
                self._find_break(index, part)

    def _take_answer(self, tree: Any) -> None:
        self._last = tree
        self.last_id = str(tree.get("id") or "")
        self.first_id = self.first_id or self.last_id
        self._add_cost(tree)
        parts = value_at(tree, self.answers.parts)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                self._take(len(self._parts), part)

    def answer(self) -> Any:
        """The last answer with what all rounds said, and what they cost."""
        return self._stopped(self._costed(self._with_parts(self._last, self._shown())))

    def _shown(self) -> list[Any]:
        return [*self._before, *self._for_client()]

    def _with_parts(self, tree: Any, parts: list[Any]) -> Any:
        at, blank = self.answers.parts, self.answers.blank
        parts = parts or ([] if blank is None else [blank])
        if len(at) > 1 and not value_at(tree, at[:-1]):
            return put(tree, at[:-1], self.table.model_message(parts))
        return put(tree, at, parts)

    def _stopped(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The reason to stop, without our calls."""
        calls, done = self.answers.stops
        for path in ((self.answers.stop,), (self.answers.delta, self.answers.stop)):
            if calls and value_at(tree, path) == calls and not self.has_client_calls:
                return put(tree, path, done)  # type: ignore[no-any-return]
        return tree

    # --- costs ---------------------------------------------------------------------------------

    def added(self, before: Any, usage: Any) -> Any:
        """The usage of the rounds before and of one more."""
        if self.sums_prompts:
            return summed(before, usage)
        return added(before, usage, self.answers.tokens)

    def _add_cost(self, tree: Any) -> None:
        usage = tree.get(self.answers.usage)
        opening = self._opening_usage
        if self.sums_prompts and isinstance(opening, dict) and isinstance(usage, dict):
            usage, self._opening_usage = {**opening, **usage}, None
        self._usage = self.added(self._usage, usage)
        for key in self.answers.summed:
            self._sums[key] = summed(self._sums.get(key), tree.get(key))

    def _costed(self, tree: dict[str, Any]) -> dict[str, Any]:
        sums = {key: value for key, value in self._sums.items() if value}
        return {**tree, self.answers.usage: self._usage, **sums}

    # --- streams -------------------------------------------------------------------------------

    def event(self, event: StreamEvent) -> bytes:
        """The bytes to pass on for one event."""
        tree, table = loads(event), self.answers
        if tree is None or event.failed:
            return self._unread(event)
        kind = str(tree.get(table.type)) if table.type else event.name
        if isinstance(tree.get(table.last), dict):
            self.first_id = self.first_id or str(tree[table.last].get("id") or "")
        if kind in table.ending:
            self._end.append((event.name, tree))
            if table.last:
                self._take_answer(self._whole(tree))
            return b""
        index = tree.get(table.index)
        if not isinstance(index, int):
            return self._without_number(event, tree, kind)
        if self._grow(index, kind, tree):
            return b""
        tree = {**self._led_event(tree, index), table.index: self._new_index[index]}
        return self._frame(tree, event.name)

    def _whole(self, tree: dict[str, Any]) -> dict[str, Any]:
        """The whole answer in the last event."""
        return tree.get(self.answers.last) or {}

    def _unread(self, event: StreamEvent) -> bytes:
        """An event that is no JSON object, or an error by its frame."""
        if event.data.strip() != _DONE:
            return event.raw
        self._done = event.raw
        return b""

    def _without_number(self, event: StreamEvent, tree: dict[str, Any], kind: str) -> bytes:
        """An event of the answer as a whole: of its beginning the client has one."""
        if not kind.startswith(self.answers.opening):
            return self._passed(event, tree)
        if self.answers.opening_usage:
            self._opening_usage = value_at(tree, self.answers.opening_usage)
        return self._passed(event, tree) if self._rounds == 1 else b""

    def _passed(self, event: StreamEvent, tree: dict[str, Any]) -> bytes:
        return event.raw

    def _grow(self, index: int, kind: str, tree: dict[str, Any]) -> bool:
        """Take an event of one part in; returns whether it is hidden from the client."""
        table = self.answers
        if kind == table.begins if table.begins else index not in self._parts:
            part = value_at(tree, table.begun) or {}
            found = self.table.read_one(part)
            if (
                found.kind == "call" and found.payload is None
            ):  # a call without arguments has no delta
                self._json[index] = (found.row.payload, "")
            # Where the end has the whole answer, that is what is taken in.
            ours = self.is_ours(part) if table.last else self._take(index, part)
            if not ours:
                self._new_index[index] = self._next
                self._next += 1
        for delta in table.deltas:
            more = value_at(tree.get(table.delta), delta.source)
            if more is not None:
                self._add(index, delta.how, delta.target, more)
        return index not in self._new_index

    def _add(self, index: int, how: str, path: Path, more: Any) -> None:
        part = self._parts.setdefault(index, {})
        before = value_at(part, path)
        if how == "json":
            self._json[index] = (path, self._json.get(index, (path, ""))[1] + more)
            return
        if how == "text":
            more = (before or "") + more
        elif how == "item":
            more = [*(before or ()), more]
        self._parts[index] = put(part, path, more)

    def _led_event(self, tree: dict[str, Any], index: int) -> dict[str, Any]:
        """An event about a part that the client gets."""
        table = self.answers
        typed = table.text_type is None or value_at(tree, table.text_type[0]) == table.text_type[1]
        text = value_at(tree, table.text)
        if not typed or not isinstance(text, str) or not (lead := self.break_before(text)):
            return tree
        self._break = (index, tree.get("content_index"), lead)
        return put(tree, table.text, lead + text)  # type: ignore[no-any-return]

    def _frame(self, tree: dict[str, Any], name: str) -> bytes:
        return sse(tree, name)

    def discard_round_end(self) -> None:
        """Drop the end of this round, as another one follows; its usage is kept."""
        for _, tree in self._end:
            self._add_cost(tree)

    def end(self) -> bytes:
        """The end of a streamed answer, with what all rounds cost."""
        return b"".join((*(self._frame(*self._ended(*one)) for one in self._end), self._done))

    def _ended(self, name: str, tree: dict[str, Any]) -> tuple[dict[str, Any], str]:
        kind = tree.get(self.answers.type) if self.answers.type else name
        if kind == self.answers.final_usage:
            self._add_cost(tree)
            tree = self._costed(tree)
        return self._stopped(tree), name

    def failed(self, failure: AnswerError) -> bytes:
        """The event that reports an error within a stream."""
        raise NotImplementedError


def with_lead(part: Any, path: Path, lead: str) -> Any:
    """A text with ``lead`` before it; what points into it moves along."""
    led = put(part, path, lead + str(value_at(part, path) or ""))
    if isinstance(part.get("annotations"), list):
        led["annotations"] = [moved(note, len(lead)) for note in part["annotations"]]
    return led


def moved(note: Any, chars: int) -> Any:
    """An annotation of a text that begins ``chars`` later."""
    if not isinstance(note, dict):
        return note
    places = {key: note[key] + chars for key in ("start_index", "end_index") if key in note}
    return {**note, **places}


def loads(event: StreamEvent) -> Any:
    """The JSON object in an event, or None."""
    tree = parsed(event)
    return tree if isinstance(tree, dict) else None


def sse(value: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """One event."""
    return server_sent(dumped(value), name, end)


def dumped(value: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()
