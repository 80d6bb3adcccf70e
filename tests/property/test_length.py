"""No conversation dies of its length: chats of a thousand short turns, and the minimum.

``chats`` writes them; ``judge_speakers`` and ``check`` say whether what is sent is sound.
"""

from __future__ import annotations

import chats
import pytest
import spoken
from hypothesis import given
from hypothesis import strategies as st
from judge_speakers import foreign_pieces
from spoken import Script

import trimtab

FORMATS = spoken.FORMATS
EXACT = trimtab.Settings(counter="o200k")
WINDOW, RESERVE = 8_000, 1_000


def minimum(format: str, script: Script) -> int:
    request = spoken.written(format, script)
    report = trimtab.fit(request, window=10**9, reserve=0, format=format, settings=EXACT).report
    return report.minimum


@given(st.sampled_from(FORMATS), st.integers(1, 12), st.sampled_from([1, 5, 40]), st.booleans())
def test_law_10_the_minimum_does_not_grow_with_closed_turns(
    format: str, before: int, more: int, tools: bool
) -> None:
    whole = chats.script(before + more, tools=tools, constraints=False)
    turns = [n for n, said in enumerate(whole) if isinstance(said, str)]
    short = [*whole[: turns[before]], whole[-1]]
    assert minimum(format, whole) <= minimum(format, short) + 64


@given(spoken.scripts(), st.sampled_from(FORMATS), st.integers(1, 30))
def test_law_10_holds_behind_any_conversation(script: Script, format: str, more: int) -> None:
    turns = chats.script(more, constraints=False)[:-1]
    grown = [*script[:-1], *turns, script[-1]]
    assert minimum(format, grown) <= minimum(format, script) + 64


@given(spoken.scripts(), st.sampled_from(FORMATS), st.sampled_from([0.0, 0.1, 0.5]))
def test_law_10_everything_above_the_minimum_fits(
    script: Script, format: str, share: float
) -> None:
    request = spoken.written(format, script)
    total = trimtab.measure(request, format=format, counter="o200k").total
    least = minimum(format, script)
    window = int(least + share * max(0, total - least))
    fitted = trimtab.fit(request, window=window, reserve=0, format=format, settings=EXACT)
    assert fitted.report.tokens_after <= window
    assert trimtab.check(fitted.request, format=format) == ()
    assert foreign_pieces(request, fitted.request) == []
    assert not [text for text in fitted.report.warnings if "fell back" in text]
    again = trimtab.fit(
        fitted.request,
        window=window,
        reserve=0,
        format=format,
        settings=EXACT,
    )
    assert again.request == fitted.request


def walked(format: str, turns: int, *, tools: bool) -> float:
    """Turns between one batch and the next, behind the first; each request is sound, fits, and
    holds what the user demanded, unless all that the user wrote before it had to go as well."""
    whole = chats.script(turns, tools=tools)
    session = trimtab.Session(window=WINDOW, reserve=RESERVE, format=format)
    turn, batches = 0, list[int]()
    for number, request in enumerate(chats.requests(format, whole)):
        fitted = session.fit(request)
        assert fitted.report.tokens_after <= WINDOW - RESERVE
        if number % 25 == 0:
            assert trimtab.check(fitted.request, format=format) == ()
            assert foreign_pieces(request, fitted.request) == []
        told, asked = str(fitted.request), str(request)
        turn += f"Question {turn}:" in asked
        if any(edit.new for edit in fitted.report.edits):
            batches.append(turn)
        oldest = next(n for n in range(turn + 1) if f"Question {n}:" in told)
        for asker, demand in chats.CONSTRAINTS.items():
            was_asked = f"Question {asker}:" in asked
            assert demand in told or asker <= oldest or not was_asked, (turn, asker)
        assert not [w for w in fitted.report.warnings if "fell back" in w or "skipped" in w]
    return (batches[-1] - batches[0]) / (len(batches) - 1)


@pytest.mark.parametrize("format", FORMATS)
def test_law_10_a_long_chat_with_tools_fits_with_a_batch_in_eight_turns_at_most(
    format: str,
) -> None:
    assert walked(format, 130, tools=True) >= 8


def test_law_10_a_long_chat_fits_with_a_batch_in_eight_turns_at_most() -> None:
    assert walked("anthropic", 130, tools=False) >= 8


@pytest.mark.data
@pytest.mark.parametrize("tools", [False, True], ids=["chat", "tools"])
@pytest.mark.parametrize("format", FORMATS)
def test_law_10_a_thousand_turns(format: str, tools: bool) -> None:
    assert walked(format, 1_000, tools=tools) >= 8


def test_law_10_behind_a_fold_of_turns_a_batch_counts_only_what_is_sent() -> None:
    """Long answers within such a fold cannot be shortened any more: batches once counted them, and
    took away less than was asked for, or all there was."""
    session = trimtab.Session(window=WINDOW, reserve=RESERVE, format="anthropic")
    behind = 0
    for request in chats.requests("anthropic", chats.script(60, answer=300)):
        report = session.fit(request).report
        folded = any(edit.op == "fold" and not edit.new for edit in report.edits)
        if folded and any(edit.new for edit in report.edits):
            behind += 1
            target = report.limits["target_tokens"]
            assert target is not None
            assert 0.9 * target < report.tokens_after <= target
    assert behind


def test_law_10_old_constraints_give_way_last_of_all() -> None:
    script: Script = []
    for number in range(60):
        script += [f"You must never touch the file number {number} of them.", spoken.Step("Fine.")]
    script.append("And now?")
    request = spoken.written("openai-chat", script)
    total = trimtab.measure(request, counter="o200k").total
    for share in (0.9, 0.7):
        sent = str(
            trimtab.fit(
                request,
                window=int(share * total),
                reserve=0,
                settings=EXACT,
            ).request
        )
        assert all(f"file number {n} of" in sent for n in range(60)), share
    tight = trimtab.fit(request, window=200, reserve=0, settings=EXACT)
    assert tight.report.tokens_after <= 200
    (edit,) = [edit for edit in tight.report.edits if edit.op == "fold"]
    assert "file number 17 of" in tight.recall(edit.handle)
