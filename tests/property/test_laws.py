"""The laws of one request: no edits same bytes, legal, never bigger, idempotent, user text stays.

Properties of the public API on made-up histories, judged by judge.py.  The laws that need time
(sessions, other processes, failures) are in test_laws_over_time.py.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import histories
import judge
import pytest
import spellings
import unreadable
from hypothesis import assume, event, given
from hypothesis import strategies as st
from law_tools import (
    SHARES,
    Story,
    assert_legal,
    at,
    attempt,
    base_of,
    differences,
    fit,
    named,
    tried,
    window_of,
)
from sizes import blocks_of, messages_of

import trimtab
from trimtab import CannotFit

# --- 0. the generators themselves -----------------------------------------------------------------


@given(histories.legal())
def test_legal_histories_are_legal_by_the_judge(story: Story) -> None:
    assert judge.problems(*story) == []


@given(histories.histories())
def test_the_library_and_the_judge_agree_on_what_is_acceptable(story: Story) -> None:
    request, format = story
    found = trimtab.check(request, format=format)
    assert bool(found) == bool(judge.problems(request, format)), found


@given(histories.histories())
def test_the_library_and_the_judge_count_the_same_tokens(story: Story) -> None:
    request, format = story
    found = [*unreadable.problems(request), *judge.problems(request, format)]
    assume(not any("no provider" in one or " block of " in one for one in found))
    measured = trimtab.measure(request, format=format, counter="o200k")
    assert measured.total == judge.tokens(request, format)


# --- 1. no edits, same bytes ----------------------------------------------------------------------


@given(histories.legal(), st.sampled_from([1.12, 2.0, 50.0]))
def test_law_1_a_legal_request_below_the_trigger_comes_back_as_the_same_object(
    story: Story, share: float
) -> None:
    request, format = story
    before = copy.deepcopy(request)
    fitted = fit(request, format, window_of(request, format, share) + 2)
    assert fitted.request is request
    assert request == before
    assert fitted.report.edits == ()
    assert fitted.report.repairs == ()


@given(histories.legal(), spellings.SPELLINGS)
def test_law_1_legal_bytes_below_the_trigger_come_back_as_the_same_bytes(
    story: Story, spelling: spellings.Spelling
) -> None:
    request, format = story
    raw = spellings.spell(request, replace(spelling, surrogate=False))
    assert fit(raw, format, 10**9).request is raw
    text = raw.decode("utf-8-sig")
    assert fit(text, format, 10**9).request is text


@given(histories.histories(), SHARES)
def test_law_1_messages_that_no_edit_names_are_the_same_objects_in_the_same_order(
    story: Story, share: float
) -> None:
    request, format = story
    before = copy.deepcopy(request)
    fitted = tried(request, format, window_of(request, format, share))
    assert request == before, "the caller's request was changed"
    assume(fitted is not None)
    depth = len(base_of(request))
    touched = {path[depth] for path in named(fitted.report) if path[:depth] == base_of(request)}
    untouched = [
        message for number, message in enumerate(messages_of(request)) if number not in touched
    ]
    sent = messages_of(fitted.request)
    if fitted.report.repairs:  # these may pull a result next to its call: same object, new place
        found = {id(message) for message in sent}
        assert all(id(message) in found for message in untouched)
    else:
        rest = iter(sent)
        assert all(any(other is message for other in rest) for message in untouched)
    if isinstance(request, dict):
        heads = {path[0] for path in named(fitted.report) if path}
        for key in request:
            if key != "messages" and key not in heads:
                assert fitted.request[key] is request[key], key


@given(histories.histories(), SHARES)
def test_law_1_replacements_change_nothing_but_the_values_they_name(
    story: Story, share: float
) -> None:
    request, format = story
    fitted = tried(request, format, None, result_chars=int(4_000 * share))
    assume(fitted is not None and not fitted.report.repairs)
    assume(all(edit.op == "replace" for edit in fitted.report.edits))
    paths = named(fitted.report)
    for changed in differences(request, fitted.request):
        assert any(changed[: len(path)] == path for path in paths), changed


def stand_in_order(pieces: list[str], text: str) -> bool:
    """Whether the text is these pieces with anything between them."""
    first, *middle, last = pieces
    at = len(first)
    for piece in middle:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return text.startswith(first) and text.endswith(last) and at <= len(text) - len(last)


@given(histories.legal(), SHARES, spellings.SPELLINGS)
def test_law_1_bytes_outside_the_spans_of_the_replacements_are_equal(
    story: Story, share: float, spelling: spellings.Spelling
) -> None:
    request, format = story
    raw = spellings.spell(request, spelling)
    fitted = tried(raw, format, None, result_chars=int(4_000 * share))
    assume(fitted is not None and fitted.report.edits and not fitted.report.repairs)
    assume(all(edit.op == "replace" for edit in fitted.report.edits))
    old, new = (part.decode("utf-8", "surrogatepass") for part in (raw, fitted.request))
    spans = sorted(spellings.span(old, path) for path in set(named(fitted.report)))
    kept, last = list[str](), 0
    for start, end in spans:
        kept.append(old[last:start])
        last = end
    assert stand_in_order([*kept, old[last:]], new)


# --- 2. always legal ------------------------------------------------------------------------------


@given(histories.histories(), SHARES, st.booleans())
def test_law_2_whatever_comes_in_what_goes_out_is_legal_and_fits(
    story: Story, share: float, recall: bool
) -> None:
    request, format = story
    window = window_of(request, format, share)
    fitted = attempt(request, format, window, recall=recall)
    if isinstance(fitted, CannotFit):
        event("cannot fit")
        assert fitted.limit == "window"
        assert window < fitted.minimum
        window = fitted.minimum
        with pytest.raises(CannotFit):
            fit(request, format, window - 1, recall=recall)
        fitted = fit(request, format, window, recall=recall)
        assert judge.tokens(fitted.request, format) == window, "not the smallest it can become"
    event(f"edits: {bool(fitted.report.edits)}, repairs: {bool(fitted.report.repairs)}")
    assert_legal(request, fitted, format)
    assert judge.tokens(fitted.request, format) <= window
    assert fitted.report.tokens_after == judge.tokens(fitted.request, format)


@given(histories.histories(), SHARES, spellings.SPELLINGS)
def test_law_2_the_same_holds_for_oddly_spelled_bytes(
    story: Story, share: float, spelling: spellings.Spelling
) -> None:
    raw = spellings.spell(story[0], spelling)
    request, format = json.loads(raw), story[1]
    window = window_of(request, format, share)
    fitted = tried(raw, format, window)
    assume(fitted is not None)
    assert type(fitted.request) is bytes
    parsed = json.loads(fitted.request)
    assert judge.problems(parsed, format) == []
    assert judge.tokens(parsed, format) <= window


@given(histories.histories(), st.sampled_from([0.1, 0.3, 0.6, 0.9]))
def test_law_2_request_bytes_are_met_alone(story: Story, share: float) -> None:
    request, format = story
    allowed = int(judge.request_bytes(request) * share)
    fitted = attempt(request, format, 10**9, request_bytes=allowed)
    if isinstance(fitted, CannotFit):
        assert fitted.limit == "request_bytes"
        assert fitted.minimum > allowed
        allowed = fitted.minimum
        fitted = fit(request, format, 10**9, settings=trimtab.Settings(request_bytes=allowed))
        assert judge.request_bytes(fitted.request) >= 0.9 * allowed, "far from the smallest"
    assert_legal(request, fitted, format)
    assert judge.request_bytes(fitted.request) <= allowed


@given(histories.histories(), st.sampled_from([40, 300, 2_000, 30_000]))
def test_law_2_the_size_of_each_result_is_met_alone(story: Story, allowed: int) -> None:
    request, format = story
    fitted = attempt(request, format, 10**9, result_chars=allowed)
    if isinstance(fitted, CannotFit):
        assert fitted.limit == "result_chars"
        assert fitted.minimum > allowed
        return
    assert_legal(request, fitted, format)
    assert max(judge.result_chars(fitted.request, format), default=0) <= allowed


@given(histories.histories(), st.sampled_from([0, 1, 2]))
def test_law_2_the_number_of_images_is_met_alone(story: Story, allowed: int) -> None:
    request, format = story
    fitted = fit(request, format, 10**9, settings=trimtab.Settings(images=allowed))
    assert_legal(request, fitted, format)
    assert judge.images(fitted.request, format) <= allowed


@given(histories.broken())
def test_law_2_repair_alone_makes_it_legal_and_reduces_nothing(story: Story) -> None:
    request, format = story
    fitted = trimtab.repair(request, format=format)
    assert_legal(request, fitted, format)
    assert {edit.kind for edit in fitted.report.edits} <= {"bound-reasoning"}
    if not judge.problems(request, format):
        assert fitted.request is request


# --- 3. never bigger ------------------------------------------------------------------------------


@given(histories.histories(), SHARES)
def test_law_3_every_edit_saves_tokens_and_repairs_cost_at_most_64_each(
    story: Story, share: float
) -> None:
    request, format = story
    fitted = tried(request, format, window_of(request, format, share))
    assume(fitted is not None)
    report = fitted.report
    for edit in report.edits:
        assert edit.tokens_after < edit.tokens_before, edit
        assert edit.tokens_saved == edit.tokens_before - edit.tokens_after, edit
        assert 0 <= edit.loss <= 1, edit
    before, after = judge.tokens(request, format), judge.tokens(fitted.request, format)
    results = [len(judge.result_chars(tree, format)) for tree in (request, fitted.request)]
    pieces = len(report.repairs) + max(0, results[1] - results[0])
    assert after <= before + 64 * pieces
    if report.edits and not report.repairs:
        assert after < before
        assert judge.request_bytes(fitted.request) < judge.request_bytes(request)


# --- 4. idempotent --------------------------------------------------------------------------------


@given(histories.histories(), SHARES)
def test_law_4_fitting_what_was_fitted_changes_nothing(story: Story, share: float) -> None:
    request, format = story
    window = window_of(request, format, share)
    fitted = tried(request, format, window)
    assume(fitted is not None)
    again = fit(fitted.request, format, window)
    assert list(differences(fitted.request, again.request)) == []
    assert again.request is fitted.request
    assert again.report.edits == ()


# --- 8. user text survives ------------------------------------------------------------------------


def user_texts(request: Any) -> list[str]:
    """What the user wrote, blank texts left out."""
    return [
        block["text"]
        for message in messages_of(request)
        if message["role"] == "user"
        for block in blocks_of(message["content"])
        if block.get("type") == "text" and block["text"].strip()
    ]


@given(histories.histories(), SHARES)
def test_law_8_user_text_survives_or_is_shortened_by_name_with_both_ends_kept(
    story: Story, share: float
) -> None:
    request, format = story
    fitted = tried(request, format, window_of(request, format, share))
    assume(fitted is not None)
    shown = user_texts(fitted.request)
    leaves = [str(at(request, path)) for path in named(fitted.report)]
    folds = [edit for edit in fitted.report.edits if edit.op == "fold"]
    gone = [json.loads(fitted.recall(edit.handle)) for edit in folds]
    asked = [message for messages in gone for message in messages if message.get("role") == "user"]
    folded = user_texts({"messages": asked})
    for text in map(unreadable.as_sent, user_texts(request)):
        if any(text in other for other in shown) or text in folded:
            continue
        assert any(text[:100] in other and text[-100:] in other for other in shown), text[:80]
        assert any(text in leaf for leaf in leaves), "shortened, but not named in the report"


@given(histories.legal(), SHARES, st.integers(0, 30))
def test_law_8_a_pinned_text_stays_whole(story: Story, share: float, which: int) -> None:
    request, format = story
    texts = [
        block["text"]
        for message in messages_of(request)
        for block in blocks_of(message["content"])
        if block.get("type") == "text" and message["role"] != "system" and len(block["text"]) > 50
    ]
    assume(texts)
    text = texts[which % len(texts)]
    pins = (lambda block: block.text == text,)
    fitted = tried(request, format, window_of(request, format, share), pins=pins)
    assume(fitted is not None)
    kept = [
        block["text"]
        for message in messages_of(fitted.request)
        for block in blocks_of(message["content"])
        if block.get("type") == "text"
    ]
    assert any(text in other for other in kept)
