"""Thinned line numbers: restored by a decoder that knows nothing of the library."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise

import pytest
from blocks import CONFIG, TEXT, block, count, offers
from effort import examples
from hypothesis import example, given
from hypothesis import strategies as st

import trimtab
from trimtab.reducers.respell import is_numbered, respell_text, thin_line_numbers

NUMBER = re.compile(r"( *)(0|[1-9][0-9]{0,8})(→|\t| ?\| ?|: )")


def restored(text: str) -> str:
    """The decoder: counts on from one number to the next where just the missing lines are."""
    lines = text.split("\n")
    shown = [at for at, line in enumerate(lines) if NUMBER.match(line)]
    for start, end in pairwise(shown):
        first, last = NUMBER.match(lines[start]), NUMBER.match(lines[end])
        assert first is not None
        assert last is not None
        begin, width = int(first[2]), len(first[1] + first[2])
        counted = int(last[2]) - begin == end - start
        alike = first[3] == last[3] and last[1] + last[2] == last[2].rjust(width)
        if counted and alike:
            for at in range(start + 1, end):
                lines[at] = f"{begin + at - start:>{width}}{first[3]}{lines[at]}"
    return "\n".join(lines)


def read(lines: list[str], first: int = 1, width: int = 6, sign: str = "→") -> str:
    return "\n".join(f"{n:>{width}}{sign}{line}" for n, line in enumerate(lines, first))


CODE = [
    f"def function_{n}(value):" if n % 4 == 0 else f"    x_{n} = value + {n}" for n in range(80)
]


@pytest.mark.parametrize("sign", ["→", "\t", " | ", ": "])
@pytest.mark.parametrize(("first", "width"), [(1, 6), (1, 1), (95, 3), (996, 6), (150, 1)])
def test_the_first_the_last_and_each_tenth_line_keep_their_number(
    sign: str, first: int, width: int
) -> None:
    text = read(CODE, first, width, sign)
    (offer,) = [o for o in offers(block(text), CONFIG) if o.kind == "line-numbers"]
    numbers = [int(m[2]) for line in offer.text.split("\n") if (m := NUMBER.match(line))]
    last = first + len(CODE) - 1
    assert numbers == sorted({first, last, *(n for n in range(first, last) if n % 10 == 0)})
    assert offer.loss == 0
    assert restored(offer.text) == text
    assert thin_line_numbers(offer.text) is offer.text


def test_thinning_inside_a_longer_text_leaves_the_rest_alone() -> None:
    other = read(CODE, 300, 4, ": ")
    text = f"Chunk ID: 7\nOutput:\n{read(CODE)}\n<reminder>\n1. first\n{other}\nend\n"
    new = thin_line_numbers(text)
    assert restored(new) == text
    assert len(new) < len(text) - 6 * 130
    assert new.startswith("Chunk ID: 7\nOutput:\n     1→")
    assert new.endswith("\nend\n")


@pytest.mark.parametrize(
    "text",
    [
        read(["a", "b"]),  # nothing between the first and the last
        "10→a\n12→b\n14→c\n15→d",  # not consecutive
        "     1→a\n   2→b\n 3→c\n 4→d",  # not aligned
        "007→a\n008→b\n009→c\n011→d",  # leading zeros cannot be counted on
        read([f"{n}: x" for n in range(30)]),  # each line's own text begins with a number
        "1→a\n2\tb\n3 | c\n4: d",  # four kinds of number
        "",
        "\n\n\n",
        "→\n→\n→",
        "".join(f"{n}\tnode-{n * 7919 % 97}\tready\t{n}d\n" for n in range(1, 60)),  # a table's ids
    ],
)
def test_nothing_is_thinned_where_it_could_not_be_read_back(text: str) -> None:
    assert thin_line_numbers(text) is text


def test_a_line_whose_own_text_begins_with_a_number_keeps_its_own() -> None:
    lines = [*CODE[:14], "17→not a number of ours", *CODE[:20]]
    new = thin_line_numbers(read(lines))
    assert "    15→17→not a number of ours" in new.split("\n")
    assert restored(new) == read(lines)


def test_a_gap_that_happens_to_have_the_missing_lines_stops_the_thinning() -> None:
    text = f"{read(CODE[:9])}\n--\n{read(CODE[:9], 11)}"  # "--" would be read as line 10
    assert thin_line_numbers(text) is text
    apart = text.replace("--", "--\n--")
    assert restored(thin_line_numbers(apart)) == apart != thin_line_numbers(apart)


ROWS = st.lists(
    st.tuples(
        st.integers(0, 2_000), st.integers(1, 25), st.sampled_from([1, 3, 6]),
        st.sampled_from(["→", "\t", " | ", "|", ": "]),
        st.sampled_from(["", "x", "  y\t", "12→", "3\tz", "\r", "99", "7 | a", "é́", "0→"]),
        st.sampled_from(["", "plain", "--", "\n", "a\nb"]),
    ),
    max_size=5,
)  # fmt: skip


@examples(4)
@given(ROWS)
@example([(1, 9, 6, "→", "x", "--"), (11, 9, 6, "→", "x", "")])
def test_every_thinned_text_can_be_restored_byte_for_byte(rows: list[tuple]) -> None:  # type: ignore[type-arg]
    parts = []
    for first, many, width, sign, line, between in rows:
        parts += [read([line] * many, first, width, sign), between]
    text = "\n".join(parts)
    new = thin_line_numbers(text)
    assert restored(new) == text or new is text
    assert thin_line_numbers(new) is new


@given(TEXT)
def test_any_text_is_restored_or_left_alone(text: str) -> None:
    new = thin_line_numbers(text)
    assert new is text or restored(new) == text


def test_what_an_edit_quotes_of_a_file_still_stands_there_with_its_blanks() -> None:
    lines = [line + "  " if n % 7 == 0 else line for n, line in enumerate(CODE)]
    (offer, *_) = offers(block(read(lines)), CONFIG)
    text = offer.text
    assert is_numbered(text)
    assert respell_text(text, count)[0] is text, "blanks at line ends are part of the file"
    plain = "\n".join(NUMBER.sub("", line) for line in text.split("\n"))
    for start in range(0, 70, 3):
        assert "\n".join(lines[start : start + 9]) in plain


def test_a_fitted_session_shows_file_reads_with_fewer_numbers_and_recalls_them() -> None:
    text = read(CODE * 12)
    messages = [{"role": "user", "content": "Look at the parser."}]
    for number in range(4):
        call = {"name": "read", "arguments": json.dumps({"path": f"{number}.py"})}
        messages += [
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number}\n{text}"},
        ]  # fmt: skip
    request = {"model": "gpt-5", "messages": messages}
    total = trimtab.measure(request, counter="o200k").total
    limits = trimtab.Settings(window=int(total * 0.97), reserve=0, target=0.9, trigger=1.0)
    fitted = trimtab.fit(request, settings=limits | trimtab.Settings(counter="o200k"))
    edits = [edit for edit in fitted.report.edits if edit.kind == "line-numbers"]
    assert edits
    for edit in edits:
        assert edit.loss == 0
        number = fitted.recall(edit.handle)[0]
        assert fitted.recall(edit.handle) == f"{number}\n{text}"


@pytest.mark.parametrize(
    "line", ["1→" * 500_000, "1\n" * 100_000, " " * 1_000_000, "1→\n" * 100_000, "9" * 1_000_000]
)
def test_a_megabyte_is_thinned_in_time(line: str) -> None:
    started = time.process_time()
    thin_line_numbers(line)
    thin_line_numbers(read(line.split("\n")))
    assert time.process_time() - started < 3
