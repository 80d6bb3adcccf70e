"""Fetches the published sessions of five projects, for the figures of docs/benchmark.md.

    python bench/transcripts.py FOLDER
    trimtab replay FOLDER --window 100k --each 5

The projects keep the logs of their coding agents in a branch of their repository (MIT and
Apache-2.0).  A session is logged anew at each commit: the longest log of each is written to
FOLDER/PROJECT/ID.jsonl.  1.5 GB are downloaded; needs git and 4 GB of disk.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = {
    "agentv": "EntityProcess/agentv 47dca0eea369e545808f72dd9473c846f66dd79f",
    "context-evaluator": "PackmindHub/context-evaluator 63679d4764ce74bb41f8e5794f6183d43ea9ee88",
    "entire-cli": "entireio/cli 394f81fab87f71aa8938d91ff7a067c524ff344b",
    "entire-skills": "entireio/skills 5fa5d6d2c9b976a2c6dfa60527c8ea351fae8be6",
    "oh-my-posh": "JanDeDobbeleer/oh-my-posh 0d1116c02814bec7231dbe3c3b9661106418a724",
}
"""Project: its repository at GitHub, and a commit of the branch that has the logs."""
SESSION = re.compile(rb'"(?:sessionId|session_id|id)": ?"([0-9a-fA-F-]{36})"')


class Log(NamedTuple):
    """A version of a session's log: its blob, and its bytes."""

    blob: str
    size: int


def git(repository: Path, *words: str) -> bytes:
    """What git prints.  Raises CalledProcessError."""
    command = ["git", "-C", str(repository), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def logs(repository: Path, commit: str) -> Iterator[Log]:
    """The logs in a commit, the longest first."""
    rows = (row.split() for row in git(repository, "ls-tree", "-rl", commit).decode().splitlines())
    found = [Log(row[2], int(row[3])) for row in rows if row[4].endswith("/full.jsonl")]
    return iter(sorted(found, key=lambda log: (-log.size, log.blob)))


def write(repository: Path, commit: str, folder: Path) -> int:
    """Write the longest log of each session; return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    seen = set[str]()
    for log in logs(repository, commit):
        text = git(repository, "cat-file", "blob", log.blob)
        if (found := SESSION.search(text)) and (session := found[1].decode()) not in seen:
            seen.add(session)
            (folder / f"{session}.jsonl").write_bytes(text)
    return len(seen)


def fetch(project: str, folder: Path) -> int:
    """Download a project's sessions; return how many there are."""
    name, commit = SOURCES[project].split()
    with tempfile.TemporaryDirectory() as place:
        repository = Path(place)
        git(repository, "init", "-q", "--bare")
        git(repository, "fetch", "-q", "--depth", "1", f"https://github.com/{name}", commit)
        return write(repository, commit, folder / project)


def main() -> None:
    """A line for each project."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--project", nargs="+", choices=SOURCES, default=list(SOURCES))
    args = parser.parse_args()
    for project in args.project:
        print(f"{project}: {fetch(project, args.folder)} sessions", flush=True)


if __name__ == "__main__":
    main()
