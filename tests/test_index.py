"""What was worked out about the beginning of a conversation changes no answer about the whole."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from responses_cases import LOCAL, PROGRAM, SEARCH, call, output, said, thought, user
from soak.trial import Case, case_of, messages_of

from trimtab import formats, rules
from trimtab.index import Line, Walk, goes_on, walked
from trimtab.model import Message, Transcript
from trimtab.reading.sound import Sound
from trimtab.rules.base import find


def read(case: Case, memo: formats.Memo, end: int) -> Transcript:
    """A history as it is read, up to a message; what is equal is the same object."""
    request = case["request"]
    if isinstance(request, list):
        request = request[:end]
    else:
        key = next(k for k in ("messages", "input", "contents") if k in request)
        request = {**request, key: request[key][:end]}
    format, _ = formats.find(request, case["format"])
    return formats.read(request, format, model=case["model"], memo=memo)


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_a_transcript_that_goes_on_is_indexed_as_one_read_at_once(first: int) -> None:
    compared = 0
    for seed in range(first, first + 40):
        case = case_of(seed)
        count, memo, before = len(messages_of(case["request"])), formats.Memo(), None
        for end in sorted({1, count // 4 or 1, count // 2 or 1, max(count - 1, 1), count}):
            alone = read(case, memo, end)
            part = replace(read(case, memo, end), before=before)
            assert part.groups == alone.groups, (seed, end)
            for name in ("names", "rows", "said"):
                assert getattr(part.index, name) == getattr(alone.index, name), (seed, end, name)
            compared += part.index._before is not None
            before = part.index.settled()
    assert compared > 60, "the beginnings were not recognised"


def test_which_line_goes_on_from_which_is_known_without_a_look_and_is_what_a_look_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said() -> Message:
        return Message("user", ())

    first = Line([said(), said()])
    lines = [first, first.on([said()]), second := first.on([said()]), second.on([])]
    lines += [second.on([said(), said()]), second.on([said()])]
    lines += [Line(), Line().on([said()]), Line(second), Line([*first, said()])]
    every = [(now, then, now[: len(then)] == tuple(then)) for now in lines for then in lines]
    for now, then, looked in every:
        assert goes_on(now, then) is goes_on(tuple(now), tuple(then)) is looked
    monkeypatch.setattr(Line, "__getitem__", None)
    longer = lines[-3].on([said()])
    assert goes_on(longer, lines[-3])
    assert not goes_on(lines[-3], longer)


class Roles(Walk):
    """The roles in order: what it is told, and how often it was told something."""

    told = 0

    def __init__(self) -> None:
        self.roles: list[tuple[int, str]] = []

    def add(self, number: int, message: Message) -> None:
        Roles.told += 1
        self.roles.append((number, message.role))
        if message.type == "raises":
            raise ValueError("a fault")


def test_a_walk_through_a_line_that_goes_on_is_told_what_is_new_and_knows_all() -> None:
    def told(messages: Sequence[Message]) -> int:
        before = Roles.told
        assert walked(messages, Roles).roles == [(n, m.role) for n, m in enumerate(messages)]
        return Roles.told - before

    user, model = Message("user", ()), Message("assistant", ())
    first = Line([user, model])
    second = first.on([user, model])
    third = second.on([user])
    assert [told(first), told(second), told(third), told(third)] == [2, 2, 1, 0]
    assert [told(second), told(third)] == [4, 0], "the shorter takes nothing from the longer"
    assert told(second.on([model, model])) == 6, "another end is another line"
    assert told(third.on([model])) == 1
    assert [told(tuple(third)), told(tuple(third)), told(())] == [5, 5, 0]


def test_a_walk_that_failed_is_begun_anew() -> None:
    user, raises = Message("user", ()), Message("user", (), type="raises")
    first = Line([user, user])
    assert len(walked(first, Roles).roles) == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="a fault"):
            walked(first.on([raises]), Roles)
    longer = first.on([raises, user])
    with pytest.raises(ValueError, match="a fault"):
        walked(longer, Roles)
    assert walked(first, Roles).roles == [(0, "user"), (1, "user")]


def test_a_memo_whose_reading_failed_reads_on_as_if_nothing_had_been(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    format, memo = formats.find(request, "openai-chat")[0], formats.Memo()
    first = memo.read(format, request[:1])
    monkeypatch.setattr(format, "read_message", None)
    with pytest.raises(TypeError):
        memo.read(format, request)
    monkeypatch.undo()
    assert memo.read(format, request[:1]) is first
    longer = memo.read(format, request)
    assert longer[:1] == first
    assert memo.read(format, request[:1]) == first
    other = memo.read(format, [request[0], {"role": "assistant", "content": "c"}])
    assert not goes_on(other, longer)
    assert [block.text for message in other for block in message.blocks] == ["a", "c"]


@pytest.mark.parametrize("last", [1, formats.base.RUN - 1, formats.base.RUN, 3 * formats.base.RUN])
def test_a_change_in_place_is_noticed_in_every_message_of_a_long_history(last: int) -> None:
    def said() -> list[dict[str, str]]:
        return [{"role": "user", "content": f"{n}"} for n in range(3 * formats.base.RUN + 2)]

    messages = said()
    format, memo = formats.find(messages, "openai-chat")[0], formats.Memo()
    for end in range(1, len(messages)):
        before = memo.read(format, messages[:end])
    messages[last - 1]["content"] = "other"
    after = memo.read(format, messages)
    assert after[last - 1].blocks[0].text == "other"
    assert not goes_on(after, before)
    messages[last - 1] = {"content": "other", "role": "user"}
    again = memo.read(format, messages)
    assert again[last - 1] is not after[last - 1], "another order of keys"
    assert again[-1] is after[-1]


def items_of(draw: random.Random) -> list[Any]:
    """Items in any order: late answers, taken ids, tools called long after they were found, items
    that need reasoning which stands elsewhere, programs and references that excuse others."""
    tools = [{"type": "function", "name": name} for name in ("rate", "read")]
    found = {"type": "tool_search_output", "execution": "client", "tools": tools}
    web = {"type": "web_search_call", "status": "completed"}
    local = {**LOCAL, "id": "c2"}
    items: list[Any] = [user()]
    wild = draw.random() < 0.5
    for number in range(draw.randrange(4, 40)):
        name, own = draw.choice("abcdefghijkl"), f"c_{number}"
        legal = [
            user(), said(), [call(own), output(own)], [call(own, name="rate"), output(own)],
            [{**SEARCH, "call_id": own}, {**found, "call_id": own}], [thought(None), said()],
            [call(own), said(), output(own)],
            [thought(f"rs_{number}"), call(own, id=f"fc_{number}"), output(own)],
            call(own, id=f"fc_{number}"), {**web, "id": f"ws_{number}"},
        ]  # fmt: skip
        odd = [
            thought(f"rs_{draw.randrange(9)}"), thought(None), call(name), call(""),
            call(name, id=f"fc_{draw.randrange(20)}"), call(name, name="rate"), output(name),
            output(name), {**web, "id": f"ws_{draw.randrange(30)}"}, {**SEARCH, "call_id": name},
            {**found, "call_id": name}, {**local, "call_id": name}, output("c2"),
            {**PROGRAM, "call_id": name}, {"type": "item_reference", "id": f"fc_{name}"},
        ]  # fmt: skip
        items.append(draw.choice(legal + odd if wild else legal))
    return [item for one in items for item in (one if isinstance(one, list) else [one])]


@pytest.mark.parametrize("model", ["gpt-5.5", "deepseek-v4-flash"])
def test_items_in_any_order_are_grouped_and_judged_as_a_whole_when_they_come_one_by_one(
    model: str,
) -> None:
    kept = resumed = 0
    for seed in range(300):
        draw = random.Random(seed)
        items, memo, sound, before, end = items_of(draw), formats.Memo(), Sound(), None, 0
        format, open_tail = formats.find(items, "openai-responses")[0], draw.random() < 0.5
        while end < len(items):
            end = min(len(items), end + draw.choice([1, 1, 1, 2, 5]))
            read = formats.read(items[:end], format, model=model, memo=memo)
            alone, part = replace(read, messages=tuple(read.messages)), replace(read, before=before)
            assert part.groups == alone.groups, (seed, end)
            kept += part.index.over != ()
            assert find(rules.TABLES[format.name], part, open_tail) == find(
                rules.TABLES[format.name], alone, open_tail
            ), (seed, end)
            resumed += bool(sound._known(part, open_tail))
            expected = rules.check(alone, open_tail=open_tail)
            assert sound.check(part, open_tail=open_tail, failures=None) == expected, (seed, end)
            before = part.index.settled()
    assert kept > 1000
    assert resumed > 300


def test_a_walk_that_another_thread_is_on_is_not_gone_on_with() -> None:
    """A report may be asked while the next turn is read: each then walks by itself."""
    inner: list[tuple[int, ...]] = []

    class Seen(Walk):
        def __init__(self) -> None:
            self.numbers: tuple[int, ...] = ()

        def add(self, number: int, message: Message) -> None:
            if number == 3 and not inner:  # as if another thread came in between
                inner.append(())
                inner[0] = walked(line, Seen).numbers
            self.numbers += (number,)

    case = case_of(0)
    views = read(case, formats.Memo(), 2).messages * 2
    line = Line(views[:2])
    walked(line, Seen)
    line = line.on(views[2:])
    assert walked(line, Seen).numbers == inner[0] == (0, 1, 2, 3)
