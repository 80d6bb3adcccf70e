"""Rows B7–B9 and B15–B18: dead weight goes early and alone, and nothing else before it must."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from redundancy_facts import FILE, OTHER, kinds
from settings_words import as_keywords
from shapes import FORMATS, inputs, items_of, results
from tool_calls import Step, conversation

import trimtab
from trimtab import Session
from trimtab.reducers.redundant import duplicates

DEAD = {"duplicate", "superseded", "failed-input"}
READ = Step("read", {"path": "src/a.py"}, FILE * 3)
WRONG = Step(
    "edit", {"file_path": "src/b.py", "old_string": OTHER * 3, "new_string": "x"},
    "oldString not found in content", True,
)  # fmt: skip
TALK = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 60) for n in range(40)]
WIDE = 200_000


def size(body: Any) -> int:
    return trimtab.measure(body, counter="o200k").total


EARLY = {"trigger": 1.0, "early": 1_000}
"""Nothing but dead weight goes before the window is full, and that as soon as it pays."""
LATE = {"trigger": None, "early": None}
"""The defaults."""


def fit(body: Any, window: int = WIDE, **options: Any) -> Any:
    return trimtab.fit(body, **as_keywords(**{
        "window": window, "reserve": 0, "counter": "o200k", **EARLY, **options
    }))  # fmt: skip


def long_ago(format: str, *dead: Any, later: int = 8) -> dict[str, Any]:
    """Many short steps, then ``dead`` ones, and so many steps behind them."""
    return conversation(format, *TALK[:24], *dead, *TALK[24 : 24 + later])


# --- early: far below the window ----------------------------------------------------------------


@pytest.mark.row("B8", "B9")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("dead", "kind"),
    [((READ, READ), "duplicate"), ((WRONG,), "failed-input")],
    ids=["the same read twice", "a failed edit"],
)
def test_dead_weight_goes_far_below_the_window_and_alone(
    format: str, dead: tuple[Step, ...], kind: str
) -> None:
    body = long_ago(format, *dead)
    fitted = fit(body)
    assert kinds(fitted) == {kind}
    assert fitted.report.tokens_after < fitted.report.tokens_before < 0.1 * WIDE
    assert "dead weight" in fitted.report.reason
    assert len(items_of(fitted.request)) == len(items_of(body))
    assert trimtab.check(fitted.request, format=format) == ()
    assert fit(fitted.request).request is fitted.request
    assert fit(body, **LATE).request is body


@pytest.mark.row("B9")
@pytest.mark.parametrize("format", FORMATS)
def test_the_error_text_and_the_keys_of_a_failed_call_stay(format: str) -> None:
    fitted = fit(long_ago(format, WRONG))
    assert WRONG.result in results(format, fitted.request)
    given = inputs(format, fitted.request)[24]
    assert "src/b.py" in str(given)
    assert "old_string" in str(given)
    assert OTHER not in str(given)


ODD = {
    "its own words": "The quota of this workspace is used up, ask your administrator.",
    "MCP": "MCP error -32000: upstream said no",
    "permission": "permission denied: the operator rejected it",
    "nothing known": "no luck today",
}


@pytest.mark.row("B4", "B9")
@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("format", FORMATS)
def test_the_input_of_a_call_flagged_as_failed_goes_whatever_its_text(
    format: str, text: str
) -> None:
    body = long_ago(format, WRONG._replace(result=ODD[text]))
    if format == "openai-chat":  # as LangChain keeps it
        (bad,) = [m for m in body["messages"] if m.get("content") == ODD[text]]
        assert fit(body).request is body  # no flag, no known text: nobody says that it failed
        bad["status"] = "error"
    fitted = fit(body)
    assert kinds(fitted) == {"failed-input"}
    assert OTHER not in str(inputs(format, fitted.request)[24])
    assert ODD[text] in str(results(format, fitted.request))
    own = trimtab.settings.FailedInputs(enabled=False)
    assert fit(body, settings=trimtab.Settings(failed_inputs=own)).request is body


@pytest.mark.row("B8")
def test_what_came_only_once_stays() -> None:
    for other in [{"path": "src/other.py"}, {"path": "src/a.py", "offset": 900}]:
        body = long_ago("openai-chat", READ, READ._replace(arguments=other, result=OTHER * 3))
        assert fit(body).request is body


@pytest.mark.row("B8")
def test_the_good_result_stays_where_the_same_read_failed_later() -> None:
    body = long_ago("anthropic", READ, READ._replace(result="ENOENT: no such file", error=True))
    assert fit(body).request is body


@pytest.mark.row("B9")
@pytest.mark.parametrize(("later", "goes"), [(4, False), (5, True)])
def test_age_is_counted_over_all_calls_early_too(later: int, goes: bool) -> None:
    body = long_ago("anthropic", WRONG, later=later)
    assert (kinds(fit(body)) == {"failed-input"}) is goes


@pytest.mark.row("B15")
def test_turns_protected_by_the_user_keep_their_dead_weight() -> None:
    body = long_ago("anthropic", READ, READ, later=3)
    assert kinds(fit(body)) == {"duplicate"}
    assert fit(body, settings=trimtab.Settings(protected_turns=5)).request is body
    assert fit(body, settings=trimtab.Settings(protected_tools=["read"])).request is body


# --- from what amount on ------------------------------------------------------------------------


@pytest.mark.row("B17")
def test_dead_weight_stays_where_it_does_not_pay_for_the_cache_it_breaks() -> None:
    much = [Step("ask", {"n": n}, f"{n} " + f"w{n} " * 4_000) for n in range(6)]
    body = conversation("openai-chat", READ, READ, *much)
    assert fit(body).request is body, "far more would be written again than goes"
    assert kinds(fit(body, settings=trimtab.Settings(prices="none"))) == {"duplicate"}, (
        "nothing is cached: any saving pays"
    )
    cold = fit(body, settings=trimtab.Settings(idle_seconds=100_000))
    assert kinds(cold) == {"duplicate"}, "the cache has expired: it is free"
    money = fit(
        body, settings=trimtab.Settings(idle_seconds=100_000, prices="claude-5m")
    ).report.money
    assert money["once"] < 0 < money["gain"]


@pytest.mark.row("B17")
def test_early_says_from_how_many_tokens_on() -> None:
    body = long_ago("openai-chat", READ, READ)
    saved = fit(body).report.tokens_before - fit(body).report.tokens_after
    assert fit(body, settings=trimtab.Settings(early=saved)).request is not body
    assert fit(body, settings=trimtab.Settings(early=saved + 1)).request is body
    assert (
        fit(body, preset="balanced", settings=trimtab.Settings(early=saved)).request
        == fit(body).request
    )


@pytest.mark.row("B17")
def test_savings_are_told_by_cause_and_counted_once_over_turns() -> None:
    session = Session(window=WIDE, reserve=0, settings=trimtab.Settings(counter="o200k", **EARLY))
    body = long_ago("openai-chat", READ, READ, WRONG)
    first = session.fit(body)
    saved = {edit.kind: edit.tokens_saved for edit in first.report.edits}
    assert saved.keys() == {"duplicate", "failed-input"}
    more = [*body["messages"], {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Go on."}]  # fmt: skip
    second = session.fit({**body, "messages": more})
    assert second.request["messages"][: len(first.request["messages"])] == first.request["messages"]
    assert not [edit for edit in second.report.edits if edit.new]
    stats = session.stats()
    assert stats["saved"] == saved


@pytest.mark.row("B16")
def test_what_was_pruned_stays_so_in_the_next_process() -> None:
    body = long_ago("openai-chat", READ, READ, WRONG)
    session = Session(window=WIDE, reserve=0, settings=trimtab.Settings(counter="o200k", **EARLY))
    sent = session.fit(body).request
    again = Session(
        window=WIDE, reserve=0, journal=session.journal, settings=trimtab.Settings(counter="o200k")
    )
    assert again.fit(body).request == sent


# --- nothing else before it must ----------------------------------------------------------------


@pytest.mark.row("B7")
@pytest.mark.parametrize("format", FORMATS)
def test_between_trigger_and_window_only_dead_weight_goes(format: str) -> None:
    body = long_ago(format, READ, READ)
    window = int(size(body) / 0.95)
    fitted = fit(body, window)
    assert kinds(fitted) == {"duplicate"}
    alive = conversation(format, *TALK)
    assert fit(alive, int(size(alive) / 0.95)).request is alive


@pytest.mark.row("B7")
def test_above_the_window_dead_weight_goes_first_and_may_be_enough() -> None:
    body = long_ago("openai-chat", READ, READ)
    assert kinds(fit(body, size(body) - 10, target=0.9)) == {"duplicate"}


@pytest.mark.row("B7", "B17")
def test_dead_weight_that_frees_little_breaks_no_cache_before_the_window_is_full() -> None:
    wrong = WRONG._replace(arguments={**WRONG.arguments, "old_string": OTHER})
    body = conversation("openai-chat", wrong, *TALK)
    assert fit(body, int(size(body) / 0.97)).request is body
    full = fit(body, size(body) - 10)
    assert kinds(full) - DEAD, "the cache breaks once for all that has to go"
    assert full.report.tokens_after <= 0.8 * size(body)


@pytest.mark.row("B7")
def test_above_the_window_everything_is_allowed_down_to_the_target() -> None:
    body = conversation("openai-chat", *TALK)
    fitted = fit(body, size(body) - 10)
    assert kinds(fitted) - DEAD
    assert fitted.report.tokens_after <= 0.8 * size(body)


@pytest.mark.row("B7")
@pytest.mark.parametrize("preset", ["balanced", "economy", "in-place"])
def test_given_reducers_mean_what_they_say_below_the_window(preset: str) -> None:
    body = long_ago("openai-chat", READ, READ, WRONG)
    window = int(size(body) / 0.95)
    settings = trimtab.Settings(reducers=[duplicates], prices="none")  # any saving pays
    fitted = fit(body, window, preset=preset, settings=settings)
    assert kinds(fitted) == {"duplicate"}
    assert len(fitted.request["messages"]) == len(body["messages"])
    alive = conversation("openai-chat", *TALK)
    window = int(size(alive) / 0.95)
    assert (
        fit(alive, window, preset=preset, settings=trimtab.Settings(reducers=[duplicates])).request
        is alive
    )


@pytest.mark.row("E2")
def test_dead_weight_goes_before_any_result_even_where_its_call_is_recent() -> None:
    wrong = WRONG._replace(arguments={**WRONG.arguments, "old_string": OTHER * 5})
    body = conversation("anthropic", *TALK[:20], wrong, *TALK[20:29])
    window = int(size(body) / 0.97)
    fitted = fit(body, window, preset="in-place")
    assert kinds(fitted) == {"failed-input"}


# --- told ---------------------------------------------------------------------------------------


@pytest.mark.row("B18")
def test_the_log_says_what_was_pruned_by_cause(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trimtab"):
        fit(long_ago("openai-chat", READ, READ, WRONG))
    line = next(r.getMessage() for r in caplog.records if r.getMessage().startswith("cut "))
    assert line.startswith("cut 1 result and 1 call (")
    assert "duplicate ×1 −" in line
    assert 'original: fitted.recall("' in line
    assert "failed-input ×1 −" in line


@pytest.mark.row("B7")
def test_a_reducer_that_is_skipped_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    def broken(block: Any, config: Any) -> Any:
        raise RuntimeError("not today")

    body = conversation("openai-chat", READ, *TALK)
    with caplog.at_level(logging.WARNING, "trimtab"):
        fitted = fit(body, size(body) - 10, settings=trimtab.Settings(extra_reducers=[broken]))
    assert "reducer skipped: broken: RuntimeError: not today" in fitted.report.warnings
    said = [r.getMessage() for r in caplog.records if "broken" in r.getMessage()]
    assert said == ["openai-chat: reducer skipped: broken: RuntimeError"]
