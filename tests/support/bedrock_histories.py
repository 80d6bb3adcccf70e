"""Converse histories: from the hard cases, and made up in every state clients bring them.

Knows the wire format; does not know the library under test.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

MODELS = (
    *("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.anthropic.claude-opus-4-6-v1"),
    *("anthropic.claude-opus-5-5-v1:0", "us.amazon.nova-pro-v1:0", "moonshot.kimi-k2-thinking"),
    *("us.meta.llama3-3-70b-instruct-v1:0", "mistral.mistral-large-2402-v1:0"),
    "us.deepseek.r1-v1:0",
)
POINT = {"cachePoint": {"type": "default"}}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"text": words}


def use(call_id: str, arguments: Any = None, tool: str = "Read") -> dict[str, Any]:
    """A call."""
    arguments = {"path": "a.py"} if arguments is None else arguments
    return {"toolUse": {"toolUseId": call_id, "name": tool, "input": arguments}}


def result(call_id: str, *content: Any, **more: Any) -> dict[str, Any]:
    """A result: "ok" where no content is given."""
    return {"toolResult": {"toolUseId": call_id, "content": list(content) or [text("ok")], **more}}


def thought(words: str, signature: str | None = "c2lnbmVk") -> dict[str, Any]:
    """A reasoning block; ``None``: unsigned."""
    signed = {"signature": signature} if signature is not None else {}
    return {"reasoningContent": {"reasoningText": {"text": words, **signed}}}


def user(*content: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": list(content)}


def model(*content: Any) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": list(content)}


def document(kind: str, data: str = "JVBERi0xLjQK") -> dict[str, Any]:
    """A document block of this format."""
    return {"document": {"name": "Report", "format": kind, "source": {"bytes": data}}}


IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo" * 40}}}
TOOLS = {
    "tools": [
        {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}
        for name in ("Read", "Bash")
    ]
}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request to Claude 4.5 with tools declared, unless said otherwise."""
    keys = {"modelId": MODELS[0], "messages": list(messages), "toolConfig": TOOLS, **more}
    return {key: value for key, value in keys.items() if value is not None}


def from_anthropic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of the hard cases as Converse messages."""
    return [
        {"role": m["role"], "content": [_block(part) for part in _parts(m["content"])]}
        for m in messages
    ]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "tool_use":
        return use(part["id"], part["input"], part["name"])
    if part["type"] == "tool_result":
        return result(part["tool_use_id"], text(part["content"]))
    return text(part["text"])


# --- made up --------------------------------------------------------------------------------------

UNITS = (
    *("ok", "src/app.py:42: NameError: name 'window' is not defined\n", "这是一个用于测试的句子。"),
    *(
        '{"id": 17, "name": "Ada"}\n',
        "aGVsbG8gd29ybGQh",
        "def f(x):\n    return x\n",
        "👩‍👩‍👧 e\u0301 ",
    ),
)
WORDS = st.builds(
    lambda unit, times, stamp: f"{stamp} {unit * times}",
    st.sampled_from(UNITS), st.sampled_from([1, 1, 2, 5, 40, 300]), st.integers(0, 99),
)  # fmt: skip
ARGUMENTS = st.one_of(
    st.just({}),
    st.builds(lambda words: {"path": "n.txt", "content": words}, WORDS),
    st.just({"n": 1e300, "deep": {"list": [None, True, 1.5]}, "Ω": ""}),
)
ITEMS = st.one_of(
    WORDS.map(text),
    WORDS.map(lambda words: {"json": {"rows": [words, 1, None], "ok": True}}),
    st.sampled_from([IMAGE, document("pdf"), document("csv"), text("")]),
)
SAID = st.one_of(
    *[WORDS.map(text)] * 6,
    st.sampled_from([IMAGE, document("pdf"), document("csv")]),
    WORDS.map(lambda words: {"guardContent": {"text": {"text": words}}}),
)


@st.composite
def _step(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
    """One step of an agent, or words of both sides."""
    if draw(st.integers(0, 3)) == 0:
        said = [text(draw(WORDS)), *draw(st.lists(SAID, max_size=1))]
        return [user(*said), model(text(draw(WORDS)))]
    count = draw(st.integers(1, 3))
    calls = [
        use(f"t{number}_{i}", draw(ARGUMENTS), draw(st.sampled_from(["Read", "Bash"])))
        for i in range(count)
    ]
    answers = [
        result(call["toolUse"]["toolUseId"], *draw(st.lists(ITEMS, max_size=2)),
               **draw(st.sampled_from([{}, {"status": "error"}])))
        for call in calls
    ]  # fmt: skip
    before = [draw(WORDS.map(thought))] if draw(st.booleans()) else []
    before += [text(draw(WORDS))] if draw(st.booleans()) else []
    behind = draw(st.sampled_from(BEHIND))
    return [model(*before, *calls), user(*answers, *behind)]


def _joined(messages: list[Any], more: list[Any]) -> list[Any]:
    """One after the other; two messages of one role that meet become one."""
    if messages[-1]["role"] != more[0]["role"]:
        return messages + more
    both = [*messages[-1]["content"], *more[0]["content"]]
    return [*messages[:-1], {**more[0], "content": both}, *more[1:]]


BEHIND: list[list[Any]] = [[], [], [], [POINT], [text("go on")], [IMAGE]]
DAMAGE = (
    *("drop message", "drop message", "double message", "swap messages", "cut head", "merge none"),
    *("drop block", "drop block", "double block", "swap blocks", "blank", "empty", "string"),
    *("odd id", "long id", "no id", "odd name", "input", "json", "error", "point", "points"),
    *("unsigned", "document", "twin id", "user between", "orphan", "result string"),
)


def _hurt(messages: list[Any], damage: str, place: int) -> None:
    """One wound; nothing where it does not apply."""
    if not messages:
        return
    number = place % len(messages)
    message = messages[number]
    content = message["content"] if isinstance(message["content"], list) else []
    uses = [b["toolUse"] for m in messages for b in _listed(m) if "toolUse" in b]
    results = [b["toolResult"] for m in messages for b in _listed(m) if "toolResult" in b]
    block = content[place % len(content)] if content else {}
    if damage == "drop message":
        del messages[number]
    elif damage == "double message":
        messages.insert(number, copy.deepcopy(message))
    elif damage == "swap messages":
        messages[number - 1], messages[number] = message, messages[number - 1]
    elif damage == "cut head":
        del messages[: place % 3 + 1]
    elif damage == "drop block" and content:
        content.remove(block)
    elif damage == "double block" and content:
        content.append(copy.deepcopy(block))
    elif damage == "swap blocks":
        content.reverse()
    elif damage in ("blank", "point", "document"):
        wound = {"blank": text(" \n"), "point": POINT, "document": document("docx")}[damage]
        content.insert(place % (len(content) + 1), copy.deepcopy(wound))
    elif damage == "points":
        for other in messages:
            _listed(other).append(dict(POINT))
    elif damage == "empty":
        message["content"] = []
    elif damage == "string":
        message["content"] = "plain words"
    elif damage == "user between":
        messages.insert(number, user(text("wait")))
    elif damage == "orphan":
        content.append(result("nobody"))
    elif damage == "unsigned":
        content.insert(0, thought("hm", None))
    elif uses and results:
        _hurt_pair(uses[place % len(uses)], results[place % len(results)], uses, damage)


def _hurt_pair(call: Any, answer: Any, calls: list[Any], damage: str) -> None:
    ids = {"odd id": "a b/ü", "long id": "x" * 80, "no id": ""}
    if damage in ids:
        call["toolUseId"] = answer["toolUseId"] = ids[damage]
    elif damage == "odd name":
        call["name"] = "mcp.read file"
    elif damage == "input":
        call["input"] = '{"path": "a"}'
    elif damage == "json":
        answer["content"] = [{"json": [1, 2]}]
    elif damage == "error":
        answer.update(content=[], status="error")
    elif damage == "twin id":
        call["toolUseId"] = calls[0]["toolUseId"]
    elif damage == "result string":
        answer["content"] = "done"


def _listed(message: Any) -> list[Any]:
    return message["content"] if isinstance(message["content"], list) else []


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    """A request with none to five wounds, to a model of any family."""
    messages = [user(text(draw(WORDS)))]
    for number in range(draw(st.integers(2, 9))):
        messages = _joined(messages, draw(_step(number)))
    wounds = draw(st.sampled_from([0, 0, 1, 2, 3, 5]))
    for damage in draw(st.lists(st.sampled_from(DAMAGE), min_size=wounds, max_size=wounds)):
        _hurt(messages, damage, draw(st.integers(0, 40)))
    declared = st.sampled_from([TOOLS] * 6 + [None, {"tools": []}])
    more: dict[str, Any] = {"toolConfig": draw(declared)}
    if draw(st.booleans()):
        more["system"] = [text(draw(WORDS)), POINT][: draw(st.integers(1, 2))]
    if draw(st.integers(0, 3)) == 0:
        thinking = {"type": "enabled", "budget_tokens": 1024}
        more["additionalModelRequestFields"] = {"thinking": thinking}
    return body(*copy.deepcopy(messages), modelId=draw(st.sampled_from(MODELS)), **more)
