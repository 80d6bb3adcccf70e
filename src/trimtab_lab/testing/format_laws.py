"""The laws that every format keeps, as tests to inherit.

    class TestMyFormat(FormatLaws):
        format = FORMAT                     # a trimtab.formats.Format: its functions and its rules
        examples = [request, …]             # acceptable requests, the richer the better

pytest is needed only to run them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from trimtab.formats import rules
from trimtab.formats.engine.base import Format, compact
from trimtab.formats.engine.reading import read
from trimtab.jsontext import paths, splicing
from trimtab.jsontext.paths import Path
from trimtab.planning.operations import operations
from trimtab.transcript.model import Block, Edit, Group, Place
from trimtab.transcript.transcript import Transcript

SHORT = "[shown shorter]"
_SHORT_JSON = '{"shown":"shorter"}'
UNKNOWN = {"kept": [1, {"as": "it is"}, None]}


class FormatLaws:
    """Inherit, set ``format`` and ``examples``, and let pytest collect the class."""

    format: ClassVar[Any]
    examples: ClassVar[Sequence[Any]]
    unknown_key: ClassVar[str] = "x_unknown_key"
    """A key that no message of this format has; None where unknown keys are refused."""

    # --- reading -----------------------------------------------------------------------------

    def test_examples_are_recognised_and_acceptable(self) -> None:
        """The examples must be acceptable, because the other laws say little about bad requests."""
        assert self.examples, "give examples"
        for tree in self.examples:
            assert self.format.detect(tree), "an example is not detected"
            assert self._broken(tree) == ()

    def test_reading_changes_nothing_and_is_the_same_twice(self) -> None:
        """Read → write with no edits is the very same object, and the same text."""
        for tree in self.examples:
            before = copy.deepcopy(tree)
            first, second = self._read(tree), self._read(tree)
            assert tree == before
            assert list(first.refs) == list(second.refs)
            assert operations(first, tree, []) == []
            assert paths.apply(tree, []) is tree
            text = json.dumps(tree, indent=1)
            assert splicing.splice(text, []) is text

    def test_every_block_stands_where_it_says(self) -> None:
        """Its path and its item resolve, and the path leads to its text in its spelling."""
        for tree in self.examples:
            transcript = self._read(tree)
            for place in transcript.places():
                where, item = transcript.where(place), transcript.item(place)
                paths.get(tree, item)
                if place.block.spelling != "part" and not place.block.sealed:
                    assert where[: len(item)] == item, f"{where} is not within {item}"
                    assert _text_at(tree, where, place.block) == place.block.text, where

    def test_every_part_stands_where_it_says(self) -> None:
        """Its path resolves, and its id is at its id_path."""
        for tree in self.examples:
            transcript = self._read(tree)
            for number, message in enumerate(transcript.messages):
                here = (*transcript.base, number)
                for part in message.parts:
                    paths.get(tree, (*here, *part.path))
                    if part.id_path:
                        assert paths.get(tree, (*here, *part.id_path)) == part.id

    def test_refs_are_unique_and_survive_serialisation(self) -> None:
        """One ref a block, the same after a way through JSON text."""
        for tree in self.examples:
            transcript = self._read(tree)
            assert len(transcript.refs) == sum(1 for _ in transcript.places())
            again = self._read(json.loads(json.dumps(tree, indent=2)))
            assert list(again.refs) == list(transcript.refs)

    def test_refs_stay_when_the_conversation_grows(self) -> None:
        """Blocks keep their refs when messages are appended."""
        for tree in self.examples:
            transcript = self._read(tree)
            for end in range(len(transcript.messages)):
                shorter = self._read(self._with(tree, self._messages(tree)[:end]))
                assert shorter.refs.keys() <= transcript.refs.keys()

    # --- groups ------------------------------------------------------------------------------

    def test_groups_are_in_order_and_do_not_overlap(self) -> None:
        """Each item belongs to one group at most."""
        for tree in self.examples:
            groups = self._read(tree).groups
            assert [g.first for g in groups] == sorted(g.first for g in groups)
            items = [item for group in groups for item in group.items]
            assert len(items) == len(set(items))
            for group in groups:
                assert group.first <= group.last
                assert all(group.first <= place.message <= group.last for place in group.places)

    def test_each_closed_group_can_be_dropped_alone(self) -> None:
        """The rest is acceptable; a group at the very end is never dropped."""
        for tree in self.examples:
            transcript = self._read(tree)
            for group in transcript.groups:
                followed = group.last + 1 < len(transcript.messages)
                if group.closed and group.has_calls and group.places and followed:
                    targets = tuple(transcript.ref(place) for place in group.places)
                    edit = Edit("drop", targets, SHORT, "test", "the law of groups")
                    assert self._broken(self._edited(transcript, tree, edit)) == (), _name(group)

    # --- edits -------------------------------------------------------------------------------

    def test_each_block_can_be_replaced_and_nothing_else_changes(self) -> None:
        """The request stays acceptable, and differs at the block's path alone."""
        for tree in self.examples:
            transcript = self._read(tree)
            for place in _editable(transcript):
                edited = self._edited(transcript, tree, self._replacement(transcript, place))
                spelled_as_part = place.block.spelling == "part"
                where = transcript.item(place) if spelled_as_part else transcript.where(place)
                changed = list(_differences(tree, edited))
                assert changed, f"nothing changed at {where}"
                assert all(path[: len(where)] == where for path in changed), (where, changed)
                assert self._broken(edited) == (), where

    def test_unknown_fields_are_carried_through(self) -> None:
        """An unknown key stays on every message, whichever block is edited."""
        for tree in self.examples:
            odd = self._with(tree, [self._odd(message) for message in self._messages(tree)])
            transcript = self._read(odd)
            plain = self._read(tree)
            assert [len(m.parts) for m in transcript.messages] == [
                len(m.parts) for m in plain.messages
            ]
            for place in _editable(transcript):
                edited = self._edited(transcript, odd, self._replacement(transcript, place))
                for message in self._messages(edited):
                    assert not isinstance(message, dict) or message[self.unknown_key] == UNKNOWN

    # --- writing -----------------------------------------------------------------------------

    def test_what_the_format_writes_it_reads_again(self) -> None:
        """A text message is a message of that text, results answer the calls they were made for."""
        for role in ("user", "assistant"):
            message = self.format.read_message(self.format.text_message(role, SHORT))
            assert message.role == role
            assert [block.text for block in message.blocks] == [SHORT]
        for tree in self.examples:
            for message in self._read(tree).messages:
                if message.calls:
                    results = list(self._results(self.format.result_parts(message.calls, SHORT)))
                    assert [part.id for part in results] == [part.id for part in message.calls]

    def _results(self, written: list[Any]) -> Iterator[Any]:
        together = self.format.results_in_user
        for item in [self.format.results_message(written)] if together else written:
            yield from self.format.read_message(item).results

    # --- helpers -----------------------------------------------------------------------------

    def _read(self, tree: Any) -> Transcript:
        format: Format = self.format
        return read(tree, format)

    def _broken(self, tree: Any) -> tuple[Any, ...]:
        return rules.check(self._read(tree))

    def _messages(self, tree: Any) -> list[Any]:
        messages: list[Any] = paths.get(tree, self.format.base(tree))
        return messages

    def _with(self, tree: Any, messages: list[Any]) -> Any:
        base: Path = self.format.base(tree)
        return {**tree, base[0]: messages} if base else messages

    def _odd(self, message: Any) -> Any:
        return {**message, self.unknown_key: UNKNOWN} if isinstance(message, dict) else message

    def _edited(self, transcript: Transcript, tree: Any, edit: Edit) -> Any:
        ops = [op for applied in operations(transcript, tree, [edit]) for op in applied.ops]
        return paths.apply(tree, ops)

    def _replacement(self, transcript: Transcript, place: Place) -> Edit:
        structured = place.block.spelling in ("json", "json-string")
        text = _SHORT_JSON if structured else SHORT
        return Edit("replace", (transcript.ref(place),), text, "test", "the law of edits")


def _editable(transcript: Transcript) -> Iterator[Place]:
    return (place for place in transcript.places() if not place.block.sealed)


def _text_at(tree: Any, where: Path, block: Block) -> Any:
    value = paths.get(tree, where)
    return compact(value) if block.spelling == "json" else value


def _differences(old: Any, new: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of the smallest values that differ."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from _differences(old[key], new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _differences(old_item, new_item, (*path, index))
    elif type(old) is not type(new) or old != new:
        yield path


def _name(group: Group) -> str:
    return f"the group of messages {group.first} to {group.last}"
