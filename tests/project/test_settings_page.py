"""docs/settings.md names every key with its default kind, and its examples run."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import trimtab
from trimtab import config
from trimtab.setting_kinds import COUNT, declared, setting

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

import settings_page

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_is_what_the_declarations_say() -> None:
    for path, text in settings_page.pages().items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/settings_page.py"


def test_a_new_setting_appears_on_the_page_by_its_declaration_alone() -> None:
    @dataclass(frozen=True)
    class Own:
        depth: int = setting(3, COUNT, "how deep", group="Mine")

    assert "### Mine" in settings_page.tables(declared(Own))
    assert "| `depth` | a whole number, 0 or more" in settings_page.tables(declared(Own))


def test_the_page_says_each_key_that_a_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text(blocks("toml")[0])
    loaded = config.load(tmp_path, {"TRIMTAB_PLUGINS": "0"})
    assert loaded.problems == []
    assert loaded.settings().preset == "economy"
    for path, _ in config.leaves(config.SETTINGS):
        assert f"| `{path[-1]}` |" in PAGE


def test_the_example_reducer_runs() -> None:
    example = {}
    exec(blocks("python")[1], example)
    call = {"id": "c", "type": "function", "function": {"name": "tickets", "arguments": "{}"}}
    turns = [
        [{"role": "assistant", "content": None, "tool_calls": [call]},
         {"role": "tool", "tool_call_id": "c", "content": f"Title {n}\n" + f"detail {n} " * 900}]
        for n in range(8)
    ]  # fmt: skip
    messages = [{"role": "user", "content": "Go."}, *(m for turn in turns for m in turn)]
    fitted = trimtab.fit(
        {"model": "gpt-5", "messages": messages},
        window=16_000,
        settings=trimtab.Settings(counter="o200k", extra_reducers=[example["first_line"]]),
    )
    assert not fitted.report.warnings
    assert {edit.kind for edit in fitted.report.edits} == {"tickets"}
