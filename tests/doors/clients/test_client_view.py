"""``trimtab.of``: what a wrapped client shows of its requests, with the SDKs' real clients.

Knows what a user sees; the provider is the strict one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import weakref

import anthropic
import boto3
import httpx
import httpx2
import openai
import pytest
import sdk_clients
from google import genai
from google.genai import types
from mistralai.client import Mistral
from sdk_clients import CLIENTS, PROMPT, Claude
from tool_calls import Step, conversation

import trimtab
from trimtab import clients
from trimtab_lab.testing import Answer, Call, StrictProvider

WINDOW = 6_000
FILE = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(60))
EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)
TURNS = 12
LOOP = [Answer("", [Call("read", {"path": f"{n}.txt"})]) for n in range(TURNS)] + ["done"] * 9


def talk(about: str = "files", steps: int = 12):
    made = conversation(
        "openai-chat", *(Step("read", {"path": f"{n}.txt"}, f"{n}\n{FILE}") for n in range(steps))
    )["messages"]
    return [{"role": "user", "content": f"Read the {about}."}, *made[1:]]


def run(sdk, url, stream=False, **keywords):
    """A loop that outgrows its window; returns the client."""
    client = sdk(url)
    sdk_clients.wrap(client, **keywords)
    client.ask(PROMPT)
    said = client.send(stream)
    while said.calls:
        client.give({call_id: f"{call_id}\n{FILE}" for call_id, _, _ in said.calls})
        said = client.send(stream)
    return client


@EVERY
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_wrapped_client_shows_what_was_cut_and_gives_it_back(sdk, stream):
    with StrictProvider(list(LOOP), window=WINDOW) as provider:
        client = run(sdk, provider.url, stream, window=WINDOW)
        view = trimtab.of(client.client)
        assert view.report.tokens_after < view.report.tokens_before
        edits = view.history()
        assert edits
        assert all(edit.tokens_saved > 0 and edit.at and not edit.undone for edit in edits)
        assert view.stats.requests == len(provider.requests) == TURNS + 1
        assert view.stats.cuts >= 1
        assert view.stats.refusals_avoided > view.stats.cuts
        assert view.stats.refusals == 0
        assert repr(view).endswith(
            f"{view.stats.requests} requests, {trimtab.amounts.many(view.stats.cuts, 'cut')}, "
            f"{view.stats.tokens_archived:,} tokens archived>"
        )
        handle = view.archive[0].handle
        assert handle in {edit.handle for edit in edits}
        assert "alpha beta" in view.recall(handle)
        assert view.search("token 7919")
        assert "token 7919" in view.look_up(search="token 7919")


@EVERY
def test_what_is_undone_is_whole_again_in_the_next_request(sdk):
    with StrictProvider(list(LOOP), window=20_000) as provider:
        client = run(sdk, provider.url, window=WINDOW, preset="in-place")
        view = trimtab.of(client.client)
        taken = {edit.handle for edit in view.report.edits}
        (lost, *_) = [edit for edit in view.history() if edit.handle in taken]
        view.undo(lost.handle)
        assert [edit.handle for edit in view.history() if edit.undone] == [lost.handle]
        client.ask("And now?")
        client.send(False)
        assert lost.handle not in {edit.handle for edit in view.report.edits}
        assert any(edit.handle in taken for edit in view.report.edits)


def test_the_history_says_what_is_in_force_and_an_undo_what_else_it_takes_back():
    with StrictProvider(list(LOOP), window=WINDOW) as provider:
        client = run(CLIENTS[0], provider.url, window=WINDOW)
        view = trimtab.of(client.client)
        in_force = [edit for edit in view.history() if not edit.replaced_by]
        assert {edit.handle for edit in in_force} == {edit.handle for edit in view.report.edits}
        old = next(edit for edit in view.history() if edit.replaced_by)
        assert view.stats.tokens_archived == sum(edit.tokens_saved for edit in in_force)
        assert view.stats.tokens_archived < view.report.tokens_before
        words = view.undo(old.handle)
        assert words.startswith(f"{old.handle} is undone")
        assert f"{old.replaced_by} had replaced it and is taken back too" in words
        assert "replaced" not in view.undo(in_force[-1].handle)


def test_a_limit_that_a_refusal_named_counts_as_one_that_was_given():
    counted = []
    for keywords in ({}, {"window": WINDOW}):
        with StrictProvider(list(LOOP), window=WINDOW) as provider:
            client = run(CLIENTS[0], provider.url, **keywords)
            view = trimtab.of(client.client)
            counted.append(view.stats.refusals_avoided)
            if not keywords:
                assert f"(a refusal named {WINDOW:,}" in view.report.reason
                assert view.report.limits["window"] == WINDOW
                assert "1,047,576" not in str(view.report)
    assert counted[0] == counted[1]


def test_what_a_newcomer_prints_is_short_and_says_what_it_is():
    with StrictProvider(list(LOOP), window=WINDOW) as provider:
        client = run(CLIENTS[0], provider.url, window=WINDOW)
        view = trimtab.of(client.client)
        (edit,) = [edit for edit in view.report.edits if edit.steps]
        assert repr(edit) == f"<{edit}>"
        assert repr(view.report).startswith(f"<Report: {view.report.tokens_before:,} → ")
        assert len(repr(view.report)) < 90
        (folded,) = [one for one in view.archive if one.steps]
        assert repr(folded) == f"Archived({edit.handle!r}, steps={edit.steps})"
        assert view.recall(edit.handle[:5]) == view.recall(edit) == view.recall(edit.handle)
        with pytest.raises(trimtab.UnknownHandle):
            view.recall("")
        with pytest.raises(AttributeError, match="did you mean history"):
            _ = view.histroy
        with pytest.raises(TypeError, match="did you mean search"):
            view.look_up(serach="x")


def test_a_pin_of_nothing_is_a_warning():
    session = trimtab.Session(window=WINDOW)
    session.fit(talk())
    session.pin(text="Read the files")
    session.pin(file="nope.py")
    (warning,) = session.fit(talk()).report.warnings
    assert "a pin keeps nothing: no part of this request has its file" in warning


def test_wrap_takes_the_window_second_as_fit_does():
    with StrictProvider(window=100_000) as provider:
        client = trimtab.wrap(openai_client(provider), WINDOW, reserve=0)
        ask(client, talk())
        assert trimtab.of(client).report.limits["window"] == WINDOW
        with pytest.raises(trimtab.InvalidSetting, match="given twice"):
            trimtab.wrap(openai_client(provider), WINDOW, window=9_000)


def test_a_step_that_is_cut_because_older_ones_are_pinned_is_not_called_the_oldest():
    with StrictProvider(list(LOOP), window=WINDOW) as provider:
        client = run(CLIENTS[0], provider.url, window=WINDOW)
        view = trimtab.of(client.client)
        folded = [edit for edit in view.report.edits if edit.steps]
        assert {edit.why for edit in folded} == {"the oldest, to make room"}
        view.undo(view.history()[0].handle)
        client.ask("And now?")
        client.send(False)
        (moved, *_) = [edit for edit in view.report.edits if edit.steps]
        assert moved.why == "the oldest that are not protected, to make room"


def openai_client(provider, **more):
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0, **more)


def ask(client, messages, **more):
    return client.chat.completions.create(model="gpt-5.1", messages=messages, **more)


def test_before_the_first_request_there_is_nothing_to_see():
    client = trimtab.wrap(openai.OpenAI(api_key="x"), window=WINDOW)
    view = trimtab.of(client)
    assert view.report is None
    assert (view.history(), list(view.archive), view.conversations) == ([], [], {})
    assert (view.search("x"), view.pins()) == ([], [])
    assert repr(view) == "<trimtab on openai.OpenAI: no requests yet>"
    with pytest.raises(trimtab.UnknownHandle, match="rzzz"):
        view.recall("rzzz")
    with pytest.raises(trimtab.UnknownHandle, match="after the first request"):
        view.pin(text="never")


def test_a_view_shows_the_present_state_of_the_conversation_sent_last():
    with StrictProvider(window=100_000) as provider:
        client = trimtab.wrap(openai_client(provider), window=WINDOW, reserve=0)
        view = trimtab.of(client)
        ask(client, talk("files"))
        first = view.history()
        ask(client, talk("logs"))
        assert view.history()
        assert not {edit.handle for edit in first} & {edit.handle for edit in view.history()}
        one, two = view.conversations.values()
        assert (one.history(), two.history()) == (first, view.history())
        assert one.report.tokens_before == view.report.tokens_before
        assert f"{len(first)} edit" in repr(one)
        assert view.recall(first[0].handle) == one.recall(first[0].handle)
        one.pin(text="Read the files")
        assert (one.pins(), two.pins()) == (["text:Read the files"], [])
        one.unpin(text="Read the files")
        assert one.pins() == []
        view.undo(first[0].handle)
        assert one.history()[0].undone
        ask(client, talk("files"))
        assert list(view.conversations)[-1] == list(one._fits.conversations())[-1]
        assert view.history() == one.history()


def test_a_title_that_a_framework_asks_for_is_not_the_conversation():
    with StrictProvider(window=100_000) as provider:
        client = trimtab.wrap(openai_client(provider), window=WINDOW, reserve=0)
        ask(client, talk())
        edits = trimtab.of(client).history()
        ask(client, [
            {"role": "system", "content": "You are a title generator."},
            {"role": "user", "content": "Name this."},
        ])  # fmt: skip
        assert edits
        assert trimtab.of(client).history() == edits


def test_handles_of_an_earlier_run_are_found_in_the_store(tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    with StrictProvider(window=100_000) as provider:
        session = trimtab.Session(window=WINDOW, reserve=0, store=url)
        ask(trimtab.wrap(openai_client(provider), session=session), talk())
        (handle, *_) = [row.handle for row in session.history()]
        original = session.recall(handle)
        session.close()
    again = trimtab.of(trimtab.wrap(openai.OpenAI(api_key="x"), window=WINDOW, store=url))
    assert again.recall(handle) == original


def test_the_history_is_the_same_after_a_restart(tmp_path):
    with StrictProvider(window=100_000) as provider:
        seen = []
        for _ in range(2):
            session = trimtab.Session(
                window=WINDOW, reserve=0, store=f"sqlite:///{tmp_path}/kept.db"
            )
            client = trimtab.wrap(openai_client(provider), session=session)
            ask(client, talk())
            seen.append(trimtab.of(client).history())
            session.close()
        assert seen[0] == seen[1]
        assert all(edit.tokens_saved > 0 and edit.at for edit in seen[0])
        journal = session.journal
    again = trimtab.Session(window=WINDOW, journal=journal).history()
    assert [edit.tokens_saved for edit in again] == [edit.tokens_saved for edit in seen[0]]


def test_two_clients_of_one_session_show_their_own_conversations():
    session = trimtab.Session(window=WINDOW, reserve=0, store="memory:")
    with StrictProvider(window=100_000) as provider:
        one, two = (trimtab.wrap(openai_client(provider), session=session) for _ in range(2))
        ask(one, talk("files"))
        ask(two, talk("logs"))
        first, second = trimtab.of(one), trimtab.of(two)
        assert first.history()
        assert first.history() != second.history()
        assert {edit.handle for edit in first.history()} == {one.handle for one in first.archive}


# --- whatever a user has in hand ---


def led_to(provider):
    """(name, what a user holds, the name of its client), each wrapped anew."""
    root = f"{provider.url}/v1"
    chat = trimtab.wrap(openai_client(provider), window=WINDOW)
    aio = trimtab.wrap(openai.AsyncOpenAI(base_url=root, api_key="x"), window=WINDOW)
    claude = trimtab.wrap(anthropic.Anthropic(base_url=provider.url, api_key="x"), window=WINDOW)
    bedrock = trimtab.wrap(
        anthropic.AnthropicBedrock(aws_region="us-east-1", aws_access_key="x", aws_secret_key="x"),
        window=WINDOW,
    )
    gemini = trimtab.wrap(genai.Client, window=WINDOW)
    made = gemini(api_key="x", http_options=types.HttpOptions(base_url=provider.url))
    mistral = trimtab.wrap(Mistral(api_key="x", server_url=provider.url), window=WINDOW)
    aws = clients.boto3(boto3.Session(region_name="us-east-1"), window=WINDOW)
    converse = sdk_clients.Bedrock(provider.url)
    sdk_clients.wrap(converse, window=WINDOW)
    http = trimtab.wrap(httpx2.Client(), window=WINDOW)
    old = trimtab.wrap(httpx.AsyncClient(), window=WINDOW)
    middleware = clients.anthropic_middleware(window=WINDOW)
    return [
        (chat, "openai.OpenAI"), (chat.chat, "openai.OpenAI"),
        (chat.chat.completions, "openai.OpenAI"), (chat.with_options(timeout=3), "openai.OpenAI"),
        (chat.responses, "openai.OpenAI"), (chat.with_raw_response, "openai.OpenAI"),
        (aio, "openai.AsyncOpenAI"), (aio.chat.completions, "openai.AsyncOpenAI"),
        (claude, "anthropic.Anthropic"), (claude.messages, "anthropic.Anthropic"),
        (bedrock, "anthropic.AnthropicBedrock"), (bedrock.messages, "anthropic.AnthropicBedrock"),
        (bedrock.with_options(timeout=3), "anthropic.AnthropicBedrock"),
        (gemini, "google.genai.Client"), (made, "google.genai.Client"),
        (made.models, "google.genai.Client"), (made.aio, "google.genai.Client"),
        (made.chats.create(model="gemini-3.5-pro"), "google.genai.Client"),
        (mistral, "mistralai.Mistral"), (mistral.chat, "mistralai.Mistral"),
        (aws, "boto3.Session"), (aws.client("bedrock-runtime"), "boto3.Session"),
        (converse.client, "boto3.BedrockRuntime"),
        (http, "httpx2.Client"), (old, "httpx.AsyncClient"),
        (clients.httpx_client(window=WINDOW), "httpx2.Client"),
        (clients.async_httpx_client(library="httpx", window=WINDOW), "httpx.AsyncClient"),
        (openai_client(provider, http_client=clients.httpx_client(window=WINDOW)), "httpx2.Client"),
        (middleware, "anthropic_middleware"),
        (anthropic.Anthropic(api_key="x", middleware=[middleware]), "anthropic_middleware"),
        (clients.call_model_input_filter(window=WINDOW), "call_model_input_filter"),
    ]  # fmt: skip


def test_every_client_and_its_parts_lead_to_their_view():
    with StrictProvider() as provider:
        for held, name in led_to(provider):
            assert repr(trimtab.of(held)) == f"<trimtab on {name}: no requests yet>", held


def test_what_is_not_wrapped_is_an_error_that_says_what_to_do():
    plain = openai.OpenAI(api_key="x")
    trimtab.wrap(plain)  # gives a new one
    for odd in (plain, plain.chat, genai.Client, boto3.Session(), httpx2.Client(), len, None, "x"):
        with pytest.raises(trimtab.errors.NotAClient, match=r"client = trimtab\.wrap\(client\)"):
            trimtab.of(odd)


def test_a_client_that_is_dropped_is_not_kept_alive():
    client = trimtab.wrap(openai.OpenAI(api_key="x"), window=WINDOW)
    alive, view = weakref.ref(client), trimtab.of(client)
    del client
    gc.collect()
    assert alive() is None
    assert view.report is None


def test_an_async_client_shows_the_same():
    async def main(provider):
        client = trimtab.wrap(
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="x"),
            window=WINDOW, reserve=0,
        )  # fmt: skip
        async with client:
            await asyncio.gather(*(
                client.chat.completions.create(model="gpt-5.1", messages=talk(str(n)))
                for n in range(3)
            ))  # fmt: skip
            view = trimtab.of(client)
            assert view.stats.requests == view.stats.cuts == view.stats.refusals_avoided == 3
            for one in view.conversations.values():
                assert "alpha beta" in one.recall(one.history()[0].handle)
            return view

    with StrictProvider(window=WINDOW) as provider:
        assert len(asyncio.run(main(provider)).conversations) == 3


def test_a_function_of_litellms_kind_shows_the_same():
    def completion(model, messages, **more):
        return {"choices": [{"message": {"content": str(len(messages))}}]}

    completion.__module__ = "litellm.main"
    wrapped = trimtab.wrap(completion, window=WINDOW, reserve=0)
    wrapped(model="gpt-5.1", messages=talk())
    view = trimtab.of(wrapped)
    assert view.history()
    assert view.report.tokens_after < view.report.tokens_before
    assert repr(view).startswith("<trimtab on litellm.completion: 1 request, 1 cut, ")


def test_the_edits_of_a_report_and_of_the_history_have_one_shape():
    with StrictProvider(window=100_000) as provider:
        client = trimtab.wrap(openai_client(provider), window=WINDOW, reserve=0)
        ask(client, talk())
        view = trimtab.of(client)
        made = {edit.handle: edit for edit in view.report.edits}
        for edit in view.history():
            same = made[edit.handle]
            assert (edit.title, edit.kind, edit.why) == (same.title, same.kind, same.why)
            assert (edit.tokens_before, edit.tokens_after) == (
                same.tokens_before,
                same.tokens_after,
            )
            assert (edit.steps, edit.tool, edit.role) == (same.steps, same.tool, same.role)
            assert edit.as_dict().keys() == same.as_dict().keys()
            json.dumps(edit.as_dict())
        fold = next(edit for edit in view.history() if edit.op == "fold")
        assert fold.title == f"{fold.steps} steps folded into a note"
        assert fold.steps > 1
        assert str(fold).startswith(f"{fold.handle}: {fold.steps} steps folded into a note, ")


# --- the log ---


def lines_of(caplog, level="INFO"):
    return [r.getMessage() for r in caplog.records if (r.name, r.levelname) == ("trimtab", level)]


@EVERY
def test_each_cut_is_one_line_of_the_log_that_says_how_it_is_undone(sdk, caplog):
    with StrictProvider(list(LOOP), window=WINDOW) as provider, caplog.at_level("INFO"):
        client = run(sdk, provider.url, window=WINDOW)
    view, lines = trimtab.of(client.client), lines_of(caplog)
    assert len(lines) == view.stats.cuts > 0
    undo = r'undo: trimtab\.of\(client\)\.undo\("(\w+)"\)'
    shape = rf"cut \d+ .+ \(([\d,]+) → ([\d,]+) tokens: .+\); {undo}"
    for line in lines:
        match = re.match(shape, line)
        assert match, line
        assert "alpha" not in line
        assert match[3] in {edit.handle for edit in view.history()}
    assert "alpha" not in caplog.text


def test_a_wrapped_client_logs_each_http_request_once(caplog):
    def mistral(provider):
        made = trimtab.wrap(Mistral(api_key="x", server_url=provider.url), window=WINDOW)
        made.chat.complete(model="mistral-large-2512", messages=talk())

    def gemini(provider):
        made = sdk_clients.Gemini(provider.url)
        sdk_clients.wrap(made, window=WINDOW)
        made.ask(PROMPT)
        made.send(True)

    def http(library):
        def send(provider):
            made = trimtab.wrap(library.Client(), window=WINDOW)
            body = {"model": "gpt-5.1", "messages": talk()}
            made.post(f"{provider.url}/v1/chat/completions", json=body)

        return send

    def claude(provider):
        made = Claude(provider.url)
        sdk_clients.wrap(made, window=WINDOW)
        made.ask(PROMPT)
        made.send(False)

    sends = [mistral, gemini, http(httpx), http(httpx2), claude]
    sends.append(lambda provider: ask(trimtab.wrap(openai_client(provider)), talk()))
    for send in sends:
        caplog.clear()
        with StrictProvider(["fine"], window=100_000) as provider, caplog.at_level("INFO"):
            send(provider)
        told = [r for r in caplog.records if r.getMessage().startswith("HTTP Request: POST")]
        assert len(told) == len(provider.requests) > 0, send


# --- look-ups ---


def completion(model, messages, **more):
    """As LiteLLM's."""


completion.__module__ = "litellm.main"
UNABLE = {
    "litellm.completion": lambda **given: trimtab.wrap(completion, **given),
    "call_model_input_filter": clients.call_model_input_filter,
}


@pytest.mark.parametrize("keyword", ["recall", "notes"])
@pytest.mark.parametrize("name", UNABLE)
def test_a_door_that_cannot_answer_look_ups_refuses_to_offer_them(name, keyword):
    with pytest.raises(trimtab.InvalidSetting) as refused:
        UNABLE[name](window=WINDOW, **{keyword: True})
    assert str(refused.value).startswith(f"{keyword}=True: {name} does not answer")
    UNABLE[name](session=trimtab.Session(window=WINDOW, recall=True, store="memory:"))
    UNABLE[name](window=WINDOW, **{keyword: False})


@EVERY
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_client_wrapped_with_recall_offers_and_answers_look_ups(sdk, stream):
    """The model asks for what the first note names; the program sees the last answer alone."""
    asked = []

    def say(record):
        marked = re.findall(r"recall\(\W*(r\w{10})", json.dumps(record.body))
        if marked and not asked:
            asked.append(marked[0])
            return Answer("", [Call("recall", {"handle": marked[0]})])
        if len(provider.requests) <= TURNS:
            return Answer("", [Call("read", {"path": f"{len(provider.requests)}.txt"})])
        return Answer("done")

    with StrictProvider(say, window=WINDOW) as provider:
        client = run(sdk, provider.url, stream, window=WINDOW, recall=True)
        view = trimtab.of(client.client)
        assert view.stats.rounds == 1
        assert asked[0] in {edit.handle for edit in view.history()}
