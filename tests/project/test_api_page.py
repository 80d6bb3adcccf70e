"""docs/reference/api.md lists what ``wrap`` takes, which its signature does not show."""

from __future__ import annotations

import re
from pathlib import Path

from trimtab.clients.guard import WrapKeywords

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"


def test_the_page_names_each_keyword_of_wrap_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {*WrapKeywords.__annotations__}
