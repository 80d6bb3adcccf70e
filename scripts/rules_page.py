"""Writes docs/rules.md from the rule tables and the catalogue of quoted refusals.

    python scripts/rules_page.py            writes the page
    python scripts/rules_page.py --check    says whether it is current (exit 1 if it is not)

Knows how the page looks.  Holds no rule: rows come from ``trimtab.formats.rules``, the catalogue
and what each of its entries maps to from tests/support/data_files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.formats import FORMATS
from trimtab.formats.engine.rule import Rule, RuleTable

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "rules.md"
DATA = ROOT / "tests" / "support" / "data_files"

TITLES = {
    "openai-chat": "OpenAI Chat Completions",
    "openai-responses": "OpenAI Responses",
    "anthropic": "Anthropic Messages",
    "bedrock": "Bedrock Converse",
    "gemini": "Gemini generateContent",
    "gemini-interactions": "Gemini Interactions",
}
WRITTEN = {
    "anthropic-messages": "anthropic",
    "bedrock-converse": "bedrock",
    "gemini-generateContent": "gemini",
    "openai-chat-sse": "openai-chat",
}
"""The catalogue's name of a format → our name, where they differ."""

INTRO = """# What providers refuse

Written by `scripts/rules_page.py` from the tables in `src/trimtab/formats`; change those, not this.

Each row says how sure it is:

- **certain**: the provider's words state what is wrong, and that is what is looked for.
  `trimtab.check` reports it as a violation, and `trimtab.repair`, `fit` and every client and proxy
  repair it before the request is sent.
- **refused**: somebody was refused in these words, but what else the provider takes is not known.
  Nothing is changed until a refusal names the row.  What trimtab makes itself (a cut, a fold, a
  conversion) keeps these rows, too.
- **inferred** and **accepted** rows are kept for that refusal alone.

What providers were recorded to accept is in no row, whatever documentation says.  Rows are repaired
in the order in which they stand, as the last column says.

A row concerns everyone who speaks its format unless a dialect is named.  The dialect of a Chat
Completions request comes from the model's name ({dialects}; `openai` for a name we do not know),
or from `trimtab.detect`, which also knows the provider's address; `format="openai-chat:kimi"` says
it outright.  Rules that depend on the model (a prefill is refused from Claude 4.6 on, thinking is
bound to what stands before it from Claude 5.1 on) look at the model's version.
"""


class Entry(NamedTuple):
    """One quoted refusal and what it maps to."""

    provider: str
    format: str
    kind: str
    message: str
    rules: tuple[str, ...]
    limit: str
    why_not: str


def entries() -> list[Entry]:
    """The catalogue, each entry with the first mapping whose words it has, or an empty one."""
    maps = json.loads((DATA / "refusal_rows.json").read_text(encoding="utf-8"))
    lines = (DATA / "refusals.jsonl").read_text(encoding="utf-8").splitlines()
    return [_entry(json.loads(line), maps) for line in lines]


def _entry(raw: Mapping[str, Any], maps: list[Mapping[str, Any]]) -> Entry:
    format = WRITTEN.get(raw["format"], raw["format"])
    body = raw["body"].replace('\\"', '"')
    fits = (m for m in maps if m["format"] == format and m["says"] in body)
    found = next(fits, {})
    return Entry(
        raw["provider"], format, raw["kind"], message(raw["body"]), tuple(found.get("rules", ())),
        found.get("limit", ""), found.get("why_not", ""),
    )  # fmt: skip


def message(body: str) -> str:
    """The text of an error body, through any nesting."""
    try:
        value = json.loads(body)
    except ValueError:
        return " ".join(body.split())
    while isinstance(value, dict):
        inner = value.get("metadata", {}).get("raw") or value.get("error") or value.get("Error")
        value = inner or value.get("message") or value.get("Message") or ""
    return (
        message(value) if isinstance(value, str) and value[:1] == "{" else " ".join(value.split())
    )


# --- the page --------------------------------------------------------------------------------


def page() -> str:
    """The whole page."""
    names = ", ".join(f"`{name}`" for name in FORMATS["openai-chat"].dialects)
    parts = [INTRO.format(dialects=names)]
    for format, title in TITLES.items():
        table = FORMATS[format].rules
        parts += [f"## {title}\n", *_limits(table), *_rows(table)]
    return "\n".join((*parts, *_coverage()))


def _limits(table: RuleTable) -> Iterator[str]:
    told = [f"{name} {most:,}" for name, most in table.limits.items()]
    if told:
        yield f"Hard limits: {', '.join(told)}.\n"
    for cap in table.dialect_limits:
        whose = ", ".join(sorted(cap.dialects)) + (f" (models `{cap.model}`)" if cap.model else "")
        text = _cell(cap.error_text)
        yield f"Limit of {whose}: {cap.limit} {cap.most}. “{text}” ({cap.source}).\n"


def _rows(table: RuleTable) -> Iterator[str]:
    yield "| rule | whose | what the provider says | source | sure | repair |"
    yield "|---|---|---|---|---|---|"
    for row in table.rows:
        cells = (f"`{row.name}`", whose(row), row.error_text, row.source, row.sure, row.repair)
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def whose(row: Rule) -> str:
    """The dialects that have the rule, in words."""
    named = "everyone" if row.dialects is None else ", ".join(sorted(row.dialects))
    named += f", not {', '.join(sorted(row.except_for))}" if row.except_for else ""
    named += f" (models `{row.models}`)" if row.models else ""
    return f"from version {row.since} on" if row.since else named or "whoever refused it"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")


def _coverage() -> Iterator[str]:
    yield "## Where each quoted refusal went\n"
    yield (
        "The refusals we have seen quoted, of the kinds a request's form can cause, and the rows "
        "they led to.\n"
    )
    yield "| provider | format | kind | words | rows |"
    yield "|---|---|---|---|---|"
    for entry in entries():
        went = ", ".join(f"`{rule}`" for rule in entry.rules)
        went = went or (
            f"limit: {entry.limit}" if entry.limit else f"out of scope: {entry.why_not}"
        )
        cells = (entry.provider, entry.format, entry.kind, entry.message[:160], went)
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def main() -> int:
    """Write or check; returns the exit code."""
    fresh = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == fresh else 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
