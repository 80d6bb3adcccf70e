"""Gemini generateContent: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.own_tools import CACHED, none_beside
from trimtab.formats.gemini import answers, format, parts, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "gemini",
    # how it is read
    detect=format.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=format.groups,
    table=parts.PARTS,
    rewriter=answers.GeminiRewriter,
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
    aliases=("google", "genai", "google-genai", "generate-content", "vertex", "vertexai"),
    provider="gcp.gemini",
    api_paths=(
        ApiPath("/(?P<model>[^/:]+):generateContent", streams=False),
        ApiPath("/(?P<model>[^/:]+):streamGenerateContent", streams=True, listed=True),
        ApiPath("/(?P<model>[^/:]+):countTokens", fitted=False),
    ),
    hosts=r"^generativelanguage\.googleapis\.com$|aiplatform\.googleapis\.com$",
    headers={"x-goog-": ""},
    needs_parts=True,
    is_own=format.is_own,
    # where it differs from the others
    system_key="systemInstruction",
    model_key="",
    head_keys=format.HEAD_KEYS,
    merges_roles=True,
    results_in_user=True,
    results_alone=True,
    text_at=format.text_at,
    why_no_tool=none_beside(cachedContent=CACHED),
)
