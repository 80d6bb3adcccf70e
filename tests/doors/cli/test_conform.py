"""``trimtab conform`` and ``pytest --conform``: targets of every kind, outputs, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from trimtab.cli import main

TARGETS = '''
"""Targets: one that does nothing, one that keeps the newest messages, middlewares."""
def same(request):
    return request

def newest(messages, max_tokens):
    return messages[:1] + messages[-6:]

def clears(window):
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=int(0.9 * window))])

def ours(window):
    from trimtab.clients.langchain import TrimtabMiddleware
    return TrimtabMiddleware(window=window)
'''


@pytest.fixture(autouse=True)
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_targets.py").write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_target_that_does_nothing_fails_and_the_table_says_how_to_run_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["conform", "my_targets:same", "--format", "openai-chat", "--cases", "8"]
    assert main(asked) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "my_targets:same: 8 cases at 8,000 tokens, formats openai-chat"
    row = next(n for n, line in enumerate(lines) if line.startswith("  fits"))
    assert "1/8" not in lines[row]
    assert "first: seed 1 (long trace), openai-chat, turn 1:" in lines[row + 1]
    again = lines[row + 2].split("again: trimtab ")[1].split()
    assert main(again) == 1
    assert "my_targets:same: 1 case" in capsys.readouterr().out
    assert main([*again[:-4], "--seed", "12", "--format", "openai-chat"]) == 0


def test_what_was_found_is_written_as_json_junit_and_badge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("json", "junit", "badge")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    asked = ["conform", "messages:my_targets:newest", "--cases", "7", *options]
    assert main(asked) == 1
    found = json.loads(files["json"].read_text())
    assert found["passed"] is False
    rows = {row["name"]: row for row in found["properties"]}
    assert rows["pairs"]["failures"][0]["format"] == "openai-chat"
    suite = ElementTree.fromstring(files["junit"].read_text())
    failed = [one.get("name") for one in suite if one.find("failure") is not None]
    assert failed == [name for name, row in rows.items() if row["failures"]]
    assert suite.get("failures") == str(len(failed))
    badge = ElementTree.fromstring(files["badge"].read_text())
    held = sum(1 for row in rows.values() if row["judged"] and not row["failures"])
    assert f"{held}/" in "".join(badge.itertext())
    capsys.readouterr()
    assert main([*asked[:4], "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out) == found


def test_a_langchain_middleware_is_judged_by_what_the_model_gets(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    asked = ["--json", str(out), "--cases", "7", "--window", "4k"]
    assert main(["conform", "langchain:my_targets:ours", *asked]) == 0
    assert main(["conform", "langchain:my_targets:clears", *asked]) == 1
    failed = {row["name"] for row in json.loads(out.read_text())["properties"] if row["failures"]}
    assert {"fits", "legal", "pairs"} <= failed
    assert "constraints" not in failed


def test_a_gateway_is_put_before_the_strict_provider(capsys: pytest.CaptureFixture[str]) -> None:
    port = 18_467
    start = (f"{sys.executable} -m trimtab proxy --upstream {{upstream}} --store memory "
             f"--listen 127.0.0.1:{port} --window 4000")  # fmt: skip
    asked = ["conform", f"http://127.0.0.1:{port}", "--start", start]
    asked += ["--cases", "3", "--window", "4k"]
    assert main(asked) == 0
    assert "9 of 9" not in capsys.readouterr().out  # three cases do not ask for everything


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing:at_all"], "cannot be loaded"),
        (["my_targets:same", "--window", "100"], "4,000 and up"),
        (["my_targets:same", "--seed", "77"], "drawn ones from 100"),
        (["http://127.0.0.1:9", "--upstream", "example.org:80"], "127.0.0.1:PORT"),
        (["http://127.0.0.1:9", "--start", f"{sys.executable} -c exit(3)"], "code 3"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_pytest_has_an_item_for_each_property(tmp_path: Path) -> None:
    def pytest_run(*options: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:trimtab"]
        command += ["-p", "trimtab_lab.pytest_plugin"]
        more = ["-p", "no:cacheprovider", "-rA", "--rootdir", str(tmp_path), *options]
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    formats = ["--conform-format", "openai-chat", "--conform-cases", "7"]
    code, out = pytest_run("--conform", "my_targets:same", *formats)
    assert code == 1, out
    assert "PASSED ::conform[openai-chat-speakers]" in out
    assert "FAILED ::conform[openai-chat-pairs]" in out
    assert "seed 6 (orphan results), turn 1" in out
    assert "SKIPPED" in out
