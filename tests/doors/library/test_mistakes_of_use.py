"""Mistakes of use, as people make them: each gets one clear error that names what, where and the
next step.  Nothing internal leaks out of any of them."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import boto3
import openai
import pytest
from openai.types.chat import ChatCompletion

import trimtab
from trimtab import CannotFit, InvalidRequest, InvalidSetting, Session, UnknownHandle, clients
from trimtab.errors import NotAClient as NoClient
from trimtab.errors import TrimtabError
from trimtab.stores import open as open_store

HI = [{"role": "user", "content": "hi"}]
LONG = [
    {"role": "user", "content": "Read it."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "one more line of a long file\n" * 900},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "And?"},
]  # fmt: skip
SAID = {"role": "assistant", "content": "hi"}
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": SAID}],
}  # fmt: skip


def fit(request: Any = HI, **keywords: Any) -> Any:
    return trimtab.fit(request, **{"window": 9_000, **keywords})


def settings(**values: Any) -> Any:
    return trimtab.Settings(**values)


def openai_client() -> openai.OpenAI:
    return openai.OpenAI(api_key="k")


def aws_session() -> Any:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.Session(region_name="us-east-1", **keys)


def s3_client() -> Any:
    return aws_session().client("s3")


def bedrock_client() -> Any:
    return aws_session().client("bedrock-runtime")


def recall_from_another_session() -> str:
    session = Session(window=1_000)
    handle = next(e.handle for e in session.fit(LONG).report.edits if e.handle)
    assert session.recall(handle)
    return Session(window=1_000).recall(handle)


async def awaiting_fit() -> Any:
    return await fit()


def fit_what_was_not_awaited() -> Any:
    return fit(Session(window=9_000).afit(HI))


class Mistake(NamedTuple):
    """``names``: the offending thing and its place; ``says``: the next step."""

    do: Callable[[], Any]
    error: type[Exception]
    names: tuple[str, ...]
    says: str


MISTAKES: dict[str, Mistake] = {
    # the request
    "a text that is no JSON": Mistake(
        lambda: fit("{hello}"), InvalidRequest, ("not JSON", "line 1 column 2"), "send one JSON"),
    "a prompt": Mistake(
        lambda: fit("What is 2 + 2?"), InvalidRequest, ("not JSON",), 'for a prompt give [{"role"'),
    "a file's name": Mistake(
        lambda: fit("request.json"), InvalidRequest, ("not JSON",), "path.read_bytes()"),
    "None": Mistake(lambda: fit(None), InvalidRequest, ("NoneType",), "give what you would send"),
    "a generator": Mistake(lambda: fit(m for m in HI), InvalidRequest, ("generator",), "give list"),
    "a path": Mistake(lambda: fit(Path("a.json")), InvalidRequest, ("Path",), "read_bytes()"),
    "messages as a text": Mistake(
        lambda: fit({"messages": "hi"}), InvalidRequest, ("messages is a text",), "give [{"),
    "messages as an object": Mistake(
        lambda: fit({"messages": HI[0]}), InvalidRequest, ("messages is an object",), "give [{"),
    "no message at all": Mistake(
        lambda: fit([]), InvalidRequest, ("list of messages is empty",), "give at least one"),
    "one message alone": Mistake(
        lambda: fit(HI[0]), InvalidRequest, ("this is one message",), "give the list"),
    "a text among the messages": Mistake(
        lambda: fit([*HI, "and?"]), InvalidRequest, ("message 1 is a text",), "give {"),
    "a message without role": Mistake(
        lambda: fit({"messages": [*HI, {"content": "hi"}]}), InvalidRequest,
        ("message 1 (messages.1) has no role",), 'say "role"'),
    "a misspelt role": Mistake(
        lambda: fit([{"role": "usr", "content": "hi"}]), InvalidRequest,
        ("message 0", "'usr'"), "did you mean 'user'?"),
    "an object of nobody's SDK": Mistake(
        lambda: fit([*HI, object()]), InvalidRequest, ("message 1", "builtins.object"), "give "),
    "a response of Chat Completions": Mistake(
        lambda: fit(ANSWER), InvalidRequest, ("a response of Chat Completions",),
        "append choices[0].message"),
    "a response as the SDK's object": Mistake(
        lambda: fit(ChatCompletion.model_validate(ANSWER)), InvalidRequest, ("ChatCompletion",),
        "append choices[0].message"),
    "a response of Claude": Mistake(
        lambda: fit({"id": "m", "stop_reason": "end_turn", **SAID}), InvalidRequest,
        ("a response of Anthropic",), "append its role and content"),
    "a response of Gemini": Mistake(
        lambda: fit({"candidates": []}), InvalidRequest, ("a response of Gemini",),
        "append candidates[0].content"),
    "what fit returned": Mistake(lambda: fit(fit()), InvalidRequest, ("Fitted",), ".request"),
    "a report": Mistake(
        lambda: fit(fit().report), InvalidRequest, ("not Report",), "give what you would send"),
    "a client": Mistake(
        lambda: fit(openai_client()), InvalidRequest, ("not OpenAI",), "trimtab.wrap(client)"),
    "a wrapped client": Mistake(
        lambda: fit(trimtab.wrap(openai_client())), InvalidRequest, ("not OpenAI",),
        "here give one request"),
    "no messages": Mistake(
        lambda: fit({"messages": None}), InvalidRequest, ("messages is null",), "give [{"),
    "a message that is None": Mistake(
        lambda: fit([None]), InvalidRequest, ("message 0 is null",), "give {"),
    "a tuple": Mistake(lambda: fit(tuple(HI)), InvalidRequest, ("tuple",), "give list(…) of it"),
    "a response of Responses": Mistake(
        lambda: fit({"object": "response", "output": []}), InvalidRequest,
        ("a response of Responses",), "append each item of output"),
    "a count of words": Mistake(
        lambda: trimtab.count_tokens("Hello world"), InvalidRequest, ("not JSON",),
        'for a prompt give [{"role"'),
    "a forgotten await": Mistake(
        fit_what_was_not_awaited, InvalidRequest, ("coroutine",), "await it"),
    "what fits no window": Mistake(
        lambda: fit([{"role": "user", "content": "word " * 9_000}], window=50), CannotFit,
        ("window allows 50", "[0].content"), "put long material into a file"),
    # the keywords
    "a window in kilobytes": Mistake(
        lambda: fit(window="32kb"), InvalidSetting, ("window='32kb'",), '"128k"'),
    "a model for a window": Mistake(
        lambda: trimtab.fit(HI, "gpt-5.1"), InvalidSetting, ("window='gpt-5.1'", '"32k"'),
        "a model is named by model='gpt-5.1'"),
    "a window below nothing": Mistake(
        lambda: trimtab.fit(HI, -5), InvalidSetting, ("window=-5",), "a whole number above 0"),
    "a window as a share": Mistake(
        lambda: trimtab.fit(HI, 0.9), InvalidSetting, ("window=0.9",), "a whole number above 0"),
    "the window first": Mistake(
        lambda: trimtab.fit(9_000, HI), InvalidSetting, ("window=[{",),
        "the request is the first argument, as in fit(messages, 32_000)"),
    "a session's window first": Mistake(
        lambda: Session().fit("gpt-5.1", HI), InvalidSetting, ("window=[{",), "the first argument"),
    "a reserve by position": Mistake(
        lambda: trimtab.fit(HI, 9_000, 2_000), TypeError, ("fit() takes request and window",),
        "name what comes behind, as in reserve=…"),
    "a session's window by position": Mistake(
        lambda: Session(9_000), TypeError, ("Session() takes nothing by position",),
        "as in window=…"),
    "settings by position": Mistake(
        lambda: trimtab.Settings(9_000), TypeError, ("Settings() takes nothing by position",),
        "name each setting"),
    "messages by name": Mistake(
        lambda: trimtab.fit(messages=HI, window=9_000), TypeError, ("fit()", "'messages'"),
        "the request is given first, without a name"),
    "max_tokens for the reserve": Mistake(
        lambda: fit(max_tokens=5), TypeError, ("fit()", "'max_tokens'"), "did you mean reserve?"),
    "what others call a window": Mistake(
        lambda: Session(context_window=5), TypeError, ("Session()", "'context_window'"),
        "did you mean window?"),
    "a misspelt model of a table": Mistake(
        lambda: trimtab.fit(HI, model="gtp-5.1"), InvalidSetting, ("'gtp-5.1'",),
        "did you mean 'gpt-5.1'?"),
    "no window and no model": Mistake(
        lambda: trimtab.fit(HI), InvalidSetting, ("no window",), "window=128_000"),
    "a window of nothing": Mistake(
        lambda: fit(window=0), InvalidSetting, ("window=0",), "give a whole number above 0"),
    "a reserve above the window": Mistake(
        lambda: fit(reserve=9_001), InvalidSetting, ("reserve 9,001", "window 9,000"), "reserve f"),
    "no window and a model nobody knows": Mistake(
        lambda: trimtab.fit({"model": "foo-9", "messages": HI}), InvalidSetting,
        ("no window", "'foo-9'"), "window=128_000"),
    "a target in percent": Mistake(
        lambda: fit(target=50), InvalidSetting, ("target=50",), "share ≤ 1"),
    "an unknown preset": Mistake(
        lambda: fit(preset="agressive"), InvalidSetting, ("preset='agressive'",), '"economy"'),
    "an unknown format": Mistake(
        lambda: fit(format="openai-caht"), InvalidSetting, ("'openai-caht'",), "choose one of"),
    "a provider for a format": Mistake(
        lambda: fit(format="openai"), InvalidSetting, ("no format 'openai'",),
        "did you mean 'openai-chat' or 'openai-responses'?"),
    "a model family for a format": Mistake(
        lambda: fit(format="claude"), InvalidSetting, ("no format 'claude'",),
        "did you mean 'anthropic'?"),
    "the format of another API of the provider": Mistake(
        lambda: fit({"model": "gpt-5.1", "input": "hi"}, format="openai-chat"), InvalidRequest,
        ("format='openai-chat'", "looks like openai-responses (the body has input)"),
        "give format='openai-responses'"),
    "results of Chat Completions as Anthropic's": Mistake(
        lambda: fit(LONG, format="anthropic"), InvalidRequest,
        ("looks like openai-chat (a message has tool_calls)",), "leave format out"),
    "another format than it is": Mistake(
        lambda: fit(format="gemini"), InvalidRequest, ("format='gemini'", "looks like openai-chat"),
        "give format='openai-chat', or leave format out"),
    "a misspelt keyword": Mistake(
        lambda: fit(windw=3), TypeError, ("fit()", "'windw'"), "did you mean window?"),
    "a setting as a keyword": Mistake(
        lambda: fit(pins=[]), TypeError, ("'pins'",), "settings=trimtab.Settings(pins=…)"),
    "a misspelt setting": Mistake(
        lambda: settings(protected_tool=[]), TypeError, ("Settings()", "'protected_tool'"),
        "did you mean protected_tools?"),
    "settings as a dict": Mistake(
        lambda: fit(settings={"window": 3}), InvalidSetting, ("settings={'window': 3}",),
        "give a trimtab.Settings"),
    "a text for a list": Mistake(
        lambda: settings(pins="abc"), InvalidSetting, ("pins='abc'",), "give a list"),
    "a text as a pin": Mistake(
        lambda: settings(pins=["the secret plan"]), InvalidSetting, ("'the secret plan'",),
        "[lambda block: 'text' in block.text]"),
    "a pin that raises": Mistake(
        lambda: fit(
            LONG, window=999, settings=settings(pins=[lambda block: block.nothing], strict=True)
        ),
        InvalidSetting, ("the pin <lambda> raised AttributeError",), "correct it"),
    "a counter nobody knows": Mistake(
        lambda: fit(LONG, window=1_000, settings=settings(counter="cl200k")), InvalidSetting,
        ("'cl200k'",), "give 'o200k'"),
    "a file for a folder of settings": Mistake(
        lambda: trimtab.load_settings(__file__), InvalidSetting, ("folder=", "'"), "give the fol"),
    "a summarizer by its model": Mistake(
        lambda: settings(summarizer="gpt-5.1"), InvalidSetting, ("summarizer='gpt-5.1'",),
        "give a function, an Endpoint"),
    "one tool for a list of tools": Mistake(
        lambda: settings(protected_tools="read"), InvalidSetting, ("protected_tools='read'",),
        'as ["read", "grep"]'),
    "a trigger in percent": Mistake(
        lambda: settings(trigger=90), InvalidSetting, ("trigger=90",), "0 < share ≤ 1"),
    # what fit returned
    "an await of fit": Mistake(
        lambda: asyncio.run(awaiting_fit()), TypeError, ("object Fitted",),
        "can't be used in 'await' expression"),
    "a Fitted as a body": Mistake(
        lambda: fit()["messages"], TypeError, ("a Fitted is no body",), ".messages"),
    "a walk over a Fitted": Mistake(
        lambda: list(fit()), TypeError, ("a Fitted is no body",), ".messages"),
    "the text of a Fitted": Mistake(
        lambda: fit().text, AttributeError, ("Fitted", "'text'"), "did you mean messages?"),
    "a misspelt attribute of a Fitted": Mistake(
        lambda: fit().requst, AttributeError, ("'requst'",), "did you mean request?"),
    "an attribute of nothing like it": Mistake(
        lambda: fit().zzz, AttributeError, ("'zzz'",), "it has archive"),
    "a misspelt attribute of a report": Mistake(
        lambda: fit().report.saved, AttributeError, ("Report", "'saved'"), "mean tokens_saved?"),
    "a misspelt attribute of a session": Mistake(
        lambda: Session(window=9).undone, AttributeError, ("Session", "'undone'"), "mean undo?"),
    "what others call fit": Mistake(
        lambda: trimtab.compress(HI), AttributeError, ("trimtab", "'compress'"), "mean fit?"),
    "a former name of a module": Mistake(
        lambda: trimtab.transports, AttributeError, ("'transports'",), "did you mean clients?"),
    "a handle by number": Mistake(
        lambda: fit().recall(1), InvalidSetting, ("handle=1",), "session.report.edits[0].handle"),
    "an unknown handle of a Fitted": Mistake(
        lambda: fit().recall("zzz"), UnknownHandle, ("'zzz'",), "run the tool again"),
    "an edit of another session": Mistake(
        lambda: Session(window=9).undo(trimtab.fit(LONG, 1_000).report.edits[0]), UnknownHandle,
        ("no edit has the handle",), "history() lists them"),
    "a handle of a Fitted": Mistake(
        lambda: fit().handle, AttributeError, ("Fitted", "'handle'"), "mean report.edits[0].han"),
    "a file for a request": Mistake(
        lambda: trimtab.fit(io.StringIO("[]"), 1_000), InvalidRequest, ("not StringIO",),
        "file.read()"),
    "a module for a client": Mistake(
        lambda: trimtab.wrap(io), NoClient, ("io is a module",), "as wrap(openai.OpenAI())"),
    "a history of no client": Mistake(
        lambda: trimtab.history, AttributeError, ("'history'",), "mean of(client).history?"),
    # stores and sessions
    "a report before the first fit": Mistake(
        lambda: Session(window=9).report, TrimtabError, ("no request was fitted yet",),
        "call session.fit(request) first"),
    "a store in a folder": Mistake(
        lambda: Session(window=9, store=f"sqlite:///{Path(__file__).parent}"), InvalidSetting,
        ("is a folder",), "/library/a.db"),
    "a Path for a store": Mistake(
        lambda: Session(window=9, store=Path("a.db")), InvalidSetting, ("Path('a.db')",),
        '"sqlite:///agent.db"'),
    "a store and a journal": Mistake(
        lambda: Session(window=9, store="memory:", journal={}), InvalidSetting,
        ("journal= and store=",), "give one"),
    "a pin of nothing": Mistake(
        lambda: Session(window=9).pin(), InvalidSetting, ("pin=[]",), "one of a ref, text= and"),
    "a text for a refusal": Mistake(
        lambda: Session(window=9_000).refused("too long", fit()), InvalidSetting,
        ("error='too long'",), "the exception that the SDK raised"),
    "a body for what fit returned": Mistake(
        lambda: Session(window=9_000).refused(ValueError("x"), HI), InvalidSetting,
        ("fitted=[{",), "give what fit returned"),
    "a request for an answer": Mistake(
        lambda: Session(window=9).observe(HI), InvalidSetting, ("answer=[{",), "response"),
    "no answer": Mistake(
        lambda: Session(window=9).observe(None), InvalidSetting, ("answer=None",), "response"),
    "a misspelt store": Mistake(
        lambda: Session(window=9, store="sqllite:///a.db"), InvalidSetting,
        ("'sqllite:///a.db'",), "sqlite:///file.db"),
    "a path for a store": Mistake(
        lambda: Session(window=9, store="a.db"), InvalidSetting, ("'a.db'",), "sqlite:///file.db"),
    "a key that is text": Mistake(
        lambda: open_store("memory:", key="x"), InvalidSetting, ("key='x'",), "give bytes"),
    "a journal of something else": Mistake(
        lambda: Session(window=9, journal={"x": 1}), InvalidSetting, ("it has no version",),
        "session.journal"),
    "a conversation by number": Mistake(
        lambda: Session(window=9_000, store="memory:").fit(HI, conversation=3), InvalidSetting,
        ("conversation=3",), "give a text"),
    "a session's conversation by number": Mistake(
        lambda: Session(window=9_000, store="memory:", conversation=5), InvalidSetting,
        ("conversation=5",), "give a text"),
    "a time for a clock": Mistake(
        lambda: Session(window=9_000, clock=5), InvalidSetting, ("clock=5",), "give a function"),
    "an unknown handle": Mistake(
        lambda: Session(window=9).recall("zzz"), UnknownHandle, ("'zzz'",), "run the tool again"),
    "recall from another session": Mistake(
        recall_from_another_session, UnknownHandle, ("no original",),
        "recall it from the session that made the edit"),
    "a pin that matches nothing": Mistake(
        lambda: Session(window=9).pin("zzz"), UnknownHandle, ("'zzz'",), "history() lists them"),
    "an undo of nothing": Mistake(
        lambda: Session(window=9).undo("zzz"), UnknownHandle, ("'zzz'",), "history() lists them"),
    "an answer that is a text": Mistake(
        lambda: Session(window=9).observe("x"), InvalidSetting, ("answer='x'",), "a response"),
    "a recall tool without originals": Mistake(
        lambda: trimtab.recall_tool("anthropic").execute({}, {}), InvalidSetting,
        ("originals={}",), "give a Session"),
    "a recall tool of no format": Mistake(
        lambda: trimtab.recall_tool("gpt"), InvalidSetting, ("'gpt'", "choose one of"),
        "did you mean 'openai-chat' or 'openai-responses'?"),
    "a conversion without its target": Mistake(
        lambda: trimtab.convert(HI), InvalidSetting, ("convert() needs its target",),
        "give to= one of gemini-interactions, openai-responses"),
    "a conversion that names its source only": Mistake(
        lambda: trimtab.convert(HI, format="anthropic"), InvalidSetting, ("needs its target",),
        "give to= one of"),
    "a window of check": Mistake(
        lambda: trimtab.check(HI, 9_000), TypeError, ("check() takes request by position",),
        "name what comes behind"),
    "a conversion to no format": Mistake(
        lambda: trimtab.convert(HI, to="gemni"), InvalidSetting, ("'gemni'",), "choose one of"),
    # clients
    "wrap of any object": Mistake(
        lambda: trimtab.wrap(object()), NoClient, ("object of builtins",), "give a client of"),
    "wrap of a class": Mistake(
        lambda: trimtab.wrap(openai.OpenAI), NoClient, ("OpenAI is a class",), "wrap(OpenAI(…))"),
    "wrap of Claude's class": Mistake(
        lambda: trimtab.wrap(anthropic.AsyncAnthropic), NoClient, ("AsyncAnthropic is a class",),
        "make a client"),
    "wrap of a part": Mistake(
        lambda: trimtab.wrap(openai_client().chat.completions), NoClient, ("Completions",),
        "wrap the client itself"),
    "wrap of a client of S3": Mistake(
        lambda: trimtab.wrap(s3_client()), NoClient, ("client of s3",), "bedrock-runtime"),
    "wrap twice": Mistake(
        lambda: trimtab.wrap(trimtab.wrap(openai_client(), window=9)), NoClient,
        ("OpenAI is wrapped already",), "wrap a new client"),
    "wrap of boto3 twice": Mistake(
        lambda: clients.boto3(clients.boto3(bedrock_client()), window=9), NoClient,
        ("BedrockRuntime is wrapped already",), "or make a new one"),
    "wrap of a client of a wrapped session": Mistake(
        lambda: trimtab.wrap(clients.boto3(aws_session()).client("bedrock-runtime"), window=9),
        NoClient, ("itself or by its session",), "or make a new one"),
    "wrap with a misspelt keyword": Mistake(
        lambda: trimtab.wrap(openai_client(), windw=3), TypeError, ("wrap()", "'windw'"),
        "did you mean window?"),
    "a store for a session": Mistake(
        lambda: trimtab.wrap(openai_client(), session="memory:"), InvalidSetting,
        ("session='memory:'",), "a trimtab.Session"),
    "an HTTP client with a misspelt keyword": Mistake(
        lambda: clients.httpx_client(windw=3), TypeError, ("httpx_client()", "'windw'"),
        "did you mean window?"),
    "what was done to a client that is not wrapped": Mistake(
        lambda: trimtab.of(openai_client()), NoClient, ("OpenAI is not wrapped",),
        "trimtab.wrap(client)"),
    "what was done to something else": Mistake(
        lambda: trimtab.of("client"), NoClient, ("str is not wrapped",), "trimtab.wrap(client)"),
    "an endpoint without scheme": Mistake(
        lambda: trimtab.Endpoint("localhost:80", model="m"), InvalidSetting, ("'localhost:80'",),
        "give an http"),
    "an endpoint's port alone": Mistake(
        lambda: trimtab.Endpoint(80, "m"), InvalidSetting, ("url=80",), "give an http"),
    "an endpoint of a model by number": Mistake(
        lambda: trimtab.Endpoint("http://localhost:80", 4), InvalidSetting, ("model=4",),
        "give a text"),
    "chars of a retry that cannot be printed": Mistake(
        lambda: clients.httpx_client(retry_result_chars=-(10**5000)), InvalidSetting,
        ("retry_result_chars=<int>",), "give a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_the_next_step(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(mistake.error) as raised:
        mistake.do()
    text = str(raised.value)
    for word in mistake.names:
        assert word in text
    assert mistake.says in text[text.index(mistake.names[0]) :]  # what is wrong comes first
    assert "\n" not in text
    assert len(text) < 500
    assert not re.search(r"KeyError|TypeError|IndexError| is not subscriptable", text)


def test_there_are_a_hundred_of_them() -> None:
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize(("url", "module", "extra"), [
    ("redis://localhost", "redis", "redis"), ("postgresql://localhost/a", "psycopg", "postgres"),
])  # fmt: skip
def test_a_store_whose_extra_is_missing_says_what_to_install(url, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(trimtab.errors.MissingExtra, match=rf"pip install 'trimtab\[{extra}"):
        Session(window=9_000, store=url).fit(HI)


def test_a_file_of_settings_is_named_with_the_key_it_misspells(tmp_path, caplog):
    (tmp_path / "trimtab.toml").write_text("windw = 3\n")
    trimtab.load_settings(tmp_path)
    assert f"{tmp_path / 'trimtab.toml'}: unknown key windw; did you mean window?" in caplog.text


@pytest.mark.parametrize(
    ("said", "names"), [("window = = 3", "line 1, column 10"), ('window = "wide"', "window: exp")]
)
def test_a_file_of_settings_that_cannot_be_read_is_named_with_the_place(tmp_path, said, names):
    (tmp_path / "trimtab.toml").write_text(said)
    with pytest.raises(InvalidSetting, match=r"trimtab\.toml: ") as raised:
        Session.from_config(tmp_path)
    assert names in str(raised.value)


@pytest.mark.parametrize(
    ("counter", "said"),
    [(lambda text: 1 // 0, "ZeroDivisionError"), (lambda text: "12", "'str' object cannot be")],
    ids=["raises", "gives a text"],
)
def test_a_counter_that_fails_is_named_with_what_it_did(counter, said, caplog):
    fitted = trimtab.fit(LONG, window=1_000_000, settings=settings(counter=counter))
    (warning,) = fitted.report.warnings
    assert warning.startswith("the given counter failed ")
    assert said in warning
    assert "the default counted" in warning
    assert said in caplog.text
