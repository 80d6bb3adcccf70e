"""The history of a journal says which edits are in force."""

from __future__ import annotations

from trimtab.journal.history import history_of
from trimtab.journal.journal import Journal
from trimtab.transcript.model import Edit


def drop(handle: str, *refs: str) -> Edit:
    return Edit("drop", refs, "[left out]", "drop", "to make room", 1.0, "", handle)


def state(journal: Journal) -> dict[str, str]:
    rows = history_of(journal.entries, {})
    return {row.handle: row.replaced_by or ("undone" if row.undone else "") for row in rows}


OLD, WIDE, OTHER = drop("old", "a.0"), drop("wide", "a.0", "b.0"), drop("other", "c.0")
JOURNAL = Journal().add([OLD], {}).add([WIDE, OTHER], {})


def test_an_edit_names_the_newer_one_that_replaced_it():
    assert state(JOURNAL) == {"old": "wide", "wide": "", "other": ""}
    assert str(history_of(JOURNAL.entries, {})[0]).endswith("(replaced by wide)")


def test_whatever_an_undo_shows_again_is_undone():
    undone = JOURNAL.add([JOURNAL.undone("wide")], {})
    assert state(undone) == {"old": "undone", "wide": "undone", "other": ""}


def test_the_undo_of_a_replaced_edit_takes_the_newer_one_back():
    undone = JOURNAL.add([JOURNAL.undone("old")], {})
    assert state(undone) == {"old": "undone", "wide": "undone", "other": ""}
    again = undone.add([drop("rest", "b.0")], {})
    assert state(again) == {"old": "undone", "wide": "rest", "other": "", "rest": ""}


def test_an_edit_made_once_more_is_in_force():
    again = JOURNAL.add([JOURNAL.undone("wide")], {}).add([WIDE], {})
    assert state(again) == {"old": "wide", "other": "", "wide": ""}
