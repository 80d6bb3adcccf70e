"""The recall tool run within the proxy: the model calls it, real clients never see it.

Knows what the provider receives and what a client is told.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from proxies import ask, proxied, settled
from raw_provider import STREAM_HEAD, piece, raw_provider, whole
from recalled_files import EVERY, file
from sdk_clients import PROMPT

from trimtab_lab.testing import Answer, Call, StrictProvider

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
WINDOW = 12_000
MARK = re.compile(r'recall\(\\*"(\w+)\\*"\)')


def told(record):
    return json.dumps(record.body)


class Agent:
    """What the model does: reads files until something was cut, recalls it, goes on.

    ``mixed``: it recalls beside another call.
    """

    def __init__(self, mixed=False):
        self.mixed, self.recalled, self.step, self.handle = mixed, False, 0, ""

    def __call__(self, record):
        text = told(record)
        marks = MARK.findall(text.partition("Notes name it as")[0] + text.rpartition("]")[0])
        marks = [mark for mark in marks if mark not in ("handle",)]
        if marks and not self.recalled:
            self.recalled, self.handle = True, marks[0]
            call = Call("recall", {"handle": self.handle, "end": 400})
            thought = "I need the original."
            if self.mixed:
                calls = [call, Call("read", {"path": "more.txt"})]
                return Answer("Both at once.", calls, thinking=thought)
            return Answer("Let me look again.", [call], thinking=thought)
        self.step += 1
        if self.step > 9:
            return Answer("All read.", thinking="Done.")
        said = Answer(f"Reading {self.step}.", [Call("read", {"path": f"{self.step}.txt"})],
                      thinking=f"File {self.step}.")  # fmt: skip
        return said


@EVERY
@STREAMS
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "mixed"])
def test_a_recall_is_answered_within_the_proxy_and_never_seen(sdk, stream, mixed):
    agent = Agent(mixed)
    with (
        StrictProvider(agent, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        said, seen, number, texts = client.send(stream), [], 0, []
        while said.calls:
            texts.append(said.text)
            seen += [name for _, name, _ in said.calls]
            number += 1
            text = f"short {number}" if agent.recalled else file(number)
            client.give({call_id: text for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        assert said.text.endswith("All read.")
        assert agent.recalled
        assert set(seen) == {"read"}
        assert "recall" not in _client_history(client)
        joined = [text for text in texts if "Let me look again." in text]
        assert mixed or len(joined) == 1
        # Two rounds said two texts: they do not run into each other, while the model sees its
        # own words as it said them.
        assert all(re.fullmatch(r"Let me look again\.\n\nReading \d\.", t) for t in joined)
        assert "\\n\\nReading" not in told(provider.requests[-1])
        statuses = [record.status for record in provider.requests]
        assert set(statuses) == {200}, [r.refusal for r in provider.requests]
        first = next(i for i, r in enumerate(provider.requests) if _calls_recall(r))
        behind = provider.requests[first:]
        # What was recalled stays in every later request, at its place: the prefix is the same.
        assert all(_calls_recall(record) for record in behind)
        assert behind[1].cached_tokens > 0.8 * behind[0].tokens
        assert all(record.violations == () for record in provider.requests)
        assert settled(server).proxy.addons.records.activity.totals["turns"] == len(
            provider.requests
        )


def _calls_recall(record):
    text = told(record)
    return '"end": 400' in text or '\\"end\\":400' in text or '"end":400' in text


def _client_history(client):
    own = getattr(client, "messages", None) or getattr(client, "input", None)
    return repr(own if own is not None else client.contents)


@EVERY
def test_the_tool_is_the_same_bytes_in_every_request_from_the_first_on(sdk):
    with (
        StrictProvider(["one", "two"]) as provider,
        proxied(provider.url, window=50_000, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        client.send(False)
        client.ask("And now?")
        client.send(True)
        tools = [r.body.get("tools") or r.body["toolConfig"]["tools"] for r in provider.requests]
        assert tools[0] == tools[1]
        assert json.dumps(tools[0]).count('"recall"') == 1


JSON = {"content-type": "application/json"}
TOOL = {"name": "bash", "input_schema": {"type": "object"}}


@pytest.mark.row("X12")
@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "no tools at all"}]},
        {"messages": [{"role": "user", "content": "x"}], "tools": [{**TOOL, "name": "recall"}]},
        {"messages": [{"role": "user", "content": "Go."},
                      {"role": "assistant", "content": "Went."},
                      {"role": "user", "content": "Your task is to create a detailed summary of "
                                                  "the conversation so far."}], "tools": [TOOL]},
        {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL],
         "system": "You are a title generator. Nothing else."},
    ],
    ids=["no tools", "a tool of that name", "compaction", "title"],
)  # fmt: skip
def test_requests_of_the_client_s_own_get_no_tool_and_stay_as_they_are(body, monkeypatch):
    with (
        StrictProvider() as provider,
        proxied(provider.url, window=50_000, recall=True) as server,
    ):
        seen, respond = [], provider.respond
        monkeypatch.setattr(provider, "respond", lambda *a: seen.append(a[-1]) or respond(*a))
        data = json.dumps({"model": "claude-opus-4-1", "max_tokens": 50, **body}).encode()
        assert ask(server.url, "POST", "/v1/messages", data, JSON)[0] == 200
        assert seen == [data]


def test_exchanges_that_the_client_never_saw_outlast_the_proxy(tmp_path):
    from sdk_clients import Claude

    agent, store = Agent(), f"sqlite:///{tmp_path / 'store.db'}"
    with StrictProvider(agent, window=WINDOW) as provider:
        with proxied(provider.url, window=WINDOW, recall=True, store=store) as server:
            client = Claude(server.url)
            client.ask(PROMPT)
            said, number = client.send(True), 0
            while said.calls and not agent.recalled:
                number += 1
                client.give({call_id: file(number) for call_id, _, _ in said.calls})
                said = client.send(True)
        with proxied(provider.url, window=WINDOW, recall=True, store=store) as server:
            client.client = Claude(server.url).client
            client.give({call_id: "short" for call_id, _, _ in said.calls})
            client.send(True)
        assert _calls_recall(provider.requests[-1])
        assert provider.requests[-1].refusal == ""


def test_a_tool_s_own_word_of_a_stream_does_not_let_a_call_through():
    """Nothing in the request asks for a stream, but the arguments of a call look as if."""
    call = {"type": "tool_use", "id": "t0", "name": "get", "input": {"stream": True}}
    body = {
        "model": "claude-opus-5-5", "max_tokens": 50,
        "tools": [{"name": "get", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t0", "content": "ok"}]},
        ],
    }  # fmt: skip
    script = [Answer("", [Call("recall", {"handle": "r1"})]), "Done."]
    with StrictProvider(script) as provider, proxied(provider.url, recall=True) as server:
        status, headers, said = ask(server.url, "POST", "/v1/messages", json.dumps(body), JSON)
        assert (status, len(provider.requests)) == (200, 2)
        assert headers["x-trimtab-rounds"] == "2"
        assert [block.get("text") for block in json.loads(said)["content"]] == ["Done."]
        assert settled(server).proxy.addons.records.activity.totals["prompt"] > 0


TOOLS = [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}]
ODD = [
    b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":null,"function":null}]}}]}\n\n',
    b'data: {"choices":[5]}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[7]}}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]


def test_an_event_that_nobody_can_read_does_not_end_the_stream():
    def answer(talk, _):
        talk.say(STREAM_HEAD + b"".join(map(piece, (*ODD, b""))))

    asked = {"model": "m", "stream": True, "tools": TOOLS,
             "messages": [{"role": "user", "content": "Hi."}]}  # fmt: skip
    with raw_provider(answer) as provider, proxied(provider.url, recall=True) as server:
        _, _, said = ask(server.url, "POST", "/v1/chat/completions", json.dumps(asked), JSON)
        assert b'"recall"' in provider.requests[0].body
    assert all(event in said for event in ODD[1:4])
    assert said.endswith(ODD[-1])
    assert b'"content":"b"' in said


def test_an_answer_without_a_recall_arrives_byte_for_byte():
    odd = (
        b'{ "choices":[{"message":{"role":"assistant","content":"\\u00e9"},"p":-1e999,"p":0.10}] }'
    )
    asked = {"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": "Hi."}]}
    with (
        raw_provider(lambda talk, _: talk.say(whole(odd))) as provider,
        proxied(provider.url, recall=True) as server,
    ):
        status, headers, said = ask(
            server.url, "POST", "/v1/chat/completions", json.dumps(asked), JSON
        )
        assert b'"recall"' in provider.requests[0].body
    assert (status, said) == (200, odd)
    assert headers["content-length"] == str(len(odd))


NO_MORE = "no more recalls in this answer"


class Insatiable:
    """Reads files until something was cut, then recalls one part after the other, without a word.

    ``hears``: it answers once it is told that no recall is left.
    """

    def __init__(self, hears):
        self.hears, self.step, self.told = hears, 0, []

    def __call__(self, record):
        self.step += 1
        marks = [mark for mark in MARK.findall(told(record)) if mark != "handle"]
        if not marks:
            return Answer("", [Call("read", {"path": f"{self.step}.txt"})])
        self.told.append(NO_MORE in told(record))
        if self.hears and self.told[-1]:
            return Answer("What I have will do.")
        return Answer("", [Call("recall", {"handle": marks[0], "start": self.step})])


def _read_to_the_end(sdk, model, stream=False):
    """What the client is told last, and the proxy."""
    with (
        StrictProvider(model, window=WINDOW) as provider,
        proxied(provider.url, window=WINDOW, recall=True) as server,
    ):
        client = sdk(server.url)
        client.ask(PROMPT)
        said, number = client.send(stream), 0
        while said.calls:
            number += 1
            client.give({call_id: file(number) for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        settled(server)
        return said


@EVERY
@STREAMS
def test_a_model_is_told_in_time_that_no_recall_is_left(sdk, stream):
    """Before, one that read part by part ended with an empty answer, and its agent with it."""
    model = Insatiable(hears=True)
    assert _read_to_the_end(sdk, model, stream).text == "What I have will do."
    assert model.told == [False] * 5 + [True]


@EVERY
def test_a_model_that_recalls_all_the_same_is_told_in_the_log(sdk, caplog):
    assert _read_to_the_end(sdk, Insatiable(hears=False)).text == ""
    (row,) = [one for one in caplog.records if "nothing but recalls" in one.getMessage()]
    assert row.levelname == "WARNING"


@STREAMS
def test_a_structured_answer_is_the_last_round_s_alone(stream):
    """Before, the text of an earlier round stood before the JSON."""
    script = [Answer("Let me look.", [Call("recall", {})]), '{"a": 1}']
    function = {"name": "read", "parameters": {"type": "object", "properties": {}}}
    body = {
        "model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi."}], "stream": stream,
        "response_format": {"type": "json_object"},
        "tools": [{"type": "function", "function": function}],
    }  # fmt: skip
    with StrictProvider(script) as provider, proxied(provider.url, recall=True) as server:
        data = ask(server.url, "POST", "/v1/chat/completions", json.dumps(body), {})[2]
        assert len(provider.requests) == 2
    if not stream:
        said = json.loads(data)["choices"][0]["message"]["content"]
    else:
        events = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")]
        choices = [json.loads(event)["choices"] for event in events]
        said = "".join(row[0]["delta"].get("content") or "" for row in choices if row)
    assert json.loads(said) == {"a": 1}


def test_what_is_listed_and_found_is_of_the_caller_s_own_conversation():
    """Two conversations of one tenant at the same time, that even begin alike."""
    heard = {}

    def answers(record):
        last = record.body["messages"][-1]
        mine = record.body["messages"][1]["content"][0]["input"]["path"][:1]
        if last["role"] == "user" and last["content"] == "What was left out?":
            return Answer("", [Call("recall", {}), Call("recall", {"search": "holds value_80"})])
        heard[mine] = [str(part["content"]) for part in last["content"]]
        return Answer("That was all.")

    def talk(name):
        messages = [{"role": "user", "content": "Read all."}]
        for n in range(8):
            call = {"type": "tool_use", "id": f"t{n}", "name": "read",
                    "input": {"path": f"{name}{n}.txt"}}  # fmt: skip
            text = file(n).replace("line", f"{name}-line")
            result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
            messages += [{"role": "assistant", "content": [call]},
                         {"role": "user", "content": [result]}]  # fmt: skip
        asked = {"role": "user", "content": "What was left out?"}
        said = {"role": "assistant", "content": "All is read."}
        tool = {"name": "read", "input_schema": {"type": "object"}}
        return {"model": "claude-sonnet-4-5", "max_tokens": 99, "tools": [tool],
                "messages": [*messages, said, asked]}  # fmt: skip

    with (
        StrictProvider(answers) as provider,
        proxied(provider.url, window=WINDOW, recall=True) as server,
        ThreadPoolExecutor() as pool,
    ):
        sent = [(server.url, "POST", "/v1/messages", json.dumps(talk(name)), {"x-api-key": "k"})
                for name in "abababab"]  # fmt: skip
        assert {status for status, _, _ in pool.map(lambda one: ask(*one), sent)} == {200}
    for mine, other in ("ab", "ba"):
        listed, found = heard[mine]
        assert f"read {mine}3.txt" in listed
        assert f"read {other}" not in listed
        assert f"{mine}-line" in found
        assert f"{other}-line" not in found
