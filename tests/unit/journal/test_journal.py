"""The journal: append-only, and the last entry of a block wins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import session

from trimtab import formats
from trimtab.journal.file_format import replayed, rows
from trimtab.journal.journal import Journal, with_dependencies
from trimtab.transcript.model import Edit
from trimtab.transcript.transcript import Transcript

REFS = ("a.0", "b.0", "c.0")


def replace(text: str, *refs: str) -> Edit:
    return Edit("replace", refs, text, "cut", "too long", handle=text)


def drop(*refs: str) -> Edit:
    return Edit("drop", refs, "[left out]", "drop", "too long", 1.0, "", "".join(refs))


def winners(journal: Journal) -> dict[str, Edit]:
    """Ref → the last entry that names it, told without the journal's own code."""
    return {ref: edit for edit in journal.entries for ref in edit.targets}


def test_an_edit_that_a_newer_one_overruled_is_appended_again() -> None:
    old, newer = replace("old", "a.0", "b.0"), replace("newer", "b.0")
    journal = Journal().add([old], {}).add([newer], {}).add([old], {})
    assert journal.entries == (old, newer, old)
    assert set(winners(journal).values()) == {old}


def test_an_edit_that_is_the_last_word_already_is_not_appended() -> None:
    old, other = replace("old", "a.0"), replace("other", "b.0")
    journal = Journal().add([old, other], {})
    assert journal.add([old], {}) is journal


def test_an_insertion_and_a_replacement_of_one_block_do_not_overrule_each_other() -> None:
    insert = Edit("insert", ("a.0",), "go on", "repair", "the last message is the model's")
    journal = Journal().add([insert, replace("cut", "a.0")], {})
    assert journal.add([insert], {}) is journal


def chat(*messages: tuple[str, str]) -> Transcript:
    body = {"messages": [{"role": role, "content": text} for role, text in messages]}
    return formats.read(body, formats.find(body, "openai-chat")[0], model=None)


STEPS = chat(*[(role, f"{role} {n}") for n in range(6) for role in ("user", "assistant")])
REF = STEPS.ref_of[2, 0]
LATER = (8, 0)


@pytest.mark.parametrize(
    ("op", "kind", "rests"),
    [
        ("replace", "duplicate", True),
        ("replace", "superseded", True),
        ("replace", "cut", False),
        ("drop", "superseded", False),
    ],
)
def test_an_edit_needs_the_models_last_words_and_a_duplicate_what_repeats_it(
    op: Any, kind: Any, rests: bool
) -> None:
    (edit,) = with_dependencies(STEPS, [Edit(op, (REF,), "x", kind, "why")], lambda place: [LATER])
    beside = [STEPS.ref_of[number, 0] for number in (7, 9, 11)]
    assert edit.needs == (*beside, *([STEPS.ref_of[LATER]] if rests else []))


@pytest.mark.parametrize(
    ("following", "applies"),
    [
        ([], False),
        ([("user", "Go on.")], True),
        ([("user", "Continue.")], False),
        ([("assistant", "Continue.")], True),
    ],
    ids=["nothing follows", "the user goes on", "the client kept our words", "two of the model"],
)
def test_words_put_behind_the_last_message_come_again_where_the_client_goes_on_without_them(
    following: list[tuple[str, str]], applies: bool
) -> None:
    before = chat(("user", "hello"), ("assistant", "Hm."))
    insert = Edit("insert", (before.ref_of[1, 0],), "Continue.", "repair", "the model's is last")
    users = Edit("insert", (before.ref_of[0, 0],), "Continue.", "repair", "the model's is last")
    after = chat(("user", "hello"), ("assistant", "Hm."), *following)
    assert Journal((insert, users)).active(after) == ((insert,) if applies else ())


def test_refs_are_pinned_and_unpinned_and_what_changes_nothing_is_the_same_journal() -> None:
    journal = Journal().pinned(["a.0", "b.0"])
    assert journal.pins == {"a.0", "b.0"}
    assert journal.pinned(["a.0"]) is journal
    assert journal.pinned(["a.0", "c.0"], pin=False).pins == {"b.0"}
    assert journal.pinned(["c.0"], pin=False) is journal


edits = st.builds(
    lambda op, refs, text: Edit(op, tuple(refs), text, "cut", "too long"),
    st.sampled_from(["replace", "restore", "drop"]),
    st.lists(st.sampled_from(REFS), min_size=1, unique=True),
    st.sampled_from(["one", "two"]),
)


@given(st.lists(st.lists(edits, max_size=3), max_size=8))
def test_whatever_is_added_the_last_wins_and_a_store_gives_the_same_journal_back(
    batches: list[list[Edit]],
) -> None:
    journal, stream, wanted = Journal(), dict[str, bytes](), dict[str, Edit]()
    for batch in batches:
        after = journal.add(batch, {})
        assert after.entries[: len(journal.entries)] == journal.entries
        for row in rows(journal, after, at=0):
            assert row.id not in stream
            stream[row.id] = row.data
        wanted |= {ref: edit for edit in batch for ref in edit.targets}
        journal = after
    assert winners(journal) == wanted
    assert replayed(Journal(), stream.values()).entries == journal.entries


def test_what_an_edit_that_was_overruled_in_part_covered_stays_whole() -> None:
    """Else an edit older than both would come back there, on a turn that made no new one."""
    request = session("openai-chat", steps=4)
    transcript = formats.read(request, formats.find(request)[0])
    steps = [tuple(map(transcript.ref, group.places)) for group in transcript.groups]
    first, second, third = steps[:3]
    old, wide, newest = drop(*first), drop(*first, *second, *third), drop(*second, *third)
    assert Journal((old, wide)).active(transcript) == (wide,)
    assert Journal((old, wide, newest)).active(transcript) == (newest,)
    restore = Journal((old, wide)).undone(wide.handle)
    assert Journal((old, wide, restore, newest)).active(transcript) == (newest,)
    apart = Edit("drop", wide.targets, "", "drop", "", 1.0, "of another branch", wide.handle)
    assert Journal((old, apart, newest)).active(transcript) == (old, newest)
