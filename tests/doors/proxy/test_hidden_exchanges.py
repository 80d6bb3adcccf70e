"""What recall brought back for one user is never put into the request of another."""

from __future__ import annotations

import json

import pytest
from proxies import ask, proxied

from trimtab.formats import FORMATS
from trimtab.rounds.hidden_exchanges import ExchangeMemory, HiddenExchange, turn_key
from trimtab.rounds.request_layouts import history
from trimtab_lab.testing import Answer, Call, StrictProvider

SECRET = "the original of somebody else"
USER = {"role": "user", "content": "go"}
SAID = {"role": "assistant", "content": "gone"}
BODIES = {
    "openai-chat": {"messages": [USER, SAID, USER]},
    "openai-responses": {"input": [USER, SAID, USER]},
    "anthropic": {"messages": [USER, SAID, USER]},
    "bedrock": {"messages": [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"text": "gone"}]},
        {"role": "user", "content": [{"text": "go"}]}]},
    "gemini": {"contents": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "gone"}]},
        {"role": "user", "parts": [{"text": "go"}]}]},
    "gemini-interactions": {"input": [
        {"type": "user_input", "content": [{"type": "text", "text": "go"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "gone"}]},
        {"type": "user_input", "content": [{"type": "text", "text": "go"}]}]},
}  # fmt: skip
OTHERS = [("provider", "b"), ("elsewhere", "a"), ("elsewhere", "b")]


def test_every_format_is_among_them():
    assert set(BODIES) == set(FORMATS)


@pytest.mark.parametrize("format", BODIES)
def test_an_exchange_belongs_to_one_tenant_at_one_upstream(format):
    memory, body = ExchangeMemory(), BODIES[format]
    messages = history(format, body)
    key = turn_key(format, messages, 1, 2)
    real = [{"role": "tool", "content": SECRET}, messages[1]]
    memory.of("provider", "a").put("c", key, HiddenExchange(real, []), None)
    memory.of("provider", "a").follow("c", "resp_1", "resp_2", [], None)
    assert SECRET in json.dumps(memory.of("provider", "a").restored(format, "c", body, None))
    chained = {**body, "previous_response_id": "resp_1"}
    own = memory.of("provider", "a").followed(chained, None)
    assert own["previous_response_id"] == "resp_2"
    for upstream, tenant in OTHERS:
        other = memory.of(upstream, tenant)
        assert other.restored(format, "c", body, None) is body
        assert other.followed(chained, None) is chained


def test_another_key_gets_no_original_by_the_id_of_a_response():
    """A's response went on unseen; B gives its id."""
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
    text = "\n".join(f"line {n}: {n * 7919}" for n in range(600))

    def script(record):
        told = json.dumps(record.body)
        recalled = '"name": "recall"' in told.partition('"tools"')[0]
        if "Original " in told and not recalled:
            handle = told.partition("Original ")[2].split()[0].strip('".,]\\')
            return Answer("", [Call("recall", {"id": handle}), Call("read", {})])
        return "fine"

    def sent(key, **more):
        body = {"model": "gpt-5.1", "tools": tools, "store": True, **more}
        headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        status, _, data = ask(server.url, "POST", "/v1/responses", json.dumps(body), headers)
        return status, json.loads(data)

    with (
        StrictProvider(script) as provider,
        proxied(provider.url, window=50_000, recall=True, tenants="key") as server,
    ):
        memory = server.proxy.addons.recall.hidden
        status, first = sent("a", input=[{"role": "user", "content": f"go {text}"}])
        assert status == 200
        upstream = server.proxy.settings.upstreams[0]
        of_a = server.proxy.tenants.tenant({"authorization": "Bearer a"}, "", upstream)
        result = {"type": "function_call_output", "call_id": "r", "output": SECRET}
        memory.of("provider", of_a).follow("c", first["id"], first["id"], [result], None)
        for key, there in (("b", False), ("a", True)):
            more = [{"role": "user", "content": "and?"}]
            sent(key, input=more, previous_response_id=first["id"])
            assert (SECRET in json.dumps(provider.requests[-1].body)) is there
