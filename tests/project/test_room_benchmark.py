"""The benchmark of the room that cuts use: who leaves it empty, or falls off a cliff, is told so.

Knows ``bench/room.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import trimtab

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import room
from room import Cut


def cuts(*shares: float) -> list[Cut]:
    return [Cut(2_000, int(1_000 * share), 1_000) for share in shares]


def test_a_cut_below_ninety_percent_of_its_target_lowers_the_share() -> None:
    assert room.verdict(cuts(0.95, 0.99, 0.91)).endswith("100.0%")
    assert room.verdict(cuts(0.95, 0.40, 0.89, 0.91)).endswith(" 50.0%")


def test_a_cut_that_left_out_less_than_its_free_room_is_not_judged() -> None:
    assert not Cut(before=900, sent=500, target=1_000).more
    assert Cut(before=1_600, sent=500, target=1_000).more
    assert "none where more could be shown" in room.verdict([Cut(900, 500, 1_000)])


@pytest.fixture(scope="module")
def chat() -> tuple[str, dict[str, Any], int, int]:
    return next(room.chats(1, 3))


def smooth(request: dict[str, Any], window: int) -> Cut:
    return Cut(100_000, int(0.7 * window), int(0.7 * window))


def test_who_falls_off_a_cliff_is_told_where(chat: tuple[str, dict[str, Any], int, int]) -> None:
    name, _, least, whole = chat
    cliff = room.points(least, whole, 8)[4]

    def falls(request: dict[str, Any], window: int) -> Cut:
        return smooth(request, window) if window >= cliff else Cut(100_000, 30, int(0.7 * window))

    good = room.smoothness([chat], smooth, 8)
    assert (good.fell, good.cliffs, good.backward, good.uneven) == (0, 0, 0, 0)
    assert (good.pairs, good.steps) == (8, 7)
    found = room.smoothness([chat], falls, 8)
    assert (found.fell, found.cliffs) == (1, 1)
    assert found.uneven >= 1
    assert f"{name} at {cliff:,}" in found.worst[1]


def test_who_sends_less_in_a_larger_window_is_told(
    chat: tuple[str, dict[str, Any], int, int],
) -> None:
    def shrinks(request: dict[str, Any], window: int) -> Cut:
        return Cut(10**7, 10**6 // window, int(0.7 * window))

    assert room.smoothness([chat], shrinks, 8).backward == 7


def test_the_step_down_at_which_a_cut_begins_is_meant() -> None:
    found = room.Smoothness()
    found.pair(Cut(1_000, 700, 700), Cut(1_000, 1_000, 700), "here")
    assert (found.begins, found.pairs, found.fell) == (1, 0, 0)


def test_the_newest_results_count_as_whole_up_to_the_first_that_is_cut() -> None:
    given = room.exchanges(1, 6)
    sent: dict[str, Any] = json.loads(json.dumps(given))
    results = [m for m in sent["messages"] if m["role"] == "tool"]
    results[3]["content"] = results[3]["content"][:200]
    found = room.newest(given, sent, Cut(20_000, 10_000, 14_000))
    assert (found.whole, found.free, found.wasted) == (2, 4_000, True)
    assert 900 < found.following < 3_100
    assert not room.newest(given, sent, Cut(20_000, 13_900, 14_000)).wasted
    assert room.newest(given, given, Cut(20_000, 9_000, 14_000)) == (6, 5_000, 0)


def test_what_is_made_is_valid_and_the_same_for_the_same_seed() -> None:
    for make in (room.chat, room.exchanges):
        assert trimtab.check(make(1)) == ()
        assert make(1) == make(1)
        assert make(1) != make(2)


def _record(number: int) -> str:
    messages = []
    for turn in range(12):
        id = f"c{turn}"
        text = " ".join(f"{number}-{turn}-{word}" for word in range(3_000))
        function = {"name": "read", "arguments": "{}"}
        call = {"id": id, "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Go on, {turn}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": text},
            {"role": "assistant", "content": "Done."},
        ]
    record: dict[str, Any] = {
        "id": f"r{number}", "source": "s", "license": "MIT", "format": "openai-chat",
        "model": "gpt-5.1", "system": None, "messages": messages, "tools": None, "meta": {},
    }  # fmt: skip
    return json.dumps(record) + "\n"


def test_recordings_are_played_and_the_held_out_ones_are_others(tmp_path: Path) -> None:
    (tmp_path / "openhands-sdk.jsonl").write_text("".join(map(_record, range(8))))
    own, held = ({one.id for one in room.sample(tmp_path, out)} for out in (False, True))
    assert own
    assert held
    assert not own & held
    one = room.sample(tmp_path, held_out=False)[0]
    found = [*room.played(one, 32_000), *room.at_once(one, 32_000)]
    assert len(found) >= 2
    assert all(cut.more and 0 < cut.used <= 1 for cut in found)
