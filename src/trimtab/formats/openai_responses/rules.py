"""The rules of OpenAI Responses, as data.

Sources: quoted error texts, OpenAI's documentation and item types; what was recorded as accepted is
never a violation (an output without its call under ``previous_response_id``, a server's tool search
without output, an empty assistant text, a function output for a tool search, an item with an id and
no reasoning).
"""

from __future__ import annotations

import re

from trimtab.formats.engine.rule import Rule, RuleTable, Shape
from trimtab.formats.openai_responses.format import companions, may_lose_id
from trimtab.formats.openai_responses.id_rules import (
    remove_duplicate_item,
    remove_item_id,
    remove_reasoning,
    scan_items,
)
from trimtab.formats.openai_responses.item_rules import (
    STRICT_ORDER,
    answer_calls,
    insert_first_user,
    make_output_text,
    move_outputs,
    remove_marks,
    rename_call_ids,
    scan_call_ids,
    scan_input,
    scan_marks,
    scan_order,
    scan_pairs,
    shape_item,
    shape_output,
)
from trimtab.formats.openai_responses.items import LONGEST_ID
from trimtab.formats.repair import system_order
from trimtab.formats.repair.content import (
    make_arguments_object,
    replace_null_content,
    respell_ids,
    scan_flaws,
    scan_unreadable,
    unreadable_row,
    wrap_cut_arguments,
)
from trimtab.formats.repair.orphan_results import remove_orphan_results
from trimtab.formats.repair.tool_names import OPENAI_NAME, respell_names, scan_tool_names
from trimtab.transcript.transcript import Transcript

_OPENAI = frozenset({"openai"})


def _earlier_step(transcript: Transcript, number: int) -> bool:
    """Whether a message's reasoning may be dropped, with the ids that refer to it: only in steps
    before the latest.

    If an item must keep its id, its reasoning stays.  DeepSeek requires the reasoning of every
    turn that called a tool.
    """
    messages, groups = transcript.messages, transcript.groups
    if transcript.facts.dialect == STRICT_ORDER or not groups or number >= groups[-1].first:
        return False
    if number + 1 < len(messages) and messages[number + 1].type == "reasoning":
        return False
    if number and messages[number - 1].type == "reasoning":
        return False  # which of the two the next item needs can't be known
    return all(
        messages[other].id is None or may_lose_id(messages[other])
        for other in companions(messages, number)
    )


TABLE = RuleTable(
    rows=(
        unreadable_row(
            "'utf-8' codec can't encode character '\\ud83d': surrogates not allowed",
            "anomalyco/opencode issue #14630; NousResearch/hermes-agent PR #102771",
        ),
        Rule(
            "no_input",
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be "
            "provided.",
            "quoted refusal in public repositories",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "not_an_item",
            "Invalid type for 'input[0]': expected an input item, but got a string instead.",
            "quoted refusal in public repositories",
            shape_item,
            sure="certain",
        ),
        Rule(
            "null_content",
            "Invalid type for 'input[4].content': expected one of an array of objects or string, "
            "but got null instead.",
            "QuantumNous/new-api issue #4776",
            replace_null_content,
            sure="certain",
        ),
        Rule(
            "part_of_speaker",
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            "jeremychone/rust-genai PR #119; jamesrochabrun/SwiftOpenAI issue #136",
            make_output_text,
            sure="certain",
            dialects=_OPENAI,
        ),
        Rule(
            "arguments_not_string",
            "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
            "OpenAI API reference: arguments is a JSON string",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "arguments_cut",
            "Unterminated string starting at: line 1 column 9 (char 8)",
            "vllm-project/vllm issues #47761 and #55495; local-inference-lab/vllm issue #684",
            wrap_cut_arguments,
            dialects=frozenset({}),
        ),
        Rule(
            "name_format",
            "Invalid 'input[3].name': string does not match pattern. Expected a string that "
            "matches the pattern '^[a-zA-Z0-9_-]+$'.",
            "mcp-use/mcp-use issue #90 (the words of chat)",
            respell_names,
            dialects=_OPENAI,
        ),
        Rule(
            "output_type",
            "Invalid type for 'input[0].output': expected one of a string or array of objects, but "
            "got an object instead.",
            "quoted refusal in public repositories; vllm-project/vllm PR #41355",
            shape_output,
            sure="certain",
        ),
        # --- templates of open models, and Claude behind a gateway: after a refusal
        Rule(
            "system_not_first",
            "System message must be at the beginning.",
            "ggml-org/llama.cpp issue #20733; QwenLM/Qwen3.8 issue #244; "
            "lmstudio-ai/lmstudio-bug-tracker issue #2298; lemonade-sdk/lemonade issue #2674",
            system_order.join_first,
            dialects=frozenset({}),
        ),
        system_order.PLACE_BY_GATEWAY,
        Rule(
            "too_many_marks",
            "more than four prompt_cache_breakpoint in one request (words not recorded)",
            "tinyhumansai/tinyagents PR #146 (a request error); langchain4j API documentation, "
            "OpenAiOfficialPromptCacheBreakpoint: up to four; elsewhere the oldest are ignored",
            remove_marks,
            sure="inferred",
        ),
        Rule(
            "encrypted_content",
            "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content "
            "could not be decrypted or parsed.",
            "openai/codex issue #8145; smallmain/vscode-unify-chat-provider issue #178",
            remove_reasoning,
        ),
        Rule(
            "item_id_chars",
            "Invalid 'input[2].id': ''. Expected an ID that contains letters, numbers, "
            "underscores, or dashes, but this value contained additional characters.",
            "anomalyco/opencode issue #25065; langchain-ai/langchainjs issue #11044",
            remove_item_id,
            sure="certain",
            dialects=_OPENAI,
        ),
        Rule(
            "item_id_too_long",
            "Invalid 'input[2].id': string too long. Expected a string with maximum length 64, but "
            "got a string with length 416 instead.",
            "can1357/oh-my-pi issue #284; NousResearch/hermes-agent issue #10788",
            remove_item_id,
            sure="certain",
            dialects=_OPENAI,
        ),
        Rule(
            "item_id_prefix",
            "Invalid 'input[111].id': 'msg_097e…'. Expected an ID that begins with 'fc'.",
            "continuedev/continue issue #11494; openai/codex issue #33176",
            remove_item_id,
            sure="certain",
            dialects=_OPENAI,
        ),
        Rule(
            "duplicate_item",
            "Duplicate item found with id rs_0ad2…. Remove duplicate items from your input and try "
            "again.",
            "OpenRouterTeam/ai-sdk-provider issue #254; vercel/ai PR #13383",
            remove_duplicate_item,
            sure="certain",
        ),
        Rule(
            "call_id_missing",
            "Invalid 'input[4].call_id': empty string. Expected a string with minimum length 1, "
            "but got an empty string instead.",
            "BigPizzaV3/CodexPlusPlus issue #315",
            rename_call_ids,
            sure="certain",
        ),
        Rule(
            "call_id_too_long",
            "Invalid 'input[95].call_id': string too long. Expected a string with maximum length "
            "64, but got a string with length 116 instead.",
            "AnswerDotAI/fastllm issue #45",
            respell_ids(re.compile(r"[a-zA-Z0-9_.:-]+"), LONGEST_ID),
            sure="certain",
        ),
        Rule(
            "duplicate_call",
            "Duplicate function_call_output for call_id 'terminal:0'. Each function_call must have "
            "exactly one matching function_call_output",
            "NousResearch/hermes-agent issue #102629; mnfst/llm-gateway PR #2858",
            rename_call_ids,
            sure="certain",
        ),
        Rule(
            "call_unanswered",
            "No tool output found for function call call_U80UaBc1YfQVSXfZiKGqTvN7.",
            "symgraph/GhidrAssist issue #78",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "calls_interleaved",
            "No tool output found for tool call call-a.",
            "recorded: DeepSeek refused an item between a call and its output; "
            "deepseek-ai/awesome-deepseek-integration issue #740, DeepSeek-V3 issue #1588",
            move_outputs,
            sure="certain",
            dialects=frozenset({STRICT_ORDER}),
        ),
        Rule(
            "orphan_result",
            "No tool call found for function call output with call_id "
            "call_uelfkqtHfJDC4Btqeoozq82e.",
            "continuedev/continue issue #10092",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "duplicate_result",
            "Duplicate function_call_output for call_id 'terminal:0'. Each function_call must have "
            "exactly one matching function_call_output",
            "NousResearch/hermes-agent issue #102629",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "reasoning_alone",
            "Item 'rs_0c3876…' of type 'reasoning' was provided without its required following "
            "item.",
            "continuedev/continue issue #8933",
            remove_reasoning,
            sure="certain",
            dialects=_OPENAI,
        ),
        Rule(
            "reasoning_parted",
            "Item 'rs_0c3876…' of type 'reasoning' was provided without its required following "
            "item.",
            "continuedev/continue issue #8933 (whether outputs of other calls may stand between is "
            "not known)",
            remove_reasoning,
            dialects=_OPENAI,
        ),
        Rule(
            "reasoning_missing",
            "Item 'fc_07b27a…' of type 'function_call' was provided without its required "
            "'reasoning' item: 'rs_07b27a…'.",
            "continuedev/continue issues #10018, #12620; NousResearch/hermes-agent PR #102282",
            remove_item_id,
            dialects=_OPENAI,
        ),
        Rule(
            "reasoning_unlinked",
            "Item 'rs_6863…' of type 'reasoning' was provided without its required following item.",
            "openai/openai-node issue #1567; vercel/ai issue #7099 (the item followed, without id)",
            remove_item_id,
            sure="inferred",
            dialects=_OPENAI,
        ),
    ),
    scans=(
        scan_unreadable,
        scan_pairs,
        scan_order,
        scan_call_ids,
        scan_items,
        scan_marks,
        scan_tool_names(OPENAI_NAME),
        scan_input,
        system_order.scan_not_first,
        system_order.scan_misplaced,
        scan_flaws(
            {
                "item": "not_an_item",
                "null": "null_content",
                "speaker": "part_of_speaker",
                "arguments": "arguments_not_string",
                "json": "arguments_cut",
                "output": "output_type",
                "sealed": "encrypted_content",
            }
        ),
    ),
    may_drop_reasoning=_earlier_step,
)

SHAPE = Shape(
    "OpenAI's words for input[0].role and input[0].content in public issues",
    ("user", "assistant", "system", "developer"),
    "Invalid value: '{value}'. Supported values are: 'assistant', 'system', 'developer', and "
    "'user'.",
    "Missing required parameter: '{place}'.",
    "Invalid type for '{place}': expected one of an array of objects or string, but got {value} "
    "instead.",
    untyped=True,
)
