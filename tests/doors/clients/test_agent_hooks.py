"""The hook of the OpenAI Agents SDK: items go in as it hands them, what fits comes out.

Knows its data classes by shape; the packages themselves run in world/test_frameworks.py, with
Google's ADK.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

import trimtab
from trimtab.errors import MissingExtra

LINES = "\n".join(f"line {number}: value {number * 7919}" for number in range(110))


@dataclass
class ModelInputData:
    input: list[Any]
    instructions: str | None


@dataclass
class Tool:
    name: str = "read_file"
    description: str = "Read a file."
    params_json_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})


@dataclass
class Agent:
    model: Any = "gpt-5.1"
    tools: tuple[Any, ...] = (Tool(),)


@dataclass
class CallModelData:
    model_data: ModelInputData
    agent: Any = field(default_factory=Agent)
    context: Any = None


def items(calls: int) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": "Read every file. Never delete one."}]
    for n in range(calls):
        found += [
            {"type": "function_call", "call_id": f"c{n}", "name": "read_file", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{n}", "output": f"{n}\n{LINES}"},
        ]
    return found


def asked(given: list[Any]) -> CallModelData:
    return CallModelData(ModelInputData(given, "Be brief."))


def test_items_that_fit_are_the_very_ones_and_long_ones_are_made_to_fit():
    hook = trimtab.clients.call_model_input_filter(window=12_000)
    short = asked(items(1))
    assert hook(short) is short.model_data
    whole = items(20)
    before = copy.deepcopy(whole)
    done = hook(asked(whole))
    assert whole == before  # the SDK's session keeps them
    body = {"model": "gpt-5.1", "instructions": done.instructions, "input": done.input}
    assert trimtab.measure(body).total < 12_000 * 0.9
    assert trimtab.check(body) == ()
    assert done.instructions == "Be brief."
    assert done.input[0] == whole[0]


def test_what_was_cut_stays_cut_on_the_next_turn_of_the_same_conversation():
    hook = trimtab.clients.call_model_input_filter(window=12_000)
    first = hook(asked(items(20))).input
    second = hook(asked(items(21))).input
    assert second[: len(first)] == first


def test_items_that_go_on_from_what_the_server_holds_are_left_alone():
    hook = trimtab.clients.call_model_input_filter(window=5_000)
    chained = asked(items(4)[2:])
    assert hook(chained) is chained.model_data


def test_a_strict_hook_raises_and_says_nothing_was_sent(caplog):
    hook = trimtab.clients.call_model_input_filter(window=60, reserve=0, strict=True)
    with pytest.raises(trimtab.CannotFit):
        hook(asked(items(3)))
    assert "sent" not in caplog.text


def test_what_cannot_fit_is_sent_unchanged_with_a_warning(caplog):
    hook = trimtab.clients.call_model_input_filter(window=60, reserve=0)
    given = asked(items(3))
    assert hook(given) is given.model_data
    assert "sent unchanged: cannot fit" in caplog.text


def test_what_a_hook_did_is_shown_and_a_misspelt_keyword_is_named():
    hook = trimtab.clients.call_model_input_filter(window=12_000)
    hook(asked(items(20)))
    assert trimtab.of(hook).history()
    assert trimtab.of(hook).stats.requests == 1
    with pytest.raises(TypeError, match="did you mean window"):
        trimtab.clients.call_model_input_filter(windw=1)  # type: ignore[call-arg]


def test_the_plugin_names_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.adk.plugins.base_plugin", None)
    with pytest.raises(MissingExtra, match="pip install google-adk"):
        trimtab.clients.adk_plugin(window=8_000)
