"""How providers refuse: the catalogue's statuses and bodies, with the numbers of this request.

Reads ``refusals.json``: styles (whose words) and rows (style, format, when → status, body).  Each
row names where its words were seen; a few that no public quotation covers say "not in the
catalogue".
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
"""How an overflow is reported: a status; an error inside a stream that began with 200; a stream of
no bytes; an answer to a silently truncated prompt; an empty answer with a stop reason."""

NATIVE = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "gemini": "gemini",
    "gemini-interactions": "gemini",
}
"""The default style of a format, if no style is given or the style lacks the format."""


@dataclass(frozen=True, slots=True)
class Style:
    """How one provider or server refuses requests, and a few of its habits.

    ``like``: the style whose words are the fallback.  ``dialect``: the dialect whose rules it
    enforces ("": chosen by the model's name).  ``stream``: by format, how an overflow is reported
    in a stream; ``overflow``: otherwise.  ``output_counts``: whether the requested output shares
    the window.  ``call_id``: the pattern of its call ids.
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
        """How this style reports an overflow in this format."""
        return self.stream.get(format, self.overflow) if streams else self.overflow


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """One refusal, ready to be sent: ``when`` is its kind, ``body`` JSON or plain text."""

    when: str
    status: int
    body: Any
    shape: Shape = "status"
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def message(self) -> str:
        """The error's message, wherever the body has it."""
        body = self.body[0] if isinstance(self.body, list) and self.body else self.body
        error = body.get("error", body) if isinstance(body, dict) else body
        return str(error.get("message", error) if isinstance(error, dict) else error)

    @property
    def code(self) -> str:
        """The error's own code, or its type; "" if it has neither."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        value = (error.get("code") or error.get("type")) if isinstance(error, dict) else None
        return str(value or "")


_SAME_WORDS = {"gemini-interactions": "gemini"}
"""Formats with the same refusal texts as another format of the same provider."""
Rows = Mapping[tuple[str, str, str], Mapping[str, Any]]


@cache
def _table() -> tuple[Mapping[str, Style], Rows]:
    table = files("trimtab_lab.testing.http_apis").joinpath("refusals.json")
    data = json.loads(table.read_text(encoding="utf-8"))
    styles = {
        name: Style(name, **{**facts, "formats": tuple(facts["formats"])})
        for name, facts in data["styles"].items()
    }
    return styles, {(row["style"], row["format"], row["when"]): row for row in data["rows"]}


def styles() -> Mapping[str, Style]:
    """Every style by name."""
    return _table()[0]


def style_for(name: str | None, format: str) -> Style:
    """The style called ``name`` if it has the format, else the format's default.

    Raises InvalidSetting for an unknown name.
    """
    by_name = styles()
    if name is not None and name not in by_name:
        raise InvalidSetting(f"style={name!r} is unknown: choose one of {', '.join(by_name)}")
    style = by_name.get(name or "")
    return style if style and format in style.formats else by_name[NATIVE.get(format, "openai")]


def _heirs(style: Style, format: str) -> Iterator[str]:
    """The style, the styles it is ``like``, and last the format's default."""
    by_name, name = styles(), style.name
    while name:
        yield name
        name = by_name[name].like
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


def error_response(
    style: Style, format: str, when: str, facts: Mapping[str, object], *, shape: Shape = "status"
) -> ErrorResponse:
    """The refusal of this kind in this style, with ``facts`` in place of its ``{names}``.

    A rule without a quoted refusal ("rule:…") gets a body in the shape of the others.  Raises
    InvalidSetting for a kind that no style has.
    """
    rows, like = _table()[1], _SAME_WORDS.get(format, format)
    for name in _heirs(style, format):
        for kind in _kinds(when, shape):
            row = next(filter(None, (rows.get((name, f, kind)) for f in (format, like, "*"))), None)
            if row:
                body = fill(row["body"], facts)
                body = _as_interactions(body) if format == "gemini-interactions" else body
                return ErrorResponse(when, row["status"], body, shape)
    kinds = sorted({kind for _, _, kind in rows if "@" not in kind})
    raise InvalidSetting(f"no refusal {when!r}: choose one of {', '.join(kinds)}")


def _as_interactions(body: Any) -> Any:
    """Google's error as Interactions has it: a code in words and a message (google-genai 3.4)."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return body
    code = str(error.get("status") or "invalid_request").lower()
    return {"error": {"code": code, "message": str(error.get("message") or "")}}


_NAME = re.compile(r"\{([a-z_]+)\}")


def fill(body: Any, facts: Mapping[str, object]) -> Any:
    """``body`` with each ``{name}`` in ``facts`` filled in; a lone ``{name}`` keeps its type."""
    if isinstance(body, dict):
        return {key: fill(value, facts) for key, value in body.items()}
    if isinstance(body, list):
        return [fill(value, facts) for value in body]
    if not isinstance(body, str):
        return body
    whole = _NAME.fullmatch(body)
    if whole and whole[1] in facts:
        return facts[whole[1]]
    return _NAME.sub(lambda match: str(facts.get(match[1], match[0])), body)
