"""``trimtab bill``: what was paid by usage as reported, and what it would have been otherwise."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from billed_logs import (
    MODEL,
    START,
    as_lines,
    claude_line,
    claude_usage,
    codex_line,
    provider_run,
    words,
)

from trimtab.cli import main
from trimtab.logs import log_files
from trimtab.pricing.arms import ArmUnit, savings
from trimtab.pricing.call_usage import CallUsage
from trimtab.pricing.conversation_usage import WARMER
from trimtab.pricing.paid import PaidCall
from trimtab_lab.replay.bill import answers
from trimtab_lab.replay.bill.logs import bill_of
from trimtab_lab.replay.bill.policies import COMPACTION, EVERYTHING, OURS, MethodError, PolicyBill
from trimtab_lab.replay.bill.report import Bill

LONG = words(5, 400)


def claude_session(session: str = "s1", *, ids: str = "m", usages: list[Any] | None = None) -> list:
    """Three calls of Claude Code, the first answer in two lines."""
    given = usages or [
        claude_usage(0, 0, 40_000, 10, 200), claude_usage(40_000, 0, 2_000, 3, 150),
        claude_usage(42_000, 1_000, 0, 2, 100),
    ]  # fmt: skip
    text = [{"type": "text", "text": "Reading."}]
    call = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": LONG}]
    at = {"session": session}
    return [
        claude_line("user", f"Mend the parser ({ids}).", START, **at),
        claude_line("assistant", text, START + 3, answer=f"{ids}1", usage=given[0], **at),
        claude_line("assistant", call, START + 4, answer=f"{ids}1", usage=given[0], **at),
        claude_line("user", result, START + 5, **at),
        claude_line("assistant", text, START + 9, answer=f"{ids}2", usage=given[1], **at),
        claude_line("user", "Go on.", START + 90_000, **at),
        claude_line("assistant", text, START + 90_003, answer=f"{ids}3", usage=given[2], **at),
    ]


def bill(tmp_path: Path, logs: dict[str, list[Any]], **options: Any) -> Bill:
    for name, values in logs.items():
        (tmp_path / name).write_text(as_lines(values), encoding="utf-8")
    return bill_of(log_files.read([str(tmp_path)]).recordings, **options)


def test_what_was_paid_is_the_sum_of_what_was_reported_at_list_prices(tmp_path: Path) -> None:
    paid = bill(tmp_path, {"a.jsonl": claude_session()}, policies=False).paid
    assert paid.calls == 3
    assert paid.tokens == {
        "uncached": 15, "read": 82_000, "written": 1_000, "written_1h": 42_000, "output": 450,
    }  # fmt: skip
    # Sonnet 4.5: 3 dollars a million; read 0.1, written 1.25 and 2 times that; output 15 dollars
    wanted = 3e-6 * (15 + 8_200 + 1_250 + 84_000) + 15e-6 * 450
    assert paid.cost.total == pytest.approx(wanted)


def test_a_session_that_is_taken_up_again_is_paid_once(tmp_path: Path) -> None:
    first, again = claude_session("s1"), claude_session("s2")
    more = claude_line("user", "And now?", START + 99_000, session="s2")
    usage = claude_usage(43_000, 10, 0, 1, 9)
    said = claude_line(
        "assistant", [{"type": "text", "text": "Done."}], START + 99_009, session="s2",
        answer="m4", usage=usage,
    )  # fmt: skip
    found = bill(tmp_path, {"a.jsonl": first, "b.jsonl": [*again, more, said]}, policies=False)
    assert (found.paid.calls, found.again) == (4, 3)
    assert found.paid.tokens["read"] == 82_000 + 43_000


def test_calls_are_grouped_by_day_agent_and_session(tmp_path: Path) -> None:
    logs = {"a.jsonl": claude_session("s1"), "b.jsonl": claude_session("s2", ids="n")}
    by_day = bill(tmp_path, logs, policies=False, by="day").groups
    assert [(one.name, one.calls) for one in by_day] == [("2026-09-21", 4), ("2026-09-22", 2)]
    by_session = bill(tmp_path, logs, policies=False, by="session").groups
    assert {(one.name, one.calls) for one in by_session} == {("s1", 3), ("s2", 3)}
    (by_agent,) = bill(tmp_path, logs, policies=False, by="agent").groups
    assert (by_agent.name, by_agent.calls) == ("claude-code", 6)


def test_codex_counts_what_is_cached_within_the_input_and_repeats_counts(tmp_path: Path) -> None:
    def count(input: int, cached: int, total: int) -> dict[str, Any]:
        last = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": 40}
        info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": last}
        return {"type": "token_count", "info": {**info, "model_context_window": 258_400}}

    def item(role: str, text: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    lines = [
        codex_line("session_meta", {"id": "r1", "cwd": "/p"}, START),
        codex_line("turn_context", {"model": "gpt-5.5"}, START),
        codex_line("response_item", item("user", "Hi."), START),
        codex_line("response_item", item("assistant", "Hello."), START + 1),
        codex_line("event_msg", count(20_000, 4_480, 20_000), START + 2),
        codex_line("event_msg", count(20_000, 4_480, 20_000), START + 3),
        codex_line("response_item", item("user", "Go on."), START + 4),
        codex_line("response_item", item("assistant", "Yes."), START + 5),
        codex_line("event_msg", count(20_500, 19_968, 40_500), START + 6),
    ]
    paid = bill(tmp_path, {"rollout-1.jsonl": lines}, policies=False).paid
    assert paid.calls == 2
    assert paid.tokens == {
        "uncached": 15_520 + 532, "read": 4_480 + 19_968, "written": 0, "written_1h": 0,
        "output": 80,
    }  # fmt: skip


def test_there_is_no_money_where_no_price_is_known(tmp_path: Path) -> None:
    lines = claude_session()
    for line in lines:
        if line["type"] == "assistant":
            line["message"]["model"] = "nobodys-model-1"
    found = bill(tmp_path, {"a.jsonl": lines})
    assert found.paid.as_dict()["dollars"] is None
    assert found.paid.tokens["read"] == 82_000
    assert any("nobodys-model-1: no price" in line for line in found.not_measured)
    assert all(one.as_dict()["estimated_dollars"] is None for one in found.policies)


def test_output_that_was_logged_before_the_answer_ended_has_no_figure(tmp_path: Path) -> None:
    lines = claude_session()
    lines[-1]["message"]["content"] = [{"type": "text", "text": LONG}]
    lines[-1]["message"]["usage"]["output_tokens"] = 3
    found = bill(tmp_path, {"a.jsonl": lines}, policies=False)
    assert found.paid.tokens["output"] == 350
    assert any("output of 1 call:" in line for line in found.not_measured)


def test_a_call_without_usage_is_told_and_not_guessed(tmp_path: Path) -> None:
    lines = claude_session()
    del lines[-1]["message"]["usage"]
    found = bill(tmp_path, {"a.jsonl": lines}, policies=False)
    assert found.paid.calls == 2
    assert "1 call: the log has no usage for them" in found.not_measured


def logged(*turns: int, ids: str = "m", said: str = "ok", time: Any = 1_764_000_000) -> list[Any]:
    """A log of requests, each with the answer's usage: 1,000 tokens and 10."""
    beside = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "Go on."}]
    return [
        {
            "time": time,
            "request": {"model": MODEL, "max_tokens": 9, "messages": [
                {"role": "user", "content": "Begin."}, *beside * turn]},
            "response": {"id": f"{ids}{turn}", "role": "assistant",
                         "content": [{"type": "text", "text": said}],
                         "usage": {"input_tokens": 1_000, "output_tokens": 10}},
        }
        for turn in turns
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "calls"),
    [
        (logged(0, 1, 2), 3),
        (logged(0, 1, 2) * 3, 3),  # the log was written thrice
        (logged(0, 1, 2) + logged(0, 1, 2, ids="n", said="no"), 6),  # all was asked again
        (logged(0, 1) + logged(1, ids="n", said="no") + logged(1, ids="o", said="yes"), 4),
        (logged(0, 1, 2) + logged(0, ids="n"), 4),
    ],
    ids=["once", "thrice", "again", "the last again", "the first again"],
)
def test_each_call_of_a_log_of_requests_is_paid_once(
    tmp_path: Path, lines: list[Any], calls: int
) -> None:
    found = bill(tmp_path, {"a.jsonl": lines}, policies=False)
    assert found.paid.calls == calls
    assert found.paid.tokens["uncached"] == 1_000 * calls


@pytest.mark.parametrize(
    "time", [1e18, 1e300, float("inf"), float("nan"), -1e18, "yesterday", "9999-99-99", None, []]
)
def test_a_time_that_is_none_is_left_out(tmp_path: Path, time: Any) -> None:
    found = bill(tmp_path, {"a.jsonl": logged(0, 1, 2, time=time)}, policies=False)
    assert (found.paid.calls, found.paid.first_day) == (3, "")


def strict_logs(tmp_path: Path, *, turns: int = 24, talks: int = 4) -> tuple[float, int, int]:
    """Runs against the strict provider as logs; what its own records say: dollars of the prompts,
    calls, tokens."""
    dollars, calls, tokens = 0.0, 0, 0
    for seed in range(talks):
        gaps = [20.0, 45.0, 9.0, 400.0] if seed % 2 else [15.0, 200.0]
        # It counts in another way than we do.
        log, provider = provider_run(seed, turns, gaps, counter=lambda text: len(text) // 3 + 1)
        (tmp_path / f"run-{seed}.jsonl").write_text(as_lines(log), encoding="utf-8")
        for record in provider.requests:
            plain = record.tokens - record.cached_tokens - record.written_tokens
            dollars += 3e-6 * (
                plain + 0.1 * record.cached_tokens + 1.25 * record.written_tokens
            )  # Sonnet 4.5
            calls, tokens = calls + 1, tokens + record.tokens
    return dollars, calls, tokens


def test_the_bill_of_runs_against_the_strict_provider_is_what_it_billed(tmp_path: Path) -> None:
    dollars, calls, tokens = strict_logs(tmp_path)
    found = bill_of(log_files.read([str(tmp_path)]).recordings)
    prompt = sum(count for kind, count in found.paid.tokens.items() if kind != "output")
    assert (found.paid.calls, prompt) == (calls, tokens)
    assert found.paid.cost.prompt == pytest.approx(dollars)
    assert found.paid.tokens["read"] > found.paid.tokens["written"] > 0


def test_the_method_reproduces_what_the_strict_provider_billed_within_3_percent(
    tmp_path: Path,
) -> None:
    strict_logs(tmp_path)
    error = bill_of(log_files.read([str(tmp_path)]).recordings).error
    assert error is not None
    assert error.calls == 96
    assert error.in_sum is not None
    assert abs(error.in_sum) < 0.03
    assert len(error.errors) == 4


def test_without_breakpoints_nothing_is_read_and_the_method_says_so_too(tmp_path: Path) -> None:
    for seed in (0, 1):
        log, _ = provider_run(seed, 16, [20.0], marked=False)
        (tmp_path / f"run-{seed}.jsonl").write_text(as_lines(log), encoding="utf-8")
    found = bill_of(log_files.read([str(tmp_path)]).recordings)
    assert found.paid.tokens["read"] == 0
    assert found.error is not None
    assert found.error.in_sum is not None
    assert abs(found.error.in_sum) < 0.03


def test_policies_that_change_nothing_cost_what_was_paid(tmp_path: Path) -> None:
    strict_logs(tmp_path, talks=2)
    found = bill_of(log_files.read([str(tmp_path)]).recordings)
    for one in found.policies:
        assert one.conversations == 2
        assert one.estimate == pytest.approx(one.paid), one.name


def test_below_the_history_everything_is_refused_and_ours_is_measured(tmp_path: Path) -> None:
    strict_logs(tmp_path, talks=2)
    found = bill_of(log_files.read([str(tmp_path)]).recordings, window=15_000)
    by_name = {one.name: one for one in found.policies}
    assert by_name["everything sent"].as_dict()["estimated_dollars"] is None
    assert "its prompts outgrow the window: the provider refuses them" in (
        by_name["everything sent"].not_measured
    )
    assert by_name["the agent's own compaction"].conversations == 0  # none in these logs to learn
    ours = by_name["trimtab"]
    assert (ours.conversations, ours.compacted) == (2, 2)
    assert 0 < ours.estimate < ours.paid


def call(session: str, agent: str = "claude-code") -> PaidCall:
    return PaidCall(session, agent, "", "", CallUsage("claude-sonnet-4-5", 1_000_000, 0, 0, 0, 0))


def test_the_first_lines_say_in_words_what_was_paid_saved_how_sure_and_what_trimtab_cost() -> None:
    policies = [
        PolicyBill(EVERYTHING, estimates={0: 10.0}, requests=9, refused=4),  # one conversation
        PolicyBill(COMPACTION, estimates={0: 9.0, 1: 5.0}),
        PolicyBill(OURS, estimates={0: 9.9, 1: 5.5}),
    ]
    error = MethodError(calls=2, paid=100.0, estimate=98.0)
    said = dict(answers.of_logs([call("a"), call("b")], policies, error))
    assert list(said) == ["Refused", "Paid", "Money", "How sure", "trimtab itself"]
    assert said["Refused"] == "4 of 9 requests would have been refused; with trimtab, none."
    assert said["Paid"] == "$6.00 at list prices: 2 conversations, 2 calls"
    assert said["Money"] == (
        "trimtab costs $1.40 more: $15.40 for the prompts, $14.00 with the agent's own compaction "
        "(2 conversations). trimtab costs $0.10 less: $9.90 for the prompts, $10.00 with "
        "everything sent (1 conversation)."
    )
    assert said["How sure"] == (
        "the method's error in sum is 2.0 %: the difference to the agent's own compaction is "
        "larger; the difference to everything sent is not larger"
    )
    assert "a summarizer" in said["trimtab itself"]
    assert dict(answers.of_logs([call("a")], [], None))["Money"].startswith("not measured")


@pytest.mark.parametrize(
    ("ours", "sure"),
    [
        (0.5, "0 % is outside these bounds"),
        (0.99, "0 % is within these bounds: this may be chance"),
    ],
)
def test_the_first_lines_of_a_stores_bill_say_whether_a_saving_may_be_chance(
    ours: float, sure: str
) -> None:
    control = [unit(1.0 + 0.02 * n) for n in range(10)]
    treated = [unit(ours + 0.02 * n) for n in range(10)]
    calls = [call("a"), call("a/keep-warm", WARMER)]
    said = dict(answers.of_store(calls, savings(treated, control)))
    assert list(said) == ["Paid", "Saved", "How sure", "trimtab itself"]
    assert said["How sure"] == sure
    assert said["trimtab itself"].startswith("$3.00 of it, for 1 ping that keep")
    alone = dict(answers.of_store(calls[:1], None))
    assert alone["Saved"].startswith("not measured: no control arm")
    assert alone["trimtab itself"].startswith("it sent no pings. Cache that its cuts broke is in")


def unit(dollars: float) -> ArmUnit:
    return ArmUnit(dollars, 1_000)


def test_the_first_line_counts_the_requests_that_outgrow_the_window(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, provider = provider_run(3, 20, [20.0])
    (tmp_path / "log.jsonl").write_text(as_lines(log), encoding="utf-8")
    larger = sum(record.tokens > 9_000 for record in provider.requests)
    assert 1 < larger < 19
    assert main(["bill", str(tmp_path), "--window", "9k"]) == 0
    said = capsys.readouterr().out.splitlines()[0].split(maxsplit=1)
    assert said[0] == "Refused"
    assert said[1] in {
        f"{count} of 20 requests would have been refused; with trimtab, none."
        for count in (larger - 1, larger, larger + 1)
    }


def test_the_command_prints_a_table_and_writes_json_csv_and_html(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    strict_logs(logs, talks=2)
    out = {kind: str(tmp_path / f"bill.{kind}") for kind in ("json", "csv", "html")}
    assert main(["bill", str(logs), *(x for kind in out for x in (f"--{kind}", out[kind]))]) == 0
    text = capsys.readouterr().out
    first = text.partition("\n\n")[0].splitlines()
    questions = [line.split("  ")[0] for line in first if not line.startswith(" ")]
    assert max(map(len, first)) <= 100
    assert questions == ["Refused", "Paid", "Money", "How sure", "trimtab itself"]
    assert "2 conversations, 48 calls" in text
    assert "The method's error, on what was really sent" in text
    tree = json.loads(Path(out["json"]).read_text())
    rows = list(csv.DictReader(Path(out["csv"]).read_text().splitlines()))
    assert sum(int(row["calls"]) for row in rows) == tree["paid"]["calls"] == 48
    in_rows = sum(float(row["read_dollars"]) for row in rows)
    assert in_rows == pytest.approx(tree["paid"]["dollars"]["read"], abs=1e-4)
    page = Path(out["html"]).read_text()
    assert "What was paid" in page
    assert "<dt>How sure</dt>" in page
    assert "http" not in page.split("</style>")[1]


def test_json_alone_can_go_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(as_lines(claude_session()), encoding="utf-8")
    assert main(["bill", str(tmp_path), "--paid-only", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["policies"] == []


def test_logs_without_any_usage_are_an_error_that_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    (tmp_path / "a.jsonl").write_text(
        as_lines([{"model": MODEL, "max_tokens": 9, "messages": talk}]), encoding="utf-8"
    )
    assert main(["bill", str(tmp_path)]) != 0
    assert "no usage" in capsys.readouterr().err


@pytest.mark.parametrize(("hour", "table"), [(9_000, "claude-1h"), (0, "claude-5m")])
def test_replay_prices_by_the_cache_that_the_logs_wrote_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hour: int, table: str
) -> None:
    usage = claude_usage(0, 500, hour, 10, 50)
    (tmp_path / "a.jsonl").write_text(as_lines(claude_session(usages=[usage] * 3)))
    asked = ["replay", str(tmp_path / "a.jsonl"), "--policy", "none", "--no-outgrown"]
    assert main([*asked, "--window", "9k", "--workers", "1", "--json", "-"]) == 0
    whole = json.JSONDecoder().raw_decode(capsys.readouterr().out)[0]
    assert whole["prices"] == table
    assert whole["results"][0]["hour"] is bool(hour)
