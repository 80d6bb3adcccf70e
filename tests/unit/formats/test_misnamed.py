"""A format that does not exist, or that is not the body's, is named with what was meant."""

from __future__ import annotations

from typing import Any

import pytest
from shapes import SIX, session

import trimtab
from trimtab import InvalidRequest, InvalidSetting

BODIES = {format: session(format, steps=2, lines=3) for format in SIX}
READ_ALIKE = {("anthropic", "openai-chat")}
"""Servers that speak Chat Completions take Anthropic's blocks, so such a body is what is said."""


@pytest.mark.parametrize("as_list", [False, True], ids=["body", "list"])
@pytest.mark.parametrize("given", SIX)
@pytest.mark.parametrize("real", SIX)
def test_a_body_given_as_another_format_is_named_as_what_it_looks_like(
    real: str, given: str, as_list: bool
) -> None:
    body: Any = BODIES[real]
    if as_list:
        body = next(body[key] for key in ("messages", "input", "contents") if key in body)
    if real == given or (real, given) in READ_ALIKE:
        assert trimtab.fit(body, window=10**6, format=given).request is body
        return
    for use in (
        lambda: trimtab.fit(body, window=10**6, format=given),
        lambda: trimtab.check(body, format=given),
        lambda: trimtab.repair(body, format=given),
        lambda: trimtab.Session(window=10**6).fit(body, format=given),
        lambda: trimtab.convert(body, to=real, format=given),
    ):
        with pytest.raises(InvalidRequest, match=f"this looks like {real} .*format='{real}'"):
            use()


@pytest.mark.parametrize("given", SIX)
def test_a_body_that_two_formats_may_read_is_what_its_caller_says(given: str) -> None:
    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Yes?"}]
    last = {"role": "user", "content": "Well."}
    bodies: dict[str, Any] = {
        "openai-responses": {"input": [*talk, last]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]},
        "gemini-interactions": {"input": "Hello."},
        "bedrock": {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]},
    }
    body = bodies.get(given, {"messages": [*talk, last]})
    assert trimtab.fit(body, window=10**6, format=given).request is body


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("openai", "'openai-chat' or 'openai-responses'"), ("OpenAI", "'openai-chat' or"),
        ("chat", "'openai-chat'"), ("openai_chat", "'openai-chat'"), ("responses", "'openai-resp"),
        ("claude", "'anthropic'"), ("Claude", "'anthropic'"), ("antropic", "'anthropic'"),
        ("messages", "'anthropic'"),
        ("google", "'gemini' or 'gemini-interactions'"), ("genai", "'gemini' or"),
        ("Gemini", "'gemini'"), ("gemni", "'gemini'"), ("interactions", "'gemini-interactions'"),
        ("aws", "'bedrock'"), ("converse", "'bedrock'"), ("bedrok", "'bedrock'"),
        ("deepseek", "'openai-chat:deepseek'"), ("ollama", "'openai-chat:llamacpp'"),
        ("azure", "'openai-chat:azure' or 'openai-responses'"),
        ("mistral", "'openai-chat:mistral'"),
    ],
)  # fmt: skip
def test_a_name_of_a_provider_or_a_model_leads_to_its_format(name: Any, meant: str) -> None:
    body = BODIES["openai-chat"]
    for use in (
        lambda: trimtab.fit(body, window=10**6, format=name),
        lambda: trimtab.check(body, format=name),
        lambda: trimtab.recall_tool(name),
    ):
        with pytest.raises(InvalidSetting, match=f"no format '{name}': did you mean {meant}"):
            use()


def test_a_name_near_to_none_lists_them_all() -> None:
    with pytest.raises(InvalidSetting, match="no format 'xyz': choose one of gemini-inter"):
        trimtab.fit(BODIES["gemini"], window=10**6, format="xyz")  # type: ignore[arg-type]
