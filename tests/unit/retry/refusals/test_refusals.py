"""What a provider's refusal means: the whole catalogue, other wordings, other envelopes.

Knows the catalogue of quoted refusals (support/data_files/provider_errors.jsonl) and how its
kinds map to ours.  Does not know what is done about a refusal.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from trimtab.retry.refusals import Refusal, classify, classify_error, error_texts

SUPPORT = Path(__file__).resolve().parents[3] / "support"
CATALOGUE = [
    json.loads(line)
    for line in (SUPPORT / "data_files" / "provider_errors.jsonl").read_text("utf-8").splitlines()
]
KINDS = {
    "context_overflow": "too_long",
    "context_overflow_output": "too_long",
    "silent_truncation": "too_long",
    "rate_tpm_size": "too_long",
    "request_bytes": "too_large",
    "images": "too_large",
    "string_too_long": "too_large",
    "opaque": "too_large",
    "orphan_result": "invalid_pairing",
    "missing_result": "invalid_pairing",
    "bad_order": "invalid_pairing",
    "duplicate_id": "invalid_pairing",
    "rate_limit": "rate",
}
"""The catalogue's kinds in ours; every other one is ``invalid_other`` with its rule."""
CORRECTED = {
    "image input is not supported": "other",  # unsupported media: no count or size would do
    "tools[5].function.description": "invalid_other",  # a string, but none that may be shortened
}
UNITS = {"KB": 1_000}


FINER = {
    "orphan_result": ("server_orphan",),
    "reasoning_item": ("item_without_reasoning",),
    "bad_order": ("system_order",),
}
"""Kinds of the catalogue that are several rules of ours, as different repairs answer them."""


def wanted_kind(entry):
    for words, kind in CORRECTED.items():
        if words in entry["body"]:
            return kind
    return KINDS.get(entry["kind"], "invalid_other")


def label(entry):
    return f"{entry['provider']}-{entry['kind']}"


@pytest.mark.row("D5")
def test_the_catalogue_is_whole():
    assert len(CATALOGUE) == 161


@pytest.mark.row("D5", "A3")
@pytest.mark.parametrize("entry", CATALOGUE, ids=label)
def test_every_quoted_refusal_is_classified(entry):
    found = classify(entry["status"], entry["body"])
    assert found.kind == wanted_kind(entry), found
    if found.kind not in ("other", "rate") and not entry["kind"].startswith("context_overflow"):
        assert found.rule in (entry["kind"], *FINER.get(entry["kind"], ()))


@pytest.mark.row("A3")
@pytest.mark.parametrize("entry", CATALOGUE, ids=label)
def test_numbers_are_read_where_the_text_has_them(entry):
    hint = entry["limit_regex_hint"]
    told = re.search(hint, entry["body"]) if hint else None
    named = {key: text for key, text in (told.groupdict() if told else {}).items() if text}
    found = classify(entry["status"], entry["body"])
    for group in ("limit", "requested", "output"):
        if group in named:
            unit = UNITS.get(entry["body"][told.end(group) :][:2], 1)
            assert getattr(found, group) == int(named[group].replace(",", "")) * unit
    if "input_lower_bound" in named:
        assert found.exactness == "lower_bound"
    if found.about_size and found.limit is None:
        assert found.exactness == "guess"


OTHER_WORDS = [
    (400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
          "300000 tokens. Please reduce the length of the messages.", "too_long", 272_000, 300_000),
    (400, {"error": {"message": "Please reduce the length of the messages or completion.",
                     "code": "context_length_exceeded"}}, "too_long", None, None),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received "
          "5000. Try using a shorter prompt.", "too_long", 4081, 5000),
    (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
     "too_long", 4096, 5000),
    (400, "The prompt is too long: 140000, model maximum context length: 131071",
     "too_long", 131_071, 140_000),
    (400, "The input (10000 tokens) is longer than the model's context length (8192 tokens).",
     "too_long", 8192, 10_000),
    (400, "Prompt has 9000 tokens but the max input is 8191 tokens", "too_long", 8191, 9000),
    (400, "ValidationException: Too many input tokens. Max input tokens: 8192, request input "
          "token count: 9000", "too_long", 8192, 9000),
    (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
     "too_long", None, None),
    (400, "Requested tokens (9000) exceed context window of 8192", "too_long", 8192, 9000),
    (400, "Unable to submit request because the input token count is 1200000 but model only "
          "supports up to 1048576. Reduce it.", "too_long", 1_048_576, 1_200_000),
    (400, "Your request has 150,000 tokens which is more than the 128,000 this model can handle",
     "too_long", 128_000, 150_000),
    (400, "context length exceeded", "too_long", None, None),
    (429, "Request too large for gpt-4.1 in organization org on input tokens per min (TPM): "
          "Limit 30000, Requested 45000.", "too_long", 30_000, 45_000),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>",
     "too_large", None, None),
    (413, "", "too_large", None, None),
    (400, "The total request size of 25 MB is above the 20 MB limit",
     "too_large", 20_000_000, 25_000_000),
    (400, "Too many images in request. This model supports up to 10 images.",
     "too_large", 10, None),
    (400, "messages: roles must alternate between \"user\" and \"assistant\", but found multiple "
          "\"user\" roles in a row", "invalid_pairing", None, None),
    (400, "Duplicate item found with id rs_123. Remove duplicate items from your input.",
     "invalid_pairing", None, None),
    (400, "Tool call with id call_1 has no corresponding response", "invalid_pairing", None, None),
    (400, "tool_call_id not found in previous messages", "invalid_pairing", None, None),
    (400, "messages.1: all messages must have non-empty content except for the optional final "
          "assistant message", "invalid_other", None, None),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
          "whereas you provided 100000.", "invalid_other", 16_384, 100_000),
    (400, "Thought signature is not valid", "invalid_other", None, None),
    (400, "This model's maximum context limit is 32768. Your request had 40000 tokens.",
     "too_long", 32_768, 40_000),
    (400, "Conversation is too long: 250000 tokens, limit 200000", "too_long", 200_000, 250_000),
    (422, "requested 9000 tokens but max_model_len=8192", "too_long", 8192, 9000),
    (400, "Payload size 5MB exceeds 4MB limit", "too_large", 4_000_000, 5_000_000),
    (400, "Too many images: 25. Maximum is 20", "too_large", 20, None),
    (400, "messages: too many images and documents: 90 + 15 > 100", "too_large", 100, 105),
    (400, "This model's maximum context length is 8192 tokens, see our note 5000.",
     "too_long", 8192, None),
    (400, "Image size 6 MB exceeds limit of 5 MB", "too_large", 5_000_000, 6_000_000),
    (400, "Tool result must be preceded by tool call", "invalid_pairing", None, None),
    (400, "The last message must be from user", "invalid_pairing", None, None),
    (400, "Each message must have at least one content element", "invalid_other", None, None),
    (400, "max_completion_tokens exceeds the model's limit of 8192", "invalid_other", 8192, None),
]  # fmt: skip


@pytest.mark.row("A3")
@pytest.mark.parametrize("case", OTHER_WORDS, ids=lambda case: str(case[1])[:40])
def test_families_hold_for_wordings_that_no_catalogue_has(case):
    status, body, kind, limit, requested = case
    found = classify(status, body)
    assert (found.kind, found.limit, found.requested) == (kind, limit, requested)


EXACTNESS = {
    "prompt is too long: 208310 tokens > 200000 maximum": "exact",
    "this model's maximum context length is 8192 tokens": "exact",
    "this model's maximum context length is 8192 tokens, you sent at least 9000": "lower_bound",
    "this model's maximum context length is 8192 tokens, your prompt has 8193": "lower_bound",
    "this model's maximum context length is 8192 tokens, your prompt has about 9000": "estimate",
    "this model's maximum context length is 8k tokens, your prompt has 9k": "estimate",
    "context length exceeded": "guess",
}


@pytest.mark.row("A3")
@pytest.mark.parametrize("said", EXACTNESS)
def test_how_sure_the_numbers_are_is_read_from_the_words_around_them(said):
    assert classify(400, said).exactness == EXACTNESS[said]


NOT_SIZE = [
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model."),
    (400, "temperature: Input should be less than or equal to 1"),
    (400, "InvalidParameter: Required parameter(model) missing or invalid"),
    (400, "InternalError.Algo.InvalidParameter: The thinking_budget must be a positive integer"),
    (400, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}),
    (400, "tools: Tool names must be unique."),
    (400, "Bad Request"),
    (403, "You have exceeded your token limit for this key"),
    (400, "Safety filter triggered: content blocked"),
    (502, ""),
    (401, "Incorrect API key provided: your prompt is too long"),
    (404, "The model `gpt-9` does not exist or you do not have access to it."),
    (402, "Insufficient Balance"),
    (402, "Too many input tokens for your plan"),
    (408, "Request timed out"),
    (500, "The server had an error while processing your request. Sorry about that!"),
    (503, {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    (200, {"choices": [{"finish_reason": "stop", "message": {"content": "too long"}}]}),
]


@pytest.mark.row("A3")
@pytest.mark.parametrize("case", NOT_SIZE, ids=lambda case: str(case[1])[:40])
def test_what_only_sounds_like_size_is_other_and_passes_through(case):
    assert classify(*case).kind == "other"


RATES = [
    (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 25000, "
          "Requested 6000. Please try again in 2s."),
    (429, "tokens per min (TPM): Limit 30000, Requested 6000"),
    (429, {"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).",
                     "status": "RESOURCE_EXHAUSTED"}}),
    (429, ""),
    (None, {"throttlingException": {"message": "Too many requests, please wait."}}),
]  # fmt: skip


@pytest.mark.row("X10")
@pytest.mark.parametrize("case", RATES, ids=lambda case: str(case[1])[:40])
def test_a_true_rate_error_is_a_rate_error(case):
    assert classify(*case).kind == "rate"


@pytest.mark.row("X10")
def test_requested_above_the_limit_is_size_whatever_the_status():
    said = "tokens per minute (TPM): Limit 6000, Requested {}, please reduce your message size"
    for status in (413, 429):
        assert classify(status, said.format(14810)).kind == "too_long"
        assert classify(status, said.format(6000)).kind == "rate"


OVERFLOW = {"message": "prompt is too long: 208310 tokens > 200000 maximum", "type": "x"}
ENVELOPES = {
    "openai": {"error": OVERFLOW},
    "anthropic": {"type": "error", "error": OVERFLOW, "request_id": "req_1"},
    "google, listed": [{"error": {**OVERFLOW, "code": 400, "status": "INVALID_ARGUMENT"}}],
    "flat": {"object": "error", **OVERFLOW},
    "bedrock": {"message": OVERFLOW["message"]},
    "botocore": {"Error": {"Message": OVERFLOW["message"], "Code": "ValidationException"}},
    "ollama": {"error": OVERFLOW["message"]},
    "bytes": json.dumps({"error": OVERFLOW}).encode(),
    "raw json": {"error": {"message": "Provider returned error", "metadata": {
        "raw": json.dumps({"type": "error", "error": OVERFLOW})}}},
    "raw text": {"error": {"message": "Provider returned error", "metadata": {
        "raw": OVERFLOW["message"]}}},
    "json in the message": {"error": {"message": json.dumps({"error": OVERFLOW})}},
    "json and prose": {"error": {"message": json.dumps({"error": OVERFLOW})
                                 + ". Received Model Group=claude"}},
    "prose and json": f"litellm.BadRequestError: AnthropicException - {json.dumps(OVERFLOW)}",
    "python's print": f"Error code: 400 - {({'error': OVERFLOW})!r}",
    "event": "event: response.failed\ndata: " + json.dumps(
        {"type": "response.failed", "response": {"error": OVERFLOW}}) + "\n\n",
    "data line": "data: " + json.dumps({"error": OVERFLOW}),
    "exception frame": {"validationException": {"message": OVERFLOW["message"]}},
}  # fmt: skip


@pytest.mark.row("A3")
@pytest.mark.parametrize("name", ENVELOPES)
def test_an_error_is_found_in_every_envelope(name):
    found = classify(400, ENVELOPES[name])
    assert (found.kind, found.limit, found.requested) == ("too_long", 200_000, 208_310)


@pytest.mark.row("A3")
def test_pairing_is_asked_before_size_and_fields_before_size():
    both = "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64"
    assert classify(400, f"litellm.ContextWindowExceededError: {both}").rule == "id_format"
    said = 'InternalError.Algo.InvalidParameter: messages with role "tool" must be a response'
    assert classify(400, f'{said} to a preceeding message with "tool_calls".').kind == (
        "invalid_pairing"
    )


BARE = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "ERROR"}}}


@pytest.mark.row("A1")
@pytest.mark.parametrize(
    "error",
    [
        SimpleNamespace(status=400, error=BARE["error"]),
        SimpleNamespace(status_code=400, body=BARE),
        SimpleNamespace(status_code=400, body=BARE["error"]),  # openai 3.x: the inner object
        SimpleNamespace(status_code=400, body=json.dumps(BARE).encode()),
        SimpleNamespace(status_code=400, message=f"Error code: 400 - {BARE!r}"),
    ],
    ids=["status and error", "body", "inner body", "bytes", "text"],
)
def test_a_400_whose_raw_is_exactly_error_is_recognised(error):
    assert classify_error(error) == Refusal("too_large", exactness="guess", rule="opaque")


@pytest.mark.row("A1")
@pytest.mark.parametrize(
    "error",
    [
        None,
        "ERROR",
        {},
        SimpleNamespace(status=500, error=BARE["error"]),
        SimpleNamespace(error=None, status=400, message="no"),
        SimpleNamespace(status=400, error="ERROR"),
        SimpleNamespace(status=400, error={"message": "Provider returned error"}),
        SimpleNamespace(status=400, error={"metadata": None, "message": "x"}),
        SimpleNamespace(status=400, error={"metadata": {"raw": {"a": 1}}, "message": "x"}),
        SimpleNamespace(status=400, error={"metadata": {"raw": "ERROR: quota"}, "message": "x"}),
        SimpleNamespace(status=400, error={"metadata": {"raw": "error"}, "message": "x"}),
    ],
    ids=str,
)
def test_anything_else_is_not_and_nothing_raises(error):
    assert classify_error(error).rule != "opaque"


def test_the_table_has_at_most_eighty_five_patterns():
    tables = (
        error_texts.PAIRING,
        error_texts.FIELDS,
        error_texts.SIZE,
        error_texts.RATE_SIZE,
        error_texts.RATE,
    )
    assert sum(map(len, tables)) + len(error_texts.CODES) <= 85


@pytest.mark.parametrize(
    "body",
    [b"\xff\xfe", "{" * 5_000, "[" * 5_000, {"error": {"error": {"error": {"error": {}}}}}, 7,
     {"error": {"metadata": {"raw": "{" * 100}}}, {1: {2: 3}}, [[[]]], "a" * 1_000_000],
    ids=lambda body: str(body)[:20],
)  # fmt: skip
def test_no_body_however_odd_raises(body):
    assert classify(400, body).kind in ("other", "too_long")


class Inner(Exception):
    """OpenAI's SDK raises an error inside a stream without a status."""

    def __init__(self, body):
        super().__init__(str(body))
        self.body = body


@pytest.mark.row("A1")
def test_without_any_status_a_bare_error_is_none_and_a_status_in_the_body_counts():
    bare = {"metadata": {"raw": "ERROR"}, "message": "Provider returned error"}
    for status in (None, 200, 402, 404, 429, 500, 503):
        assert classify(status, {"error": bare}).rule != "opaque", status
        assert classify(status, bare).rule != "opaque", status
    assert classify_error(Inner(bare)).rule != "opaque"
    for status in (None, 200, 400):
        assert classify(status, {"error": {**bare, "code": 400}}).rule == "opaque"
    assert classify_error(Inner({**bare, "code": 400})).rule == "opaque"
    for code in (402, 429, 500, 502):
        assert classify(200, {"error": {**bare, "code": code}}).rule != "opaque", code
