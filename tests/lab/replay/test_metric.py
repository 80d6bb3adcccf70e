"""The replay's metric on a conversation of four calls, every expected figure worked out by hand.

Sizes of the eight messages in o200k tokens: 19, 24, 44, 22, 29, 39, 15, 20; they are counted again
by the tests' own counter, which shares nothing with the library.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import sizes
from replay_story import MESSAGES, MODULE

from trimtab.errors import InvalidSetting
from trimtab.logs.recording import RecordedTurn, Recording
from trimtab.pricing.prices import TABLES, Prices, named
from trimtab_lab.replay import summary, text_features
from trimtab_lab.replay.message_views import own_counter
from trimtab_lab.replay.metric import CallMetrics, JudgedRecording
from trimtab_lab.replay.policies import PolicyOutput, find
from trimtab_lab.replay.policy_run import Task, replay, result
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.user_constraints import demands

SIZES = [19, 24, 44, 22, 29, 39, 15, 20]
WINDOW = 60
CACHE = Prices("by hand", read=0.1, write=1.25)


def story(**changes: Any) -> Recording:
    return Recording("tiny", "story", "openai-chat", copy.deepcopy(MESSAGES), **changes)


def taken(rows: list[CallMetrics]) -> list[CallMetrics]:
    """The rows of a provider that has room for all of them."""
    return [row._replace(over=0, invalid=0) for row in rows]


class Own:
    """A policy made of one function from the request's messages to those that are sent."""

    name, version, format = "own", "1", ""

    def __init__(self, change: Callable[[list[Any]], Any]) -> None:
        self.change = change

    def start(self, index: RecordingIndex, window: int) -> Any:
        def step(body: dict[str, Any]) -> PolicyOutput:
            changed = self.change([dict(m) for m in body["messages"]])
            return (
                changed
                if isinstance(changed, PolicyOutput)
                else PolicyOutput({**body, "messages": changed})
            )

        return step


def judged(change: Callable[[list[Any]], Any], **changes: Any) -> JudgedRecording:
    return replay(RecordingIndex(story(**changes)), Own(change), WINDOW)


def from_third_call(text: str) -> Callable[[list[Any]], list[Any]]:
    """Replaces the first result once the third call of the model is due."""

    def change(messages: list[Any]) -> list[Any]:
        if len(messages) >= 5:
            messages[2]["content"] = text
        return messages

    return change


# --- atoms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "see src/app/main.go:12 and fooBar(self.max_len)",
            ["src/app/main.go", "fooBar", "max_len"],
        ),
        ("a plain line and/or two well-known words, 12 of 2026", []),
        ("commit 1a2b3c4d of issue #1263, id 4711000", ["1a2b3c4d", "#1263", "4711000"]),
        ("v1.2.3 of main.py in /etc/app.d took 500ms", ["v1.2.3", "main.py", "etc/app.d"]),
        ("HTTPServer XMLHttp max-old-space-size", ["HTTPServer", "XMLHttp", "max-old-space-size"]),
        ("", []),
    ],
)
def test_identifiers_are_paths_ids_long_numbers_and_compound_names(text, expected):
    assert [span.identifier for span in text_features.spans(text)] == expected


def test_an_escape_never_becomes_part_of_an_identifier():
    raw = r'{"new_string": "\nTheName\tconfig_dir \\nfoo_bar"}'
    found = [span.identifier for span in text_features.spans(text_features.plain_text(raw))]
    assert found == ["new_string", "TheName", "config_dir", "foo_bar"]
    told = [
        span.identifier
        for part in text_features.values(raw)
        for span in text_features.spans(text_features.plain_text(part))
    ]
    assert told == ["TheName", "config_dir", "foo_bar"]


def test_line_numbers_and_colours_are_no_part_of_a_line():
    text = "  12345→\x1b[31mthe old line stands here\x1b[0m\n  12346→and the next one too"
    found = list(text_features.lines(text_features.plain_text(text)))
    assert found == ["the old line stands here", "and the next one too"]


def test_demands_are_the_users_sentences_not_the_clients():
    text = (
        "Please fix it. Never push to main!\n<system-reminder>You must obey me.</system-reminder>"
    )
    assert demands(text) == ["Never push to main!"]


# --- needs and sizes --------------------------------------------------------------------------


def test_sizes_agree_with_a_counter_that_shares_no_code():
    index = RecordingIndex(story())
    assert [view.tokens for view in index.views] == SIZES
    for turn in index.turns:
        body = index.recording.request(turn)
        assert index.tokens(turn) == sizes.tokens(body, "openai-chat")


def test_needs_are_what_the_agent_wrote_that_stood_before():
    index = RecordingIndex(story())
    assert index.turns == (
        RecordedTurn(1, 2),
        RecordedTurn(3, 4),
        RecordedTurn(5, 6),
        RecordedTurn(7, 8),
    )
    needs = index.needs
    assert needs[0] == ((), (), ())  # src/app/parser.py is new
    assert needs[1] == (("parse_line",), (), ("parse_line",))  # only in the result just in
    assert needs[2].identifiers == ("src/app/parser.py", "MAX_CHARS")
    assert needs[2].lines == ("MAX_CHARS = 80 in this old module",)
    assert needs[3].identifiers == ("MAX_CHARS", "src/app/parser.py", "src/app/main.py")


def test_the_border_of_the_newest_half_window_falls_where_the_sums_say():
    index = RecordingIndex(story())
    # Third call: 138 tokens, the newest 30 begin at 108, inside message 3 (87 … 109).
    assert index.newest(index.turns[2], 30) == 3
    # Fourth: 192 tokens, 162 lies inside message 5 (138 … 177).
    assert index.newest(index.turns[3], 30) == 5


def test_what_the_referee_has_counted_is_not_free_for_the_policy_that_is_timed():
    referee = RecordingIndex(story()).store.usage.counter
    assert RecordingIndex(story()).store.usage.counter is referee
    assert own_counter().source is not referee.source
    assert own_counter()(MODULE) == referee(MODULE) == 30


# --- rows -------------------------------------------------------------------------------------


def test_everything_sent_keeps_everything_and_costs_what_the_table_says():
    rows = judged(lambda messages: messages).rows
    assert [row.tokens for row in rows] == [19, 87, 138, 192]
    assert [row.prefix for row in rows] == [0, 19, 87, 138]
    assert [row.over for row in rows] == [0, 1, 1, 1]
    assert [row.broke for row in rows] == [0, 0, 0, 0]
    third, fourth = rows[2], rows[3]
    # src/app/parser.py stood alone on its line: it is old, but no words could ground it.
    assert (third.old, third.old_kept, third.ground, third.ground_kept) == (2, 2, 1, 1)
    assert (third.wide, third.wide_kept, third.line, third.line_kept) == (1, 1, 1, 1)
    # MAX_CHARS and the path stand in the newest half; main.py is old.
    assert (fourth.need, fourth.old, fourth.ground, fourth.ground_kept) == (3, 1, 1, 1)
    assert all(row.demand == row.demand_kept == 1 for row in rows)
    # 19·1.25 + (19·.1 + 68·1.25) + (87·.1 + 51·1.25) + (138·.1 + 54·1.25)
    assert summary.billed(taken(rows), CACHE) == pytest.approx(23.75 + 86.9 + 72.45 + 81.3)
    assert summary.full_billed(rows, CACHE) == summary.billed(taken(rows), CACHE)


def test_a_refused_request_keeps_nothing_costs_nothing_and_leaves_the_cache_as_it_was():
    rows = judged(lambda messages: messages).rows
    second_refused = [row._replace(over=int(n == 1)) for n, row in enumerate(rows)]
    # The third call finds what the first left in the cache: 19 read, 119 written.
    assert summary.billed(second_refused, CACHE) == pytest.approx(23.75 + 1.9 + 148.75 + 81.3)
    whole = {"rows": rows, "errors": {}, "version": "1", "native": "", "format": ""}
    kept = summary.tally({**whole, "rows": taken(rows)}, CACHE).figures()
    assert (kept["answered"], kept["refused"], kept["user"], kept["recall"]) == (100, 0, 100, 100)
    refused = summary.tally(whole, CACHE).figures()  # all but the first
    assert (refused["answered"], refused["refused"], refused["user"]) == (25, 3, 25)
    assert refused["recall"] == 0 == refused["old"]
    assert refused["handle"] is None


def test_a_dropped_result_loses_what_stood_only_there():
    done = judged(from_third_call("[gone]"))
    third, fourth = done.rows[2], done.rows[3]
    # "[gone]" has 3 tokens where the module had 30: 138 − 27, 192 − 27.
    assert (third.tokens, fourth.tokens) == (111, 165)
    # Same up to the result's text: 19 + 24, and the 4 + 10 around it.
    assert (third.prefix, third.broke) == (57, 1)
    assert (fourth.prefix, fourth.broke) == (111, 0)
    assert (third.need, third.need_kept, third.old_kept) == (2, 1, 1)
    assert (third.ground_kept, third.wide_kept, third.line_kept) == (0, 0, 0)
    assert fourth.need_kept == 3  # MAX_CHARS was written again by the edit
    (loss,) = done.losses[2]
    assert (loss.identifier, loss.message, loss.kind, loss.tool) == (
        "MAX_CHARS",
        2,
        "result",
        "read",
    )
    assert (loss.line, loss.now) == ("MAX_CHARS = 80 in this old module", "[gone]")
    # Third call: 57 read, 54 written; fourth: 111 read, 54 written.
    expected = 23.75 + 86.9 + (5.7 + 67.5) + (11.1 + 67.5)
    assert summary.billed(taken(done.rows), CACHE) == pytest.approx(expected)


def test_a_list_of_identifiers_is_no_better_grounded_than_nothing():
    listed = judged(from_third_call("parse_line, MAX_CHARS")).rows[2]
    gone = judged(from_third_call("[gone]")).rows[2]
    assert listed.need_kept == 2 > gone.need_kept  # the cheat pays in plain recall
    assert (listed.ground_kept, listed.wide_kept) == (gone.ground_kept, gone.wide_kept) == (0, 0)


def test_a_kept_line_grounds_its_identifier_but_not_its_surroundings():
    row = judged(from_third_call("MAX_CHARS = 80 in this old module")).rows[2]
    assert (row.ground_kept, row.line_kept) == (1, 1)
    # 80 characters around it there were ten more words.
    assert row.wide_kept == 0
    whole = judged(from_third_call("cut: \n" + MODULE)).rows[2]
    assert (whole.ground_kept, whole.wide_kept) == (1, 1)


def test_the_result_just_received_is_judged_on_its_own():
    def cut(messages: list[Any]) -> list[Any]:
        if len(messages) == 3:
            messages[2]["content"] = "def …"
        return messages

    rows = judged(cut).rows
    assert (rows[1].fresh, rows[1].fresh_kept) == (1, 0)
    assert rows[1].old == 0


def test_a_result_without_its_call_is_invalid_and_counted_once():
    rows = judged(lambda messages: [m for m in messages if not m.get("tool_calls")]).rows
    assert [row.invalid for row in rows] == [0, 1, 1, 1]


def test_rules_that_the_recording_breaks_itself_are_not_held_against_a_policy():
    broken = [*copy.deepcopy(MESSAGES[:2]), {"role": "user", "content": "go on"}, MESSAGES[7]]
    index = RecordingIndex(Recording("tiny", "broken", "openai-chat", broken))
    assert sum(index.broken[1].values()) > 0
    assert [row.invalid for row in replay(index, find("none"), 10**6).rows] == [0, 0]


def test_an_exception_is_counted_and_the_whole_request_judged():
    def fails(messages: list[Any]) -> list[Any]:
        raise KeyError("x")

    done = judged(fails)
    assert [row.failed for row in done.rows] == [1, 1, 1, 1]
    assert done.errors == {"KeyError: 'x'": 4}
    assert [row.tokens for row in done.rows] == [19, 87, 138, 192]


def test_a_body_that_is_none_counts_like_an_exception():
    done = judged(lambda messages: PolicyOutput({"model": "m"}))
    assert [row.failed for row in done.rows] == [1, 1, 1, 1]


def test_demands_are_lost_with_the_users_message_and_kept_in_a_quotation():
    gone = judged(lambda messages: [{"role": "user", "content": "go"}, *messages[1:]])
    assert [row.demand_kept for row in gone.rows] == [0, 0, 0, 0]
    told = "They said: Never touch the tests in any way. Fix it."
    kept = judged(lambda messages: [{"role": "user", "content": told}, *messages[1:]])
    assert [row.demand_kept for row in kept.rows] == [1, 1, 1, 1]


def test_originals_make_a_lost_identifier_recoverable():
    def put_away(messages: list[Any]) -> PolicyOutput:
        changed = from_third_call("[gone]")(messages)
        return PolicyOutput({"messages": changed}, originals={"h": MODULE})

    assert judged(put_away).rows[2].recoverable == 1
    assert judged(from_third_call("[gone]")).rows[2].recoverable == 0


def test_of_a_batch_it_is_told_how_much_it_used_of_what_it_was_to_cut_down_to():
    rooms = iter([None, (700, 1_000), (300, 200), None])
    done = judged(lambda messages: PolicyOutput({"messages": messages}, room=next(rooms)))
    assert [(row.used, row.goal) for row in done.rows] == [(0, 0), (700, 1_000), (200, 200), (0, 0)]


def test_the_policys_own_calls_to_a_model_are_billed():
    done = judged(lambda messages: PolicyOutput({"messages": messages}, calls=[(1000, 100)]))
    extra = summary.billed(taken(done.rows), CACHE) - summary.full_billed(done.rows, CACHE)
    assert extra == pytest.approx(4 * (1000 + 5 * 100))


# --- prices -----------------------------------------------------------------------------------


def test_a_prefix_older_than_its_lifetime_is_written_again():
    times = (0.0, 10.0, 20.0, 400.0, 410.0, 420.0, 430.0, 440.0)
    rows = judged(lambda messages: messages, times=times).rows
    assert [row.gap for row in rows] == [-1.0, 390.0, 20.0, 20.0]
    short = Prices("short", 0.1, 1.25, ttl_seconds=300)
    # The second call comes after 390 s: nothing is read.
    expected = 23.75 + 87 * 1.25 + 72.45 + 81.3
    assert summary.billed(taken(rows), short) == pytest.approx(expected)


def test_a_prefix_below_the_least_size_is_not_cached():
    prices = Prices("p", 0.1, 1.25, min_tokens=1024)
    assert prices.cached(1023, -1) == 0
    assert prices.cached(1024, -1) == 1024
    assert prices.prompt(500, 400) == 500  # neither read nor written


def test_hits_come_in_steps_and_long_prompts_cost_more():
    prices = Prices("p", 0.1, 1.0, step_tokens=128, tier_tokens=1000, tier=2.0)
    assert prices.cached(300, -1) == 256
    assert prices.prompt(1001, 0) == 2002


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_has_its_source_and_reading_is_never_dearer(table):
    assert table.about
    assert table.read <= 1.0 <= table.write
    assert named(table.name) is table


def test_an_unknown_table_is_named_with_those_there_are():
    with pytest.raises(InvalidSetting, match="claude-5m"):
        named("cheap")


# --- summaries --------------------------------------------------------------------------------


def results(
    change: Callable[[list[Any]], Any], policy: str, count: int = 3
) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        index = RecordingIndex(story().renamed(id=f"story-{number}"))
        own = Own(change)
        own.name = policy
        done = replay(index, own, WINDOW)
        done.rows = taken(done.rows)
        found.append(result(index.recording, index, Task(policy, WINDOW), own, done))
    return found


def test_a_summary_adds_up():
    rows = results(from_third_call("[gone]"), "drop") + results(lambda m: m, "all")
    drop, everything = summary.summarize(rows, prices="none")
    assert (drop.recordings, drop.calls) == (3, 12)
    assert drop.figures["g1"] == pytest.approx(50)  # one of two old ones with words by them
    # Without a cache: (19 + 87 + 111 + 165) of (19 + 87 + 138 + 192).
    assert drop.figures["cost"] == pytest.approx(382 / 436)
    assert drop.figures["breaks"] == pytest.approx(20 / 4)
    assert everything.figures["lines"] == 100


def test_intervals_are_the_same_on_every_run():
    rows = results(from_third_call("[gone]"), "drop", 2) + results(lambda m: m, "drop", 2)
    first, again = summary.summarize(rows), summary.summarize(rows)
    assert first == again
    assert first[0].low["g1"] < first[0].figures["g1"] < first[0].high["g1"]
