"""A story written down as the body of a request, in OpenAI Responses, Gemini and Interactions.

As writers.py; each has a layout of its own: single items, parts with or without ids, steps.
"""

from __future__ import annotations

import re
from typing import Any

from soak.story import TOOLS, Frame, Message, Part, Story
from soak.writers import PIXEL, SCHEMA, SEAL, Wire, spelled
from soak.writers import WRITERS as OTHERS

# --- OpenAI Responses -----------------------------------------------------------------------------


def responses(story: Story, frame: Frame) -> Any:
    """A body of OpenAI Responses, or its list of items."""
    items: list[Wire] = []
    for message in story:
        _items(items, message, frame)
    if frame.bare:
        return items
    body: Wire = {"model": frame.model} if frame.model else {}
    if frame.system:
        body["instructions"] = frame.system
    if frame.tools:
        body["tools"] = [{"type": "function", "name": n, "parameters": SCHEMA} for n in TOOLS]
    if frame.odd:
        body |= {"store": False, "x_unknown": [1, 2.5]}
    return {**body, "input": items}


def _items(items: list[Wire], message: Message, frame: Frame) -> None:
    """Calls, results and reasoning are items; the other parts of a message stand together."""
    rest: list[Part] = []
    for part in message.parts:
        item = _item(part, frame)
        if item is None:
            rest.append(part)
            continue
        if rest:
            items.append(_said(message.role, rest, frame))
            rest = []
        items.append(item)
    if rest or not message.parts:
        items.append(_said(message.role, rest, frame))


def _item(part: Part, frame: Frame) -> Wire | None:
    """A part that is an item of its own; None for what stands in a message."""
    if part.kind == "call":
        return _call(part) | _named("fc" if part.name != "patch" else "ctc", part, frame)
    if part.kind == "result":
        return _output(part)
    if part.kind == "thought":
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        sealed = {"encrypted_content": SEAL * 4} if frame.signed else {}
        return {"type": "reasoning", "summary": summary, **sealed, **_named("rs", part, frame)}
    if part.kind == "server":
        action = {"type": "search", "query": part.text}
        return {
            "type": "web_search_call", "id": f"ws_{part.tag}", "status": "completed",
            "action": action,
        }  # fmt: skip
    return None


def _named(prefix: str, part: Part, frame: Frame) -> Wire:
    """The item's own id, where this client keeps them."""
    return {"id": f"{prefix}_{part.tag:08}"} if frame.ids == "global" else {}


def _call(part: Part) -> Wire:
    if part.name == "patch":
        text = spelled(part.arguments)
        return {"type": "custom_tool_call", "call_id": part.id, "name": "patch", "input": text}
    if part.name == "shell":
        action = {"commands": [spelled(part.arguments)], "timeout_ms": 1000}
        return {"type": "shell_call", "call_id": part.id, "action": action, "status": "completed"}
    arguments = spelled(part.arguments)
    return {
        "type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments,
    }  # fmt: skip


def _output(part: Part) -> Wire:
    if part.name == "shell":
        outcome = {"type": "exit", "exit_code": int(part.shape == "error")}
        chunk = {"stdout": part.text, "stderr": "", "outcome": outcome}
        return {"type": "shell_call_output", "call_id": part.id, "output": [chunk]}
    kind = "custom_tool_call_output" if part.name == "patch" else "function_call_output"
    text = {"type": "input_text", "text": part.text}
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    shapes: dict[str, Any] = {
        "list": [text, {"type": "input_text", "text": "second part"}],
        "image": [text, image],
        "none": "",
        "empty": [],
    }
    return {"type": kind, "call_id": part.id, "output": shapes.get(part.shape, part.text)}


def _said(role: str, parts: list[Part], frame: Frame) -> Wire:
    ours = role == "assistant"
    role = "developer" if role == "system" and frame.listed else role
    content: Any = [_content(part, "output_text" if ours else "input_text") for part in parts]
    if not frame.listed and not ours and len(content) == 1 and "text" in content[0]:
        content = content[0]["text"]
    if not parts and frame.odd:
        content = None
    message = {"type": "message", "role": role, "content": content}
    return message | (_named("msg", parts[0], frame) if ours and parts else {})


def _content(part: Part, kind: str) -> Wire:
    if part.kind in ("image", "document"):
        return {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    if part.kind == "odd":
        return {"type": "input_dream", "of": ["tomorrow", 2.5]}
    return {"type": kind, "text": part.text}


# --- Gemini ---------------------------------------------------------------------------------------

_ROLES = {"assistant": "model", "user": "user", "system": "system"}


def gemini(story: Story, frame: Frame) -> Any:
    """A body of generateContent, or its list of contents."""
    contents = [_contents(message, frame) for message in story]
    if frame.bare:
        return snaked(contents) if frame.snake else contents
    body: Wire = {"model": frame.model} if frame.model and frame.listed else {}
    if frame.system:
        body["systemInstruction"] = {"parts": [{"text": frame.system}]}
    if frame.tools:
        declared = [{"name": name, "parameters": {"type": "OBJECT"}} for name in TOOLS]
        body["tools"] = [{"functionDeclarations": declared}]
    if frame.odd:
        body["generationConfig"] = {"temperature": 0.5, "xUnknown": [1, 2.5]}
    body["contents"] = contents
    return snaked(body) if frame.snake else body


def _contents(message: Message, frame: Frame) -> Wire:
    parts: list[Wire] = []
    signed = not frame.signed
    for part in message.parts:
        written = _gemini_part(part, frame)
        if part.kind == "call" and not signed:
            written[0]["thoughtSignature"] = SEAL
            signed = True
        parts += written
    return {"role": _ROLES[message.role], "parts": parts}


def _gemini_part(part: Part, frame: Frame) -> list[Wire]:
    own = {"id": part.id} if frame.ids != "none" and part.id else {}
    if part.kind == "call":
        return [{"functionCall": {"name": part.name, "args": part.arguments, **own}}]
    if part.kind == "result":
        return [{"functionResponse": {"name": part.name, **_response(part), **own}}]
    if part.kind == "thought":
        return [{"text": part.text, "thought": True}]
    if part.kind == "server":
        code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
        return [code, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": part.text}}]
    if part.kind == "image":
        return [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    if part.kind == "document":
        return [{"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/x.pdf"}}]
    if part.kind == "odd":
        return [{"toolCall": {"of": "tomorrow", "n": [1, 2.5]}}]
    return [{"text": part.text}]


def _response(part: Part) -> Wire:
    image = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    shapes: dict[str, Wire] = {
        "list": {"response": {"lines": [part.text, "second part"], "more": None}},
        "json": {"response": {"rows": [{"line": part.text, "n": 1}], "ok": True}},
        "image": {"response": {"output": part.text}, "parts": [image]},
        "odd": {"response": {"output": part.text, "exit_code": 1}},
        "error": {"response": {"error": part.text}},
        "none": {"response": {}},
        "empty": {"response": part.text},
    }
    return shapes.get(part.shape, {"response": {"result": part.text}})


_CAPITAL = re.compile("[A-Z]")


def snaked(value: Any) -> Any:
    """The API's own keys in snake_case; what callers put inside stays."""
    if isinstance(value, list):
        return [snaked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _CAPITAL.sub(lambda found: "_" + found[0].lower(), key): (
            item if key in ("args", "response", "toolCall") else snaked(item)
        )
        for key, item in value.items()
    }


# --- Gemini Interactions --------------------------------------------------------------------------


def interactions(story: Story, frame: Frame) -> Any:
    """A body of Gemini Interactions, or its list of steps."""
    steps: list[Wire] = []
    for message in story:
        _steps(steps, message, frame)
    if frame.bare:
        return steps
    body: Wire = {"model": frame.model} if frame.model else {}
    if frame.system:
        body["system_instruction"] = frame.system
    if frame.tools:
        body["tools"] = [{"type": "function", "name": n, "parameters": SCHEMA} for n in TOOLS]
    if frame.odd:
        body |= {"generation_config": {"temperature": 0.5}, "x_unknown": [1, 2.5]}
    return {**body, "store": False, "input": steps}


def _steps(steps: list[Wire], message: Message, frame: Frame) -> None:
    """Thoughts, calls and results are steps; the other parts of a message stand together."""
    kind = "model_output" if message.role == "assistant" else "user_input"
    said: list[Wire] = []
    for part in message.parts:
        found = _step(part, frame)
        if not found:
            said.append(_step_content(part))
            continue
        steps += [{"type": kind, "content": said}, *found] if said else found
        said = []
    if said or not message.parts:
        nothing = not said and frame.odd
        steps.append({"type": kind} if nothing else {"type": kind, "content": said})


def _step(part: Part, frame: Frame) -> list[Wire]:
    """A part that is a step of its own, or two; [] for what stands in a message."""
    if part.kind == "call":
        call = {"type": "function_call", "id": part.id, "name": part.name}
        return [{**call, "arguments": part.arguments}]
    if part.kind == "result":
        result = {"type": "function_result", "call_id": part.id, "name": part.name}
        error = {"is_error": True} if part.shape == "error" else {}
        return [{**result, "result": _step_result(part, frame), **error}]
    if part.kind == "thought":
        sealed = {"signature": SEAL} if frame.signed else {}
        summary = [{"type": "text", "text": part.text}] if part.shape != "sealed" else []
        return [{"type": "thought", **sealed, "summary": summary}]
    if part.kind == "server":
        ours, found = {"id": f"gs_{part.tag}"}, {"call_id": f"gs_{part.tag}"}
        return [
            {"type": "google_search_call", **ours, "arguments": {"queries": [part.text]}},
            {"type": "google_search_result", **found, "result": [{"title": part.text}]},
        ]
    return []


def _step_result(part: Part, frame: Frame) -> Any:
    text = {"type": "text", "text": part.text}
    image = {"type": "image", "mime_type": "image/png", "data": PIXEL}
    shapes: dict[str, Any] = {
        "list": [text, {"type": "text", "text": "second part"}],
        "json": {"rows": [{"line": part.text, "n": 1}], "ok": True},
        "image": [text, image],
        "odd": {"output": part.text, "exit_code": 1},
        "none": None if frame.odd else [],
        "empty": "",
    }
    return shapes.get(part.shape, part.text)


def _step_content(part: Part) -> Wire:
    if part.kind == "image":
        return {"type": "image", "mime_type": "image/png", "data": PIXEL}
    if part.kind == "document":
        return {"type": "document", "mime_type": "application/pdf", "uri": "gs://b/x.pdf"}
    if part.kind == "odd":
        return {"type": "dream", "of": ["tomorrow", 2.5]}
    return {"type": "text", "text": part.text}


WRITERS = {
    **OTHERS, "openai-responses": responses, "gemini": gemini, "gemini-interactions": interactions,
}  # fmt: skip
