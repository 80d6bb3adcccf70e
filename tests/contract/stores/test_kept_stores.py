"""Stores as earlier releases kept them: read, gone on with, and never taken for damaged.

``data_files/stores``: the first release with stores (journal rows 2), the last with rows 2, the
first with rows 3; ``tests/support/kept_stores.py`` made them.  Redis and PostgreSQL are real
servers: world tier.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kept_stores
import pytest
import store_urls
from long_sessions import request

import trimtab
from trimtab import stores
from trimtab.errors import StoreError
from trimtab.journal import file_format
from trimtab.journal.journal import Journal
from trimtab.sessions.session_turns import stored_facts
from trimtab.stores.base import WriteBatch
from trimtab.transcript.model import Edit

FOLDER = Path(__file__).resolve().parents[2] / "support" / "data_files" / "stores"
ROWS = {"2026-11-22a": 2, "2026-11-22b": 2, "2026-11-23": 3}
FAR = [pytest.mark.world]
KEPT = [
    pytest.param(*name.split("."), id=name, marks=FAR if "sqlite" not in name else [])
    for name in sorted(file.name.removesuffix(".expected.json.gz") for file in
                       FOLDER.glob("*.expected.json.gz"))
]  # fmt: skip


def unpacked(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / name).read_bytes()))


@contextmanager
def restored(release: str, kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        file = folder / "kept.db"
        file.write_bytes(gzip.decompress((FOLDER / f"{release}.sqlite.gz").read_bytes()))
        file.chmod(0o600)
        yield f"sqlite:///{file}"
        return
    with store_urls.store_url(kind, folder) as url:
        rows = unpacked(f"{release}.{kind}.json.gz")
        (kept_stores.restore_redis if kind == "redis" else kept_stores.restore_postgresql)(
            url, rows
        )
        yield url


def test_there_is_a_store_of_every_kind_by_the_first_release_and_by_each_version_of_rows() -> None:
    kinds = {kind: set[int]() for kind in ("sqlite", *store_urls.FAR)}
    for each in KEPT:
        release, kind = each.values
        kinds[str(kind)].add(ROWS[str(release)])
    assert kinds == {kind: {2, 3} for kind in kinds}


@pytest.mark.parametrize(("release", "kind"), KEPT)
def test_a_store_of_an_earlier_release_gives_back_every_original_and_goes_on(
    release: str, kind: str, tmp_path: Path
) -> None:
    expected = unpacked(f"{release}.{kind}.expected.json.gz")
    with restored(release, kind, tmp_path) as url:
        for tenant, seed in kept_stores.TENANTS.items():
            was, session = expected[tenant], kept_stores.opened(url, tenant)
            assert was["originals"]
            found = {handle: session.recall(handle) for handle in was["originals"]}
            assert found == was["originals"]
            window = kept_stores.WORDS["window"] if tenant == "default" else kept_stores.ROOM
            done = session.fit(request(kept_stores.TURNS[-1], seed), window=window)
            assert trimtab.check(done.request) == ()
            assert not done.report.warnings
            if ROWS[release] == 3 or tenant != "default":  # notes of rows 2 are folded anew, once
                assert done.request == was["sent"]
                assert not [edit for edit in done.report.edits if edit.new]
            session.fit(request(kept_stores.TURNS[-1] + 3, seed), window=window)
            assert session.stats()["turns"] > len(kept_stores.TURNS)
            assert "calibration/anthropic claude-sonnet-4-5 o200k/1×1.0" in stored_facts(
                session, "calib"
            )
            session.close()
        store = stores.open_store(url)
        assert list(stores.faults(store, lambda tenant: stores.open(store, tenant))) == []
        store.close()


NEWER = [
    "sqlite",
    pytest.param("redis", marks=FAR),
    pytest.param("postgresql", marks=FAR),
]


def make_newer(url: str, kind: str) -> None:
    if kind == "sqlite":
        import sqlite3

        with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
            db.execute("PRAGMA user_version = 2")
    elif kind == "redis":
        client, prefix = kept_stores._redis(url)
        assert client.get("{" + prefix + "}:version") == b"1"
        client.set("{" + prefix + "}:version", "2")
    else:
        import psycopg

        with psycopg.connect(url) as db:
            db.execute("UPDATE trimtab_version SET version = 2")


@pytest.mark.parametrize("kind", NEWER)
def test_a_store_that_a_newer_release_laid_out_is_named_and_left_alone(
    kind: str, tmp_path: Path
) -> None:
    """And the request goes on without it."""
    with store_urls.store_url(kind, tmp_path) as url:
        store = stores.open_store(url)
        store.write("t", WriteBatch("c", (("e", b"1"),)))
        store.close()
        make_newer(url, kind)
        with pytest.raises(
            StoreError, match=r"version 2, this release reads up to 1.*update trimtab"
        ):
            stores.open_store(url).write("t", WriteBatch("c", (("f", b"2"),)))
        session = kept_stores.opened(url, "default")
        done = session.fit(request(9))
        assert trimtab.check(done.request) == ()
        assert any("update trimtab" in warning for warning in done.report.warnings)


def test_bytes_of_an_unknown_kind_are_not_called_damaged_alone(tmp_path: Path) -> None:
    store = stores.open(f"sqlite:///{tmp_path / 'store.db'}", "t")
    store.store.write("t", WriteBatch("c", originals=(("r1", b"\x42 as a later release packs"),)))
    with pytest.raises(StoreError, match=r"does not know: update trimtab"):
        store.original("r1")


def test_an_entry_with_a_field_more_is_a_new_version_of_rows() -> None:
    """A release reads exactly these fields of rows of version 3; another field needs version 4.
    Figures are no field of the entry: they are beside it, where earlier releases do not look."""
    rows = (FOLDER.parent / "journals" / "rows-3.jsonl").read_bytes().splitlines()
    edits = [row["edit"] for row in map(json.loads, rows) if "edit" in row]
    written = file_format.to_dict(Journal((Edit("drop", ("r",), "", "drop", "why"),)))["edits"]
    assert {frozenset(edit) for edit in edits} == {frozenset(written[0])}


def test_doctor_finds_nothing_wrong_with_what_is_written_while_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = stores.open_store("memory:")
    mine = stores.open(store, "t")
    mine.write(mine.batch("c", [("first", b"{}")]))
    edit = json.dumps({"edit": {"handle": "r1"}}).encode()
    later = mine.batch("c", [("second", edit)], {"r1": "original"})

    def then_written(ask: Any) -> Any:
        def asked(*args: Any) -> Any:
            answer = ask(*args)
            mine.write(later)
            return answer

        return asked

    for name in ("handles", "read"):
        monkeypatch.setattr(store, name, then_written(getattr(store, name)))
    assert list(stores.faults(store, lambda tenant: mine)) == []
