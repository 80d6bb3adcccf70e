"""A session of many turns sends what a session begun anew from its journal would send.

However the conversation goes on: grown, rewound, forked, repaired, or changed in place by a caller.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import chats
import pytest
import spoken
from effort import seeds
from file_reads import request, step
from responses_cases import call, output, thought, user
from settings_words import as_keywords
from soak.trial import Case, case_of, messages_of
from stories import FORMATS

import trimtab
from trimtab.errors import TrimtabError

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


def assert_as_anew(
    session: trimtab.Session, body: Any, minimum: bool = True, **keywords: Any
) -> trimtab.Fitted:
    """What the session sends and reports is what one begun from its journal does.

    ``minimum``: the smallest window too, which takes longer than the fit.
    """
    journal = json.loads(json.dumps(session.journal))
    anew = trimtab.Session(journal=journal, **as_keywords(**{**KEYWORDS, **keywords})).fit(
        copy.deepcopy(body)
    )
    went_on = session.fit(body, **as_keywords(**keywords))
    assert type(went_on.request) is type(anew.request)
    assert text(went_on.request) == text(anew.request)
    assert went_on.report == anew.report
    assert went_on.report.losses == anew.report.losses
    if minimum:
        assert went_on.report.as_dict() == anew.report.as_dict()
    return went_on


@pytest.mark.parametrize("window", [12_000, 10**6], ids=["edits", "no edit"])
@pytest.mark.parametrize(("format", "model"), [*((format, "") for format in FORMATS), *DIALECTS])
def test_a_turn_that_only_goes_on_is_sent_as_one_begun_anew(
    format: str, model: str, window: int
) -> None:
    body = story(format, 40) | ({"model": model} if model else {})
    for message in body["messages"] if model.startswith("kimi") else ():
        message |= {"reasoning_content": "Hm."} if message["role"] == "assistant" else {}
    key, session, quiet = (
        key_of(body),
        trimtab.Session(**as_keywords(**{**KEYWORDS, "window": window})),
        0,
    )
    for number, end in enumerate(range(25, len(body[key]), 5)):
        turn = {**body, key: body[key][:end]}
        fitted = assert_as_anew(session, turn, minimum=number % 5 == 2, window=window)
        quiet += not any(edit.new for edit in fitted.report.edits)
    assert bool(fitted.report.edits) == (window < 10**6)
    assert quiet > 3, "most turns should make no new edit"


@pytest.mark.parametrize("as_bytes", [False, True], ids=["dict", "bytes"])
def test_a_session_that_goes_on_for_many_turns_sends_what_one_begun_anew_does(
    as_bytes: bool,
) -> None:
    body, session = request(48), trimtab.Session(**as_keywords(**KEYWORDS))
    for steps in range(8, 49, 2):
        turn: Any = {**body, "messages": body["messages"][: 1 + 2 * steps]}
        given = json.dumps(turn).encode() if as_bytes else turn
        assert_as_anew(session, given, minimum=steps % 10 == 8)
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
    body, session = request(31), trimtab.Session(**as_keywords(**KEYWORDS))
    session.fit(body)
    following = body if in_place else copy.deepcopy(body)
    following["messages"] += step(40, "ok\n")
    change(following)
    journal = json.loads(json.dumps(session.journal))
    anew = trimtab.Session(journal=journal, **as_keywords(**KEYWORDS)).fit(copy.deepcopy(following))
    went_on = session.fit(following)
    assert json.dumps(went_on.request) == json.dumps(anew.request)


@pytest.mark.parametrize(
    "keywords",
    [{"window": 9_000}, {"recall": True}, {"pins": ["0123456789abcdef.0"]}, {"preset": "economy"}],
    ids=str,
)
def test_other_settings_are_heeded_at_once(keywords: dict[str, Any]) -> None:
    body, session = request(31), trimtab.Session(**as_keywords(**KEYWORDS))
    session.fit(body)
    assert_as_anew(session, {**body, "messages": body["messages"] + step(40, "ok\n")}, **keywords)


def test_a_forked_conversation_goes_on_by_itself() -> None:
    body, session = request(31), trimtab.Session(**as_keywords(**KEYWORDS))
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
    session = trimtab.Session(**as_keywords(**{**KEYWORDS, "window": window}))
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
    body, session = story(format, 31), trimtab.Session(**as_keywords(**KEYWORDS))
    text = json.dumps(body)
    for _ in range(3):
        fitted = assert_as_anew(session, json.loads(text))
        assert fitted.report.edits
        spoil(fitted.request)


def test_what_a_caller_does_to_a_repaired_request_changes_no_later_one() -> None:
    body = request(3)
    call = step(9, "")[0]
    body["messages"] += [call, {"role": "user", "content": "And now?"}]
    session = trimtab.Session(**as_keywords(**KEYWORDS))
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
    session = trimtab.Session(window=4_000, reserve=0, settings=trimtab.Settings(counter="o200k"))
    body = {"model": "gpt-5.1", "input": items}
    assert session.fit(copy.deepcopy(body)).report.edits
    body["input"] = [*items, call("c99", id="fc_99"), output("c99", "ok")]
    assert_as_anew(session, body, window=4_000)


# --- repairs ------------------------------------------------------------------------------------


def turn(number: int, *, answered: bool = True) -> list[dict[str, Any]]:
    use = {
        "type": "tool_use",
        "id": f"c{number}",
        "name": "read",
        "input": {"path": f"{number}.py"},
    }
    back = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"line {number} of it"}
    said = {"type": "text", "text": "Stop. Go on with the next one."}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [back if answered else said]},
    ]


def interrupted(turns: int, **more: Any) -> dict[str, Any]:
    """One whose second call was interrupted."""
    messages: list[Any] = [{"role": "user", "content": "Read all the files."}]
    for number in range(turns):
        messages += turn(number, answered=number != 1)
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, **more}


def part(request: Any, end: int) -> Any:
    """Its first messages."""
    if isinstance(request, list):
        return request[:end]
    key = next(key for key in ("messages", "input", "contents") if key in request)
    return {**request, key: request[key][:end]}


def sent(session: trimtab.Session, request: Any) -> str:
    try:
        return json.dumps(session.fit(request).request)
    except TrimtabError as error:
        return f"{type(error).__name__} {error}"


@pytest.mark.parametrize("as_bytes", [False, True], ids=["objects", "bytes"])
def test_an_interrupted_call_is_answered_the_same_in_every_turn(as_bytes: bool) -> None:
    session, body = (
        trimtab.Session(window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k")),
        interrupted(60),
    )
    for end in range(1, len(body["messages"]) + 1, 2):
        turn: Any = part(body, end)
        done = session.fit(json.dumps(turn).encode() if as_bytes else turn)
        assert not trimtab.check(done.request)
        assert done.report.tokens_after == trimtab.measure(done.request, counter="o200k").total
        alone = trimtab.fit(copy.deepcopy(turn), window=10**6, reserve=0).request
        assert (json.loads(done.request) if as_bytes else done.request) == alone
    assert "interrupted" in json.dumps(done.report.as_dict()["repairs"])


def played(case: Case, window: int, open_tail: bool) -> int:
    """How many requests were repaired; a session that knows nothing else sends each the same."""
    keywords: dict[str, Any] = {
        "window": window, "reserve": 0, "counter": "o200k", "format": case["format"],
        "model": case["model"], "open_tail": open_tail,
    }  # fmt: skip
    session, repaired = trimtab.Session(**as_keywords(**keywords)), 0
    for end in range(1, len(messages_of(case["request"])) + 1):
        request, journal = part(case["request"], end), session.journal
        plain = json.dumps(request)
        now = sent(session, request)
        repaired += now != plain
        assert sent(trimtab.Session(journal=journal, **as_keywords(**keywords)), request) == now, (
            end
        )
    return repaired


@pytest.mark.parametrize("first", seeds(20)[::10])
def test_a_repair_late_in_a_session_is_the_one_that_would_be_made_alone(first: int) -> None:
    tried = range(first, first + 10)
    assert sum(played(case_of(seed), 10**7, seed % 3 == 0) for seed in tried) > 5


def test_a_result_that_comes_late_after_all_is_sent_as_if_all_were_read_anew() -> None:
    body = interrupted(9)
    late = {"type": "tool_result", "tool_use_id": "c1", "content": "here after all"}
    session = trimtab.Session(window=10**6, reserve=0)
    for end in range(1, 16, 2):
        session.fit(part(body, end))
    body["messages"][16]["content"].append(late)
    alone = trimtab.Session(window=10**6, reserve=0, journal=session.journal)
    assert session.fit(part(body, 17)).request == alone.fit(part(body, 17)).request


def test_what_a_caller_changes_in_a_mended_request_does_not_come_again() -> None:
    session, body = trimtab.Session(window=10**6, reserve=0), interrupted(12)
    untouched = copy.deepcopy(body)
    for end in range(1, len(body["messages"]) + 1, 2):
        got = session.fit(part(body, end)).request
        assert got == trimtab.fit(part(untouched, end), window=10**6, reserve=0).request
        made = [p for m in got["messages"] for p in m["content"] if "interrupted" in str(p)]
        for found in made:
            if isinstance(found, dict) and found.get("type") == "tool_result":
                found["content"] = "changed by the caller"


def test_thinking_that_comes_first_after_a_batch_is_asked_to_be_dropped_where_it_must() -> None:
    """The option is asked for in the turn that brings the first thinking, not in a later batch."""
    body = interrupted(40, thinking={"type": "adaptive"})
    body["model"] = "claude-opus-5-5"
    thought = {"type": "thinking", "thinking": "Now the next.", "signature": "c2lnbmVk" * 8}
    keywords: dict[str, Any] = {"window": 1_500, "reserve": 0, "thinking": "drop_block"}
    session = trimtab.Session(**as_keywords(**keywords))
    for end in range(1, len(body["messages"]) - 3, 2):
        session.fit(part(body, end))
    body["messages"][-4]["content"].insert(0, thought)
    journal = session.journal
    request = part(body, len(body["messages"]) - 2)
    now = sent(session, request)
    assert "drop_block" in now
    assert now == sent(trimtab.Session(journal=journal, **as_keywords(**keywords)), request)


def test_a_repair_of_the_last_turn_comes_out_otherwise_when_its_result_arrives() -> None:
    session, body = trimtab.Session(window=10**6, reserve=0), interrupted(4)
    early = {**body, "messages": [*body["messages"][:-1], {"role": "user", "content": "Wait."}]}
    first = session.fit(copy.deepcopy(early))
    assert [repair.rule for repair in first.report.repairs].count("call_unanswered") == 2
    done = session.fit(copy.deepcopy(body))
    assert done.request == trimtab.fit(body, window=10**6, reserve=0).request
    assert "line 3 of it" in json.dumps(done.request)


@pytest.mark.parametrize("first", ["list", "body"])
def test_messages_that_come_bare_and_then_in_a_body_are_cut_where_they_stand(first: str) -> None:
    messages = story("openai-chat", 31)["messages"]
    session = trimtab.Session(**as_keywords(**KEYWORDS))
    requests: list[Any] = [messages[:-2], {"messages": messages}]
    if first == "body":
        requests = [{"messages": messages[:-2]}, messages]
    for request_ in requests:
        fitted = assert_as_anew(session, request_)
        assert fitted.report.edits
        assert not fitted.report.warnings


def test_a_format_that_changed_with_a_message_in_place_is_found_anew() -> None:
    messages: list[Any] = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
    session = trimtab.Session(window=10**6, reserve=0)
    assert session.fit({"messages": messages}).report.format == "openai-chat"
    messages[1]["content"] = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
    messages[2]["content"] = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    assert session.fit({"messages": messages}).report.format == "anthropic"


@pytest.mark.parametrize("seed", seeds(5))
def test_law_5_after_an_undo_a_session_sends_again_what_it_sent(seed: int) -> None:
    """A batch that folds around what was undone must not bring back an edit older than both."""
    rng, format = random.Random(seed), FORMATS[seed % len(FORMATS)]
    script: spoken.Script = []
    for number in range(26):
        script.append(f"Question {number}: {chats.words(rng, 12)}?")
        if number % 2 == 0:
            for _ in range(rng.randint(1, 2)):
                back = "\n".join(chats.words(rng, 8) for _ in range(rng.randint(1, 12)))
                called = spoken.Called("look_up", {"key": f"key-{rng.randint(0, 10**6)}"}, back)
                script.append(spoken.Step(chats.words(rng, 5), (called,)))
        script.append(spoken.Step(chats.words(rng, rng.randint(5, 60))))
    session = trimtab.Session(**as_keywords(**KEYWORDS))
    for body in chats.requests(format, script):
        fitted = assert_as_anew(session, body, minimum=False, window=900)
        assert session.fit(body, window=900).request == fitted.request
        if fitted.report.edits and rng.random() < 0.2:
            session.undo(rng.choice(fitted.report.edits).handle)
