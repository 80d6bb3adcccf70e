"""Refusals for the length of one field (a name, a URL, an audio file), and for the request's.

The two are worded alike.  A limit of 64 characters taken for a window would cut every request that
follows; an overflow taken for a field would go to the caller.
"""

from __future__ import annotations

import json
import time

import pytest

from trimtab.retry.refusals import classify, plain
from trimtab.retry.refusals.field_lengths import is_of_one_field

CALL = "id_format"
TEXT = "string_too_long"
FIELDS = {
    "Tool name exceeds the maximum length of 64 characters": CALL,
    "Function name exceeds maximum length of 64": CALL,
    "tool name is too long (max length: 64)": CALL,
    "Invalid request: tool_call_id exceeds maximum length of 40 characters": CALL,
    "messages.2.tool_calls.0.function.name: exceeds maximum length 64": CALL,
    "The function description exceeds the maximum length of 1024 characters.": TEXT,
    "user id exceeds maximum length of 64": TEXT,
    "prompt_cache_key exceeds maximum length of 64": TEXT,
    "Failed to download image: URL exceeds the maximum length of 2048 characters": TEXT,
    "The audio file is too long: 30 minutes, maximum length is 25 minutes": TEXT,
    "audio duration 1800 seconds exceeds maximum input length of 1500 seconds": TEXT,
    "The video exceeds the maximum length of 3600 seconds": TEXT,
    "Input is too long: 95 s, the maximum length is 90 s": TEXT,
    "The length of stop word exceeds the maximum length of 16": TEXT,
    "Filename exceeds maximum length of 255": TEXT,
    "System prompt exceeds maximum length of 1000 characters": TEXT,
    "Thread title exceeds maximum length of 200": TEXT,
    "Metadata size exceeds the limit of 16 KB": TEXT,
    "The JSON schema is too large: it exceeds the maximum size of 64 KB": TEXT,
    "tools.0.input_schema: property name exceeds the maximum length of 64": TEXT,
    "The input field 'subject' exceeds the maximum length of 255": TEXT,
    "messages[2].name exceeds the maximum length of 64 characters": TEXT,
    "Prompt ID exceeds max length 40": TEXT,
    "Conversation title too long, max length 100": TEXT,
    "The access token exceeds the maximum length of 2048 characters": TEXT,
    "Request Header Or Cookie Too Large": TEXT,
    "Request URL length exceeds 8192": TEXT,
    "Max length exceeded for the field label: 300": TEXT,
    "The language code exceeds maximum length of 8": TEXT,
    "The comment exceeds the maximum length of 500 characters": TEXT,
    "Requête invalide : le titre dépasse 255 caractères": TEXT,
    "Der Name des Werkzeugs in der Anfrage überschreitet die maximale Länge von 64 Zeichen": TEXT,
    "Die Anfrage enthält eine URL, die zu lang ist (maximal 2048 Zeichen)": TEXT,
    "工具名称长度超过限制，最大长度 64 个字符": TEXT,
    "函数描述内容过长，最多 1024 个字符": TEXT,
    "用户 ID 长度超过最大长度 64": TEXT,
    "請求標題長度超過上限 255 字元": TEXT,
    "ツール名が長すぎます。入力の上限は 64 文字です": TEXT,
    "入力の関数名の長さが上限 64 を超えています": TEXT,
}
SIZES = {
    "La requête dépasse la longueur maximale du contexte (131204 jetons, maximum 128000)":
        (128_000, 131_204),
    "La requête dépasse la longueur maximale du contexte (128000 jetons)": (128_000, None),
    "The request exceeds the maximum context length (131204 tokens, limit 128000)":
        (128_000, 131_204),
    "Die Anfrage überschreitet die maximale Kontextlänge (131204 Tokens, maximal 128000)":
        (128_000, 131_204),
    "输入超过最大上下文长度（131204 tokens，最大 128000）": (128_000, 131_204),
    "Prompt exceeds max length": (None, None),
    "prompt length 140000 exceeds maximum length of 131072": (131_072, 140_000),
    "The input length of the messages exceeds the maximum length of 65536": (65_536, None),
    "messages: the longest exceeds the maximum length": (None, None),
    "Range of input length should be [1, 30720]": (30_720, None),
    "Prompt exceeds maximum length of 32000 characters": (None, None),
    "Sequence length 90 exceeds max length 77": (77, 90),
    "model max length exceeded, max length: 512": (512, None),
    "The request with its tool descriptions exceeds the maximum length of 32768": (32_768, None),
    "The combined length of system prompt, tool descriptions and messages exceeds the maximum "
    "length of 131072": (131_072, None),
    "Tool names and descriptions are too long: 140000 tokens > 131072 maximum": (131_072, 140_000),
    "The tool schema exceeds the context window of 8192 tokens": (8_192, None),
    "The prompt of user id 1234 exceeds the maximum length of 131072": (131_072, None),
    "Prompt (request id: 77af) exceeds the maximum length of 131072": (131_072, None),
    "model name: deepseek-chat. prompt exceeds maximum length 65536": (65_536, None),
    "Requests with API key 77af exceed the maximum prompt length of 131072": (131_072, None),
    "User id 77af exceeds the maximum prompt length of 131072": (131_072, None),
    "Request id 77af: input exceeds the maximum length of 131072": (131_072, None),
    "Input exceeds the maximum length of 131072 for model name deepseek-chat": (131_072, None),
    "Input text with name and description exceeds model maximum length of 512": (512, None),
    "Field 'messages' exceeds the maximum length of 131072": (131_072, None),
    "System prompt exceeds maximum length of 32768": (32_768, None),
    "video input of 1200000 tokens exceeds the maximum number of tokens 1048576":
        (1_048_576, 1_200_000),
    "L'entrée, avec le nom et la description des outils, est trop longue : 41000 jetons, maximum "
    "32768": (32_768, 41_000),
    "请求 ID abc：提示词长度超过最大长度 32768": (32_768, None),
    "对话内容过长，最多 20000 个字符": (None, None),
    "入力が長すぎます。上限は 8192 文字です": (None, None),
    "用户输入长度超过最大长度 32768": (32_768, None),
    "The messages field is too long": (None, None),
    "The prompt parameter is too long": (None, None),
    "The `input` field is too large": (None, None),
    "'messages' parameter is too long: 200000 characters, max 100000": (None, None),
    "The messages property was too large": (None, None),
    "Exceeded maximum length of 100000 characters": (None, None),
    "Max length exceeded: 32000 characters": (None, None),
}  # fmt: skip


@pytest.mark.row("A3")
@pytest.mark.parametrize("text", FIELDS, ids=lambda text: text[:40])
@pytest.mark.parametrize("code", ["invalid_request_error", "string_above_max_length"])
def test_the_length_of_one_field_is_no_size_and_teaches_no_limit(text, code):
    found = classify(400, json.dumps({"error": {"message": text, "code": code}}))
    assert (found.kind, found.rule, found.limit) == ("invalid_other", FIELDS[text], None)


@pytest.mark.row("A3")
@pytest.mark.parametrize("text", SIZES, ids=lambda text: text[:40])
def test_the_length_of_the_request_is_size_whatever_fields_it_mentions(text):
    found = classify(400, json.dumps({"error": {"message": text}}))
    assert (found.kind, found.limit, found.requested) == ("too_long", *SIZES[text])


@pytest.mark.row("A3")
def test_a_limit_in_megabytes_is_of_the_request():
    for text in ("Total size in bytes exceeds the limit of 50 megabytes",
                 "Image url too large: request size exceeds 20 MB"):  # fmt: skip
        assert classify(400, text).kind == "too_large"


@pytest.mark.row("A3")
def test_a_code_of_overflow_outweighs_a_field_in_the_text():
    said = {"message": "The description exceeds the limit", "code": "context_length_exceeded"}
    assert classify(400, {"error": said}).kind == "too_long"


OVERLOADED = [
    "maximum context length service overloaded, tokens 100 > 50",
    "Service unavailable: long context pool of 8 servers has 120000 tokens > 100000 maximum",
    "CUDA out of memory: prompt of 40000 tokens, maximum context length 32768",
]


@pytest.mark.row("A3")
@pytest.mark.parametrize("text", OVERLOADED, ids=lambda text: text[:40])
def test_numbers_in_an_error_of_an_overloaded_server_are_no_size(text):
    assert classify(503, {"error": {"message": text}}).kind == "other"


@pytest.mark.row("A3")
def test_an_overflow_sent_as_an_error_of_the_server_is_size():
    said = "Internal server error: prompt is too long: 200348 tokens > 200000 maximum"
    assert classify(500, {"error": {"message": said}}).limit == 200_000


@pytest.mark.parametrize("words", ["prompt of name ", "name of the ", "length of id ", "x" * 9])
def test_no_text_takes_long_to_judge(words):
    start = time.perf_counter()
    is_of_one_field(plain(words * 4_000))
    assert time.perf_counter() - start < 1
