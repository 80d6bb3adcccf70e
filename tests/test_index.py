"""What was worked out about the beginning of a conversation changes no answer about the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from soak.trial import Case, case_of, messages_of

from trimtab import formats
from trimtab.index import Line, goes_on
from trimtab.model import Message, Transcript


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
