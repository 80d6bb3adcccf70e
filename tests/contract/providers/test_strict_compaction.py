"""The strict provider compacts, signs what it made, and refuses it where it was changed or moved.

Knows Anthropic's and OpenAI's SDKs, and what their errors are called.
"""

from __future__ import annotations

import copy

import anthropic
import openai
import pytest

import trimtab
from trimtab.pricing.reported_usage import read_usage
from trimtab_lab.testing import Answer, Refuse, StrictProvider

FILE = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(200))
HISTORY = [
    {"role": "user", "content": f"Read.\n{FILE}"},
    {"role": "assistant", "content": "It holds tokens."},
    {"role": "user", "content": "Which?"},
    {"role": "assistant", "content": "Many."},
]
SUMMARIZE = {"compaction": {"type": "summarize"}}
USER = {"role": "user", "content": "Go on."}


def claude(provider):
    return anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0)


def ask(client, messages, **more):
    return client.beta.messages.create(
        model="claude-opus-4-6", max_tokens=100, messages=messages, extra_body=more
    )


def made(client):
    """A signed block, as a message."""
    answer = ask(client, HISTORY, **SUMMARIZE).model_dump(exclude_none=True)
    assert answer["stop_reason"] == "compaction"
    assert [part["type"] for part in answer["content"]] == ["compaction"]
    return {"role": "assistant", "content": answer["content"]}


def test_a_block_made_on_demand_stands_for_what_it_summarizes():
    with StrictProvider() as provider:
        client = claude(provider)
        answer = ask(client, [made(client), USER])
        assert answer.content[0].text == "OK"
        before, after = (record.tokens for record in provider.requests)
        assert after < before / 10


def with_block(**changed):
    def change(first):
        first["content"][0].update(changed)
        return [first, USER]

    return change


CHANGES = {
    "CompactionBlockMisplacedError": lambda first: [USER, first, USER],
    "CompactionBlockAmbiguousError": lambda first: [first, USER, copy.deepcopy(first), USER],
    "CompactionContentMismatchError": with_block(content="Another summary."),
    "CompactionSignatureInvalidError": with_block(signature="bm90IG91cnM="),
    "CompactionToolChangesMismatchError": with_block(tool_changes=[{"type": "tool_removal"}]),
}


@pytest.mark.parametrize("error", CHANGES)
def test_what_was_changed_or_moved_is_refused_by_its_own_error(error):
    with StrictProvider() as provider:
        client = claude(provider)
        with pytest.raises(getattr(anthropic.types, error)):
            ask(client, CHANGES[error](made(client)))


MENDED = ("CompactionBlockMisplacedError", "CompactionBlockAmbiguousError")


@pytest.mark.parametrize("error", MENDED)
def test_a_wrapped_client_puts_it_where_it_belongs(error):
    with StrictProvider() as provider:
        client = claude(provider)
        first = made(client)
        assert ask(trimtab.wrap(client), CHANGES[error](first)).content[0].text == "OK"


OPEN = {"role": "assistant", "content": [
    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]}  # fmt: skip
SCRIPTED = ("compaction_too_many_tool_references", "compaction_unavailable")


def test_a_request_to_compact_needs_something_finished():
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    with StrictProvider() as provider:
        with pytest.raises(anthropic.types.CompactionIncompleteTurnError):
            ask(claude(provider), [USER, OPEN], tools=tools, **SUMMARIZE)
        with pytest.raises(anthropic.types.CompactionNothingToSummarizeError):
            ask(claude(provider), [{"role": "user", "content": []}], **SUMMARIZE)


@pytest.mark.parametrize("code", SCRIPTED)
def test_the_others_can_be_scripted(code):
    with StrictProvider([Refuse(code)]) as provider:
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask(claude(provider), HISTORY, **SUMMARIZE)
        assert caught.value.body["error"]["details"]["error_code"] == code


def test_a_compaction_that_was_unavailable_is_asked_for_again_by_a_wrapped_client():
    with StrictProvider([Refuse("compaction_unavailable")]) as provider:
        answer = ask(trimtab.wrap(claude(provider)), HISTORY, **SUMMARIZE)
        assert answer.stop_reason == "compaction"
        assert [record.status for record in provider.requests] == [529, 200]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_above_the_threshold_a_block_comes_with_the_answer_and_its_steps_are_billed(stream):
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1_000}}
    asked = {"model": "claude-opus-4-6", "max_tokens": 100, "messages": HISTORY[:3],
             "betas": ["compact-2026-01-12"]}  # fmt: skip
    with StrictProvider() as provider:
        client = claude(provider)
        more = {"context_management": {"edits": [edit]}}
        if stream:
            with client.beta.messages.stream(**asked, extra_body=more) as events:
                answer = events.get_final_message()
        else:
            answer = client.beta.messages.create(**asked, extra_body=more)
        assert [part.type for part in answer.content] == ["compaction", "text"]
        usage = read_usage(answer)
        assert (usage.sent, usage.compacted) == (None, True)
        assert usage.input_tokens > provider.requests[0].tokens
        block = answer.content[0].model_dump(exclude_none=True)
        again = [*HISTORY[:3], {"role": "assistant", "content": [block]}, USER]
        assert client.beta.messages.create(**{**asked, "messages": again}).content[0].text == "OK"
        assert provider.requests[1].tokens < provider.requests[0].tokens / 10


def test_thinking_that_was_kept_behind_a_compaction_stays_valid():
    """Models that bind thinking to what stands before it accept a compaction in its place."""
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1_000}}
    script = [Answer("One.", thinking="I look."), Answer("Two.", thinking="I look on.")]
    with StrictProvider(script) as provider:
        client = trimtab.wrap(claude(provider), window=50_000)
        asked = {"model": "claude-opus-5-5", "max_tokens": 100}
        more = {"context_management": {"edits": [edit]}, "thinking": {"type": "adaptive"}}
        said = HISTORY[:3]
        for _ in range(3):
            answer = client.beta.messages.create(**asked, messages=said, extra_body=more)
            parts = [part.model_dump(exclude_none=True) for part in answer.content]
            said = [*said, {"role": "assistant", "content": parts}, USER]
        assert [record.status for record in provider.requests] == [200, 200, 200]
        kept = provider.requests[-1].body["messages"][3]["content"]
        assert "thinking" in [part["type"] for part in kept]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_responses_brings_an_opaque_item(stream):
    rows = [{"type": "compaction", "compact_threshold": 1_000}]
    with StrictProvider() as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0)
        asked = {"model": "gpt-5.5", "store": False}
        if stream:
            given = {**asked, "input": HISTORY[:3], "context_management": rows}
            with client.responses.stream(**given) as events:
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**asked, input=HISTORY[:3], context_management=rows)
        items = [item.model_dump(exclude_none=True) for item in answer.output]
        assert [item["type"] for item in items] == ["compaction", "message"]
        again = client.responses.create(**asked, input=[*HISTORY[:3], *items, USER])
        assert again.output_text == "OK"
        assert provider.requests[1].tokens < provider.requests[0].tokens / 3
