"""Real session logs, judged by a reader of their own.

Reads every file below the folder that ``TRIMTAB_LOGS`` names, for instance ``~/.claude/projects``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from session_log_judge import codex_items, differences, said, steps

from trimtab.logs import log_files
from trimtab.logs.kinds import NO_TURN

FOLDER = os.environ.get("TRIMTAB_LOGS", "")
FILES = sorted(p for p in Path(FOLDER).rglob("*.json*") if p.is_file()) if FOLDER else []

pytestmark = pytest.mark.skipif(
    not FILES, reason="name a folder with session logs: TRIMTAB_LOGS=~/.claude/projects"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_session_log_is_read_as_its_lines_say(path: Path) -> None:
    logs = log_files.read([str(path)])
    assert [p for p in logs.problems if p.message != NO_TURN] == []
    main = [r for r in [*logs.recordings, *logs.unanswered] if r.task in ("", "main")]
    text = path.read_text()
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    agent = main[0].agent
    if agent == "codex":
        assert [list(r.messages) for r in main] == codex_items(values)
        return
    wanted = said(agent, values)
    assert len(main) == len(wanted)
    for recording, conversation in zip(main, wanted, strict=True):
        assert not list(differences(conversation, steps(recording.format, recording.messages)))[:3]
