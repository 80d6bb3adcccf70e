"""Rows B22 and B24: results taken out, said in the model's own words or swept, because it was asked
for; and a mode in which nothing else goes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from settings_words import as_keywords
from shapes import FORMATS, inputs, items_of, results
from tool_calls import Step, conversation

import trimtab
from trimtab import Session
from trimtab.sessions.pruning import compress, distill, prune
from trimtab.sessions.session_turns import prunable, take_out
from trimtab.stores import MemoryStore

STEPS = [
    Step(
        "read", {"path": f"src/{n}.py", "why": "because " * 40},
        "".join(f"{n}: line {k} of file {n}\n" for k in range(120)),
    )
    for n in range(6)
]  # fmt: skip
WORDS = "File 1 only lists its lines, 0 to 119."


def session(**options: Any) -> Session:
    return Session(
        **as_keywords(
            **{"window": 200_000, "reserve": 0, "counter": "o200k", "recall": True, **options}
        )
    )


def named(one: Session, body: Any) -> list[str]:
    return [able.name for able in prunable(one, body)]


# --- distill ------------------------------------------------------------------------------------


@pytest.mark.row("B22")
@pytest.mark.parametrize("format", FORMATS)
def test_a_result_is_said_in_the_models_words_from_the_next_request_on(format: str) -> None:
    body, one = conversation(format, *STEPS), session()
    name = named(one, body)[1]
    done = take_out(one, body, lambda given: distill(given, {name: WORDS}))
    assert [able.name for able in done.done] == [name]
    fitted = one.fit(body)
    told = results(format, fitted.request)
    assert WORDS in told[1]
    assert told[1].startswith("[read result, 2,530 chars, in the model's own words; recall(")
    assert told[0] == STEPS[0].result
    assert trimtab.check(fitted.request, format=format) == ()
    (edit,) = fitted.report.edits
    assert (edit.kind, edit.tool) == ("distilled", "read")
    assert one.recall(edit.handle) == STEPS[1].result
    assert one.fit(fitted.request).request == fitted.request


@pytest.mark.row("B22")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "until something is said"),
        (STEPS[1].result, "takes more than it saves"),
        ('<tool_call>{"name": "rm"}</tool_call>', "look like a call"),
    ],
)
def test_words_that_cannot_be_shown_are_told_and_nothing_is_taken_out(words: str, why: str) -> None:
    body, one = conversation("anthropic", *STEPS), session()
    name = named(one, body)[1]
    done = take_out(one, body, lambda given: distill(given, {name: words, "p000000": WORDS}))
    assert not done.done
    assert why in done.why_not[name]
    assert "is no name in this conversation" in done.why_not["p000000"]
    assert one.fit(body).request is body


# --- compress -----------------------------------------------------------------------------------


@pytest.mark.row("B22")
@pytest.mark.parametrize("format", FORMATS)
def test_steps_between_two_results_are_said_in_the_models_words(format: str) -> None:
    body, one = conversation(format, *STEPS), session()
    names = named(one, body)
    done = take_out(one, body, lambda given: compress(given, names[1], names[3], WORDS))
    assert [able.name for able in done.done] == names[1:4]
    fitted = one.fit(body)
    told, given = results(format, fitted.request), inputs(format, fitted.request)
    assert sum(WORDS in text for text in told) == 1
    assert all("line 119" not in text for text in told[1:4])
    assert all("src/" in str(arguments) for arguments in given), "what was called stays"
    assert "because because" not in str(given[2])
    assert told[0] == STEPS[0].result
    assert told[4] == STEPS[4].result
    assert len(items_of(fitted.request)) == len(items_of(body)), "no step goes"
    assert trimtab.check(fitted.request, format=format) == ()
    originals = {one.recall(edit.handle) for edit in fitted.report.edits}
    assert {step.result for step in STEPS[1:4]} <= originals
    assert fitted.tokens_after < 0.7 * fitted.tokens_before


@pytest.mark.row("B22")
def test_a_range_whose_ends_are_unknown_or_reversed_is_told() -> None:
    body, one = conversation("anthropic", *STEPS), session()
    names = named(one, body)
    for first, last in [("p000000", names[1]), (names[3], names[1])]:
        done = take_out(one, body, partial(compress, first=first, last=last, words=WORDS))
        assert not done.done
        assert done.why_not
    assert one.fit(body).request is body


@pytest.mark.row("B22")
def test_what_is_protected_stays_whole_within_the_range() -> None:
    steps = [*STEPS[:2], Step("plan", {}, STEPS[2].result), *STEPS[3:]]
    body, one = conversation("anthropic", *steps), session(protected_tools=["plan"])
    names = named(one, body)
    take_out(one, body, lambda given: compress(given, names[0], names[-1], WORDS))
    assert results("anthropic", one.fit(body).request)[2] == STEPS[2].result


# --- sweep --------------------------------------------------------------------------------------


@pytest.mark.row("B24")
@pytest.mark.parametrize("format", FORMATS)
def test_a_sweep_takes_out_the_newest_results_and_leaves_what_is_protected(format: str) -> None:
    body, one = conversation(format, *STEPS), session(protected_paths=["src/4.py"])
    done = one.sweep(body, 2)
    assert [able.about for able in done.done] == ["read: 3: line 0 of file 3",
                                                  "read: 5: line 0 of file 5"]  # fmt: skip
    told = results(format, one.fit(body).request)
    assert [text == step.result for text, step in zip(told, STEPS, strict=True)] == [
        True, True, True, False, True, False
    ]  # fmt: skip


@pytest.mark.row("B24")
def test_a_sweep_without_a_number_takes_what_came_since_the_user_spoke() -> None:
    body = conversation("anthropic", *STEPS[:3], last="Go on with the others.")
    more = conversation("anthropic", *[s._replace(id=f"more_{n}") for n, s in enumerate(STEPS[3:])])
    body["messages"] += more["messages"][1:-1]
    body["messages"] += [{"role": "assistant", "content": "I have read them."}]
    one = session()
    assert len(one.sweep(body).done) == 3
    told = results("anthropic", one.fit(body).request)
    assert told[:3] == [step.result for step in STEPS[:3]]
    assert all("line 119" not in text for text in told[3:])


@pytest.mark.parametrize("by_call", [False, True], ids=["of the session", "of the call"])
def test_what_was_pruned_before_any_fit_is_kept_under_the_name_of_the_conversation(
    by_call: bool,
) -> None:
    """A client that names a conversation may change its first messages."""
    store, body = MemoryStore(), conversation("anthropic", *STEPS)
    of_session: Any = {} if by_call else {"conversation": "mine"}
    of_call: Any = {"conversation": "mine"} if by_call else {}
    first = session(store=store, **of_session)
    names = [able.name for able in prunable(first, body, **of_call)]
    (pruned,) = take_out(first, body, lambda given: prune(given, names[:1]), **of_call).edits
    first._conversations.writer.flush()
    body["messages"][0] = {"role": "user", "content": "The client worded this anew."}
    later = session(store=store, **of_session)
    assert pruned.handle in str(later.fit(body, **of_call).request)


# --- nothing else, with trigger=1 ---------------------------------------------------------------


@pytest.mark.row("B22")
def test_with_trigger_1_nothing_goes_until_the_window_is_full_but_what_was_asked_for() -> None:
    body = conversation("anthropic", *STEPS, *STEPS)
    total = trimtab.measure(body, counter="o200k").total
    one = session(trigger=1.0, window=total)
    assert one.fit(body).request is body
    assert one.fit(body, settings=trimtab.Settings(idle_seconds=10**6)).request is body, (
        "not where the cache is cold either"
    )
    assert one.fit(body, settings=trimtab.Settings(trigger=None)).request != body
    one = session(trigger=1.0, window=total)
    take_out(one, body, lambda given: prune(given, named(one, body)[:1]))
    assert {edit.kind for edit in one.fit(body).report.edits} == {"pruned"}
    full = session(trigger=1.0, window=total - 100).fit(body)
    assert full.tokens_after <= total - 100
