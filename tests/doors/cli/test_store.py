"""``trimtab doctor``, ``trimtab purge`` and ``trimtab status --store``, as a user types them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from long_sessions import KEYWORDS, request
from settings_words import as_keywords

import trimtab
from trimtab.cli import main
from trimtab.cli.store import age
from trimtab.retry.learned_limits import ModelLimits, key_for
from trimtab.session import learned_limits


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A store with two conversations of one tenant and one of another."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    for tenant, seed in (("default", 0), ("default", 1), ("other", 2)):
        session = trimtab.Session(store=url, tenant=tenant, **as_keywords(**KEYWORDS))
        session.fit(request(20, seed))
        session.close()
    return url


def test_doctor_reads_everything_and_finds_no_fault(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--store", file]) == 0
    out = capsys.readouterr().out
    assert "2 tenants, 3 conversations" in out
    assert "all can be read" in out


def test_doctor_names_what_is_damaged_missing_or_not_to_be_read(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    db = sqlite3.connect(file.removeprefix("sqlite:///"))
    rows = db.execute("SELECT handle FROM originals WHERE tenant = 'default'").fetchall()
    db.execute("UPDATE originals SET data = x'0102' WHERE handle = ?", rows[0])
    db.execute("DELETE FROM originals WHERE handle = ?", rows[1])
    db.commit()
    assert main(["doctor", "--store", file]) == 1
    out = capsys.readouterr().out
    assert f"{rows[0][0]} is damaged" in out
    assert f"an edit names {rows[1][0]}, of which there is no original" in out
    assert "2 faults" in out


def test_purge_needs_to_be_told_what_and_says_what_it_did(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["purge", "--store", file]) == 2
    assert "--older-than" in capsys.readouterr().err
    assert main(["purge", "--store", file, "--older-than", "1d"]) == 0
    assert capsys.readouterr().out.startswith("0 conversations")
    assert main(["purge", "--store", file, "--older-than", "0s", "--tenant", "other"]) == 0
    assert capsys.readouterr().out.startswith("1 conversation ")
    assert main(["purge", "--store", file, "--keep-bytes", "1"]) == 0
    assert capsys.readouterr().out.startswith("2 conversations")
    assert main(["doctor", "--store", file]) == 0


def test_totals_are_those_of_all_sessions_of_a_tenant(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--store", file, "--tenant", "default", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert (tree["conversations"], tree["turns"], tree["batches"]) == (2, 2, 2)
    assert tree["kept_out"] == tree["tokens_arrived"] - tree["tokens_sent"] > 0
    assert main(["status", "--store", file, "--tenant", "default"]) == 0
    out = capsys.readouterr().out
    assert f"{tree['kept_out']:,} kept out" in out
    assert "fold" in out


@pytest.mark.parametrize("command", ["doctor", "status"])
def test_a_store_that_is_not_there_is_not_made(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--store", f"sqlite:///{tmp_path / 'none.db'}"]) == 6
    assert "no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main([command, "--store", "redis://127.0.0.1:1/0"]) == 3
    assert "start Redis" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30d", 2_592_000), ("12h", 43_200), ("1.5m", 90), ("0s", 0), ("2w", 1_209_600)],
)
def test_an_age_has_a_unit(text: str, seconds: float) -> None:
    assert age(text) == seconds


def test_totals_of_a_tenant_that_has_nothing_name_those_that_have(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--store", file, "--tenant", "nobody"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("0 conversations")
    assert told.err == "nothing of tenant nobody; here are: --tenant default, --tenant other\n"


def test_totals_of_a_store_without_originals_say_how_a_proxy_names_its_tenants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    session = trimtab.Session(window=30_000, store=url, tenant="anthropic/local")
    session.fit({"messages": [{"role": "user", "content": "Hi."}]})
    session.close()
    assert main(["status", "--store", url]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("0 conversations")
    assert told.err.startswith("nothing of tenant default; a proxy's are called like --tenant ")
    assert main(["status", "--store", url, "--tenant", "anthropic/local"]) == 0
    assert capsys.readouterr().out.startswith("1 conversation, 1 request:")


def test_what_refusals_taught_is_listed_and_forgotten(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url, session = file, trimtab.Session(store=file, tenant="other")
    known = ModelLimits(limit=8_192, exactness="exact", told={"tokens": ("a", "b")})
    learned_limits(session).put(key_for("api.example.com", "house-model", "sk-secret"), known)
    session.close()
    assert main(["doctor", "--store", url]) == 0
    told = capsys.readouterr().out
    assert "learned from refusals, tenant other: api.example.com|house-model: window 8,192" in told
    assert "sk-secret" not in told
    assert main(["doctor", "--store", url, "--forget", "api.example.com|house-model"]) == 0
    assert "forgotten, tenant other" in capsys.readouterr().out
    assert main(["doctor", "--store", url]) == 0
    assert "learned from refusals" not in capsys.readouterr().out
    assert main(["doctor", "--store", url, "--forget", "all"]) == 6
    assert "nothing was learned of all" in capsys.readouterr().err
