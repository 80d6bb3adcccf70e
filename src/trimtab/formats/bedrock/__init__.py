"""Amazon Bedrock Converse: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.bedrock import answers, format, parts, rules
from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "bedrock",
    # how it is read
    detect=format.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.BedrockRewriter,
    # how it is written
    text_part=format.text_part,
    text_message=format.text_message,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    # what its provider refuses
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
    # how it is recognised, and what it is called
    aliases=("aws", "amazon", "converse", "boto3"),
    provider="aws.bedrock",
    api_paths=(
        ApiPath("/model/(?P<model>[^/]+)/converse", streams=False, framed=True),
        ApiPath("/model/(?P<model>[^/]+)/converse-stream", streams=True, framed=True),
    ),
    hosts=r"^bedrock-runtime[.-].*\.amazonaws\.com",
    headers={"x-amz": ""},
    is_own=format.is_own,
    # where it differs from the others
    system_key="system",
    model_key="modelId",
    head_keys=format.HEAD_KEYS,
    merges_roles=True,  # pairs are checked as if they were merged: the first repair merges them
    results_in_user=True,
    places_system=True,
    mark_of=format.mark_of,
    binds_reasoning=rules.binds_thinking,
    drop_block_ops=rules.drop_block_ops,
)
