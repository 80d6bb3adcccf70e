"""Refusals in words and envelopes beside the catalogue's, above all those that sound like size.

Knows texts of providers, gateways and servers.  Where a wrong reading would cut a request that
was short enough, and hold it short for an hour, the wording stands here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trimtab.retry.refusals import classify
from trimtab.retry.refusals.response_errors import error_in_body, event_verdict

DATA = Path(__file__).parents[3] / "support" / "data_files"
AZURE = (
    "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-06-01 "
    "have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after "
    "10 seconds."
)
THROTTLED = "Too many tokens, please wait before trying again."
BURST = '{"error":{"message":"Too many tokens for this minute","code":"limit_burst_rate"}}'
RATES = [
    (200, {"error": {"code": "throttlingException", "message": THROTTLED}}),
    (None, "An error occurred (ThrottlingException) when calling the ConverseStream operation "
           f"(reached max retries: 4): {THROTTLED}"),
    (429, {"message": "Too many tokens per day, please wait before trying again."}),
    (200, {"error": {"code": 429, "message": AZURE}}),
    (None, f"litellm.RateLimitError: AzureException RateLimitError - {AZURE}"),
    (200, {"message": "Tokens per minute limit exceeded - too many tokens processed.",
           "type": "too_many_tokens_error", "param": "quota", "code": "token_quota_exceeded"}),
    (None, {"error_code": "REQUEST_LIMIT_EXCEEDED", "message":
            "Exceeded workspace input tokens per minute rate limit for databricks-claude."}),
    (200, {"error": {"message": "Provider returned error", "code": 429,
                     "metadata": {"raw": BURST, "provider_name": "x"}}}),
    (None, "您的账户已达到速率限制，tokens 每分钟用量超过上限"),
]  # fmt: skip
OTHERS = [
    (400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
    (400, "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our docs at "
          "https://docs.claude.com/en/docs/extended-thinking#max-tokens-and-context-window-size"),
    (422, {"detail": [{"type": "greater_than_equal", "loc": ["body", "top_p"], "input": -1,
                       "msg": "Input should be greater than or equal to 0"}]}),
    (400, {"object": "error", "code": 400, "message":
           "[{'type': 'greater_than', 'loc': ('body', 'n'), 'msg': 'Input should be greater than "
           "0', 'input': 0}]"}),
    (500, {"error": {"message": "context deadline exceeded"}}),
    (500, {"error": "Post \"http://127.0.0.1:34567/completion\": context deadline exceeded "
                    "(Client.Timeout exceeded while awaiting headers)"}),
    (504, [{"error": {"code": 504, "message": "Deadline exceeded",
                      "status": "DEADLINE_EXCEEDED"}}]),
    (408, "Request exceeded the time limit of 600 seconds for this model"),
    (409, "Another request over the same context is running"),
    (400, "Your input exceeds our content policy limits and was flagged"),
    (200, {"error": {"code": 402, "message": "This request requires more credits, or fewer "
                     "max_tokens. You requested up to 64000 tokens, but can only afford 1200."}}),
]  # fmt: skip
FIELDS = {
    "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but "
    "got a string with length 80 instead.": "string_too_long",
    "Invalid 'safety_identifier': string too long. Expected a string with maximum length 64, but "
    "got a string with length 80 instead.": "string_too_long",
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum "
    "tokens value that is lower than 4096.": "output_limit",
    "Could not finish the message because max_tokens or model output limit was reached. Please "
    "try again with higher max_tokens.": "output_limit",
    "messages: Too many messages: maximum is 100,000": "array_too_long",
    "messages: final assistant content cannot end with trailing whitespace": "empty_content",
}
PAIRING = {
    "After the (optional) system message(s), user or tool message(s) should alternate with "
    "assistant message(s).": "bad_order",
    "tool results must be provided for all tool calls in the previous turn": "missing_result",
    "all elements in tool_results must have a matching tool call in the chat history. Size limit "
    "exceeded": "orphan_result",
    "Tool call id call_1 in tool results has no corresponding tool call": "orphan_result",
}
SIZES = {
    "length of prompt_tokens (33000) must be less than max_seq_len (32768).": (32_768, 33_000),
    "max tokens of 200000 exceeded": (200_000, None),
    "输入内容过长，超过模型最大上下文长度 32768": (32_768, None),
    "输入的 tokens 数量超过上限": (None, None),
    "入力が長すぎます。このモデルの最大コンテキスト長は 8192 トークンです。": (None, None),
    "请求的 token 数 41000 超过模型最大上下文长度 32768": (32_768, 41_000),
    "提示词太长，最大支持 32768 tokens，当前 41000 tokens": (32_768, 41_000),
    "對話內容過長，超過上限 32768": (32_768, None),
    "リクエストのトークン数が上限（32768）を超えています。": (32_768, None),
    "Die Anfrage überschreitet die maximale Kontextlänge von 32768 Tokens (angefragt: 41000 "
    "Tokens).": (32_768, 41_000),
    "Die Eingabe ist zu lang: 41.000 Tokens, erlaubt sind 32.768.": (32_768, 41_000),
    "Das Kontextfenster des Modells wurde überschritten.": (None, None),
    "La requête dépasse la longueur maximale du contexte (32768 jetons).": (32_768, None),
    "L'entrée est trop longue : 41000 tokens pour un maximum de 32768.": (32_768, 41_000),
    "324K tokens requested, but limit is 262K (123% overflow)": (262_000, 324_000),
    "Context usage 131% (1.3M of 1M tokens): exceeds the context window": (1_000_000, 1_300_000),
    "Prompt of 210.5k tokens exceeds the 200k context window": (200_000, 210_500),
    "Request has 1.2M tokens, the model's limit is 1,048,576": (1_048_576, 1_200_000),
    "prompt is too long: 105% of the 200K token limit": (200_000, None),
}
THREADS = [json.loads(line) for line in DATA.joinpath("refusal_threads.jsonl").open("rb")]
"""Refusals that users posted in public threads, each with its address; ids and organizations are
cut, and where a thread shows placeholders for numbers, numbers stand."""
HARMLESS = [json.loads(line) for line in DATA.joinpath("harmless_errors.jsonl").open("rb")]
"""Errors that speak of tokens, context and limits, and refuse nothing for its size."""


@pytest.mark.row("X10")
@pytest.mark.parametrize("case", RATES, ids=lambda case: str(case[1])[:40])
@pytest.mark.parametrize("packed", [False, True], ids=["parsed", "bytes"])
def test_a_rate_error_behind_a_200_or_without_a_status_is_no_size(case, packed):
    status, body = case
    if packed:
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    assert classify(status, body).kind == "rate"


@pytest.mark.row("A3")
@pytest.mark.parametrize("case", OTHERS, ids=lambda case: str(case[1])[:40])
def test_values_timeouts_and_money_are_no_size(case):
    assert classify(*case).kind == "other"


@pytest.mark.row("A3")
@pytest.mark.parametrize("text", FIELDS, ids=lambda text: text[:40])
def test_a_maximum_of_one_field_is_no_size(text):
    found = classify(400, {"error": {"message": text, "code": "string_above_max_length"}})
    assert (found.kind, found.rule) == ("invalid_other", FIELDS[text])


@pytest.mark.row("X11")
@pytest.mark.parametrize("text", PAIRING, ids=lambda text: text[:40])
def test_pairing_is_read_in_these_words_too(text):
    found = classify(400, {"message": text})
    assert (found.kind, found.rule) == ("invalid_pairing", PAIRING[text])


@pytest.mark.row("A3")
@pytest.mark.parametrize("text", SIZES, ids=lambda text: text[:40])
def test_size_is_read_in_these_words_too(text):
    found = classify(400, {"error": {"message": text}})
    assert (found.kind, found.limit, found.requested) == ("too_long", *SIZES[text])
    assert classify(429, {"error": {"message": text}}).kind == "rate"


@pytest.mark.row("A3")
@pytest.mark.parametrize("row", THREADS, ids=lambda row: row["url"].removeprefix("https://"))
def test_what_users_posted_is_read_as_it_was_meant(row):
    found = classify(row["status"], row["body"])
    said = {"kind": found.kind, "rule": found.rule, "limit": found.limit,
            "requested": found.requested}  # fmt: skip
    assert said == {**said, **{key: row[key] for key in said if key in row}}


@pytest.mark.row("A3")
@pytest.mark.parametrize("row", HARMLESS, ids=lambda row: row["body"][:50])
@pytest.mark.parametrize("packed", [False, True], ids=["text", "wrapped"])
def test_an_error_that_only_mentions_size_is_none(row, packed):
    body = {"error": {"message": row["body"]}} if packed else row["body"]
    assert not classify(row["status"], body).about_size


@pytest.mark.row("A3")
def test_numbers_in_thousands_are_an_estimate():
    said = "324K tokens requested, but limit is 262K (123% overflow)"
    assert classify(400, said).exactness == "estimate"


@pytest.mark.row("A7")
def test_a_lone_surrogate_is_a_rule_of_its_own():
    said = "The request body is not valid JSON: no low surrogate in string: line 1 column 64132"
    found = classify(400, {"error": {"message": said, "type": "invalid_request_error"}})
    assert (found.kind, found.rule) == ("invalid_other", "lone_surrogate")


@pytest.mark.row("X9")
def test_an_error_that_stands_beside_an_answer_of_200_is_seen():
    status = {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit"}
    answer = {"id": "1", "choices": None, "base_resp": status}
    assert classify(200, error_in_body(json.dumps(answer))).kind == "too_long"
    assert event_verdict(answer) == "refused"
    fine = {"choices": [{"message": {"content": "a"}}], "base_resp": {"status_code": 0}}
    assert error_in_body(json.dumps(fine)) is None
    assert event_verdict(fine) == "content"


@pytest.mark.row("X9")
@pytest.mark.parametrize(
    ("body", "refused"),
    [(b"", True), ("", True), (b"plain text", False), (b"[]", False), (b"{}", False)],
)
def test_an_empty_body_of_200_is_an_error_and_one_without_json_is_an_answer(body, refused):
    found = error_in_body(body)
    assert (found is not None) == refused
    assert not refused or classify(200, found).rule == "no_body"


COMPACTION = {
    "compaction_block_ambiguous": "invalid_other",
    "compaction_block_misplaced": "invalid_other",
    "compaction_content_mismatch": "invalid_other",
    "compaction_incomplete_turn": "invalid_other",
    "compaction_nothing_to_summarize": "invalid_other",
    "compaction_signature_invalid": "invalid_other",
    "compaction_too_many_tool_references": "invalid_other",
    "compaction_tool_changes_mismatch": "invalid_other",
    "compaction_unavailable": "other",
}


@pytest.mark.parametrize("code", COMPACTION)
@pytest.mark.parametrize("streamed", [False, True], ids=["status", "event"])
def test_each_code_of_a_refused_compaction_is_a_rule(code, streamed):
    """As in anthropic 2.12.0, ``types/shared/error_details.py``."""
    error = {"type": "invalid_request_error", "message": "messages.0: see the details.",
             "details": {"error_code": code}}  # fmt: skip
    body = {"type": "error", "error": error, "request_id": "req_1"}
    status = 200 if streamed else 529 if code == "compaction_unavailable" else 400
    found = classify(status, json.dumps(body))
    assert (found.kind, found.rule) == (COMPACTION[code], code)
