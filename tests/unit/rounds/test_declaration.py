"""Which requests get our tools, and where these are put.  Knows requests of all formats."""

from __future__ import annotations

import copy
import json

import pytest

from trimtab.formats import FORMATS
from trimtab.formats.engine import own_tools
from trimtab.jsontext import paths, splicing
from trimtab.rounds import declaration
from trimtab.rounds.declaration import declaring, why_undeclared
from trimtab.sessions.recall_tool import NAME, recall_tool

READ = {"name": "read", "parameters": {"type": "object"}}
TOOLS = {
    "openai-chat": {"tools": [{"type": "function", "function": READ}]},
    "openai-responses": {"tools": [{"type": "function", **READ}]},
    "anthropic": {"tools": [{"name": "read", "input_schema": {"type": "object"}}]},
    "bedrock": {"toolConfig": {"tools": [{"toolSpec": {"name": "read"}}]}},
    "gemini": {"tools": [{"functionDeclarations": [READ]}]},
    "gemini-interactions": {"tools": [{"type": "function", **READ}]},
}
LISTS = {"openai-responses": "input", "gemini": "contents", "gemini-interactions": "input"}
KEPT = {"gemini-interactions": {"store": False}}
EVERY = pytest.mark.parametrize("format", FORMATS)


def body(format, offers=True, **more):
    own = {**(TOOLS[format] if offers else {}), **KEPT.get(format, {}), **more}
    return {LISTS.get(format, "messages"): [], **own}


def why(format, given, alone=True):
    return why_undeclared(format, given, [NAME], alone=alone)


@EVERY
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "none"])
def test_our_tool_stands_behind_the_client_s_own_and_nothing_else_changes(format, tools):
    given = body(format, tools)
    before = copy.deepcopy(given)
    definition = recall_tool(format).definition
    ops = declaring(format, given, [definition])
    made = paths.apply(given, ops)
    assert given == before
    assert json.loads(splicing.splice(json.dumps(given), ops)) == made
    text = json.dumps(made)
    assert text.count(f'"name": "{NAME}"') == 1
    assert text.index(f'"name": "{NAME}"') > text.find('"name": "read"')
    assert why(format, made) == declaration.OWN
    if format == "gemini":
        assert len(made["tools"]) == 1, "Vertex takes one tool that holds functions"


@EVERY
def test_a_request_without_tools_gets_ours_only_where_it_is_wished(format):
    assert why(format, body(format, offers=False)) == ""
    assert why(format, body(format, offers=False), alone=False) == declaration.INTERNAL
    assert why(format, body(format), alone=False) == ""


DEMANDS = [
    ("openai-chat", {"tool_choice": "required"}),
    ("openai-chat", {"tool_choice": "any"}),
    ("openai-responses", {"tool_choice": "required"}),
    ("anthropic", {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
    ("bedrock", {"toolConfig": {**TOOLS["bedrock"]["toolConfig"], "toolChoice": {"any": {}}}}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
    ("gemini-interactions", {"generation_config": {"tool_choice": "any"}}),
]
FREE = [
    ("openai-chat", {"tool_choice": "auto"}),
    ("openai-chat", {"tool_choice": {"type": "function", "function": {"name": "read"}}}),
    ("openai-responses", {"tool_choice": {"type": "allowed_tools", "mode": "required"}}),
    ("anthropic", {"tool_choice": {"type": "tool", "name": "read"}}),
    ("anthropic", {"tool_choice": {"type": "none"}}),
    ("bedrock", {"toolConfig": {**TOOLS["bedrock"]["toolConfig"],
                                "toolChoice": {"tool": {"name": "read"}}}}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {
        "mode": "ANY", "allowedFunctionNames": ["read"]}}}),
    ("openai-chat", {"n": 1}),
    ("openai-chat", {"n": None}),
    ("openai-responses", {"background": False}),
]  # fmt: skip
BESIDE = [
    ("openai-chat", {"n": 2}, declaration.SEVERAL),
    ("openai-chat", {"functions": [READ]}, own_tools.FUNCTIONS),
    ("openai-chat", {"prediction": {"type": "content"}}, own_tools.PREDICTED),
    ("openai-responses", {"background": True}, own_tools.LATER),
    ("openai-responses", {"conversation": "conv_1"}, own_tools.STATE),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}}, own_tools.PROMPT),
    ("gemini", {"cachedContent": "cachedContents/1"}, own_tools.CACHED),
    ("gemini", {"tools": [{"googleSearch": {}}]}, declaration.BUILT_IN),
]


@pytest.mark.parametrize(("format", "more"), DEMANDS)
def test_a_demanded_call_has_to_be_one_of_the_client_s_tools(format, more):
    assert why(format, body(format, **more)) == declaration.REQUIRED


@pytest.mark.parametrize(("format", "more"), FREE)
def test_a_choice_that_never_falls_on_ours_leaves_it_in_place(format, more):
    assert why(format, body(format, **more)) == ""


@pytest.mark.parametrize(("format", "more", "reason"), BESIDE)
def test_beside_what_takes_no_tool_there_is_none(format, more, reason):
    assert why(format, body(format, **more)) == reason
