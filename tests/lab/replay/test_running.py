"""Policies, engines, files and the command: the same figures whichever way they are run.

Knows small conversations.  Peers and a browser: see world/test_replay.py.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import replay_policies
from replay_story import MESSAGES, SAMPLE, WINDOW, long_story, recording, timeless, written

import trimtab
from trimtab.cli import main
from trimtab.errors import InvalidSetting
from trimtab.logs.recording import Recording
from trimtab.pricing import models
from trimtab.pricing.prices import TABLES, of_model
from trimtab.reporting import pages
from trimtab_lab.replay import (
    call_inspector,
    html_report,
    job_runner,
    report,
    summary,
    table,
    trimtab_policy,
)
from trimtab_lab.replay.metric import CallMetrics
from trimtab_lab.replay.policies import PolicyOutput, find
from trimtab_lab.replay.policy_run import CHANGED, Task, replay, result, run
from trimtab_lab.replay.recording_index import RecordingIndex

ORACLE = f"{Path(__file__).resolve().parents[3]}/bench/oracle.py:Oracle"
POLICIES = ["none", "trimtab", "keep-last-n:3", "drop-oldest-safe", "mask-old-observations:2",
            ORACLE]  # fmt: skip
FORMATS = ("anthropic", "openai-chat", "openai-responses", "bedrock", "gemini")


# --- policies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_valid_in_every_format_and_leaves_the_recording_alone(format, name):
    made = recording(format)
    before = copy.deepcopy(made.messages)
    index = RecordingIndex(made)
    done = replay(index, find(name), WINDOW)
    assert len(done.rows) == 25
    assert done.errors == {}
    assert sum(row.invalid for row in done.rows) == 0
    assert made.messages == before
    if name in ("trimtab", "drop-oldest-safe", ORACLE):
        assert max(row.tokens for row in done.rows) <= WINDOW < done.rows[-1].full


def share(name: str, kept: str, asked: str) -> float:
    rows = replay(RecordingIndex(recording()), find(name), WINDOW).rows
    return sum(getattr(r, kept) for r in rows) / sum(getattr(r, asked) for r in rows)


def test_the_oracle_bounds_what_the_others_keep():
    bound = share(ORACLE, "ground_kept", "ground")
    assert bound == 1.0
    for name in POLICIES[1:-1]:
        assert share(name, "ground_kept", "ground") <= bound
    assert share("drop-oldest-safe", "ground_kept", "ground") < 0.5


def test_ours_takes_a_target_or_a_preset_as_its_option() -> None:
    index = RecordingIndex(recording())
    body = index.recording.request(index.turns[-1])

    def chars(spec: str) -> int:
        return len(json.dumps(find(spec).start(index, WINDOW)(body).request))

    assert chars("trimtab:0.3") < chars("trimtab:0.9")
    assert chars("trimtab:balanced") == chars("trimtab") != chars("trimtab:in-place")
    with pytest.raises(InvalidSetting, match="give a target or a preset"):
        find("trimtab:x")


def test_an_oracle_that_sees_another_future_keeps_other_things():
    first = RecordingIndex(recording())
    other = long_story()
    for message in other[40:]:
        if message.get("tool_calls"):
            message["tool_calls"][0]["function"]["arguments"] = '{"about": "value_2_3 of old ones"}'
    second = RecordingIndex(Recording("made", "other", "openai-chat", other))
    kept = []
    for index in (first, second):
        step = find(ORACLE).start(index, WINDOW)
        sent = [step(index.recording.request(turn)) for turn in index.turns][20]
        kept.append("value_2_3 is used" in json.dumps(sent.request))
    assert kept == [False, True]


def test_keep_last_keeps_as_many_turns_as_it_says():
    made = recording()
    step = find("keep-last-n:3").start(RecordingIndex(made), WINDOW)
    sent = [step(made.request(turn)) for turn in made.turns][-1]
    calls = [m for m in sent.request["messages"] if m.get("tool_calls")]
    assert [m["tool_calls"][0]["id"] for m in calls] == ["c21", "c22", "c23"]


def test_mask_touches_old_results_only():
    made = recording()
    step = find("mask-old-observations:2").start(RecordingIndex(made), WINDOW)
    sent = [step(made.request(turn)) for turn in made.turns][-1]
    results = [m["content"] for m in sent.request["messages"] if m["role"] == "tool"]
    assert set(results[:-2]) == {"[Old tool result masked]"}
    assert results[-2:] == [m["content"] for m in made.messages if m["role"] == "tool"][-2:]


def test_a_name_nobody_registered_is_refused_with_those_there_are():
    with pytest.raises(InvalidSetting, match="drop-oldest-safe"):
        find("nonesuch")
    with pytest.raises(InvalidSetting, match="keep-last-n:x"):
        find("keep-last-n:x")


def test_a_policy_of_another_package_is_named_by_module_and_class():
    policy = find("replay_policies:Third")
    assert policy.name == "third"
    done = replay(RecordingIndex(recording()), policy, WINDOW)
    assert {row.tokens for row in done.rows} == {done.rows[0].tokens}
    with pytest.raises(InvalidSetting, match=r"'nowhere\.py:Third' cannot be loaded"):
        find("nowhere.py:Third")


def test_a_policy_of_a_file_is_named_by_file_and_class():
    assert find(f"{replay_policies.__file__}:Third").name == "third"


def test_a_policy_that_changes_what_it_is_given_is_found_out():
    made = recording()
    tasks = [Task("replay_policies:Careless", WINDOW), Task("none", WINDOW)]
    careless, everything = run(made, tasks)
    failed = everything["columns"].index("failed")
    assert {row[failed] for row in careless["rows"]} == {1}
    assert careless["errors"] == {CHANGED: 25}
    assert {row[failed] for row in everything["rows"]} == {0}
    assert made.messages == long_story()


# --- processes --------------------------------------------------------------------------------


RUN: dict[str, Any] = {"policies": ["none", "trimtab", "drop-oldest-safe"], "windows": [WINDOW]}


def test_two_processes_give_what_one_gives():
    one = job_runner.replay(SAMPLE, workers=1, **RUN)
    two = job_runner.replay(SAMPLE, workers=2, **RUN)
    assert timeless(one) == timeless(two)
    assert [r["policy"] for r in one] == [*RUN["policies"], *RUN["policies"]]


def test_what_is_done_is_not_done_again_even_after_a_cut(tmp_path):
    path = tmp_path / "rows.jsonl"
    whole = job_runner.replay(SAMPLE, store=job_runner.ResultFile(path), workers=1, **RUN)
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 6
    path.write_text("".join(lines[:4]) + lines[4][:100])
    told: list[tuple[int, int]] = []
    again = job_runner.replay(
        SAMPLE,
        store=job_runner.ResultFile(path),
        workers=1,
        progress=lambda *p: told.append(p),
        **RUN,
    )
    assert told[0] == (0, 50)  # two of six are missing, 25 calls each
    assert timeless(again) == timeless(whole)
    # A line that was cut off does not swallow the one written after it.
    assert len(job_runner.ResultFile(path).results) == 6


def test_a_policy_that_wants_the_recording_converted_is_a_job_of_its_own():
    told: list[tuple[int, int]] = []
    results = job_runner.replay(
        SAMPLE, policies=["none", "replay_policies:ThirdOfChat", "trimtab"], windows=[WINDOW],
        workers=1, progress=lambda *p: told.append(p),
    )  # fmt: skip
    assert [done for done, _ in told] == [0, 25, 50, 100, 150]  # third first, then two at a time
    assert [result["policy"] for result in results] == ["none", "third", "trimtab"] * 2
    assert results[1]["native"] == "anthropic"
    assert results[1]["format"] == "openai-chat"


def test_another_window_is_not_taken_for_the_one_that_is_done():
    store = job_runner.ResultFile(None)
    job_runner.replay(SAMPLE[:1], store=store, policies=["none"], windows=[1_000], workers=1)
    job_runner.replay(SAMPLE[:1], store=store, policies=["none"], windows=[2_000], workers=1)
    assert len(store.results) == 2


CHANGED_CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from trimtab_lab.replay.policies import PolicyOutput, find
print(find("trimtab").version)
"""


def test_results_of_other_code_of_ours_are_not_taken_up_again(tmp_path):
    def version(change: str) -> str:
        copied = tmp_path / "src"
        if not copied.exists():
            source = Path(trimtab.__file__).parent
            shutil.copytree(source, copied / "trimtab", ignore=shutil.ignore_patterns("*.pyc"))
        if change:
            with (copied / "trimtab" / change).open("a") as file:
                file.write("# changed\n")
        command = [sys.executable, "-B", "-c", CHANGED_CODE, str(copied)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    before = version("")
    assert before == find("trimtab").version
    assert before.startswith(f"{trimtab.__version__}+")
    assert version("cli/terminal.py") == before
    assert version("reducers/cutting.py") != before


def test_a_sample_is_the_same_for_the_same_seed():
    many = [Recording("s", str(n), "openai-chat", MESSAGES) for n in range(50)]
    first = [r.id for r in job_runner.sample(many, 5, 1)]
    assert first == [r.id for r in job_runner.sample(many, 5, 1)] == sorted(first, key=int)
    assert first != [r.id for r in job_runner.sample(many, 5, 2)]


def test_a_sample_of_each_source_holds_all_of_the_small_ones():
    many = [Recording("big", str(n), "openai-chat", MESSAGES) for n in range(50)]
    few = [Recording("small", str(n), "openai-chat", MESSAGES) for n in range(2)]
    drawn = job_runner.sample_each([*many, *few], 5, 1)
    assert [r.source for r in drawn] == ["big"] * 5 + ["small"] * 2
    assert drawn == job_runner.sample_each([*many, *few], 5, 1)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> str:
    return written(tmp_path / "logs")


def test_the_command_prints_a_table_and_writes_every_file(log, tmp_path, capsys):
    out = tmp_path / "out"
    names = "none,trimtab,drop-oldest-safe,keep-last-n"
    code = main(["replay", log, "--window", "1500", "--policy", names, "--workers", "1",
                 "--columns", "all", "--out", str(out)])  # fmt: skip
    printed = capsys.readouterr()
    assert code == 0
    assert printed.out.startswith(
        "Window 1.5k: 19 of 25 requests would have been refused; with trimtab, none."
    )
    assert "mine, window 1,500: 1 recordings, 25 calls" in printed.out
    assert f"trimtab {trimtab.__version__}" in printed.out
    assert "mine.jsonl:2: no JSON" in printed.err
    whole = json.loads((out / "replay.json").read_text())
    assert [line["policy"] for line in whole["lines"]] == names.split(",")
    assert whole["verdict"] in printed.out
    csv_lines = (out / "replay.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in csv_lines] == ["group", *["all"] * 4, *["mine"] * 4]
    page = (out / "replay.html").read_text()
    assert (
        page.index("19 of 25 requests would have been refused")
        < page.index("<table")
        < page.index("<details")
    )
    assert not re.search(r"src=|href=|@import|url\(|<script", page)  # one file, works offline


def test_nothing_readable_is_one_line_and_an_exit_code(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert main(["replay", str(tmp_path)]) == 3
    assert "nothing to replay" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nowhere")]) == 6
    assert main(["replay"]) == 2


def test_recordings_that_fit_the_smallest_window_are_left_out_and_it_is_said(log, capsys):
    asked = ["replay", log, "--policy", "none", "--workers", "1"]
    assert main([*asked, "--window", "1500,100k"]) == 0
    assert "1 recording with 25 model calls from 1 file," in capsys.readouterr().err
    assert main(asked) == 3
    said = capsys.readouterr().err
    assert "no --window given: 100,000 tokens" in said
    assert ": it fits 100,000 tokens whole; --no-outgrown plays them" in said
    assert main([*asked, "--no-outgrown"]) == 0
    assert "Window 100k: None of 25 requests would have been refused." in capsys.readouterr().out


def test_recordings_that_hardly_outgrow_the_window_can_be_left_out(log, capsys):
    asked = ["replay", log, "--policy", "none", "--workers", "1", "--window", "1500"]
    assert main([*asked, "--above", "1.1"]) == 0
    assert "1 recording with 25 model calls" in capsys.readouterr().err
    assert main([*asked, "--above", "30"]) == 3
    assert "nothing to replay" in capsys.readouterr().err


def test_the_debugger_shows_what_is_sent_and_what_is_lost(log, capsys):
    asked = ["replay", log, "--window", "1500", "--policy", "drop-oldest-safe", "--turn", "15"]
    assert main([*asked, "--show", "--lost"]) == 0
    printed = capsys.readouterr().out
    assert "+[Earlier conversation left out]" in printed
    assert "-def and_again_3(): the function that is called by all" in printed
    assert "and_again_3\n    last stood in message 8, read result: def and_again_3()" in printed
    assert "there now: nothing" in printed


def test_the_debugger_colours_a_diff_and_names_each_reason():
    look = call_inspector.inspect_call(recording(), "trimtab", WINDOW, 24)
    text = call_inspector.request_diff(look, colour=True)
    assert "\x1b[31m-" in text
    assert "\x1b[32m+" in text
    assert "\x1b[33m! messages[" in text


def test_the_debugger_names_the_turns_there_are():
    with pytest.raises(InvalidSetting, match="0 … 24"):
        call_inspector.inspect_call(recording(), "none", WINDOW, 25)


def test_the_legend_explains_every_column_once_within_100_columns():
    heads = ["policy", *(head for _, head, _ in table.COLUMNS)]
    explained = [head for _, columns in table.LEGEND for head, _ in columns]
    assert sorted(explained) == sorted(heads[1:])
    for name in TABLES:
        lines = table.legend(name).splitlines()
        assert max(map(len, lines)) <= 100
        assert len(lines) <= 31
    assert "openai: from the cache 0.1, into it 1.25 a token" in table.legend("openai")


def test_the_cost_under_every_price_table_is_shown_beside_the_one_asked_for():
    results = job_runner.replay([recording()], policies=["none", "keep-last-n:3"], windows=[WINDOW])
    lines = summary.summarize(results, prices="claude-5m")
    for name in TABLES:
        for line, same in zip(lines, summary.summarize(results, prices=name), strict=True):
            assert line.costs[name] == same.figures["cost"]
    told = table.table(lines, prices="gemini")
    head = next(row for row in told.splitlines() if " hit " in row and "claude-1h" in row)
    assert head.split()[3:] == list(TABLES)
    everything = next(line for line in lines if line.policy == "none")
    assert everything.figures["hit"] > 80
    assert max(everything.costs.values()) < 1  # of what was answered
    summed = summary.ReplaySummary.of(results, prices="gemini")
    csv_head = report.as_csv(summed).splitlines()[0]
    assert csv_head.endswith(",".join(f"cost_{name}" for name in TABLES))


def test_our_policy_is_told_how_long_the_log_says_that_the_conversation_lay_idle():
    made = recording()
    calls = len(made.turns)
    timed = made.renamed(times=tuple(5_000.0 * n for n in range(len(made.messages))))
    assert list(trimtab_policy.seconds_between(made)) == [None] * calls
    assert list(trimtab_policy.seconds_between(timed))[1:] == [10_000.0] * (calls - 1)
    rows = {name: replay(RecordingIndex(one), find("trimtab"), WINDOW).rows
            for name, one in (("warm", made), ("cold", timed))}  # fmt: skip
    first = {name: next(row.turn for row in found if row.broke) for name, found in rows.items()}
    assert first["cold"] < first["warm"]


@pytest.fixture
def without_jinja2(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    pages.templates.cache_clear()
    yield
    pages.templates.cache_clear()


def test_table_json_and_csv_need_no_templates_and_a_page_names_the_extra(
    log, tmp_path, capsys, without_jinja2
):
    asked = ["replay", log, "--window", "1500", "--policy", "none", "--workers", "1"]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "19 of 25 requests would have been refused" in printed.out
    assert "replay.html not written" in printed.err
    assert "pip install 'trimtab[html]'" in printed.err
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"rows.jsonl", "replay.json", "replay.csv"}
    assert main([*asked, "--html", str(tmp_path / "page.html")]) != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "trimtab[html]" in printed.err


def test_what_tools_returned_is_text_in_the_page():
    hostile = "<script>alert(1)</script>\x1b\u202e"
    losses = [(hostile, 0, "result", "read", hostile, "")]
    result = {
        "id": "a", "policy": "none", "window": 1_000, "source": "mine", "native": "x",
        "format": "y", "tokens": 5, "rows": [], "worst": [{"turn": 3, "losses": losses}],
    }  # fmt: skip
    page = html_report.as_html(summary.ReplaySummary.of([result]))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b\\x202e" in page
    assert "there is nothing" in page


def failing(calls: set[int]) -> summary.ReplaySummary:
    """The long conversation under a policy that raises on these calls and sends nothing else."""
    index = RecordingIndex(recording())

    class Failing:
        name, version, format = "failing", "1", ""

        def start(self, index, window):
            turns = iter(range(len(index.turns)))

            def step(body):
                if next(turns) in calls:
                    raise ValueError("no room")
                return PolicyOutput({**body, "messages": body["messages"][:1]})

            return step

    policy, task = Failing(), Task("failing", WINDOW)
    judged = replay(index, policy, WINDOW)
    return summary.ReplaySummary.of([result(recording(), index, task, policy, judged)])


def test_a_call_on_which_a_policy_fails_keeps_nothing():
    none, half, every = (failing(set(range(n))).pooled[0].figures for n in (0, 20, 25))
    assert half["failed"] == 20
    assert half["old"] == none["old"] == 0
    assert every["failed"] == 25
    assert [every[name] for name in ("answered", "recall", "cost")] == [0, 0, None]


def test_the_page_shows_no_figure_of_a_policy_that_failed_on_every_call():
    page = html_report.as_html(failing(set(range(25))))
    row = page.partition('<th scope="row">failing</th>')[2].partition("</tr>")[0]
    assert re.findall("<td[^>]*>(.*?)</td>", row) == ["0 %", *["–"] * 5]
    assert "failing: 25 × ValueError: no room" in page


def test_what_cannot_shrink_is_said_once_for_all_calls():
    system = {"role": "system", "content": "Keep to the rules of this house. " * 400}
    made = recording().renamed(messages=[system, *long_story()])
    judged = replay(RecordingIndex(made), find("trimtab"), WINDOW)
    [(error, count)] = judged.errors.items()
    assert count == 25
    assert error.startswith("CannotFit: at least 3,201 ")
    assert error.endswith(" tokens of system cannot shrink; window allows 1,500")


def test_dollars_are_those_of_the_recorded_model():
    made = recording(model="claude-sonnet-4-5")
    results = job_runner.replay([made], policies=["none", "trimtab"], windows=[WINDOW], workers=1)
    whole, ours = summary.ReplaySummary.of(results, prices="none").pooled
    assert whole.figures["priced"] == 1
    prices = of_model(models.find("claude-sonnet-4-5"))
    rows = [CallMetrics(*row) for row in results[0]["rows"]]
    assert whole.figures["dollars"] == pytest.approx(summary.billed(rows, prices) * 3e-6)
    everything = summary.full_billed(rows, prices) * 3e-6
    assert ours.figures["full_dollars"] == pytest.approx(everything)
    assert 0 < whole.figures["dollars"] < everything  # most of its requests are refused
    hour = summary.ReplaySummary.of([{**results[0], "hour": True}]).pooled[0]
    prices = of_model(models.find("claude-sonnet-4-5"), hour=True)
    assert prices.write == 2.0
    assert hour.figures["dollars"] == pytest.approx(summary.billed(rows, prices) * 3e-6)
    assert hour.figures["dollars"] > whole.figures["dollars"]
    unknown = job_runner.replay([recording()], policies=["none"], windows=[WINDOW], workers=1)
    assert summary.ReplaySummary.of(unknown).pooled[0].figures["dollars"] is None
