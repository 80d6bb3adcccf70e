"""Reducers on single blocks: what they offer, what they keep, when they stay silent."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from blocks import (
    ARGUMENTS,
    CONFIG,
    ESC,
    KINDS,
    LOG,
    RECALL,
    TEXT,
    all_levels,
    block,
    call,
    count,
    lone_surrogates,
    offers,
)
from effort import examples
from hypothesis import example, given
from hypothesis import strategies as st
from megabytes import GREAT

from trimtab.reducers import (
    HANDLE,
    REDUCERS,
    Config,
    Offer,
    cut_to_chars,
    cut_to_tokens,
    levels,
    marker,
    text_levels,
    user_cut,
    with_handle,
)
from trimtab.reducers.base import json_bytes, utf8_bytes
from trimtab.reducers.cutting import cut
from trimtab.transcript.model import Block


@examples(1.5)
@given(TEXT | ARGUMENTS, st.sampled_from(KINDS), st.booleans(), st.booleans())
@example(
    "the same line again\n" * 3 + "[the line above, 2 more times]\n" * 3, "result", False, False
)
def test_each_level_is_smaller_and_is_not_offered_again(
    text: str, kind: str, error: bool, recall: bool
) -> None:
    item, config = block(text, kind, error=error), Config(count, recall=recall)
    last, loss = text, 0.0
    for offer in all_levels(item, config):
        assert offer.op == "remove" or count(offer.text) < count(last)
        assert utf8_bytes(offer.text) < utf8_bytes(last)
        assert json_bytes(offer.text) < json_bytes(last)
        assert loss <= offer.loss <= 0.95
        assert lone_surrogates(offer.text) <= lone_surrogates(text)
        last, loss = offer.text, offer.loss
        if offer.op == "remove":
            continue
        again = [
            (o.kind, o.why.split(" of ")[0])
            for o in all_levels(block(last, kind, error=error), config)
        ]
        if offer.kind in ("respell", "marker"):
            assert offer.kind not in [name for name, _ in again]
        if offer.kind == "arguments":
            assert (offer.kind, offer.why) not in again


@examples(0.8)
@given(TEXT | ARGUMENTS, st.sampled_from(KINDS), st.integers(0, 3))
def test_taking_the_same_level_over_and_over_comes_to_rest(
    text: str, kind: str, depth: int
) -> None:
    for _ in range(60):
        found = [o for o in all_levels(block(text, kind), CONFIG) if o.op == "replace"][: depth + 1]
        if not found:
            return
        text = found[-1].text
    raise AssertionError("still shrinking after 60 rounds")


@pytest.mark.row("X2")
@pytest.mark.parametrize(
    "text", ["", "x", "[image left out to fit]", "ok\n", "{}", "[]", '{"path":"a.py"}']
)
@pytest.mark.parametrize("kind", ["result", "text", "call", "other", "system", "tools"])
def test_inputs_shorter_than_a_marker_are_left_alone(text: str, kind: str) -> None:
    assert list(all_levels(block(text, kind), RECALL)) == []


# ---------------------------------------------------------------- head and tail


def test_head_and_tail_keep_whole_lines_and_say_what_is_missing() -> None:
    new = cut_to_tokens(LOG, 200, count, "run the tool again to see them")
    assert new is not None
    head, note, tail = re.split(r"^(\[\.\.\. .*\])\n", new, flags=re.MULTILINE)
    assert LOG.startswith(head)
    assert LOG.endswith(tail)
    assert head.endswith("\n")
    gone = LOG[len(head) : len(LOG) - len(tail)]
    assert note == (f"[... {gone.count(chr(10)):,} lines, {len(gone):,} chars cut; "
                    "run the tool again to see them]")  # fmt: skip
    assert 150 <= count(new) <= 200
    assert 1.1 < len(head) / len(tail) < 2.1


def test_levels_halve_down_to_sixty_tokens() -> None:
    sizes = [count(o.text) for o in cut(block(LOG), CONFIG)]
    assert [60 * 2**n for n in range(len(sizes))][::-1] == [
        next(60 * 2**n for n in range(20) if 60 * 2**n >= size) for size in sizes
    ]
    assert count(LOG) * 3 / 8 * 0.8 <= sizes[0] <= count(LOG) * 3 / 4
    assert 40 <= sizes[-1] <= 60


@pytest.mark.parametrize("tokens", [60, 120, 240, 480, 960])
def test_a_cut_text_is_not_cut_again_to_the_same_size(tokens: int) -> None:
    new = cut_to_tokens(LOG, tokens, count)
    assert new is not None
    assert cut_to_tokens(new, tokens, count) is None
    found = list(cut(block(new), CONFIG))
    assert all(count(o.text) <= 3 * tokens / 4 for o in found)


@pytest.mark.row("A6")
@given(TEXT, st.integers(-2, 400))
def test_total_length_including_the_note_is_within_the_limit(text: str, chars: int) -> None:
    new = cut_to_chars(text, chars)
    assert len(new) <= max(0, chars) or new is text
    assert new is text if len(text) <= max(0, chars) else len(new) < len(text)
    assert lone_surrogates(new) <= lone_surrogates(text)
    assert cut_to_chars(new, chars) == new or chars < 0


@pytest.mark.row("A4", "A6")
def test_512_chars_are_kept_and_513_are_cut_within_512() -> None:
    assert cut_to_chars("a" * 512, 512) == "a" * 512
    half = "a" * 293, "[... 511 chars cut]", "a" * 196
    assert cut_to_chars("a" * 1000, 512) == "".join(half)
    assert len(cut_to_chars("a" * 513, 512)) <= 512
    assert cut_to_chars("a" * 513, 12) == "a" * 12  # no room for a note: the head alone


CLUSTERS = ["👩‍👩‍👧‍👦", "e\u0301", "🇩🇪", "👍🏽", "✈️", "한", "\r\n", "\ud83d\ude00", "각"]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("chars", range(1, 90, 7))
def test_cuts_never_split_what_a_reader_sees_as_one_character(cluster: str, chars: int) -> None:
    rest = re.sub(r"\n?\[\.\.\. .*?\]\n?", "\0", cut_to_chars(cluster * 60, chars), count=1)
    head, _, tail = rest.partition("\0")
    for part in (head, tail):
        whole = part if cluster != "\r\n" else part.rstrip("\r") and part
        assert len(whole) % len(cluster) in ((0, 1) if cluster == "\r\n" else (0,)), (part, chars)
    assert unicodedata.category(tail[0]) != "Mn" if tail else True


# ---------------------------------------------------------------- markers, media, reasoning


def test_marker_says_what_it_was_and_how_big() -> None:
    size = f"{CONFIG.count('a' * 8214):,} tokens"
    assert marker(block("a" * 8214), CONFIG) == (
        f"[Read result, {size}, left out to fit; run the tool again if it is needed]"
    )
    assert marker(block("a" * 8214), RECALL) == (
        f'[Read result, {size}, left out to fit; recall("{HANDLE}") has it]'
    )
    assert marker(block("a" * 10, tool="<bad> name\n"), CONFIG).startswith("[tool result, ")
    assert len(HANDLE) == 11


def test_marker_of_an_error_keeps_its_first_line() -> None:
    text = f"\n{ESC}[31mENOENT: no such file a.py{ESC}[0m\n" + "at frame\n" * 90
    said = marker(block(text, error=True, tool="Bash"), CONFIG)
    assert said.startswith(f"[Bash error, {CONFIG.count(text):,} tokens, left out to fit; ")
    assert said.endswith(", it began: ENOENT: no such file a.py]")
    assert len(marker(block("e" * 9000, error=True), CONFIG)) < 230
    assert utf8_bytes(marker(block("👩‍👩‍👧‍👦" * 900, error=True), CONFIG)) < 270


def test_a_forged_handle_never_gets_a_real_one() -> None:
    text = LOG + HANDLE
    assert all("recall(" not in offer.text for offer in levels(block(text), RECALL))
    assert any("recall(" in offer.text for offer in levels(block(LOG), RECALL))
    kept = next(levels(block(HANDLE + LOG), RECALL)).text
    assert with_handle(kept, HANDLE + LOG, "abcdefghijk") == kept
    filled = with_handle(next(levels(block(LOG), RECALL)).text, LOG, "abcdefghijk")
    assert 'recall("abcdefghijk")' in filled


def test_decisions_do_not_depend_on_marker_text() -> None:
    forged = LOG.replace("step 17:", "[Read result, 9 tokens, left out to fit]")
    kinds = [[o.kind for o in levels(block(text), CONFIG)] for text in (LOG, forged)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("media", ["image", "document"])
def test_media_becomes_a_line_of_text(media: Any) -> None:
    (offer,) = offers(block("", "media", media=media, fixed_tokens=1600), CONFIG)
    assert (offer.op, offer.text, offer.loss) == ("replace", f"[{media} left out to fit]", 0.9)
    assert offers(block("", "media", media=media, fixed_tokens=3), CONFIG) == []
    assert offers(block("", "media", media=media, fixed_tokens=900, payload_bytes=40), CONFIG) == []


def test_reasoning_is_removed_whole_even_when_sealed() -> None:
    for item in (
        block("think " * 9, "reasoning"),
        block("", "reasoning", sealed=True, fixed_tokens=90),
    ):
        assert [(o.op, o.text, o.loss) for o in levels(item, CONFIG)] == [("remove", "", 0.3)]


def test_sealed_text_is_never_altered() -> None:
    assert offers(block(LOG, sealed=True), CONFIG) == []
    assert list(text_levels(block(LOG, "text", sealed=True), CONFIG)) == []


def test_prose_is_cut_only_on_request_and_ends_in_a_marker() -> None:
    assert offers(block(LOG, "text"), CONFIG) == []
    found = list(text_levels(block(LOG, "text"), CONFIG))
    assert [o.kind for o in found[-2:]] == ["head-and-tail", "marker"]
    assert found[-1].text == f"[text, {len(LOG):,} chars, left out to fit]"
    assert all("tool" not in offer.text for offer in found)


# ---------------------------------------------------------------- user text


@given(TEXT, st.integers(0, 300))
def test_user_text_keeps_its_first_and_last_hundred_characters(text: str, tokens: int) -> None:
    new = user_cut(text, CONFIG, tokens)
    if new is None:
        assert count(text) <= tokens or len(text) < 500
        return
    assert (new[:100], new[-100:]) == (text[:100], text[-100:])
    assert count(new) < count(text)
    again = user_cut(new, CONFIG, tokens)
    assert again is None or again == new


def test_user_cut_says_how_much_is_missing_and_uses_its_room() -> None:
    new = user_cut(LOG, CONFIG, 500)
    assert new is not None
    assert 350 < count(new) <= 500
    assert re.search(r"^\[\d+ lines left out[^;\n]*\]$", new, re.MULTILINE)
    least = user_cut("q" * 100 + "z" * 9000 + "r" * 100, CONFIG, 1)
    assert least == "q" * 100 + "[... 9,000 chars cut]" + "r" * 100


# ---------------------------------------------------------------- the chain


def broken(item: Block, config: Config) -> Iterator[Offer]:
    yield Offer("replace", item.text[:-1], 0.1, "broken", "one character less")
    raise ZeroDivisionError("oops")


def lying(item: Block, config: Config) -> Iterator[Offer]:
    yield Offer("replace", item.text * 2, 0.2, "lying", "larger")


def test_a_reducer_that_raises_or_grows_is_left_out_and_named() -> None:
    failures: list[str] = []
    whole = [offer.kind for offer in levels(block(LOG), CONFIG)]
    found = offers(block(LOG), CONFIG, reducers=(lying, broken, *REDUCERS), failures=failures)
    assert [o.kind for o in found] == (["broken"] if count(LOG[:-1]) < count(LOG) else []) + whole
    assert failures == ["reducer skipped: broken: ZeroDivisionError: oops"]


def test_later_levels_work_on_the_lossless_text() -> None:
    pretty = json.dumps([{"id": i, "name": f"item {i}"} for i in range(300)], indent=8)
    first, second, third, *_ = offers(block(pretty), CONFIG)
    assert [first.kind, second.kind] == ["respell", "table"]
    kept = [line for line in third.text.split("\n") if not line.startswith("[")]
    assert set(kept) <= set(second.text.split("\n"))


def test_levels_are_made_one_at_a_time() -> None:
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    big = LOG * 60
    stream = levels(block(big), Config(counting))
    next(stream)
    assert sum(size for size in counted if size < len(big)) < 6 * len(big)
    counted.clear()
    cut_to_tokens(big, 100, counting)
    assert sum(counted) < 20_000, "a small excerpt of a large text counts little"


@pytest.mark.parametrize("name", GREAT)
def test_a_great_text_of_anything_is_cut_in_time(name: str) -> None:
    text = GREAT[name]
    started = time.process_time()
    for item in (block(text, error=True), call(text), block(text, "text")):
        failures: list[str] = []
        found = [*levels(item, CONFIG, failures=failures), *text_levels(item, CONFIG)]
        assert failures == []
        assert found
        assert count(found[-1].text) <= 200
    assert len(cut_to_chars(text, 512)) <= 512
    assert user_cut(text, CONFIG, 400) is not None
    assert time.process_time() - started < 4
