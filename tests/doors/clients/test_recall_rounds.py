"""``wrap(client, recall=True)``: the model calls the recall tool, real SDKs never see it.

Knows what the provider receives and what a caller is told.
"""

from __future__ import annotations

import json
import re

import pytest
import sdk_clients
from recalled_files import EVERY, file
from sdk_clients import PROMPT, Bedrock

from trimtab import clients
from trimtab.testing import Answer, Call, StrictProvider

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
WINDOW = 12_000
MARK = re.compile(r'recall\(\\*"(\w+)\\*"')
NO_MORE = "no more recalls in this answer"


def told(record):
    return json.dumps(record.body)


def handles(record):
    """The handles that notes name; the tool's own description names one as an example."""
    return [mark for mark in MARK.findall(told(record)) if mark != "handle"]


def calls_recall(record):
    return '\\"end\\":400' in told(record).replace(" ", "") or '"end": 400' in told(record)


def tools(record):
    body = record.body
    return (body.get("toolConfig") or body).get("tools") or []


def declared(record):
    return json.dumps(tools(record)).count('"name": "recall"')


class Agent:
    """What the model does: reads files until something was cut, recalls it, goes on.

    ``mixed``: it recalls beside another call.
    """

    def __init__(self, mixed=False):
        self.mixed, self.recalled, self.step = mixed, False, 0

    def __call__(self, record):
        marks = handles(record)
        if marks and not self.recalled:
            self.recalled = True
            call = Call("recall", {"handle": marks[0], "end": 400})
            thought = "I need the original."
            if self.mixed:
                calls = [call, Call("read", {"path": "more.txt"})]
                return Answer("Both at once.", calls, thinking=thought)
            return Answer("Let me look again.", [call], thinking=thought)
        self.step += 1
        if self.step > 9:
            return Answer("All read.", thinking="Done.")
        return Answer(f"Reading {self.step}.", [Call("read", {"path": f"{self.step}.txt"})],
                      thinking=f"File {self.step}.")  # fmt: skip


def history(client):
    own = getattr(client, "messages", None) or getattr(client, "input", None)
    return repr(own if own is not None else client.contents)


@EVERY
@STREAMS
@pytest.mark.parametrize("mixed", [False, True], ids=["alone", "mixed"])
def test_a_recall_is_answered_by_the_wrapped_client_and_never_seen(sdk, stream, mixed):
    if sdk is Bedrock and stream:
        pytest.skip("streams of boto3 do not get the tool")
    agent = Agent(mixed)
    with StrictProvider(agent, window=WINDOW) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=WINDOW, recall=True)
        client.ask(PROMPT)
        said, seen, number, texts, prompts = client.send(stream), [], 0, [], []
        while said.calls:
            texts.append(said.text)
            prompts.append(said.prompt)
            seen += [name for _, name, _ in said.calls]
            number += 1
            text = f"short {number}" if agent.recalled else file(number)
            client.give({call_id: text for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        assert said.text.endswith("All read.")
        assert agent.recalled
        assert set(seen) == {"read"}
        assert "recall" not in history(client)
        joined = [text for text in texts if "Let me look again." in text]
        assert len(joined) == (not mixed)
        assert all(re.fullmatch(r"Let me look again\.\n\nReading \d\.", t) for t in joined)
        assert {record.status for record in provider.requests} == {200}
        assert [declared(record) for record in provider.requests] == [1] * len(provider.requests)
        first = next(i for i, r in enumerate(provider.requests) if calls_recall(r))
        behind = provider.requests[first:]
        # What was recalled stays in every later request, at its place: the prefix is the same.
        assert all(calls_recall(record) for record in behind)
        assert behind[1].cached_tokens > 0.8 * behind[0].tokens
        assert all(record.violations == () for record in provider.requests)
        if not mixed:
            asked = provider.requests[first - 1 : first + 1]
            assert prompts[first - 1] == sum(record.tokens for record in asked), "both are paid"
