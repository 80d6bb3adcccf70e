"""Amazon Bedrock Converse: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.bedrock import answers, format, parts, rules
from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "bedrock",
    aliases=("aws", "amazon", "converse", "boto3"),
    provider="aws.bedrock",
    api_paths=(
        ApiPath("/model/(?P<model>[^/]+)/converse", streams=False, framed=True),
        ApiPath("/model/(?P<model>[^/]+)/converse-stream", streams=True, framed=True),
    ),
    hosts=r"^bedrock-runtime[.-].*\.amazonaws\.com",
    headers={"x-amz": ""},
    is_own=format.is_own,
    system_key="system",
    model_key="modelId",
    detect=format.detect,
    head_keys=format.HEAD_KEYS,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.BedrockRewriter,
    text_part=format.text_part,
    text_message=format.text_message,
    mark_of=format.mark_of,
    results_in_user=True,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    merges_roles=True,  # pairs are checked as if they were merged: the first repair merges them
    places_system=True,
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
    binds_reasoning=rules.binds_thinking,
    drop_block_ops=rules.drop_block_ops,
)
