"""A refusal that names nothing, on a request with long tool results: at every door, by default.

Knows the first design's scenario: a gateway answers 400 with ``raw: "ERROR"`` as long as a tool
result is longer than it likes.  Gives no option to any client.
"""

from __future__ import annotations

import asyncio
import json
import logging
from argparse import ArgumentParser

import langchain_agents as lc
import openai
import proxies
import pytest
import sdk_clients
from flow_driver import drive
from sdk_clients import CLIENTS, PROMPT, Chat
from shapes import session

import trimtab
from trimtab.cli import proxy as command
from trimtab.clients.langchain import TrimtabMiddleware
from trimtab.proxy import load
from trimtab.retry.learned_limits import LearnedLimits
from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider

EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
BARE = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "ERROR"}}}
LIKED = 1_500
"""Characters of a tool result up to which this gateway says nothing."""
LINES = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(200))
KEYS = ("content", "output", "text", "result")


def texts(value, inside=False):
    """Every text of a tool result in a request of any format."""
    if isinstance(value, str):
        yield from [value] if inside else []
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, inside)
    elif isinstance(value, dict):
        here = value.get("role") == "tool" or str(value.get("type")).endswith(
            ("_output", "_result")
        )
        for key, item in value.items():
            found = inside or key in ("toolResult", "functionResponse") or (here and key in KEYS)
            yield from texts(item, found)


def longest(record):
    """Of the tool results in a request."""
    return max(map(len, texts(record.body)), default=0)


class Gateway:
    """Answers in order; refuses what has a long tool result, however that shows."""

    def __init__(self, *answers, shape=None):
        self.left, self.shape = list(answers), shape

    def __call__(self, record):
        if longest(record) > LIKED:
            return Refuse("opaque", status=400, body=BARE, shape=self.shape)
        return self.left.pop(0) if self.left else "OK"


def reads(number):
    return Answer("", [Call("read", {"path": f"{number}.txt"})])


@pytest.mark.row("A1", "A9", "A12")
@EVERY
@STREAMS
def test_a_bare_error_is_answered_by_shorter_tool_results_in_wrap_without_any_option(sdk, stream):
    with StrictProvider(Gateway(reads(1), "done")) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client)
        client.ask(PROMPT)
        said = client.send(stream)
        client.give({call_id: LINES for call_id, _, _ in said.calls})
        assert client.send(stream).text == "done"
        assert [record.refusal for record in provider.requests] == ["", "opaque", ""]
        assert longest(provider.requests[2]) <= 512


@pytest.mark.row("A13")
@EVERY
def test_from_the_second_on_a_long_result_of_that_model_and_route_costs_no_refusal(sdk):
    with StrictProvider(Gateway(reads(1), reads(2), reads(3), "done")) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client)
        client.ask(PROMPT)
        said = client.send(False)
        for text in (LINES, LINES[: len(LINES) // 2], LINES):
            client.give({call_id: text for call_id, _, _ in said.calls})
            said = client.send(False)
        assert said.text == "done"
        refused = [record.refusal for record in provider.requests]
        assert refused == ["", "opaque", "", "opaque", "", ""], "once is a coincidence"


@pytest.mark.row("A13")
def test_what_is_remembered_leaves_short_results_whole_and_is_forgotten_after_an_hour():
    now = [0.0]
    learned, session_ = LearnedLimits(clock=lambda: now[0]), trimtab.Session(window=10**6)
    provider = StrictProvider(Gateway())
    long, short = (
        session("openai-chat", steps=2, lines=100),
        session("openai-chat", steps=2, lines=20),
    )

    def sends(body):
        given = {"learned": learned, "key": "k"}
        return drive(provider, "openai-chat", body, session_.fit, **given).done.attempts

    assert max(len(m["content"]) for m in short["messages"] if m["role"] == "tool") > 512
    assert (sends(long), sends(long), sends(short)) == (2, 1, 1)
    assert provider.requests[-1].body == short
    now[0] += 3_601
    assert sends(session("openai-chat", steps=2, lines=130)) == 2


@pytest.mark.row("A12", "X9")
@STREAMS
@pytest.mark.parametrize("shape", ["status", "200", "in-stream"])
def test_a_bare_error_is_seen_inside_a_200_and_before_the_first_content(stream, shape):
    if shape == "in-stream" and not stream:
        return
    gateway = Gateway(shape="in-stream" if shape == "in-stream" else None)

    def answer(record):
        step = gateway(record)
        if isinstance(step, Refuse) and shape == "200":
            return Refuse("opaque", status=200, body=BARE)
        return step

    with StrictProvider(answer, style="openrouter") as provider:
        client = Chat(provider.url)
        sdk_clients.wrap(client)
        client.messages = session("openai-chat", steps=2, lines=100)["messages"]
        assert client.send(stream).text == "OK"
        assert len(provider.requests) == 2


@pytest.mark.row("A1", "A9", "A14")
@STREAMS
def test_a_bare_error_is_answered_in_the_proxy_without_any_option(stream):
    with StrictProvider(Gateway()) as provider, proxies.proxied(provider.url) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        said = session("openai-chat", steps=2, lines=100)["messages"]
        got = client.chat.completions.with_raw_response.create(
            model="gpt-5.1", messages=said, stream=stream
        )
        assert got.status_code == 200
        assert "2 edits" in got.headers["x-trimtab"]
        assert [record.refusal for record in provider.requests] == ["opaque", ""]


def test_the_proxy_takes_the_option_from_its_file_and_from_the_command_line(tmp_path):
    file = tmp_path / "proxy.toml"
    file.write_text("retry_result_chars = 0\n")
    assert load(file).retry_result_chars == 0
    with StrictProvider(Gateway()) as provider:
        with proxies.proxied(provider.url, retry_result_chars=0) as server:
            body = json.dumps(session("openai-chat", steps=2, lines=100)).encode()
            status, _, got = proxies.ask(server.url, "POST", "/v1/chat/completions", body)
        assert (status, len(provider.requests)) == (400, 1)
        assert json.loads(got)["error"]["metadata"]["raw"] == "ERROR"
    file.write_text("retry_result_chars = -1\n")
    with pytest.raises(trimtab.InvalidSetting, match="retry_result_chars"):
        load(file).checked()
    parser = ArgumentParser()
    command.add_proxy(parser)
    args = parser.parse_args(["--retry-result-chars", "2k", "--store", "memory:"])
    assert command._settings(args).retry_result_chars == 2_000


@pytest.mark.row("A1", "A9")
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_bare_error_is_answered_in_langchain_without_any_option(how):
    with StrictProvider(Gateway(lc.turn(0), lc.turn(1), "It was module_3.")) as provider:
        middleware = TrimtabMiddleware(window=100_000)
        agent = lc.agent(lc.openai_chat(provider.url), [middleware])
        asked = {"messages": [{"role": "user", "content": lc.TASK}]}
        done = agent.invoke(asked) if how == "sync" else asyncio.run(agent.ainvoke(asked))
        assert done["messages"][-1].text == "It was module_3."
        refused = [record.refusal for record in provider.requests]
        assert refused == ["", "opaque", "", "opaque", ""]
        assert middleware.stats.recovered == 2


@pytest.mark.row("A9")
def test_a_third_error_surfaces_and_what_was_cut_is_whole_again_afterwards():
    script = [Refuse("opaque", times=3, status=400, body=BARE), "fine"]
    with StrictProvider(script) as provider, proxies.proxied(provider.url) as server:
        body = json.dumps(session("openai-chat", steps=2, lines=100)).encode()
        status, _, _ = proxies.ask(server.url, "POST", "/v1/chat/completions", body)
        assert (status, len(provider.requests)) == (400, 3)
        status, _, _ = proxies.ask(server.url, "POST", "/v1/chat/completions", body)
        assert (status, len(provider.requests)) == (200, 4)
        assert provider.requests[3].body == provider.requests[0].body


@pytest.mark.row("A9")
def test_a_pinned_result_is_not_cut_and_the_error_stands():
    one = trimtab.Session(
        window=10**6, settings=trimtab.Settings(pins=[lambda block: "mod_0.py:99" in block.text])
    )
    provider = StrictProvider([Refuse("opaque", times=9, status=400, body=BARE)])
    got = drive(provider, "openai-chat", session("openai-chat", steps=3, lines=100), one.fit)
    assert (got.done.accepted, got.done.attempts, got.status) == (False, 1, 400)
    assert got.done.cannot_fit.limit == "result_chars"


def test_what_was_cut_is_recallable_and_told(caplog):
    caplog.set_level(logging.DEBUG, "trimtab")
    one = trimtab.Session(window=10**6)
    body = session("openai-chat", steps=2, lines=100)
    got = drive(StrictProvider(Gateway()), "openai-chat", body, one.fit)
    before = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    edits = got.done.fitted.report.edits
    assert sorted(one.recall(edit.handle) for edit in edits) == sorted(before)
    assert [r.levelname for r in caplog.records if "compressing tool responses" in r.message] == [
        "WARNING"
    ]
