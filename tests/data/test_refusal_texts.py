"""The strict provider's refusals against the catalogue of quoted ones they were made from.

Knows where the catalogue is.  Each row that names a source must say exactly what some entry says,
numbers and ids aside.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from records import folder
from world_needs import absent

from trimtab_lab.testing.http_apis.refusals import _table

pytestmark = pytest.mark.data
_HOLE = re.compile(r"\{[a-z_]+\}")


def catalogue() -> list[dict[str, Any]]:
    where = folder()
    path = Path(where).parent / "provider_errors.jsonl" if where else None
    if path is None or not path.exists():
        absent("no error catalogue beside the transcripts: set TRIMTAB_DATA")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def words(body: Any) -> str:
    """The longest text of a body: its message."""
    if isinstance(body, dict):
        return max((words(value) for value in body.values()), key=len, default="")
    if isinstance(body, list):
        return max((words(value) for value in body), key=len, default="")
    return body if isinstance(body, str) else ""


def quoted(entry: dict[str, Any]) -> str:
    """The entry's message, as deep as JSON is nested in it."""
    body = entry["body"].removeprefix("event: response.failed\ndata: ")
    try:
        return words(json.loads(body))
    except ValueError:
        return str(body)


def test_every_refusal_that_names_a_source_is_in_the_catalogue():
    entries, rows = catalogue(), _table()[1]
    unknown = []
    for key, row in rows.items():
        if row["source"].startswith(("not in the catalogue", "Anthropic's words")):
            continue
        said = ".*".join(re.escape(part) for part in _HOLE.split(words(row["body"])))
        same = [e for e in entries if e["source"] == row["source"] and e["status"] == row["status"]]
        if not any(re.search(said, quoted(e), re.DOTALL) for e in same):
            unknown.append(key)
    assert unknown == []


def test_most_refusals_are_quotations():
    sources = [row["source"] for row in _table()[1].values()]
    assert sum(source.startswith("not in the catalogue") for source in sources) < len(sources) / 4
