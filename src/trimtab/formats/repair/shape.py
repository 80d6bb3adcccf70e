"""What ``check`` says of a body's shape: roles, required keys, and types of content.

What is unknown to us may be new at the provider, so nothing is repaired for it; a fit only warns
of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.engine.base import Format
from trimtab.formats.engine.rule import Shape, Violation
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path

UNKNOWN_ROLE, MISSING_KEY, CONTENT_TYPE = "unknown_role", "missing_key", "content_type"
_ROLE_CHARS = 20
"""A role that is longer is text, which no log may have."""


def with_shape(
    found: Sequence[Violation], format: Format, tree: Any, *, counts: bool = False
) -> tuple[Violation, ...]:
    """What a provider would refuse of the shape of this body, before what the rules ``found``; not
    what a rule has found at the same place.

    ``counts``: the body asks only how many tokens it has, so nothing is required of it.
    """
    of_shape = [
        violation
        for violation in _found(format, tree, required=not counts)
        if not any(rule.path[: len(violation.path)] == violation.path for rule in found)
    ]
    return (*of_shape, *found)


def warnings(format: Format, tree: Any) -> tuple[str, ...]:
    """A sentence about messages whose role or content the format does not name, which no repair can
    mend; () if there are none."""
    found = list(_found(format, tree, required=False))
    if not found:
        return ()
    first, of = found[0], f"of the {format.name} format"
    what = first.message.partition(": ")[0]
    if first.rule == UNKNOWN_ROLE:
        role = str(paths.get(tree, first.path))
        from trimtab.suggestions import nearest

        problem = f"{role[:_ROLE_CHARS]!r} is no role {of}{nearest(role, format.shape.roles)}"
    elif first.rule == MISSING_KEY:
        problem = f"each message {of} has one, and here it is missing"
    else:
        problem = f"{what} is no content {of}"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"{paths.escape(first.path)}: {problem}{more}; it is sent unchanged and may be refused, "
        "trimtab.check(request) lists all",
    )


def _found(format: Format, tree: Any, *, required: bool) -> Iterator[Violation]:
    shape, key, base = format.shape, format.content_key, format.base(tree)
    messages = tree if not base else tree.get(base[0])
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not _is_usual(shape, key, message):  # nearly all are, and each turn asks again
            yield from _of_message(format, (*base, number), message)
    if required and isinstance(tree, dict) and any(key in tree for key in shape.whole):
        for key in shape.required:
            if tree.get(key) is None:
                yield _violation(shape, MISSING_KEY, (key,), "")
            elif type(tree[key]) is not int:
                text = f"{key}: Input should be a valid integer"
                yield Violation(CONTENT_TYPE, (key,), f"{_named(tree[key])}: {text}")


def _is_usual(shape: Shape, key: str, message: Any) -> bool:
    """Whether a message has a role of the format, and a text or a list of objects as content."""
    if type(message) is not dict or (role := message.get("role")) is None:
        return False
    if shape.roles and role not in shape.roles:
        return False
    content = message.get(key)
    if type(content) is str:
        return shape.texts
    return type(content) is list and {*map(type, content)} <= _OBJECTS


_OBJECTS = {dict}


def _of_message(format: Format, path: Path, message: Any) -> Iterator[Violation]:
    shape = format.shape
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
    content = message.get(format.content_key)
    where = (*path, format.content_key)
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
    errors = {UNKNOWN_ROLE: shape.role_error, MISSING_KEY: shape.missing_error}
    says = errors.get(name, shape.content_error).replace("{place}", place).replace("{value}", value)
    found = {UNKNOWN_ROLE: f"role {value!r}", MISSING_KEY: "missing"}.get(name, value)
    return Violation(name, path, f"{found}: {says}")


def _named(value: Any) -> str:
    """The type of a JSON value as OpenAI names it."""
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    names |= {dict: "an object", list: "an array", type(None): "null"}
    return names.get(type(value), "a value of another type")
