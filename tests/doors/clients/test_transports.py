"""Real SDKs through our transports against the strict provider: loops that outgrow the window.

Knows what a caller of an SDK sees.  No client and no part of ours is replaced by a mock.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import json
import runpy
import sys
from pathlib import Path

import anthropic
import boto3
import httpx2
import openai
import pytest
import sdk_clients
from botocore.config import Config
from google import genai
from google.genai import types
from mistralai.client import Mistral
from sdk_clients import CLIENTS, PROMPT, Claude

import trimtab
from trimtab import clients
from trimtab.clients.guard import Guard
from trimtab_lab.testing import Answer, Call, Cut, Refuse, StrictProvider

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
EVERY = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda sdk: sdk.format)
FILE = "".join(f"src/mod.py:{n}: token {n * 7919} alpha beta\n" for n in range(120))
TURNS = 30
LOOP = [Answer("", [Call("read", {"path": f"{n}.txt"})]) for n in range(TURNS)] + ["done"]
LONG = [
    {"role": "system", "content": "Read files."},
    {"role": "user", "content": "What do the files say?"},
]
for number in range(8):
    LONG += [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{number}", "type": "function",
             "function": {"name": "read", "arguments": f'{{"path": "{number}"}}'}}]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}\n{FILE}"},
    ]  # fmt: skip
WINDOW = 12_000
"""Tokens; LONG has about 16,000."""


def chat(provider, client=None, **options):
    base = {"base_url": f"{provider.url}/v1", "api_key": "sk-x", "max_retries": 0}
    return openai.OpenAI(**{**base, **options}) if client is None else client


def ask(client, **more):
    return client.chat.completions.create(model="gpt-5.1", messages=LONG, **more)


@pytest.mark.row("A12")
@EVERY
@STREAMS
def test_a_loop_whose_history_is_five_windows_long_completes(sdk, stream):
    step = FILE[: len(FILE) // 3]
    with StrictProvider(list(LOOP), window=3_000) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client)
        client.ask(PROMPT)
        said, turns = client.send(stream), 0
        while said.calls:
            turns += 1
            client.give({call_id: f"{turns}\n{step}" for call_id, _, _ in said.calls})
            said = client.send(stream)
        assert provider.crashes == []
        assert (said.text, turns) == ("done", TURNS)
        refused = [record for record in provider.requests if record.status != 200]
        # A refusal that names no limit may be met a second time; from then on it is known.
        assert len(refused) <= 2
        sizes = [record.tokens for record in provider.requests if not record.refusal]
        assert max(sizes) <= 3_000
    whole = trimtab.measure([{"role": "user", "content": step}], counter="o200k").total
    assert turns * whole >= 5 * 3_000


@pytest.mark.row("X9")
@EVERY
@STREAMS
@pytest.mark.parametrize("shape", ["in-stream", "empty-stream"])
def test_an_overflow_inside_a_200_never_reaches_the_caller(sdk, stream, shape):
    with StrictProvider(window=9_000, overflow_as=shape) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client)
        client.ask(FILE * 6)
        assert client.send(stream).text == "OK"
        assert 2 <= len(provider.requests) <= 3


@pytest.mark.row("A12")
@pytest.mark.parametrize("library", ["httpx2", "httpx"])
@STREAMS
def test_one_client_of_either_library_serves_an_sdk(library, stream):
    with StrictProvider(window=WINDOW) as provider:
        http = clients.httpx_client(library=library, timeout=20)
        assert type(http) is importlib.import_module(library).Client
        answer = ask(chat(provider, http_client=http), stream=stream)
        text = answer.choices[0].message.content if not stream else joined(answer)
        assert text == "OK"
        assert [record.status for record in provider.requests] == [400, 200]


def joined(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_one_session_serves_several_clients_and_what_it_learned_goes_along():
    session, recovered = trimtab.Session(store="memory:"), []
    with StrictProvider(window=WINDOW) as provider:
        for library in ("httpx2", "httpx"):
            http = clients.httpx_client(library=library, session=session)
            ask(chat(provider, http_client=http))
            recovered.append(trimtab.of(http).stats.recovered)
        statuses = [record.status for record in provider.requests]
        assert statuses == [400, 200, 200]
        assert recovered == [1, 0]


class Stop(Exception):
    """Ends a call whose answer is not of interest."""


async def asked(provider, name, stream):
    """The text of one long question through an async SDK."""
    url = provider.url
    if name == "openai":
        client = trimtab.wrap(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0))
        answer = await client.chat.completions.create(model="m", messages=LONG, stream=stream)
        if not stream:
            return answer.choices[0].message.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in answer])
    if name == "anthropic":
        client = trimtab.wrap(anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0))
        given = {"model": "m", "max_tokens": 100,
                 "messages": [{"role": "user", "content": FILE * 6}]}  # fmt: skip
        if not stream:
            return (await client.messages.create(**given)).content[0].text
        async with client.messages.stream(**given) as events:
            return (await events.get_final_message()).content[0].text
    if name == "mistral":
        client = trimtab.wrap(Mistral(api_key="x", server_url=url))
        given = {"model": "mistral-large", "messages": [{"role": "user", "content": FILE * 6}]}
        if not stream:
            return (await client.chat.complete_async(**given)).choices[0].message.content
        events = await client.chat.stream_async(**given)
        return "".join([e.data.choices[0].delta.content or "" async for e in events])
    options = types.HttpOptions(base_url=url)
    client = trimtab.wrap(genai.Client)(api_key="x", vertexai=False, http_options=options)
    if not stream:
        answer = await client.aio.models.generate_content(model="m", contents=FILE * 6)
        return answer.text
    events = await client.aio.models.generate_content_stream(model="m", contents=FILE * 6)
    return "".join([event.text or "" async for event in events])


@pytest.mark.row("A12")
@pytest.mark.parametrize("name", ["openai", "anthropic", "genai", "mistral"])
@STREAMS
def test_async_clients_are_served_alike(name, stream):
    with StrictProvider(window=9_000) as provider:
        assert asyncio.run(asked(provider, name, stream)) == "OK"
        assert [record.status for record in provider.requests] == [400, 200]


@pytest.mark.row("X9")
@pytest.mark.parametrize("name", ["openai", "anthropic", "genai"])
@pytest.mark.parametrize("shape", ["in-stream", "empty-stream"])
def test_async_streams_hide_an_overflow_inside_a_200_too(name, shape):
    with StrictProvider(window=9_000, overflow_as=shape) as provider:
        assert asyncio.run(asked(provider, name, True)) == "OK"
        assert len(provider.requests) == 2


@pytest.mark.row("X9")
def test_geminis_stream_that_is_a_json_array_arrives_piece_by_piece():
    with StrictProvider(["word " * 50], window=9_000, overflow_as="in-stream") as provider:
        body = {"contents": [{"role": "user", "parts": [{"text": FILE * 6}]}]}
        url = f"{provider.url}/v1beta/models/gemini-3.5-pro:streamGenerateContent"
        with clients.httpx_client().stream("POST", url, json=body) as got:
            pieces = list(got.iter_bytes())
        assert len(pieces) > 2
        assert json.loads(b"".join(pieces))[0]["candidates"]
        assert len(provider.requests) == 2


@pytest.mark.row("A12")
@STREAMS
def test_mistrals_sync_client_too(stream):
    with StrictProvider(window=9_000) as provider:
        client = trimtab.wrap(Mistral(api_key="x", server_url=provider.url))
        given = {"model": "mistral-large", "messages": [{"role": "user", "content": FILE * 6}]}
        if stream:
            said = [e.data.choices[0].delta.content or "" for e in client.chat.stream(**given)]
        else:
            said = [client.chat.complete(**given).choices[0].message.content]
        assert "".join(said) == "OK"


@pytest.mark.parametrize("name", ["openai", "anthropic", "genai", "mistral"])
@STREAMS
def test_each_request_of_an_async_client_is_logged_once(name, stream, caplog):
    caplog.set_level("INFO")
    with StrictProvider(window=9_000) as provider:
        asyncio.run(asked(provider, name, stream))
        assert len(http_lines(caplog)) == len(provider.requests) == 2


def http_lines(caplog):
    """The lines of httpx about requests, of whichever library."""
    return [r.getMessage() for r in caplog.records if r.name in ("httpx", "httpx2")]


@pytest.mark.parametrize("sdk", [one for one in CLIENTS if one.format != "bedrock"],
                         ids=lambda sdk: sdk.format)  # fmt: skip
@STREAMS
def test_each_request_is_logged_once_refused_ones_and_those_of_others_too(sdk, stream, caplog):
    caplog.set_level("INFO")
    with StrictProvider([Refuse("rate"), "one", "two"]) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client)
        client.ask("Hello?")
        with pytest.raises(Exception, match=r"(?i)rate|429|quota|resource"):
            client.send(stream)
        client.send(stream)
        assert [line.rpartition("HTTP/1.1 ")[2][:3] for line in http_lines(caplog)] == [
            "429",
            "200",
        ]
        with httpx2.Client() as another:  # its lines are its own
            another.get(f"{provider.url}/v1/models")
            another.get(f"{provider.url}/v1/models")
        assert len(http_lines(caplog)) == 4


ERRORS = ["rate", "server_error", "overloaded"]


@pytest.mark.row("X10")
@pytest.mark.parametrize("when", ERRORS)
@STREAMS
def test_other_errors_pass_through_byte_identical_after_exactly_one_send(when, stream):
    """The same request, with us and without: status, headers of theirs and body are the same."""
    seen = []
    for guarded in (False, True):
        with StrictProvider([Refuse(when, times=9, retry_after=1)]) as provider:
            http = clients.httpx_client() if guarded else httpx2.Client()
            body = {"model": "gpt-5.1", "messages": LONG, "stream": stream}
            got = http.post(f"{provider.url}/v1/chat/completions", json=body)
            assert len(provider.requests) == 1
            seen.append((got.status_code, got.content, got.headers.get("retry-after")))
    assert seen[0] == seen[1]


@pytest.mark.row("A9")
def test_where_nothing_can_shrink_the_providers_own_error_is_raised():
    with StrictProvider(window=2_000) as provider:
        client = trimtab.wrap(chat(provider))
        said = [{"role": "system", "content": "rule " * 6_000}, {"role": "user", "content": "go"}]
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="gpt-5.1", messages=said)
        assert caught.value.code == "context_length_exceeded"
        assert len(provider.requests) == 1
        assert "cannot fit" in caught.value.response.headers[clients.HEADER]


@pytest.mark.row("A11")
def test_our_retry_comes_before_the_sdks_and_uses_none_of_them_up():
    """Two server errors are all that max_retries=2 survives; an overflow between them is ours."""
    script = [Refuse("server_error"), Refuse("overflow"), Refuse("server_error"), "fine"]
    with StrictProvider(script) as provider:
        client = trimtab.wrap(chat(provider, max_retries=2))
        assert ask(client).choices[0].message.content == "fine"
        counts = [record.headers["x-stainless-retry-count"] for record in provider.requests]
        assert counts == ["0", "1", "1", "2"]


@pytest.mark.row("A12")
def test_a_stream_that_breaks_after_its_first_content_is_never_sent_again():
    with StrictProvider([Cut(900, "word " * 400)], window=WINDOW) as provider:
        client = trimtab.wrap(chat(provider))
        short = [{"role": "user", "content": "go"}]
        stream = client.chat.completions.create(model="gpt-5.1", messages=short, stream=True)
        assert next(stream).choices
        with pytest.raises((httpx2.HTTPError, openai.APIConnectionError)):
            list(stream)
        assert len(provider.requests) == 1


@pytest.mark.row("A13")
def test_what_the_caller_gave_stays_as_it_is_and_the_client_too():
    with StrictProvider(window=WINDOW) as provider:
        plain = chat(provider)
        before = copy.deepcopy(LONG)
        client = trimtab.wrap(plain)
        ask(client)
        assert before == LONG
        assert client is not plain
        with pytest.raises(openai.BadRequestError):
            ask(plain)


def test_a_wrapped_client_may_be_forgotten_and_the_one_it_came_from_too():
    with StrictProvider() as provider:
        plain = chat(provider)
        short = [{"role": "user", "content": "go"}]
        copied = trimtab.wrap(chat(provider)).with_options(max_retries=1)
        for client in (trimtab.wrap(plain), plain, trimtab.wrap(copied)):
            gc.collect()
            client.chat.completions.create(model="gpt-5.1", messages=short)
            del client
        wrapped = trimtab.wrap(plain)
        wrapped.close()
        assert wrapped.is_closed()


def test_a_request_that_nothing_is_wrong_with_is_the_callers_very_request():
    seen = []

    class Inner(httpx2.BaseTransport):
        def handle_request(self, request):
            seen.append(request)
            return httpx2.Response(200, json={"choices": [{"message": {"content": "hi"}}]})

    transport = clients.httpx_transport.classes(httpx2)[0](Guard(window=100_000), Inner())
    body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "go"}]}
    request = httpx2.Request("POST", "https://api.openai.com/v1/chat/completions", json=body)
    response = transport.handle_request(request)
    assert seen == [request]
    assert response.headers[clients.HEADER] == "unchanged"


def test_headers_timeouts_and_extensions_go_along_with_a_changed_body():
    with StrictProvider(window=WINDOW) as provider:
        http = clients.httpx_client(window=WINDOW, headers={"x-mine": "1"}, timeout=7)
        body = json.dumps({"model": "gpt-5.1", "messages": LONG}).encode()
        got = http.post(
            f"{provider.url}/v1/chat/completions", content=body,
            headers={"content-type": "application/json", "x-call": "2"},
        )  # fmt: skip
        (record,) = provider.requests
        assert (record.headers["x-mine"], record.headers["x-call"]) == ("1", "2")
        assert int(record.headers["content-length"]) == record.body_bytes < len(body)
        assert got.request.content == body
        assert " edit" in got.headers[clients.HEADER]


def test_counting_tokens_passes_through_untouched():
    with StrictProvider(window=WINDOW) as provider:
        client = trimtab.wrap(Claude(provider.url).client, window=8_000)
        said = [{"role": "user", "content": FILE * 6}]
        counted = client.messages.count_tokens(model="claude-opus-4-6", messages=said)
        assert counted.input_tokens > 8_000


OFF = {clients.HEADER: "off"}


def test_a_request_that_says_off_is_sent_as_it_came_and_the_next_one_is_fitted():
    with StrictProvider(window=WINDOW) as provider:
        client = trimtab.wrap(chat(provider), window=WINDOW)
        with pytest.raises(openai.BadRequestError):
            ask(client, extra_headers=OFF)
        ask(client)
        whole, fitted = provider.requests
        assert clients.HEADER not in whole.headers
        assert (whole.status, fitted.status) == (400, 200)


def test_async_clients_and_anthropics_middleware_can_be_told_off_for_a_request_too():
    with StrictProvider(window=9_000) as provider:
        given = {"model": "m", "max_tokens": 100,
                 "messages": [{"role": "user", "content": FILE * 6}]}  # fmt: skip
        at = {"base_url": provider.url, "api_key": "x", "max_retries": 0}
        hooked = anthropic.Anthropic(**at, middleware=[clients.anthropic_middleware()])
        with pytest.raises(anthropic.BadRequestError):
            hooked.messages.create(**given, extra_headers=OFF)
        wrapped = trimtab.wrap(anthropic.AsyncAnthropic(**at))
        with pytest.raises(anthropic.BadRequestError):
            asyncio.run(wrapped.messages.create(**given, extra_headers=OFF))
        assert len(provider.requests) == 2


def test_what_is_no_request_to_a_model_passes_through():
    with StrictProvider() as provider:
        http = clients.httpx_client()
        for method, path, content in (
            ("GET", "/v1/models", None),
            ("POST", "/v1/embeddings", b'{"input": "x"}'),
            ("POST", "/v1/chat/completions", b"\x00not json"),
        ):
            got = http.request(method, f"{provider.url}{path}", content=content)
            assert clients.HEADER not in got.headers


def test_the_body_of_another_request_is_not_even_read():
    """An upload goes through as the stream that it is, sync and async."""
    sent = []

    class Inner(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def handle_request(self, request):
            sent.append(hasattr(request, "_content"))
            return httpx2.Response(200)

        async def handle_async_request(self, request):
            return self.handle_request(request)

    async def pieces():
        yield b"x"

    guard, (plain, later) = Guard(), clients.httpx_transport.classes(httpx2)
    url = "https://api.openai.com/v1/files"
    plain(guard, Inner()).handle_request(httpx2.Request("POST", url, content=iter([b"x"])))
    upload = httpx2.Request("POST", url, content=pieces())
    asyncio.run(later(guard, Inner()).handle_async_request(upload))
    assert sent == [False, False]


def test_an_error_of_ours_never_stops_a_request(monkeypatch):
    def broken(self, request, **keywords):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(trimtab.Session, "fit", broken)
    with StrictProvider() as provider:
        answer = ask(trimtab.wrap(chat(provider)))
        assert answer.choices[0].message.content == "OK"
        with pytest.raises(RuntimeError):
            ask(trimtab.wrap(chat(provider), strict=True))


def test_what_cannot_be_wrapped_is_said_in_one_line():
    for odd in (object(), "client", 7):
        with pytest.raises(trimtab.InvalidSetting, match="cannot be wrapped"):
            trimtab.wrap(odd)
    session = trimtab.Session()
    with pytest.raises(trimtab.InvalidSetting, match="give them to the session"):
        clients.httpx_client(session=session, window=5)
    with pytest.raises(trimtab.InvalidSetting, match="retry_result_chars"):
        clients.httpx_client(retry_result_chars=-1)
    with pytest.raises(trimtab.InvalidSetting, match="reserve"):  # A18: raised early
        clients.httpx_client(window=1_000, reserve=2_000)
    with pytest.raises(trimtab.InvalidSetting, match="library"):
        clients.httpx_client(library="requests")


@EVERY
@STREAMS
def test_a_strict_client_sends_nothing_and_says_nothing_was_sent(sdk, stream, caplog):
    with StrictProvider() as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=20, reserve=0, strict=True)
        client.ask("word " * 3_000)
        with pytest.raises((trimtab.CannotFit, anthropic.APIConnectionError)) as raised:
            client.send(stream)
        error = raised.value.__cause__ or raised.value  # Anthropic's SDK wraps any error
        assert str(error).startswith("cannot fit: window allows 20 tokens")
        assert provider.requests == []
    assert "sent" not in " ".join(r.getMessage() for r in caplog.records if r.name == "trimtab")


@EVERY
def test_a_client_that_is_not_strict_says_that_it_sends_the_request_without_a_new_cut(sdk, caplog):
    with StrictProvider(window=50_000) as provider:
        client = sdk(provider.url)
        sdk_clients.wrap(client, window=20, reserve=0)
        client.ask("word " * 3_000)
        assert client.send(False).text == "OK"
    (line,) = [r.getMessage() for r in caplog.records if r.name == "trimtab"]
    assert line.startswith("sent without a new cut, it will probably be refused: cannot fit")


@pytest.mark.parametrize(
    ("library", "hint"),
    [("httpx", "pip install httpx$"), (None, r"pip install 'trimtab\[httpx\]'")],
)
def test_an_http_library_that_is_missing_is_named_by_what_brings_it(monkeypatch, library, hint):
    for name in ("httpx", "httpx2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(trimtab.errors.MissingExtra, match=hint):
        clients.httpx_client(library=library)


@pytest.mark.row("A1")
def test_the_switch_for_refusals_without_words_goes_through_wrap():
    bare = {"error": {"message": "Provider returned error", "code": 400,
                      "metadata": {"raw": "ERROR"}}}  # fmt: skip
    with StrictProvider([Refuse("opaque", status=400, body=bare)]) as provider:
        client = trimtab.wrap(chat(provider), retry_result_chars=512)
        assert ask(client).choices[0].message.content == "OK"
        sent = provider.requests[1].body["messages"]
        assert all(len(m["content"]) <= 512 for m in sent if m["role"] == "tool")


@pytest.mark.row("A13")
def test_what_was_learned_lies_in_the_store_for_other_processes(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    with StrictProvider(window=WINDOW) as provider:
        for _ in range(2):
            session = trimtab.Session(store=store)
            ask(trimtab.wrap(chat(provider), session=session))
            session.close()
        assert [record.status for record in provider.requests] == [400, 200, 200]
    assert b"sk-x" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.row("A9")
def test_edits_made_on_a_guess_that_helped_nothing_are_taken_back():
    bare = {"error": {"message": "Provider returned error", "code": 400,
                      "metadata": {"raw": "ERROR"}}}  # fmt: skip
    script = [Refuse("opaque", times=3, status=400, body=bare), "fine"]
    with StrictProvider(script) as provider:
        client = trimtab.wrap(chat(provider), retry_result_chars=512)
        with pytest.raises(openai.BadRequestError):
            ask(client)
        assert ask(client).choices[0].message.content == "fine"
        assert provider.requests[3].body == provider.requests[0].body
        sizes = [record.body_bytes for record in provider.requests[:3]]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.row("A13")
@STREAMS
def test_usage_teaches_how_the_provider_counts(stream):
    session = trimtab.Session(store="memory:")
    with StrictProvider(counter="o200k") as provider:
        client = trimtab.wrap(Claude(provider.url).client, session=session)
        given = {"model": "claude-opus-4-6", "max_tokens": 100,
                 "messages": [{"role": "user", "content": FILE * 3}]}  # fmt: skip
        for _ in range(2):
            if stream:
                with client.messages.stream(**given) as events:
                    events.get_final_message()
            else:
                client.messages.create(**given)
        done = session.fit(provider.requests[-1].body, window=100_000)
        assert done.report.calibration["answers"] == 2


# --- Anthropic's middleware -------------------------------------------------------------------


@pytest.mark.row("A12")
def test_anthropics_own_middleware_recovers_and_is_marked():
    with StrictProvider(window=9_000) as provider:
        given = {"model": "m", "max_tokens": 100,
                 "messages": [{"role": "user", "content": FILE * 6}]}  # fmt: skip
        plain = anthropic.Anthropic(
            base_url=provider.url, api_key="x", max_retries=0,
            middleware=[clients.anthropic_middleware()],
        )  # fmt: skip
        got = plain.messages.with_raw_response.create(**given)
        assert got.parse().content[0].text == "OK"
        assert "attempt 2 after too_long" in got.headers[clients.HEADER]
        with plain.messages.stream(**given) as events:
            assert events.get_final_message().content[0].text == "OK"
        later = anthropic.AsyncAnthropic(
            base_url=provider.url, api_key="x", max_retries=0,
            middleware=[clients.anthropic_middleware()],
        )  # fmt: skip
        assert asyncio.run(later.messages.create(**given)).content[0].text == "OK"
        statuses = [record.status for record in provider.requests]
        assert statuses == [400, 200, 200, 400, 200]


@pytest.mark.row("A12")
def test_anthropics_bedrock_client_is_signed_after_each_change():
    with StrictProvider(window=9_000) as provider:
        plain = anthropic.AnthropicBedrock(
            base_url=provider.url, aws_access_key="x", aws_secret_key="y",
            aws_region="us-east-1", max_retries=0,
        )  # fmt: skip
        said = [{"role": "user", "content": FILE * 6}]
        got = trimtab.wrap(plain).messages.create(model=CLAUDE, max_tokens=100, messages=said)
        assert got.content[0].text == "OK"
        assert [record.status for record in provider.requests] == [400, 200]
        assert len({record.headers["authorization"] for record in provider.requests}) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai_sdk", "All ten read."),
        ("anthropic_sdk", "Nothing unusual."),
        ("gemini_sdk", "It left the depot."),
        ("bedrock_boto3", "Nothing unusual."),
    ],
)
def test_an_example_prints_its_answer(name, said, capsys):
    examples = Path(__file__).resolve().parents[3] / "examples"
    runpy.run_path(str(examples / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith(said)


# --- boto3 ------------------------------------------------------------------------------------


def bedrock(provider, **retries):
    return boto3.client(
        "bedrock-runtime", endpoint_url=provider.url, region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="x",
        config=Config(retries=retries or {"total_max_attempts": 1}),
    )  # fmt: skip


CLAUDE = "anthropic.claude-opus-4-6-v1:0"
CLAUDES_BODY = json.dumps({
    "anthropic_version": "bedrock-2023-05-31", "max_tokens": 100,
    "messages": [{"role": "user", "content": FILE * 6}],
}).encode()  # fmt: skip


@pytest.mark.row("A12")
@STREAMS
@pytest.mark.parametrize("shape", ["status", "in-stream"])
def test_invoke_model_with_claudes_bodies_recovers(stream, shape):
    with StrictProvider(window=9_000, overflow_as=shape) as provider:
        client = clients.boto3(bedrock(provider))
        if stream:
            got = client.invoke_model_with_response_stream(modelId=CLAUDE, body=CLAUDES_BODY)
            events = [json.loads(event["chunk"]["bytes"]) for event in got["body"]]
            said = [e["delta"].get("text", "") for e in events if "content_block" in e["type"]
                    and "delta" in e]  # fmt: skip
        else:
            got = client.invoke_model(modelId=CLAUDE, body=CLAUDES_BODY)
            said = [json.loads(got["body"].read())["content"][0]["text"]]
        assert "".join(said) == "OK"
        assert [r.refusal for r in provider.requests] == ["overflow", ""]
        signatures = {r.headers["authorization"] for r in provider.requests}
        assert len(signatures) == 2  # signed anew
        line = got["ResponseMetadata"]["HTTPHeaders"][clients.HEADER]
        assert "attempt 2 after too_long" in line


@pytest.mark.row("A11")
@pytest.mark.parametrize("mode", ["standard", "legacy"])
def test_botocores_own_retries_go_on_working(mode):
    script = [Refuse("server_error"), Refuse("overflow"), "fine"]
    with StrictProvider(script) as provider:
        client = clients.boto3(bedrock(provider, mode=mode, total_max_attempts=3))
        said = [{"role": "user", "content": [{"text": FILE * 6}]}]
        got = client.converse(modelId=CLAUDE, messages=said)
        assert got["output"]["message"]["content"][0]["text"] == "fine"
        assert said == [{"role": "user", "content": [{"text": FILE * 6}]}]
        assert len(provider.requests) == 3
        assert provider.requests[2].tokens < provider.requests[1].tokens


@pytest.mark.row("X10")
def test_a_throttled_call_of_boto3_passes_through_after_one_send():
    with StrictProvider([Refuse("rate", times=9)]) as provider:
        client = clients.boto3(bedrock(provider))
        said = [{"role": "user", "content": [{"text": FILE * 6}]}]
        with pytest.raises(client.exceptions.ThrottlingException):
            client.converse(modelId=CLAUDE, messages=said)
        assert len(provider.requests) == 1
