"""Lossless re-spelling: what it takes away, what it leaves alone, how it is read back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from blocks import (
    CONFIG,
    ESC,
    JSON_VALUE,
    block,
    count,
)
from hypothesis import given
from hypothesis import strategies as st

from trimtab.reducers import levels
from trimtab.reducers.respell import NOTE, respell_text, settle_line, settle_progress, strip_escapes

RESPELLED = [
    ("pretty JSON", '{\n  "a": 1.10,\n  "b": [1, 2E3]\n}\n', '{"a":1.10,"b":[1,2E3]}'),
    ("duplicate keys, escapes", r'{"k": "\u00e9\/ :, x", "k": 2}', r'{"k":"\u00e9\/ :, x","k":2}'),
    ("not a number", '[NaN,  -0.0,  1e400, "a  b\\" ,  c"]', '[NaN,-0.0,1e400,"a  b\\" ,  c"]'),
    ("colours", f"{ESC}[1;31mFAILED{ESC}[0m test_a", "FAILED test_a"),
    ("window title", f"{ESC}]0;building{ESC}\\done {ESC}(B", "done"),
    ("hyperlink keeps its address", f"{ESC}]8;;http://a.b/c{ESC}\\log{ESC}]8;;{ESC}\\!", "<http://a.b/c>log!"),
    ("JSON in colours", f'{ESC}[34m{{"a": 1,\n"b": 2}}{ESC}[0m', '{"a":1,"b":2}'),
    ("line ends", "a  \nb\t\r\nc \r\nd   ", "a\nb\r\nc\r\nd"),
    ("progress bar", "get\n 10%\r 55%\r100%\ndone", "get\n100%\ndone"),
    ("shorter over longer", "Downloading\rDone\n", "Doneloading\n"),
    ("erased line", f"Downloading\r{ESC}[KDone\n", "Done\n"),
    ("CR CR LF", "a line\r\r\nb", "a line\r\nb"),
    ("repeats", "go\n" + "waiting for the server\n" * 9 + "up",
     "go\nwaiting for the server\n[the line above, 8 more times]\nup"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"), [row[1:] for row in RESPELLED], ids=[row[0] for row in RESPELLED]
)
def test_respelling_takes_away_only_what_carries_nothing(before: str, after: str) -> None:
    assert respell_text(before, count)[0] == after
    assert respell_text(after, count) == (after, ())


UNTOUCHED = [
    ("not JSON", "{'a':  1,\n 'b': 2}"),
    ("compact JSON", '{"a":"x: y, z","b":[1]}'),
    ("cut JSON", '{"a": [1, 2, 3'),
    ("nested beyond Python's stack", "[ " * 60_000 + "]" * 60_000),
    ("two equal lines", "the same long line here\nthe same long line here\n"),
    ("short equal lines", "}\n}\n}\n}\n"),
    ("blank lines", "a\n\n\n\n\n\n\n\n\nb"),
    ("Windows line ends", "a\r\nb\r\nc\r\n"),
    ("nothing but blanks", "  \t\n  \r\n \r  "),
    ("empty", ""),
]


@pytest.mark.parametrize("text", [row[1] for row in UNTOUCHED], ids=[row[0] for row in UNTOUCHED])
def test_respelling_stays_silent_where_it_cannot_be_exact(text: str) -> None:
    assert respell_text(text, count) == (text, ())


def test_respelling_is_for_results_only() -> None:
    pretty = json.dumps({"key": ["value"] * 50}, indent=4)
    assert next(levels(block(pretty), CONFIG)).kind == "respell"
    assert all(offer.kind != "respell" for kind in ("call", "text", "system")
               for offer in levels(block(pretty, kind), CONFIG))  # fmt: skip


def restored(text: str) -> str:
    """The decoder: each note becomes the line above it, that many times."""
    pattern = re.compile(re.escape(NOTE).replace(r"\{\}", r"([\d,]+)") + "\r?")
    lines: list[str] = []
    for line in text.split("\n"):
        note = pattern.fullmatch(line)
        lines += [lines[-1]] * int(note[1].replace(",", "")) if note and lines else [line]
    return "\n".join(lines)


LINE = st.sampled_from(["", "}", "ok", "x" * 40, "retry in 3 s: the host is busy", "é" * 30, "="])
RUNS = st.lists(st.tuples(LINE, st.integers(1, 40)), max_size=12)


@given(RUNS, st.sampled_from(["\n", "\r\n"]))
def test_repeated_lines_can_be_restored_exactly(runs: list[tuple[str, int]], end: str) -> None:
    text = end.join(line for line, times in runs for _ in range(times)).rstrip("\r")
    assert restored(respell_text(text, count)[0]) == text


def spelled(text: str) -> Any:
    """A tree in which numbers are their spelling and objects their pairs."""
    return json.loads(
        text,
        parse_int=str,
        parse_float=lambda number: ["number", number],
        parse_constant=str,
        object_pairs_hook=lambda pairs: ["object", *pairs],
    )


@given(JSON_VALUE, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_compact_json_differs_in_whitespace_alone(
    value: Any, indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    new, steps = respell_text(text, count)
    if steps == ("compact JSON",):
        assert spelled(new) == spelled(text)
        assert json.dumps(json.loads(new)) == json.dumps(json.loads(text))
        assert len(new) < len(text)
    else:
        assert (new, steps) == (text, ()) or not isinstance(value, (dict, list))


def screen(line: str) -> str:
    """A terminal line of one-cell characters, cell by cell."""
    cells: list[str] = []
    at = 0
    for token in re.findall(r"\x1b\[[0-9;]*[Km]|.", line, re.DOTALL):
        if token == "\r":
            at = 0
        elif token.endswith("K") and len(token) > 1:
            cells = cells[:at] if token != f"{ESC}[2K" else [" "] * at
        elif len(token) == 1:
            cells[at : at + 1] = [token]
            at += 1
    return "".join(cells)


STATE = st.tuples(st.sampled_from(["", f"{ESC}[K", f"{ESC}[2K", f"{ESC}[32m"]),
                  st.text("ab #=%0", max_size=8), st.sampled_from(["", f"{ESC}[0m"]))  # fmt: skip


@given(st.lists(STATE.map("".join), max_size=6).map("\r".join))
def test_progress_ends_as_a_terminal_shows_it(line: str) -> None:
    assert strip_escapes(settle_line(line + "\r")) == screen(line)


def test_progress_that_moves_the_cursor_keeps_every_state() -> None:
    line = f"one\r{ESC}[1Atwo\rthree"
    assert strip_escapes(settle_progress(line)) == "one\ntwo\nthree"
    assert settle_progress("日本語日本語\rab") == "日本語日本語\nab"
