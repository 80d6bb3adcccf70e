"""Journals of every version so far, as earlier releases wrote them, still send the same bytes.

``data_files/journals``: what a release of that version sent for the twelfth request of
``long_sessions``, and the journal it did it by; ``rows-N``: the same as entries of a store.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from long_sessions import request

import trimtab
from trimtab.errors import InvalidSetting
from trimtab.model import Edit
from trimtab.turns import journal_format
from trimtab.turns.journal import Journal

FOLDER = Path(__file__).parent / "data_files" / "journals"
VERSIONS = sorted(FOLDER.glob("version-*.json"))
KEYWORDS: dict[str, Any] = {"window": 3_000, "counter": "o200k", "recall": True}


def loaded(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def test_there_is_a_file_of_every_version() -> None:
    assert [loaded(file)["journal"]["version"] for file in VERSIONS] == list(
        range(1, journal_format.VERSION + 1)
    )
    assert set(journal_format.CONVERTERS) == set(range(1, journal_format.VERSION))


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_a_journal_of_any_version_sends_what_the_release_that_wrote_it_sent(file: Path) -> None:
    golden = loaded(file)
    session = trimtab.Session(journal=golden["journal"], **KEYWORDS)
    done = session.fit(request(12))
    assert done.request == golden["sent"]
    assert json.dumps(done.request) == json.dumps(golden["sent"]), "to the order of its keys"
    assert [edit for edit in done.report.edits if edit.new] == []
    originals = golden["journal"]["originals"]
    assert {handle: session.recall(handle) for handle in originals} == originals
    assert f'recall("{done.report.edits[0].handle}")' in json.dumps(golden["sent"]).replace(
        '\\"', '"'
    )


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_what_was_read_is_written_in_todays_version_and_read_again(file: Path) -> None:
    read = journal_format.from_dict(loaded(file)["journal"])
    written = journal_format.to_dict(read)
    assert written["version"] == journal_format.VERSION
    assert journal_format.from_dict(json.loads(json.dumps(written))) == read


def test_rows_of_a_store_send_what_the_release_that_wrote_them_sent() -> None:
    rows = (FOLDER / "rows-2.jsonl").read_bytes().splitlines()
    journal = journal_format.replayed(Journal(), rows)
    assert {edit.op for edit in journal.entries} == {"drop", "restore"}
    written = journal_format.to_dict(journal)
    done = trimtab.Session(journal=written, **KEYWORDS).fit(request(12))
    assert done.request == json.loads((FOLDER / "rows-2.sent.json").read_text("utf-8"))
    assert [edit for edit in done.report.edits if edit.new] == []


def test_rows_are_the_same_bytes_for_the_same_entries_and_say_what_a_journal_says() -> None:
    edit = Edit("replace", ("a.0",), "short", "marker", "why", 0.5, "w.0", "rhandle", ("n.0",))
    before = Journal().add([edit], {}, ["rule messages[3]"]).pinned(["p.0"])
    undo = before.undone("rhandle")
    after = before.add([undo, edit], {}).pinned(["p.0"], pin=False).pinned(["q.0"])
    rows = [*journal_format.rows(Journal(), before, 5), *journal_format.rows(before, after, 6)]
    assert rows == [*journal_format.rows(Journal(), before, 5),
                    *journal_format.rows(before, after, 6)]  # fmt: skip
    assert len({row.id for row in rows}) == len(rows), "done again is another entry"
    again = journal_format.replayed(Journal(), [row.data for row in rows])
    assert again == after
    halves = journal_format.replayed(Journal(), [row.data for row in rows[:3]])
    assert journal_format.replayed(halves, [row.data for row in rows[3:]]) == after


@pytest.mark.parametrize(
    "odd",
    [{}, {"version": 1}, {"version": 2, "edits": 5}, {"version": 99}, {"version": None}, []],
    ids=str,
)
def test_what_is_no_journal_or_a_newer_one_is_refused_with_what_to_do(odd: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"update trimtab|session\.journal returned"):
        trimtab.Session(journal=odd, **KEYWORDS)


def test_a_row_of_a_newer_release_stops_nothing(tmp_path: Path) -> None:
    """A replica was updated first: the others go on by what they know, and say so."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    first = trimtab.Session(store=url, **KEYWORDS)
    first.fit(request(10))
    shelf: Any = first._shelf
    row = ("new", json.dumps({"v": 99, "id": "new", "at": 0, "novelty": 1}).encode())
    shelf.store.write(shelf.store.batch(first._last.root, [row]))
    done = trimtab.Session(store=url, **KEYWORDS).fit(request(12))
    assert trimtab.check(done.request) == ()
    assert any("update trimtab" in warning for warning in done.report.warnings)
