"""The command line: what it writes where, and one line with its own exit code for bad input.

Knows the commands as a user types them, run in this process (a few in one of their own).  Does
not know the library behind them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

import trimtab
from trimtab.amounts import share
from trimtab.cli import main
from trimtab.cli.exit_codes import MEANINGS
from trimtab.cli.options import amount
from trimtab.cli.terminal import Terminal, clean
from trimtab.formats import FORMATS

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = {
    "anthropic": ROOT / "examples" / "session.anthropic.json",
    "openai-chat": ROOT / "examples" / "session.openai.json",
}
ANTHROPIC = str(SESSIONS["anthropic"])
SMALL = b'{"model": "gpt-4.1",  "messages": [{"role": "user", "content": "h\\u00e9llo"}]}\n'
ORPHAN = {
    "model": "gpt-4.1",
    "messages": [
        {"role": "user", "content": "list the files"},
        {"role": "tool", "tool_call_id": "call_lost", "content": "a.py b.py"},
        {"role": "user", "content": "well?"},
    ],
}


class Ran(NamedTuple):
    """What one command did."""

    code: int
    out: bytes
    err: str


@pytest.fixture
def run(capsysbinary, monkeypatch):
    """Run one command in this process."""

    def command(*argv: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main([str(arg) for arg in argv])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsysbinary.readouterr()
        return Ran(code, out, err.decode())

    return command


# --- fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SESSIONS)
def test_fit_writes_an_acceptable_smaller_request_and_reports_on_stderr(run, name):
    done = run("fit", SESSIONS[name], "--window", "32k")
    assert done.code == 0
    assert len(done.out) < SESSIONS[name].stat().st_size
    assert name in done.err
    checked = run("check", stdin=done.out)
    assert (checked.code, checked.out[:9]) == (0, b"accepted:")
    tokens = json.loads(run("inspect", "--json", stdin=done.out).out)["tokens"]
    assert 0 < tokens <= 32_000


def test_a_file_and_stdin_give_the_same_bytes(run):
    from_file = run("fit", ANTHROPIC, "--window", "32k")
    piped = run("fit", "-", "--window", "32k", stdin=Path(ANTHROPIC).read_bytes())
    assert from_file.out == piped.out != b""


def test_a_request_that_fits_comes_back_byte_for_byte(run):
    assert run("fit", "--window", "32k", stdin=SMALL).out == SMALL


def test_output_goes_to_the_named_file_and_nowhere_else(run, tmp_path):
    target = tmp_path / "fitted.json"
    done = run("fit", ANTHROPIC, "--window", "32k", "-o", target)
    assert (done.code, done.out) == (0, b"")
    assert json.loads(target.read_bytes())["model"] == "claude-sonnet-4-5"
    assert list(tmp_path.iterdir()) == [target]


def test_an_overwritten_file_keeps_its_mode_and_a_link_stays_a_link(run, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert run("fit", "--window", "32k", "-o", link, stdin=SMALL).code == 0
    assert target.read_bytes() == SMALL
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_the_report_as_json_names_limits_and_edits(run):
    report = json.loads(run("fit", ANTHROPIC, "--window", "32k", "--json").err)
    assert report["limits"]["window"] == 32_000
    assert report["tokens_after"] < report["tokens_before"]
    assert report["edits"]
    assert "recall" not in report


@pytest.mark.parametrize("window", ["32k", "32_000", "32,000", "0.032m", "32K"])
def test_a_window_may_be_written_as_people_write_it(run, window):
    report = json.loads(run("fit", ANTHROPIC, "--window", window, "--json").err)
    assert report["limits"]["window"] == 32_000


def test_a_protected_tool_keeps_its_results_whole(run):
    done = run("fit", ANTHROPIC, "--window", "48k", "--protected-tools", "read_*")
    kept = results_of(json.loads(done.out), "read_file")
    assert kept == results_of(json.loads(Path(ANTHROPIC).read_bytes()), "read_file")
    assert len(kept) == 8


def results_of(request: dict, tool: str) -> list[str]:
    """Contents of the results of one tool, Anthropic's spelling."""
    parts = [
        part
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    names = {part["id"]: part["name"] for part in parts if part["type"] == "tool_use"}
    results = [part for part in parts if part["type"] == "tool_result"]
    return [part["content"] for part in results if names[part["tool_use_id"]] == tool]


def test_a_cap_on_results_is_met_far_below_the_window(run):
    done = run("fit", ANTHROPIC, "--window", "1m", "--result-chars", "5000")
    assert done.code == 0
    lengths = [len(text) for text in results_of(json.loads(done.out), "bash")]
    assert 0 < max(lengths) <= 5_000


def test_strict_refuses_a_broken_request_instead_of_mending_it(run):
    body = json.dumps(ORPHAN).encode()
    assert run("fit", "--window", "32k", stdin=body).code == 0
    strict = run("fit", "--window", "32k", "--strict", stdin=body)
    assert (strict.code, strict.out) == (1, b"")


# --- originals -----------------------------------------------------------------------------------


def test_originals_are_offered_only_where_they_are_kept(run, tmp_path):
    journal = tmp_path / "my journal.json"
    assert "trimtab recall" not in run("fit", ANTHROPIC, "--window", "32k").err
    done = run("fit", ANTHROPIC, "--window", "32k", "--journal", journal)
    line = next(line for line in done.err.splitlines() if line.strip().startswith("trimtab recall"))
    original = run(*shlex.split(line, comments=True)[1:], "--whole")
    assert original.code == 0
    request = json.loads(Path(ANTHROPIC).read_bytes())
    text = original.out.decode()  # of one block, or the messages that were folded
    folded = text.startswith("[{") and all(m in request["messages"] for m in json.loads(text))
    assert folded or text in strings(request)
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def strings(tree: object) -> set[str]:
    """Every string in a tree."""
    if isinstance(tree, str):
        return {tree}
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return {text for child in children for text in strings(child)}


def test_every_handle_of_the_report_recalls_something(run, tmp_path):
    journal = tmp_path / "j.json"
    done = run("fit", ANTHROPIC, "--window", "16k", "--journal", journal, "--json")
    report = json.loads(done.err)
    handles = [edit["handle"] for edit in report["edits"]]
    assert handles
    for handle in handles:
        recalled = run("recall", handle, "--journal", journal)
        assert recalled.code == 0
        assert recalled.out


def test_a_repair_that_took_out_several_messages_names_the_commands_for_all(run, tmp_path):
    summary = {"type": "compaction", "content": "It went well.", "signature": "sig"}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [
        {"role": "user", "content": "first words"}, {"role": "assistant", "content": "answer"},
        {"role": "assistant", "content": [summary]}, {"role": "user", "content": "next"},
    ]}  # fmt: skip
    done = run("fit", "--window", "32k", "--journal", tmp_path / "j.json",
               stdin=json.dumps(body).encode())  # fmt: skip
    lines = [row for row in done.err.splitlines() if "trimtab recall" in row]
    assert len(lines) == 2
    for row in lines:
        _, *command = shlex.split(row, comments=True)
        assert run(*command).code == 0


def test_a_journal_goes_on_where_it_stopped(run, tmp_path):
    journal = tmp_path / "j.json"
    first = run("fit", ANTHROPIC, "--window", "32k", "--journal", journal)
    longer = json.loads(Path(ANTHROPIC).read_bytes())
    longer["messages"] += [
        {"role": "assistant", "content": "It was 34af4e."},
        {"role": "user", "content": "Thanks."},
    ]
    body = json.dumps(longer).encode()
    second = run("fit", "--window", "32k", "--journal", journal, stdin=body)
    before = json.loads(first.out)["messages"]
    assert json.loads(second.out)["messages"][: len(before)] == before


def test_an_unknown_handle_says_what_to_do(run, tmp_path):
    journal = tmp_path / "j.json"
    run("fit", ANTHROPIC, "--window", "32k", "--journal", journal)
    done = run("recall", "nothing", "--journal", journal)
    assert (done.code, done.out) == (7, b"")
    assert "trimtab recall --journal FILE lists those kept" in done.err


# --- check and inspect ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SESSIONS)
def test_check_accepts_the_recorded_sessions(run, name):
    done = run("check", SESSIONS[name])
    assert (done.code, done.err) == (0, "")
    assert done.out.decode().startswith(f"accepted: {name} ")


def test_check_names_the_place_and_the_rule_of_each_violation(run):
    done = run("check", stdin=json.dumps(ORPHAN).encode())
    assert done.code == 1
    assert done.out.decode().startswith("messages[1]")
    rows = json.loads(run("check", "--json", stdin=json.dumps(ORPHAN).encode()).out)
    assert len(rows["violations"]) == len(done.out.splitlines()) >= 1


def test_check_tells_what_may_be_refused_from_what_is(run):
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    told = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [call]},
                {"role": "user", "content": [told]}]  # fmt: skip
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "thinking": thinking,
            "messages": messages}  # fmt: skip
    done = run("check", stdin=json.dumps(body).encode())
    first, last = done.out.decode().splitlines()
    assert done.code == 0
    assert first.startswith("messages[1]: thinking_missing: may be refused: ")
    assert last.startswith("accepted: anthropic ")
    assert "no certain rule broken" in last
    rows = json.loads(run("check", "--json", stdin=json.dumps(body).encode()).out)["violations"]
    assert [(row["rule"], row["certain"]) for row in rows] == [("thinking_missing", False)]


def test_check_says_where_a_request_is_larger_than_the_window_of_its_model(run):
    long = {**json.loads(SMALL), "model": "claude-sonnet-4-5"}
    long["messages"] = [{"role": "user", "content": "word " * 250_000}]
    done = run("check", stdin=json.dumps(long).encode())
    assert (done.code, done.out[:9]) == (1, b"too long:")
    assert b"the window is 200,000" in done.out
    told = json.loads(run("check", "--json", stdin=json.dumps(long).encode()).out)
    assert told["too_long"]
    assert told["window"] == 200_000 < told["tokens"]
    assert run("check", "--window", "1M", stdin=json.dumps(long).encode()).code == 0


@pytest.mark.parametrize("name", SESSIONS)
def test_inspect_adds_up(run, name):
    summary = json.loads(run("inspect", SESSIONS[name], "--json").out)
    assert sum(summary["by_role"].values()) == summary["tokens"] > 40_000
    assert summary["largest"] == sorted(summary["largest"], key=lambda block: -block["tokens"])
    assert set(summary["by_tool"]) == {"bash", "read_file", "edit_file", "write_file", "grep"}


@pytest.mark.parametrize("columns", [60, 100])
def test_inspect_is_plain_and_as_wide_as_it_is_told(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run("inspect", ANTHROPIC, "--window", "32k")
    text = done.out.decode()
    assert done.code == 0
    assert "\x1b" not in text
    drawn = [line for line in text.splitlines() if "█" in line]
    assert columns - 2 <= max(map(len, drawn)) <= columns
    assert "of a window of 32,000" in text


@pytest.mark.parametrize("format", FORMATS)
def test_inspect_begins_with_tool_definitions_where_they_take_more_than_half(run, tmp_path, format):
    request = json.loads(SESSIONS["openai-chat"].read_bytes())
    function = {"name": "mcp__tracker__open", "description": "Opens it. " * 4_000,
                "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    request["tools"].append({"type": "function", "function": function})
    request["messages"] = request["messages"][:4]
    file = tmp_path / "request.json"
    converted = trimtab.convert(request, to=format, model="claude-sonnet-4-5").request
    file.write_text(json.dumps(converted))
    named = ["--window", "16k", "--format", format]
    advice = json.loads(run("inspect", file, *named, "--json").out)["tools_advice"]
    assert advice.startswith("The definitions of 6 tools take ")
    text = run("inspect", file, *named).out.decode()
    shown = " ".join(text.split())
    assert shown.index(advice) < shown.index("by role")
    assert "mcp__tracker__open definition, " in text
    assert "The definitions of" not in run("inspect", ANTHROPIC, "--window", "32k").out.decode()


def test_colours_and_blocks_are_used_only_where_they_are_understood():
    plain = Terminal(columns=80, colour=False, blocks=False)
    assert plain.bar(0.5, 10) == "#####"
    assert plain.gauge(60, 30, 8) == "####|####"
    assert plain.gauge(15, 30, 8) == "####....|"
    assert plain.shorten("messages[12].content", 9) == "~.content"
    assert Terminal(blocks=True).bar(0.56, 10) == "█████▋"
    assert Terminal(colour=True).paint("bold", "x") == "\x1b[1mx\x1b[0m"
    assert clean("a\x1b[31mb\n") == "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}"


# --- amounts -------------------------------------------------------------------------------------

AMOUNTS = [("32k", 32_000), ("128_000", 128_000), ("1m", 1_000_000), ("1.5M", 1_500_000), ("0", 0)]


@pytest.mark.parametrize(("text", "number"), AMOUNTS)
def test_amounts_are_read(text, number):
    assert amount(text) == number


@pytest.mark.parametrize("text", ["", "-1", "32kb", "1.0001k", "lots", "٣", "1e9", "9" * 40])
def test_other_amounts_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        amount(text)


def test_shares_are_read_as_fraction_or_percent():
    assert (share("0.9"), share("90%"), share("1")) == (0.9, 0.9, 1.0)
    for text in ("0", "1.1", "nan", "-1", "x%"):
        with pytest.raises(ValueError, match="no share"):
            share(text)


# --- bad input -----------------------------------------------------------------------------------

BELOW_MINIMUM = [ANTHROPIC, "--window", "600", "--reserve", "0"]
BAD = [  # (what, arguments, standard input, exit code, words of the line)
    ("unknown command", ["fold"], b"", 2, "no command fold"),
    ("no window", ["fit"], b'[{"role": "user", "content": "h"}]', 2, "--window"),
    ("a model nobody knows", ["fit", "--model", "gtp-5.1"], SMALL, 2, "did you mean 'gpt-5.1'?"),
    ("window of nothing", ["fit", "--window", "0"], SMALL, 2, "above 0"),
    ("bad window", ["fit", "--window", "wide"], SMALL, 2, "128k"),
    ("negative window", ["fit", "--window=-5"], SMALL, 2, "above 0"),
    ("bad share", ["fit", "--window", "9k", "--trigger", "2"], SMALL, 2, "a share above 0"),
    ("reserve over window", ["fit", "--window", "8k", "--reserve", "9k"], SMALL, 2, "reserve"),
    ("unknown name of a format", ["check", "--format", "cobol"], SMALL, 2, "cobol"),
    ("unknown counter", ["fit", "--window", "9k", "--counter", "abacus"], SMALL, 2, "abacus"),
    ("recall without a journal", ["recall", "x"], b"", 2, "--journal"),
    ("not JSON", ["fit", "--window", "9k"], b"hello", 3, "not JSON"),
    ("half of it", ["check"], SMALL[:40], 3, "not JSON"),
    ("two values", ["inspect"], SMALL + SMALL, 3, "not JSON"),
    ("nested too deep", ["check"], b"[" * 100_000, 3, "nested"),
    ("empty", ["fit", "--window", "9k"], b" \n", 3, "empty"),
    ("binary", ["inspect"], bytes(range(256)), 3, "binary"),
    ("not UTF-8", ["check"], b'{"messages": [\xff]}', 3, "UTF-8"),
    ("a directory", ["check", str(ROOT)], b"", 3, "directory"),
    ("a journal of another kind", ["recall", "x", "--journal", ANTHROPIC], b"", 3, "not a journal"),
    ("JSON of no format", ["fit", "--window", "9k"], b'{"a": 1}', 4, "format"),
    ("a number", ["check"], b"7", 4, "format"),
    ("a list of numbers", ["inspect"], b"[1, 2]", 4, "format"),
    ("below what it asks for", ["fit", ANTHROPIC, "--window", "600"], b"", 2, "4,096 output"),
    ("below the minimum", ["fit", *BELOW_MINIMUM], b"", 5, "cannot fit"),
    ("missing file", ["fit", "nowhere.json", "--window", "9k"], b"", 6, "no such file"),
    ("below a file", ["check", ANTHROPIC + "/x"], b"", 6, "no such file"),
    ("missing journal", ["recall", "x", "--journal", "nowhere.json"], b"", 6, "no such file"),
]


@pytest.mark.parametrize(
    ("argv", "stdin", "code", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_input_gets_one_line_and_its_own_exit_code(run, argv, stdin, code, words):
    done = run(*argv, stdin=stdin)
    assert done.code == code, done.err
    assert done.out == b""
    assert done.err.startswith("trimtab: ")
    assert done.err.count("\n") == 1
    assert words in done.err


def test_every_exit_code_is_in_the_help(run):
    text = run("--help-all").out.decode()
    assert {row[3] for row in BAD} <= set(MEANINGS)
    assert all(f"{code}  {meaning}" in text for code, meaning in MEANINGS.items())


def test_what_cannot_fit_leaves_files_as_they_were(run, tmp_path):
    target, journal = tmp_path / "out.json", tmp_path / "j.json"
    target.write_text("old")
    argv = ["fit", *BELOW_MINIMUM, "-o", target, "--journal", journal]
    assert run(*argv).code == 5
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.json", "old")]


def test_an_output_that_cannot_be_written_is_one_line(run, tmp_path):
    missing = run("fit", "--window", "9k", "-o", tmp_path / "no" / "out.json", stdin=SMALL)
    folder = run("fit", "--window", "9k", "-o", tmp_path, stdin=SMALL)
    assert (missing.code, folder.code) == (6, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_ours_is_one_line_too(run, monkeypatch):
    monkeypatch.setattr("trimtab.check", lambda *_, **__: 1 / 0)
    done = run("check", stdin=SMALL)
    assert (done.code, done.out) == (70, b"")
    assert (
        done.err
        == "trimtab: a fault of trimtab, please report it: ZeroDivisionError: division by zero\n"
    )


# --- on a terminal ---


def on_a_terminal(*argv: str, **environment: str) -> str:
    """What a terminal of 80 columns shows of a command."""
    mine, theirs = pytest.importorskip("pty").openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": str(ROOT / "src")}
    env.pop("NO_COLOR", None)
    shell = subprocess.Popen(
        [sys.executable, "-m", "trimtab", *argv], env={**env, **environment},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the last reader of a terminal gets an error
        while part := os.read(mine, 65_536):
            shown += part
    shell.wait(timeout=60)
    os.close(mine)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command",
    [["fit", ANTHROPIC, "--window", "32k"], ["convert", ANTHROPIC, "--to", "gemini"],
     ["sweep", ANTHROPIC, "--newest", "2"]],
    ids=["fit", "convert", "sweep"],
)  # fmt: skip
def test_on_a_terminal_a_report_is_shown_and_not_the_request(command):
    shown = on_a_terminal(*command)
    assert '"role"' not in shown
    assert re.search(r"the request \([\d,]+ bytes\) is not written: -o FILE, or a pipe\n$", shown)
    assert '"role"' in on_a_terminal(*command, "-o", "-")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_verdicts_are_coloured_on_a_terminal_unless_it_is_not_wanted(environment):
    assert "\x1b[32maccepted\x1b[0m: anthropic" in on_a_terminal("check", ANTHROPIC)
    shown = on_a_terminal("check", ANTHROPIC, **environment)
    assert "\x1b" not in shown
    assert "accepted: anthropic" in shown


def test_a_report_is_as_wide_as_the_terminal():
    shown = on_a_terminal("fit", ANTHROPIC, "--window", "32k", NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= 80


# --- as a process --------------------------------------------------------------------------------


def process(*argv: str, **streams: object) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "trimtab", *argv]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, env=environment, timeout=60, **streams)


@pytest.mark.parametrize("argv", [["fit", ANTHROPIC, "--window", "200k"], ["inspect", ANTHROPIC]])
def test_a_reader_that_has_left_is_no_error(argv):
    reader, writer = os.pipe()
    os.close(reader)
    done = process(*argv, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_version_is_printed():
    done = process("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"trimtab ")


def test_a_narrow_encoding_of_the_terminal_is_survived():
    done = process("check", input=b'{"messages": [{"role": "us\\ud800er", "content": "x"}]}')
    assert done.returncode in (0, 1, 4)
    assert b"Traceback" not in done.stderr
