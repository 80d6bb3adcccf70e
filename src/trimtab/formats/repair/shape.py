"""What ``check`` says of a body's shape: roles, required keys, and types of content.

Only a report: what is unknown to us may be new at the provider, so nothing is repaired for it, and
a request that is fitted is not judged by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.formats.engine.base import Format
from trimtab.formats.repair.base import Violation
from trimtab.jsontext.paths import Path

UNKNOWN_ROLE, MISSING_KEY, CONTENT_TYPE = "unknown_role", "missing_key", "content_type"


@dataclass(frozen=True)
class ShapeRow:
    """One thing that a provider demands of a body's shape, in its own words.

    ``{place}`` and ``{value}`` in ``error_text`` stand for the place as the provider writes it,
    and for what was found there.
    """

    name: str
    error_text: str
    source: str


@dataclass(frozen=True)
class Shape:
    """The shape of one format's messages.

    ``roles``: all that its reference names; ``untyped``: whether only items without a ``type`` need
    a role; ``texts``: whether content may be one text; ``required``: keys of a whole body.
    """

    roles: tuple[str, ...]
    rows: Mapping[str, ShapeRow]
    content: str = "content"
    untyped: bool = False
    texts: bool = True
    role_optional: bool = False
    dotted: bool = False
    required: tuple[str, ...] = ()
    whole: tuple[str, ...] = field(default=("model",))
    """Keys that only a whole body has, not a part of one."""


def _rows(role: str, missing: str, content: str, source: str) -> Mapping[str, ShapeRow]:
    texts = {UNKNOWN_ROLE: role, MISSING_KEY: missing, CONTENT_TYPE: content}
    return {name: ShapeRow(name, text, source) for name, text in texts.items() if text}


SHAPES: Mapping[str, Shape] = {
    "openai-chat": Shape(
        ("system", "developer", "user", "assistant", "tool", "function"),
        _rows(
            "Invalid value: '{value}'. Supported values are: 'system', 'assistant', 'user', "
            "'function', 'tool', and 'developer'.",
            "Missing required parameter: '{place}'.",
            "Invalid type for '{place}': expected one of a string or array of objects, but got "
            "{value} instead.",
            "OpenAI's words for messages[0].role and messages[0].content in public issues",
        ),
    ),
    "openai-responses": Shape(
        ("user", "assistant", "system", "developer"),
        _rows(
            "Invalid value: '{value}'. Supported values are: 'assistant', 'system', 'developer', "
            "and 'user'.",
            "Missing required parameter: '{place}'.",
            "Invalid type for '{place}': expected one of an array of objects or string, but got "
            "{value} instead.",
            "OpenAI's words for input[0].role and input[0].content in public issues",
        ),
        untyped=True,
    ),
    "anthropic": Shape(
        ("user", "assistant", "system"),
        _rows(
            'messages: Unexpected role "{value}". Allowed roles are "user" or "assistant"',
            "{place}: Field required",
            "{place}: Input should be a valid array",
            "the API's answers, recorded in public repositories in August 2026",
        ),
        dotted=True,
        required=("max_tokens",),
        whole=("model", "anthropic_version"),
    ),
    "bedrock": Shape(
        ("user", "assistant", "system"),
        _rows(
            "Value '{value}' at '{place}' failed to satisfy constraint: Member must satisfy enum "
            "value set: [user, assistant, system]",
            "Parameter validation failed: Missing required parameter: {place}",
            "Parameter validation failed: Invalid type for parameter {place}, value is {value}, "
            "valid types: <class 'list'>, <class 'tuple'>",
            "botocore 1.44.8 service model",
        ),
        texts=False,
    ),
    "gemini": Shape(
        (),  # the row invalid_role of its table
        _rows(
            "",
            "",
            "Invalid value at '{place}' (type.googleapis.com/"
            "google.ai.generativelanguage.v1beta.Part), {value}",
            "Gemini API reference: Content",
        ),
        content="parts",
        role_optional=True,
        texts=False,
    ),
    "gemini-interactions": Shape(
        ("user", "model"),
        _rows(
            "Please use a valid role: user, model.",
            "",
            "{place}: Input should be a valid list, not {value}",
            "google-genai 3.6: InteractionsInput",
        ),
        role_optional=True,
        untyped=True,
    ),
}


def with_shape(
    found: Sequence[Violation], format: Format, tree: Any, *, counts: bool = False
) -> tuple[Violation, ...]:
    """What a provider would refuse of the shape of this body, before what the rules ``found``; not
    what a rule has found at the same place.

    ``counts``: the body asks only how many tokens it has, so nothing is required of it.
    """
    shape = SHAPES[format.name]
    of_shape = [
        violation
        for violation in _found(shape, format, tree, required=not counts)
        if not any(rule.path[: len(violation.path)] == violation.path for rule in found)
    ]
    return (*of_shape, *found)


def _found(shape: Shape, format: Format, tree: Any, *, required: bool) -> Iterator[Violation]:
    base = format.base(tree)
    messages = tree if not base else tree.get(base[0])
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        yield from _of_message(shape, (*base, number), message)
    if required and isinstance(tree, dict) and any(key in tree for key in shape.whole):
        for key in shape.required:
            if tree.get(key) is None:
                yield _violation(shape, MISSING_KEY, (key,), "")
            elif type(tree[key]) is not int:
                text = f"{key}: Input should be a valid integer"
                yield Violation(CONTENT_TYPE, (key,), f"{_named(tree[key])}: {text}")


def _of_message(shape: Shape, path: Path, message: Any) -> Iterator[Violation]:
    if not isinstance(message, dict):
        if not isinstance(message, str):  # a text has a row of its own where it is refused
            yield _violation(shape, CONTENT_TYPE, path, _named(message))
        return
    typed = shape.untyped and "type" in message and message["type"] != "message"
    role = message.get("role")
    if role is None and not (typed or shape.role_optional):
        yield _violation(shape, MISSING_KEY, (*path, "role"), "")
    elif role is not None and shape.roles and role not in shape.roles:
        yield _violation(shape, UNKNOWN_ROLE, (*path, "role"), str(role))
    content = message.get(shape.content)
    where = (*path, shape.content)
    if content is None or typed:
        return
    if not isinstance(content, (list, tuple)):
        if not (isinstance(content, str) and shape.texts):
            yield _violation(shape, CONTENT_TYPE, where, _named(content))
        return
    for index, part in enumerate(content):
        if not isinstance(part, dict) and not (isinstance(part, str) and not shape.dotted):
            yield _violation(shape, CONTENT_TYPE, (*where, index), _named(part))


def _violation(shape: Shape, name: str, path: Path, value: str) -> Violation:
    steps = [str(step) if shape.dotted or isinstance(step, str) else f"[{step}]" for step in path]
    place = ".".join(steps) if shape.dotted else ".".join(steps).replace(".[", "[")
    says = shape.rows[name].error_text.replace("{place}", place).replace("{value}", value)
    found = {UNKNOWN_ROLE: f"role {value!r}", MISSING_KEY: "missing"}.get(name, value)
    return Violation(name, path, f"{found}: {says}")


def _named(value: Any) -> str:
    """The type of a JSON value as OpenAI names it."""
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    names |= {dict: "an object", list: "an array", type(None): "null"}
    return names.get(type(value), "a value of another type")
