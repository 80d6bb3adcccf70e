"""The conformance suite: its cases, and that each property catches what breaks it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import judge
import judge_bedrock
import judge_gemini
import judge_responses
import pytest

import trimtab
from trimtab_lab.testing.conformance import Options, Scoreboard, TargetOptions, run
from trimtab_lab.testing.conformance.callable_target import CallableTarget, accepted, handles_of
from trimtab_lab.testing.conformance.cases import FIRST_DRAWN, case, seeds
from trimtab_lab.testing.conformance.opening import load
from trimtab_lab.testing.conformance.reading import read
from trimtab_lab.testing.conformance.writing import FORMATS, write

WINDOW = 8_000
JUDGES: dict[str, Callable[[Any], list[str]]] = {
    "openai-chat": lambda body: judge.problems(body, "openai-chat"),
    "anthropic": lambda body: judge.problems(body, "anthropic"),
    "openai-responses": judge_responses.problems,
    "bedrock": judge_bedrock.problems,
    "gemini": judge_gemini.problems,
}
BLOCK = 9  # the compaction block stands first: of an assistant, which judge.problems does not know
LATER, SYSTEM, DIRECTIVES, FOUND, EARLY = range(15, 20)


def board(function: Any, *only: int, format: str = "openai-chat", **more: Any) -> Scoreboard:
    target = CallableTarget("test", function, TargetOptions(WINDOW, **more))
    return run(target, Options(WINDOW, formats=(format,), only=only))


# --- the cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", JUDGES)
def test_a_case_is_legal_unless_it_is_damaged_says_a_judge_of_its_own(format: str) -> None:
    for one in (case(seed, WINDOW) for seed in seeds(40)):
        if format in one.formats and one.seed != BLOCK:
            found = JUDGES[format](write(one.story, format))
            assert bool(found) == one.story.is_damaged, (one.seed, format, found)


def test_the_rule_table_agrees_on_every_case_and_format() -> None:
    for one in (case(seed, WINDOW) for seed in seeds(40)):
        for format in one.formats:
            for story in one.story.requests() if one.grows else [one.story]:
                body = write(story, format)
                assert trimtab.detect(body).format == format
                found = trimtab.check(body, format=format)
                assert bool(found) == story.is_damaged, (one.seed, format, found)


def test_a_case_is_the_same_each_time_and_another_at_another_window() -> None:
    for seed in (1, 4, 100, 123):
        assert case(seed, WINDOW) == case(seed, WINDOW)
        assert case(seed, WINDOW) != case(seed, 2 * WINDOW)
    assert seeds(3) == [1, 2, 3]
    assert [seed for seed in seeds(40) if seed >= FIRST_DRAWN][:2] == [100, 101]
    with pytest.raises(LookupError, match="drawn ones from 100"):
        case(99, WINDOW)


@pytest.mark.parametrize("format", FORMATS)
def test_every_text_of_a_story_is_read_under_its_speaker(format: str) -> None:
    story = case(11, WINDOW).story
    pieces = {(one.speaker, one.text) for one in read(write(story, format), format)}
    for turn in story.turns:
        assert not turn.text or (turn.speaker, turn.text) in pieces
        for call in turn.calls:
            assert ("tool", call.result) in pieces


# --- each property catches what breaks it --------------------------------------------------------


def _same(request: Any) -> Any:
    return request


def _without_first_calls(request: Any) -> Any:
    del request["messages"][2]
    return request


def _results_as_the_users_words(request: Any) -> Any:
    said = [m["content"] for m in request["messages"] if m["role"] == "tool"]
    kept = [m for m in request["messages"] if m["role"] in ("system", "user")]
    return [*kept, {"role": "user", "content": "\n".join(said)}]


def _user_cut(request: Any) -> Any:
    for message in request["messages"]:
        if message["role"] == "user":
            message["content"] = message["content"][:30]
    return request


def _resigned(request: Any) -> Any:
    for message in request["messages"]:
        for part in message["content"]:
            if part["type"] == "thinking":
                part["signature"] = "AAAA"
    return request


def _ever_longer(request: Any) -> Any:
    request["messages"][1]["content"] += "!"
    return request


def _last_ten(request: Any) -> Any:
    messages = request["messages"]
    return [*messages[:2], *messages[2:][-10:]]


def _summary_first(request: Any) -> Any:
    return [{"role": "user", "content": "Go on."}, *request["messages"]]


def _without_results_elsewhere(request: Any) -> Any:
    """Server tools are paired within one message only."""
    for message in request["messages"]:
        kept = {part["id"] for part in message["content"] if part["type"] == "server_tool_use"}
        message["content"] = [
            part for part in message["content"]
            if not part["type"].endswith("_execution_tool_result") or part["tool_use_id"] in kept
        ]  # fmt: skip
    return request


def _without_what_tools_said(request: Any) -> Any:
    kept = [m for m in request["messages"] if m["role"] == "system"]
    return [*request["messages"][:1], *kept, *request["messages"][-1:]]


def _words_for_nothing(request: Any) -> Any:
    for message in request["messages"]:
        message["content"] = message["content"] or "(no content)"
    return request


def _last_four_items(request: Any) -> Any:
    request["input"] = [*request["input"][:1], *request["input"][-4:]]
    return request


def _answered_where_nothing_follows(request: Any) -> Any:
    """Each call gets the result right behind it, or one that is made up."""
    sent, last = [], list[str]()
    for message in request["messages"]:
        if message["role"] == "tool" and message["tool_call_id"] not in last:
            continue
        if message["role"] == "tool":
            last.remove(message["tool_call_id"])
        else:
            sent += [{"role": "tool", "tool_call_id": id, "content": "canceled"} for id in last]
            last = [call["id"] for call in message.get("tool_calls") or ()]
        sent.append(message)
    return sent + [{"role": "tool", "tool_call_id": id, "content": "canceled"} for id in last]


def _raises(request: Any) -> Any:
    raise ValueError("no\nroom")


CATCHES = [
    ("fits", _same, 1, "openai-chat"),
    ("fits", lambda request: [], 1, "openai-chat"),
    ("fits", _raises, 1, "openai-chat"),
    ("legal", _same, 6, "openai-chat"),
    ("pairs", _same, 7, "openai-chat"),
    ("pairs", _without_first_calls, 12, "openai-chat"),
    ("speakers", _results_as_the_users_words, 12, "openai-chat"),
    ("constraints", _user_cut, 11, "openai-chat"),
    ("sealed", _resigned, 10, "anthropic"),
    ("sealed", _summary_first, BLOCK, "anthropic"),
    ("untouched", _ever_longer, 12, "openai-chat"),
    ("idempotent", _ever_longer, 12, "openai-chat"),
    ("sticky", _last_ten, 14, "openai-chat"),
    ("pairs", _without_results_elsewhere, LATER, "anthropic"),
    ("untouched", _without_results_elsewhere, LATER, "anthropic"),
    ("legal", _without_what_tools_said, SYSTEM, "anthropic"),
    ("legal", _words_for_nothing, DIRECTIVES, "anthropic"),
    ("untouched", _words_for_nothing, DIRECTIVES, "anthropic"),
    ("pairs", _last_ten, FOUND, "anthropic"),
    ("pairs", _last_four_items, FOUND, "openai-responses"),
    ("untouched", _answered_where_nothing_follows, EARLY, "openai-chat"),
]


@pytest.mark.parametrize(("name", "target", "seed", "format"), CATCHES)
def test_a_property_catches_what_breaks_it(
    name: str, target: Callable[[Any], Any], seed: int, format: str
) -> None:
    row = board(target, seed, format=format).row(name)
    assert [one.seed for one in row.failures] == [seed]
    assert row.failures[0].reason
    assert row.share == 0


class Forgetful:
    """A session that gives nothing back."""

    def __init__(self, window: int) -> None:
        self._session = trimtab.Session(window=window)

    def fit(self, request: Any) -> Any:
        return self._session.fit(request)

    def recall(self, handle: str) -> str:
        return ""


def test_reversible_catches_an_original_that_does_not_come_back() -> None:
    assert board(Forgetful, 1, factory=True).row("reversible").failures
    assert board(trimtab.Session, 1, factory=True).row("reversible").share == 1.0
    assert board(trimtab.fit, 1).row("reversible").judged == 0  # fit offers none


def test_what_is_not_broken_passes() -> None:
    found = board(_same, 12)
    assert found.passed
    assert (found.held, found.judged) == (7, 7)


def test_the_request_that_a_target_gets_is_its_own_copy() -> None:
    kept = []

    def spoils(request: Any) -> Any:
        kept.append(copy.deepcopy(request))
        request["messages"].clear()
        return kept[-1]

    assert board(spoils, 12).passed


def test_a_window_goes_in_under_the_name_that_a_callable_has_for_it() -> None:
    def first(request: Any, *, max_tokens: int = 0) -> Any: ...
    def second(messages: Any, model: str = "", **more: Any) -> Any: ...
    def third(messages: Any) -> Any: ...

    assert accepted(first, {"window": 5, "format": "x"}) == {"max_tokens": 5}
    assert accepted(second, {"window": 5, "format": "x"}) == {"window": 5}
    assert accepted(third, {"window": 5, "format": "x"}) == {}


@pytest.mark.parametrize("name", ["nothing", "no.such:thing", "trimtab:nothing", "trimtab:__all__"])
def test_a_name_of_nothing_is_an_error_in_one_line(name: str) -> None:
    with pytest.raises(trimtab.InvalidSetting, match=r"target|loaded|callable"):
        load(name)


def test_a_factory_that_raises_is_an_error_of_the_user_not_of_ours() -> None:
    def no_key(window: int) -> Any:
        raise KeyError("OPENAI_API_KEY")

    with pytest.raises(trimtab.InvalidSetting, match="KeyError: 'OPENAI_API_KEY'"):
        board(no_key, 12, factory=True)


def test_handles_of_what_repairs_took_out_are_asked_for_too():
    orphan = {"role": "tool", "tool_call_id": "call_9", "content": "what nobody asked for"}
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}, orphan]}
    fitted = trimtab.Session(window=8_000).fit(body)
    handles = [repair.handle for repair in fitted.report.repairs if repair.handle]
    assert handles
    assert set(handles) <= set(handles_of(fitted))
