"""A turn that only goes on: it looks nothing up, and sends what a session begun anew would send."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from responses_cases import call, output, thought, user
from stories import FORMATS
from test_fold import request, step

import trimtab
from trimtab.index import Line
from trimtab.model import Message
from trimtab.turns.journal import Journal

DIALECTS = [("openai-chat", "kimi-k2.6"), ("openai-chat", "glm-4.6")]
DIALECTS += [("openai-responses", "deepseek-v4-flash")]
KEYWORDS: dict[str, Any] = {"window": 12_000, "reserve": 0, "counter": "o200k"}


def story(format: str, steps: int) -> dict[str, Any]:
    body = request(steps)
    if format == "anthropic":
        return body
    converted: dict[str, Any] = trimtab.convert(body, format, format="anthropic").request
    return converted


def key_of(body: dict[str, Any]) -> str:
    return next(key for key in ("messages", "input", "contents") if key in body)


def text(body: Any) -> str:
    return body.decode() if isinstance(body, bytes) else json.dumps(body)


def assert_as_anew(session: trimtab.Session, body: Any, **keywords: Any) -> trimtab.Fitted:
    """What the session sends and reports is what one begun from its journal does."""
    journal = json.loads(json.dumps(session.journal))
    anew = trimtab.Session(journal=journal, **{**KEYWORDS, **keywords}).fit(copy.deepcopy(body))
    went_on = session.fit(body, **keywords)
    assert type(went_on.request) is type(anew.request)
    assert text(went_on.request) == text(anew.request)
    assert went_on.report.as_dict() == anew.report.as_dict()
    return went_on


@pytest.mark.parametrize("format", FORMATS)
def test_a_turn_that_only_goes_on_looks_no_edit_up(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer, short = story(format, 31), story(format, 31)
    key = key_of(short)
    del short[key][-2:]
    session = trimtab.Session(**KEYWORDS)
    first = session.fit(short)
    assert first.report.edits, "the case has to be reduced"
    longer[key] = short[key] + longer[key][-2:]
    anew = trimtab.Session(journal=session.journal, **KEYWORDS).fit(longer)

    def none(self: Journal, transcript: Any) -> Any:
        raise AssertionError("an edit was looked up")

    monkeypatch.setattr(Journal, "active", none)
    went_on = session.fit(longer)
    monkeypatch.undo()
    assert json.dumps(went_on.request) == json.dumps(anew.request)
    assert went_on.report.as_dict() == anew.report.as_dict()
    assert not any(edit.new for edit in went_on.report.edits)


@pytest.mark.parametrize("window", [12_000, 10**6], ids=["edits", "no edit"])
@pytest.mark.parametrize(("format", "model"), [*((format, "") for format in FORMATS), *DIALECTS])
def test_a_turn_that_only_goes_on_looks_at_no_more_messages_late_than_early(
    format: str, model: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = [0]

    def iterated(line: Line) -> Iterator[Message]:
        for message in tuple.__iter__(line):
            looked[0] += 1
            yield message

    def got(line: Line, index: Any) -> Any:
        found = tuple.__getitem__(line, index)
        looked[0] += len(found) if isinstance(index, slice) else 1
        return found

    monkeypatch.setattr(Line, "__iter__", iterated, raising=False)
    monkeypatch.setattr(Line, "__getitem__", got, raising=False)
    body = story(format, 100) | ({"model": model} if model else {})
    for message in body["messages"] if model.startswith("kimi") else ():
        message |= {"reasoning_content": "Hm."} if message["role"] == "assistant" else {}
    key, session, each = key_of(body), trimtab.Session(**{**KEYWORDS, "window": window}), []
    for end in range(41, len(body[key]), 2):
        looked[0] = 0
        fitted = session.fit({**body, key: body[key][:end]})
        if not any(edit.new for edit in fitted.report.edits):
            each.append(looked[0])
    half = len(each) // 2
    assert 0 < max(each[half:]) <= max(each[1:half])


@pytest.mark.parametrize("as_bytes", [False, True], ids=["dict", "bytes"])
def test_a_session_that_goes_on_for_many_turns_sends_what_one_begun_anew_does(
    as_bytes: bool,
) -> None:
    body, session = request(48), trimtab.Session(**KEYWORDS)
    for steps in range(8, 49, 2):
        turn: Any = {**body, "messages": body["messages"][: 1 + 2 * steps]}
        assert_as_anew(session, json.dumps(turn).encode() if as_bytes else turn)
    assert len(session.journal["edits"]) > 1, "there should be more than one batch"


def changed_text(body: dict[str, Any]) -> None:
    body["messages"][3]["content"][0]["input"]["command"] = "something else"


def rewound(body: dict[str, Any]) -> None:
    del body["messages"][9:]


def other_system(body: dict[str, Any]) -> None:
    body["system"] = "You are another one."


def other_model(body: dict[str, Any]) -> None:
    body["model"] = "claude-opus-4-1"


def with_thinking(body: dict[str, Any]) -> None:
    body["thinking"] = {"type": "enabled", "budget_tokens": 2_000}
    body["max_tokens"] = 3_000


def orphan(body: dict[str, Any]) -> None:
    body["messages"] += step(99, "x")[1:]


def late_result(body: dict[str, Any]) -> None:
    late = copy.deepcopy(body["messages"][2])
    body["messages"] += [{"role": "assistant", "content": "done"}, late]


def huge_turn(body: dict[str, Any]) -> None:
    body["messages"] += step(98, "a long line of words\n" * 3_000)


def in_the_middle(body: dict[str, Any]) -> None:
    body["messages"][5:5] = step(97, "short")


CHANGES = [
    changed_text, rewound, other_system, other_model, with_thinking, orphan, late_result,
    huge_turn, in_the_middle,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("in_place", [False, True], ids=["copy", "in place"])
def test_whatever_else_changed_is_planned_anew(change: Any, in_place: bool) -> None:
    body, session = request(31), trimtab.Session(**KEYWORDS)
    session.fit(body)
    following = body if in_place else copy.deepcopy(body)
    following["messages"] += step(40, "ok\n")
    change(following)
    journal = json.loads(json.dumps(session.journal))
    anew = trimtab.Session(journal=journal, **KEYWORDS).fit(copy.deepcopy(following))
    went_on = session.fit(following)
    assert json.dumps(went_on.request) == json.dumps(anew.request)


@pytest.mark.parametrize(
    "keywords",
    [{"window": 9_000}, {"recall": True}, {"pins": ["nothing"]}, {"preset": "deep"}],
    ids=str,
)
def test_other_settings_are_heeded_at_once(keywords: dict[str, Any]) -> None:
    body, session = request(31), trimtab.Session(**KEYWORDS)
    session.fit(body)
    assert_as_anew(session, {**body, "messages": body["messages"] + step(40, "ok\n")}, **keywords)


def test_a_forked_conversation_goes_on_by_itself() -> None:
    body, session = request(31), trimtab.Session(**KEYWORDS)
    session.fit(body)
    one = {**body, "messages": body["messages"] + step(40, "the one way\n")}
    two = {**body, "messages": body["messages"] + step(41, "the other way\n")}
    for turn in (one, two, one):
        assert_as_anew(session, turn)


def test_a_client_that_goes_on_from_what_was_sent_gets_the_words_of_a_repair_once() -> None:
    words = " ".join(f"w{number}" for number in range(1_500))
    body: dict[str, Any] = {"model": "claude-opus-4-6", "max_tokens": 10, "messages": []}
    body["messages"].append({"role": "user", "content": words})
    window = int(trimtab.measure(body, counter="o200k").total * 1.05)
    session = trimtab.Session(**{**KEYWORDS, "window": window})
    assert "above the trigger" in session.fit(copy.deepcopy(body)).report.reason
    body["messages"].append({"role": "assistant", "content": "I see."})
    sent = session.fit(body)
    assert [repair.rule for repair in sent.report.repairs] == ["last_not_user"]
    session.observe({"usage": {"input_tokens": window // 2, "output_tokens": 1}})
    # A client that goes on from what was sent, now that there is room.
    body = copy.deepcopy(sent.request)
    body["messages"] += [
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": "?"},
    ]
    done = session.fit(body)
    assert done.request is body
    assert done.report.tokens_after == trimtab.measure(body, counter="o200k").total


def spoil(value: Any) -> None:
    """Change in place everything there is."""
    for inner in list(value.values() if isinstance(value, dict) else value):
        if isinstance(inner, (dict, list)):
            spoil(inner)
    if isinstance(value, dict):
        value |= {key: "spoilt" for key, inner in value.items() if isinstance(inner, str)}
        value["cache_control"] = {"type": "ephemeral"}
    else:
        value.append("spoilt")


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_caller_does_to_the_request_it_got_back_changes_no_later_one(format: str) -> None:
    body, session = story(format, 31), trimtab.Session(**KEYWORDS)
    text = json.dumps(body)
    for _ in range(3):
        fitted = assert_as_anew(session, json.loads(text))
        assert fitted.report.edits
        spoil(fitted.request)


def test_what_a_caller_does_to_a_repaired_request_changes_no_later_one() -> None:
    body = request(3)
    call = step(9, "")[0]
    body["messages"] += [call, {"role": "user", "content": "And now?"}]
    session = trimtab.Session(**KEYWORDS)
    own = {id(body), *(id(value) for value in everything(body))}
    wanted = json.dumps(session.fit(body).request)
    assert wanted != json.dumps(body)
    for _ in range(3):
        sent = session.fit(body).request
        assert json.dumps(sent) == wanted
        for made in [value for value in everything(sent) if id(value) not in own]:
            made.append("spoilt") if isinstance(made, list) else made.update(spoilt=1)


def everything(value: Any) -> list[Any]:
    """All containers in a value."""
    inner = value.values() if isinstance(value, dict) else value
    found = [one for one in inner if isinstance(one, (dict, list))]
    return [*found, *(deep for one in found for deep in everything(one))]


def test_a_call_that_comes_late_under_a_reasoning_that_is_gone_is_sent_without_its_id() -> None:
    items: list[Any] = [user("Fix it.")]
    for n in range(12):
        long = "\n".join(f"a line of output {n} {m}" for m in range(60))
        items += [call(f"c{n}", id=f"fc_{n}"), output(f"c{n}", long)]
    items.insert(1, thought("rs_1"))
    session = trimtab.Session(window=4_000, reserve=0, counter="o200k")
    body = {"model": "gpt-5.1", "input": items}
    assert session.fit(copy.deepcopy(body)).report.edits
    body["input"] = [*items, call("c99", id="fc_99"), output("c99", "ok")]
    assert_as_anew(session, body, window=4_000)


def test_a_turn_that_cannot_be_gone_on_with_is_planned_anew_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short, longer = story("anthropic", 30), story("anthropic", 31)
    session = trimtab.Session(**KEYWORDS)
    session.fit(short)
    anew = trimtab.Session(journal=session.journal, **KEYWORDS).fit(copy.deepcopy(longer))

    def broken(*_: Any) -> Any:
        raise LookupError("no such turn")

    monkeypatch.setattr("trimtab.turns.continuing._extends", broken)
    planned = session.fit(longer)
    assert text(planned.request) == text(anew.request)
    assert "going on failed: LookupError: no such turn" in planned.report.warnings
    strict = trimtab.Session(strict=True, **KEYWORDS)
    strict.fit(short)
    with pytest.raises(LookupError):
        strict.fit(longer)
