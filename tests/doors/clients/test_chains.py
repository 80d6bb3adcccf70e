"""Histories at the provider's server: untouched while they fit, sent whole and fitted when not.

The openai and google-genai clients against the strict provider, which keeps the chains; the proxy
in between, too.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

import trimtab
from trimtab.testing import Answer, Call, StrictProvider

openai = pytest.importorskip("openai", reason="pip install 'trimtab[sdks]'")
TURNS, WINDOW = 30, 4_000
TOOL = {
    "type": "function", "name": "read", "description": "Read a file", "strict": False,
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}  # fmt: skip


def lines(turn: int) -> str:
    """Some 650 tokens, no two alike: 30 of them are five windows."""
    return "".join(f"src/mod_{turn}.py:{n}: token {turn * 1000 + n * 7919}\n" for n in range(32))


def script() -> list[Any]:
    calls = [Answer(f"step {n}", calls=[Call("read", {"path": f"mod_{n}.py"})])
             for n in range(TURNS)]  # fmt: skip
    return [*calls, Answer("done")]


def loop(client: Any, stream: bool = False, **more: Any) -> int:
    """A tool loop that chains each request to the answer before; how many turns it took."""
    given: Any = "Find the bug in the parser."
    before, turns = None, 0
    while True:
        named = {"previous_response_id": before} if before else {}
        asked = {"model": "gpt-5.1", "input": given, "tools": [TOOL], **named, **more}
        if stream:
            events = list(client.responses.create(stream=True, **asked))
            answer = next(e.response for e in events if e.type == "response.completed")
        else:
            answer = client.responses.create(**asked)
        calls = [item for item in answer.output if item.type == "function_call"]
        before, turns = answer.id, turns + 1
        if not calls:
            return turns
        given = [{"type": "function_call_output", "call_id": call.call_id, "output": lines(turns)}
                 for call in calls]  # fmt: skip


def openai_client(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


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
