"""The laws that need time: sessions stay put, same answer anywhere, recall, linear work.

Properties of the public API on made-up histories, judged by judge.py.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import histories
import judge
import pytest
import shapes
from effort import examples
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from law_tools import (
    SHARES,
    Story,
    at,
    differences,
    path_of,
    prefixes,
    tried,
    window_of,
)
from settings_words import as_keywords
from sizes import messages_of
from smallest import assert_due

import trimtab
from trimtab import CannotFit, UnknownHandle

# --- 5. sticky ------------------------------------------------------------------------------------

TIPS = {
    "anthropic": "claude-opus-4-6",
    "bedrock": "us.anthropic.claude-opus-4-6-v1",
    "gemini": "gemini-3-pro-preview",
    "openai-chat": "mistral-large-latest",
}
"""Models that refuse a conversation which ends with their own words."""


def asked_on(format: str) -> tuple[trimtab.Session, dict[str, Any]]:
    """A session that was sent words of the model last, and that request."""
    items = [*shapes.user(format, "Look."), *shapes.said(format, "I shall read it.")]
    body = shapes.request(format, items, TIPS[format])
    session = trimtab.Session(
        window=50_000, format=format, settings=trimtab.Settings(counter="o200k")
    )
    sent = session.fit(body).request
    assert len(shapes.items_of(sent)) == 3, "the repair behind the last words"
    return session, body


def assert_goes_on(session: trimtab.Session, format: str, items: list[Any]) -> None:
    done = session.fit(shapes.request(format, items, TIPS[format]))
    assert trimtab.check(done.request, format=format) == ()
    assert not [text for text in done.report.warnings if "failed" in text]
    assert shapes.items_of(done.request) == items


@pytest.mark.parametrize("format", TIPS)
def test_law_5_half_a_turn_that_was_sent_before_may_go_on_with_a_call(format: str) -> None:
    session, body = asked_on(format)
    first, half = shapes.items_of(body)
    whole, result = shapes.turn(format, "call00001", {"n": 1}, "a line", "")
    if format == "openai-chat":
        del whole["reasoning_details"]
        whole["content"] = half["content"]
    else:
        key = "parts" if format == "gemini" else "content"
        words = half[key] if isinstance(half[key], list) else [{"type": "text", "text": half[key]}]
        whole[key] = [*words, *whole[key][1:]]
    more = shapes.user(format, "Go on.") if format == "anthropic" else []
    assert_goes_on(session, format, [first, whole, result, *more])


@pytest.mark.parametrize("format", TIPS)
def test_law_5_words_that_are_the_users_now_are_not_gone_on_from(format: str) -> None:
    session, _ = asked_on(format)
    items = [
        *shapes.user(format, "I shall read it."),
        *shapes.said(format, "Do."),
        *shapes.user(format, "I have."),
    ]
    assert_goes_on(session, format, items)


@given(histories.legal(), SHARES)
def test_law_5_without_a_new_edit_a_session_only_appends(story: Story, share: float) -> None:
    request, format = story
    window = window_of(request, format, share)
    session = trimtab.Session(
        window=window, reserve=0, format=format, settings=trimtab.Settings(counter="o200k")
    )
    sent: list[Any] = []
    known = json.dumps(session.journal)
    for turn in prefixes(request, format):
        try:
            fitted = session.fit(turn)
        except CannotFit as error:
            assert_due(error, turn, format)
            break
        assert judge.problems(fitted.request, format) == []
        assert judge.tokens(fitted.request, format) <= window
        messages = messages_of(fitted.request)
        journal = json.dumps(session.journal)
        if journal == known:
            assert messages[: len(sent)] == sent, "the sent prefix moved without an edit"
        event(f"new edit: {journal != known}")
        sent, known = copy.deepcopy(messages), journal


@examples(0.6)
@given(histories.legal(), st.sampled_from([0.2, 0.35, 0.5]))
def test_law_5_a_session_continued_from_its_journal_sends_the_same(
    story: Story, share: float
) -> None:
    request, format = story
    window = window_of(request, format, share)
    keywords: dict[str, Any] = {"window": window, "reserve": 0, "counter": "o200k"}
    session = trimtab.Session(**as_keywords(format=format, **keywords))
    for turn in prefixes(request, format):
        try:
            fitted = session.fit(turn)
        except CannotFit as error:
            assert_due(error, turn, format)
            break
        journal = json.loads(json.dumps(session.journal))
        again = trimtab.Session(journal=journal, **as_keywords(format=format, **keywords)).fit(turn)
        assert list(differences(fitted.request, again.request)) == []


# --- 6. deterministic -----------------------------------------------------------------------------


@examples(0.6)
@given(histories.histories(), SHARES)
def test_law_6_equal_requests_give_equal_answers(story: Story, share: float) -> None:
    request, format = story
    window = window_of(request, format, share)
    one, two = (tried(copy.deepcopy(request), format, window) for _ in range(2))
    assume(one is not None)
    assert list(differences(one.request, two.request)) == []
    assert one.report.as_dict() == two.report.as_dict()


PROGRAM = """
import json, sys, trimtab
for line in sys.stdin:
    format, window, request = json.loads(line)
    try:
        fitted = trimtab.fit(request, format=format, window=window, reserve=0,
        settings=trimtab.Settings(counter="o200k"))
    except trimtab.CannotFit as error:
        print(error)
    else:
        print(json.dumps([fitted.request, fitted.report.as_dict()]))
"""


def test_law_6_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    lines: list[str] = []

    @settings(max_examples=25, database=None, derandomize=True)
    @given(histories.histories(), SHARES)
    def collect(story: Story, share: float) -> None:
        lines.append(json.dumps([story[1], window_of(*story, share), story[0]]))

    collect()
    digests = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input="\n".join(lines),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(hashlib.sha256(done.stdout.encode()).hexdigest())
    assert len(digests) == 1


# --- 7. reversible --------------------------------------------------------------------------------


def assert_recalled(request: Any, recalled: str, change: Any) -> None:
    """The string of a leaf is itself; anything else is its JSON text.

    A drop names what it took out and, last, the user text that took the note: that one is whole.
    """
    values = [at(request, path_of(path)) for path in change.paths or (change.path,)]
    if change.op in ("drop", "fold"):
        assert json.loads(recalled) == [one for one in values if isinstance(one, dict)]
    elif isinstance(values[0], str):
        assert recalled == values[0]
    else:
        assert json.loads(recalled) == values[0]


@given(histories.legal(), SHARES)
def test_law_7_every_handle_gives_the_exact_original(story: Story, share: float) -> None:
    request, format = story
    fitted = tried(request, format, window_of(request, format, share))
    assume(fitted is not None)
    for edit in fitted.report.edits:
        assert edit.handle, edit
        assert_recalled(request, fitted.recall(edit.handle), edit)
    with pytest.raises(UnknownHandle):
        fitted.recall("r_never_given")


@given(histories.broken(), SHARES)
def test_law_7_what_a_repair_took_out_is_recalled_too(story: Story, share: float) -> None:
    request, format = story
    fitted = tried(request, format, window_of(request, format, share))
    assume(fitted is not None and fitted.report.repairs)
    for edit in fitted.report.edits:
        assert not edit.handle or isinstance(fitted.recall(edit.handle), str)
    for repair in fitted.report.repairs:
        assert all(isinstance(fitted.recall(handle), str) for handle in repair.handles)
    taken = [one for one in fitted.report.repairs if one.rule == "orphan_result"]
    assert all(one.handle for one in taken), "an orphan result can't be recalled"


@given(histories.legal(), st.sampled_from([0.2, 0.35, 0.5]))
def test_law_7_a_session_recalls_what_any_turn_took_out(story: Story, share: float) -> None:
    request, format = story
    session = trimtab.Session(
        window=window_of(request, format, share),
        reserve=0,
        format=format,
        settings=trimtab.Settings(counter="o200k"),
    )
    originals: dict[str, str] = {}
    for turn in prefixes(request, format):
        try:
            fitted = session.fit(turn)
        except CannotFit as error:
            assert_due(error, turn, format)
            break
        for edit in fitted.report.edits:
            if edit.handle:
                originals[edit.handle] = session.recall(edit.handle)
        assert all(session.recall(handle) == text for handle, text in originals.items())


# --- 9. linear ------------------------------------------------------------------------------------


class Tally:
    """A counter that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text) // 4 + 1

    @property
    def chars(self) -> int:
        return sum(map(len, self.asked))


def same(turn: Any) -> Any:
    return turn


def anew(turn: Any) -> Any:
    return json.loads(json.dumps(turn))


@pytest.mark.parametrize("arriving", [same, anew])
@given(story=histories.legal())
def test_law_9_a_turn_counts_only_what_is_new_in_it(
    arriving: Callable[[Any], Any], story: Story
) -> None:
    request, format = story
    turns = list(prefixes(request, format))
    assume(len(turns) > 2)
    tally = Tally()
    session = trimtab.Session(
        window=10**9, reserve=0, format=format, settings=trimtab.Settings(counter=tally)
    )
    session.fit(arriving(turns[0]))
    for before, turn in itertools.pairwise(turns):
        tally.asked.clear()
        session.fit(arriving(turn))
        new = messages_of(turn)[len(messages_of(before)) :]
        written = json.dumps(new, ensure_ascii=False)
        assert tally.chars <= len(written), tally.asked


@given(histories.legal(), st.sampled_from([0.35, 0.5, 0.7]))
def test_law_9_a_session_with_edits_counts_each_text_a_bounded_number_of_times(
    story: Story, share: float
) -> None:
    request, format = story
    tally = Tally()
    window = window_of(request, format, share)
    session = trimtab.Session(
        window=window, reserve=0, format=format, settings=trimtab.Settings(counter=tally)
    )
    turns = batches = 0
    for turn in prefixes(request, format):
        before = session.journal["edits"]
        try:
            session.fit(anew(turn))
        except CannotFit as error:
            assert_due(error, turn, format)
            break
        turns += 1
        batches += session.journal["edits"] != before
    whole = len(json.dumps(request, ensure_ascii=False))
    # A window just above the minimum asks for a batch on every turn; a batch looks at everything.
    assert tally.chars <= max(8, 3 * batches) * whole + 2_000 * turns


def test_law_9_cutting_a_users_text_that_demands_nothing_counts_it_a_few_times() -> None:
    row = '{"id": 17, "name": "Ada", "tags": ["a", "b"], "ok": true}\n'
    text, tally = row * 200, Tally()
    fitted = trimtab.fit(
        [{"role": "user", "content": text}], window=1_500, settings=trimtab.Settings(counter=tally)
    )
    assert [edit.kind for edit in fitted.report.edits] == ["user-text"]
    assert tally.chars <= 4 * len(text)


def test_law_9_holds_in_a_session_that_had_to_be_repaired() -> None:
    turns = 12
    tally = Tally()
    session = trimtab.Session(
        window=10**9, reserve=0, format="openai-chat", settings=trimtab.Settings(counter=tally)
    )
    messages: list[Any] = [{"role": "user", "content": "Begin."}, asked_tool(0)]  # interrupted
    messages.append({"role": "user", "content": "You were interrupted. Go on."})
    counted = []
    for number in range(1, turns + 1):
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} " * 200}
        messages += [asked_tool(number), result]
        tally.asked.clear()
        session.fit(anew({"messages": messages}))
        counted.append(tally.chars)
    assert max(counted[2:]) <= 2 * counted[1], counted


def asked_tool(number: int) -> dict[str, Any]:
    """An assistant message with one call."""
    function = {"name": "read", "arguments": "{}"}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
