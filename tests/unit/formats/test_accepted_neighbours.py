"""What lies beside a certain rule, and is accepted: other places, newer features, other versions.

A certain row changes requests before anybody refused them, so each has at least one neighbour that
comes back as the very object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trimtab
from trimtab.formats import FORMATS

CLAUDE = "claude-opus-5"
OLD_CLAUDE = "claude-sonnet-4-20250514"
EMOJI = "\U0001f600 é 日本 ﷽"

# --- openai-chat ----------------------------------------------------------------------------------


def u(content: Any = "q") -> dict[str, Any]:
    return {"role": "user", "content": content}


def a(content: Any = "a", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def call(id: str = "abcdefgh1", name: str = "read", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*ids: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [*map(call, ids)], **more}


def res(id: str = "abcdefgh1", content: Any = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.1", "messages": list(messages), **more}


def s(content: Any = "s") -> dict[str, Any]:
    return {"role": "system", "content": content}


def image(url: str = "data:image/png;base64,AA==") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


TOOLS = [{"type": "function", "function": {"name": f"t{n}", "parameters": {}}} for n in range(129)]
PAIR = (calls("abcdefgh1"), res())
MISTRAL, V3, KIMI = "mistral-large-latest", "open-mixtral-8x22b", "kimi-k2.6"
FUNCTION = {"role": "assistant", "content": None,
            "function_call": {"name": "read", "arguments": "{}"}}  # fmt: skip
REFERENCE = {"type": "tool_reference", "tool_name": "t1"}

CHAT: dict[str, list[Any]] = {
    "unreadable_text": [chat(u(EMOJI))],
    "result_id_case": [chat(u(), calls("c1", "C1"), res("C1"), res("c1"))],
    "no_messages": [chat({"role": "developer", "content": "s"}, u())],
    "blank_tool_name": [chat(u(), a(None, tool_calls=[call("c1", "a")]), res("c1"))],
    "arguments_not_string": [
        chat(u(), a(None, tool_calls=[call("c1", arguments="")]), res("c1")),
        (chat(u(), a(None, tool_calls=[call(arguments={})]), res()), "openai-chat:mistral"),
        (chat(u(), a(None, tool_calls=[call(arguments={})]), res()), "openai-chat:llamacpp"),
    ],
    "input_not_object": [
        chat(u(), a([{"type": "tool_use", "id": "t", "name": "read", "input": {}}]),
             u([{"type": "tool_result", "tool_use_id": "t", "content": "r"}])),
    ],
    "arguments_not_json": [
        chat(u(), a(None, tool_calls=[call("c1", arguments="{}")]), res("c1"), model="MiniMax-M2"),
    ],
    "string_too_long": [chat(u("x" * 10_485_760))],
    "null_content": [
        chat(u(), calls("c1"), res("c1")), chat(u(), FUNCTION, {"role": "function", "name": "read",
                                                               "content": "r"}),
        chat(u(), a(None, audio={"id": "audio_1"}), u()), chat(u(), a(None, refusal="No."), u()),
        chat(u(), a(None, reasoning_content="Hm."), u(), model="some-model"),
        chat(u(), a(""), u()),
    ],
    "empty_parts": [chat(u(), a([{"type": "text", "text": "a"}]), u(), model="xiaomi/mimo-v2")],
    "duplicate_call": [chat(u(), calls("c1"), res("c1"), calls("c1"), res("c1"))],
    "id_too_long": [
        chat(u(), calls("c" * 40), res("c" * 40)),
        chat(u(), calls("c" * 46), res("c" * 46), model="deepseek-chat"),
        (chat(u(), calls("c" * 46), res("c" * 46)), "openai-chat:vllm"),
    ],
    "id_format": [
        chat(u(), *PAIR, model=MISTRAL), chat(u(), calls("functions.get:0"), res("functions.get:0"),
                                              model=KIMI, thinking={"type": "disabled"}),
    ],
    "call_unanswered": [
        chat(u(), calls("c1", "c2"), res("c2"), res("c1")),
        (chat(u(), calls("c1"), u()), "openai-chat:llamacpp"),
    ],
    "result_late": [
        chat(u(), a([{"type": "tool_use", "id": "t", "name": "read", "input": {}}]),
             u([{"type": "tool_result", "tool_use_id": "t", "content": "r"},
                {"type": "text", "text": "and"}])),
    ],
    "orphan_result": [
        chat(u(), calls("c1"), res("c1"), calls("c1"), res("c1")),
        (chat(u(), res("c9")), "openai-chat:llamacpp"),
    ],
    "duplicate_result": [
        chat(u(), calls("c1", "c2"), res("c1", "r"), res("c2", "r")),
        (chat(u(), calls("c1"), res("c1"), res("c1")), "openai-chat:llamacpp"),
    ],
    "tool_reference_unknown": [chat(u(), calls("c1"), res("c1", [REFERENCE]), tools=TOOLS[:2])],
    "too_many_calls": [
        chat(u(), calls(*(f"c{n}" for n in range(128))), *(res(f"c{n}") for n in range(128))),
        chat(u(), calls(*(f"c{n}" for n in range(129))), *(res(f"c{n}") for n in range(129)),
             model="gemini-3-pro"),
    ],
    "reasoning_missing": [
        chat(u(), *PAIR, model="deepseek-chat"), chat(u(), *PAIR, model="deepseek-next"),
        chat(u(), calls("c1", reasoning_content="Hm."), res("c1"), model=KIMI),
        chat(u(), a(), u(), model="deepseek-v4-pro"),
        chat(u(), calls("c1", reasoning_content="Hm."), res("c1"), calls("c2"), res("c2"),
             model="deepseek-r9"),
    ],
    "system_late": [
        chat({"role": "system", "content": "s"}, u(), a(), u(), model=MISTRAL),
        chat(u(), a(), {"role": "system", "content": "s"}, u()),
    ],
    "last_not_user": [
        chat(u(), a(), u(), model=MISTRAL), chat(u(), a("{", prefix=True), model=MISTRAL),
        chat(u(), *PAIR, model=MISTRAL), chat(u(), a()),
    ],
    "two_answers_last": [(chat(u(), a(), a(), u()), "openai-chat:llamacpp"), chat(u(), a(), a())],
    "too_many_tools": [
        chat(u(), tools=TOOLS[:128]), chat(u(), tools=TOOLS, model="gemini-3-pro"),
    ],
}  # fmt: skip

# --- anthropic ------------------------------------------------------------------------------------


def anthropic(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": CLAUDE, "max_tokens": 99, **more, "messages": list(messages)}


def use(id: str = "toolu_1", name: str = "read", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **more}


def used(id: str = "toolu_1", content: Any = "r", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def t(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def server(id: str = "srvtoolu_1", name: str = "web_search", **more: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id, "name": name, "input": {}, **more}


def served(id: str = "srvtoolu_1", kind: str = "web_search", **more: Any) -> dict[str, Any]:
    return {"type": f"{kind}_tool_result", "tool_use_id": id, "content": [], **more}


THOUGHT = {"type": "thinking", "thinking": "", "signature": "c2ln"}
MARK = {"cache_control": {"type": "ephemeral"}}
READ = {"name": "read", "input_schema": {"type": "object"}}
CALLER = {"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
CODE = server(name="code_execution")
BY_CODE = (a([CODE, use(**CALLER)]), u([used()]), a([served(kind="code_execution"), t("a")]), u())
FOUND = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "read"}],
    },
}
NAMED = u([used(content=[{"type": "tool_reference", "tool_name": "read"}])])
UNNAMED = u([used(content=[{"type": "tool_reference", "tool_name": "LSP"}])])
ADDED = {
    "role": "system",
    "content": [
        {
            "type": "tool_addition",
            "tool": {"type": "tool_definition", "definition": {**READ, "name": "LSP"}},
        }
    ],
}
TAKES = {"tools": [READ]}
SUMMARY = {"type": "compaction", "content": "So far.", "signature": "c2ln"}

DIRECTIVE = {"role": "system", "content": [], "output_config": {"effort": "low"}}
HOUR, MINUTES = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}
CITED = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"},
         "citations": {"enabled": True}}  # fmt: skip
OCTOBER = "anthropic:2026-10-21"

ANTHROPIC: dict[str, list[Any]] = {
    "system_first": [anthropic(DIRECTIVE, u()), anthropic(u(), s())],
    "system_place": [
        anthropic(u(), s(), a(), u(), s()),
        anthropic(u(), s(), s("t"), a(), u()),
        anthropic(u(), a([server(), served()]), s(), a(), u()),
        anthropic(u(), a(), DIRECTIVE, u()),
        anthropic(u(), s(), DIRECTIVE, a(), u()),
    ],
    "mark_order": [
        anthropic(u([t("a", cache_control=HOUR), t("b", cache_control=MINUTES)])),
        anthropic(u([t("a", cache_control=HOUR)]), system=[t("s", cache_control=HOUR)]),
    ],
    "sampling_refused": [anthropic(u(), temperature=1.0), (anthropic(u()), OCTOBER)],
    "document_of_model": [
        anthropic(u(), a([CITED, t("a")]), u()),
        (anthropic(u([CITED, t("q")])), OCTOBER),
    ],
    "citations_of_user": [
        anthropic(u([t("q", citations=[{"type": "char_location"}])])),
        (anthropic(u([t("q", citations=[])])), OCTOBER),
        (anthropic(u(), a([t("a", citations=[{"type": "char_location"}])]), u()), OCTOBER),
    ],
    "unreadable_text": [anthropic(u(EMOJI))],
    "result_id_case": [anthropic(u(), a([use("x"), use("X")]), u([used("X"), used("x")]))],
    "no_messages": [anthropic(u())],
    "compaction_empty": [
        anthropic(a([SUMMARY]), u()),
        anthropic(u(), a([{**SUMMARY, "content": None}, t("a")]), u()),
        anthropic(u(), a([{**SUMMARY, "content": [t("So far.")]}, t("a")]), u()),
    ],
    "compaction_ambiguous": [
        anthropic(a([SUMMARY]), u()),
        anthropic(u(), a([{"type": "compaction", "content": "1"}, t("a")]), u(),
                  a([{"type": "compaction", "content": "2"}, t("a")]), u()),
    ],
    "compaction_misplaced": [anthropic(u(), a([{"type": "compaction", "content": "1"}]), u())],
    "blank_tool_name": [anthropic(u(), a([use(name="a")]), u([used()]))],
    "arguments_not_object": [anthropic(u(), a([use()]), u([used()]))],
    "id_format": [anthropic(u(), a([use("call_1-A")]), u([used("call_1-A")]))],
    "thinking_signature": [
        anthropic(u(), a([THOUGHT, t("a")]), u()),
        anthropic(u(), a([{"type": "redacted_thinking", "data": "c2ln"}, t("a")]), u()),
    ],
    "thinking_blank": [anthropic(u(), a([THOUGHT, t("a")]), u())],
    "tool_reference_unknown": [
        anthropic(u(), a([use()]), NAMED, **TAKES),
        anthropic(u(), a([server(name="tool_search_tool_bm25"), FOUND, t("a")]), u(), **TAKES),
        anthropic(u(), a([use()]), UNNAMED, tools=[READ, {"type": "mcp_toolset", "name": "x"}]),
        anthropic(u(), a([use()]), UNNAMED, tools=[READ], mcp_servers=[{"name": "x"}]),
        anthropic(u(), ADDED, a([use()]), UNNAMED, tools=[READ]),
        [u(), a([use()]), UNNAMED],
    ],
    "duplicate_call": [anthropic(u(), a([use()]), u([used()]), a([use()]), u([used()]))],
    "call_unanswered": [
        anthropic(u(), a([use("x")]), a([use("y")]), u([used("x")]), u([used("y")])),
        anthropic(u(), a([server(), served(), t("a")]), u()),
        anthropic(u(), a([server()])),
        anthropic(u(), *BY_CODE, container="c1"),
        anthropic(u(), a([{"type": "mcp_tool_use", "id": "m", "name": "x", "input": {}}]), u()),
    ],
    "result_late": [anthropic(u(), a([use()]), u([used(), t("and")]))],
    "orphan_result": [
        anthropic(u(), a([CODE, use(**CALLER)]), u([used()]), container="c1"),
        anthropic(u(), a([use("x")]), a("a"), u([used("x")])),
    ],
    "duplicate_result": [anthropic(u(), a([use("x"), use("y")]), u([used("y"), used("x")]))],
    "misplaced_part": [
        anthropic(u(), a([server(), served(), t("a")]), u()),
        anthropic(u(), a([{"type": "document", "source": {"type": "text", "data": "x"}}]), u()),
        anthropic(u(), a([{"type": "dream", "id": "d"}]), u([{"type": "dream", "id": "e"}])),
    ],
    "empty_text": [
        anthropic(u([t(".")])), anthropic(u(), a(""), model=OLD_CLAUDE),
    ],
    "empty_result_text": [
        anthropic(u(), a([use()]), u([used(content="")])),
        anthropic(u(), a([use()]), u([used(content=[])])),
        anthropic(u(), a([use()]), u([used(content=[t("\n")])])),
        anthropic(u(), a([use()]), u([{"type": "tool_result", "tool_use_id": "toolu_1"}])),
    ],
    "no_content": [anthropic(u(), a([]), model=OLD_CLAUDE), anthropic(u("."))],
    "content_not_list": [anthropic(u("q")), anthropic(u([t("q")]))],
    "empty_marked": [anthropic(u([t("q", **MARK)]))],
    "too_many_marks": [
        anthropic(*(u([t("q", **MARK)]) for _ in range(4))),
        anthropic(u(), cache_control={"type": "ephemeral"}),
    ],
    "first_not_user": [
        anthropic(a([SUMMARY]), u()),
        anthropic(DIRECTIVE, u()),
    ],
    "last_not_user": [
        anthropic(u(), a("a"), model=OLD_CLAUDE),
        anthropic(u(), a([t("I look."), server()])),
        anthropic(u(), a([server(), served()])),
        anthropic(u(), a("a"), compaction={"type": "compact"}),
    ],
    "trailing_space": [anthropic(u(), a("a "), u()), anthropic(u(), a(" a"), model=OLD_CLAUDE)],
}  # fmt: skip

# --- bedrock --------------------------------------------------------------------------------------


def bedrock(*messages: Any, model: str = "anthropic.claude-sonnet-4-20250514-v1:0",
            **more: Any) -> dict[str, Any]:  # fmt: skip
    spec = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
    return {"modelId": model, "messages": list(messages), "toolConfig": {"tools": [spec]}, **more}


def bu(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*parts] or [{"text": "q"}]}


def ba(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*parts] or [{"text": "a"}]}


def bcall(id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": "read", "input": {}, **more}}


def bres(id: str = "t1", *content: Any, **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [*content] or [{"text": "r"}], **more}}


POINT = {"cachePoint": {"type": "default"}}
DOC = {"document": {"name": "d", "format": "pdf", "source": {"bytes": "AA=="}}}
LLAMA, NOVA = "meta.llama3-1-70b-instruct-v1:0", "amazon.nova-pro-v1:0"
BSERVER = bcall("s1", type="server_tool_use")
SIGNED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}

POINT_OF_AN_HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}

BEDROCK: dict[str, list[Any]] = {
    "mark_order": [bedrock(bu({"text": "q"}, POINT_OF_AN_HOUR, {"text": "r"}, POINT))],
    "unreadable_text": [bedrock(bu({"text": EMOJI}))],
    "result_id_case": [bedrock(bu(), ba(bcall("x"), bcall("X")), bu(bres("X"), bres("x")))],
    "content_not_list": [bedrock(bu())],
    "misplaced_part": [bedrock(bu(), ba(BSERVER, bres("s1")), bu())],
    "no_messages": [bedrock(bu())],
    "arguments_not_object": [bedrock(bu(), ba(bcall()), bu(bres()))],
    "id_format": [bedrock(bu(), ba(bcall("a.b:c-d_1")), bu(bres("a.b:c-d_1")))],
    "name_format": [bedrock(bu(), ba(bcall(name="a-b_1")), bu(bres()))],
    "result_not_list": [bedrock(bu(), ba(bcall()), bu({"toolResult": {"toolUseId": "t1",
                                                                      "content": []}}))],
    "json_not_object": [bedrock(bu(), ba(bcall()), bu(bres("t1", {"json": {}})))],
    "reasoning_unsigned": [bedrock(bu(), ba(SIGNED, {"text": "a"}), bu())],
    "stray_mark": [bedrock(bu({"text": "q"}, POINT))],
    "blank_text": [bedrock(bu({"text": "."}))],
    "no_content": [bedrock(bu())],
    "roles_alternate": [bedrock(bu(), ba(), bu())],
    "duplicate_call": [bedrock(bu(), ba(bcall()), bu(bres()), ba(bcall()), bu(bres()))],
    "call_unanswered": [
        bedrock(bu(), ba(bcall("x"), bcall("y")), bu(bres("y"), bres("x"))),
        bedrock(bu(), ba(BSERVER), bu()),
    ],
    "result_late": [
        bedrock(bu(), ba(bcall()), bu(bres(), {"text": "and"})),
        bedrock(bu(), ba(bcall()), bu({"text": "and"}, bres()), model=NOVA),
    ],
    "orphan_result": [bedrock(bu(), ba(BSERVER, bres("s1")), bu())],
    "duplicate_result": [bedrock(bu(), ba(bcall("x"), bcall("y")), bu(bres("x"), bres("y")))],
    "empty_error_result": [
        bedrock(bu(), ba(bcall()), bu(bres("t1", {"text": "no"}, status="error"))),
        bedrock(bu(), ba(bcall()), bu({"toolResult": {"toolUseId": "t1", "content": [],
                                                      "status": "success"}})),
    ],
    "mixed_turn": [
        bedrock(bu(), ba({"text": "a"}, bcall()), bu(bres())),
        bedrock(bu(), ba(bcall()), bu(bres()), model=LLAMA),
    ],
    "document_without_text": [bedrock(bu(DOC, {"text": "q"}))],
    "too_many_marks": [bedrock(bu(*[{"text": "q"}, POINT] * 4))],
    "first_not_user": [bedrock({"role": "system", "content": [{"text": "s"}]}, bu())],
    "last_not_user": [
        bedrock(bu(), ba()),
        bedrock(bu(), ba(BSERVER), model="anthropic.claude-opus-4-6-v1:0"),
    ],
    "empty_system": [bedrock(bu(), system=[{"text": "s"}, POINT])],
    "toolconfig_missing": [
        {"modelId": NOVA, "messages": [bu()]}, [bu(), ba(bcall()), bu(bres())],
    ],
    "toolconfig_empty": [{"modelId": NOVA, "messages": [bu()]}],
}  # fmt: skip

# --- gemini ---------------------------------------------------------------------------------------


def gemini(*contents: Any, model: str = "gemini-2.5-pro") -> Any:
    return {"model": model, "contents": list(contents)}, "gemini"


def gu(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [*parts] or [{"text": "q"}]}


def gm(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [*parts] or [{"text": "a"}]}


def gcall(name: str = "read", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def gres(name: str = "read", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"r": 1}, **more}}


GEMINI_3 = "gemini-3-pro-preview"
GEMINI: dict[str, list[Any]] = {
    "unreadable_text": [gemini(gu({"text": EMOJI}))],
    "result_id_case": [
        gemini(gu(), gm(gcall(id="x"), gcall(id="X")), gu(gres(id="X"), gres(id="x")))
    ],
    "no_messages": [gemini(gu())],
    "invalid_role": [gemini({"parts": [{"text": "q"}]}),
                     gemini(gu(), gm(gcall()), {"role": "function", "parts": [gres()]})],
    "no_parts": [gemini(gu())],
    "empty_part": [
        gemini(gu({"text": ""})), gemini(gu({"dreamData": {"x": 1}}), gm(), gu()),
        gemini(gu(), gm({"executableCode": {"code": "1", "language": "PYTHON"}},
                        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}), gu()),
    ],
    "empty_beside_response": [gemini(gu(), gm(gcall()), gu(gres()), gu({"text": ""}))],
    "arguments_not_object": [gemini(gu(), gm(gcall()), gu(gres()))],
    "response_not_object": [gemini(gu(), gm(gcall()), gu(gres()))],
    "call_unanswered": [gemini(gu(), gm(gcall("x"), gcall("y")), gu(gres("y"), gres("x")))],
    "result_late": [gemini(gu(), gm(gcall("x"), gcall("y")), gu(gres("x"), gres("y")), gu())],
    "extra_result": [gemini(gu(), gm(gcall(), gcall()), gu(gres(), gres()))],
    "orphan_result": [
        gemini(gu(), gm(gcall(id="x")), gu(gres())),
        ({"cachedContent": "c", "contents": [gu(gres())]}, "gemini"),
    ],
    "call_order": [
        gemini(gu(), gm(gcall()), gu(gres()), gm(gcall()), gu(gres())),
        gemini(gu(), gm(gcall("x")), gm(gcall("y")), gu(gres("x"), gres("y"))),
    ],
    "signature_missing": [
        gemini(gu(), gm(gcall()), gu(gres())),
        gemini(gu(), gm(gcall()), gu(gres()), gm(), gu(), model=GEMINI_3),
        gemini(gu(), gm({**gcall(), "thoughtSignature": "c2ln"}, gcall("y")),
               gu(gres(), gres("y")), model=GEMINI_3),
    ],
    "last_not_user": [gemini(gu(), gm()), gemini(gu(), gm(), gu(), model=GEMINI_3)],
}  # fmt: skip

# --- interactions, responses ----------------------------------------------------------------------


def inter(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gemini-3.8-flash", "input": list(steps), "system_instruction": "s", **more}


def iu(words: str = "q") -> dict[str, Any]:
    return {"type": "user_input", "content": [{"type": "text", "text": words}]}


def icall(id: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "id": id, "name": "read", "arguments": {}}


def ires(id: str = "c1") -> dict[str, Any]:
    return {"type": "function_result", "call_id": id, "name": "read", "result": ""}


IPAIR = (icall(), ires())
INTERACTIONS: dict[str, list[Any]] = {
    "unreadable_text": [inter(iu(EMOJI))],
    "result_id_case": [inter(iu(), icall("x"), icall("X"), ires("X"), ires("x"))],
    "no_input": [{"model": "gemini-3.8-flash", "previous_interaction_id": "i1", "input": []}],
    "not_a_step": [inter(iu(), {"type": "dream", "id": "d"})],
    "arguments_not_object": [inter(iu(), *IPAIR)],
    "result_missing": [inter(iu(), *IPAIR)],
    "duplicate_call": [inter(iu(), *IPAIR, *IPAIR)],
    "call_unanswered": [
        inter(iu(), icall("x"), icall("y"), ires("y"), ires("x")),
        inter(iu(), {"type": "google_search_call", "id": "s"}, iu()),
    ],
    "result_late": [inter(iu(), *IPAIR, iu())],
    "orphan_result": [
        inter(ires(), previous_interaction_id="i1"),
        inter(iu(), {"type": "code_execution_call", "id": "s"}, *IPAIR,
              {"type": "code_execution_result", "call_id": "s"}, iu()),
    ],
    "duplicate_result": [inter(iu(), icall("x"), icall("y"), ires("x"), ires("y"))],
}  # fmt: skip


def resp(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.5", **more, "input": list(items)}


def rcall(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}", **more}


def rout(id: str = "c1", output: Any = "r") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": output}


def thought(id: str | None = "rs_1") -> dict[str, Any]:
    return {"type": "reasoning", "summary": []} | ({"id": id} if id else {})


RPAIR = (rcall(), rout())
OTHERS = {"model": "some-model"}
RESPONSES: dict[str, list[Any]] = {
    "unreadable_text": [resp(u(EMOJI))],
    "result_id_case": [resp(u(), rcall("x"), rcall("X"), rout("X"), rout("x"))],
    "no_input": [
        {"model": "gpt-5.5", "previous_response_id": "r"}, {"model": "gpt-5.5", "input": "q"},
        {"model": "gpt-5.5", "prompt": {"id": "p"}, "input": []},
    ],
    "not_an_item": [resp(u(), {"type": "dream", "id": "d"})],
    "null_content": [resp(u(), a("")), resp(u([]))],
    "part_of_speaker": [resp(u(), a([{"type": "output_text", "text": "a"}]), u())],
    "arguments_not_string": [resp(u(), *RPAIR)],
    "output_type": [
        resp(u(), rcall(), rout(output=[{"type": "input_text", "text": "r"}])),
        resp(u(), {"type": "dream_output", "call_id": "d", "output": {"x": 1}}),
    ],
    "item_id_chars": [resp(u(), {"type": "dream", "id": "dr 1"})],
    "item_id_too_long": [resp(u(), rcall(id="fc_1"), rout())],
    "item_id_prefix": [resp(u(), rcall(id="fc_1"), rout())],
    "duplicate_item": [resp(u(), thought(None), *RPAIR, thought(None), rcall("c2"), rout("c2"))],
    "call_id_missing": [
        resp(u(), {"type": "tool_search_call", "execution": "server", "arguments": {}}, a())
    ],
    "call_id_too_long": [resp(u(), rcall("c" * 64), rout("c" * 64))],
    "duplicate_call": [resp(u(), rcall("x"), rout("x"), rcall("y"), rout("y"))],
    "call_unanswered": [
        resp(u(), rcall("x"), a(), rcall("y"), rout("y"), rout("x")),
        resp(u(), {"type": "web_search_call", "id": "ws_1", "status": "completed"}, a(), u()),
        resp(u(), {"type": "program", "id": "p", "call_id": "p1", "code": "1"}, *RPAIR),
    ],
    "calls_interleaved": [
        resp(u(), rcall("x"), rcall("y"), rout("y"), rout("x"), model="deepseek-v4"),
        resp(u(), rcall("x"), a(), rout("x")),
    ],
    "orphan_result": [
        resp(rout(), previous_response_id="r"),
        resp({"type": "item_reference", "id": "fc_1"}, rout()),
    ],
    "duplicate_result": [resp(u(), rcall("x"), rcall("y"), rout("x"), rout("y"))],
    "reasoning_alone": [
        resp(u(), thought(), rcall(id="fc_1"), rout()),
        resp(u(), rcall("x"), thought(), rout("x"), rcall("y", id="fc_1"), rout("y")),
        resp(u(), thought(), {"type": "message", "role": "developer", "content": "s"},
             rcall("y", id="fc_1"), rout("y")),
    ],
}  # fmt: skip

NEIGHBOURS = {
    "openai-chat": CHAT,
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "gemini": GEMINI,
    "gemini-interactions": INTERACTIONS,
    "openai-responses": RESPONSES,
}


def cases() -> Iterator[Any]:
    for format, rows in NEIGHBOURS.items():
        for rule, requests in rows.items():
            for number, case in enumerate(requests):
                request, spoken = case if isinstance(case, tuple) else (case, format)
                yield pytest.param(request, spoken, id=f"{format}-{rule}-{number}")


@pytest.mark.parametrize(("request_", "format"), list(cases()))
def test_what_lies_beside_a_certain_rule_passes_untouched(request_: Any, format: Any) -> None:
    assert trimtab.check(request_, format=format) == ()
    assert trimtab.fit(request_, window=10**9, format=format).request is request_


@pytest.mark.parametrize("format", FORMATS)
def test_each_certain_row_has_a_neighbour(format: str) -> None:
    certain = {row.name for row in FORMATS[format].rules.rows if row.sure == "certain"}
    assert certain - NEIGHBOURS[format].keys() == set()
