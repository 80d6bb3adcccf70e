"""A check that begins behind what passed says what the whole check says, on whatever comes next."""

from __future__ import annotations

import copy
import random
import sys
from dataclasses import replace
from typing import Any

import bedrock_histories
import five_formats
import gemini_histories
import histories
import pytest
import stories
from hypothesis import event, given, settings
from hypothesis import strategies as st
from test_openai_responses import mutated

from trimtab import rules
from trimtab.model import Transcript
from trimtab.reading.known import Known
from trimtab.reading.sound import Sound
from trimtab.reading.source import Source

CHAT_MODELS = (
    "gpt-5.1", "mistral-large-latest", "open-mixtral-8x7b", "deepseek-chat", "kimi-k2-thinking",
    "glm-4.6", "MiniMax-M2", "openrouter/auto",
)  # fmt: skip
MARKED = {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}}
Case = tuple[dict[str, Any], str, str | None]
"""Request, format, and the model it is for, where another than the request says."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Requests of all five formats, legal and broken ones."""
    kind = draw(st.sampled_from(["story", "history", "gemini", "bedrock", "responses"]))
    if kind == "story":
        format = draw(st.sampled_from(stories.FORMATS))
        return _framed(stories.written(draw(stories.stories()), format), format), format, None
    if kind == "history":
        body, format = draw(histories.histories())
        model = draw(st.sampled_from(CHAT_MODELS)) if format == "openai-chat" else None
        return _framed(body, format), format, model
    if kind == "gemini":
        body, model = draw(gemini_histories.histories())
        return _framed(body, "gemini"), "gemini", model
    if kind == "bedrock":
        return draw(bedrock_histories.histories()), "bedrock", None
    items = mutated(random.Random(draw(st.integers(0, 999))))
    model = draw(st.sampled_from(["gpt-5.5", "deepseek-v4-flash"]))
    return {"model": model, "input": items}, "openai-responses", None


def _framed(body: Any, format: str) -> dict[str, Any]:
    return body if isinstance(body, dict) else {key_of(format): body}


def key_of(format: str) -> str:
    return {"gemini": "contents", "openai-responses": "input"}.get(format, "messages")


def hurt(messages: list[Any], wound: str, place: int) -> list[Any]:
    """Another history with most of the same objects."""
    found = list(messages)
    if len(found) < 2:
        return found
    place %= len(found)
    if wound == "out":
        del found[place]
    elif wound == "twice":
        found.insert(place, found[place])
    elif wound == "swapped":
        found[place - 1], found[place] = found[place], found[place - 1]
    elif wound == "moved":
        found.append(found.pop(place))
    elif wound == "copied":
        found[place] = copy.deepcopy(found[place])
    elif wound == "marked" and isinstance(found[place], dict):
        found[place] = {**found[place], "content": _marked(found[place].get("content"))}
    return found


def _marked(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    mark = {"cache_control": {"type": "ephemeral"}}
    return [{**part, **mark} if isinstance(part, dict) else part for part in content]


WOUNDS = ("none", "none", "none", "out", "twice", "swapped", "moved", "copied", "marked")
STEPS = st.tuples(st.integers(0, 60), st.sampled_from(WOUNDS), st.integers(0, 60), st.booleans())


@settings(max_examples=150, deadline=None)
@given(cases(), st.lists(STEPS, min_size=1, max_size=12), st.integers(0, 9))
def test_what_is_said_behind_known_messages_is_what_the_whole_check_says(
    case: Case, walk: list[tuple[int, str, int, bool]], opens: int
) -> None:
    body, format, model = case
    whole, known, sound = body.get(key_of(format)) or [], Known(), Sound()
    whole = whole if isinstance(whole, list) else []
    ends = list(range(1, len(whole) + 1)) if opens < 7 else []
    turns = [(end, "none", 0, opens % 2 == 0) for end in ends] + walk
    for end, wound, place, open_tail in turns:
        messages = hurt(whole[: end % (len(whole) + 1)], wound, place)
        request = {**body, key_of(format): messages}
        transcript = known.read(Source.of(request), format, model).transcript
        alone = replace(transcript, messages=tuple(transcript.messages))  # nothing is known of it
        expected = rules.check(alone, open_tail=open_tail)
        before = sound._known(transcript, open_tail)
        assert sound.check(transcript, open_tail=open_tail, failures=None) == expected
        if before:
            event(f"{format}: {'broken' if expected else 'sound'} behind known messages")


@pytest.mark.parametrize(
    ("format", "before", "then", "ends", "rule"),
    [
        # The first breaks nothing; the second is the same, ended or meant otherwise.
        ("bedrock", {}, {}, 1, "roles_alternate"),
        ("bedrock", {}, {"modelId": "us.meta.llama4"}, 0, "mixed_turn"),
        ("openai-chat", {"model": "gpt-5.1"}, {"model": "mistral-large-latest"}, 1, "id_format"),
        ("anthropic", {}, {"system": [MARKED] * 5}, 0, "too_many_marks"),
        ("anthropic", {"system": [MARKED] * 4}, {"system": [MARKED] * 4}, 1, "too_many_marks"),
    ],
)
def test_what_a_known_beginning_and_a_new_end_break_together_is_found(
    format: str, before: dict[str, Any], then: dict[str, Any], ends: int, rule: str
) -> None:
    short, sound, known = five_formats.session(format, steps=3, lines=1), Sound(), Known()
    content = [MARKED] if format == "anthropic" else [{"text": "And?"}]
    end = {"role": "user", "content": content if format != "openai-chat" else "And?"}
    longer = {**short, **then, "messages": [*short["messages"], *[end] * ends]}
    first = known.read(Source.of({**short, **before}), format, None).transcript
    assert sound.check(first, open_tail=False, failures=None) == ()
    second = known.read(Source.of(longer), format, None).transcript
    found = sound.check(second, open_tail=False, failures=None)
    assert found == rules.check(second)
    assert rule in {violation.rule for violation in found}


def read(format: str, model: str, steps: int) -> tuple[dict[str, Any], Transcript, Transcript]:
    """A session one step before its end, and at it."""
    body = five_formats.session(format, steps=steps, lines=1, model=model)
    key, known = key_of(format), Known()
    step = 3 if format == "openai-responses" else 2
    last = body[key].pop()
    if format == "bedrock":  # the last results, without the words behind them
        body[key].append({**last, "content": last["content"][:-1]})
    short = {**body, key: body[key][:-step]}
    transcripts = [known.read(Source.of(one), format, None).transcript for one in (short, body)]
    return body, transcripts[0], transcripts[1]


@pytest.mark.parametrize(
    ("format", "model"),
    [("anthropic", ""), ("bedrock", ""), ("openai-chat", ""), ("openai-chat", "gpt-5.1"),
     ("gemini", "gemini-2.5-pro"), ("openai-responses", ""), ("openai-responses", "gpt-5.5")],
)  # fmt: skip
def test_a_step_more_takes_as_many_calls_behind_a_long_history_as_behind_a_short_one(
    format: str, model: str
) -> None:
    def calls(steps: int) -> int:
        _, short, longer = read(format, model, steps)
        sound, count = Sound(), 0
        assert sound.check(short, open_tail=False, failures=None) == ()

        def counted(frame: Any, kind: str, argument: Any) -> None:
            nonlocal count
            count += kind in ("call", "c_call")

        sys.setprofile(counted)
        try:
            assert sound.check(longer, open_tail=False, failures=None) == ()
        finally:
            sys.setprofile(None)
        return count

    few, many = calls(20), calls(200)
    assert many <= few + 5


def test_a_rule_that_raises_on_what_is_new_is_named_by_the_whole_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, short, longer = read("anthropic", "", 5)
    sound, failures = Sound(), list[str]()
    assert sound.check(short, open_tail=False, failures=failures) == ()
    assert failures == []
    table = rules.TABLES["anthropic"]
    broken = rules.Table(table.rows, (*table.scans, _raising), table.may_drop_reasoning)
    monkeypatch.setitem(rules.TABLES, "anthropic", broken)
    for _ in range(2):
        assert sound.check(longer, open_tail=False, failures=failures) == ()
    assert len(failures) == 2


def _raising(transcript: Transcript, open_tail: bool) -> Any:
    raise ValueError("a fault")
