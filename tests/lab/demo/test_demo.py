"""``trimtab demo``: what it says is what happened, and it needs nothing but the base install."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from trimtab.cli import main
from trimtab.cli.terminal import Terminal
from trimtab_lab.demo import page, played, screen

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = (
    "jinja2", "aiohttp", "uvicorn", "httpx", "httpx2", "mcp", "pyarrow", "fsspec", "cryptography",
    "prometheus_client",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo() -> played.Demo:
    return played.play(played.recorded())


def test_the_session_of_the_package_is_the_one_of_the_examples():
    bundled = (resources.files("trimtab_lab.demo") / played.SESSION).read_bytes()
    assert gzip.decompress(bundled) == (ROOT / "examples/session.openai.json").read_bytes()
    assert len(bundled) < 300_000


def test_the_first_sentence_counts_what_the_strict_provider_refused_and_answered(demo):
    larger = [one for one in demo.requests if one.whole > demo.window]
    assert [one for one in demo.requests if one.refusal] == larger
    assert all("maximum context length is 32000 tokens" in one.refusal for one in larger)
    assert all(one.answered and one.sent <= demo.window for one in demo.requests)
    assert demo.first_sentence == (
        f"{len(larger)} of {len(demo.requests)} requests would have been refused; all were "
        "answered."
    )


def test_a_request_that_was_refused_all_the_same_is_counted(demo):
    worse = replace(demo.requests[-1], answered=False)
    said = replace(demo, requests=[*demo.requests[:-1], worse]).first_sentence
    assert said.endswith("would have been refused; 1 still was.")


def test_the_demo_has_the_figures_of_replay(demo, capsys):
    assert main(["replay", str(ROOT / "examples/session.openai.json"), "--window", "32k",
                 "--policy", "none,trimtab"]) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert all(sentence in said for sentence in demo.money_and_losses)


def test_every_original_equals_the_recording_and_has_the_lines_that_were_not_sent(demo):
    assert demo.equal == demo.originals == len({one.edit.handle for one in demo.edits}) > 0
    assert demo.gone == demo.gone_found > 0
    assert demo.found.equal
    assert not demo.found.in_last_request
    assert played.SOUGHT in demo.found.hit.text
    assert demo.undone.whole_again
    assert demo.requests[-1].sent < demo.undone.sent <= demo.window


def test_an_original_that_differs_by_a_byte_is_not_called_equal(demo):
    original = demo.recording.messages[1]["content"]
    assert played.is_recorded(demo.recording, original)
    assert not played.is_recorded(demo.recording, f"{original} ")


def test_each_cut_has_a_line_with_its_handle_and_both_sizes(demo):
    lines = screen.as_text(demo, Terminal(columns=100)).splitlines()
    for one in demo.edits:
        line = next(line for line in lines if one.edit.handle in line)
        assert f"{one.edit.tokens_before:,} → {one.edit.tokens_after:,}" in line
        assert one.edit.title in line


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(demo, columns):
    text = screen.as_text(demo, Terminal(columns=columns))
    assert max(map(len, text.splitlines())) <= columns


def test_only_a_terminal_gets_colours(demo):
    assert "\x1b[" not in screen.as_text(demo, Terminal())
    painted = screen.as_text(demo, Terminal(colour=True))
    assert "\x1b[31m  - " in painted
    assert "\x1b[32m  + " in painted


def test_the_page_loads_nothing_and_shows_what_came_of_it(demo):
    text = page.as_html(demo)
    assert not re.search(
        r"<script|<link|<img|@import|url\(|\b(?:src|href)=|https?://[^<]*['\"]", text
    )
    assert demo.first_sentence in text
    assert text.count('<rect class="sent"') == len(demo.requests)
    assert text.count("<details>") == len(demo.edits)
    assert "prefers-color-scheme: dark" in text


def test_what_comes_from_the_session_is_escaped_in_the_page(demo):
    hostile = replace(demo.edits[0], before=["<script>alert(1)</script>"], after=["\u202e<b>"])
    first = replace(demo.requests[0], edits=[hostile])
    text = page.as_html(replace(demo, requests=[first, *demo.requests[1:]]))
    assert "&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "\u202e" not in text


def test_it_needs_no_extra_and_its_page_goes_where_it_is_told(tmp_path):
    blocked = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))"
    run = "from trimtab.cli import main; sys.exit(main(['demo', '--html', 'x.html']))"
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked}; {run}"], capture_output=True, text=True, timeout=60,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("9 of 19 requests would have been refused; all were answered.")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert [line.split("  ")[1] for line in done.stdout.splitlines()[-3:]] == [
        command for command, _ in screen.NEXT
    ]
