"""A day of pauses in small: the store's thread ends after each request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAUSES = Path(__file__).resolve().parents[1] / "soak/pauses.py"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts in /proc")
def test_a_day_of_pauses_leaves_as_many_descriptors_and_threads_as_its_first_hour():
    done = subprocess.run(
        [sys.executable, str(PAUSES), "--hours", "24", "--pause", "3600"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]
    requests = re.search(r"(\d+) requests, the store's thread ended (\d+) times", done.stdout)
    assert requests, done.stdout
    assert requests[1] == requests[2] == "24"
