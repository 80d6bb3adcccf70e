"""docs/settings.md names every key with its default kind, and its examples run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import trimtab
from trimtab import config, setting_keys

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_names_every_key_once_and_only_keys_that_exist(tmp_path: Path) -> None:
    told = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", blocks("toml")[0], flags=re.MULTILINE))
    kept = {key: set(keys) for key, keys in setting_keys.KEYS.items() if isinstance(keys, dict)}
    assert {key: set(told[key]) for key in kept} == kept
    assert set(setting_keys.KEYS) - set(told) == {"model", "counter"}
    (tmp_path / "trimtab.toml").write_text(blocks("toml")[0])
    loaded = config.load(tmp_path, {"TRIMTAB_PLUGINS": "0", "OPENAI_API_KEY": "k"})
    assert loaded.problems == []
    assert loaded.keywords()["duplicates"] == trimtab.Duplicates()
    assert loaded.keywords()["failed_inputs"] == trimtab.FailedInputs()
    assert loaded.keywords()["articles"] == trimtab.ArticleRule()
    asked = loaded.keywords()["summarizer"]
    defaults = {"parallel": 4, "seconds": 30.0, "most_asks": 16, "steps": True}
    assert {key: getattr(asked, key) for key in defaults} == defaults


def test_the_example_strategy_runs() -> None:
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
        {"model": "gpt-5", "messages": messages}, window=16_000, counter="o200k",
        extra_strategies=[example["first_line"]],
    )  # fmt: skip
    assert not fitted.report.warnings
    assert {edit.kind for edit in fitted.report.edits} == {"tickets"}
