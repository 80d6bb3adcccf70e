"""``examples/record.py`` writes the shipped sessions anew only where the whole story ran."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SESSIONS = ("session.anthropic.json", "session.openai.json")
posix = pytest.mark.skipif(sys.platform == "win32", reason="the story's commands are POSIX")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what ``record.py`` needs and of what it writes."""
    folder = tmp_path / "examples"
    folder.mkdir()
    for name in ("record.py", "steps.py", *SESSIONS):
        shutil.copy(EXAMPLES / name, folder)
    ignore = shutil.ignore_patterns("__pycache__", ".*_cache")
    shutil.copytree(EXAMPLES / "tally", folder / "tally", ignore=ignore)
    return folder


def record(folder: Path, python: str, *more: str) -> tuple[int, str]:
    """Exit status and what was printed."""
    done = subprocess.run(
        [python, str(folder / "record.py"), *more], capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def sessions(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in SESSIONS]


@posix
def test_without_pytest_it_says_so_and_leaves_the_sessions_alone(
    copy: Path, tmp_path: Path
) -> None:
    before = sessions(copy)
    venv.create(tmp_path / "bare", with_pip=False)
    status, said = record(copy, str(tmp_path / "bare" / "bin" / "python"))
    assert status == 1
    assert "nothing was recorded" in said
    assert "No module named pytest" in said
    assert sessions(copy) == before
    assert sorted(file.name for file in copy.glob("session.*")) == sorted(SESSIONS)


def test_a_command_that_ends_otherwise_is_named_and_nothing_is_written(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(copy))
    names = runpy.run_path(str(copy / "record.py"))
    body = json.loads((copy / "session.openai.json").read_text())
    refuse = names["refuse_other_outcomes"]
    refuse(body)
    results = [one for one in body["messages"] if one["role"] == "tool"]
    results[4]["content"] = "sh: pytest: not found\n\n[exit status 127]"
    with pytest.raises(
        SystemExit, match=r"(?s)call 5: ok → \[exit status 127\].*record.py --changed"
    ):
        refuse(body)
    del results[-1], body["messages"][-3:]
    with pytest.raises(SystemExit, match="nothing was written"):
        refuse(body)
