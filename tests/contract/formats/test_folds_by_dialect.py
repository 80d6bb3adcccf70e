"""What stands for old steps, in each dialect: a note is taken by whom it goes to.

One case for each thing that providers want differently: words beside calls, the user after a
result, signatures of parallel calls, reasoning that has to come back, ids that belong together,
tools that the server runs, results that are errors.  Judged by StrictProvider and by Mistral's,
Amazon's and Google's own validators, and by ``judge_speakers``.
"""

from __future__ import annotations

import json
from typing import Any

import doubtful
import judge_bedrock
import pytest
import spoken
from chat_requests import mistral_says
from judge_speakers import by_speaker, foreign_pieces
from spoken import Called, Step

import trimtab
from trimtab_lab.testing import StrictProvider

WINDOW, APART_WINDOW = 3_000, 4_000
"""Where words and calls are kept apart each step is a turn of its own, and less fits."""
MISTRAL, OLD_MISTRAL = "mistral-large-latest", "open-mixtral-8x22b"
KIMI, DEEPSEEK = "kimi-k2.6", "deepseek-v4-pro"
NOVA, LLAMA = "amazon.nova-pro-v1:0", "us.meta.llama4-maverick-17b-instruct-v1:0"
BEDROCK_MISTRAL, GPT_OSS = "mistral.pixtral-large-2502-v1:0", "openai.gpt-oss-120b-1:0"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def script(*, words: bool = False, parallel: int = 1, users: int = 0, errors: int = 0) -> list[Any]:
    """Twenty steps behind a question; ``words`` beside each call, ``users``: the user speaks after
    each so-manieth result, ``errors``: so many of the first steps failed."""
    found: list[Any] = ["You must never touch build. Where is the parser?"]
    for number in range(20):
        called = tuple(
            Called(
                "write",
                {"path": f"src/file_{number}_{n}.py"},
                spoken.lines("tool", number * 10 + n, 12),
                number < errors,
            )
            for n in range(parallel)
        )
        found.append(Step(spoken.lines("agent", number, 1) if words else "", called))
        if users and number % users == users - 1 and number < 19:
            found.append(f"user {number} says: mind the tests of part {number} please")
    return found


def body(format: str, model: str = "", **more: Any) -> dict[str, Any]:
    """The request of such a script."""
    return spoken.written(format, script(**more), model)


def thinking(model: str, **more: Any) -> dict[str, Any]:
    """Chat with the reasoning that Kimi and DeepSeek want back."""
    request = body("openai-chat", model, **more)
    for number, message in enumerate(request["messages"]):
        if message["role"] == "assistant":
            message["reasoning_content"] = f"thought {number}"
    return request


def searched() -> dict[str, Any]:
    """Anthropic's web search among calls that the client answers."""
    request = body("anthropic")
    for number, message in enumerate(request["messages"]):
        if message["role"] == "assistant" and number % 3 == 0:
            hit = {
                "type": "web_search_result", "url": f"https://e.example/{number}", "title": "E",
                "encrypted_content": "e" * 400, "page_age": None,
            }  # fmt: skip
            call = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search",
                    "input": {"query": f"parser {number}"}}  # fmt: skip
            found = {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": [hit]}
            message["content"][1:1] = [call, found]
    return request


def searched_responses() -> dict[str, Any]:
    """The same with Responses."""
    request, items = body("openai-responses"), []
    for number, item in enumerate(request["input"]):
        items.append(item)
        if item.get("type") == "reasoning":
            action = {"type": "search", "query": f"parser {number}"}
            items.append({"type": "web_search_call", "id": f"ws_{number}", "status": "completed",
                          "action": action})  # fmt: skip
    return {**request, "input": items}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "words beside calls, Mistral of 2024": ("openai-chat", body("openai-chat", OLD_MISTRAL)),
    "words beside calls, Mistral": ("openai-chat", body("openai-chat", MISTRAL, words=True)),
    "words beside calls, Bedrock's Llama": ("bedrock", body("bedrock", LLAMA, words=True)),
    "words beside calls, Bedrock's Mistral": (
        "bedrock", body("bedrock", BEDROCK_MISTRAL, words=True),
    ),
    "words beside calls, Bedrock's gpt-oss": ("bedrock", body("bedrock", GPT_OSS, words=True)),
    "words beside calls, Nova": ("bedrock", body("bedrock", NOVA, words=True)),
    "user after a result, Mistral": (
        "openai-chat", doubtful.repaired(body("openai-chat", MISTRAL, users=4)).tree,
    ),
    "user after a result, Gemini": ("gemini", body("gemini", users=4)),
    "user after a result, Bedrock": ("bedrock", body("bedrock", CLAUDE, users=4)),
    "user after a result, Nova": ("bedrock", body("bedrock", NOVA, users=4)),
    "parallel calls with one signature, Gemini": ("gemini", body("gemini", parallel=3)),
    "parallel calls, Claude": ("anthropic", body("anthropic", parallel=3)),
    "reasoning_content, Kimi": ("openai-chat", thinking(KIMI, words=True)),
    "reasoning_content, DeepSeek": ("openai-chat", thinking(DEEPSEEK, users=4)),
    "ids bound to reasoning, Responses": (
        "openai-responses", body("openai-responses", words=True, parallel=2),
    ),
    "a search of the server, Anthropic": ("anthropic", searched()),
    "a search of the server, Responses": ("openai-responses", searched_responses()),
    "results that are errors, Anthropic": ("anthropic", body("anthropic", errors=3)),
    "results that are errors, Bedrock": ("bedrock", body("bedrock", CLAUDE, errors=3)),
    "results that are errors, Gemini": ("gemini", body("gemini", errors=3)),
}  # fmt: skip


def folded(name: str) -> tuple[Any, dict[str, Any], trimtab.Fitted]:
    """(format, request, what is sent) of a case; old steps are folded."""
    format, request = CASES[name]
    apart = request.get("modelId") in (LLAMA, BEDROCK_MISTRAL)
    window = APART_WINDOW if apart else WINDOW
    settings = trimtab.Settings(counter="o200k")
    found = trimtab.fit(request, window=window, reserve=0, settings=settings)
    assert (found.report.format, found.report.warnings) == (format, ())
    assert any(edit.op == "fold" for edit in found.report.edits), found.report.edits
    assert found.report.tokens_after <= window
    return format, request, found


def status(format: str, request: dict[str, Any]) -> tuple[int, bytes]:
    """What a strict provider answers."""
    model = request.get("model") or request.get("modelId") or "m"
    path = {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "bedrock": f"/model/{model}/converse",
        "gemini": f"/v1beta/models/{model}:generateContent",
    }[format]
    own = {"bedrock": "modelId", "gemini": "model"}.get(format)
    sent = {key: value for key, value in request.items() if key != own}
    answered = StrictProvider().respond("POST", path, "", {}, json.dumps(sent).encode())
    return answered.status, b"".join(answered.chunks)


def theirs(format: str, request: dict[str, Any]) -> list[str]:
    """What the validators of others say."""
    if format == "bedrock":
        model = request.get("modelId")
        return [
            *judge_bedrock.parameter_problems(request, model),
            *judge_bedrock.problems(request, model),
        ]
    if format == "gemini":
        from google.genai.types import Content

        read = [Content.model_validate(content) for content in request["contents"]]
        return [str(one) for one in read if not one.parts]
    if format == "openai-chat" and "tral" in request["model"]:
        version = 3 if request["model"] == OLD_MISTRAL else 11
        return [said for said in [mistral_says(request, version)] if said]
    return []


@pytest.mark.row("E4")
@pytest.mark.parametrize("name", CASES)
def test_what_stands_for_old_steps_is_taken_by_whom_it_goes_to(name: str) -> None:
    format, request, found = folded(name)
    assert trimtab.check(found.request, format=format) == ()
    assert foreign_pieces(request, found.request) == []
    said, why = status(format, found.request)
    assert said == 200, why
    assert theirs(format, found.request) == []
    told = by_speaker(found.request)["tool"]
    assert any("this record is left" in text for text in told)


def noted(messages: list[Any]) -> list[str]:
    """The parts of messages, as JSON, in which a note stands."""
    parts = (
        part
        for message in messages
        for part in message.get("content", message.get("parts"))
        if isinstance(part, dict)
    )
    texts = map(json.dumps, parts)
    return [text for text in texts if "this record is left" in text]


@pytest.mark.parametrize("format", ["Anthropic", "Bedrock", "Gemini"])
def test_a_result_that_is_an_error_never_holds_a_note(format: str) -> None:
    _, _, found = folded(f"results that are errors, {format}")
    notes = noted(found.request.get("messages") or found.request["contents"])
    assert notes
    assert not any(word in text for text in notes for word in ("is_error", '"error"'))


def test_of_parallel_calls_the_one_that_is_signed_stays_alone() -> None:
    _, _, found = folded("parallel calls with one signature, Gemini")
    contents = found.request["contents"]
    (at,) = (n for n, content in enumerate(contents) if noted([content]))
    said = contents[at - 1]["parts"]
    calls = [part for part in said if "functionCall" in part]
    assert len(calls) == 1
    assert calls[0]["thoughtSignature"]
    assert len([part for part in contents[at]["parts"] if "functionResponse" in part]) == 1


@pytest.mark.parametrize("name", ["Kimi", "DeepSeek"])
def test_the_call_that_stays_keeps_its_reasoning(name: str) -> None:
    _, request, found = folded(f"reasoning_content, {name}")
    said = [m for m in found.request["messages"] if m.get("tool_calls")]
    own = {m["reasoning_content"] for m in request["messages"] if m["role"] == "assistant"}
    assert said
    assert {m["reasoning_content"] for m in said} <= own


def test_no_id_that_is_bound_to_reasoning_stays_without_it() -> None:
    _, _, found = folded("ids bound to reasoning, Responses")
    items = found.request["input"]
    thoughts = {item["id"].removeprefix("rs_") for item in items if item.get("type") == "reasoning"}
    bound = {item["id"].split("_", 1)[1] for item in items if item.get("id")}
    assert {one.rpartition("x")[0] for one in bound} == {x.rpartition("x")[0] for x in thoughts}


@pytest.mark.parametrize("name", ["Anthropic", "Responses"])
def test_a_search_of_the_server_holds_no_note_and_goes_whole(name: str) -> None:
    _, request, found = folded(f"a search of the server, {name}")
    asked, sent = json.dumps(request), json.dumps(found.request)
    kinds = ("server_tool_use", "web_search_tool_result") if name == "Anthropic" else ()
    assert len({sent.count(f'"type": "{kind}"') for kind in kinds}) <= 1
    searches = "web_search_call" if name == "Responses" else "server_tool_use"
    assert sent.count(searches) < asked.count(searches)


# --- breakpoints of the client's ------------------------------------------------------------------


def marked(format: str) -> dict[str, Any]:
    """A request with four breakpoints: behind the question, two old results and the newest."""
    request = body(format, CLAUDE if format == "bedrock" else "")
    messages = request["messages"]
    for number in (0, 10, 20, len(messages) - 1):
        content = messages[number]["content"]
        if format == "bedrock":
            content.append({"cachePoint": {"type": "default"}})
            continue
        if isinstance(content, str):
            content = messages[number]["content"] = [{"type": "text", "text": content}]
        content[-1]["cache_control"] = {"type": "ephemeral"}
    return request


@pytest.mark.row("E15")
@pytest.mark.parametrize("format", ["anthropic", "bedrock"])
def test_a_fold_takes_breakpoints_with_it_and_leaves_the_others_where_they_were(
    format: str,
) -> None:
    request = marked(format)
    mark = "cachePoint" if format == "bedrock" else "cache_control"
    found = trimtab.fit(
        request, window=WINDOW, reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    assert any(edit.op == "fold" for edit in found.report.edits)
    messages = found.request["messages"]
    at = [n for n, message in enumerate(messages) for part in message["content"] if mark in part]
    assert at[0] == 0
    assert at[-1] == len(messages) - 1, "the newest is where the client put it"
    assert len(at) == json.dumps(found.request).count(f'"{mark}"') < 4
    assert {messages[n]["role"] for n in at} == {"user"}, "none between a call and its result"
    assert trimtab.check(found.request) == ()
    assert status(format, found.request)[0] == 200
