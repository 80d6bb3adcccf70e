"""A sentence or a file that the user pins stays whole, and comes back where it was cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trimtab
from trimtab.errors import InvalidSetting

FORMATS = ("openai-chat", "anthropic", "openai-responses")
RULE = "The port of the staging server is 7443, and nobody may open another one."


def source(name: str, value: int) -> str:
    return "\n".join([f"# {name}", *(f"CONSTANT_{name}_{n} = {n * value}" for n in range(120))])


def request(turns: int, format: str) -> dict[str, Any]:
    """The third result says the rule among many lines; config.py is read first and edited later."""
    texts = {0: source("config", 1), 2: "\n".join([*["row of a log"] * 90, RULE, *["row"] * 90])}
    calls = {0: ("read_file", {"path": "src/config.py"})}
    edit = {"path": "src/config.py", "old_string": "CONSTANT_config_7 = 7",
            "new_string": "CONSTANT_config_7 = 70"}  # fmt: skip
    calls[4] = ("edit_file", edit)
    texts[4] = "The file was edited."
    steps = []
    for n in range(turns):
        tool, arguments = calls.get(n, ("bash", {"command": f"make part_{n}"}))
        steps.append((f"c{n}", tool, arguments, texts.get(n, source(f"part{n}", n))))
    begin = {"role": "user", "content": "Begin."}
    if format == "openai-responses":
        items: list[Any] = [begin]
        for id, tool, arguments, text in steps:
            items.append({"type": "function_call", "call_id": id, "name": tool,
                          "arguments": json.dumps(arguments)})  # fmt: skip
            items.append({"type": "function_call_output", "call_id": id, "output": text})
        return {"model": "gpt-5.1", "input": items}
    messages: list[Any] = [begin]
    for id, tool, arguments, text in steps:
        if format == "anthropic":
            call = {"type": "tool_use", "id": id, "name": tool, "input": arguments}
            result = {"type": "tool_result", "tool_use_id": id, "content": text}
            messages += [{"role": "assistant", "content": [call]},
                         {"role": "user", "content": [result]}]  # fmt: skip
        else:
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": id, "type": "function", "function": function}
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": id, "content": text}]  # fmt: skip
    return {"model": "claude-sonnet-4-5" if format == "anthropic" else "gpt-5.1",
            "max_tokens": 500, "messages": messages}  # fmt: skip


def session(**keywords: Any) -> trimtab.Session:
    settings = trimtab.Settings(counter="o200k")
    return trimtab.Session(window=12_000, reserve=0, settings=settings, **keywords)


def has(fitted: trimtab.Fitted, text: str) -> bool:
    return json.dumps(text)[1:-1] in json.dumps(fitted.request)


@pytest.mark.parametrize("format", FORMATS)
def test_a_pinned_sentence_stays_with_its_block_through_every_cut(format: str) -> None:
    plain, one = session(), session()
    whole = "\n".join([*["row of a log"] * 90, RULE, *["row"] * 90])
    one.pin(text=RULE)
    for n in range(5, 40, 5):
        assert has(one.fit(request(n, format)), whole), n
        last = plain.fit(request(n, format))
    assert not has(last, whole)
    assert one.pins() == [f"text:{RULE}"]


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_cut_before_comes_back_when_it_is_pinned(format: str) -> None:
    one = session()
    assert not has(one.fit(request(25, format)), source("config", 1))
    one.pin(file="src/config.py")
    for n in (25, 26, 40):
        fitted = one.fit(request(n, format))
        assert has(fitted, source("config", 1)), n
        assert has(fitted, "CONSTANT_config_7 = 70"), n
    one.unpin(file="src/config.py")
    assert not has(one.fit(request(70, format)), source("config", 1))


@pytest.mark.parametrize("format", FORMATS)
def test_what_an_undo_pinned_is_named_by_the_handle_and_goes_with_it(format: str) -> None:
    one = session()
    one.pin(text=RULE)
    edit = one.fit(request(25, format)).report.edits[0]
    one.undo(edit.handle)
    assert one.pins() == [edit.handle, f"text:{RULE}"]
    one.unpin(edit.handle)
    assert one.pins() == [f"text:{RULE}"]


def test_a_pin_outlives_a_restart_and_is_a_conversation_s_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    one = session(store=url)
    one.fit(request(25, "openai-chat"))
    one.pin(file="config.py")
    one.close()
    other = session(store=url)
    assert has(other.fit(request(26, "openai-chat")), source("config", 1))
    elsewhere = request(26, "openai-chat")
    elsewhere["messages"][0]["content"] = "Begin anew."
    assert not has(other.fit(elsewhere), source("config", 1))
    other.close()


def test_a_pin_that_leaves_no_room_gives_way_and_the_report_says_so() -> None:
    one = session()
    body = request(3, "openai-chat")
    body["messages"][2]["content"] = "\n".join(f"line {n} of config" for n in range(9_000))
    one.pin(file="src/config.py")
    fitted = one.fit(body)
    assert any("pins gave way" in warning for warning in fitted.report.warnings)
    assert fitted.tokens_after <= 12_000


def test_a_pin_names_one_thing() -> None:
    for words in ({}, {"text": "a", "file": "b"}, {"ref": "x.0", "text": "a"}):
        with pytest.raises(InvalidSetting, match="one of a ref, text= and file="):
            session().pin(**words)


def test_an_edit_of_a_report_is_pinned_and_unpinned_as_its_handle_is() -> None:
    own = trimtab.Session(window=3_000, reserve=0)
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for n in range(9):
        function = {"name": "read", "arguments": json.dumps({"path": f"{n}.py"})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        text = "\n".join(f"line_{n}_{m} = {m * 7919}" for m in range(90))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": text},
        ]
    edit = own.fit(messages).report.edits[0]
    own.pin(edit)
    assert own.pins() != []
    own.unpin(edit)
    assert own.pins() == []
