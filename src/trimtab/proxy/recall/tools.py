"""The tools that are run within the proxy: recall, and on request prune.

Knows their definitions and what they answer.  Does not know how a call reaches us.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.errors import TrimtabError
from trimtab.session import Session
from trimtab.turns.passages import Said
from trimtab.turns.recalling import NAME, recall_tool

PRUNE = "prune"
MOST_NAMES = 40
"""Results that are listed, and taken out, at once."""
_ABOUT = (
    "Takes tool results that are no longer needed out of this conversation, to make room. Without "
    "names it lists what can be taken out; with names it takes these out. What was taken out can "
    "be had again with recall."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "names": {
            "type": "array", "items": {"type": "string"},
            "description": "as the list has them",
        },
    },
}  # fmt: skip
"""The same bytes in every request and release, as recall's."""


def names(prune: bool) -> tuple[str, ...]:
    """Of the tools that are offered."""
    return (NAME, PRUNE) if prune else (NAME,)


def definition(format: str, name: str) -> dict[str, Any]:
    """A tool as this format declares it."""
    found: dict[str, Any] = recall_tool(format).definition
    return found if name == NAME else _renamed(found)


def _renamed(value: Any) -> Any:
    """The declaration of recall with prune in its place."""
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("name") != NAME:
        return {key: _renamed(item) for key, item in value.items()}
    found = {**value, "name": PRUNE, "description": _ABOUT}
    for key in ("parameters", "input_schema"):
        if key in found:
            found[key] = _SCHEMA
    if "inputSchema" in found:
        found["inputSchema"] = {"json": _SCHEMA}
    return found


def result(format: str, session: Session, body: Any, call: Any, model: str | None) -> Any:
    """The result of one call, as the part that stands beside those of others."""
    tool = recall_tool(format)
    call_id, name, arguments = tool.read(call)
    if name != PRUNE:
        return tool.result(session, call)
    keywords = {"format": format, "recall": True, **({"model": model} if model else {})}
    try:
        return tool.part(call_id, _pruned(session, body, arguments, keywords))
    except TrimtabError as error:
        return tool.part(call_id, Said(f"Nothing was taken out: {error}", True))


def _pruned(
    session: Session, body: Any, arguments: Mapping[str, Any], keywords: dict[str, Any]
) -> Said:
    given = arguments.get("names")
    wanted = [str(name) for name in given][:MOST_NAMES] if isinstance(given, list) else []
    if not wanted:
        return Said(_listed(session, body, keywords))
    done = session.prune(body, wanted, **keywords)
    lines = [f"{one.name} is out: {one.tokens:,} tokens" for one in done.done]
    lines += [f"{name} stays: it {why}" for name, why in done.why_not.items()]
    if done.why_not:
        lines.append(_listed(session, body, keywords))
    return Said("\n".join(lines), failed=not done.done)


def _listed(session: Session, body: Any, keywords: dict[str, Any]) -> str:
    found = session.prunable(body, **keywords)
    if not found:
        return "There is nothing that could be taken out."
    rows = [f"{one.name}  {one.tokens:,} tokens  {one.about}" for one in found[:MOST_NAMES]]
    more = [f"and {len(found) - MOST_NAMES} newer ones"] if len(found) > MOST_NAMES else []
    return "\n".join(["What can be taken out, oldest first:", *rows, *more])
