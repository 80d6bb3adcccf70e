"""Claude's own bodies on Bedrock (InvokeModel) and Vertex AI (rawPredict).

Knows that ``wrap`` and the proxy guard both, and that the strict provider speaks both.
"""

from __future__ import annotations

import json

import anthropic
import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from proxies import proxied, settled

import trimtab
from trimtab.proxy.http.routes import route
from trimtab_lab.testing import StrictProvider

CLAUDE = "us.anthropic.claude-opus-4-6-v1:0"
FILE = "\n".join(f"row {n} of the ledger: {n * 7919 % 10007}" for n in range(150))
MESSAGES = [
    {"role": "user", "content": "Read."},
    {"role": "assistant", "content": [
        {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}} for n in range(6)]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": FILE} for n in range(6)]},
]  # fmt: skip
BODY = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": MESSAGES,
        "tools": [{"name": "read", "input_schema": {"type": "object"}}]}  # fmt: skip
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


def bedrock(url):
    return boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x",
        aws_secret_access_key="x", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def vertex(url):
    return anthropic.AnthropicVertex(
        project_id="p", region="us-east5", base_url=f"{url}/v1", access_token="x", max_retries=0
    )


def invoked(client, body, stream):
    given = {"modelId": CLAUDE, "body": json.dumps(body)}
    if not stream:
        return json.loads(client.invoke_model(**given)["body"].read())["content"][0]["text"]
    got = client.invoke_model_with_response_stream(**given)["body"]
    events = [json.loads(event["chunk"]["bytes"]) for event in got]
    return "".join(event["delta"].get("text", "") for event in events if "delta" in event)


def asked(client, stream):
    given = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": MESSAGES,
             "tools": BODY["tools"]}  # fmt: skip
    if not stream:
        return client.messages.create(**given).content[0].text
    with client.messages.stream(**given) as events:
        return events.get_final_text()


@STREAMS
@pytest.mark.parametrize("shape", ["status", "in-stream"])
def test_the_proxy_survives_a_refusal_of_invoke_model(stream, shape):
    with StrictProvider(window=9_000, overflow_as=shape) as provider:
        with proxied(provider.url) as server:
            assert invoked(bedrock(server.url), BODY, stream) == "OK"
            (session,) = settled(server).proxy.addons.records.activity.sessions.values()
        assert [record.refusal for record in provider.requests] == ["overflow", ""]
        assert session.model == CLAUDE
        assert session.turns[0].prompt == provider.requests[-1].tokens  # read from the frames, too
        assert session.turns[0].sent < session.turns[0].arrived


@STREAMS
def test_a_body_of_invoke_model_that_fits_leaves_as_it_came(stream):
    with StrictProvider() as provider, proxied(provider.url, recall=True) as server:
        assert invoked(bedrock(server.url), BODY, stream) == "OK"
        (record,) = provider.requests
        given = {key: value for key, value in record.body.items() if key in BODY}
        assert given == {key: value for key, value in BODY.items() if key != "anthropic_version"}
        assert record.path.startswith("/model/us.anthropic.claude-opus-4-6-v1")


@STREAMS
def test_the_proxy_and_wrap_survive_a_refusal_of_vertex(stream):
    with StrictProvider(window=9_000) as provider:
        assert asked(trimtab.wrap(vertex(provider.url)), stream) == "OK"
        with proxied(provider.url) as server:
            assert asked(vertex(server.url), stream) == "OK"
        assert [record.status for record in provider.requests] == [400, 200, 400, 200]
        assert all(":" in record.path and "Predict" in record.path for record in provider.requests)


@pytest.mark.parametrize("through", ["wrap", "proxy"])
def test_vertex_only_counts_what_is_to_be_counted_and_nothing_is_cut(through):
    with StrictProvider() as provider, proxied(provider.url, window=4_000) as server:
        client = vertex(server.url if through == "proxy" else provider.url)
        if through == "wrap":
            client = trimtab.wrap(client, window=4_000)
        counted = client.messages.count_tokens(model="claude-opus-4-6", messages=MESSAGES)
        (record,) = provider.requests
        assert record.operation == "count"
        assert record.body["messages"] == MESSAGES
        assert counted.input_tokens == record.tokens > 4_000


def test_the_paths_of_hosted_claude_and_those_that_are_others():
    bedrock_path = f"/model/{CLAUDE.replace(':', '%3A')}/invoke"
    vertex_path = "/v1/projects/p/locations/l/publishers/anthropic/models"
    for path, streams, framed in (
        (bedrock_path, False, True),
        (f"{bedrock_path}-with-response-stream", True, True),
        (f"{vertex_path}/claude-opus-4-6:rawPredict", False, False),
        (f"{vertex_path}/claude-opus-4-6:streamRawPredict", True, False),
    ):
        found = route("POST", path)
        assert (found.format, found.streams, found.framed) == ("anthropic", streams, framed)
        assert "claude-opus-4-6" in found.model
    for path in (f"{vertex_path}/count-tokens:rawPredict", "/model/amazon.titan-v1/invoke"):
        assert route("POST", path).operation == "other"


@STREAMS
def test_the_strict_provider_refuses_as_bedrock_does(stream):
    with StrictProvider(window=4_000) as provider:
        for body, said in (
            ({**BODY, "anthropic_version": ""}, "anthropic_version: Field required"),
            ({**BODY, "messages": MESSAGES[1:]}, "unexpected"),
            (BODY, "too long"),
        ):
            with pytest.raises(ClientError) as error:
                invoked(bedrock(provider.url), body, stream)
            assert error.value.response["Error"]["Code"] == "ValidationException"
            if said != "unexpected":
                assert said in str(error.value)
