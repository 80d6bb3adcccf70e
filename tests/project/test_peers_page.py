"""The page on other libraries: its reproductions are the files that ``reproduce.py`` runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from replay_story import MESSAGES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))

import policies  # noqa: E402
import reproduce  # noqa: E402
import run  # noqa: E402

PAGE = (ROOT / "docs/why/peers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```py\n(.*?)^```", PAGE, re.S | re.M)
FILES = {file.stem: file.read_text(encoding="utf-8") for file in reproduce.BUGS.glob("*.py")}


def test_every_reproduction_is_named_on_the_page_and_those_printed_are_as_they_are_run():
    named = re.findall(r"\[(\w+)\]\(\S+/bench/peers/bugs/\1\.py\)", PAGE)
    assert sorted(named) == sorted(FILES)
    texts = {text.strip() for text in FILES.values()}
    assert BLOCKS
    assert all(block.strip() in texts for block in BLOCKS)


def test_a_reproduction_has_about_ten_lines_says_what_it_prints_and_has_an_environment():
    known = {peer.environment for peer in run.PEERS}
    for name, text in FILES.items():
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        assert len(lines) <= 11, name
        assert "\n# prints " in text
        assert reproduce.ENVIRONMENTS[name.partition("_")[0]] in known


def test_the_table_has_a_row_for_each_peer_that_ran():
    names = re.findall(r"^\| (.+?) \| \S+(?: clone)? \|", PAGE, re.M)
    listed = [peer.name for peer in run.PEERS]
    assert [name for name in names if name in listed] == listed


def test_a_share_is_a_hundred_only_where_all_passed_and_what_did_not_run_stands_below():
    rows = [{"name": "fits", "share": 0.999}, {"name": "legal", "share": 1.0},
            {"name": "pairs", "share": None}]  # fmt: skip
    ran = {"name": "one", "version": "1", "board": {"properties": rows}}
    gone = {"name": "two", "version": "", "board": {"error": "no such package"}}
    table = list(run.rows([ran, gone]))
    assert table[1] == ["one", "1", "99", "100", "–"]
    assert run.markdown(table).endswith("two: not run: no such package.\n")
    assert "two" in run.plain(table)


def test_a_library_that_needs_a_newer_python_is_named_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIMTAB_PEERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    peer = run.PEERS[0]._replace(environment="newer", least=(9, 9))
    assert run.install(peer) == "no Python 9.9 on the path"
    assert not run.python_of(peer).exists()


ECHO = """
import json, sys
seen = []
for line in sys.stdin:
    seen += json.loads(line)["add"]
    if len(seen) > 4:
        answer = {"error": "too much"}
    else:
        answer = {"messages": [0, {"role": "user", "content": str(len(seen))}], "seconds": 0.5,
                  "calls": [[7, 3]], "originals": {"h": "x"}}
    print(json.dumps(answer), flush=True)
"""


def test_a_peer_is_asked_for_what_is_new_and_may_fail():
    process = policies._Process([sys.executable, "-c", ECHO])
    sent = process.step({"model": "m", "messages": MESSAGES[:1]})
    assert sent.request == {
        "model": "m",
        "messages": [MESSAGES[0], {"role": "user", "content": "1"}],
    }
    assert (sent.seconds, sent.calls, sent.originals) == (0.5, [(7, 3)], {"h": "x"})
    assert process.step({"messages": MESSAGES[:3]}).request["messages"][1]["content"] == "3"
    with pytest.raises(RuntimeError, match="too much"):
        process.step({"messages": MESSAGES[:7]})
