"""Old steps folded into notes: which lines stay, that they are theirs, and that notes stay put."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from file_reads import FILLER, request, step

import trimtab
from trimtab import formats
from trimtab.planning import line_selection
from trimtab.planning.fold import FILLED, _Seldom
from trimtab.planning.fold_candidates import _of
from trimtab.planning.line_selection import CandidateLines, LineSelector, verbatim
from trimtab.planning.lines import lines_of, only, weighed
from trimtab.reducers.query_terms import QueryTerms
from trimtab.transcript.model import Block


def fit(body: dict[str, Any], session: Any = trimtab, window: int = 12_000) -> Any:
    return session.fit(body, window=window, reserve=0, settings=trimtab.Settings(counter="o200k"))


def notes(fitted: Any) -> list[str]:
    texts = [
        str(part["content"])
        for message in fitted.request["messages"]
        for part in message["content"]
        if part["type"] == "tool_result"
    ]
    return [text for text in texts if "of which this record is left" in text]


HEAD = re.compile(r"\d+(?:–\d+)?:? ")


def test_each_line_of_a_note_is_a_line_of_its_step_or_the_head_of_one() -> None:
    body = request(30)
    (note,) = notes(fit(body))
    told, step_number = 0, 0
    for row in note.split("\n")[1:]:
        if HEAD.match(row):
            step_number = int(row.partition(" ")[0].partition("–")[0].rstrip(":"))
        elif row != " …":
            (result,) = body["messages"][2 * step_number]["content"]
            assert row[1:] in result["content"].split("\n")
            told += 1
    assert told > 20


def test_each_step_of_which_a_line_is_shown_has_a_line_of_its_own() -> None:
    (note,) = notes(fit(request(24)))
    title, *rows = note.split("\n")
    heads = [row for row in rows if HEAD.match(row)]
    folded = int(title.split()[0].lstrip("["))
    assert folded > 3
    assert heads == [f"{n} bash cat file{n - 1}.py → 60 lines" for n in range(1, folded + 1)]


def test_the_line_with_an_identifier_stays_and_the_ones_around_it_that_say_nothing_go() -> None:
    (note,) = notes(fit(request(30)))
    kept = sum(f"load_config_{number:03d}" in note for number in range(20))
    assert kept == 20
    assert note.count(FILLER) < 30 * 59 / 4


def test_a_note_stays_byte_for_byte_while_there_is_room_for_what_is_folded_next() -> None:
    session = trimtab.Session(window=12_000)
    body = request(24, lines=30)
    (first,) = notes(fit(body, session))
    found = [first]
    for number in range(24, 60):
        body["messages"] += step(number, "\n".join(f"{FILLER} {number} x{n}" for n in range(30)))
        found = notes(fit(body, session))
        if len(found) > 1:
            break
    assert found[0] == first
    assert len(found) == 2


def test_the_original_of_a_fold_is_the_dropped_messages_as_they_came() -> None:
    body = request(30)
    fitted = fit(body)
    (edit,) = [edit for edit in fitted.report.edits if edit.kind == "fold"]
    back = json.loads(fitted.recall(edit.handle))
    assert back == body["messages"][1 : 1 + len(back)]


def source(text: str, kind: Any = "result") -> CandidateLines:
    return CandidateLines(kind, lines_of(Block(kind, (), (), text)), 0.25)


def kept(
    tokens: float, *sources: CandidateLines, own: tuple[CandidateLines, ...] = ()
) -> list[str]:
    weights = weighed([(False, s.lines) for s in sources] + [(True, s.lines) for s in own])
    LineSelector(sources, weights, set()).take(tokens)
    return [line for one in sources for line in verbatim(one)]


@dataclass
class Head:
    """What stands above the lines of a step."""

    below: CandidateLines
    head_tokens: float = 2.4

    @property
    def is_shown(self) -> bool:
        return bool(self.below.kept)


def test_an_identifier_counts_once_and_more_if_the_agent_wrote_it() -> None:
    twice = source(f"{FILLER}\nwe read max_tokens here\n{FILLER}")
    again = source(f"{FILLER}\nwe read max_tokens there\n{FILLER}")
    both = [line for line in kept(9, twice, again) if "max_tokens" in line]
    assert both == ["we read max_tokens here"]
    seen = source("x one\nsome words by first_name\nsome words by other_name\ny two")
    said = source("I will change other_name", "text")
    assert kept(9, seen, own=(said,)) == ["some words by other_name"]


def test_what_a_tool_says_of_a_name_counts_in_part_where_only_the_model_names_it() -> None:
    told = source("first\nthe load of max_tokens is high\nsome words and nothing else\nlast")
    LineSelector([told], {}, set(), {"max_tokens"}).take(1_000)
    assert 1 in told.kept
    new = source("first\nof some_tokens and more\nof other_names and more\nlast")
    LineSelector([new], {}, set(), {"some_tokens"}).take(9)
    assert 2 in new.kept, "at equal value it would be the first"
    assert 1 not in new.kept


def test_lines_beside_one_that_says_nothing_new_are_worth_nothing() -> None:
    told = source("first\nwe read max_tokens here\nplain words beside it\nmore of them\nlast")
    LineSelector([told], {}, {"max_tokens"}).take(1_000)
    assert told.kept == {0, 4}  # how it began, how it ended
    new = source("first\nwe read max_tokens here\nplain words beside it\nmore of them\nlast")
    LineSelector([new], {}, set()).take(1_000)
    assert new.kept == {0, 1, 2, 4}


@pytest.mark.parametrize("forced", [set(), {1}, {0, 3}], ids=str)
def test_the_first_prices_are_those_of_each_line_by_itself(forced: set[int]) -> None:
    text = f"{FILLER}\nwe read max_tokens here\nfirst_name\nsome words by first_name\nlast"
    found = source(text)
    found.head, found.forced = Head(found), frozenset(forced)
    again = source(f"{text}\nwith other_name beside it")
    selector = LineSelector([found, again], {"other_name": 4.0}, set())
    selector.force()
    assert found.kept == forced
    prices = {
        at: selector._price(at, *selector._line(at))
        for at in range(selector.starts[-1])
        if at not in forced
    }
    selector._fill(set())
    assert sorted(selector._heap) == sorted((-p, at) for at, p in prices.items() if p > 0)


@pytest.mark.parametrize(("tokens", "expected"), [(12, set()), (13, {1}), (22, {1}), (23, {1, 2})])
def test_a_head_costs_its_tokens_once(tokens: float, expected: set[int]) -> None:
    """A line of 36 chars is 10 tokens, the head 2.4."""
    found = source("-\nwe read first_name {0}\nwe read other_name {0}\n-".format("-" * 17))
    found.head = Head(found)
    LineSelector([found], {"first_name": 9.0, "other_name": 9.0}, set()).take(tokens)
    assert found.kept - {0, 3} == expected


def test_of_very_many_lines_the_same_are_kept_as_if_all_were_compared_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = random.Random(1)
    rows = [
        f"line {n} of {' '.join(f'part_{draw.randrange(90)}' for _ in range(draw.randrange(4)))}"
        for n in range(400)
    ]
    parts = [source("\n".join(rows[n : n + 80]), "text" if n == 80 else "result")
             for n in range(0, 400, 80)]  # fmt: skip
    every = kept(400, *parts)
    again = [replace(one, kept=set()) for one in parts]
    monkeypatch.setattr(line_selection, "MAX_LINES", 12)
    assert kept(400, *again) == every
    assert len(every) > 40


def test_neither_a_header_nor_a_piece_of_a_line_ends_in_half_a_character() -> None:
    pair = "\ud83d\ude80"  # a rocket as some clients send it: in two halves
    long = "a" + pair * 300
    block = Block("call", (), (), json.dumps({"command": long}), tool="bash", spelling="json")
    # json.loads joins the halves, so the text itself is given as free text too
    free = Block("call", (), (), long, tool="bash")
    for found in (lines_of(block), lines_of(free)):
        pieces = [found.header.removeprefix("bash ").removesuffix(" …")]
        pieces += list(found)
        assert len(pieces) > 2
        for piece in pieces:
            left = piece.removeprefix("a").replace(pair, "")
            assert not any("\ud800" <= char <= "\udfff" for char in left), piece
        assert "".join(found) in (long, "a" + "🚀" * 300)


def tight(last: int) -> dict[str, Any]:
    """A head that takes more than two fifths of 16k, and steps; the newest of so many lines."""
    body = request(0)
    body["system"] = "\n".join(f"Rule {n}: leave module_{n}.py as it is." for n in range(700))
    for number, lines in enumerate([60] * 30 + [last]):
        rows = (f"part_{number}/unit_{n}.py: {FILLER}, says setting_{n}" for n in range(lines))
        body["messages"] += step(number, "\n".join(rows))
    return body


def test_where_the_head_leaves_little_room_notes_fill_their_share_of_it() -> None:
    """What lines cost is estimated high, but what they take is counted."""
    body = tight(30)
    report = fit(body, window=16_000).report
    target, trigger = report.limits["target_tokens"], report.limits["trigger_tokens"]
    stays = {**body, "messages": [body["messages"][0], *body["messages"][-2:]]}
    room = target - trimtab.measure(stays, counter="o200k").total
    assert target - 1.1 * (1 - FILLED) * room < report.tokens_after <= target + 100 < trigger


def test_there_a_large_newest_result_takes_no_room_from_the_notes() -> None:
    """It is folded next turn in any case: what stays free before the trigger goes to the notes."""
    session = trimtab.Session()
    body = tight(120)
    report = fit(body, session, window=16_000).report
    trigger = report.limits["trigger_tokens"]
    assert trigger - 600 < report.tokens_after <= trigger
    body["messages"] += step(31, "\n".join(f"{FILLER} {n}" for n in range(90)))
    later = fit(body, session, window=16_000).report
    assert later.tokens_after < report.tokens_after - 600


def test_a_batch_late_in_a_session_chooses_from_no_more_lines_than_an_early_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All notes are chosen anew in each batch here."""

    def max_lines(steps: int, horizon: int) -> int:
        found: list[int] = []

        class Counted(LineSelector):
            def __init__(self, sources: Sequence[CandidateLines], *rest: Any) -> None:
                found.append(sum(len(source.lines) for source in sources))
                super().__init__(sources, *rest)

        monkeypatch.setattr("trimtab.planning.fold_candidates.HORIZON", horizon)
        monkeypatch.setattr("trimtab.planning.fold_candidates.PAST", horizon + 1)
        monkeypatch.setattr("trimtab.planning.fold.FAIR_SHARE", 9.0)
        monkeypatch.setattr("trimtab.planning.fold.LineSelector", Counted)
        session, body = trimtab.Session(target=0.7), request(steps)
        for end in range(3, len(body["messages"]), 2):
            fit({**body, "messages": body["messages"][:end]}, session)
        assert len(found) > steps / 20
        return max(found)

    assert max_lines(60, 2) < 1.2 * max_lines(30, 2)
    assert max_lines(60, 1000) > 1.8 * max_lines(30, 1000)


def test_what_a_note_left_of_a_block_is_found_again_in_pieces_too() -> None:
    long = " ".join(f"word{n} and more" for n in range(60))
    body = {"messages": [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": f"first line here\n{long}\nlast line here"},
    ]}  # fmt: skip
    transcript = formats.read(body, formats.find(body, "openai-chat")[0])
    lines = lines_of(transcript.at(1, 0).block)
    pieces = [n for n, line in enumerate(lines) if line in long]
    assert len(pieces) > 3
    every = set(range(len(lines)))
    for kept in ({0, *pieces[1:3]}, {pieces[0], pieces[2]}, {*pieces[-2:]}, {pieces[-1]}, every):
        rows = verbatim(CandidateLines("text", lines, 0.3, kept=set(kept)))
        again = _of(set(rows), lines)
        assert list(again) == list(only(lines, sorted(kept)))
        assert verbatim(CandidateLines("text", again, 0.3, kept=set(range(len(again))))) == rows


def test_words_of_the_model_that_a_fold_takes_in_are_counted_once() -> None:
    """Mistral on Bedrock takes no words beside calls, so they fold with the step before them."""
    said = " ".join(f"The parser reads token {n} and goes on." for n in range(40))
    call = {"toolUse": {"toolUseId": "call_1", "name": "search", "input": {"path": "n.txt"}}}
    result = {"toolResult": {"toolUseId": "call_1", "content": [{"text": "67 def f(x):"}]}}
    newest = {"toolUse": {"toolUseId": "call_2", "name": "search", "input": {"path": "m.txt"}}}
    body = {
        "modelId": "mistral.mistral-large-2402-v1:0",
        "toolConfig": {"tools": [{"toolSpec": {"name": "search", "inputSchema": {"json": {}}}}]},
        "messages": [
            {"role": "user", "content": [{"text": "Go."}]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"text": said}]},
            {"role": "user", "content": [{"text": "Continue."}]},
            {"role": "assistant", "content": [newest]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "call_2", "content": [{"text": "none"}]}}]},
        ],
    }  # fmt: skip
    settings = trimtab.Settings(counter="o200k", strict=True)
    whole = trimtab.measure(body, format="bedrock", counter="o200k").total
    for window in range(120, whole, 20):
        fitted = trimtab.fit(body, format="bedrock", window=window, reserve=0, settings=settings)
        assert fitted.report.tokens_after <= window


def test_words_of_a_deepseek_turn_keep_their_reasoning_behind_a_call_that_stays() -> None:
    thought = {"reasoning_content": "I read it. "}
    written = json.dumps({"text": "return x + 1\\n" * 60})
    messages = [
        {"role": "user", "content": "Look at the parser. " * 40},
        {"role": "assistant", "content": None, "tool_calls": [call_of(1, "{}")], **thought},
        {"role": "tool", "tool_call_id": "call_1", "content": "none"},
        {"role": "user", "content": "And now? " * 40},
        {"role": "assistant", "content": "It is read.", **thought},
        {"role": "user", "content": "Write it."},
        {"role": "assistant", "content": None, "tool_calls": [call_of(2, written)]},
        {"role": "tool", "tool_call_id": "call_2", "content": "done"},
    ]
    for window in range(230, 500, 20):
        fitted = trimtab.fit(
            messages, format="openai-chat", model="deepseek-chat", window=window, reserve=0
        )
        assert fitted.report.warnings == ()


def call_of(number: int, arguments: str) -> dict[str, Any]:
    function = {"name": "read_file", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def edited(steps: int) -> dict[str, Any]:
    """Steps full of identifiers, each behind an edit that has none."""
    body = request(0)
    for number in range(steps):
        call = {"file_path": f"src/part{number}.py", "old_string": "it was so", "new_string": PLAIN}
        made = {"type": "tool_use", "id": f"e{number}", "name": "Edit", "input": call}
        answer = {"type": "tool_result", "tool_use_id": f"e{number}", "content": "Done."}
        body["messages"] += [
            {"role": "assistant", "content": [made]},
            {"role": "user", "content": [answer]},
        ]
        rows = (f"unit_{number}_{n} calls load_item_{n * 7919 + number}" for n in range(60))
        body["messages"] += step(number, "\n".join(rows))
    return body


PLAIN = "and now it is quite another thing"


def test_an_edit_shows_its_first_new_lines_among_lines_worth_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shown() -> int:
        return sum(note.count(f"\n+{PLAIN}") for note in notes(fit(edited(14), window=9_000)))

    assert shown() >= 10
    monkeypatch.setattr("trimtab.planning.fold.EDIT", 0.0)
    assert shown() < 5


def test_a_name_that_many_old_texts_have_points_at_none_of_them() -> None:
    texts = [f"line {n} of region_77" for n in range(9)] + ["one row of invoice_12"]
    terms = QueryTerms(("region_77", "invoice_12", "nowhere_1"), ("row",))
    assert _Seldom(texts).of(terms) == QueryTerms(("invoice_12", "nowhere_1"), ())


def test_what_is_asked_for_in_an_old_step_stays_in_the_note_and_goes_if_nobody_asks() -> None:
    def told(question: str) -> bool:
        body = request(0)
        for number in range(20):
            rows = [f"row {n}: ticket-{number}{n:02} costs {n * 31 + 7}" for n in range(60)]
            body["messages"] += step(number, "\n".join(rows))
        body["messages"].append({"role": "user", "content": [{"type": "text", "text": question}]})
        sent = json.dumps(fit(body, window=6_000).request)
        return "ticket-337 costs 1154" in sent

    assert told("What does ticket-337 cost?")
    assert not told("Go on, please.")
