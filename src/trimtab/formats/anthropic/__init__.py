"""Anthropic Messages: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.anthropic import answers, format, keep_warm, parts, rules
from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format, mark_of, text_message, text_part
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.repair.id_case import with_id_case

_BEDROCK = "/model/(?P<model>[^/]*(?:anthropic|claude)[^/]*)"
_VERTEX = "/publishers/anthropic/models/"

FORMAT = Format(
    "anthropic",
    # how it is read
    detect=format.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.AnthropicRewriter,
    # how it is written
    text_part=text_part,
    text_message=text_message,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    # what its provider refuses
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
    # how it is recognised, and what it is called
    aliases=("claude", "messages", "vertex", "vertexai"),
    provider="anthropic",
    api_paths=(
        ApiPath("/messages"),
        ApiPath("/messages/count_tokens", fitted=False),
        ApiPath(_BEDROCK + "/invoke", streams=False, framed=True),
        ApiPath(_BEDROCK + "/invoke-with-response-stream", streams=True, framed=True),
        ApiPath(_VERTEX + "count-tokens:rawPredict", fitted=False),
        ApiPath(_VERTEX + "(?P<model>[^/:]+):rawPredict", streams=False),
        ApiPath(_VERTEX + "(?P<model>[^/:]+):streamRawPredict", streams=True),
    ),
    hosts=r"(^|\.)anthropic\.com$",
    headers={"anthropic-": "", "x-amz": "anthropic_version"},
    is_own=format.is_own,
    versions=format.VERSIONS,
    version_in=format.version_in,
    facts_in=format.facts_in,
    # where it differs from the others
    system_key="system",
    head_keys=format.HEAD_KEYS,
    merges_roles=True,
    results_in_user=True,
    places_system=True,
    mark_of=mark_of,
    binds_reasoning=rules.binds_thinking,
    warm_request=keep_warm.warm_request,
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
    deferred_tools='"defer_loading": true on each, and a tool_search_tool',
    drop_block_ops=rules.drop_block_ops,
)
