"""The rules of OpenAI Chat Completions and of the providers that speak it, as data.

Sources: the error texts quoted in public issues (named in each row), recorded requests (accepted),
mistral-common run by us.  Scans and repairs are in ``formats/repair/``,
``dialect_rules.py`` and ``reasoning_rules.py``.

Accepted although documentation says otherwise, and so in no row: ``tool_calls: []``, ``content:
[]`` beside calls (Mistral), an empty content list (OpenAI), ids like ``functions.get:0`` (Kimi).
"""

from __future__ import annotations

import re

from trimtab.formats.engine.rule import DialectLimit, Rule, RuleTable, Shape
from trimtab.formats.openai_chat.dialect_rules import (
    LONGEST_ID,
    MISTRAL,
    OPENAI,
    fill_empty_answer,
    insert_model_message,
    insert_user_message,
    remove_surplus_tools,
    remove_text_beside_calls,
    rename_repeated_ids,
    respell_ids_to_nine,
    scan_contents,
    scan_counts,
    scan_ids,
    scan_order,
    scan_repeats,
    split_calls,
    split_long_strings,
)
from trimtab.formats.openai_chat.dialects import REASONERS
from trimtab.formats.openai_chat.reasoning_rules import (
    insert_reasoning_placeholder,
    may_drop_reasoning,
    scan_reasoning,
)
from trimtab.formats.repair import system_order
from trimtab.formats.repair.content import (
    append_user_message,
    insert_first_user,
    make_arguments_object,
    name_unnamed_calls,
    remove_parts,
    replace_null_content,
    respell_ids,
    scan_blank_names,
    scan_ends,
    scan_flaws,
    scan_unreadable,
    unreadable_row,
    wrap_cut_arguments,
)
from trimtab.formats.repair.orphan_results import remove_orphan_results
from trimtab.formats.repair.pairing import answer_calls, rename_calls, scan_pairing
from trimtab.formats.repair.server_tools import (
    remove_references,
    scan_references,
    scan_server_results,
)
from trimtab.formats.repair.tool_names import OPENAI_NAME, respell_names, scan_tool_names

_UNPAIRED = frozenset({"llamacpp"})
"""Servers that take calls and results in any number and order (run by us)."""

TABLE = RuleTable(
    rows=(
        unreadable_row(
            "Failed to parse the request body as JSON: messages[319].content: lone leading "
            "surrogate in hex escape",
            "JohnnyZ93/oai-compatible-copilot PR #271 (DeepSeek); OpenAI: anomalyco/opencode issue "
            "#14630; NUL: aebrer/dreb issue #352",
        ),
        Rule(
            "no_messages",
            "Invalid 'messages': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            "danny-avila/LibreChat issue #10408; CopilotKit/CopilotKit issue #529",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "blank_tool_name",
            "Invalid 'messages[69].tool_calls[0].function.name': empty string. Expected a string "
            "with minimum length 1, but got an empty string instead.",
            "continuedev/continue issues #11645, #9784 and #5091",
            name_unnamed_calls,
            sure="certain",
        ),
        Rule(
            "name_format",
            "Invalid 'messages[9].tool_calls[0].function.name': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            "mcp-use/mcp-use issue #90; hackers365/xiaozhi-esp32-server-golang issue #268",
            respell_names,
            dialects=OPENAI | {"deepseek", "groq", "cerebras"},
        ),
        Rule(
            "arguments_not_string",
            "Invalid type for 'messages[1].tool_calls[0].function.arguments': "
            "expected a string, but got an object instead.",
            "OpenAI API reference: arguments is a JSON string (Mistral's takes an object, too)",
            make_arguments_object,
            sure="certain",
            except_for=MISTRAL | _UNPAIRED,
        ),
        Rule(
            "input_not_object",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            "Anthropic API reference (its blocks inside a chat message go to it as they are)",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "arguments_not_json",
            "invalid params, invalid function arguments json string, tool_call_id: "
            "call_function_abraty2ssz2_1 (2013)",
            "earendil-works/pi issue #5468",
            make_arguments_object,
            sure="certain",
            dialects=frozenset({"minimax"}),
        ),
        Rule(
            "arguments_cut",
            'The "function.arguments" parameter of the code model must be in JSON format. (vLLM: '
            "Unterminated string starting at: line 1 column 14 (char 13); llama.cpp: Failed to "
            "parse tool call arguments as JSON)",
            "HKUDS/nanobot issue #1487 (DashScope); vllm-project/vllm PR #48922, issue #47761; "
            "ggml-org/llama.cpp issue #22948",
            wrap_cut_arguments,
            dialects=frozenset({"dashscope", "vllm", "llamacpp"}),
        ),
        Rule(
            "string_too_long",
            "Invalid 'messages[5].content': string too long. Expected a string with maximum "
            "length 10485760, but got a string with length 10605342 instead.",
            "Shopify/roast issue #52",
            split_long_strings,
            sure="certain",
            dialects=OPENAI,
        ),
        Rule(
            "null_content",
            "Invalid value for 'content': expected a string, got null.",
            "langchain4j/langchain4j issue #1105; run-llama/llama_index issue #17555; "
            "vercel/ai PR #13744",
            replace_null_content,
            sure="certain",
        ),
        Rule(
            "empty_parts",
            "Param Incorrect: messages[2] assistant content must contain at least one part",
            "farion1231/cc-switch issue #464",
            fill_empty_answer,
            sure="certain",
            dialects=frozenset({"xiaomi"}),
        ),
        Rule(
            "duplicate_call",
            "invalid params, duplicate tool_call id: call_function_bhjpilv3nd53_1",
            "VicBilibily/GCMP PR #120 (MiniMax); elsewhere one of the two results is one too many",
            rename_calls,
            sure="certain",
            except_for=_UNPAIRED,
        ),
        Rule(
            "repeated_call_id",
            "The messages parameter is illegal. Please check the documentation. (1214; MiniMax: "
            "duplicate tool_call id)",
            "MetaGLM/zhipuai-sdk-python-v4 issue #14; VicBilibily/GCMP PR #120; "
            "can1357/oh-my-pi issue #2055",
            rename_repeated_ids,
            dialects=frozenset({"glm", "minimax"}),
        ),
        Rule(
            "id_too_long",
            "Invalid 'messages[11].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but got a string with length 46 instead.",
            "BerriAI/litellm issue #17343; microsoft/autogen issue #6377",
            respell_ids(re.compile(r"[a-zA-Z0-9_.:-]+"), LONGEST_ID),
            sure="certain",
            dialects=OPENAI,
        ),
        Rule(
            "id_format",
            "Tool call id was 38f04d9ea185424a8dc6ed9a88da5 but must be a-z, A-Z, 0-9, with a "
            "length of 9.",
            "jackmpcollins/magentic issue #276; nearai/ironclaw issue #1241 (mistral-large-latest, "
            "March 2026); mistral-common: tokenizers 3 to 11",
            respell_ids_to_nine,
            sure="certain",
            dialects=MISTRAL,
        ),
        Rule(
            "call_unanswered",
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. (Mistral: Not the same number of function calls and "
            "responses)",
            "router-for-me/CLIProxyAPI issue #2798; dust-tt/srchd PR #75 (Kimi); "
            "camel-ai/camel issue #1467 (Mistral)",
            answer_calls,
            sure="certain",
            except_for=_UNPAIRED,
        ),
        Rule(
            "result_late",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Messages "
            "following `tool_use` blocks must begin with a matching number of them.",
            "Amazon-Q-Developer/language-servers PR #1235 (Anthropic's blocks in a chat message)",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "orphan_result",
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'. (Mistral: Unexpected role 'tool' after role 'user'; "
            "MiniMax: tool result's tool id(…) not found; GLM: 1214)",
            "sipeed/picoclaw issue #870; charmbracelet/crush issue #279; "
            "MiniMax-AI/MiniMax-M2 issue #76; lobehub/lobehub issue #11408",
            remove_orphan_results,
            sure="certain",
            except_for=_UNPAIRED,
        ),
        Rule(
            "duplicate_result",
            "Invalid parameter: Duplicate value for 'tool_call_id' of "
            "'call_gmd4tanjXcwOxfPawOnDmq6R', in messages[7] and messages[8].",
            "agno-agi/agno issue #5116; mistral-common: Duplicate tool call id in tool results",
            remove_orphan_results,
            sure="certain",
            except_for=_UNPAIRED,
        ),
        Rule(
            "server_orphan",
            "unexpected `tool_use_id` found in `advisor_tool_result` blocks. Each block must have "
            "a corresponding `server_tool_use` block before it.",
            "anthropics/claude-code issue #64383 (Anthropic's blocks in a chat message)",
            remove_parts,
        ),
        Rule(
            "tool_reference_unknown",
            "Tool reference 'LSP' not found in available tools",
            "anthropics/claude-code issues #78485 and #79970 (Anthropic's blocks in chat)",
            remove_references,
            sure="certain",
        ),
        Rule(
            "too_many_calls",
            "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum "
            "length 128, but got an array with length 200 instead.",
            "openai/openai-dotnet issue #317; github/copilot-cli issue #669",
            split_calls,
            sure="certain",
            dialects=OPENAI,
        ),
        Rule(
            "reasoning_missing",
            "The `reasoning_content` in the thinking mode must be passed back to the API. (Kimi: "
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 2)",
            "mnfst/modelparams.dev issue #29; iOfficeAI/AionUi issue #2746",
            insert_reasoning_placeholder,
            sure="certain",
            dialects=REASONERS,
        ),
        Rule(
            "reasoning_partly_missing",
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "mnfst/modelparams.dev issue #29 (whether the model thinks is not known)",
            insert_reasoning_placeholder,
            dialects=REASONERS,
        ),
        Rule(
            "content_and_calls",
            "Assistant message must have either content or tool_calls, but not both.",
            "langchain-ai/langchain issue #21196; mistral-common: tokenizers 1 to 3",
            remove_text_beside_calls,
            dialects=frozenset({"mistral-v3"}),
        ),
        Rule(
            "empty_answer",
            "Assistant message must have either content or tool_calls, but not none.",
            "OpenHands/OpenHands issue #8685 (mistral-common: only tokenizers 1 and 3)",
            fill_empty_answer,
            dialects=MISTRAL,
        ),
        Rule(
            "system_late",
            "Unexpected role 'system' after role 'assistant'",
            "mistral-common 1.13.1, run by us",
            insert_user_message,
            sure="certain",
            dialects=MISTRAL,
        ),
        Rule(
            "user_after_result",
            "Unexpected role 'user' after role 'tool'",
            "datapizza-labs/datapizza-ai issue #98; BerriAI/litellm issue #17761 (mistral-common "
            "takes it by now)",
            insert_model_message,
            dialects=MISTRAL,
        ),
        # --- templates of open models, and Claude behind a gateway: after a refusal
        Rule(
            "system_not_first",
            "System message must be at the beginning.",
            "ggml-org/llama.cpp issue #20733; QwenLM/Qwen3.8 issue #244; "
            "charmbracelet/crush issue #3050",
            system_order.join_first,
            dialects=frozenset({"llamacpp"}),
            models=system_order.STRICT_TEMPLATES,
        ),
        Rule(
            "roles_alternate",
            "After the optional system message, conversation roles must alternate "
            "user/assistant/user/assistant/...",
            "a chat template's words, as llama.cpp, vLLM and LM Studio pass them on",
            system_order.alternate,
            dialects=frozenset(),
        ),
        system_order.PLACE_BY_GATEWAY,
        Rule(
            "no_user",
            "messages 参数非法。请检查文档。 (1214)",
            "MetaGLM/zhipuai-sdk-python-v4 issue #14",
            insert_first_user,
            dialects=frozenset({"glm"}),
        ),
        Rule(
            "last_not_user",
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            "assistant",
            "mistral-common 1.13.1, run by us",
            append_user_message,
            sure="certain",
            dialects=MISTRAL,
        ),
        Rule(
            "two_answers_last",
            "Cannot have 2 or more assistant messages at the end of the list.",
            "llama.cpp server, run by us",
            append_user_message,
            sure="certain",
            dialects=frozenset({"llamacpp"}),
        ),
        Rule(
            "too_many_tools",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
            "an array with length 325 instead.",
            "vishalmysore/Tools4AI issue #16",
            remove_surplus_tools,
            sure="certain",
            dialects=OPENAI,
        ),
    ),
    scans=(
        scan_unreadable,
        scan_pairing,
        scan_ids,
        scan_repeats,
        scan_counts,
        scan_reasoning,
        scan_contents,
        scan_order,
        system_order.scan_not_first,
        system_order.scan_alternating,
        system_order.scan_misplaced,
        scan_blank_names,
        scan_tool_names(OPENAI_NAME),
        scan_flaws({"json": "arguments_cut"}),
        scan_flaws(
            {
                "null": "null_content",
                "arguments": "arguments_not_string",
                "input": "input_not_object",
                "json": "arguments_not_json",
                "long": "string_too_long",
            }
        ),
        scan_server_results("server tool call"),
        scan_references,
        scan_ends(first_user=False),
    ),
    may_drop_reasoning=may_drop_reasoning,
    dialect_limits=(
        DialectLimit(
            "images",
            1,
            "Model 'moonshotai/kimi-k2.6' supports at most 1 image per prompt.",
            "diegosouzapw/OmniRoute issue #3044 (one host behind OpenRouter; Moonshot's own API "
            "takes more, and has no such row)",
            frozenset({"kimi"}),
            r"^moonshotai/kimi-k2\.6",
        ),
    ),
)

SHAPE = Shape(
    "OpenAI's words for messages[0].role and messages[0].content in public issues",
    ("system", "developer", "user", "assistant", "tool", "function"),
    "Invalid value: '{value}'. Supported values are: 'system', 'assistant', 'user', 'function', "
    "'tool', and 'developer'.",
    "Missing required parameter: '{place}'.",
    "Invalid type for '{place}': expected one of a string or array of objects, but got {value} "
    "instead.",
)
