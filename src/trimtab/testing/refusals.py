"""How providers refuse: the catalogue's statuses and bodies, with the numbers of this request.

Knows ``refusals.json``: styles (whose words) and rows (style, format, when → status, body).  Does
not know when a request is refused.  Each row names where its words were seen; a few that no
public quotation covers say "not in the catalogue".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from trimtab.errors import InvalidSetting

Shape = Literal["status", "in-stream", "empty-stream", "truncate", "finish"]
"""How an overflow shows: a status; an error inside a stream that began with 200; a stream of no
bytes; an answer to a prompt whose oldest messages were left out in silence; an empty answer whose
stop reason tells."""

NATIVE = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "gemini": "gemini",
}
"""Whose words a format has where no style is asked for, or the style does not speak it."""


@dataclass(frozen=True, slots=True)
class Style:
    """Whose way of refusing, and the few habits that go with it.

    ``like``: whose words it falls back to.  ``dialect``: whose rules it enforces ("" leaves that
    to the model's name).  ``stream`` and ``overflow``: how an overflow shows in a stream of a
    format, and anywhere.  ``output_counts``: whether the requested output shares the window.
    ``call_id``: how its call ids look.
    """

    name: str
    formats: tuple[str, ...]
    like: str = ""
    dialect: str = ""
    call_id: str = ""
    stream: Mapping[str, Shape] = field(default_factory=dict)
    overflow: Shape = "status"
    output_counts: bool = True

    def shape(self, format: str, streams: bool) -> Shape:
        """How this style lets a request of this format overflow."""
        return self.stream.get(format, self.overflow) if streams else self.overflow


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal, ready to be sent: ``when`` is its kind, ``body`` JSON or plain text."""

    when: str
    status: int
    body: Any
    shape: Shape = "status"
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def message(self) -> str:
        """What the body says, wherever it says it."""
        body = self.body[0] if isinstance(self.body, list) and self.body else self.body
        error = body.get("error", body) if isinstance(body, dict) else body
        return str(error.get("message", error) if isinstance(error, dict) else error)

    @property
    def code(self) -> str:
        """The error's own code, or its type; "" where it has neither."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        found = (error.get("code") or error.get("type")) if isinstance(error, dict) else None
        return str(found or "")


Rows = Mapping[tuple[str, str, str], Mapping[str, Any]]


@cache
def _table() -> tuple[Mapping[str, Style], Rows]:
    text = files("trimtab.testing").joinpath("refusals.json").read_text(encoding="utf-8")
    data = json.loads(text)
    styles = {
        name: Style(name, **{**facts, "formats": tuple(facts["formats"])})
        for name, facts in data["styles"].items()
    }
    return styles, {(row["style"], row["format"], row["when"]): row for row in data["rows"]}


def styles() -> Mapping[str, Style]:
    """Every style by name."""
    return _table()[0]


def style_for(name: str | None, format: str) -> Style:
    """The style asked for where it speaks this format, else the format's own.

    Raises InvalidSetting for a name that is none.
    """
    known = styles()
    if name is not None and name not in known:
        raise InvalidSetting(f"style={name!r} is unknown: choose one of {', '.join(known)}")
    found = known.get(name or "")
    return found if found and format in found.formats else known[NATIVE.get(format, "openai")]


def _heirs(style: Style, format: str) -> Iterator[str]:
    """The style, whose words it borrows, and the format's own at last."""
    known, name = styles(), style.name
    while name:
        yield name
        name = known[name].like
    yield NATIVE.get(format, "openai")
    yield "openai"


def _kinds(when: str, shape: Shape) -> Iterator[str]:
    if shape == "in-stream":
        yield f"{when}@stream"
    yield when
    general = {"overflow_output": "overflow", "overloaded": "server_error"}
    if when in general:
        yield from _kinds(general[when], shape)
    if when.startswith("rule:"):
        yield "rule"


def refusal(
    style: Style, format: str, when: str, facts: Mapping[str, object], *, shape: Shape = "status"
) -> Refusal:
    """The refusal of this kind in this style, with ``facts`` in place of its ``{names}``.

    A kind of rule that nobody quoted ("rule:…") is said in the shape of the others.  Raises
    InvalidSetting for a kind that nobody has.
    """
    rows = _table()[1]
    for name in _heirs(style, format):
        for kind in _kinds(when, shape):
            row = rows.get((name, format, kind)) or rows.get((name, "*", kind))
            if row:
                return Refusal(when, row["status"], fill(row["body"], facts), shape)
    known = sorted({kind for _, _, kind in rows if "@" not in kind})
    raise InvalidSetting(f"no refusal {when!r}: choose one of {', '.join(known)}")


_NAME = re.compile(r"\{([a-z_]+)\}")


def fill(body: Any, facts: Mapping[str, object]) -> Any:
    """The body with each ``{name}`` that ``facts`` knows; a lone ``{name}`` keeps its type."""
    if isinstance(body, dict):
        return {key: fill(value, facts) for key, value in body.items()}
    if isinstance(body, list):
        return [fill(value, facts) for value in body]
    if not isinstance(body, str):
        return body
    whole = _NAME.fullmatch(body)
    if whole and whole[1] in facts:
        return facts[whole[1]]
    return _NAME.sub(lambda found: str(facts.get(found[1], found[0])), body)
