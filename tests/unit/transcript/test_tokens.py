"""Counting: exact numbers of o200k, the estimate, and inputs that break other counters."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import splintr

from trimtab import interruption
from trimtab.errors import InvalidSetting
from trimtab.transcript import token_sources
from trimtab.transcript.token_sources import Vocabulary, estimate
from trimtab.transcript.tokens import Counter, counter_for

ORDINARY = splintr.Tokenizer.from_pretrained("o200k_base").encode_ordinary


def count_with(
    counter: Any = None, *, model: str | None = "gpt-5", format: str = "openai-chat"
) -> Counter:
    return counter_for(counter, model=model, format=format)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("def f(x):\n    return x + 1\n", 11),
        ('{"a":[1,2,3]}', 9),
        ("你好，世界", 3),
        ("Привет, мир", 4),
        ("👩‍👩‍👧", 8),
        ("    \n\n\t", 2),
        ("<|endoftext|>", 7),  # as a provider reads it in a message: ordinary text
        ("<|im_start|>user", 7),
        ("a\ud83d", 2),  # half an emoji is one U+FFFD
        ("\ud83d\ude00", 1),  # both halves are the emoji
    ],
)
def test_o200k_counts_are_exact(text: str, expected: int) -> None:
    assert expected == count_with("o200k")(text)


def test_counts_equal_the_plain_encoding_on_random_unicode() -> None:
    choose = random.Random(7)
    alphabet = "abcXYZ 019\n\t.,{}[]\"'<|>=-_/\\éßйж你好\u200d\u0301😀👩한\u00a0"
    count = count_with("o200k")
    for _ in range(2000):
        text = "".join(choose.choices(alphabet, k=choose.randint(0, 300)))
        assert len(ORDINARY(text)) == count(text), repr(text)


HARD = {
    "one letter": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "spaces before a letter": " " * 999_999 + "a",
    "newlines": "\n" * 1_000_000,
    "equals signs": "=" * 1_000_000,
    "emoji": "😀" * 250_000,
    "joined emoji": "👩\u200d" * 140_000,
    "joiners": "\u200d" * 330_000,
    "base64": base64.b64encode(random.Random(1).randbytes(750_000)).decode(),
    "chinese": "的" * 330_000,
    "zero bytes": "\0" * 1_000_000,
    "lone surrogates": "\ud83d" * 330_000,
    "special tokens": "<|endoftext|>" * 75_000,
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("counter", ["o200k", "estimate"])
def test_a_megabyte_of_anything_counts_at_most_its_bytes(kind: str, counter: str) -> None:
    text = HARD[kind]
    assert 0 < count_with(counter)(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("kind", HARD)
def test_ten_times_the_text_is_about_ten_times_the_tokens(kind: str) -> None:
    text = HARD[kind]
    count = count_with("o200k")
    assert count(text) == pytest.approx(10 * count(text[: len(text) // 10]), rel=0.02)


def test_scaled_counts_are_rounded_up() -> None:
    counter = count_with("estimate", model="claude-sonnet-4-5")
    assert counter("hello world") == -(-3 * estimate("hello world") // 2)
    assert tuple(counter.scaled(raw) for raw in (0, 1, 4, 10)) == (0, 2, 6, 15)


def test_hidden_thinking_is_charged_by_its_signature_where_the_bill_does() -> None:
    assert count_with(model="claude-fable-5").signature(1000) == 280
    assert count_with(model="claude-opus-4-5").signature(1000) == 0
    assert count_with("o200k", model="claude-fable-5").signature(1000) == 0


def test_a_counter_says_what_it_is() -> None:
    assert count_with("o200k").name == "o200k"
    assert count_with(model="mistral-large-latest").name == "tekken (mistral)"
    assert count_with(model="claude-opus-4-6").name == "o200k, corrected (claude up to 4.6)"
    assert count_with("estimate", model="claude-opus-5").name == "estimate×1.75 (claude from 4.7)"
    assert "unknown" in count_with(model=None, format="anthropic").name
    assert count_with(len).name == "custom (len)"


def test_only_the_models_own_tokenizer_is_exact() -> None:
    assert count_with(model="gpt-5.5").exact
    assert count_with("o200k", model="claude-opus-5").exact
    for model in ("claude-opus-4-5", "minimax-m2", "gemini-3-pro", None):
        assert not count_with(model=model).exact, model
    assert not count_with("estimate").exact


def test_versions_differ_where_counts_do() -> None:
    counters = [count_with(c, model=m) for c in (None, "estimate") for m in ("gpt-5", "claude-5")]
    assert len({c.version for c in counters}) == 4
    assert counters[0].version == count_with(None, model="o3").version


def test_a_counter_is_taken_as_it_is() -> None:
    counter = count_with(model="claude-opus-4-5")
    assert count_with(counter, model="gpt-5") is counter


@pytest.mark.parametrize("bad", ["tiktoken", "", 4, 1.5, ["o200k"]])
def test_an_unknown_counter_names_the_valid_ones(bad: Any) -> None:
    with pytest.raises(InvalidSetting, match="'o200k', 'estimate' or a function"):
        count_with(bad)


class Panic(BaseException):
    """What a panic in Rust looks like from Python."""


def raises(error: BaseException) -> Callable[[str], int]:
    def count(text: str) -> int:
        raise error

    return count


@pytest.mark.parametrize(
    "broken",
    [
        raises(ValueError("no")),
        raises(Panic("regex")),
        lambda text: -1,
        lambda text: 2.0,
        lambda text: None,
        lambda text: True,
        lambda text: [1, 2],
    ],
)
def test_a_broken_function_falls_back_to_the_models_default(broken: Any) -> None:
    counter = count_with(broken, model="claude-opus-4-5")
    assert counter.exact
    assert counter("hello world") == count_with(model="claude-opus-4-5")("hello world")
    assert counter.failures == 1
    assert not counter.exact


def test_only_the_texts_that_a_function_cannot_count_fall_back() -> None:
    counter = count_with(lambda text: 100 // (len(text) % 2))
    assert [counter(text) for text in ("abc", "good night", "x")] == [100, 2, 100]
    assert counter.failures == 1


def test_an_interrupt_is_never_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        count_with(raises(KeyboardInterrupt()))("hello")


def test_a_long_text_is_counted_once() -> None:
    calls: list[str] = []

    def count(text: str) -> int:
        calls.append(text)
        return len(text)

    counter = count_with(count)
    for _ in range(3):
        assert counter("ab" * 1000) == 2000
    assert len(calls) == 1


def test_the_memory_of_counted_texts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_sources, "MEMO_MAX_CHARS", 10_000)
    calls: list[str] = []
    counter = count_with(lambda text: calls.append(text) or 1)
    texts = [str(i) * 1000 for i in range(20)]
    for text in texts:
        counter(text)
    counter(texts[-1])
    assert len(calls) == 20, "the newest is remembered"
    counter(texts[0])
    counter("x" * 5000)
    counter("x" * 5000)
    assert len(calls) == 23, "neither the oldest nor an oversized one is"


def test_clearing_the_vocabulary_cache_changes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"line {i} of a longer file\n" * 40 for i in range(50)]
    expected = [len(ORDINARY(text)) for text in texts]
    monkeypatch.setattr(token_sources, "CACHE_MAX_CHARS", 2_000)
    assert expected == [count_with("o200k")(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 40, 401),
        ("    def width(self, limit: int) -> int:\n        return self.total - limit\n" * 40, 760),
        ('{"id": 1234, "name": "abc", "ok": true}\n' * 40, 720),
        ("2026-01-02 10:11:12,345 INFO worker-3 request /api/items/77 done in 12 ms\n" * 40, 1200),
    ],
)
def test_the_estimate_is_near_and_rather_high(text: str, exact: int) -> None:
    assert exact == count_with("o200k")(text)
    assert 0.9 * exact <= estimate(text) <= 1.6 * exact


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_without_splintr_the_estimator_counts_and_the_name_says_so() -> None:
    text = "hello world, " * 30
    out = run(
        "import sys; sys.modules['splintr'] = None\n"
        "from trimtab.transcript.tokens import counter_for\n"
        "c = counter_for(None, model='gpt-5', format='openai-chat')\n"
        f"print(c({text!r}), c.exact, c.version, c.name, sep='|')"
    )
    name = "estimate (splintr-rs cannot be loaded)"
    assert f"{estimate(text)}|False|{name}/1×1.0|{name}" == out


def test_the_vocabulary_is_loaded_on_the_first_count_only() -> None:
    out = run(
        "import sys\n"
        "from trimtab.transcript.tokens import counter_for\n"
        "c = counter_for(None, model='gpt-5', format='openai-chat'); c.name, c.exact, c.version\n"
        "before = 'splintr' in sys.modules; c('x')\n"
        "print(before, 'splintr' in sys.modules)"
    )
    assert out == "False True"


@pytest.mark.parametrize(
    "text", ["x" * 600_000, "汉" * 600_000, "a line\n" * 100_000, "[1]\n" * 150_000], ids=len
)
def test_a_long_text_is_counted_in_pieces_and_may_be_interrupted(text, monkeypatch):
    """Splintr keeps all other threads waiting, for seconds where there is no space."""
    assert "".join(token_sources.pieces(text)) == text
    assert max(map(len, token_sources.pieces(text))) <= token_sources.PIECE_CHARS
    source, whole = (Vocabulary("o200k", "o200k_base") for _ in range(2))
    monkeypatch.setattr(token_sources, "PIECE_CHARS", 10_000_000)
    exact = whole.measure(text)
    monkeypatch.undo()
    assert 0 <= source.measure(text) - exact <= 3

    def stop():
        raise interruption.Interrupted

    with interruption.stopped_by(stop), pytest.raises(interruption.Interrupted):
        source.measure(text)
