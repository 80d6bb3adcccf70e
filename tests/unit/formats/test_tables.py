"""A rule and its findings are joined by name: each row has a scan, each finding a row."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from trimtab import formats
from trimtab.formats import FORMATS, rules
from trimtab.formats.repair.id_case import with_id_case

FOLDER = Path(rules.__file__).parent
NODES = [
    node
    for file in sorted(FOLDER.rglob("*.py"))
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
]
CALLS = [node for node in NODES if isinstance(node, ast.Call)]
ROWS = {row.name for format in FORMATS.values() for row in format.rules.rows}


def named(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    yield from (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def test_each_finding_that_a_scan_names_has_a_row() -> None:
    """A finding without a row is dropped, as a row of another dialect would be."""
    scans = ("Finding", "_finding", "reports")
    found = {name for call in CALLS if named(call) in scans for name in texts(call.args)}
    found = {name for name in found if re.fullmatch("[a-z_]+", name)}  # details are sentences
    assert len(found) > 20
    assert found - ROWS == set()


def test_each_row_is_named_by_a_scan_and_not_by_itself_alone() -> None:
    """Scans name findings in ``Finding``, or by what is wrong with a part (a table of flaws)."""
    told = Counter(texts(NODES))
    rows = Counter(name for call in CALLS if named(call) == "Rule" for name in texts(call.args[:1]))
    assert {name for name in ROWS if told[name] <= rows[name]} == set()


def test_a_table_without_what_the_row_of_ids_needs_says_so() -> None:
    table = FORMATS["anthropic"].rules
    for rows in (table.rows[1:], [row for row in table.rows if row.name != "orphan_result"]):
        with pytest.raises(ValueError, match="unreadable_text must be the first row"):
            with_id_case(replace(table, rows=tuple(rows)))


BESIDE = [
    ({"messages": []}, "openai-chat", True),
    ({"messages": []}, "openai-chat:mistral", True),
    ({"messages": []}, "openai-chat:mistral-v3", False),
    ({"messages": []}, "anthropic", True),
    ({"messages": [], "modelId": "meta.llama3-1-70b-instruct-v1:0"}, "bedrock", False),
    ({"messages": [], "modelId": "anthropic.claude-sonnet-4-20250514-v1:0"}, "bedrock", True),
]


@pytest.mark.parametrize(("request_", "format", "takes"), BESIDE, ids=str)
def test_words_beside_calls_are_taken_by_all_but_those_that_refuse_them(
    request_: dict[str, object], format: str, takes: bool
) -> None:
    transcript = formats.read(request_, formats.find(request_, format)[0], model=None)
    assert rules.takes_words_beside_calls(transcript) == takes
