"""``trimtab pin`` and ``fit --dry-run``: what stays whole, and what the next cut would take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trimtab
from trimtab.cli.commands import main
from trimtab.stores import open_store
from trimtab.stores.tenant import SESSIONS, TenantStore

RULE = "The staging server listens on port 7443 only."


def request(turns: int) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function",
                "function": {"name": "run", "arguments": json.dumps({"n": n})}}  # fmt: skip
        rows = [f"row {i} of part {n}: {i * n}" for i in range(120)]
        if n == 1:
            rows[60] = RULE
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": "\n".join(rows)})
    return {"model": "gpt-5.1", "messages": messages}


def whole(body: dict[str, Any]) -> bool:
    """Whether the result with the rule is whole."""
    said = [m.get("content") for m in body["messages"]]
    return request(2)["messages"][4]["content"] in said


def fitted(tmp_path: Path, turns: int, *more: str) -> dict[str, Any]:
    given, out = tmp_path / "in.json", tmp_path / "out.json"
    given.write_text(json.dumps(request(turns)))
    words = ["fit", str(given), "--window", "12k", "--reserve", "0", "-o", str(out), *more]
    assert main([*words, "--journal", f"{tmp_path}/journal"]) == 0
    body: dict[str, Any] = json.loads(out.read_text())
    return body


def test_a_sentence_is_pinned_in_a_journal_and_unpinned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--journal", f"{tmp_path}/journal"]
    assert not whole(fitted(tmp_path, 20))
    assert main(["pin", "--text", RULE, *where]) == 0
    assert whole(fitted(tmp_path, 21))
    capsys.readouterr()
    assert main(["pin", "--list", *where]) == 0
    assert capsys.readouterr().out == f"text:{RULE}\n"
    assert main(["pin", "--text", RULE, "--remove", *where]) == 0
    assert not whole(fitted(tmp_path, 60))


def test_what_a_removal_finds_is_said_and_a_new_journal_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--journal", f"{tmp_path}/journal"]
    assert main(["pin", "--file", "a.py", "--remove", *where]) == 6
    assert not (tmp_path / "journal").exists()
    capsys.readouterr()
    assert main(["pin", "--file", "a.py", *where]) == 0
    assert capsys.readouterr().err == f"a.py is pinned in {tmp_path}/journal, a new file\n"
    assert main(["pin", "--file", "a.py", "--remove", *where]) == 0
    assert capsys.readouterr().err == "a.py is no longer pinned\n"
    assert main(["pin", "--file", "a.py", "--remove", *where]) == 0
    assert capsys.readouterr().err == "a.py was not pinned; --list shows all pins\n"


def test_a_handle_is_pinned_and_removed_in_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted(tmp_path, 20)
    where = ["--journal", f"{tmp_path}/journal"]
    handle = next(iter(json.loads((tmp_path / "journal").read_text())["originals"]))
    assert main(["pin", handle, *where]) == 0
    assert main(["pin", handle, "--remove", *where]) == 0
    capsys.readouterr()
    assert main(["pin", "--list", *where]) == 0
    assert capsys.readouterr().out == "nothing is pinned\n"


def test_without_a_proxy_the_command_names_where_pins_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["pin", "--text", RULE]) == 2
    assert "name --journal FILE or --store URL" in capsys.readouterr().err


def test_without_a_store_it_is_the_conversation_that_the_proxy_wrote_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = f"sqlite:///{tmp_path}/trimtab/proxy.db"
    (tmp_path / "trimtab").mkdir()
    session = trimtab.Session(window=12_000, reserve=0, store=url, tenant="anthropic/local")
    assert not whole(session.fit(request(20)).request)
    pages = TenantStore(open_store(url), SESSIONS)
    pages.write(pages.batch("of the dashboard", [("1", b'{"id": "1"}')]))
    assert main(["pin", "--text", RULE]) == 0
    capsys.readouterr()
    assert main(["pin", "--list"]) == 0
    assert capsys.readouterr().out == f"text:{RULE}\n"
    assert whole(session.fit(request(21)).request)
    capsys.readouterr()
    assert main(["recall"]) == 0
    assert capsys.readouterr().out.startswith("What was left out")
    session.close()


def test_a_session_of_the_store_follows_a_pin_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    session = trimtab.Session(window=12_000, reserve=0, store=url)
    assert not whole(session.fit(request(20)).request)
    assert main(["pin", "--text", RULE, "--store", url]) == 0
    assert "from its next request on" in capsys.readouterr().err
    assert whole(session.fit(request(21)).request)
    assert main(["pin", "--list", "--store", url]) == 0
    assert capsys.readouterr().out == f"text:{RULE}\n"
    assert main(["pin", "--text", "other", "--remove", "--store", url]) == 0
    assert "“other” was not pinned" in capsys.readouterr().err
    session.close()


def test_a_fold_of_a_store_is_undone_from_the_command_line_and_let_go_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    session = trimtab.Session(window=12_000, reserve=0, store=url, tenant="anthropic/local")
    (edit,) = session.fit(request(12)).report.edits
    assert len(edit.refs) > 1
    roomy = trimtab.Session(window=128_000, store=url, tenant="anthropic/local")
    assert not whole(roomy.fit(request(12)).request)
    assert main(["pin", edit.handle[:9], "--store", url]) == 0
    said = f"{edit.handle} is undone: its original is sent again from the next request on\n"
    assert capsys.readouterr().err == said
    assert whole(roomy.fit(request(12)).request)
    assert main(["pin", "--list", "--store", url]) == 0
    assert capsys.readouterr().out != "nothing is pinned\n"
    assert main(["pin", edit.handle, "--remove", "--store", url]) == 0
    capsys.readouterr()
    assert main(["pin", "--list", "--store", url]) == 0
    assert capsys.readouterr().out == "nothing is pinned\n"
    for one in (session, roomy):
        one.close()


def test_without_a_name_or_a_conversation_the_command_says_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin"]) == 2
    assert "--text WORDS or --file PATH" in capsys.readouterr().err
    url = f"sqlite:///{tmp_path}/s.db"
    session = trimtab.Session(window=12_000, store=url)
    session.fit(request(1))
    session.close()
    assert main(["pin", "--text", RULE, "--store", url]) != 0
    assert "name the one that is meant" in capsys.readouterr().err


def test_a_dry_run_reports_the_next_cut_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out, journal = (tmp_path / name for name in ("in.json", "out.json", "journal"))
    given.write_text(json.dumps(request(9)))
    size = trimtab.measure(request(9)).total
    window = str(int(size / 0.85))
    words = ["fit", str(given), "--window", window, "--reserve", "0", "--dry-run"]
    assert main([*words, "-o", str(out), "--journal", str(journal)]) == 0
    said = capsys.readouterr()
    assert "this is what a cut would do now" in said.err
    assert "no longer sent" in said.err
    assert said.out == ""
    assert not out.exists()
    assert not journal.exists()
