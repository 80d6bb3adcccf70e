"""Patterns of error texts and codes, as data, with the kind of refusal of each.

Patterns are loose, so that they also match providers with another wording of the same error.  The
order counts: pairing, then single fields, then size, then rate, because pairing errors mention
lengths and ids, field errors mention maxima, and size errors mention minutes.

Texts arrive in lower case, without quotes and backticks, blanks collapsed, ``tool use`` spelled
``tool_use`` and ``toolUse`` too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trimtab.retry.refusals.field_names import REFUSED
from trimtab.retry.refusals.refusal import Kind, Unit


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """Words (or codes) of one kind; groups named limit, requested, output and param are read."""

    kind: Kind
    rule: str
    words: re.Pattern[str]
    unit: Unit = ""


def _family(kind: Kind, rule: str, words: str, unit: Unit = "") -> ErrorPattern:
    return ErrorPattern(kind, rule, re.compile(words, re.DOTALL), unit)


_RESULT = (
    r"(?:tool[_ -]?results?|\w*tool_result|tool (?:call )?outputs?|"
    r"function[ _](?:call[ _])?(?:outputs?|results?|responses?))"
)
_CALL = r"(?:tool[_ -]?(?:calls?|uses?)|function[ _]calls?|tool_call_ids?|call)"

PAIRING = (
    _family(
        "invalid_pairing", "container_missing", r"container_id is required when there are pending",
    ),
    _family(
        "invalid_pairing", "tool_reference_unknown",
        r"tool[ _]reference \S+ (?:was )?not found|tool_reference\S* .{0,60}not (?:found|declared)",
    ),
    _family(
        "invalid_pairing", "server_unanswered",
        r"tool_use with id srvtoolu\S* .{0,40}without a corresponding|"
        r"tool_use ids? srvtoolu\S* .{0,40}without",
    ),
    _family(
        "invalid_pairing", "server_orphan",
        r"unexpected (?:tool_use_id|id) .{0,60}\b(?!tool_result)\w+_tool_result blocks",
    ),
    _family(
        "invalid_pairing", "duplicate_id",
        r"tool_use ids must be unique|single result\b|multiple tool_result|"
        r"duplicate value for \S*id\b|"
        r"duplicated? (?:value for )?\W?(?:\w+ )?(?:tool|call|item|function)\w*.{0,20}\bids?\b|"
        r"(?:call|item)[_ ]?ids? .{0,60}(?:already exists|is duplicated?|not unique)|"
        r"duplicate (?:item|tool_call|tool_result|function)",
    ),
    _family(
        "invalid_pairing", "bad_order",
        r"unexpected role\b|expected last role|"
        r"roles? (?:must|should) be alternating|(?:must|should) alternate\b|"
        r"(?:must|should) (?:start|begin) with (?:a |an )?user|(?:first|last) message must|"
        r"(?:use|result) blocks cannot be provided in the same turn|"
        r"result does not follow|function call turn comes immediately after|"
        r"(?:2 or more|multiple|two) assistant messages|(?:invalid|wrong) message order|"
        r"roles? must alternate|conversation must alternate|no user (?:query|message)s? found",
    ),
    _family(
        "invalid_pairing", "system_order",
        r"system (?:message|prompt|role)s? (?:must|should|can only|has to|needs to|may only)|"
        r"system (?:message|role)\S* .{0,40}(?:only (?:be )?(?:supported|allowed)|"
        r"not (?:supported|allowed))|"
        r"(?:message|role)\W{0,3} ?.{0,30}\bsystem\W{0,3} .{0,40}(?:must (?:"
        r"be (?!satisfied)|follow|precede|come)|cannot|not (?:allowed|supported|permitted))|"
        r"unknown variant system|top-level system parameter for the initial",
    ),
    _family(
        "invalid_pairing", "bad_order",
        r"^(?:the )?messages (?:参数非法|parameter is (?:illegal|invalid))",
    ),
    _family(
        "invalid_pairing", "missing_result",
        rf"must be followed by (?:a )?(?:tool|function)|no {_RESULT} found|"
        rf"without (?:a )?(?:corresponding |matching )?{_RESULT}|"
        rf"did not find \d+ tool_result|expected {_RESULT} blocks|"
        rf"insufficient tool messages|{_CALL} (?:with id )?(?:\S+ )?(?:has|have|"
        rf"had) no (?:\w+ )?(?:{_RESULT}|response)|"
        rf"missing (?:\w+ )?{_RESULT}|must have a (?:corresponding|matching) {_RESULT}|"
        rf"(?:did|do|does) not (?:have|receive)(?: a)? response|missing results|"
        rf"{_RESULT} must be provided for",
    ),
    _family(
        "invalid_pairing", "missing_result",
        r"(?:same|equal) (?:to the )?number of function|function response parts (?:is|are) equal|"
        r"not the same number of (?:function|tool)",
    ),
    _family(
        "invalid_pairing", "orphan_result",
        rf"must be a response to a prec|unexpected (?:tool_use_id|{_RESULT}|tool_call id)|"
        rf"no (?:matching |corresponding |preceding )?{_CALL} found|"
        r"tool_result blocks .{0,60}exceeds? the number of tool_use|"
        r"function response turn comes immediately after|tool_call_id \S*\s?not found|"
        rf"(?:{_RESULT}|tool message)\S* .{{0,60}}(?:could not be matched|(?:id|"
        rf"call)\S* .{{0,40}}not found|"
        rf"(?:does not|must|without a?) ?(?:match|correspond|preceding))|"
        rf"tool(?: message)? must follow|{_RESULT} must be preceded|"
        rf"{_RESULT}.{{0,20}} (?:must have a|has no) (?:corresponding |matching ){_CALL}|"
        rf"previous message does not contain",
    ),
)  # fmt: skip

FIELDS = (
    _family(
        "invalid_other", "output_limit",
        r"max_?\w*tokens\S* (?:is too large: |: )?(?P<requested>\d+)?.{0,40}?"
        r"(?:> (?P<limit>\d+), which is the maximum|supports at most (?P<limit2>\d+))",
    ),
    _family(
        "invalid_other", "output_limit",
        r"(?<!\+ )(?<!and )max_?\w*tokens (?:\((?P<requested>\d+)\) |for \S+ )?"
        r"(?:(?:must|should) be (?:less "
        r"(?:than )?or equal to|at most|<=|between \d+ and)|cannot exceed|specified .{0,80}? <=|"
        r"exceeds? (?:the )?(?:server|models?|output)(?: \w+)? limit(?: of)?|"
        r"(?:is )?too large: reduce it to) \(?(?P<limit>\d+)|"
        r"(?:valid range of max_?\w*tokens is|"
        r"range of max_?\w*tokens should be) \[1, (?P<limit2>\d+)\]|"
        r"(?:max_?\w*tokens|maximum tokens you requested) exceeds? .{0,30}limit of (?P<limit3>\d+)|"
        r"model output limit was reached",
    ),
    _family(
        "invalid_other", "output_limit",
        r"max_?\w*tokens .{0,60}range is (?:from )?1 \(inclusive\) to (?P<below>\d+) \(exclusive",
    ),
    _family(
        "invalid_other", "lone_surrogate",
        r"no low surrogate|(?:lone|unpaired) \w*\s?surrogate|surrogates? not allowed|"
        r"(?:invalid|unexpected) \w+ surrogate|\bu\+d[89a-f]",
    ),
    _family(
        "invalid_other", "compaction_block_misplaced",
        r"compaction block is not the first|compaction block .{0,40}system message",
    ),
    _family(
        "invalid_other", "compaction_block_ambiguous", r"more than one compaction block",
    ),
    _family("invalid_other", "thinking_binding", r"bound to a different conversation"),
    _family("invalid_other", "thinking_refused", r"cannot pass both content and thinking"),
    _family("invalid_other", "thinking_modified", r"blocks? .{0,60}cannot be modified"),
    _family(
        "invalid_other", "thinking_missing",
        r"expected thinking or redacted_thinking|missing an? (?:\w+ )?thought_?signature|"
        r"reasoning_?content .{0,60}(?:must be passed|missing|required)|missing reasoning_?content|"
        r"must start with a thinking block|in (?:the )?thinking mode must be passed",
    ),
    _family(
        "invalid_other", "thinking_signature",
        r"invalid signature|thinking\.signature|must contain thinking|"
        r"encrypted[_ ]content .{0,120}(?:could not be|cannot be|failed|invalid)|"
        r"(?:corrupted|invalid) thought[_ ]signature|thought[_ ]signature .{0,30}(?:invalid|"
        r"not valid)",
    ),
    _family(
        "invalid_other", "item_without_reasoning",
        r"was provided without its required reasoning",
    ),
    _family("invalid_other", "reasoning_item", r"was provided without its required"),
    _family(
        "invalid_other", "item_not_found",
        r"item with id \S+ not found|previous[_ ]response .{0,60}not found|"
        r"does not support previous_response_id|cannot determine type of item",
    ),
    _family(
        "invalid_other", "toolconfig_missing",
        r"toolconfig field must be|without tools= param|"
        r"(?:tools|toolconfig) (?:must|should) be (?:defined|provided|specified) when|"
        r"must define tools",
    ),
    _family(
        "invalid_other", "prefill",
        r"assistant message prefill|ending with a model turn|must end with a user|"
        r"final message .{0,30}cannot be .{0,12}assistant",
    ),
    _family(
        "invalid_other", "empty_content",
        r"(?:must|cannot|can not|may not|should not|"
        r"must not) be (?:set for )?(?:non-?)?(?:whitespace|empty|"
        r"blank)|"
        r"empty (?:array|list|content|text|message)|is (?:blank|empty)\b|"
        r"expected a string, got null|end with trailing whitespace|"
        r"must contain (?:at least|content|non-whitespace)|"
        r"at least one (?:parts|contents|content|message)|required oneof field|"
        r"must have either content|ensure that every \w+ .{0,20}has content",
    ),
    _family(
        "invalid_other", "cache_control",
        r"ttl=?.{0,4}1h.{0,40}must (?:not come|come before|precede)|"
        r"cache_?(?:control|point)\S* .{0,80}(?:must (?:not come|come|precede|be)|not (?:allowed|"
        r"supported|permitted) (?:in|inside|within))|"
        r"cache_?point .{0,60}(?:tool_?result|nested)",
    ),
    _family(
        "invalid_other", "cache_control",
        r"maximum of (?P<limit>\d+) blocks with cache_?(?:control|point)\D*(?P<requested>\d+)?",
    ),
    _family(
        "invalid_other", "name_format",
        r"\bname\b .{0,60}length less than or equal to (?P<limit>\d+)|"
        r"(?:\bname\b|function_?name)\S*:? .{0,80}(?:(?:should|must|does not) match|"
        r"satisfy regular expression|must be a-z|invalid characters|"
        r"must (?:start with|contain only|consist of)|can only contain)|"
        r"invalid (?:function|tool) name|(?:function|tool) name\S* .{0,60}(?:invalid|not valid|"
        r"illegal)",
    ),
    _family(
        "invalid_other", "id_format",
        r"invalid \S*(?:id|name|call_id)(?:\]|"
        r"\b): string too long\D*(?P<limit>\d+)\D*(?P<requested>\d+)?",
    ),
    _family(
        "invalid_other", "id_format",
        r"member must have length less than or equal to (?P<limit>\d+)|"
        r"\bids? (?:is )?too long|expected an id that|"
        r"id was \S+ but must be(?:.{0,40}length of (?P<limit2>\d+))?|"
        r"(?:should match|must match|must satisfy regular expression|"
        r"does not match) (?:the )?pattern",
    ),
    _family(
        "invalid_other", "string_too_long",
        r"invalid (?:tools|functions|metadata|user|response_format|stop|\w+_(?:key|identifier))\S*"
        r": string too long"
        r"\D*(?P<limit>\d+)\D*(?P<requested>\d+)?",
    ),
    _family(
        "invalid_other", "array_too_long",
        r"(?:array too long|too many (?:messages|tools|functions|stop))\b"
        r"\D*(?P<limit>\d[\d,]*)?\D*(?P<requested>\d+)?",
    ),
    _family(
        "invalid_other", "bad_arguments",
        r"(?:invalid|malformed) (?:function|tool)\S* arguments?|parse tool[_ ]call arguments|"
        r"arguments: expected an? (?:string|object)|"
        r"arguments .{0,60}(?:valid json|not (?:a )?json|in json format|be (?:a )?json)|"
        r"(?:expecting (?:value|property name|. delimiter)|unterminated string|"
        r"invalid (?:control character|\\escape)|extra data)\b.{0,60}line \d+ column \d+",
    ),
    ErrorPattern("invalid_other", "field_refused", REFUSED),
    _family(
        "invalid_other", "document_of_model",
        r"documents? .{0,60}\b(?:assistant|model) messages?\b",
    ),
    _family("invalid_other", "citations_of_user", r"citations .{0,60}\buser messages?\b"),
    _family("invalid_other", "part_type", r"invalid value: (?:input|output)_text\b"),
    _family("other", "timeout", r"deadline exceeded|time limit|processing time|timed? ?out\b"),
    _family(
        "other", "field_value",
        r"input should be (?!.{0,60}\b(?:length|size|tokens)\b)|"
        r"must be (?:greater|less) than \S*budget_?tokens|unsupported value",
    ),
    _family(
        "other", "content_filter",
        r"content[_ -](?:filter|management|policy|moderation)|safety (?:system|filter)|"
        r"content_?policy|was flagged|responsible ?ai",
    ),
)  # fmt: skip

SIZE = (
    _family(
        "too_large", "images",
        r"too many (?:images|documents|media).{0,40}?"
        r"(?P<requested>\d+) \+ (?P<more>\d+) > (?P<limit>\d+)",
        "images",
    ),
    _family(
        "too_large", "images",
        r"image dimensions exceed .{0,60}?(?P<limit>\d+) pixels", "pixels",
    ),
    _family(
        "too_large", "images",
        r"image exceeds .{0,40}?(?P<requested>\d+) bytes > (?P<limit>\d+) bytes", "bytes",
    ),
    _family(
        "too_large", "images",
        r"(?P<requested>\d+) (?:images?|documents?|media)\b[^.\d]{0,60}"
        r"(?:exceed|more than|above|over|max|limit|at most|allow|only)\D{0,60}(?P<limit>\d+)",
        "images",
    ),
    _family(
        "too_large", "images",
        r"(?:image|document|media|file) counts? (?:of |is )?\(?(?P<requested>\d+)\)? .{0,40}?"
        r"(?:exceed|above|over|more than|>)\D{0,40}(?P<limit>\d+)",
        "images",
    ),
    _family(
        "too_large", "images",
        r"(?P<limit>\d+) pdf pages|pdf pages? .{0,60}?(?P<limit2>\d+)|"
        r"maximum (?:number )?of (?P<limit3>\d+) pages", "pages",
    ),
    _family(
        "too_large", "images",
        r"(?:too many (?:images|documents)|image_count|images?).{0,40}?(?:> ?|"
        r"up to )(?P<limit>\d+)|"
        r"(?:at most|up to|only) (?P<limit2>\d+) (?:images?|documents?)|"
        r"(?:maximum|max|limit) (?:number )?of (?P<limit3>\d+) images?|"
        r"(?:too many images|number of images)\b.{0,30}?(?:max\w*|limit|"
        r"request)(?: \w+)? is (?P<limit4>\d+)|"
        r"too many (?:images|documents|media)",
        "images",
    ),
    _family(
        "too_large", "string_too_long",
        r"string too long|string value length|string_above_max_length|"
        r"string (?:length )?exceeds the max",
        "chars",
    ),
    _family("too_large", "opaque", r"^(?:invalid request error)\.?$"),
    _family(
        "too_large", "request_bytes",
        r"(?:payload|body|message|request|content|entity)(?: \w+){0,3}? (?:size|bytes|length|"
        r"too large)"
        r"(?!.{0,80}\b(?:context|tokens?|max_\w+_len|threshold)\b)|max(?:imum)? bytes|"
        r"request (?:exceeds the maximum (?:allowed )?(?:size|number of bytes)|entity too large)|"
        r"(?:size|bytes) .{0,20}exceeds (?:the )?(?:limit|maximum)(?!.{0,80}\b(?:context|"
        r"tokens?)\b)",
        "bytes",
    ),
    _family(
        "too_long", "context_overflow",
        r"cannot truncate to (?P<limit>\d+), required (?P<requested>\d+)", "tokens",
    ),
    _family(
        "too_long", "context_overflow",
        r"(?:context|prompt|input|conversation|message)s?(?: (?:token|text|model))?(?: (?:length|"
        r"size|window|limit|count))*"
        r"\b.{0,60}(?:too (?:long|large|big|many)|exceed|overflow|longer than|larger than|"
        r"greater than|"
        r"over the|does not fit|beyond|reached|not enough)",
        "tokens",
    ),
    _family(
        "too_long", "context_overflow",
        r"(?:exceed\w*|longer than|larger than|greater than|over|too (?:long|large|many)|beyond|"
        r"reached|surpass\w*)"
        r"\b.{0,60}(?:context|(?:prompt|input|sequence|model|max\w*)[ _-](?:max\w* )?(?:length|"
        r"limit|size)|tokens?\b|token limit)",
        "tokens",
    ),
    _family(
        "too_long", "context_overflow",
        r"(?:maximum|max|model s?|model'?s) (?:context|prompt|sequence|input)\w* ?(?:length|"
        r"window|size|limit)|"
        r"reduce (?:the |your )?(?:length of |size of )?(?:the |your )?(?:messages?|prompt|input|"
        r"context)|"
        r"range of input length|context length is only|max length exceeded|"
        r"tokens? .{0,40}must be <=|(?:less|fewer|more) than (?:the )?[\d,]+ (?:tokens|this model)|"
        r"tokens? (?:limit |count |of [\d,]+ )?exceeded|less than max_\w*len|"
        r"contextwindowexceeded|tokens?,? (?:count is [\d,]+ )?but |max (?:input|"
        r"prompt)(?: is|:)|tokens requested,? but|tokens in request more than max|"
        r"tokens exceeds? .{0,30}\bmax\b|requested token count|tokens, the models limit|"
        r"(?:greater|larger|longer|more) than max_\w+_len|"
        r"max_tokens must be at least 1, got -",
        "tokens",
    ),
    _family(
        "too_long", "context_overflow",
        r"(?:[输輸]入|上下文|提示[词詞]|[对對][话話]|[内內]容|[长長]度|tokens?|prompt).{0,40}"
        r"(?:超[过過出限长長]|[过過太][长長])|"
        r"(?:入力|プロンプト|コンテキスト|トークン).{0,40}(?:超え|超過|長すぎ|多すぎ|上限)|"
        r"(?:kontext|eingabe|anfrage|nachricht|prompt|token)\w*\b.{0,60}(?:überschr|zu (?:lang|"
        r"groß|viele))|(?:überschr\w+|zu viele) .{0,60}(?:kontext|token)|"
        r"(?:contexte|entrée|requête|messages?|jetons|tokens|prompt)\b.{0,60}(?:dépass|"
        r"trop (?:long|grand))|(?:dépass\w+|trop de) .{0,60}(?:contexte|jetons|tokens)",
        "tokens",
    ),
)  # fmt: skip

RATE_SIZE = (
    _family(
        "too_long", "rate_tpm_size",
        r"limit:? (?P<limit>\d[\d,]*),(?! used) requested:? (?P<requested>\d[\d,]*)", "tokens",
    ),
    _family(
        "too_long", "rate_tpm_size",
        r"rate limit .{0,80}?of (?P<limit>\d[\d,]*) (?:input )?tokens per min\w*"
        r".{0,250}reduce the prompt",
        "tokens",
    ),
    _family(
        "too_long", "rate_tpm_size", r"required for long context|request too large for", "tokens",
    ),
)  # fmt: skip
"""Rate errors that mean the request is too large; tried instead of ``SIZE`` for status 429."""

RATE = (
    _family(
        "rate", "rate_limit",
        r"limit:? (?P<limit>\d[\d,]*),(?: used:? [\d,]+,)? requested:? (?P<requested>\d[\d,]*)",
        "tokens",
    ),
    _family(
        "rate", "rate_limit",
        r"throttling_?exception|rate_?limit_?error|\brate limit (?:reached|exceeded)|"
        r"token rate limit|limit_burst_rate|per (?:minute|day) (?:rate )?limit|"
        r"(?:tokens|requests) (?:per|for this) (?:minute|hour|day|month)\b|"
        r"(?:retry|again) (?:in|after) \d|wait before trying|"
        r"(?:hour|dai|week|month)ly\b.{0,30}(?:limit|quota|cap\b)|"
        r"(?:速率|频率|每分[钟鐘]).{0,20}(?:限|超)|"
        r"pro minute|par minute|毎分|1分あたり|レート制限|ratenlimit|limite de débit",
    ),
    _family(
        "rate", "rate_limit",
        r"rate[ _-]?limit|quota|too many requests|resource[_ ]exhausted|throttl|try again in|"
        r"retry after|tokens per min|requests per min",
    ),
)  # fmt: skip

CODES: dict[str, tuple[Kind, str, Unit]] = {
    "context_length_exceeded": ("too_long", "context_overflow", "tokens"),
    "exceed_context_size_error": ("too_long", "context_overflow", "tokens"),
    "tokens_limit_reached": ("too_long", "context_overflow", "tokens"),
    "model_max_prompt_tokens_exceeded": ("too_long", "context_overflow", "tokens"),
    "model_context_window_exceeded": ("too_long", "silent_truncation", "tokens"),
    "contextwindowexceedederror": ("too_long", "context_overflow", "tokens"),
    "request_too_large": ("too_large", "request_bytes", "bytes"),
    "raw:error": ("too_large", "opaque", ""),
    "1261": ("too_long", "context_overflow", "tokens"),
    "1214": ("invalid_pairing", "bad_order", ""),
    "string_above_max_length": ("too_large", "string_too_long", "chars"),
    "invalid_encrypted_content": ("invalid_other", "thinking_signature", ""),
    "compaction_block_ambiguous": ("invalid_other", "compaction_block_ambiguous", ""),
    "compaction_block_misplaced": ("invalid_other", "compaction_block_misplaced", ""),
    "compaction_content_mismatch": ("invalid_other", "compaction_content_mismatch", ""),
    "compaction_incomplete_turn": ("invalid_other", "compaction_incomplete_turn", ""),
    "compaction_nothing_to_summarize": ("invalid_other", "compaction_nothing_to_summarize", ""),
    "compaction_signature_invalid": ("invalid_other", "compaction_signature_invalid", ""),
    "compaction_too_many_tool_references": (
        *("invalid_other", "compaction_too_many_tool_references", ""),
    ),
    "compaction_tool_changes_mismatch": ("invalid_other", "compaction_tool_changes_mismatch", ""),
    "compaction_unavailable": ("other", "compaction_unavailable", ""),
}  # fmt: skip
"""Error codes that are enough to classify a refusal if no pattern matches its text."""
