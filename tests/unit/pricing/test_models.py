"""The table of models: names as clients spell them, windows, and what ``fit`` takes from it."""

from __future__ import annotations

from pathlib import Path

import pytest

import trimtab
from trimtab.errors import InvalidSetting
from trimtab.pricing import models

FILE = Path(models.__file__).with_name("models.txt")


def test_the_table_is_small_and_names_its_source_and_licence() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert len(text.encode()) <= 100_000
    assert "LiteLLM" in text.splitlines()[0]
    assert "MIT License" in text
    assert "Copyright (c) 2023 Berri AI" in text


def test_every_line_of_the_table_can_be_read_and_no_name_stands_twice() -> None:
    text = FILE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    names = [name for line in lines for name in line.partition(" | ")[2].split()]
    assert len(names) == len(set(names)) > 1_500
    for name in names:
        found = models.find(name)
        assert found is not None, name
        assert found.name == name
        assert found.input_tokens > 0


SPELLINGS = [  # (as a client spells it, the row it finds, input tokens)
    ("claude-sonnet-4-5", "claude-sonnet-4-5", 200_000),
    ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5", 200_000),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
    ("bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
    ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
     "claude-sonnet-4-5", 200_000),
    ("vertex_ai/claude-opus-4-5@20251101", "claude-opus-4-5", 200_000),
    ("Claude-Haiku-4-5", "claude-haiku-4-5", 200_000),
    ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", 1_000_000),
    ("claude-opus-4-7", "claude-opus-4-7", 1_000_000),
    ("amazon.nova-pro-v1:0", "nova-pro", 300_000),
    ("gpt-4o-mini-2024-07-18", "gpt-4o-mini", 128_000),
    ("openai/gpt-5.1-2025-11-13", "gpt-5.1", 272_000),
    ("gpt-5.5", "gpt-5.5", 922_000),
    ("github_copilot/gpt-5.5", "github_copilot/gpt-5.5", 272_000),
    ("models/gemini-2.5-pro", "gemini-2.5-pro", 1_048_576),
    ("openrouter/deepseek/deepseek-chat:free", "deepseek-chat", 131_072),
]  # fmt: skip


@pytest.mark.parametrize(("spelled", "name", "tokens"), SPELLINGS)
def test_a_model_is_found_however_its_name_is_spelled(spelled: str, name: str, tokens: int) -> None:
    found = models.find(spelled)
    assert found is not None
    assert (found.name, found.input_tokens) == (name, tokens)


@pytest.mark.parametrize("name", ["", "/", "gpt", "my-own-model", "claud", "x" * 10_000])
def test_a_model_that_is_not_in_the_table_is_not_guessed(name: str) -> None:
    assert models.find(name) is None
    with pytest.raises(InvalidSetting, match=r"no window: .*window=128_000"):
        models.require(name)


FAMILIES = [  # (a model that is not in the table, the nearest of its family)
    ("claude-fable-5-2", "claude-fable-5-1"),
    ("us.anthropic.claude-fable-5-2-20261101-v1:0", "claude-fable-5-1"),
    ("anthropic/claude-opus-9", "claude-opus-5-5"),
    ("claude-sonnet-3-9", "claude-3-7-sonnet"),
    ("deepseek-pro", "deepseek-v4-pro"),
    ("openrouter/deepseek/deepseek-pro", "deepseek-v4-pro"),
    ("gpt-5.99-mini", "gpt-5.4-mini"),
    ("gemini-3.99-flash", "gemini-3.8-flash"),
    ("glm-9", "glm-5.3"),
    ("o9", "o3"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "nearest"), FAMILIES)
def test_an_unknown_version_takes_the_window_of_the_nearest_of_its_family(
    model: str, nearest: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert models.find(model) is None
    relative = models.find(nearest)
    assert relative is not None
    session = trimtab.Session()
    messages: list[dict[str, str]] = [{"role": "user", "content": "hi"}]
    for _ in range(3):
        fitted = session.fit({"model": model, "messages": messages}, format="openai-chat")
        assert fitted.report.limits["window"] == relative.window
        messages = [*messages, {"role": "assistant", "content": "Yes."}, messages[0]]
    (line,) = [record.getMessage() for record in caplog.records]  # it is said once
    assert f"the window of {model} is not in our table: that of {nearest} is taken" in line
    given = trimtab.fit({"model": model, "messages": messages}, window=9_000)
    assert given.report.warnings == ()


@pytest.mark.parametrize(
    ("short", "meant"),
    [("grok-41-fast", "grok-4-1-fast"), ("glm-45-air", "glm-4.5-air"), ("gpt-41", "gpt-4.1"),
     ("deepseek-v32", "deepseek-v3.2"), ("claude-opus-45", "claude-opus-4-5"),
     ("minimax-m21", "minimax-m2.1"), ("gpt41", "gpt-4.1"), ("gpt-41-mini", "gpt-4.1-mini")],
)  # fmt: skip
def test_a_version_without_its_dot_is_found(short: str, meant: str) -> None:
    assert models.require(short).window == models.require(meant).window


@pytest.mark.parametrize(
    ("slip", "advice"),
    [("gpt-99", "say how many tokens"), ("claude4", "did you mean 'claude'")],
)
def test_a_mistyped_version_takes_no_window(slip: str, advice: str) -> None:
    with pytest.raises(trimtab.InvalidSetting, match=advice):
        models.require(slip)


def test_prices_and_cache_minimums_are_those_of_the_providers_page() -> None:
    sonnet, gpt, gemini = (
        models.require(n) for n in ("claude-sonnet-4-5", "gpt-5.6", "gemini-2.5-pro")
    )
    assert (sonnet.input_price, sonnet.output, sonnet.read) == (3.0, 5.0, 0.1)
    assert (sonnet.write, sonnet.write_1h, sonnet.min_cached) == (1.25, 2.0, 1024)
    assert (gpt.write, gpt.tier_tokens, gpt.tier) == (1.25, 272_000, 2.0)
    assert (gemini.write, gemini.min_cached, gemini.tier_tokens) == (None, 2048, 200_000)


# --- what fit takes from it --------------------------------------------------------------------


def said(tokens: int, **more: object) -> dict[str, object]:
    """A request of about so many tokens."""
    return {"messages": [{"role": "user", "content": "word " * tokens}], **more}


def test_fit_without_a_window_takes_the_named_models_and_the_report_says_so() -> None:
    report = trimtab.fit(said(9), model="claude-sonnet-4-5").report
    assert report.limits["window"] == 200_000
    assert report.window_of == "claude-sonnet-4-5"
    assert "window 200,000: claude-sonnet-4-5 in our table of models" in str(report)
    assert report.as_dict()["window_of"] == "claude-sonnet-4-5"


def test_fit_without_a_window_takes_that_of_the_model_the_request_names() -> None:
    report = trimtab.fit(said(9, model="gpt-4o", max_tokens=8_000)).report
    assert (report.limits["window"], report.limits["capacity"]) == (128_000, 120_000)


def test_where_input_and_output_are_apart_the_input_may_take_all_of_its_own() -> None:
    asked = said(9, model="gpt-5.1", max_completion_tokens=4_096)
    limits = trimtab.fit(asked).report.limits
    assert (limits["window"], limits["reserve"], limits["capacity"]) == (400_000, 128_000, 272_000)


def test_a_given_window_or_any_other_limit_keeps_the_table_out_of_it() -> None:
    own = trimtab.fit(said(9, model="gpt-4o"), window=50_000).report
    assert (own.limits["window"], own.window_of) == (50_000, "")
    bytes_only = trimtab.fit(
        said(9, model="gpt-4o"), settings=trimtab.Settings(request_bytes=10**6)
    )
    assert bytes_only.report.window_of == ""


def test_an_unknown_model_without_a_window_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(InvalidSetting, match=r"'gbt-5.1' is not .*did you mean 'gpt-5.1'.*window="):
        trimtab.fit(said(9, model="gbt-5.1"))
    with pytest.raises(InvalidSetting, match="neither one nor a model is named"):
        trimtab.fit(said(9))


def test_a_session_without_a_window_goes_by_the_model_of_each_request() -> None:
    session = trimtab.Session()
    assert session.fit(said(9, model="gpt-4o")).report.limits["window"] == 128_000
    assert session.fit(said(9, model="claude-opus-4-7")).report.limits["window"] == 1_000_000


def test_a_request_above_its_models_window_is_cut_to_it() -> None:
    run = {"type": "function", "function": {"name": "run", "arguments": "{}"}}
    steps = [
        message
        for n in range(40)
        for message in (
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{n}", **run}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} of output\n" * 900},
        )
    ]
    request = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Go."}, *steps]}
    report = trimtab.fit(request).report
    assert report.tokens_before > 128_000 * 0.9
    assert report.tokens_after <= 128_000
    assert "128,000" in report.reason
