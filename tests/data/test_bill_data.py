"""The bill of the raw session logs among the transcripts, against what the providers billed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records import records

from trimtab.logs import log_files
from trimtab_lab.replay.bill.conversations import conversations
from trimtab_lab.replay.bill.policies import Comparison

pytestmark = pytest.mark.data

RAW = ("claude-code-jsonl", "codex-jsonl")


def test_the_method_reproduces_the_bill_of_raw_session_logs(tmp_path: Path) -> None:
    for number, (_, record) in enumerate(records(*RAW)):
        lines = "".join(json.dumps(line) + "\n" for line in record["messages"])
        (tmp_path / f"{number}.jsonl").write_text(lines, encoding="utf-8")
    found = conversations(log_files.read([str(tmp_path)]).recordings)
    error = Comparison(found).error()
    assert error.calls > 1_000
    assert error.in_sum is not None
    assert abs(error.in_sum) < 0.03
    assert abs(error.estimated_tokens / error.tokens - 1) < 0.01
