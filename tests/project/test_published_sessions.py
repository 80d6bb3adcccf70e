"""bench/transcripts.py: which logs it takes out of a repository."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import transcripts

SESSIONS = ("00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b")


def repository(folder: Path, logs: dict[str, str]) -> str:
    """A repository with these files; the commit."""
    for name, text in logs.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "logs"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    head = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


def rows(session: str, many: int) -> str:
    return f"{json.dumps({'sessionId': session})}\n" * many


def test_of_a_session_that_was_logged_at_each_commit_the_longest_log_is_taken(
    tmp_path: Path,
) -> None:
    first, second = SESSIONS
    logs = {
        "01/a/0/full.jsonl": rows(first, 2), "02/b/1/full.jsonl": rows(first, 5),
        "03/c/0/full.jsonl": rows(second, 3), "03/c/0/metadata.json": rows(second, 9),
    }  # fmt: skip
    (tmp_path / "project").mkdir()
    commit = repository(tmp_path / "project", logs)
    assert transcripts.write(tmp_path / "project", commit, tmp_path / "out") == 2
    kept = {file.stem: file.read_text("utf-8") for file in (tmp_path / "out").iterdir()}
    assert kept == {first: rows(first, 5), second: rows(second, 3)}
