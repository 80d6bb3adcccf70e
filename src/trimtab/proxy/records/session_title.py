"""What a session is about, for a list of sessions: its first prompt, and its agent's folder.

Coding agents put their own texts before the first prompt: reminders and facts about the machine,
each in tags or with a beginning that is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from trimtab.formats.words import content_of, messages_of
from trimtab.proxy.records.prefix_breaks import SYSTEM_KEYS

CHARS = 120
_LOOKED_AT = 6
"""Messages, from the first."""
_TEXT_CHARS = 40_000
_MAX_TEXTS, _MAX_LEVELS = 50, 4
_OPENING = re.compile(r"\s*<([A-Za-z_][\w-]{0,63})(?![\w-])[^>]{0,200}>")
_NOT_THE_USER = (
    "# AGENTS.md", "This is the Gemini CLI", "This is the Qwen Code", "Here is some useful inform",
    "I am working on the following", "Caveat: ",
)  # fmt: skip
_FOLDER = re.compile(
    r"(?:[Ww]orking directory(?: is)?|[Ww]orking in the directory|<cwd>|"
    r"[Ww]orkspace [Dd]irector(?:y|ies))[:*\s`-]{0,20}((?:/|~/|[A-Za-z]:[\\/])[^\s<>`\"']{1,300})"
)


def first_prompt(tree: Any) -> str:
    """The first line that the user wrote; "" where there is none."""
    for role, text in _texts(tree):
        if role not in ("user", ""):
            continue
        own_text = _behind_tags(text[:_TEXT_CHARS])
        if own_text.strip() and not own_text.strip().startswith(_NOT_THE_USER):
            line = " ".join(next(row for row in own_text.splitlines() if row.strip()).split())
            return line if len(line) <= CHARS else line[: CHARS - 1] + "…"
    return ""


def _behind_tags(text: str) -> str:
    """The text without the tags, and what is in them, that it begins with.

    The end of each is looked for once: a pattern that tries where its name may end takes minutes
    for some texts of forty thousand characters.
    """
    at = 0
    while (opening := _OPENING.match(text, at)) is not None:
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        at = end + len(closing)
    return text[at:]


def folder(tree: Any) -> str:
    """The name of the folder that the agent says it works in; ""."""
    system = [tree.get(key) for key in SYSTEM_KEYS] if isinstance(tree, Mapping) else []
    for text in chain(islice(_strings(system), _MAX_TEXTS), (text for _, text in _texts(tree))):
        if match := _FOLDER.search(text[:_TEXT_CHARS]):
            return re.split(r"[\\/]", match[1].rstrip("\\/.,;"))[-1][:80]
    return ""


def _texts(tree: Any) -> Iterator[tuple[str, str]]:
    """Role and text of the first messages, a part at a time."""
    for message in messages_of(tree)[:_LOOKED_AT]:
        if isinstance(message, Mapping):
            for text in islice(_strings(content_of(message)), _MAX_TEXTS):
                yield str(message.get("role") or ""), text


def _strings(content: Any, levels: int = _MAX_LEVELS) -> Iterator[str]:
    """Texts of a content: itself, or those of its parts; never results or calls."""
    if isinstance(content, str):
        yield content
    elif not levels:
        return
    elif isinstance(content, list):
        for part in content[:_MAX_TEXTS]:
            yield from _strings(part, levels - 1)
    elif isinstance(content, Mapping):
        for key in ("text", "parts"):
            yield from _strings(content.get(key), levels - 1)
