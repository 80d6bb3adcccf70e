"""The formats we read, and which one a request is in.

Knows the order in which formats are asked.  Does not know their keys.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from trimtab.errors import InvalidSetting
from trimtab.formats import anthropic, bedrock, gemini, openai_chat, openai_responses
from trimtab.formats.base import Format, Memo, read
from trimtab.formats.detect import shape
from trimtab.formats.dialects import DIALECTS, Spoken

FORMATS: dict[str, Format] = {
    module.name: module for module in (openai_responses, bedrock, anthropic, gemini, openai_chat)
}
"""By name, in the order in which detection asks: the more telling shape first."""


def find(tree: Any, name: str | None = None) -> tuple[Format, str]:
    """The format of a parsed request and why.

    A name may carry a dialect of the chat format: ``openai-chat:deepseek``.
    Raises InvalidSetting for a name we do not have, InvalidRequest for a shape of no format.
    """
    if name is None:
        found, reason = shape(tree, FORMATS)
        return FORMATS[found], reason
    base, _, dialect = name.partition(":")
    if base not in FORMATS:
        raise InvalidSetting(f"no format {name!r}; choose one of {', '.join(FORMATS)}")
    if not dialect:
        return FORMATS[base], "given"
    if base != openai_chat.name or dialect not in DIALECTS:
        raise InvalidSetting(
            f"no dialect {dialect!r} of {base}; {openai_chat.name} has {', '.join(DIALECTS)}"
        )
    return _spoken(base, dialect), "given"


@cache
def _spoken(base: str, dialect: str) -> Format:
    """One object for each: what was read in a dialect is read once."""
    return cast(Format, Spoken(FORMATS[base], dialect))


__all__ = ["FORMATS", "Format", "Memo", "find", "read"]
