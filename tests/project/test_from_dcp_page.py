"""docs/howto/from-dcp.md: its figures are those of its command, its settings exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from trimtab.config import load_settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "from-dcp.md").read_text(encoding="utf-8")


def test_the_table_is_what_the_command_prints() -> None:
    printed = subprocess.check_output(
        [sys.executable, str(ROOT / "bench" / "immediate_pruning.py")], text=True
    )
    (block,) = re.findall(r"```text\n\$ python bench/immediate_pruning.py\n(.*?)```", PAGE, re.S)
    assert printed == block
    breaks, whole, last = re.search(
        r"(\d+) of 120 turns\. The last request is (\d+) % smaller, and all\nrequests together "
        r"cost (\d+) % more", PAGE,
    ).groups()  # type: ignore[union-attr]  # fmt: skip
    rows = [line.split() for line in printed.splitlines()]
    sizes = [int(row[-2].replace(",", "")) for row in (rows[1], rows[-1])]
    assert rows[-1][-3] == breaks
    assert round(100 * (1 - sizes[1] / sizes[0])) == int(whole)
    assert round(100 * (float(rows[-1][-1]) - 1)) == int(last)


def test_the_settings_file_of_the_page_is_read_without_a_problem(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    (tmp_path / "trimtab.toml").write_text(block)
    settings = load_settings(tmp_path)
    assert settings.given.items() >= tomllib.loads(block).items()
