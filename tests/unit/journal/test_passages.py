"""Search by words: passages ranked by BM25, with their neighbours, over everything taken out."""

from __future__ import annotations

import json
from collections import Counter
from math import log
from typing import Any

import pytest
from tool_calls import Step, conversation

import trimtab
from trimtab.journal.archive import Archived, ArchivedStep
from trimtab.journal.excerpts import answer
from trimtab.journal.passages import (
    EACH,
    MAX_HITS,
    SHOWN_CHARS,
    PassageIndex,
    find,
    numbered_lines,
)

TOPICS = ("invoice", "harbour", "violin", "glacier", "kernel", "orchard")


def text_about(topic: str, seed: int) -> str:
    rows = [f"line {n} speaks of {topic} matters, entry_{seed}_{n}" for n in range(40)]
    rows[20] = f"the keeper of the {topic} lighthouse wrote code_{seed} on the wall"
    return "\n".join(rows)


def test_the_passage_with_the_rarest_words_comes_first_with_its_neighbours() -> None:
    index = PassageIndex()
    texts = {topic: text_about(topic, n) for n, topic in enumerate(TOPICS)}
    for topic, text in texts.items():
        index.add(topic, text)
    best, *_ = index.search("who was keeper and wrote on a wall near the violin?")
    assert best.handle == "violin"
    shown = best.text(texts["violin"])
    assert "code_2" in shown
    assert "entry_2_19" in shown
    assert len(shown) <= SHOWN_CHARS


def test_no_passage_is_given_twice_and_nothing_for_unknown_words() -> None:
    index = PassageIndex()
    text = text_about("harbour", 1)
    index.add("one", text)
    index.add("again", text)
    found = index.search("harbour matters keeper wall lighthouse", most=5)
    assert {passage.handle for passage in found} == {"one"}
    lines = [line for passage in found for line in passage.lines]
    assert len(lines) == len(set(lines))
    assert index.search("zyx") == []


def test_a_score_is_bm25_over_the_passages() -> None:
    texts = ["red red fox", "red owl", "one two three four five six fox", "owl elk"]
    index = PassageIndex()
    for text in texts:
        index.add(text, text)
    words = [text.split() for text in texts]
    average = sum(map(len, words)) / len(words)
    expected = {}
    for text, said in zip(texts, words, strict=True):
        score = 0.0
        for term in ("red", "fox"):
            holding = sum(term in others for others in words)
            weight = log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
            times, length = said.count(term), len(said) / average
            score += weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length))
        if score:
            expected[text] = pytest.approx(score)
    found = {passage.handle: passage.score for passage in index.search("Red fox?")}
    assert found == expected


def test_a_neighbour_counts_a_fifth_and_a_passage_is_shown_with_what_fits_beside_it() -> None:
    rows = [f"{name} " * (470 // (len(name) + 1)) for name in ("aaaa", "bbbb", "cccc", "dddd")]
    rows[1] = "needle" + rows[1][6:]
    text, index = "\n".join(rows), PassageIndex()
    index.add("one", text)
    index.add("two", "\n".join(f"other {n}" for n in range(9)))
    shown = index.search("needle")
    assert [passage.text(text).split("\n") for passage in shown] == [rows[1:3], rows[:1]]
    assert shown[1].score == pytest.approx(0.2 * shown[0].score)


def test_a_word_of_every_passage_finds_nothing_beside_a_rare_one() -> None:
    index = PassageIndex()
    for number in range(40):
        index.add(f"handle {number}", f"matters of item {number}" + " lighthouse" * (number == 7))
    assert [passage.handle for passage in index.search("matters lighthouse")] == ["handle 7"]
    assert len(index.search("matters")) == 5


def test_messages_are_searched_by_what_they_say_not_by_their_keys() -> None:
    index = PassageIndex()
    items = [{"role": "tool", "tool_call_id": "c1", "content": text_about("glacier", 7)}]
    original = json.dumps(items)
    index.add("fold", original)
    assert index.search("role tool_call_id content") == []
    (best, *_) = index.search("the keeper of a glacier lighthouse")
    assert "wrote code_7 on the wall" in best.text(original)


def fitted_session() -> tuple[trimtab.Session, Any]:
    steps = [Step("read", {"file_path": f"{t}.md"}, text_about(t, n)) for n, t in enumerate(TOPICS)]
    body = conversation("anthropic", *steps, *steps[:1], last="Who wrote it?")
    session = trimtab.Session(window=1_500, reserve=0, format="anthropic")
    return session, session.fit(body)


def test_a_session_finds_what_no_line_holds_whole() -> None:
    session, fitted = fitted_session()
    assert "code_3" not in json.dumps(fitted.request)
    hits = session.search("whoever wrote something upon the wall, glacier keeper", most=5)
    assert "code_3" in hits[0].text
    hit = hits[0]
    assert "code_3" in session.recall(hit.handle, hit.start, hit.end)
    said = answer(session, {"handle": hit.handle, "search": "some glacier keeper, wall code"})
    assert not said.failed
    assert "code_3" in said.text


def test_lines_that_hold_all_the_words_come_before_passages() -> None:
    session, _ = fitted_session()
    hits = session.search("glacier lighthouse wrote")
    assert [hit.text.strip() for hit in hits] == [
        "the keeper of the glacier lighthouse wrote code_3 on the wall"
    ]


def of_steps(*texts: str) -> list[ArchivedStep]:
    """Originals as a look-up goes through them, the newest first."""
    return [ArchivedStep(Archived(f"r{n}"), text) for n, text in enumerate(texts)]


FILLER = "\n".join(f"row {n} of something else entirely" for n in range(200))


def test_of_steps_that_match_alike_the_newest_comes_first_and_a_better_one_before_it() -> None:
    newest, older = "assignee of OPS-17\nis lin" + " x" * 40, "assignee of OPS-17\nis mia"
    best = "assignee of OPS-17 is\nticket assigned by whom"
    found = find(of_steps(FILLER, newest, older), "OPS-17 assigned to, by its ticket")
    assert list(dict.fromkeys(step.name for step, _ in found))[:2] == ["r1", "r2"]
    weak = "some OPS there\n" + FILLER
    found = find(of_steps(weak, FILLER, best), "OPS-17 assigned to, by its ticket")
    assert found[0][0].name == "r2"


def test_a_name_of_several_words_counts_as_it_is_written() -> None:
    one, other = "x = 11\nname_11_40 = 5\nz", "40 and 11\nname_40_11 = 6\nname 11 40\n11 name 40"
    found = find(of_steps(other, FILLER, one), "value of name_11_40 there")
    assert found[0][0].name == "r2"


def test_one_step_leaves_room_for_the_lines_of_others() -> None:
    many = "\n".join(f"needle {n}" for n in range(90))
    found = find(of_steps(many, "a needle too", many + "."), "needle")
    counts = Counter(step.name for step, _ in found)
    assert counts == {"r0": EACH, "r1": 1, "r2": EACH}
    assert len(find(of_steps(many), "needle")) == MAX_HITS


@pytest.mark.parametrize(
    ("text", "messages", "lines"),
    [
        ("a\n\nb\r\nc\rd", False, [(1, "a"), (2, ""), (3, "b"), (4, "c"), (5, "d")]),
        ("a\n", False, [(1, "a")]),
        ("", False, []),
        (r'print("a\nb")', False, [(1, r'print("a\nb")')]),
        ("x" * 600 + r"\n" + "y" * 600, False, [(1, "x" * 600), (1, "y" * 600)]),
        (r'[{"role":"tool","content":"a\n\nb\r\n"}]', True, [(1, "a"), (2, ""), (3, "b")]),
        ('[{"price": 4211, "name": "x"}]', False, [(1, '[{"price": 4211, "name": "x"}]')]),
    ],
)  # fmt: skip
def test_lines_are_those_of_the_text_and_of_messages_those_in_their_strings(
    text: str, messages: bool, lines: list[tuple[int, str]]
) -> None:
    found = [(line.number, text[line.start : line.end]) for line in numbered_lines(text, messages)]
    assert found == lines
