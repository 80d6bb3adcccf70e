"""Made-up Gemini requests, legal and broken, in both spellings.

``legal()`` and ``broken()`` draw (request, model).  A story of steps is drawn first, then written
as contents, then hurt.  Knows the wire format; does not know the library under test.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import strategies as st

MODELS = (None, "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-pro-image-preview")
PIXEL = "iVBORw0KGgoA" * 12
UNITS = (
    "ok",
    "The build failed in src/app.py line 42: NameError: name 'window' is not defined\n",
    '{"id": 17, "name": "Ada", "tags": ["a", "b"], "ok": true}\n',
    "same line\n",
    "这是一个用于测试的句子，包含标识符 user_42。",
    "\x1b[31merror\x1b[0m: cannot find module 'left-pad'   \n",
)
TIMES = (1, 1, 2, 5, 20, 60, 300)

Content = dict[str, Any]


def texts(times: tuple[int, ...] = TIMES) -> st.SearchStrategy[str]:
    """A unit repeated, with a stamp in front so that most texts differ."""
    return st.builds(
        lambda unit, many, stamp: f"{stamp} {unit * many}",
        st.sampled_from(UNITS), st.sampled_from(times), st.integers(0, 99),
    )  # fmt: skip


SHORT = texts((1, 1, 2, 5))
RESPONSES: st.SearchStrategy[Any] = st.one_of(
    texts().map(lambda text: {"result": text}),
    texts().map(lambda text: {"output": text}),
    texts().map(lambda text: {"error": text}),
    st.builds(lambda text, code: {"output": text, "exit_code": code}, texts(), st.integers(0, 2)),
    st.lists(SHORT, max_size=30).map(lambda lines: {"lines": lines, "more": None}),
    st.lists(SHORT, max_size=30).map(lambda rows: {"rows": [{"line": row} for row in rows]}),
    st.just({}),
)
ARGUMENTS: st.SearchStrategy[Any] = st.one_of(
    st.just({}),
    st.just({"path": "a.py", "n": 1e300, "deep": {"list": [None, True, 1.5, "x"]}}),
    texts((1, 60, 300)).map(lambda text: {"path": "n.txt", "content": text}),
)


@st.composite
def _steps(draw: st.DrawFn, number: int, ids: str, signed: bool) -> list[Content]:
    """One model turn with one to four parallel calls and what came back."""
    calls: list[Content] = []
    answers: list[Content] = []
    for index in range(draw(st.integers(1, 4))):
        tool = draw(st.sampled_from(["read", "bash", "default_api:edit"]))
        call: Content = {"name": tool, "args": draw(ARGUMENTS)}
        answer: Content = {"name": tool, "response": draw(RESPONSES)}
        if ids in ("both", "call") or (ids == "some" and index % 2):
            call["id"] = f"call_{number}_{index}"
        if ids in ("both", "response") or (ids == "some" and index % 2):
            answer["id"] = f"call_{number}_{index}"
        if draw(st.integers(0, 9)) == 0:
            answer["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
        calls.append({"functionCall": call})
        answers.append({"functionResponse": answer})
    if signed:
        calls[0]["thoughtSignature"] = f"c2ln{number:04}" * 20
    before: list[Content] = []
    if draw(st.booleans()):
        before.append({"text": draw(SHORT), "thought": True})
    if draw(st.booleans()):
        before.append({"text": draw(SHORT)})
    if ids == "both" and draw(st.booleans()):
        answers.reverse()
    role = draw(st.sampled_from(["user", "user", "function"]))
    turn = [{"role": "model", "parts": before + calls}, {"role": role, "parts": answers}]
    if draw(st.integers(0, 5)) == 0:
        turn.append({"role": "user", "parts": [{"text": draw(SHORT)}]})
    return turn


@st.composite
def _user(draw: st.DrawFn) -> Content:
    parts: list[Any] = [{"text": draw(texts((1, 1, 1, 2, 20, 100)))}]
    more = draw(st.integers(0, 9))
    if more == 0:
        parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
    elif more == 1:
        parts.append({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/x.pdf"}})
    elif more == 2:
        parts.append({"toolCall": {"of": "tomorrow", "n": [1, 2.5]}})
    return {"role": "user", "parts": parts}


@st.composite
def _contents(draw: st.DrawFn, signed: bool) -> list[Content]:
    ids = draw(st.sampled_from(["both", "both", "none", "none", "call", "response", "some"]))
    contents = [draw(_user())]
    for number in range(draw(st.integers(3, 14))):
        kind = draw(st.integers(0, 7))
        if kind == 0:
            said = [{"text": draw(SHORT), "thoughtSignature": "c2ln" * 20}]
            contents += [{"role": "model", "parts": said}, draw(_user())]
        elif kind == 1:
            code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
            ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": draw(SHORT)}}
            contents += [{"role": "model", "parts": [code, ran]}, draw(_user())]
        else:
            contents += draw(_steps(number, ids, signed))
    return contents


def _framed(draw: st.DrawFn, contents: list[Content]) -> Any:
    if draw(st.integers(0, 3)) == 0:
        request: Any = contents
    else:
        declared = [{"name": "read", "description": "Reads.", "parameters": {"type": "OBJECT"}}]
        request = {
            "systemInstruction": {"parts": [{"text": draw(SHORT)}]},
            "tools": [{"functionDeclarations": declared}, {"googleSearch": {}}],
            "generationConfig": {"temperature": 0.5},
            "contents": contents,
        }
    return snaked(request) if draw(st.booleans()) else request


def snaked(value: Any) -> Any:
    """The API's own keys in snake_case; what callers put inside stays."""
    if isinstance(value, list):
        return [snaked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), key): (
            item if key in ("args", "response", "toolCall") else snaked(item)
        )
        for key, item in value.items()
    }


DAMAGE = (
    *("unanswered", "one unanswered", "extra", "orphan", "split", "late", "words between"),
    *("no parts", "empty list", "no data", "blank beside", "unsigned", "text response"),
    *("text arguments", "bad role", "headless", "model last", "shuffled", "unsigned all"),
)


def _hurt(contents: list[Content], damage: str, place: int) -> list[Content]:
    """The contents with one wound, near ``place``."""
    contents = copy.deepcopy(contents)
    bearing = [n for n, c in enumerate(contents) if _has(c, "functionCall")]
    if not bearing:
        return contents
    call = bearing[place % len(bearing)]
    answer = call + 1
    if answer >= len(contents) or not _has(contents[answer], "functionResponse"):
        return contents
    model, user = contents[call], contents[answer]
    first = next(part for part in model["parts"] if "functionCall" in part)
    response = user["parts"][0].get("functionResponse", {})
    lost = {"functionResponse": {"name": "lost", "response": {"result": "who asked?"}}}
    if damage == "unanswered":
        del contents[answer]
    elif damage == "one unanswered":
        user["parts"] = user["parts"][1:] or [{"text": "go on"}]
    elif damage == "extra":
        user["parts"].append(lost)
    elif damage == "orphan":
        contents.insert(answer + 1, {"role": "user", "parts": [lost]})
    elif damage == "split":
        contents[answer : answer + 1] = [{"role": "user", "parts": [p]} for p in user["parts"]]
    elif damage == "late":
        contents.insert(min(answer + 3, len(contents)), contents.pop(answer))
    elif damage == "words between":
        contents.insert(answer, {"role": "user", "parts": [{"text": "Wait."}]})
    elif damage == "no parts":
        contents.insert(call, {"role": "user"})
    elif damage == "empty list":
        contents.insert(call, {"role": "user", "parts": []})
    elif damage == "no data":
        model["parts"].insert(0, {"thoughtSignature": "c2ln"})
    elif damage == "blank beside":
        user["parts"].append({"text": ""})
    elif damage == "unsigned":
        first.pop("thoughtSignature", None)
    elif damage == "unsigned all":
        for content in contents:
            for part in content.get("parts", []):
                part.pop("thoughtSignature", None)
    elif damage == "text response":
        response["response"] = "plain text"
    elif damage == "text arguments":
        first["functionCall"]["args"] = '{"path": "a"}'
    elif damage == "bad role":
        model["role"] = "assistant"
    elif damage == "headless":
        return contents[call:]
    elif damage == "model last":
        return contents[: call + 1]
    elif damage == "shuffled":
        contents[call], contents[answer] = user, model
    return contents


def _has(content: Content, key: str) -> bool:
    return any(isinstance(part, dict) and key in part for part in content.get("parts") or [])


@st.composite
def legal(draw: st.DrawFn) -> tuple[Any, str | None]:
    """(request, model) that the provider accepts."""
    model = draw(st.sampled_from(MODELS))
    return _framed(draw, draw(_contents(signed=True))), model


@st.composite
def broken(draw: st.DrawFn) -> tuple[Any, str | None]:
    """(request, model) with one to four wounds; a few happen to be legal all the same."""
    model = draw(st.sampled_from(MODELS))
    contents = draw(_contents(signed=draw(st.integers(0, 3)) > 0))
    wounds = st.tuples(st.sampled_from(DAMAGE), st.integers(0, 20))
    for damage, place in draw(st.lists(wounds, min_size=1, max_size=4)):
        contents = _hurt(contents, damage, place)
    return _framed(draw, contents), model


def histories() -> st.SearchStrategy[tuple[Any, str | None]]:
    """Legal and broken ones, half and half."""
    return st.one_of(legal(), broken())
