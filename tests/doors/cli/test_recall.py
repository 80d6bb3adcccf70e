"""``trimtab recall``: from a journal's file and from a store, whole, in part, searched."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path

import pytest
from long_sessions import request as grown_chat

import trimtab
from trimtab import stores
from trimtab.cli import main
from trimtab.journal.excerpts import HOW, answer
from trimtab.journal.originals_reader import OriginalsReader
from trimtab.sessions.edit_history import lines_with

TEXT = "first line\r\nsecond line: Größe 7 \ud83d\nthird\n"
HANDLE = "abcdefghijk"


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/originals.db"
    for tenant, text in (("default", TEXT), ("other", "of somebody else")):
        store = stores.open(url, tenant)
        store.write(store.batch("c", originals={HANDLE + tenant[:1]: text}))
    return url


def recalled(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    out = tmp_path / "out"
    code = main(["recall", HANDLE + "d", *arguments, "-o", str(out)])
    return code, out.read_bytes().decode("utf-8", "surrogatepass") if out.exists() else ""


PARTS = [  # (options, exactly what is printed)
    ([], TEXT),
    (["--range", "0:5"], TEXT[:5]),
    (["--range", "12:"], TEXT[12:]),
    (["--range", ":12"], TEXT[:12]),
    (["--range", ":"], TEXT),
    (["--range", "6:99999"], TEXT[6:]),
    (["--range", "500:600"], ""),
]


@pytest.mark.parametrize(("options", "expected"), PARTS)
def test_an_original_comes_whole_or_in_part(
    tmp_path: Path, url: str, options: list[str], expected: str
) -> None:
    done = recalled(tmp_path, "--store", url, *options)
    assert done == (0, expected)


def test_folded_steps_come_as_a_table_of_contents_one_by_one_or_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [
        {"role": role, "content": f"{role} {n}: " + "w" * 900} for n in range(4)
        for role in ("assistant", "tool")
    ]  # fmt: skip
    url, whole = f"sqlite:///{tmp_path}/steps.db", json.dumps(items)
    store = stores.open(url, "default")
    store.write(store.batch("c", originals={HANDLE + "d": whole}))
    code, rows = recalled(tmp_path, "--store", url)
    assert code == 0
    assert "One: --steps 1. All: --whole." in capsys.readouterr().err
    assert [row.split(" (")[0] for row in rows.splitlines()] == [
        f"step {n}: no call" for n in (1, 2, 3, 4)
    ]
    assert recalled(tmp_path, "--store", url, "--whole") == (0, whole)
    assert json.loads(recalled(tmp_path, "--store", url, "--steps", "2-3")[1]) == items[2:6]
    assert recalled(tmp_path, "--store", url, "--steps", "9")[0] == 7


def test_all_writes_every_original_of_every_tenant_into_a_file_that_only_its_owner_reads(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all"
    assert main(["recall", "--all", str(out), "--store", url]) == 0
    assert "2 originals" in capsys.readouterr().err
    file = out / "default" / "c" / f"{HANDLE}d"
    assert file.read_bytes().decode("utf-8", "surrogatepass") == TEXT
    assert file.stat().st_mode & 0o777 == 0o600
    assert (out / "other" / "c" / f"{HANDLE}o").read_text() == "of somebody else"
    one = tmp_path / "one"
    assert main(["recall", "--all", str(one), "--store", url, "--tenant", "other"]) == 0
    assert [path.name for path in one.iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([HANDLE + "d", "--all", "x"], "--all DIR"),
        ([HANDLE + "d", "--file", "x"], "--file PATH"),
        (["--why"], "name a HANDLE"),
        (["--steps", "3"], "name a HANDLE"),
        (["--range", "0:3"], "name a HANDLE"),
    ],
)
def test_what_goes_without_a_handle_or_only_with_one_is_said(
    arguments: list[str], words: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recall", *arguments, "--store", url]) == 2
    assert words in capsys.readouterr().err


def test_without_a_handle_the_terminal_gets_what_the_model_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [
        message
        for n in range(9)
        for message in (
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": {
                "name": "read", "arguments": json.dumps({"path": f"src/a{n}.py"})}}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"LIMIT_{n} = {n * 7919}\nend"},
        )
    ]  # fmt: skip
    url, whole = f"sqlite:///{tmp_path}/steps.db", json.dumps(items)
    store = stores.open(url, "default")
    store.write(store.batch("c", originals={HANDLE: whole}))
    session = OriginalsReader(store, lambda: 1.0)
    cases: list[tuple[list[str], dict[str, str]]] = [
        (["recall"], {}),
        (["search", "limit_7"], {"search": "limit_7"}),
        (["search", "limit_7", HANDLE[:4]], {"search": "limit_7", "handle": HANDLE}),
        (["recall", "--file", "a3.py"], {"file": "a3.py"}),
        (["recall", HANDLE, "--lines", "3-5"], {"handle": HANDLE, "lines": "3-5"}),
    ]
    in_step = {"handle": HANDLE, "steps": "4", "lines": "3"}
    cases.append((["recall", HANDLE, "--steps", "4", "--lines", "3"], in_step))
    for options, arguments in cases:
        out = tmp_path / "out"
        assert main([*options, "--store", url, "-o", str(out)]) == 0
        of_a_person = out.read_text().replace("trimtab recall HANDLE --steps N reads one", HOW)
        assert of_a_person == answer(session, arguments).text + "\n"
    assert "7919" not in capsys.readouterr().out
    hit = next(one for one in lines_with(session, session.archive, "limit_7", 9))
    assert hit.step == 8
    found = answer(session, {"search": "limit_7"}).text.partition("(chars ")[2].partition(")")[0]
    options = ["--steps", str(hit.step), "--range", found.replace("-", ":")]
    assert main(["recall", HANDLE, *options, "--store", url]) == 0
    assert capsys.readouterr().out == "LIMIT_7 = 55433"
    assert main(["recall", HANDLE, "--steps", "8", "--lines", str(hit.line), "--store", url]) == 0
    assert capsys.readouterr().out == "LIMIT_7 = 55433\n"
    assert main(["search", "nowhere", "--store", url]) == 7
    assert "no line of what was left out" in capsys.readouterr().err


@pytest.mark.parametrize("tenant", ["../../up", ".."])
def test_a_name_in_a_store_never_leads_out_of_the_folder(tmp_path: Path, tenant: str) -> None:
    url = f"sqlite:///{tmp_path}/odd.db"
    store = stores.open(url, tenant)
    store.write(store.batch("..", originals={HANDLE: "odd"}))
    out = tmp_path / "deep" / "all"
    assert main(["recall", "--all", str(out), "--store", url]) == 0
    (file,) = [path for path in tmp_path.rglob(f"*{HANDLE}") if path.is_file()]
    assert file.read_text() == "odd"
    assert out in file.resolve().parents


def test_why_says_when_and_for_what_reason_an_original_was_taken_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/why.db"
    session = trimtab.Session(window="8k", store=url)
    body = grown_chat(60)
    edit = session.fit(body).report.edits[0]
    session.close()
    assert main(["recall", edit.handle, "--store", url, "--why"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    made, said = line.split("  ", 1)
    assert abs(datetime.fromisoformat(made).timestamp() - time.time()) < 60
    assert said == f"{edit.op}, {len(edit.refs)} texts: {edit.why}"
    undone = trimtab.Session(window="8k", store=url)
    undone.fit(body)
    undone.undo(edit.handle)
    undone.close()
    assert main(["recall", edit.handle, "--store", url, "--why"]) == 0
    assert "  restore, undo, " in capsys.readouterr().out.splitlines()[-1]


def test_why_reads_the_file_of_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, file = trimtab.Session(window="8k"), tmp_path / "kept.json"
    edit = session.fit(grown_chat(60)).report.edits[0]
    file.write_text(json.dumps(session.journal))
    assert main(["recall", edit.handle, "--journal", str(file), "--why"]) == 0
    assert capsys.readouterr().out.startswith(f"{edit.op}, {len(edit.refs)} texts: ")


def test_a_handle_that_is_unknown_is_answered_with_the_command_that_lists_them(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session, file = trimtab.Session(window="8k"), tmp_path / "kept.json"
    session.fit(grown_chat(60))
    file.write_text(json.dumps(session.journal))
    assert main(["recall", "rzzzz", "--journal", str(file)]) == 7
    journals = capsys.readouterr().err
    assert main(["recall", "rzzzz", "--store", url]) == 7
    stores_ = capsys.readouterr().err
    assert "'rzzzz' here: trimtab recall --journal FILE lists those kept" in journals
    assert "'rzzzz' here: trimtab recall lists those kept, --store looks elsewhere" in stores_


def test_another_tenants_handle_is_unknown(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recalled(tmp_path, "--store", url, "--tenant", "other")[0] == 7
    assert "no original is kept under" in capsys.readouterr().err


def test_a_tenant_of_whom_nothing_is_kept_names_those_there_are(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recalled(tmp_path, "--store", url, "--tenant", "nobody")[0] == 7
    said = capsys.readouterr().err
    assert said.endswith("; nothing of tenant nobody; here are: --tenant default, --tenant other\n")


def test_a_handle_that_its_own_tenant_does_not_have_names_no_others(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recall", "nobodyshandl", "--store", url]) == 7
    assert "--tenant" not in capsys.readouterr().err


@pytest.mark.parametrize("given", ["5", "b:a", "-1:4", "1:2:3", "1.5:2"])
def test_an_odd_range_is_wrong_usage(
    tmp_path: Path, url: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        recalled(tmp_path, "--store", url, f"--range={given}")
    assert stopped.value.code == 2
    assert "is no range" in capsys.readouterr().err


def test_a_mistyped_store_is_no_such_file_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recalled(tmp_path, "--store", f"sqlite:///{tmp_path}/typo.db")[0] == 6
    assert "typo.db: no such file" in capsys.readouterr().err
    assert not (tmp_path / "typo.db").exists()
