"""The one look-up: what was left out is listed, searched and read, of this conversation alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import MODELS
from tool_calls import Step, conversation

import trimtab
from trimtab.journal import excerpts
from trimtab.journal.archive import Archived, of_edits
from trimtab.journal.excerpts import FOUND_CHARS, MAX_CHARS, MAX_ROWS, answer
from trimtab.stores import open_store
from trimtab.transcript.model import Edit

FORMATS = (*(one for one in MODELS if one != "gemini-interactions"), "gemini-interactions")


def source(number: int) -> str:
    rows = [f"name_{number}_{n} = {n * 7919 ^ number}" for n in range(60)]
    return "\n".join([f"# part {number}", *rows])


READS = [Step("read", {"file_path": f"src/part_{n}.py"}, source(n)) for n in range(20)]
EDIT = {
    "file_path": "src/part_3.py", "old_string": "name_3_7 = 55432", "new_string": "name_3_7 = 1",
}  # fmt: skip
TALK = [*READS[:6], Step("edit", EDIT, "The file was updated."), *READS[6:]]


def fitted(format: str = "anthropic", preset: Any = "balanced") -> trimtab.Fitted:
    body: Any = conversation("openai-chat" if format == FORMATS[-1] else format, *TALK)
    if format == FORMATS[-1]:
        body = trimtab.convert(body, format).request
    return trimtab.fit(body, window=9_000, reserve=0, format=format, recall=True, preset=preset)  # type: ignore[arg-type]


def asked(originals: Any, **arguments: Any) -> str:
    said = answer(originals, arguments)
    assert not said.failed, said.text
    return said.text


@pytest.mark.parametrize("format", FORMATS)
def test_the_list_names_each_step_with_tool_path_and_outcome_the_newest_first(format: str) -> None:
    ours = fitted(format)
    rows = asked(ours).splitlines()
    assert rows[0].startswith("What was left out, newest first")
    steps = [row for row in rows if "read src/part_" in row]
    numbers = [int(row.partition("src/part_")[2].partition(".py")[0]) for row in steps]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 10
    assert all(" → 61 lines (~" in row and row.endswith(" tokens)") for row in steps)
    assert any("edit src/part_3.py → ok" in row for row in rows)


@pytest.mark.parametrize("format", FORMATS)
def test_a_search_finds_the_line_with_its_step_which_reads_whole(format: str) -> None:
    ours = fitted(format)
    said = asked(ours, search="name_2_17 =")
    head, row = said.splitlines()
    handle, _, number = head.partition(" (")[0].partition(" step ")
    assert "src/part_2.py" in head
    assert row.endswith(f"name_2_17 = {17 * 7919 ^ 2}")
    step = asked(ours, handle=handle, steps=number)
    assert json.dumps(source(2))[1:-1] in step
    line = int(row.split()[1])
    assert asked(ours, handle=handle, steps=number, lines=line).endswith(row.split(": ", 1)[1])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_comes_as_it_was_read_last_with_the_edits_since(format: str) -> None:
    ours = fitted(format)
    said = asked(ours, file="src/part_3.py")
    assert said.startswith("[src/part_3.py as it was read in ")
    assert source(3) in said
    assert "\n-name_3_7 = 55432\n+name_3_7 = 1" in said
    assert "edit" not in asked(ours, file="part_4.py").splitlines()[0]
    assert (
        asked(ours, file="/home/me/src/part_3.py", lines="2-3").splitlines()[1:3]
        == (source(3).splitlines()[1:3])
    )
    told = answer(ours, {"file": "src/part_99.py"})
    assert told.failed
    assert "src/part_3.py" in told.text


def test_the_newest_of_two_readings_is_given_and_a_failed_one_is_none() -> None:
    steps = [
        Step("read", {"file_path": "a.py"}, "old text\n" * 40),
        Step("read", {"file_path": "a.py"}, "new text\n" * 40),
        Step("read", {"file_path": "a.py"}, "File not found"),
        *READS,
    ]
    body = conversation("anthropic", *steps)
    ours = trimtab.fit(body, window=6_000, reserve=0, format="anthropic", recall=True)
    said = asked(ours, file="a.py")
    assert "new text" in said
    assert "old text" not in said
    assert "not found" not in said


def test_a_file_names_the_step_of_a_later_edit_whose_arguments_are_not_known() -> None:
    change = {"file_path": "src/part_3.py", "before": "name_3_7 = 55432", "after": "name_3_7 = 1"}
    steps = [*READS[:6], Step("edit", change, "The file was updated."), *READS[6:]]
    body: Any = conversation("anthropic", *steps)
    ours = trimtab.fit(body, window=9_000, reserve=0, format="anthropic", recall=True)
    said = asked(ours, file="src/part_3.py").splitlines()
    assert "; 1 later edit below" in said[0]
    assert said[-1].endswith(" step 7 edited it; recall this step to see how]")


def test_single_results_are_listed_with_what_they_answer() -> None:
    ours = fitted(preset="in-place")
    rows = asked(ours).splitlines()[1:]
    assert any("read src/part_1.py → 61 lines" in row for row in rows)
    assert not any("by step" in row for row in rows)
    assert source(1) in asked(ours, file="part_1.py")
    found = asked(ours, search="name_1_30").splitlines()
    assert found[0].endswith("(read src/part_1.py → 61 lines):")


def test_words_that_no_line_holds_find_the_steps_that_have_most_of_them() -> None:
    ours = fitted()
    rows = asked(ours, search="what was assigned to name_11_40 in src/part_11.py").splitlines()
    assert rows[0] == "No line holds all of it; nearest:"
    assert "read src/part_11.py" in rows[1]
    assert f"name_11_40 = {40 * 7919 ^ 11}" in "\n".join(rows)


def test_nothing_left_out_is_said_and_is_no_error() -> None:
    body = conversation("anthropic", *READS[:1])
    ours = trimtab.fit(body, window=90_000, reserve=0, format="anthropic")
    assert asked(ours) == "nothing was left out of this conversation"
    assert answer(ours, {"search": "name"}).failed


def test_a_long_list_goes_on_where_it_says() -> None:
    given = [Step("run", {"command": f"make {n}"}, f"made {n}\n" * 9) for n in range(300)]
    body = conversation("openai-chat", *given)
    ours = trimtab.fit(body, window=6_000, reserve=0, format="openai-chat", recall=True)
    seen, start = list[str](), 0
    for _ in range(20):
        *rows, last = asked(ours, start=start).splitlines()
        assert len("\n".join(rows)) < FOUND_CHARS + 300
        assert len(rows) <= MAX_ROWS + 10
        seen += [row for row in rows if "make" in row]
        if not last.startswith("[older ones: start="):
            seen.append(last)
            break
        start = int(last.partition("start=")[2].partition(";")[0])
    assert len(seen) == len(set(seen)) > 200
    assert asked(ours, start=10**6) == "nothing older was left out"


def test_a_start_that_no_machine_counts_to_is_behind_the_last() -> None:
    """The model was told of an argument for islice()."""
    assert asked(fitted(), start=10**30) == "nothing older was left out"


def test_a_search_is_bounded_and_says_that_there_is_more() -> None:
    said = asked(fitted(), search="name")
    assert len(said) < FOUND_CHARS + 400
    assert said.splitlines()[-1].startswith("[the first 40 lines")
    long = "\n".join(f"word {n} " + "x" * 220 for n in range(90))
    body = conversation("anthropic", Step("read", {"file_path": "a"}, long), *READS)
    ours = trimtab.fit(body, window=6_000, reserve=0, format="anthropic", recall=True)
    said = asked(ours, search="word")
    assert len(said) < FOUND_CHARS + 400
    assert " more; search for more words" in said


# --- whose it is ---------------------------------------------------------------------------------


def test_a_session_of_many_conversations_lists_and_searches_only_the_one_it_answers_for() -> None:
    """Both begin alike, so the store gives both one id."""
    session = trimtab.Session(
        store=open_store("memory:"), window=9_000, reserve=0, recall=True, format="anthropic"
    )
    first = session.fit(conversation("anthropic", *TALK))
    other = [Step("read", {"file_path": f"their_{n}.py"}, f"secret_{n} = 1\n" * 90)
             for n in range(20)]  # fmt: skip
    second = session.fit(conversation("anthropic", *other))
    assert "their_3.py" in asked(second)
    assert "their_" not in asked(first)
    assert answer(first, {"search": "secret_3"}).failed
    assert answer(first, {"file": "their_3.py"}).failed
    assert answer(second, {"search": "name_3_7"}).failed
    assert "secret_3" in asked(session, search="secret_3")


def test_what_a_later_edit_of_the_same_blocks_overruled_is_not_listed_twice() -> None:
    def edit(op: Any, handle: str, *targets: str) -> Edit:
        return Edit(op, targets, "", "fold", "room", handle=handle)

    made = [
        edit("fold", "r1", "a", "b"), edit("replace", "r2", "c"), edit("fold", "r3", "a", "b", "c"),
        edit("replace", "r4", "d"), edit("restore", "r4", "d"), edit("insert", "", "e"),
    ]  # fmt: skip
    assert of_edits(made) == (Archived("r3"),)
    assert of_edits(made[:2]) == (Archived("r2"), Archived("r1"))


def test_steps_that_two_originals_hold_are_told_once() -> None:
    """A later fold holds again what an earlier one held."""
    ours = fitted()
    handle = max((one.handle for one in ours.archive), key=lambda one: len(ours.recall(one)))

    class Twice:
        archive = (Archived("r1"), Archived("r2"))

        def recall(self, name: str) -> str:
            return ours.recall(handle)

    assert asked(Twice()).count("read src/part_11.py") == 1
    assert asked(Twice(), search="name_11_40 =").count("name_11_40 =") == 1


def test_a_session_that_goes_on_from_a_journal_can_be_asked_before_its_first_request() -> None:
    session = trimtab.Session(window=9_000, reserve=0, recall=True, format="anthropic")
    session.fit(conversation("anthropic", *TALK))
    again = trimtab.Session(journal=session.journal, window=9_000)
    assert asked(again, search="name_2_17 =") == asked(session, search="name_2_17 =")
    assert again.look_up(file="part_3.py") == asked(session, file="part_3.py")


# --- nonsense ------------------------------------------------------------------------------------

OURS = fitted()
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from([OURS.archive[0].handle, "src/part_3.py", "name_2_17", "3-5", "0", 10**30]),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.integers()),
)  # fmt: skip
KEYS = st.sampled_from(["handle", "search", "file", "steps", "lines", "start", "end", "other"])


@given(st.dictionaries(KEYS, VALUES))
def test_no_arguments_raise_and_every_answer_is_bounded(arguments: dict[str, Any]) -> None:
    said = answer(OURS, arguments)
    assert len(said.text) <= MAX_CHARS + FOUND_CHARS + 1_000
    assert said.text


def test_a_store_that_does_not_answer_is_a_result_that_says_so() -> None:
    class Silent:
        archive = (Archived("r1"),)

        def recall(self, handle: str) -> str:
            raise trimtab.errors.StoreError("nobody home")

    for arguments in ({}, {"search": "x"}, {"file": "x"}, {"handle": "r1"}):
        assert answer(Silent(), arguments) == excerpts.RecallAnswer("nobody home", failed=True)


def test_a_file_that_only_calls_of_an_unknown_tool_name_is_looked_up_in_their_steps() -> None:
    steps = [Step("show_log", {"path": f"logs/{n}.txt"}, source(n)) for n in range(20)]
    ours = trimtab.fit(conversation("openai-chat", *steps), window=9_000, reserve=0, recall=True)
    said = answer(ours, {"file": "logs/3.txt"})
    assert said.failed
    assert "files there" not in said.text
    handle, _, number = said.text.rpartition(": ")[2].partition(" step ")
    assert "logs/3.txt" in asked(ours, handle=handle, steps=number)
