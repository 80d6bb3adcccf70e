"""docs/rules.md is current, and each quoted refusal has led to a row or to a reason.

Knows the page's script and the copied catalogue.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trimtab.formats import FORMATS
from trimtab.transcript.model import Facts

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import rules_page  # noqa: E402

ENTRIES = rules_page.entries()
ROWS = [(format, row) for format in FORMATS for row in FORMATS[format].rules.rows]


def test_the_page_is_what_the_tables_say() -> None:
    told = rules_page.PAGE.read_text(encoding="utf-8")
    assert told == rules_page.page(), "run: python scripts/rules_page.py"


def test_every_catalogue_entry_maps_to_a_row_or_a_reason() -> None:
    assert len(ENTRIES) >= 90
    for entry in ENTRIES:
        led_to = (bool(entry.rules), bool(entry.limit), bool(entry.why_not))
        assert sum(led_to) == 1, entry
        rows = {row.name: row for row in FORMATS[entry.format].rules.rows}
        for rule in entry.rules:
            assert rule in rows, entry
            assert any(rows[rule].sure in ("certain", "refused") for rule in entry.rules), entry
        if entry.limit:
            table = FORMATS[entry.format].rules
            assert entry.limit in {*table.limits, *(cap.limit for cap in table.dialect_limits)}, (
                entry
            )
        if entry.why_not:
            assert len(entry.why_not) > 30, entry


def test_a_row_that_answers_for_a_provider_concerns_that_provider() -> None:
    dialects = {"moonshot": "kimi", "zhipu": "glm", "mistral": "mistral", "deepseek": "deepseek",
                "minimax": "minimax", "openai": "openai", "llama.cpp": "llamacpp"}  # fmt: skip
    chat = [e for e in ENTRIES if e.format == "openai-chat" and e.provider in dialects]
    assert len(chat) >= 20
    for entry in chat:
        rows = {row.name: row for row in FORMATS["openai-chat"].rules.rows}
        if entry.rules:
            facts = Facts(dialect=dialects[entry.provider])
            concerned = [rows[rule].is_refused_by(facts) for rule in entry.rules]
            old = "content_and_calls" in entry.rules  # of Mistral's older models
            assert any(concerned) if old else all(concerned), entry


def test_no_mapping_is_left_over() -> None:
    maps = json.loads((rules_page.DATA / "refusal_rows.json").read_text(encoding="utf-8"))
    lines = (rules_page.DATA / "refusals.jsonl").read_text(encoding="utf-8").splitlines()
    raw: list[Any] = [json.loads(line) for line in lines]
    for found in maps:
        entries = [rules_page._entry(entry, [found]) for entry in raw]
        assert any(entry.rules or entry.limit or entry.why_not for entry in entries), found


@pytest.mark.parametrize(("format", "row"), ROWS, ids=[f"{f}-{r.name}" for f, r in ROWS])
def test_every_row_says_what_who_and_how_it_is_mended(format: str, row: Any) -> None:
    assert format in FORMATS
    assert row.error_text
    assert row.source
    assert row.repair
    assert row.sure in ("certain", "refused", "inferred", "accepted")
