"""A process with few file descriptors lives through a session of many pauses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts in /proc")

PAUSES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import time, trimtab
from trimtab.stores import writer
writer.IDLE_SECONDS = 0.01
session = trimtab.Session(store="sqlite:///" + sys.argv[1], window=3_000)
words = " ".join(str(n * 7919) for n in range(900))
history = [{"role": "user", "content": "go"}]
for turn in range(60):
    function = {"name": "read", "arguments": "{}"}
    call = {"id": f"c{turn}", "type": "function", "function": function}
    history.append({"role": "assistant", "content": None, "tool_calls": [call]})
    text = f"{turn} {words}" if turn % 3 else "none"
    history.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text})
    done = session.fit(history)
    assert not done.report.warnings, done.report.warnings
    time.sleep(0.04)
print("lived")
"""


def test_a_session_of_many_pauses_lives_with_64_descriptors(tmp_path: Path):
    """Before, each pause left two open."""
    done = subprocess.run(
        [sys.executable, "-c", PAUSES, f"{tmp_path}/s.db"], capture_output=True, text=True,
        timeout=120, env={**os.environ},
    )  # fmt: skip
    assert done.stdout == "lived\n", done.stderr[-2_000:]
