"""Mistakes at the command line: one line that names the file or option and the next step."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path

import pytest

from trimtab.cli import main

FILES = {
    "hello.json": b"hello",
    "a.json": b'{"a": 1}',
    "ok.json": b'[{"role": "user", "content": "hi"}]',
    "norole.json": b'{"messages": [{"content": "hi"}]}',
    "answer.json": b'{"choices": [{"message": {"role": "assistant", "content": "hi"}}]}',
    "lines.json": b'{"a": 1}\n{"a": 2}\n',
    "junk.jsonl": b'{"a": 1}\n{"a": 2}\n',
    "answered.jsonl": b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", '
    b'"content": "ho"}, {"role": "user", "content": "so"}]}\n',
    "log.jsonl": b'{"type": "user", "message": {}}\n',
    "bad.toml": b"window = = 3",
    "misspelt.toml": b"[[upstream]]\nname = 'a'\nurl = 'http://a'\nwindw = 3\n",
}
MISTYPED: dict[str, tuple[list[str], int, str, str]] = {
    "nothing after --": (["--"], 2, "no option --", "--help"),
    "an option of trimtab": (["--verison"], 2, "no option --verison", "did you mean --version?"),
    "a former command": (["explain", "ok.json"], 2, "no command explain", "it is trimtab inspect"),
    "a former option": (["recall", "--search", "x"], 2, "no option --search", "trimtab search"),
    "an option of run": (["run", "--windw", "9k", "claude"], 2, "--windw", "mean --window?"),
    "an option of status": (["status", "--totl"], 2, "no option --totl", "did you mean --total?"),
    "a word too many": (["check", "ok.json", "ok.json"], 2, "'ok.json' is one", "check --help"),
    "an option without its value": (["fit", "ok.json", "--window"], 2, "--window: ", "fit --help"),
    "an option is missing": (["convert", "ok.json"], 2, "--to is missing", "convert --help"),
    "a word is missing": (["search"], 2, "TEXT is missing", "search --help"),
    "JSON lines": (["fit", "lines.json", "--window", "9k"], 3, "lines.json: not JSON", "--turn N"),
    "a turn": (["fit", "answered.jsonl", "--turn", "7"], 2, "requests 0 to 1", "name one"),
    "no window": (["fit", "ok.json"], 2, "no window", "--window 128k"),
    "a model": (["fit", "ok.json", "--model", "gtp-5"], 2, "'gtp-5'", "did you mean 'gpt-5'?"),
    "a format": (["fit", "ok.json", "--format", "claude"], 2, "'claude'", "'anthropic'"),
    "a target": (["fit", "ok.json", "--target", "0"], 2, "--target", "share above 0"),
    "an output folder": (["fit", "ok.json", "--window", "9k", "-o", "empty"], 3, "empty", "name"),
    "a journal folder": (
        ["fit", "ok.json", "--window", "9k", "--journal", "empty"], 3, "empty is a", "name a file"),
    "a request to replay": (["replay", "ok.json"], 3, "nothing to replay in ok.json", "give logs"),
    "a request as a session": (["check", "--session", "ok.json"], 3, "ok.json: no", "give a log"),
    "a window of replay": (["replay", "empty", "--window", "big"], 2, "'big'", "write 32k"),
    "no file to replay": (["replay"], 2, "name a FILE", "folder"),
    "nothing to bill": (["bill"], 2, "LOGS|STORE is missing", "bill --help"),
    "an age": (["purge", "--older-than", "3x"], 2, "'3x'", "write 30d"),
    "nothing to purge": (["purge", "--store", "sqlite:///no.db"], 2, "may go", "--older-than 30d"),
    "nothing kept": (["recall"], 2, "kept anything", "trimtab run"),
    "nothing saved": (["status", "--total"], 2, "kept anything", "--store URL"),
    "no dashboard": (["dashboard"], 6, "no proxy of yours is running", "trimtab proxy"),
    "a shell": (["completion", "zhs"], 2, "'zhs' is none of", "did you mean zsh?"),
    "records of no request": (
        ["batch", "junk.jsonl", "out", "--window", "9k"], 1, "none of 2 records", "--key"),
    "no records": (["batch", "none", "out", "--window", "9k"], 2, "nothing to read", "give a file"),
    "a store without a scheme": (["mcp", "--store", "no.db"], 2, "'no.db'", "sqlite:///file.db"),
    "nothing to pin": (["pin"], 2, "name a HANDLE", "--text"),
    "no JSON": (["fit", "hello.json", "--window", "9k"], 3, "hello.json: not JSON", "send one"),
    "no request": (["inspect", "a.json"], 4, "a.json: no request", "format=…"),
    "no role": (["check", "norole.json"], 4, "norole.json: ", "messages.0) has no role: say"),
    "a response": (["fit", "answer.json"], 4, "answer.json: ", "append choices[0].message"),
    "a log": (["fit", "log.jsonl", "--window", "9k"], 4, "log.jsonl: ", "`trimtab bill`"),
    "no such file": (["fit", "none.json"], 6, "none.json: no such file", "check the path"),
    "a folder": (["fit", "empty"], 3, "empty is a directory", "name a file"),
    "no folder": (["fit", "ok.json", "--window", "9k", "-o", "no/a.json"], 6, "no/a.json", "make"),
    "an option": (["fit", "ok.json", "--windw", "9k"], 2, "no option --windw", "mean --window?"),
    "a command": (["fitt", "ok.json"], 2, "no command fitt", "did you mean fit?"),
    "a preset": (["fit", "ok.json", "--preset", "deap"], 2, "--preset: 'deap'", "none of"),
    "a window": (["fit", "ok.json", "--window", "32kb"], 2, "--window: ", '"128k", got \'32kb\''),
    "another journal": (
        ["fit", "ok.json", "--window", "9k", "--journal", "a.json"], 3, "a.json: this is not",
        "give what session.journal returned"),
    "no store": (["recall", "x", "--store", "sqlite:///no.db"], 6, "no.db", "check --store"),
    "a store": (["recall", "x", "--store", "sqllite:///a"], 2, "sqllite:///a", "sqlite:///file.db"),
    "a folder without logs": (["replay", "empty"], 3, "nothing to replay in empty", "give logs"),
    "a bill of no logs": (["bill", "empty"], 3, "0 files of empty", "logs that say"),
    "no folder of logs": (["bill", "none"], 6, "none: no such file or folder", "check the path"),
    "no agent": (["run"], 2, "which agent?", "trimtab run claude"),
    "an agent that is not there": (["run", "fooo"], 127, "fooo is not installed", "install it"),
    "no scheme": (["proxy", "--upstream", "localhost:1"], 2, "'localhost:1'", "http://localhost"),
    "no address": (["proxy", "--listen", "foo"], 2, "--listen", "such as 127.0.0.1:4141"),
    "others": (["proxy", "--listen", "0.0.0.0:0"], 2, "0.0.0.0", "TRIMTAB_PROXY_TOKEN"),
    "no port": (["proxy", "--listen", "127.0.0.1:99999"], 2, "--listen", "expected HOST:PORT"),
    "no TOML": (["proxy", "--config", "bad.toml"], 2, "bad.toml: ", "correct it"),
    "a key of a TOML": (
        ["proxy", "--config", "misspelt.toml"], 2, "misspelt.toml: upstream a: unknown key windw",
        "did you mean window?"),
    "no config": (["proxy", "--config", "no.toml"], 2, "no.toml", "name a file that can be read"),
    "no target": (["conform", "foo"], 2, "'foo'", "give module:function"),
    "no format": (["convert", "ok.json", "--to", "gemni"], 2, "'gemni'", "choose one of"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("trimtab")  # a proxy sets it up for its process
    for name in ("handlers", "level", "propagate"):
        monkeypatch.setattr(log, name, getattr(log, name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "empty").mkdir()
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)


def said(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and the last line of standard error: reports may stand before it."""
    try:
        code = main(argv)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", MISTYPED)
def test_a_mistyped_command_is_named_with_its_place_and_the_next_step(name, capsys):
    argv, code, names, step = MISTYPED[name]
    got, line = said(argv, capsys)
    assert got == code, line
    assert line.startswith("trimtab: ")
    assert names in line
    assert step in line[line.index(names) :]
    assert not any(word in line for word in ("KeyError", "TypeError", "fault of trimtab"))


def test_a_port_in_use_is_named_with_the_option_to_change(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, line = said(["proxy", "--listen", f"127.0.0.1:{port}", "--store", "memory:"], capsys)
    assert code == 2
    assert line == (
        f"trimtab: cannot listen on 127.0.0.1:{port} (Address already in use): "
        "choose another port with --listen"
    )


def test_a_proxy_in_a_folder_of_somebody_else_asks_nobody_that_its_file_names(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "trimtab.toml").write_text('[summarizer]\nurl = "http://theirs"\nmodel = "m"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as taken:  # so that it says its warnings and ends
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["proxy", "--listen", f"127.0.0.1:{port}", "--store", "memory:"]) == 2
    assert "is not used by commands" in capsys.readouterr().err


def test_standard_input_is_named_too(capsys, monkeypatch):
    class Piped:
        buffer = type("Bytes", (), {"read": staticmethod(lambda: json.dumps([3]).encode())})

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Piped())
    assert said(["check"], capsys) == (4, (
        "trimtab: standard input: no request format we know: message 0 is a number, "
        'not an object: give {"role": "user", "content": "…"}'
    ))  # fmt: skip


def test_a_corpus_of_which_nothing_was_fitted_is_no_success_even_if_failures_are_allowed(
    capsys,
):
    argv = ["batch", "junk.jsonl", "out", "--window", "9k", "--allow-failures", "--jobs", "1"]
    assert said(argv, capsys)[0] == 1


def test_a_terminal_without_a_file_is_told_to_name_one(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for command in ("fit", "check", "inspect", "sweep"):
        line = "trimtab: name a FILE, or pipe a request into the command"
        assert said([command], capsys) == (2, line)
