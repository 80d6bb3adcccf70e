"""JSON as text: read as Python reads it, refused in one line, always writable as UTF-8."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from odd_json import SOURCES

from trimtab.errors import InvalidRequest
from trimtab.jsontext import paths, splicing
from trimtab.jsontext.parsing import MAX_DEPTH
from trimtab.jsontext.paths import Set


@given(SOURCES)
def test_what_is_read_can_be_written_as_utf8_and_read_again(text: str) -> None:
    tree = paths.parse(text)
    data = paths.dump(tree).encode("utf-8")
    assert repr(paths.parse(paths.decode(data))) == repr(tree)
    if not text.startswith("\ufeff"):
        assert repr(tree) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "nul", '["\n"]', "[1", "[1,]", "[,1]", "[:1]", "[1 2]", "[1}", "[1] 2"),
        *("{,}", "{a:1}", '{"a":1,}', '{"a" 1}', '{"a"}', '{"a":1', '{"a":}', '{"a', '{:"a":1}'),
        "[" + "9" * 5000,
    ],
)
def test_what_is_not_json_gets_one_clear_line_from_both_readers(text: str) -> None:
    for read in (paths.parse, lambda text: splicing.splice(text, [Set(("a",), 1), Set((0,), 1)])):
        with pytest.raises(InvalidRequest) as caught:
            read(text)
        assert "\n" not in str(caught.value)
        assert "; send " in str(caught.value)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_an_invalid_request_and_no_crash(opening: str, closing: str) -> None:
    """What is spliced was parsed before, so there only Python's own limit counts."""
    ops = [Set((), 1), Set(("a",), 1)]
    for depth, read in (
        (5_000, paths.parse), (200_000, paths.parse),
        (200_000, lambda text: splicing.splice(text, ops)),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match="nested more than 256 levels"):
            read(opening * depth + "1" + closing * depth)


def test_the_depth_limit_is_exact_and_its_deepest_leaf_can_be_edited() -> None:
    text = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    leaf = (0,) * MAX_DEPTH
    assert splicing.splice(text, [Set(leaf, 2)]) == text.replace("1", "2")
    assert paths.get(paths.apply(paths.parse(text), [Set(leaf, 2)]), leaf) == 2
    with pytest.raises(InvalidRequest):
        paths.parse(f"[{text}]")


def test_bytes_that_are_not_utf8_are_named_and_a_bom_survives() -> None:
    assert paths.decode(b"\xef\xbb\xbf[1]") == "\ufeff[1]"
    assert splicing.splice(paths.decode(b"\xef\xbb\xbf[1]"), [Set((0,), 2)]) == "\ufeff[2]"
    with pytest.raises(InvalidRequest, match="byte 0xff at offset 1"):
        paths.decode(b"[\xff]")
