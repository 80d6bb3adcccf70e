"""What must not be lost of seven recorded command outputs, written down before any digest of them.

Knows ``data_files/outputs``; recorded with pytest 9, make and gcc 12, ls, grep, git, apt-get and
Python 3.12 (a worker script that logs what it catches), paths made relative.  Facts are pieces of
lines, spelled as in the output.
"""

from __future__ import annotations

import re
from pathlib import Path

OUTPUTS = Path(__file__).parent / "data_files" / "outputs"
NAMES = ("test_run", "build", "listing", "search", "diff", "install", "traces")


def output(name: str) -> str:
    """One recorded output, standard output and standard error as they came."""
    return (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")


_PLACE = "test_a_place_that_does_not_exist_is_named"
_SHOWN = "test_paths_are_shown_as_people_write_them"
_RESPELL = "test_respelling_takes_away_only_what_carries_nothing"
_SLOW = "hypothesis.errors.FailedHealthCheck: Input generation is slow: Hypothesis only generated"

TEST_RUN = [
    "platform linux -- Python 3.11.7, pytest-9.2.0, pluggy-1.7.0",
    "plugins: hypothesis-6.170.15, anyio-4.16.0",
    "collected 392 items",
    "12 failed, 380 passed in 72.30s (0:01:12)",
    "[exit status 1]",
    # each failing test …
    "FAILED tests/test_paths.py::test_a_path_of_the_new_tree_leads_back_to_the_same_place_in_the_",
    "FAILED tests/test_paths.py::test_everything_untouched_keeps_its_spelling",
    f"FAILED tests/test_paths.py::{_PLACE}[op1-a[2]]",
    f"FAILED tests/test_paths.py::{_PLACE}[op8-a[2]]",
    f'FAILED tests/test_paths.py::{_PLACE}[op9-a["x y"]]',
    f'FAILED tests/test_paths.py::{_SHOWN}[path3-a["x.y"]["0"][""]["\\xe9"]]',
    f'FAILED tests/test_paths.py::{_SHOWN}[path4-["$"]]',
    "FAILED tests/test_paths.py::test_get_reads_and_names_what_is_missing",
    f"FAILED tests/test_respelling.py::{_RESPELL}[shorter over longer]",
    f"FAILED tests/test_respelling.py::{_RESPELL}[erased line]",
    "FAILED tests/test_respelling.py::test_progress_ends_as_a_terminal_shows_it",
    "FAILED tests/test_respelling.py::test_progress_that_moves_the_cursor_keeps_every_state",
    # … with its place …
    "tests/test_paths.py:112: FailedHealthCheck",
    "tests/test_paths.py:145: FailedHealthCheck",
    "tests/test_paths.py:295: AssertionError",
    "tests/test_paths.py:293: Failed",
    "tests/test_paths.py:315: AssertionError",
    "tests/test_paths.py:321: AssertionError",
    "tests/test_respelling.py:48: AssertionError",
    "tests/test_respelling.py:144: AssertionError",
    "tests/test_respelling.py:150: AssertionError",
    # … and its assertion; the first and the last are the first and the last error
    f"{_SLOW} 9 valid inputs after 1.04 seconds.",
    f"{_SLOW} 9 valid inputs after 1.07 seconds.",
    "AssertionError: assert 'list index out of range' == 'the request has no a[2]'",
    "Failed: DID NOT RAISE LookupError",
    """assert "the request has no a['x y']" == 'the request has no a["x y"]'""",
    """assert "a['x.y']['0']['']['é']" == 'a["x.y"]["0"][""]["é"]'""",
    """assert "['$']" == '["$"]'""",
    "AssertionError: Regex pattern did not match.",
    "Expected regex: 'the request has no a\\\\[1\\\\]'",
    "Actual message: 'list index out of range'",
    "AssertionError: assert 'Done\\n' == 'Doneloading\\n'",
    "AssertionError: assert 'Doneloading\\n' == 'Done\\n'",
    "AssertionError: assert '0' == '00'",
    "AssertionError: assert 'ab' == '日本語日本語\\nab'",
]

BUILD = [
    "gcc -std=c11 -O1 -Wall -Wextra -Wconversion -fno-diagnostics-color -c -o arena.o arena.c",
    "hash.c:7:15: error: ‘struct store’ has no member named ‘seed’",
    "replay.c:9:29: error: expected expression before ‘)’ token",
    "socket.c:8:26: error: storage size of ‘addr’ isn’t known",
    "tree.c:8:22: error: invalid type argument of ‘->’ (have ‘int’)",
    "make: *** [Makefile:9: hash.o] Error 1",
    "make: *** [Makefile:9: replay.o] Error 1",
    "make: *** [Makefile:9: socket.o] Error 1",
    "make: *** [Makefile:9: tree.o] Error 1",
    "make: Target 'libstore.a' not remade because of errors.",
    "[exit status 2]",
    # the first and the last warning, and one of each sort
    "arena.c:6:14: warning: format ‘%d’ expects argument of type ‘int’",
    "zone.c:3:35: warning: unused parameter ‘mode’ [-Wunused-parameter]",
    "[-Wtype-limits]",
    "[-Wunused-variable]",
    "[-Wunused-parameter]",
    "[-Wsign-compare]",
    "[-Wsign-conversion]",
    "[-Wimplicit-fallthrough=]",
    "[-Wformat=]",
    "[-Wincompatible-pointer-types]",
    "[-Wimplicit-function-declaration]",
]

_LISTING = output("listing")
LISTING = [
    "[exit status 0]",
    "-rw-r--r-- 1 root root  1220 2026-05-09 07:36 __init__.py",  # the first file
    "-rw-r--r-- 1 root root 24674 2026-05-09 07:36 _zoneinfo.py",  # the last
    # every directory with its total, and every directory within one
    *re.findall(r"^[\w/]+:\ntotal \d+$", _LISTING, re.MULTILINE),
    *re.findall(r"^d.*$", _LISTING, re.MULTILINE),
]

_SEARCH = output("search")
_BY_FILE = {
    path: [line for line in _SEARCH.split("\n") if line.startswith(f"{path}:")]
    for path in dict.fromkeys(re.findall(r"^([\w/]+\.py):", _SEARCH, re.MULTILINE))
}
SEARCH = [
    "[exit status 0]",
    "asyncio/trsock.py:88:        raise ValueError(",
    "mailbox.py:1547:            raise ValueError(\"subdir must be 'new' or 'cur': %s\" % subdir)",
    *(lines[0] for lines in _BY_FILE.values()),  # every file, with its first match
]

_DIFF = output("diff")
DIFF = [
    " 18 files changed, 479 insertions(+), 266 deletions(-)",
    "[exit status 1]",
    *re.findall(r"^ \{a => b\}/.*$", _DIFF, re.MULTILINE),  # every file with its counts
    *re.findall(r"^(?:diff --git|index|---|\+\+\+) .*$", _DIFF, re.MULTILINE),  # names, hashes
    *re.findall(r"^@@ -[\d,]+ \+[\d,]+ @@", _DIFF, re.MULTILINE),  # where
    "-        return self._register(ov, sock, finish_sendfile)",  # the last change
    "+        return self._register(ov, sock, self.finish_socket_func)",
]

_INSTALL = output("install")
INSTALL = [
    "2 upgraded, 414 newly installed, 0 to remove and 111 not upgraded.",
    "[exit status 0]",
    *re.findall(r"^Inst (\S+ (?:\[\S+\] )?\(\S+) ", _INSTALL, re.MULTILINE),  # every version
]

TRACES = [
    "ERROR worker: job 1 unpack failed",
    "zipfile.BadZipFile: File is not a zip file",
    'File "worker.py", line 33, in unpack',
    "ValueError: Port out of range 0-65535",
    'File "worker.py", line 44, in port',
    "struct.error: unpack requires a buffer of 16 bytes",
    'File "worker.py", line 36, in header',
    "decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]",
    'File "worker.py", line 30, in amount',
    "sqlite3.IntegrityError: UNIQUE constraint failed: parts.id",
    'File "worker.py", line 14, in insert',
    "configparser.MissingSectionHeaderError: File contains no section headers.",
    'File "worker.py", line 40, in settings',
    "KeyError: 41",
    'File "worker.py", line 20, in read',
    "INFO worker: 60 jobs, 54 failed",
    # the one that ended it, and its cause
    "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 1 column 12 (char 11)",
    "The above exception was the direct cause of the following exception:",
    'File "worker.py", line 27, in decode',
    "ShardLost: part 35 is damaged",
    "[exit status 1]",
]

FACTS = {
    "test_run": TEST_RUN, "build": BUILD, "listing": LISTING, "search": SEARCH,
    "diff": DIFF, "install": INSTALL, "traces": TRACES,
}  # fmt: skip
