"""Law 10, fail safe: whatever part of ours raises, the request goes out legal or as it came.

Breaks the library's own registries (reducers, rule tables) and the counter, one at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import histories
import judge
import pytest
from settings_words import as_keywords
from soak.story import Frame, Message, Part, Story
from soak.writers_more import WRITERS

import trimtab
import trimtab.formats.rules
import trimtab.reducers
from trimtab.formats import FORMATS


class Broken(RuntimeError):
    """What a part of ours raises when it is made to fail."""


def fails(*args: Any, **more: Any) -> Any:
    raise Broken("made to fail")


BIG = "The quick brown fox reads line after line of the log file. " * 40


def long_request(format: str) -> Any:
    """A legal request with something for each reducer, 4 to 6 times over a window of 4,000."""
    told: Story = [Message("user", [Part("text", 0, "Find the bug."), Part("image", 1)])]
    for n in range(6):
        told += turn(n, f"{n} {BIG * 4}", {"cmd": "cat log", "content": BIG})
        told[-2].parts[:0] = [
            Part("thought", n, "Let me look first. " * 8),
            Part("text", n, "Aha."),
        ]
    told.append(Message("user", [Part("text", 9, "And?")]))
    return written(told, format)


def turn(number: int, text: str, arguments: Any, shape: str = "image") -> Story:
    """A call and its result."""
    call = Part("call", number, "", "", f"call_{number}", "bash")
    call.arguments = arguments
    result = Part("result", number, text, shape, call.id, "bash")
    return [Message("assistant", [call]), Message("user", [result])]


def written(told: Story, format: str) -> Any:
    """The request of a plain client."""
    frame = Frame(None, False, "Be brief.", False, True, "", "global", True, False, False)
    return WRITERS[format](told, frame)


def damaged(damage: str) -> Story:
    """A turn that came to harm."""
    call, result = turn(99, "x", {}, "")
    lost = Part("result", 98, "who asked?", "", "call_lost", "bash")
    if damage == "unanswered":
        return [call]
    if damage == "blank":
        call.parts.insert(0, Part("text", 98, "\n\n"))
    else:
        result.parts.append(lost if damage == "orphan" else result.parts[0].copy())
    return [call, result]


def assert_served(request: Any, format: str, **more: Any) -> Any:
    """Whatever broke, what is sent is legal and fits, and the report says what happened."""
    more = {"counter": "o200k", "window": 4_000, **more}
    fitted = trimtab.fit(request, **as_keywords(format=format, reserve=0, **more))
    assert judge.problems(fitted.request, format) == []
    assert fitted.report.warnings, "it failed without a word"
    return fitted


REDUCER_NAMES = [reducer.__name__ for reducer in trimtab.reducers.REDUCERS]


@pytest.mark.parametrize("format", histories.FORMATS)
@pytest.mark.parametrize("name", REDUCER_NAMES)
def test_law_10_a_reducer_that_raises_is_left_out_and_named(
    name: str, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tuple(fails if one.__name__ == name else one for one in trimtab.reducers.REDUCERS)
    break_reducers(monkeypatch, broken)
    fitted = assert_served(long_request(format), format)
    assert judge.tokens(fitted.request, format) <= 4_000


@pytest.mark.parametrize("format", histories.FORMATS)
def test_law_10_without_any_working_reducer_whole_groups_still_go(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_reducers(monkeypatch, (fails,) * len(REDUCER_NAMES))
    monkeypatch.setattr("trimtab.planning.make_room.fold", fails)
    fitted = assert_served(long_request(format), format, window=10_000)
    assert {"drop", "fold"} & {edit.kind for edit in fitted.report.edits}


def break_reducers(monkeypatch: pytest.MonkeyPatch, broken: tuple[Any, ...]) -> None:
    """Put these in place of the library's list, wherever it is read from."""
    monkeypatch.setattr(trimtab.reducers, "REDUCERS", broken)
    defaults = trimtab.reducers.levels.__kwdefaults__
    if "reducers" in (defaults or {}):
        monkeypatch.setitem(defaults, "reducers", broken)


@pytest.mark.parametrize("format", histories.FORMATS)
def test_law_10_a_plan_that_comes_out_larger_than_it_counted_is_a_step_down_and_told(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts_too_little(planner: Any) -> None:
        planner.state.tokens = -(10**9)

    monkeypatch.setattr("trimtab.request.planned.make_room", counts_too_little)
    fitted = assert_served(long_request(format), format)
    assert any("larger than was counted" in text for text in fitted.report.warnings)
    assert any(text == "fell back to: the smallest" for text in fitted.report.warnings)


@pytest.mark.parametrize("format", histories.FORMATS)
@pytest.mark.parametrize("good_calls", [0, 1, 7, 40])
def test_law_10_a_counter_that_raises_is_replaced(good_calls: int, format: str) -> None:
    left = good_calls

    def counter(text: str) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise Broken("made to fail")
        return len(text) // 4 + 1

    fitted = assert_served(long_request(format), format, counter=counter)
    assert judge.tokens(fitted.request, format) <= 4_000


@pytest.mark.parametrize("format", histories.FORMATS)
@pytest.mark.parametrize("nonsense", [None, -5, "12", float("nan"), 10**30])
def test_law_10_a_counter_that_returns_nonsense_breaks_nothing(nonsense: Any, format: str) -> None:
    request = long_request(format)
    try:
        fitted = trimtab.fit(
            request,
            format=format,
            window=4_000,
            reserve=0,
            settings=trimtab.Settings(counter=lambda text: nonsense),
        )
    except trimtab.TrimtabError:  # told so, on purpose
        return
    assert judge.problems(fitted.request, format) == []


def rule_parts(format: str) -> list[str]:
    """Names of everything in a format's table that is called."""
    table = FORMATS[format].rules
    rows = [f"repair {row.name}" for row in table.rows]
    return [*rows, *(f"scan {number}" for number in range(len(table.scans)))]


@pytest.mark.parametrize(
    ("format", "part"), [(name, part) for name in histories.FORMATS for part in rule_parts(name)]
)
@pytest.mark.parametrize("damage", ["", "unanswered", "orphan", "blank", "duplicate result"])
def test_law_10_a_rule_that_raises_never_breaks_a_request(
    format: str, part: str, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = FORMATS[format].rules
    kind, name = part.split(" ")
    if kind == "repair":
        rows = tuple(
            replace(row, make_repairs=fails) if row.name == name else row for row in table.rows
        )
        broken = replace(table, rows=rows)
    else:
        scans = [fails if str(number) == name else scan for number, scan in enumerate(table.scans)]
        broken = replace(table, scans=tuple(scans))
    monkeypatch.setitem(FORMATS, format, replace(FORMATS[format], rules=broken))
    request = long_request(format)
    if damage:
        asked = Message("user", [Part("text", 97, "Go on.")])
        wound = written([asked, *damaged(damage)], format)["messages"]
        request["messages"][1:1] = [one for one in wound if one["role"] != "system"]
    for window in (4_000, 10**6):
        fitted = trimtab.fit(
            request,
            format=format,
            window=window,
            reserve=0,
            settings=trimtab.Settings(counter="o200k"),
        )
        sent = judge.problems(fitted.request, format)
        if not judge.problems(request, format):
            assert sent == [], "a good request was broken"
        else:
            assert sent == [] or fitted.report.warnings, "doomed, and nothing was said"


@pytest.mark.parametrize("format", histories.FORMATS)
def test_law_10_strict_mode_raises_what_went_wrong(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.request.planned.make_room", fails)
    request, window = long_request(format), 4_000
    with pytest.raises(Broken):
        trimtab.fit(
            request, format=format, window=window, reserve=0, settings=trimtab.Settings(strict=True)
        )
    served = trimtab.fit(request, format=format, window=window, reserve=0)
    assert any("failed: Broken" in warning for warning in served.report.warnings)
