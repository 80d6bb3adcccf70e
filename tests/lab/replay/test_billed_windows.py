"""A replay of a log with usage counts windows and dollars as the provider did."""

from __future__ import annotations

import pytest
from billed_logs import as_lines, provider_run

from trimtab.logs import log_files
from trimtab.logs.recording import Recording
from trimtab.pricing.call_usage import price_of, read_call
from trimtab_lab.replay import job_runner, policy_run, summary, verdict
from trimtab_lab.replay.recording_index import RecordingIndex

WINDOW = 9_000


def letters(text: str) -> int:
    """A provider that counts more tokens than o200k does in the same text."""
    return len(text) // 2


@pytest.fixture(scope="module")
def billed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, list[int], float]:
    """A recording, the tokens of each prompt as they were billed, and what was paid for them."""
    log, provider = provider_run(3, 20, [20.0], counter=letters)
    file = tmp_path_factory.mktemp("billed") / "log.jsonl"
    file.write_text(as_lines(log), encoding="utf-8")
    recording = max(log_files.read([str(file)]).recordings, key=lambda one: len(one.messages))
    usages = [read_call(row["response"]["usage"], row["response"]["model"]) for row in log]
    costs = [price_of(usage) for usage in usages if usage]
    paid = sum(cost.prompt for cost in costs if cost)
    return recording, [record.tokens for record in provider.requests], paid


def test_what_is_refused_is_what_the_provider_would_have_counted_above_the_window(
    billed: tuple[Recording, list[int], float],
) -> None:
    recording, tokens, paid = billed
    results = job_runner.replay(
        [recording], policies=["none", "trimtab"], windows=[WINDOW], workers=1
    )
    everything, ours = summary.ReplaySummary.of(results).pooled
    refused = sum(size > WINDOW for size in tokens)
    assert 0 < refused < len(tokens)
    assert verdict.refusals_of(everything) == pytest.approx(refused, abs=1)
    assert verdict.refusals_of(ours) == 0
    assert everything.figures["full_dollars"] == pytest.approx(paid, rel=0.05)


def test_without_usage_a_window_is_in_our_tokens(
    billed: tuple[Recording, list[int], float],
) -> None:
    recording, _, paid = billed
    plain = recording.renamed(usages=())
    assert RecordingIndex(plain).room(WINDOW) == WINDOW
    assert RecordingIndex(recording).room(WINDOW) < 0.7 * WINDOW
    results = job_runner.replay([plain], policies=["none"], windows=[WINDOW], workers=1)
    [everything] = summary.ReplaySummary.of(results).pooled
    assert everything.figures["full_dollars"] < 0.7 * paid


def test_a_window_that_system_text_and_tools_fill_is_named(
    billed: tuple[Recording, list[int], float],
) -> None:
    recording, _, _ = billed
    usages = tuple(
        usage
        and read_call({"input_tokens": usage.prompt + 40_000, "output_tokens": 1}, usage.model)
        for usage in recording.usages
    )
    large = recording.renamed(usages=usages)
    assert RecordingIndex(large).room(32_000) == 0
    results = list(
        policy_run.run(large, [policy_run.Task(name, 32_000) for name in ("none", "trimtab")])
    )
    said = verdict.verdict(summary.summarize(results))
    assert f"trimtab failed on every call: {policy_run.FULL}. Choose a larger window." in said
