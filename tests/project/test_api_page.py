"""docs/reference/api.md names all that is public, and what ``wrap`` takes."""

from __future__ import annotations

import re
from pathlib import Path

import trimtab
from trimtab.clients.guard import WrapKeywords

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"


def test_the_page_names_each_keyword_of_wrap_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {*WrapKeywords.__annotations__}


def test_every_public_name_is_on_the_page_or_that_of_errors() -> None:
    text = PAGE.read_text(encoding="utf-8") + PAGE.with_name("errors.md").read_text("utf-8")
    missing = [name for name in trimtab.__all__ if not re.search(rf"`(?:[^`\n]*\b)?{name}\b", text)]
    described = re.findall(r"^::: [\w.]+\.(\w+)$", text, re.MULTILINE)
    assert not [name for name in missing if name not in described]
    assert not [name for name in trimtab._PARTS if f"`{name}`" not in text.replace("trimtab.", "")]
