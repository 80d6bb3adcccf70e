"""Journals of every version so far: today's sends the same bytes, and notes in which earlier
releases mixed speakers are folded anew.

``data_files/journals``: what a release of that version sent for the twelfth request of
``long_sessions``, and the journal it did it by; ``rows-N``: the same as entries of a store.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judge_speakers import foreign_pieces
from long_sessions import request
from settings_words import as_keywords

import trimtab
from trimtab.errors import InvalidSetting
from trimtab.journal import file_format
from trimtab.journal.journal import Journal
from trimtab.transcript.model import Edit

FOLDER = Path(__file__).resolve().parents[2] / "support" / "data_files" / "journals"
VERSIONS = sorted(FOLDER.glob("version-*.json"))
KEYWORDS: dict[str, Any] = {"window": 3_000, "counter": "o200k", "recall": True}


def loaded(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def test_there_is_a_file_of_every_version() -> None:
    assert [loaded(file)["journal"]["version"] for file in VERSIONS] == list(
        range(1, file_format.VERSION + 1)
    )
    assert set(file_format.CONVERTERS) == set(range(1, file_format.VERSION))


@pytest.mark.parametrize("file", VERSIONS[:2], ids=lambda file: file.stem)
def test_old_notes_that_mix_speakers_are_folded_anew_once_and_stay_recallable(file: Path) -> None:
    """Of version 1 and 2: tools' lines stood in a message of the user."""
    golden = loaded(file)
    assert foreign_pieces(request(12), golden["sent"]), "the judge knows what it was"
    session = trimtab.Session(journal=golden["journal"], **as_keywords(**KEYWORDS))
    done = session.fit(request(12))
    assert foreign_pieces(request(12), done.request) == []
    assert trimtab.check(done.request) == ()
    assert [edit for edit in done.report.edits if edit.new]
    originals = golden["journal"]["originals"]
    assert {handle: session.recall(handle) for handle in originals} == originals
    again = session.fit(request(12))
    assert again.request == done.request
    assert [edit for edit in again.report.edits if edit.new] == []


@pytest.mark.parametrize("file", VERSIONS[2:3], ids=lambda file: file.stem)
def test_a_journal_of_any_version_sends_what_the_release_that_wrote_it_sent(file: Path) -> None:
    golden = loaded(file)
    session = trimtab.Session(journal=golden["journal"], **as_keywords(**KEYWORDS))
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
def test_what_was_read_is_written_in_the_version_that_can_hold_it_and_read_again(
    file: Path,
) -> None:
    read = file_format.from_dict(loaded(file)["journal"])
    written = file_format.to_dict(read)
    assert written["version"] == (4 if "payload" in str(written) else 3), "others read it, too"
    assert file_format.from_dict(json.loads(json.dumps(written))) == read


def test_a_journal_with_a_smaller_image_sends_the_bytes_that_were_sent() -> None:
    golden = loaded(FOLDER / "version-4.json")
    session = trimtab.Session(journal=golden["journal"])
    done = session.fit(golden["request"])
    assert done.request == golden["sent"]
    (edit,) = done.report.edits
    assert not edit.new
    (row,) = file_format.rows(Journal(), file_format.from_dict(golden["journal"]), 5)
    assert json.loads(row.data)["v"] == 4, "earlier releases pass it over"


def test_rows_of_a_store_send_what_the_release_that_wrote_them_sent() -> None:
    rows = (FOLDER / "rows-3.jsonl").read_bytes().splitlines()
    journal = file_format.replayed(Journal(), rows)
    assert {edit.op for edit in journal.entries} == {"fold", "restore"}
    written = file_format.to_dict(journal)
    done = trimtab.Session(journal=written, **as_keywords(**KEYWORDS)).fit(request(12))
    assert done.request == json.loads((FOLDER / "rows-3.sent.json").read_text("utf-8"))
    assert [edit for edit in done.report.edits if edit.new] == []


def test_rows_of_an_earlier_release_whose_notes_mix_speakers_are_folded_anew() -> None:
    rows = (FOLDER / "rows-2.jsonl").read_bytes().splitlines()
    journal = file_format.replayed(Journal(), rows)
    assert {edit.op for edit in journal.entries} == {"drop", "restore"}
    written = file_format.to_dict(journal)
    done = trimtab.Session(journal=written, **as_keywords(**KEYWORDS)).fit(request(12))
    assert foreign_pieces(request(12), done.request) == []
    assert trimtab.check(done.request) == ()


def test_rows_are_the_same_bytes_for_the_same_entries_and_say_what_a_journal_says() -> None:
    edit = Edit("replace", ("a.0",), "short", "marker", "why", 0.5, "w.0", "rhandle", ("n.0",))
    before = Journal().add([edit], {}, ["rule messages[3]"]).pinned(["p.0"])
    undo = before.undone("rhandle")
    after = before.add([undo, edit], {}).pinned(["p.0"], pin=False).pinned(["q.0"])
    rows = [*file_format.rows(Journal(), before, 5), *file_format.rows(before, after, 6)]
    assert rows == [*file_format.rows(Journal(), before, 5),
                    *file_format.rows(before, after, 6)]  # fmt: skip
    assert len({row.id for row in rows}) == len(rows), "done again is another entry"
    at_once = file_format.rows(Journal(), after, 6)
    assert len({row.id for row in at_once}) == len(at_once), "decided twice before it was written"
    again = file_format.replayed(Journal(), [row.data for row in rows])
    assert again == after
    halves = file_format.replayed(Journal(), [row.data for row in rows[:3]])
    assert file_format.replayed(halves, [row.data for row in rows[3:]]) == after


@pytest.mark.parametrize(
    "odd",
    [{}, {"version": 1}, {"version": 2, "edits": 5}, {"version": 99}, {"version": None}, []],
    ids=str,
)
def test_what_is_no_journal_or_a_newer_one_is_refused_with_what_to_do(odd: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"update trimtab|session\.journal returned"):
        trimtab.Session(journal=odd, **as_keywords(**KEYWORDS))


def test_a_row_of_a_newer_release_stops_nothing(tmp_path: Path) -> None:
    """A replica was updated first: the others go on by what they know, and say so."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    first = trimtab.Session(store=url, **as_keywords(**KEYWORDS))
    first.fit(request(10))
    kept: Any = first._conversations
    row = ("new", json.dumps({"v": 99, "id": "new", "at": 0, "novelty": 1}).encode())
    kept.store.write(kept.store.batch(first._last.id, [row]))
    done = trimtab.Session(store=url, **as_keywords(**KEYWORDS)).fit(request(12))
    assert trimtab.check(done.request) == ()
    assert any("update trimtab" in warning for warning in done.report.warnings)
