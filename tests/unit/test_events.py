"""What is told of a fit: to a callback, to OpenTelemetry, to the log.  Never what anything said."""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import fields
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from retrieval_cases import articles, conversation
from settings_words import as_keywords
from shapes import SIX

import trimtab
from trimtab import telemetry
from trimtab.events import EditEvent, Event, FitEvent, RefusalEvent, RetryEvent

SECRETS = ("sk-secret", "lighthouse", "Ymir", "Article 0", "ex.org")
"""Parts of the conversation and of a header; none may be told."""


def searches(format: str) -> Any:
    results = [json.dumps({"articles": articles(7, 30, seed=n, answer=n)}) for n in range(3)]
    results[0] = json.dumps({"key": "sk-secret", **json.loads(results[0])})
    return conversation(format, results)


@pytest.mark.parametrize("format", SIX)
def test_a_callback_is_told_of_the_fit_and_of_each_new_edit(format: str) -> None:
    told: list[Event] = []
    body = searches(format)
    session = trimtab.Session(
        window=9_000, reserve=0, settings=trimtab.Settings(counter="o200k", on_event=told.append)
    )
    report = session.fit(body).report
    *edits, fit = told
    assert isinstance(fit, FitEvent)
    assert (fit.outcome, fit.format, fit.window) == ("reduced", format, 9_000)
    assert (fit.tokens_before, fit.tokens_after) == (report.tokens_before, report.tokens_after)
    assert fit.new_edits == fit.edits == len(report.edits) == len(edits) > 0
    assert fit.milliseconds > 0
    saved = [e.tokens_before - e.tokens_after for e in edits if isinstance(e, EditEvent)]
    assert saved == [edit.tokens_saved for edit in report.edits]
    told.clear()
    session.fit(body)  # the same once more: nothing is new
    (again,) = told
    assert isinstance(again, FitEvent)
    assert (again.outcome, again.new_edits, again.edits) == ("kept", 0, len(edits))


def outcomes(body: Any, **keywords: Any) -> list[str]:
    told: list[Event] = []
    with contextlib.suppress(trimtab.CannotFit):
        trimtab.fit(body, **as_keywords(on_event=told.append, counter="o200k", **keywords))
    return [event.outcome for event in told if isinstance(event, FitEvent)]


def test_the_outcome_says_what_became_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    body = searches("openai-chat")
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    torn = [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}]
    assert outcomes(body, window=10**6) == ["unchanged"]
    assert outcomes(torn, window=10**6) == ["repaired"]
    assert outcomes(body, window=9_000) == ["reduced"]
    assert outcomes(body, window=20) == ["cannot_fit"]

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("made to fail")

    monkeypatch.setattr("trimtab.request.planned.make_room", fails)
    assert outcomes(body, window=9_000) == ["fallback"]
    monkeypatch.setattr("trimtab.request.pipeline.apply", fails)
    assert outcomes(body, window=9_000) == ["original"]


def test_a_listener_that_raises_breaks_nothing_and_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_: Event) -> None:
        raise RuntimeError("sk-secret")

    body = searches("openai-chat")
    fitted = trimtab.fit(
        body, window=9_000, settings=trimtab.Settings(counter="o200k", on_event=fails)
    )
    assert (
        fitted.request
        == trimtab.fit(body, window=9_000, settings=trimtab.Settings(counter="o200k")).request
    )
    lines = {r.getMessage() for r in caplog.records if r.levelno == logging.WARNING}
    assert "on_event raised RuntimeError: the event is lost" in lines
    assert "sk-secret" not in caplog.text


def test_on_event_has_to_be_a_function() -> None:
    with pytest.raises(trimtab.InvalidSetting, match="on_event"):
        trimtab.fit([], window=9_000, settings=trimtab.Settings(on_event="print"))  # type: ignore[arg-type]


# ---------------------------------------------------------------- OpenTelemetry


@pytest.fixture(scope="module")
def exporters() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """What the program would send; providers can be set once in a process."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


@pytest.fixture
def spans(exporters: tuple[InMemorySpanExporter, Any]) -> InMemorySpanExporter:
    exporters[0].clear()
    return exporters[0]


def test_a_fit_is_a_span_within_the_program_s_own_and_edits_are_events(
    spans: InMemorySpanExporter,
) -> None:
    with trace.get_tracer("program").start_as_current_span("chat gpt-5.1"):
        body = searches("openai-chat")
        report = trimtab.fit(body, window=9_000, settings=trimtab.Settings(counter="o200k")).report
    fit, outer = spans.get_finished_spans()
    assert (fit.name, outer.name) == ("trimtab.fit", "chat gpt-5.1")
    assert fit.parent is not None
    assert fit.parent.span_id == outer.context.span_id
    assert fit.start_time < fit.end_time <= outer.end_time
    told = dict(fit.attributes or {})
    assert told["gen_ai.provider.name"] == "openai"
    assert told["gen_ai.request.model"] == body["model"]
    assert told["trimtab.outcome"] == "reduced"
    assert told["trimtab.tokens_before"] == report.tokens_before
    assert [event.name for event in outer.events] == ["trimtab.edit"] * len(report.edits)


def test_what_cannot_fit_is_a_span_in_error(spans: InMemorySpanExporter) -> None:
    with pytest.raises(trimtab.CannotFit):
        trimtab.fit(searches("anthropic"), window=20, reserve=0)
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert dict(span.attributes or {})["error.type"] == "cannot_fit"


def points(reader: InMemoryMetricReader, name: str) -> list[Any]:
    data = reader.get_metrics_data()
    return [
        point
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics if metric.name == name
        for point in metric.data.data_points
    ]  # fmt: skip


@pytest.mark.row("A14")
def test_refusals_retries_and_savings_are_counted_and_timed(
    exporters: tuple[InMemorySpanExporter, InMemoryMetricReader], spans: InMemorySpanExporter
) -> None:
    reader = exporters[1]
    before = sum(p.value for p in points(reader, "trimtab.tokens.saved"))
    report = trimtab.fit(
        searches("gemini"), window=9_000, settings=trimtab.Settings(counter="o200k")
    ).report
    saved = sum(p.value for p in points(reader, "trimtab.tokens.saved")) - before
    assert saved == sum(edit.tokens_saved for edit in report.edits)
    about = {"format": "gemini", "model": "gemini-9"}
    telemetry.emit(None, RefusalEvent(kind="too_long", status=400, limit=9_000, **about))
    telemetry.emit(None, RetryEvent(
        kind="too_long", outcome="accepted", attempt=2, tokens_before=12_000, tokens_after=8_000,
        milliseconds=250.0, **about,
    ))  # fmt: skip
    (refusals,) = points(reader, "trimtab.refusals")
    assert (refusals.value, refusals.attributes["trimtab.kind"]) == (1, "too_long")
    (retries,) = points(reader, "trimtab.retry.duration")
    assert (retries.count, retries.sum) == (1, 0.25)
    assert retries.attributes["trimtab.outcome"] == "accepted"
    retry = spans.get_finished_spans()[-1]
    assert retry.name == "trimtab.retry"
    assert (retry.end_time or 0) - (retry.start_time or 0) == 250_000_000
    assert dict(retry.attributes or {})["gen_ai.provider.name"] == "gcp.gemini"


@pytest.mark.parametrize("format", SIX)
def test_no_body_and_no_key_is_told_to_anybody(
    format: str, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trimtab")
    events: list[Event] = []
    report = trimtab.fit(
        searches(format), window=9_000, settings=trimtab.Settings(on_event=events.append)
    ).report
    rows = json.dumps([event.as_dict() for event in events])
    sent = json.dumps([span.to_json() for span in spans.get_finished_spans()])
    assert "trimtab.fit" in sent
    for secret in (*SECRETS, *(edit.handle for edit in report.edits)):
        assert secret not in rows + sent
    for secret in ("sk-secret", "lighthouse", "Ymir"):
        assert secret not in caplog.text  # titles are: the log names each article
    told = sum(edit.handle in caplog.text for edit in report.edits)
    assert told == 1  # the largest edit, with how its original is had


def test_nothing_of_opentelemetry_is_loaded_by_us() -> None:
    import subprocess
    import sys

    code = (
        "import sys, trimtab; trimtab.fit([{'role': 'user', 'content': 'hi'}], window=999, "
        "format='openai-chat', "
        "settings=trimtab.Settings(on_event=print)); print('opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    first, last = done.stdout.splitlines()
    assert first.startswith("FitEvent(")
    assert last == "False"


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "observability.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    exec(code.replace("examples/", f"{root}/examples/"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("{'event': 'edit'")
    assert lines[-1].startswith("{'event': 'fit'")
    for kind in (FitEvent, EditEvent, RefusalEvent, RetryEvent):
        names = {field.name for field in fields(kind)} - {"format", "model"}
        row = next(line for line in page.splitlines() if line.startswith(f"| `{kind.__name__}`"))
        assert all(f"`{name}`" in row for name in names)
