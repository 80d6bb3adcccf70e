"""Children that are forked while threads of their parent fit: none hangs, nothing is lost.

``bench/forks.py`` tries it with hundreds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import store_urls

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
CHILDREN = 24
PROGRAM = """
import dataclasses, json, sys
from forked_children import forked
print(json.dumps(dataclasses.asdict(forked(sys.argv[1] or None, int(sys.argv[2])))))
"""
# From 3.12 on Python warns of a fork beside threads: that is what is tried here.
QUIET = ("-W", "ignore::DeprecationWarning")


def outcome(program: str, *words: str) -> dict[str, object]:
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, *QUIET, "-c", program, *words],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


KINDS = [
    "fit", *store_urls.NEAR,
    *(pytest.param(kind, marks=pytest.mark.world) for kind in store_urls.FAR),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_child_hangs_and_nothing_is_lost(kind: str, tmp_path: Path) -> None:
    if kind == "fit":
        found = outcome(PROGRAM, "", str(CHILDREN))
    else:
        with store_urls.store_url(kind, tmp_path) as url:
            found = outcome(PROGRAM, url, str(CHILDREN))
    assert found == {"children": CHILDREN, "hung": [], "failed": [], "parent": [], "lost": []}


COUNTED = """
import json, os, sys, trimtab
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
session = trimtab.Session(store=sys.argv[1], **as_keywords(**KEYWORDS))
for turns in (12, 16):
    session.fit(request(turns))
for number in range(2):
    if (pid := os.fork()) == 0:
        for turns in (17, 18, 19):
            session.fit(request(turns))
        session.close()
        os._exit(0)
    os.waitpid(pid, 0)
session.fit(request(20))
print(json.dumps({"turns": session.stats()["turns"]}))
session.close()
"""


def test_turns_of_children_are_counted_beside_those_of_their_parent(tmp_path: Path) -> None:
    with store_urls.store_url("sqlite", tmp_path) as url:
        assert outcome(COUNTED, url) == {"turns": 2 + 2 * 3 + 1}


OUTLIVED = """
import json, os, sqlite3, sys, threading, trimtab
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
words = as_keywords(**KEYWORDS)
session = trimtab.Session(store=sys.argv[1], **words)
session.fit(request(20, 1))
begun, (read, write), (told, tell) = threading.Event(), os.pipe(), os.pipe()
if os.fork() == 0:
    session.fit(request(20, 2))
    os.write(write, b".")
    os.read(told, 1)                 # the parent has closed the store
    done = session.fit(request(20, 3))
    os._exit(bool(done.report.warnings))
os.read(read, 1)
session.close()  # SQLite deletes the log if nobody else has it open
os.write(tell, b".")
_, status = os.wait()
again = trimtab.Session(store=sys.argv[1], **words)
new = sum(edit.new for seed in (1, 2, 3) for edit in again.fit(request(20, seed)).report.edits)
again.close()
print(json.dumps({"status": status, "new": new}))
"""


def test_what_a_child_wrote_outlives_its_parent_s_connection(tmp_path: Path) -> None:
    """A child with an inherited connection holds no lock that its parent sees."""
    with store_urls.store_url("sqlite", tmp_path) as url:
        assert outcome(OUTLIVED, url) == {"status": 0, "new": 0}


FIRST = """
import json, os, sys, threading, time, trimtab
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
words, body = as_keywords(**KEYWORDS), request(20)
for _ in range(3):
    threading.Thread(target=lambda: trimtab.fit(body, **words), daemon=True).start()
time.sleep(float(sys.argv[1]))
if (pid := os.fork()) == 0:
    trimtab.fit(body, **words)
    os._exit(0)
until = time.monotonic() + 15
while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < until:
    time.sleep(0.01)
if not ended:
    os.kill(pid, 9)
print(json.dumps({"ended": ended == pid}), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("seconds", [0.02, 0.06, 0.12, 0.2])
def test_a_child_that_is_forked_during_the_first_fit_does_not_hang(seconds: float) -> None:
    """Modules are imported on first use, by the threads of the parent."""
    assert outcome(FIRST, str(seconds)) == {"ended": True}
