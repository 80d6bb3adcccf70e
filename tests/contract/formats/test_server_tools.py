"""Tools that the provider runs: their results may stand in a later message than their calls, and
blocks that load tools stay.  Judged by a walk over the JSON that knows ids and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import doubtful
import pytest

import trimtab
from trimtab import formats
from trimtab.formats import rules

BIG = "".join(f"row {n}: west {n * 7919 % 10_007}\n" for n in range(150))
TURNS = 24


def t(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# --- conversations in which a server's call waits for the client's result ------------------------


def anthropic_turn(n: int) -> list[Any]:
    """Programmatic tool calling in three model messages: two pauses, then the result."""
    caller = {"caller": {"type": "code_execution_20260120", "tool_id": f"srvtoolu_{n}"}}

    def asked(id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "query", "input": {"n": n}, **caller}

    def told(id: str) -> dict[str, Any]:
        return {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": BIG}]}  # fmt: skip

    code = {"type": "server_tool_use", "id": f"srvtoolu_{n}", "name": "code_execution",
            "input": {"code": "print(1)"}}  # fmt: skip
    printed = {"type": "code_execution_result", "stdout": "1", "return_code": 0}
    result = {"type": "code_execution_tool_result", "tool_use_id": f"srvtoolu_{n}",
              "content": printed}  # fmt: skip
    return [
        {"role": "user", "content": f"Question {n}?"},
        {"role": "assistant", "content": [t("I query."), code, asked(f"toolu_{n}a")]},
        told(f"toolu_{n}a"),
        {"role": "assistant", "content": [asked(f"toolu_{n}b")]},
        told(f"toolu_{n}b"),
        {"role": "assistant", "content": [result, t(f"Answer {n}.")]},
    ]


def chat_turn(n: int) -> list[Any]:
    """The same, in a chat message that goes on to Anthropic."""
    done = []
    for message in anthropic_turn(n):
        content = message["content"]
        done.append({**message, "content": [
            {**part, "type": "code_tool_use"} if part.get("type") == "server_tool_use" else part
            for part in content
        ] if isinstance(content, list) else content})  # fmt: skip
    return done


def bedrock_turn(n: int) -> list[Any]:
    return [
        {"role": "user", "content": [{"text": f"Question {n}?"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": f"s{n}", "name": "code", "input": {},
                         "type": "server_tool_use"}},
            {"toolUse": {"toolUseId": f"c{n}", "name": "query", "input": {}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": f"c{n}", "content": [{"text": BIG}]}}]},
        {"role": "assistant", "content": [
            {"toolResult": {"toolUseId": f"s{n}", "content": [{"text": "1"}]}},
            {"text": f"Answer {n}."},
        ]},
    ]  # fmt: skip


def gemini_turn(n: int) -> list[Any]:
    return [
        {"role": "user", "parts": [{"text": f"Question {n}?"}]},
        {"role": "model", "parts": [
            {"toolCall": {"id": f"s{n}", "toolType": "CODE"}},
            {"functionCall": {"name": "query", "args": {"n": n}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "query", "response": {"result": BIG}}}]},
        {"role": "model", "parts": [
            {"toolResponse": {"id": f"s{n}", "response": {"x": 1}}}, {"text": f"Answer {n}."}]},
    ]  # fmt: skip


def interactions_turn(n: int) -> list[Any]:
    return [
        {"type": "user_input", "content": [t(f"Question {n}?")]},
        {"type": "code_execution_call", "id": f"s{n}", "arguments": {"code": "1"}},
        {"type": "function_call", "id": f"c{n}", "name": "query", "arguments": {}},
        {"type": "function_result", "call_id": f"c{n}", "name": "query", "result": BIG},
        {"type": "code_execution_result", "call_id": f"s{n}", "result": "1"},
        {"type": "model_output", "content": [t(f"Answer {n}.")]},
    ]


def responses_turn(n: int) -> list[Any]:
    return [
        {"role": "user", "content": f"Question {n}?"},
        {"type": "dream_call", "id": f"s{n}", "code": "1"},
        {"type": "function_call", "call_id": f"c{n}", "name": "query", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{n}", "output": BIG},
        {"type": "dream_output", "dream_id": f"s{n}", "result": "1"},
        {"role": "assistant", "content": f"Answer {n}."},
    ]


TOOL = {"name": "query", "input_schema": {"type": "object"}}
SPEC = {"toolSpec": {"name": "query", "inputSchema": {"json": {"type": "object"}}}}
SESSIONS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "anthropic": (anthropic_turn, "messages", {
        "model": "claude-opus-5", "max_tokens": 99, "container": "c1", "tools": [TOOL]}),
    "openai-chat": (chat_turn, "messages", {"model": "claude-sonnet-4-6"}),
    "bedrock": (bedrock_turn, "messages", {
        "modelId": "amazon.nova-pro-v1:0", "toolConfig": {"tools": [SPEC]}}),
    "gemini": (gemini_turn, "contents", {}),
    "gemini-interactions": (interactions_turn, "input", {
        "model": "gemini-3.8-flash", "system_instruction": "s"}),
    "openai-responses": (responses_turn, "input", {"model": "gpt-5.5"}),
}  # fmt: skip
ID_KEYS = ("id", "tool_id", "tool_use_id", "toolUseId", "call_id", "dream_id")


def session(format: str, turns: int = TURNS) -> dict[str, Any]:
    turn, key, more = SESSIONS[format]
    said = [item for n in range(turns) for item in turn(n)]
    return {**more, key: [*said, turn(turns)[0]]}


def ids_in(value: Any) -> Iterator[str]:
    """Every id of a server's tool, at whatever depth."""
    if isinstance(value, dict):
        yield from (v for k, v in value.items() if k in ID_KEYS and isinstance(v, str)
                    and v.startswith(("s", "srvtoolu_")))  # fmt: skip
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from ids_in(one)


def times(request: Any) -> dict[str, int]:
    found = list(ids_in(request))
    return {id: found.count(id) for id in found}


@pytest.mark.parametrize("format", SESSIONS)
def test_a_result_in_a_later_message_passes_untouched(format: str) -> None:
    for turns in (1, 3, TURNS):
        request = session(format, turns)
        assert trimtab.check(request, format=format) == ()
        assert trimtab.fit(request, window=10**9, format=format).request is request


@pytest.mark.parametrize("window", [30_000, 9_000, 3_500])
@pytest.mark.parametrize("format", SESSIONS)
def test_what_refers_to_each_other_goes_or_stays_as_one(format: str, window: int) -> None:
    request = session(format)
    before = times(request)
    fitted = trimtab.fit(request, window=window, format=format)
    after = times(fitted.request)
    assert fitted.report.tokens_after <= window
    assert fitted.report.edits
    assert {id: before[id] for id in after} == after
    assert trimtab.check(fitted.request, format=format) == ()
    assert doubtful.found(fitted.request, format) == []
    if window == 3_500 and format != "openai-responses":  # there what nobody knows stays
        assert len(after) < len(before)


@pytest.mark.parametrize("format", SESSIONS)
def test_a_step_that_waits_for_the_server_stays_until_its_result_is_there(format: str) -> None:
    turn, key, _ = SESSIONS[format]
    steps = {**session(format, 2), key: [*session(format, 2)[key], *turn(2)[1:-1]]}
    waiting = steps[key][:-1] if format.endswith(("interactions", "responses")) else steps[key]
    own = trimtab.Session(window=12_000, format=format)
    sent: Any = own.fit({**steps, key: waiting}).request
    after = own.fit({**steps, key: [*waiting, turn(2)[-1]]} if waiting is steps[key] else
                    {**steps, key: [*waiting, *turn(2)[-2:]]})  # fmt: skip
    assert times(sent)
    full = times({key: turn(2)})
    assert {id: times(after.request)[id] for id in full} == full


def test_ids_that_repeat_mean_the_nearest_before() -> None:
    request = session("anthropic", 6)
    same = json.loads(json.dumps(request).replace("srvtoolu_3", "srvtoolu_1"))
    fitted = trimtab.fit(same, window=9_000)
    assert trimtab.check(fitted.request) == ()
    assert doubtful.found(fitted.request) == []


def test_a_session_id_in_every_message_joins_nothing() -> None:
    messages = []
    for n in range(40):
        mark = {"type": "dream", "session_id": "s1"}
        asked = {"type": "tool_use", "id": f"toolu_{n}", "name": "query", "input": {}}
        told = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": BIG}
        messages += [{"role": "assistant", "content": [mark, asked]},
                     {"role": "user", "content": [told]}]  # fmt: skip
    request = {"model": "claude-opus-5", "max_tokens": 9, "tools": [TOOL],
               "messages": [{"role": "user", "content": "q"}, *messages]}  # fmt: skip
    fitted = trimtab.fit(request, window=9_000)
    assert fitted.report.tokens_after <= 9_000
    assert trimtab.check(fitted.request) == ()


# --- blocks that load tools -----------------------------------------------------------------------

LOADED = {"type": "tool_reference", "tool_name": "query"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_s", "name": "tool_search_tool_bm25",
          "input": {"query": "sales"}}  # fmt: skip
RESULTS = {"type": "tool_search_tool_search_result", "tool_references": [LOADED]}
FOUND = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_s", "content": RESULTS}
LISTING = {"type": "mcp_tool_listing", "mcp_server_name": "x", "tools": [{"name": "y"}]}


def loading(*blocks: Any) -> list[Any]:
    return [{"role": "user", "content": "Find it."},
            {"role": "assistant", "content": [*blocks, t("Found.")]}]  # fmt: skip


def by_client(content: list[Any]) -> list[Any]:
    return [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_s", "name": "find", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_s", "content": content}]},
    ]  # fmt: skip


def steps(n: int) -> list[Any]:
    asked = {"type": "tool_use", "id": f"toolu_{n}", "name": "query", "input": {"n": n}}
    told = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": BIG}
    return [{"role": "assistant", "content": [t("I query."), asked]},
            {"role": "user", "content": [told]}]  # fmt: skip


STATE: dict[str, tuple[str, list[Any], Any]] = {
    "a search of the server's": ("anthropic", loading(SEARCH, FOUND), FOUND),
    "a search of the client's": ("anthropic", by_client([LOADED]), LOADED),
    "a search beside words": ("anthropic", by_client([t("here"), LOADED]), LOADED),
    "the tools of an MCP server": ("anthropic", loading(LISTING), LISTING),
    "in a chat message": ("openai-chat", by_client([LOADED]), LOADED),
}


@pytest.mark.parametrize("preset", ["balanced", "in-place"])
@pytest.mark.parametrize(("format", "first", "kept"), STATE.values(), ids=STATE)
def test_what_loads_a_tool_stays_at_any_size(
    format: str, first: list[Any], kept: Any, preset: Any
) -> None:
    said = [*first, *(one for n in range(TURNS) for one in steps(n)),
            {"role": "user", "content": "So?"}]  # fmt: skip
    tools = [TOOL, {"name": "find", "input_schema": {"type": "object"}}]
    request = {"model": "claude-opus-5", "max_tokens": 9, "messages": said, "tools": tools}
    if format == "openai-chat":
        request["tools"] = [
            {"type": "function", "function": {"name": tool["name"]}} for tool in tools
        ]
    fitted = trimtab.fit(request, window=9_000, format=format, preset=preset)
    assert fitted.report.edits
    assert json.dumps(kept) in json.dumps(fitted.request)
    assert trimtab.check(fitted.request, format=format) == ()


def search(n: int, tool: str = "query") -> list[Any]:
    """The client searches, and says much beside the tool that it loads."""
    asked = {"type": "tool_use", "id": f"toolu_s{n}", "name": "find", "input": {"n": n}}
    content = [t(f"{n} {BIG}"), {"type": "tool_reference", "tool_name": tool}]
    told = {"type": "tool_result", "tool_use_id": f"toolu_s{n}", "content": content}
    return [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [told]}]


def searching(*messages: Any, **more: Any) -> Any:
    more_steps = (one for n in range(3) for one in steps(n))
    said = [
        {"role": "user", "content": "Find it."}, *messages, *more_steps,
        {"role": "user", "content": "So?"},
    ]  # fmt: skip
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("query", "find", "b")]
    return {"model": "claude-opus-5", "max_tokens": 9, "tools": tools, "messages": said, **more}


def loads(request: Any) -> list[str]:
    """The ids of the results that load a tool."""
    return [
        part["tool_use_id"]
        for message in request["messages"]
        for part in message["content"]
        if isinstance(part, dict) and "tool_reference" in json.dumps(part.get("content", ""))
    ]


CHANGED = {"role": "system", "content": [{"type": "tool_removal", "tool_name": "query"}]}
SUMMED = {"role": "assistant", "content": [
    {"type": "compaction", "content": "It searched.", "encrypted_content": "c2ln"}]}  # fmt: skip
CLEARS = {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}
AGAIN: dict[str, tuple[Any, list[str]]] = {
    "the same tool": (searching(*search(1), *search(2), *search(3)), ["toolu_s1"]),
    "another tool": (searching(*search(1), *search(2, "b"), *search(3)), ["toolu_s1", "toolu_s2"]),
    "after a change of tools": (
        searching(*search(1), CHANGED, *search(2), *search(3)), ["toolu_s1", "toolu_s2"],
    ),
    "behind the provider's summary": (
        searching(*search(1), SUMMED, *search(2), *search(3)), ["toolu_s1", "toolu_s2"],
    ),
    "where the provider clears old results": (
        searching(*search(1), *search(2), **CLEARS), ["toolu_s1", "toolu_s2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "kept"), AGAIN.values(), ids=AGAIN)
def test_of_steps_that_load_one_tool_the_first_stays(request_: Any, kept: list[str]) -> None:
    least = trimtab.fit(request_, window=10**7, reserve=0).report.minimum
    fitted = trimtab.fit(request_, window=least, reserve=0)
    assert loads(fitted.request) == kept
    assert trimtab.check(fitted.request) == ()


def test_what_loads_a_tool_again_stays_once_the_client_has_taken_the_first_out() -> None:
    whole = searching(*search(1), *search(2), *search(3))
    session = trimtab.Session(window=2_500, reserve=0)
    assert loads(session.fit(whole).request) == ["toolu_s1"]
    shorter = {**whole, "messages": [whole["messages"][0], *whole["messages"][3:]]}
    sent = session.fit(shorter).request
    assert "toolu_s2" in loads(sent)
    assert trimtab.check(sent) == ()


WITHDRAWN = [
    by_client([{"type": "tool_reference", "tool_name": "LSP"}]),
    by_client([{"type": "tool_reference", "tool_name": "LSP"}, LOADED]),
    by_client([{"type": "tool_reference", "tool_name": "LSP"},
               {"type": "tool_reference", "tool_name": "OLD"}]),
    loading(SEARCH, {**FOUND, "content": {**RESULTS, "tool_references": [
        {"type": "tool_reference", "tool_name": "LSP"}, LOADED]}}),
]  # fmt: skip


@pytest.mark.parametrize("first", WITHDRAWN)
def test_a_reference_to_a_tool_that_is_gone_is_taken_out_and_can_be_recalled(first: Any) -> None:
    said = [*first, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    request = {"model": "claude-opus-5", "max_tokens": 9, "tools": [TOOL], "messages": said}
    assert {v.rule for v in trimtab.check(request)} == {"tool_reference_unknown"}
    repaired = trimtab.repair(request)
    sent = json.dumps(repaired.request)
    assert '"LSP"' not in sent
    assert '"OLD"' not in sent
    assert sent.count('"tool_name": "query"') == json.dumps(first).count('"tool_name": "query"')
    assert trimtab.check(repaired.request) == ()
    assert "LSP" in repaired.recall(repaired.report.repairs[0].handle)
    users = [m["content"] for m in repaired.request["messages"] if m["role"] == "user"]
    parts = [part for content in users if isinstance(content, list) for part in content]
    assert {part["type"] for part in parts} <= {"tool_result"}, "the tool says what is said for it"


# --- after a refusal: a call of the server's that can't go on -------------------------------------

CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
BY_CODE = {"type": "tool_use", "id": "toolu_1", "name": "query", "input": {},
           "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}  # fmt: skip
SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {}}
ASKED = {"type": "tool_use", "id": "toolu_1", "name": "query", "input": {}}
TOLD = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}


def repaired_for(rule: str, *messages: Any) -> Any:
    request = {"model": "claude-opus-5", "max_tokens": 9, "tools": [TOOL],
               "messages": [{"role": "user", "content": "q"}, *messages]}  # fmt: skip
    assert trimtab.fit(request, window=10**9).request is request, "nobody has refused it"
    spoken = formats.find(request, None)[0]
    transcript = formats.read(request, spoken)
    assert rule in {v.rule for v in rules.check(transcript, doubtful=True)}
    done = rules.repair(request, spoken, transcript, refused={rule: None})
    assert rules.check(done.transcript, doubtful=True) == ()
    return done


def test_words_beside_results_end_the_turn_of_a_server_tool_that_waits() -> None:
    done = repaired_for(
        "server_unanswered",
        {"role": "assistant", "content": [SEARCHED, ASKED]},
        {"role": "user", "content": [TOLD, t("Stop searching.")]},
    )
    assert done.tree["messages"][1]["content"] == [ASKED]
    assert done.tree["messages"][2]["content"] == [TOLD, t("Stop searching.")], "the user's stay"
    assert [value for _, _, value in done.taken] == [SEARCHED]


def test_a_result_whose_code_has_lost_its_container_becomes_a_direct_one() -> None:
    done = repaired_for(
        "container_missing",
        {"role": "assistant", "content": [t("I query."), CODE, BY_CODE]},
        {"role": "user", "content": [TOLD]},
    )
    assert done.tree["messages"][1]["content"] == [t("I query."), ASKED]
    assert done.tree["messages"][2]["content"] == [TOLD]
