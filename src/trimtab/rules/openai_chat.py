"""The rules of OpenAI Chat Completions and of those who speak it, as data.

Knows what each provider refuses and in which words.  Sources: the error texts quoted in public
issues (named in each row), recorded requests (accepted), mistral-common run by us.  Knows no
mechanism; that stands in pairing.py, content.py and chat_*.py.

Accepted although documentation says otherwise, and so in no row: ``tool_calls: []``, ``content:
[]`` beside calls (Mistral), an empty content list (OpenAI), ids like ``functions.get:0`` (Kimi).
"""

from __future__ import annotations

import re

from trimtab.rules.base import Cap, Rule, Table
from trimtab.rules.chat_dialects import (
    LONGEST_ID,
    MISTRAL,
    OPENAI,
    calls_alone,
    let_model_note,
    let_user_begin,
    nine_letters,
    pieces,
    say_something,
    scan_contents,
    scan_counts,
    scan_ids,
    scan_order,
    scan_repeats,
    spare_tools,
    split_calls,
    tell_turns_apart,
)
from trimtab.rules.chat_reasoning import (
    REASONERS,
    may_drop_reasoning,
    placeholder,
    scan_reasoning,
)
from trimtab.rules.content import (
    begin_with_user,
    clean_ids,
    end_with_user,
    ends,
    fill_nulls,
    flaws,
    open_arguments,
    take_parts,
)
from trimtab.rules.names import blank_names, name_calls
from trimtab.rules.pairing import answer_calls, rename_calls, take_out
from trimtab.rules.pairing import scan as pairing

_FREE_IDS = frozenset({
    *("kimi", "glm", "minimax", "xiaomi", "openrouter", "vllm", "llamacpp", "other", *MISTRAL),
})  # fmt: skip
"""Whose ids may be longer than OpenAI's (vLLM makes them 46 long), or are measured otherwise."""

TABLE = Table(
    rows=(
        Rule(
            "no_messages",
            "Invalid 'messages': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            "danny-avila/LibreChat issue #10408; CopilotKit/CopilotKit issue #529",
            begin_with_user,
        ),
        Rule(
            "blank_tool_name",
            "Invalid 'messages[69].tool_calls[0].function.name': empty string. Expected a string "
            "with minimum length 1, but got an empty string instead.",
            "continuedev/continue issues #11645, #9784 and #5091",
            name_calls,
        ),
        Rule(
            "arguments_not_string",
            "Invalid type for 'messages[1].tool_calls[0].function.arguments': "
            "expected a string, but got an object instead.",
            "OpenAI API reference: arguments is a JSON string (Mistral's takes an object, too)",
            open_arguments,
            spares=MISTRAL,
        ),
        Rule(
            "input_not_object",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            "Anthropic API reference (its blocks inside a chat message go to it as they are)",
            open_arguments,
        ),
        Rule(
            "arguments_not_json",
            "invalid params, invalid function arguments json string, tool_call_id: "
            "call_function_abraty2ssz2_1 (2013)",
            "earendil-works/pi issue #5468",
            open_arguments,
            dialects=frozenset({"minimax"}),
        ),
        Rule(
            "string_too_long",
            "Invalid 'messages[5].content': string too long. Expected a string with maximum "
            "length 10485760, but got a string with length 10605342 instead.",
            "Shopify/roast issue #52",
            pieces,
            dialects=OPENAI,
        ),
        Rule(
            "null_content",
            "Invalid value for 'content': expected a string, got null.",
            "langchain4j/langchain4j issue #1105; run-llama/llama_index issue #17555; "
            "vercel/ai PR #13744",
            fill_nulls,
        ),
        Rule(
            "empty_parts",
            "Param Incorrect: messages[2] assistant content must contain at least one part",
            "farion1231/cc-switch issue #464",
            say_something,
            dialects=frozenset({"xiaomi"}),
        ),
        Rule(
            "duplicate_call",
            "invalid params, duplicate tool_call id: call_function_bhjpilv3nd53_1",
            "VicBilibily/GCMP PR #120 (MiniMax); elsewhere one of the two results is one too many",
            rename_calls,
        ),
        Rule(
            "repeated_call_id",
            "The messages parameter is illegal. Please check the documentation. (1214; MiniMax: "
            "duplicate tool_call id)",
            "MetaGLM/zhipuai-sdk-python-v4 issue #14; VicBilibily/GCMP PR #120; "
            "can1357/oh-my-pi issue #2055",
            tell_turns_apart,
            dialects=frozenset({"glm", "minimax"}),
        ),
        Rule(
            "id_too_long",
            "Invalid 'messages[11].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but got a string with length 46 instead.",
            "BerriAI/litellm issue #17343; microsoft/autogen issue #6377",
            clean_ids(re.compile(r"[a-zA-Z0-9_.:-]+"), LONGEST_ID),
            spares=_FREE_IDS,
        ),
        Rule(
            "id_format",
            "Tool call id was 38f04d9ea185424a8dc6ed9a88da5 but must be a-z, A-Z, 0-9, with a "
            "length of 9.",
            "jackmpcollins/magentic issue #276; nearai/ironclaw issue #1241 (mistral-large-latest, "
            "March 2026); mistral-common: tokenizers 3 to 11",
            nine_letters,
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
        ),
        Rule(
            "result_late",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Messages "
            "following `tool_use` blocks must begin with a matching number of them.",
            "Amazon-Q-Developer/language-servers PR #1235 (Anthropic's blocks in a chat message)",
            answer_calls,
        ),
        Rule(
            "orphan_result",
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'. (Mistral: Unexpected role 'tool' after role 'user'; "
            "MiniMax: tool result's tool id(…) not found; GLM: 1214)",
            "sipeed/picoclaw issue #870; charmbracelet/crush issue #279; "
            "MiniMax-AI/MiniMax-M2 issue #76; lobehub/lobehub issue #11408",
            take_out,
        ),
        Rule(
            "duplicate_result",
            "Invalid parameter: Duplicate value for 'tool_call_id' of "
            "'call_gmd4tanjXcwOxfPawOnDmq6R', in messages[7] and messages[8].",
            "agno-agi/agno issue #5116; mistral-common: Duplicate tool call id in tool results",
            take_out,
        ),
        Rule(
            "server_orphan",
            "unexpected `tool_use_id` found in `advisor_tool_result` blocks. Each block must have "
            "a corresponding `server_tool_use` block before it.",
            "anthropics/claude-code issue #64383 (Anthropic's blocks in a chat message)",
            take_parts,
        ),
        Rule(
            "too_many_calls",
            "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum "
            "length 128, but got an array with length 200 instead.",
            "openai/openai-dotnet issue #317; github/copilot-cli issue #669",
            split_calls,
            dialects=OPENAI,
        ),
        Rule(
            "reasoning_missing",
            "The `reasoning_content` in the thinking mode must be passed back to the API. (Kimi: "
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 2)",
            "mnfst/modelparams.dev issue #29; iOfficeAI/AionUi issue #2746",
            placeholder,
            dialects=REASONERS,
        ),
        Rule(
            "content_and_calls",
            "Assistant message must have either content or tool_calls, but not both.",
            "langchain-ai/langchain issue #21196; mistral-common: tokenizers 1 to 3",
            calls_alone,
            dialects=frozenset({"mistral-v3"}),
        ),
        Rule(
            "empty_answer",
            "Assistant message must have either content or tool_calls, but not none.",
            "OpenHands/OpenHands issue #8685",
            say_something,
            dialects=MISTRAL,
        ),
        Rule(
            "system_late",
            "Unexpected role 'system' after role 'assistant'",
            "mistral-common 1.13.1, run by us",
            let_user_begin,
            dialects=MISTRAL,
        ),
        Rule(
            "user_after_result",
            "Unexpected role 'user' after role 'tool'",
            "datapizza-labs/datapizza-ai issue #98; BerriAI/litellm issue #17761 (mistral-common "
            "takes it by now)",
            let_model_note,
            dialects=MISTRAL,
        ),
        Rule(
            "no_user",
            "messages 参数非法。请检查文档。 (1214)",
            "MetaGLM/zhipuai-sdk-python-v4 issue #14",
            begin_with_user,
            dialects=frozenset({"glm"}),
        ),
        Rule(
            "last_not_user",
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            "assistant",
            "mistral-common 1.13.1, run by us",
            end_with_user,
            dialects=MISTRAL,
        ),
        Rule(
            "two_answers_last",
            "Cannot have 2 or more assistant messages at the end of the list.",
            "llama.cpp server, run by us",
            end_with_user,
            dialects=frozenset({"llamacpp"}),
        ),
        Rule(
            "too_many_tools",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
            "an array with length 325 instead.",
            "vishalmysore/Tools4AI issue #16",
            spare_tools,
            dialects=OPENAI,
        ),
    ),
    scans=(
        pairing,
        scan_ids,
        scan_repeats,
        scan_counts,
        scan_reasoning,
        scan_contents,
        scan_order,
        blank_names,
        flaws(
            {
                "null": "null_content",
                "arguments": "arguments_not_string",
                "input": "input_not_object",
                "json": "arguments_not_json",
                "long": "string_too_long",
                "server": "server_orphan",
            }
        ),
        ends(first_user=False, last_user=lambda facts: False),
    ),
    may_drop_reasoning=may_drop_reasoning,
    caps=(
        Cap(
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
