"""A request with a fault that its provider names: saved, recallable, remembered where it belongs.

Knows providers' words and small requests with each fault (``refused_requests``).  Sends nothing.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flow_driver import played
from refused_requests import CUT, FAULTS, Fault, model, user

import trimtab
from trimtab.formats import FORMATS
from trimtab.retry.flow import MAX_FORM_SENDS, MAX_SIZE_SENDS, Accepted, Refused, flow
from trimtab.retry.learned_limits import key_for
from trimtab.retry.refusal_repairs import _ELSE, ROWS
from trimtab.retry.refusals import classify
from trimtab.session import learned_limits
from trimtab.sessions.edit_history import take_back

DATA = Path(__file__).parents[2] / "support" / "data_files"
HERE, THERE = key_for("api.example.com", "m"), key_for("api.example.com", "another")

WORDS: list[tuple[str, int, Any]] = [
    ("reasoning_content", 400, {"error": {"message": "'messages.1' : for 'role:assistant' the "
     "following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported, "
     "did you mean 'reasoning'?)]", "type": "invalid_request_error"}}),
    ("reasoning_content", 422, {"object": "error", "message": {"detail": [{
        "type": "extra_forbidden", "loc": ["body", "messages", 1, "assistant",
                                           "reasoning_content"],
        "msg": "Extra inputs are not permitted", "input": "The user greets."}]},
        "type": "invalid_request_error"}),
    ("reasoning_content", 400, {"message": "body.messages.1.assistant.reasoning_content: Extra "
                                "inputs are not permitted", "code": "wrong_api_format"}),
    ("reasoning_details", 400, "Unrecognized request argument supplied: reasoning_details"),
    ("output fields of a picture", 400, {"error": {
        "message": "Unknown parameter: 'input[1].action'.", "param": "input[1].action",
        "code": "unknown_parameter"}}),
    ("namespace", 400, {"error": {"message": "Unknown parameter: 'input[1].namespace'.",
                                  "param": "input[1].namespace", "code": "unknown_parameter"}}),
    ("citations", 400, {"error": {"message": "messages.1.content.0.text.citations: Extra inputs "
                                  "are not permitted"}}),
    ("field of a tool", 400, {"error": {"message": "tools.0.custom.eager_input_streaming: Extra "
                                        "inputs are not permitted"}}),
    ("arguments cut", 400, {"error": {"message": 'The "function.arguments" parameter of the code '
                                      'model must be in JSON format.'}}),
    ("arguments cut", 400, "Unterminated string starting at: line 1 column 26 (char 25)"),
    ("arguments cut", 500, "Failed to parse tool call arguments as JSON"),
    ("arguments cut in responses", 400, "Invalid control character at: line 1 column 9 (char 8)"),
    ("names in chat", 400, {"error": {
        "message": "Invalid 'messages[1].tool_calls[0].function.name': string does not match "
                   "pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."}}),
    ("names in anthropic", 400, "tools.0.custom.name: String should match pattern "
                                "'^[a-zA-Z0-9_-]{1,128}$'"),
    ("names in responses", 400, "Invalid 'input[1].name': string does not match pattern. Expected "
                                "a string that matches the pattern '^[a-zA-Z0-9_-]+$'."),
    ("tool reference", 400, "Tool reference 'LSP' not found in available tools"),
    ("late system", 400, "System message must be at the beginning."),
    ("late system", 400, "Error rendering prompt with jinja template: \"After the optional system "
                         "message, conversation roles must alternate user/assistant/user/"
                         "assistant/...\"."),
    ("two systems", 400, "Error in template: System message must be at the beginning"),
    ("two users", 500, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ("reasoning missing", 400, "The `reasoning_content` in the thinking mode must be passed back "
                               "to the API."),
    ("calls apart", 400, "Function call is missing a thought_signature in functionCall parts."),
    ("pages", 400, "A maximum of 100 PDF pages may be provided."),
    ("52 images of 50", 400, "request contains 52 images, exceeding the maximum of 50 allowed per "
                             "request"),
    ("6 images of 4", 400, "At most 4 image(s) may be provided in one request."),
    ("asks above 4096", 400, "max_tokens is too large: 8192. This model supports at most 4096 "
                             "completion tokens, whereas you provided 8192."),
    ("item id", 400, "Item 'msg_1' of type 'message' was provided without its required "
                     "'reasoning' item: 'rs_1'."),
]  # fmt: skip
THREADS = [
    (row["fault"], row["status"], row["body"])
    for row in map(json.loads, DATA.joinpath("refusal_threads.jsonl").open("rb"))
    if "fault" in row
]
AT_ENTRANCE = ("tool after user", "signature missing", "marks", "reasoning alone", "tool reference")
"""Faults that are certain: repaired before the first send."""


def named(case: tuple[str, int, Any]) -> str:
    return f"{case[0]}-{str(case[2])[:30]}"


EVERY = pytest.mark.parametrize("case", [*WORDS, *THREADS], ids=named)
REFUSED = pytest.mark.parametrize(
    "case", [one for one in (*WORDS, *THREADS) if one[0] not in AT_ENTRANCE], ids=named
)


class Provider:
    """Refuses what has the fault, in these words."""

    def __init__(self, case: tuple[str, int, Any]) -> None:
        self.fault: Fault = FAULTS[case[0]]
        self.status, self.body = case[1:]

    def __call__(self, request: Any) -> Refused | Accepted:
        if self.fault.is_in(request):
            return Refused(self.status, self.body)
        return Accepted()

    def ask(self, session: trimtab.Session, request: Any, key: str = HERE) -> list[Any]:
        """What was sent until it was accepted."""
        run = flow(
            request,
            session.fit,
            key=key,
            learned=learned_limits(session),
            undo=partial(take_back, session),
        )
        done, sent = played(run, self)
        assert done.accepted, done.refusals
        return sent


def opened(url: str) -> trimtab.Session:
    return trimtab.Session(window=10_000_000, store=url)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


@EVERY
def test_a_named_fault_is_gone_in_the_second_send(case: Any, url: str) -> None:
    provider, session = Provider(case), opened(url)
    sent = provider.ask(session, provider.fault.request())
    assert len(sent) == (1 if case[0] in AT_ENTRANCE else 2)
    assert provider.fault.is_in(sent[0]) is (case[0] not in AT_ENTRANCE)


@EVERY
def test_the_next_request_of_that_conversation_is_accepted_at_once(case: Any, url: str) -> None:
    provider, session = Provider(case), opened(url)
    provider.ask(session, provider.fault.request())
    assert len(provider.ask(session, provider.fault.longer())) == 1


@REFUSED
def test_after_a_restart_and_on_a_second_replica_the_same_bytes_are_sent_at_once(
    case: Any, url: str
) -> None:
    provider, first, replica = Provider(case), opened(url), opened(url)
    replica.fit([user("something"), model(), user()])
    last = provider.ask(first, provider.fault.request())[-1]
    assert provider.ask(replica, provider.fault.request()) == [last]
    sent = provider.ask(first, provider.fault.longer())
    first.close()
    again = opened(url)
    assert provider.ask(again, provider.fault.longer()) == sent
    assert provider.ask(replica, provider.fault.longer()) == sent


@REFUSED
def test_another_conversation_is_sent_as_it_came_until_a_second_was_refused(
    case: Any, url: str
) -> None:
    provider, session = Provider(case), opened(url)
    provider.ask(session, provider.fault.request())
    second = provider.fault.request("Something else.")
    if case[0] == "no user":
        return  # a conversation is told by its first words
    alone = trimtab.Session(window=10_000_000).fit(copy.deepcopy(second)).request
    assert provider.ask(session, second)[0] == alone
    third = provider.fault.request("A third thing.")
    refusal = classify(*case[1:])
    rule = "" if refusal.unit == "pages" else refusal.rule
    sent = provider.ask(session, copy.deepcopy(third))
    is_of_endpoint = rule in ("field_refused", "output_limit", "name_format", "images")
    assert len(sent) == (1 if is_of_endpoint else 2)


@REFUSED
def test_a_conversation_that_goes_on_with_another_model_is_not_repaired_for_the_first(
    case: Any, url: str
) -> None:
    if classify(*case[1:]).about_size:
        return  # what was cut is an edit, and edits stay
    provider, session = Provider(case), opened(url)
    provider.ask(session, provider.fault.request())
    longer = provider.fault.longer()
    alone = trimtab.Session(window=10_000_000).fit(copy.deepcopy(longer)).request
    assert (
        next(flow(longer, session.fit, key=THERE, learned=learned_limits(session))).request == alone
    )


def texts(value: Any) -> Iterator[str]:
    """Every text of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


def bare(text: str) -> str:
    """A text without what spellings differ in."""
    return re.sub("[^a-z0-9]", "", text.lower())


def lost(before: Any, after: Any) -> set[str]:
    """Texts of several words that are gone."""
    kept = bare("".join(texts(after)))
    return {text for text in texts(before) if " " in text and bare(text) not in kept}


@REFUSED
def test_all_that_a_repair_took_is_recallable(case: Any, url: str) -> None:
    provider, session = Provider(case), opened(url)
    run = flow(provider.fault.request(), session.fit, key=HERE, learned=learned_limits(session))
    first = next(run).request
    effect = run.send(Refused(*case[1:]))
    fitted = effect.fitted
    handles = [handle for row in fitted.report.repairs for handle in row.handles if handle]
    handles += [edit.handle for edit in fitted.report.edits if edit.handle]
    told = "\n".join(fitted.recall(handle) for handle in handles)
    assert all(
        text in told or json.dumps(text)[1:-1] in told for text in lost(first, fitted.request)
    )
    assert all(session.recall(handle) == fitted.recall(handle) for handle in handles)
    assert fitted.report.repairs or fitted.report.edits, "the report says what was done"


def test_a_repair_that_did_not_help_is_withdrawn() -> None:
    session, fault = trimtab.Session(window=10_000_000), FAULTS["reasoning_content"]
    words = "property 'reasoning_content' is unsupported"
    run = flow(fault.request(), session.fit, key=HERE, learned=learned_limits(session),
               undo=partial(take_back, session))  # fmt: skip
    done, sent = played(run, lambda _: Refused(400, words))
    assert (done.accepted, len(sent)) == (False, 2)
    assert not fault.is_in(sent[1])
    longer = fault.longer()
    again = flow(copy.deepcopy(longer), session.fit, key=HERE, learned=learned_limits(session))
    assert next(again).request == longer


def test_all_output_fields_of_a_kind_go_at_once() -> None:
    provider = Provider(WORDS[4])
    sent = provider.ask(trimtab.Session(window=10**7), provider.fault.request())
    assert sent[1]["input"][1] == {
        "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk=",
    }  # fmt: skip


def test_names_are_respelled_in_tools_calls_and_choice_alike_and_ids_stay() -> None:
    case = next(one for one in WORDS if one[0] == "names in chat")
    provider = Provider(case)
    _, second = provider.ask(trimtab.Session(window=10**7), provider.fault.request())
    (name,) = {one["function"]["name"] for one in second["tools"]}
    calls = [call for one in second["messages"] for call in one.get("tool_calls", ())]
    assert {call["function"]["name"] for call in calls} == {name} != {"exec.command"}
    assert second["tool_choice"]["function"]["name"] == name
    assert [call["id"] for call in calls] == ["call_1"]
    assert second["messages"][2]["tool_call_id"] == "call_1"


def test_arguments_that_were_cut_are_objects_and_what_was_there_is_said() -> None:
    case = next(one for one in WORDS if one[0] == "arguments cut")
    provider = Provider(case)
    session = trimtab.Session(window=10**7)
    sent = provider.ask(session, provider.fault.request())
    arguments = sent[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(arguments), dict)
    assert "half of a t" in CUT


# --- a wording for each row ----------------------------------------------------------------------

OTHER_WORDS = {
    ("bedrock", "empty_result"): "The content of toolResult must not be empty",
    ("gemini", "calls_apart"): "Function call is missing a thought_signature in functionCall parts",
}
"""Words of rows whose ``error_text`` is no provider's."""
ROWS_TO_REACH = [
    (format, row)
    for format in FORMATS
    for row in FORMATS[format].rules.rows
    if row.sure == "refused" or (row.sure == "certain" and (row.dialects or row.except_for))
    if row.name != "string_too_long"  # a size: results are cut
]


@pytest.mark.parametrize(
    ("format", "row"), ROWS_TO_REACH, ids=lambda one: getattr(one, "name", one)
)
def test_each_row_that_is_not_certain_everywhere_is_reached_by_its_refusal(
    format: str, row: Any
) -> None:
    refusal = classify(400, OTHER_WORDS.get((format, row.name), row.error_text))
    assert row.name in (*ROWS.get(refusal.rule, ()), *_ELSE.get(refusal.rule, ())), refusal


# --- sizes ---------------------------------------------------------------------------------------


def long_talk(name: str, steps: int, lines: int = 60) -> dict[str, Any]:
    messages: list[Any] = [user(f"Go through {name}.")]
    for step in range(steps):
        call = {"name": "read", "arguments": json.dumps({"path": f"{name}_{step}.py"})}
        text = "\n".join(f"{name}_{step}.py:{n}: token {n * 7919} alpha" for n in range(lines))
        messages += [
            model(None, tool_calls=[{"id": f"call_{step}", "type": "function", "function": call}]),
            {"role": "tool", "tool_call_id": f"call_{step}", "content": text},
        ]
    return {"model": "m", "messages": [*messages, user("And now?")]}


Words = Callable[[int], Any]
SIZES: dict[str, tuple[int, Words, int]] = {
    "no number": (400, lambda tokens: "Prompt is too long", 8_000),
    "no body": (400, lambda tokens: "", 4_000),
    "by how much": (400, lambda tokens: f"Input exceeds the context by {tokens - 12_000} tokens",
                    8_000),
    "both": (400, lambda tokens: f"prompt is too long: {tokens} tokens > 12000 maximum", 4_800),
}  # fmt: skip


@pytest.mark.parametrize("words", SIZES)
def test_a_size_ends_below_its_limit_and_not_far_below_within_three_sends(words: str) -> None:
    status, said, least = SIZES[words]
    session, counter = trimtab.Session(window=10**7), trimtab.Session(window=10**7)
    sizes: list[int] = []

    def provider(request: Any) -> Refused | Accepted:
        sizes.append(tokens := counter.fit(request).tokens_before)
        return Refused(status, said(tokens)) if tokens > 12_000 else Accepted()

    run = flow(long_talk("mod", 34), session.fit, key=HERE, learned=learned_limits(session))
    assert played(run, provider)[0].accepted, sizes
    assert sizes[0] > 25_000
    assert len(sizes) <= MAX_SIZE_SENDS
    assert least <= sizes[-1] <= 12_000, sizes


def test_an_output_as_large_as_the_window_is_lowered_and_the_report_says_so() -> None:
    session = trimtab.Session(window=10**7)

    def provider(request: Any) -> Refused | Accepted:
        if request["max_tokens"] + 1_000 <= 32_768:
            return Accepted()
        return Refused(400, f"This model's maximum context length is 32768 tokens. However, you "
                            f"requested {request['max_tokens'] + 1_000} tokens (1000 in the "
                            f"messages, {request['max_tokens']} in the completion).")  # fmt: skip

    body = {**long_talk("mod", 1), "max_tokens": 32_768}
    for sends in (2, 1):
        run = flow(copy.deepcopy(body), session.fit, key=HERE, learned=learned_limits(session))
        done, sent = played(run, provider)
        assert (done.accepted, len(sent)) == (True, sends)
        assert sent[-1]["messages"] == body["messages"], "the prompt was not in the way"
        assert sent[-1]["max_tokens"] > 8_000
    assert MAX_FORM_SENDS == 2


# --- one false signal ----------------------------------------------------------------------------

FALSE: dict[str, tuple[int | None, Any]] = {
    "window": (400, "This model's maximum context length is 2000 tokens, you sent 9000."),
    "window without a number": (400, "Prompt is too long"),
    "bytes": (413, "Request body too large: maximum 9000 bytes"),
    "images": (400, "too many images: at most 0 are allowed"),
    "bare": (400, {"error": {"message": "Provider returned error", "code": 400,
                             "metadata": {"raw": "ERROR"}}}),
    "field": (400, "Extra inputs are not permitted: property 'note' is unsupported"),
    "name": (400, "Invalid 'messages[1].tool_calls[0].function.name': string does not match "
                  "pattern. Expected a string that matches the pattern '^[a-z]+$'."),
    "output": (400, "max_tokens is too large: 900. This model supports at most 100 tokens"),
    "short count": (None, None),
}  # fmt: skip


def ordinary(name: str, steps: int = 6) -> dict[str, Any]:
    """A request that every one of these refusals would find something in."""
    body = {**long_talk(name, steps), "max_tokens": 900}
    body["messages"][1]["tool_calls"][0]["function"]["name"] = "fs.read"
    body["messages"][1]["note"] = "n"
    url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"
    picture = {"type": "image_url", "image_url": {"url": url}}
    body["messages"][-1]["content"] = [{"type": "text", "text": "see"}, picture]
    return body


@pytest.mark.parametrize("kind", FALSE)
def test_one_false_signal_changes_nothing_for_other_conversations(kind: str, url: str) -> None:
    session, (status, said) = opened(url), FALSE[kind]
    first = ordinary("first", 1 if kind == "bare" else 8)
    run = flow(
        first,
        session.fit,
        key=HERE,
        learned=learned_limits(session),
        undo=partial(take_back, session),
    )
    next(run)
    with contextlib.suppress(StopIteration):
        if status is None:
            run.send(Accepted(600))
        run.send(Refused(status, said))
        run.send(Accepted())
    for number in range(20):
        body = ordinary(f"other{number}", 3 + number % 5)
        run = flow(copy.deepcopy(body), session.fit, key=HERE, learned=learned_limits(session))
        assert next(run).request == body
        with pytest.raises(StopIteration):
            run.send(Accepted(4_000 + 500 * number))


# --- by hand -------------------------------------------------------------------------------------


def openai_error(status: int, body: Any) -> Exception:
    import httpx
    import openai

    response = httpx.Response(status, json=body, request=httpx.Request("POST", "http://x"))
    return openai.BadRequestError("Error", response=response, body=body)


def anthropic_error(status: int, body: Any) -> Exception:
    import anthropic
    import httpx

    response = httpx.Response(status, json=body, request=httpx.Request("POST", "http://x"))
    return anthropic.BadRequestError("Error", response=response, body=body)


def parts(status: int, body: Any) -> tuple[int, Any]:
    return status, body


ERRORS = pytest.mark.parametrize("error", [parts, openai_error, anthropic_error])
REASONED = {"error": {"message": "property 'reasoning_content' is unsupported"}}
LONG = {"error": {"message": "This model's maximum context length is 12000 tokens, you have 27759 "
                  "tokens."}}  # fmt: skip


@ERRORS
def test_who_sends_by_hand_gets_the_next_attempt_for_a_field(error: Any, url: str) -> None:
    session, fault = opened(url), FAULTS["reasoning_content"]
    fitted = session.fit(fault.request())
    assert fault.is_in(fitted.request)
    again = session.refused(error(400, REASONED), fitted)
    assert again is not None
    assert not fault.is_in(again.request)
    handles = [handle for row in again.report.repairs for handle in row.handles]
    assert "The user greets." in "".join(session.recall(handle) for handle in handles)
    session.observe({"usage": {"prompt_tokens": 40, "completion_tokens": 2}}, again)
    assert not fault.is_in(session.fit(fault.longer()).request)
    session.close()
    assert not fault.is_in(opened(url).fit(fault.longer()).request), "after a restart"
    assert fault.is_in(opened(url).fit(fault.request("Another talk.")).request)


@ERRORS
def test_who_sends_by_hand_gets_a_smaller_attempt_for_a_size(error: Any, url: str) -> None:
    session = opened(url)
    fitted = session.fit(long_talk("mod", 34))
    again = session.refused(error(400, LONG), fitted)
    assert again is not None
    assert again.tokens_after < 12_000 < fitted.tokens_after
    session.observe({"usage": {"prompt_tokens": again.tokens_after}}, again)
    assert session.fit(long_talk("mod", 35)).tokens_after < 12_000
    session.close()
    assert opened(url).fit(long_talk("mod", 35)).tokens_after < 12_000


@ERRORS
def test_who_sends_by_hand_is_told_when_there_is_nothing_more_to_try(error: Any) -> None:
    session, fault = trimtab.Session(window=10**7), FAULTS["reasoning_content"]
    fitted = session.fit(fault.request())
    assert session.refused(error(400, {"error": {"message": "Something else."}}), fitted) is None
    again = session.refused(error(400, REASONED), session.fit(fault.request()))
    assert again is not None
    assert session.refused(error(400, REASONED), again) is None
    assert fault.is_in(session.fit(fault.longer()).request), "it did not help"


def test_no_more_than_three_sends_by_hand_for_a_size() -> None:
    session = trimtab.Session(window=10**7)
    fitted: Any = session.fit(long_talk("mod", 34))
    sends = 0
    while fitted is not None:
        sends, fitted = sends + 1, session.refused((400, "Prompt is too long"), fitted)
    assert sends == MAX_SIZE_SENDS


# --- results that are too long, and nobody says so -----------------------------------------------

BARE = FALSE["bare"][1]


def with_result(name: str, *chars: int) -> dict[str, Any]:
    """A conversation with results of so many characters."""
    body = long_talk(name, len(chars))
    results = [one for one in body["messages"] if one["role"] == "tool"]
    for number, (result, size) in enumerate(zip(results, chars, strict=True)):
        lines = "".join(f"{name}:{number}:{n}: token {n * 7919}\n" for n in range(size // 12))
        result["content"] = lines[:size]
    return body


def longest(request: dict[str, Any]) -> int:
    return max(len(one["content"]) for one in request["messages"] if one["role"] == "tool")


def up_to(most: int, status: int, body: Any) -> Callable[[Any], Refused | Accepted]:
    def provider(request: Any) -> Refused | Accepted:
        return Refused(status, body) if longest(request) > most else Accepted()

    return provider


@pytest.mark.parametrize(
    ("most", "status", "body", "size"),
    [(2_000, 413, "", 78_640), (200, 400, BARE, 6_000), (200, 400, "", 6_000),
     (30_000, 413, "", 78_640)],
    ids=["a result of 2,000 characters", "a bare error at 200", "no body at 200", "a large body"],
)  # fmt: skip
def test_the_last_send_goes_to_the_floor(most: int, status: int, body: Any, size: int) -> None:
    session = trimtab.Session(window=10**7)
    run = flow(with_result("mod", size), session.fit, key=HERE, learned=learned_limits(session))
    done, sent = played(run, up_to(most, status, body))
    assert done.accepted, [longest(request) for request in sent]
    assert len(sent) <= MAX_SIZE_SENDS


def test_one_bare_error_cuts_no_later_result() -> None:
    session = trimtab.Session(window=10**7)

    def ask(body: Any, answer: Any = lambda request: Accepted()) -> list[Any]:
        run = flow(body, session.fit, key=HERE, learned=learned_limits(session))
        return played(run, answer)[1]

    for number in range(6):
        ask(with_result(f"before{number}", 6_372))
    replies = iter([Refused(400, BARE), Accepted()])
    assert len(ask(with_result("once", 6_372), lambda request: next(replies))) == 2
    for number in range(12):
        body = with_result(f"after{number}", 6_372)
        assert ask(copy.deepcopy(body)) == [body]
    sizes = [6_372] * 10
    for count in range(2, 10):
        body = with_result("once", *sizes[:count])
        newest = [one for one in ask(body)[0]["messages"] if one["role"] == "tool"][-1]
        assert len(newest["content"]) > 6_000


def test_a_limit_of_results_is_found_and_what_was_accepted_is_never_cut() -> None:
    session, provider = trimtab.Session(window=10**7), up_to(2_000, 400, BARE)
    refusals = []
    for number in range(8):
        for size in (6_372, 1_500):
            body = with_result(f"talk{number}-{size}", size)
            run = flow(copy.deepcopy(body), session.fit, key=HERE, learned=learned_limits(session))
            done, sent = played(run, provider)
            assert done.accepted
            refusals.append(len(done.refusals))
            if size == 1_500:
                assert sent == [body], "below the limit"
    assert sum(refusals) <= 3, refusals


# --- what is never taken -------------------------------------------------------------------------

STRUCTURE = [
    ("openai-chat", "messages[0].content"),
    ("openai-chat", "messages[1].role"),
    ("openai-chat", "messages[1].tool_calls"),
    ("openai-chat", "messages[1].tool_calls[0].id"),
    ("openai-chat", "messages[1].tool_calls[0].function.arguments"),
    ("openai-chat", "messages[2].tool_call_id"),
    ("openai-chat", "tools[0].type"),
    ("openai-chat", "tools[0].function.name"),
    ("openai-chat", "tools[0].function.parameters"),
    ("openai-chat", "max_tokens"),
    ("anthropic", "messages.1.content.0.tool_use.id"),
    ("anthropic", "messages.1.content.0.tool_use.input"),
    ("anthropic", "messages.1.content.0.tool_use.input.path"),
    ("anthropic", "messages.2.content.0.tool_result.content"),
    ("anthropic", "tools.0.input_schema"),
    ("anthropic", "tools.0.input_schema.properties.path"),
    ("anthropic", "system"),
]


@pytest.mark.parametrize(("format", "path"), STRUCTURE)
def test_a_key_without_which_a_request_means_something_else_is_never_taken(
    format: str, path: str
) -> None:
    if format == "openai-chat":
        call = {"name": "read", "arguments": '{"path": "a"}'}
        body = long_talk("mod", 1)
        body["messages"][1]["tool_calls"][0]["function"] = call
        tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
        body |= {"tools": [tool], "max_tokens": 900}
    else:
        use = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "system": "Code.",
                "messages": [user(), model([use]), user([result])],
                "tools": [{"name": "read", "input_schema": schema}]}  # fmt: skip
    session = trimtab.Session(window=10**7)
    run = flow(copy.deepcopy(body), session.fit, key=HERE, learned=learned_limits(session))
    done, sent = played(run, lambda _: Refused(400, f"{path}: Extra inputs are not permitted"))
    assert (done.accepted, sent) == (False, [body])


COUNTED = [case for case in (*WORDS, *THREADS) if re.search(r"^\d+ images of", case[0])]


@pytest.mark.parametrize("case", COUNTED, ids=named)
def test_as_many_images_stay_as_the_refusal_allows(case: Any) -> None:
    provider = Provider(case)
    sent = provider.ask(trimtab.Session(window=10**7), provider.fault.request())
    limit = classify(*case[1:]).limit
    assert limit
    assert json.dumps(sent[-1]).count('"type": "image_url"') == limit
