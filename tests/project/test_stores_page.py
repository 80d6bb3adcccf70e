"""docs/stores.md: its Python runs, and every command it names is there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from trimtab.cli.commands import parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "stores.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks("python"):
        exec(code, names)
    assert (tmp_path / "agent.db").exists()


def test_the_commands_of_the_page_are_understood() -> None:
    lines = [line.split("  ")[0] for line in blocks("text")[0].splitlines()]
    assert len(lines) == 5
    for line in lines:
        words = line.replace("[", "").replace("]", "").split()[1:]
        assert parser().parse_args(words).store == "URL"
