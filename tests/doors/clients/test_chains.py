"""Histories at the provider's server: untouched while they fit, sent whole and fitted when not.

The openai and google-genai clients against the strict provider, which keeps the chains; the proxy
in between, too.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import proxies
import pytest
from flow_driver import played

import trimtab
from trimtab.request.fitted import facts_of
from trimtab.retry.flow import Refused, flow
from trimtab.retry.learned_limits import LearnedLimits
from trimtab.sessions.response_chains import state_named
from trimtab_lab.testing import Answer, Call, StrictProvider

openai = pytest.importorskip("openai", reason="pip install 'trimtab[sdks]'")
TURNS, WINDOW = 30, 4_000
TOOL = {
    "type": "function", "name": "read", "description": "Read a file", "strict": False,
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}  # fmt: skip

GEMINI_TOOL = {"type": "function", "name": "read", "parameters": {"type": "object"}}


def lines(turn: int) -> str:
    """Some 650 tokens, no two alike: 30 of them are five windows."""
    return "".join(f"src/mod_{turn}.py:{n}: token {turn * 1000 + n * 7919}\n" for n in range(32))


def script() -> list[Any]:
    calls = [Answer(f"step {n}", calls=[Call("read", {"path": f"mod_{n}.py"})])
             for n in range(TURNS)]  # fmt: skip
    return [*calls, Answer("done")]


def loop(client: Any, stream: bool = False, conversation: str = "", **more: Any) -> int:
    """A tool loop that chains each request to the answer before, or goes on in one conversation of
    the server's; how many turns it took."""
    given: Any = "Find the bug in the parser."
    before, turns, open_streams = None, 0, list[Any]()
    while True:
        named = {"previous_response_id": before} if before else {}
        named = {"conversation": conversation} if conversation else named
        asked = {"model": "gpt-5.1", "input": given, "tools": [TOOL], **named, **more}
        if stream:
            for event in (streamed := client.responses.create(stream=True, **asked)):
                if event.type == "response.completed":
                    answer = event.response
                    break  # as many clients do: what comes behind it is not read
            open_streams.append(streamed)
        else:
            answer = client.responses.create(**asked)
        calls = [item for item in answer.output if item.type == "function_call"]
        before, turns = answer.id, turns + 1
        if not calls:
            for streamed in open_streams:
                streamed.close()
            return turns
        given = [{"type": "function_call_output", "call_id": call.call_id, "output": lines(turns)}
                 for call in calls]  # fmt: skip


def google_loop(client: Any, stream: bool) -> int:
    """The same with Gemini Interactions."""
    given: Any = "Find the bug in the parser."
    before, turns = None, 0
    while True:
        named = {"previous_interaction_id": before} if before else {}
        asked = {"model": "gemini-3.8-flash", "input": given, "tools": [GEMINI_TOOL], **named}
        if stream:
            events = list(client.interactions.create(stream=True, **asked))
            before = events[-1].interaction.id
            steps = [event.step for event in events if event.event_type == "step.start"]
        else:
            answer = client.interactions.create(**asked)
            before, steps = answer.id, answer.steps
        calls, turns = [step for step in steps if step.type == "function_call"], turns + 1
        if not calls:
            return turns
        given = [{"type": "function_result", "call_id": call.id, "name": "read",
                  "result": lines(turns)} for call in calls]  # fmt: skip


def openai_client(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


def google_client(url: str, kind: Any = None) -> Any:
    genai = pytest.importorskip("google.genai", reason="pip install 'trimtab[sdks]'")
    options = genai.types.HttpOptions(base_url=url)
    return (trimtab.wrap(genai.Client) if kind == "wrap" else genai.Client)(
        api_key="k", http_options=options
    )


@pytest.mark.parametrize(
    ("state", "door", "stream"),
    [
        ("previous_response_id", "proxy", False),
        ("previous_response_id", "proxy", True),
        ("conversation", "wrap", True),
        ("conversation", "proxy", False),
        ("interactions", "wrap", False),
        ("interactions", "wrap", True),
        ("interactions", "proxy", True),
    ],
)
def test_every_chain_of_30_turns_survives_a_window_that_nobody_named(
    state: str, door: str, stream: bool
) -> None:
    with StrictProvider(script(), window=WINDOW) as provider, proxies.proxied(provider.url) as run:
        url = provider.url if door == "wrap" else run.url
        if state == "interactions":
            assert google_loop(google_client(url, door), stream) == TURNS + 1
        else:
            client = openai_client(url)
            held = client.conversations.create().id if state == "conversation" else ""
            client = trimtab.wrap(client) if door == "wrap" else client
            assert loop(client, stream, held) == TURNS + 1
        assert sum(bool(record.refusal) for record in provider.requests) <= 2
        taken = [record.body for record in provider.requests if not record.refusal]
        chained = [body for body in taken if state_named(body)]
        # what is sent whole is in no conversation of the server's: from then on all are
        assert len(chained) > (4 if state == "conversation" else 15)
        assert len(taken) - len(chained) >= 3


def test_a_later_request_in_a_conversation_that_was_sent_whole_once_is_sent_whole() -> None:
    session = trimtab.Session(window=WINDOW)

    def turn(number: int, text: str) -> Any:
        item = {"role": "user", "content": text}
        fitted = session.fit({"model": "gpt-5.1", "input": [item], "conversation": "conv_1"})
        said = [{"type": "output_text", "text": f"answer {number}", "annotations": []}]
        output = [{"type": "message", "role": "assistant", "content": said}]
        usage = {"input_tokens": fitted.tokens_after, "output_tokens": 5}
        session.observe({"id": f"resp_{number}", "output": output, "usage": usage})
        return fitted.request

    assert "conversation" in turn(0, lines(0) * 5)
    assert "conversation" not in turn(1, lines(1) * 5)
    assert "conversation" not in turn(2, "three")
    last = turn(3, "four")
    assert "conversation" not in last
    assert [item.get("role") for item in last["input"]] == ["user", "assistant"] * 3 + ["user"]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("known", [True, False], ids=["window given", "window learned"])
def test_a_chain_of_30_turns_at_five_windows_is_never_refused_to_the_client(
    known: bool, stream: bool
) -> None:
    with StrictProvider(script(), window=WINDOW) as provider:
        window = {"window": WINDOW} if known else {}
        client = trimtab.wrap(openai_client(provider.url), **window)
        assert loop(client, stream) == TURNS + 1
        refused = [record for record in provider.requests if record.status >= 400]
        assert len(refused) <= 2
        accepted = [r for r in provider.requests if r.status == 200]
        chained = [r for r in accepted if "previous_response_id" in r.body]
        whole = [r for r in accepted if "previous_response_id" not in r.body]
        assert len(chained) > len(whole) >= 3  # untouched while it fits
        assert all("store" not in record.body for record in provider.requests)
        said = json.dumps([record.body for record in whole])
        assert "Find the bug in the parser." in said


def test_the_wish_to_store_and_every_other_field_stay_as_they_came() -> None:
    with StrictProvider(script(), window=WINDOW) as provider:
        client = trimtab.wrap(openai_client(provider.url), window=WINDOW)
        loop(client, store=True, metadata={"team": "a"})
        for record in provider.requests:
            assert record.body["store"] is True
            assert record.body["metadata"] == {"team": "a"}


def test_a_chain_that_was_not_seen_is_refused_and_the_log_says_which_id_and_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = {"model": "gpt-5.1", "input": lines(1) * 6}
    tight = trimtab.fit(first, window=100_000).tokens_after + 12
    with StrictProvider(window=tight) as provider:
        begun = openai_client(provider.url).responses.create(**first)
        client = trimtab.wrap(openai_client(provider.url), window=WINDOW)
        with (
            caplog.at_level(logging.ERROR, logger="trimtab"),
            pytest.raises(openai.BadRequestError, match="context window"),
        ):
            client.responses.create(
                model="gpt-5.1",
                previous_response_id=begun.id,
                input="And now, what is the name of the module?",
            )
        assert begun.id in caplog.text
        assert "previous_response_id" in caplog.text
        assert "store=False" in caplog.text


SAID = [{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "done", "annotations": []}]}]  # fmt: skip


def response(number: int, billed: int, output: Any = SAID, status: str = "completed") -> Any:
    usage = {"input_tokens": billed, "output_tokens": 5, "total_tokens": billed + 5}
    return {"id": f"resp_{number}", "object": "response", "status": status, "output": output,
            "usage": usage}  # fmt: skip


STATES = {
    "previous_response_id": {"model": "gpt-5.1", "input": "word " * 2_000},
    "conversation": {"model": "gpt-5.1", "input": "word " * 2_000},
    "previous_interaction_id": {"model": "gemini-3.8-flash", "input": "word " * 2_000},
}


@pytest.mark.parametrize("state", STATES)
def test_the_bill_of_a_history_at_the_server_teaches_nothing_about_other_requests(
    state: str,
) -> None:
    format = "gemini-interactions" if "interaction" in state else "openai-responses"
    session = trimtab.Session(window=100_000, format=format)
    fitted = session.fit({**STATES[state], state: "earlier"})
    session.observe({"usage": {"input_tokens": 60_000, "output_tokens": 5}}, fitted)
    mine = {**STATES[state], "input": "please keep every word of this " * 3_000}
    after = session.fit(mine)
    assert (after.request, facts_of(after).scale) == (mine, 1.0)


@pytest.mark.parametrize(
    "words",
    [
        "Your input exceeds the context window of this model. Please adjust your input.",
        "This model's maximum context length is 272000 tokens. Please reduce the length.",
    ],
)
@pytest.mark.parametrize("state", STATES)
def test_the_refusal_of_a_history_that_was_not_seen_cuts_no_other_conversation(
    state: str, words: str
) -> None:
    session, learned = trimtab.Session(), LearnedLimits()
    body = {"error": {"message": words, "code": "context_length_exceeded"}}
    asked = {**STATES[state], state: "earlier"}
    played(flow(asked, session.fit, key="k", learned=learned), lambda _: Refused(400, body))
    mine = {**STATES[state], "input": "You must read all of this. " * 2_000}
    assert next(flow(mine, session.fit, key="k", learned=learned)).request is mine


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_an_answer_that_says_nothing_is_a_turn_of_its_chain(status: str) -> None:
    session, held, named, whole = trimtab.Session(window=WINDOW), 0, {}, 0
    for turn in range(12):
        request = {"model": "gpt-5.1", "input": f"turn {turn}: {lines(turn)}", **named}
        fitted = session.fit(request)
        if named and "previous_response_id" not in fitted.request:
            whole, held = whole + 1, 0
        held += fitted.tokens_after
        assert held <= WINDOW
        begun = response(turn, 0, [], "in_progress")
        session.observe({"type": "response.created", "response": begun}, fitted)
        output, ended = ([], status) if turn == 3 else (SAID, "completed")
        session.observe(response(turn, held, output, ended), fitted)
        named, held = {"previous_response_id": f"resp_{turn}"}, held + 5
    assert whole >= 2


def test_a_session_follows_a_chain_by_what_it_observes() -> None:
    session = trimtab.Session(window=WINDOW)
    before, whole = None, 0
    for turn in range(TURNS):
        item = {"role": "user", "content": lines(turn)}
        named = {"previous_response_id": before} if before else {}
        request = {"model": "gpt-5.1", "input": [item], "store": True, **named}
        fitted = session.fit(request)
        if not named or "previous_response_id" not in fitted.request:
            whole += 1
            billed = fitted.tokens_after
        else:
            assert fitted.request is request
            billed += fitted.tokens_after
        assert billed <= WINDOW
        before = f"resp_{turn}"
        output = [{"type": "message", "role": "assistant", "id": f"msg_{turn}",
                   "content": [{"type": "output_text", "text": f"read {turn}"}]}]  # fmt: skip
        usage = {"input_tokens": billed, "output_tokens": 5}
        session.observe({"id": before, "object": "response", "output": output, "usage": usage})
        billed += 5
    assert 3 <= whole < TURNS
