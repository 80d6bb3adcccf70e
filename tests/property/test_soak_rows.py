"""The judges of ``soak/together.py`` notice what they are there for: rows, and growth."""

from __future__ import annotations

import json

import pytest
from soak import growth
from soak.growth import Growth
from soak.rows import marks, rows, wrong_original, wrong_rows

OUTPUT = rows("user-1.7_0", 4)
FOLDED = json.dumps([{"role": "user", "content": [{"type": "tool_result", "content": OUTPUT}]}])


def test_an_original_that_is_whole_passes() -> None:
    assert marks(OUTPUT) == {"user-1.7_0"}
    assert list(wrong_original(OUTPUT, "user-1")) == []
    assert list(wrong_original(FOLDED, "user-1")) == []
    assert list(wrong_original("Go on.", "user-1")) == []


def test_each_wrong_byte_of_an_original_is_noticed() -> None:
    for place in range(len(OUTPUT)):
        wrong = f"{OUTPUT[:place]}~{OUTPUT[place + 1 :]}"
        assert list(wrong_original(wrong, "user-1")), place
        assert list(wrong_original(f"{OUTPUT[:place]}{OUTPUT[place + 1 :]}", "user-1")), place


def test_missing_rows_and_rows_of_others_are_noticed() -> None:
    lines = OUTPUT.split("\n")
    assert list(wrong_original("\n".join(lines[:-1]), "user-1"))
    assert list(wrong_original("\n".join(lines[1:]), "user-1"))
    assert list(wrong_original(OUTPUT, "user-2"))
    assert list(wrong_rows(FOLDED, "user-2"))
    assert list(wrong_rows(OUTPUT, "")) == []


def test_what_a_look_up_says_of_rows_passes() -> None:
    first = OUTPUT.split("\n")[0]
    said = f"r5idmxal6zz step 2 (bash):\nline 1 (chars 0-80): {first}\nrb2: {first} (~1,451 tokens)"
    assert list(wrong_original(said, "user-1")) == []


@pytest.mark.parametrize("late", [100.0, 300.0])
def test_growth_compares_the_sixth_minute_with_the_last(
    monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    seen = Growth()
    for seconds in range(0, 1_800, 5):
        size = 50.0 if seconds < 300 else 100.0 if seconds < 360 else late
        monkeypatch.setattr(growth, "megabytes", lambda process, size=size: size)
        assert seen.take("one", 7, float(seconds)) == size
    assert seen.rows(1_800.0) == {"one (7)": (100.0, late)}
