"""Sends events and warnings to a callback, the logger "trimtab", and OpenTelemetry.

OpenTelemetry gets spans and metrics if the program has loaded it, under the names of the GenAI
semantic conventions and our own.  Exporters and log handlers are set up by the program, not here.
Attributes are fields of events: never the text of a message, a key or a handle.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from trimtab.errors import TrimtabError
from trimtab.events import EditEvent, Event, FitEvent, OnEvent, RefusalEvent, RetryEvent
from trimtab.formats.registry import FORMATS

METRICS = {
    "trimtab.fit.duration": ("histogram", "s", "time to make one request fit"),
    "trimtab.tokens.saved": ("counter", "{token}", "tokens that new edits took away"),
    "trimtab.refusals": ("counter", "{refusal}", "requests that a provider refused"),
    "trimtab.retry.duration": ("histogram", "s", "time from a refusal to the end of the retry"),
}
"""Name → instrument, unit, description."""


_CAUSE_CHARS = 300


@cache
def logger() -> Any:
    """The package's logger, loaded with its first line; silent until the program sets up logs."""
    import logging

    package_logger = logging.getLogger("trimtab")
    package_logger.addHandler(logging.NullHandler())
    return package_logger


def fault(where: str, error: BaseException) -> None:
    """Log an error in our own code or in a store: where it happened and its type.

    The error's text may quote a request, so it is left out.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" at {trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else ""
    logger().warning("fault in %s: %s%s", where, type(error).__name__, at)


def cause(error: Exception) -> str:
    """The type of an error for a log line, and the text of one of ours.

    The text of any other, of a counter say, may quote a request.
    """
    text = f": {error}"[:_CAUSE_CHARS] if isinstance(error, TrimtabError) else ""
    return type(error).__name__ + text


def listening(on_event: OnEvent | None) -> bool:
    """Whether there is a listener: a callback, or OpenTelemetry if the program loaded it."""
    return on_event is not None or "opentelemetry" in sys.modules


def emit(on_event: OnEvent | None, event: Event) -> None:
    """Pass an event to every listener.  If one raises, that is logged as a warning."""
    if on_event is not None:
        _call_safely(partial(on_event, event), "on_event")
    if "opentelemetry" in sys.modules:
        _call_safely(partial(record, event), "OpenTelemetry")


def _call_safely(listener: Callable[[], object], name: str) -> None:
    try:
        listener()
    except Exception as error:
        logger().warning("%s raised %s: the event is lost", name, type(error).__name__)


def record(event: Event) -> None:
    """Record one event: a span if it took time, else a span event, and metrics."""
    if isinstance(event, FitEvent):
        _span("trimtab.fit", event, event.milliseconds, event.outcome == "cannot_fit")
        _measured("trimtab.fit.duration", event.milliseconds / 1000, event, outcome=event.outcome)
    elif isinstance(event, RetryEvent):
        _span("trimtab.retry", event, event.milliseconds, event.outcome != "accepted")
        _measured("trimtab.retry.duration", event.milliseconds / 1000, event, outcome=event.outcome)
    elif isinstance(event, EditEvent):
        _current().add_event("trimtab.edit", attributes(event))
        saved = max(event.tokens_before - event.tokens_after, 0)
        _measured("trimtab.tokens.saved", saved, event, kind=event.kind)
    elif isinstance(event, RefusalEvent):
        _current().add_event("trimtab.refusal", attributes(event))
        _measured("trimtab.refusals", 1, event, kind=event.kind, status=event.status or 0)


def attributes(event: Event) -> dict[str, Any]:
    """Attributes: ``gen_ai.*`` for provider and model, ``trimtab.*`` for what happened."""
    facts = event.as_dict()
    facts = {key: facts[key] for key in facts if key not in ("event", "format", "model")}
    ours = {f"trimtab.{key}": value for key, value in facts.items() if value not in (None, "")}
    return {**_request(event), **ours}


def _request(event: Event) -> dict[str, str]:
    format = FORMATS.get(event.format)
    fields = {
        "gen_ai.provider.name": format.provider if format else "",
        "gen_ai.request.model": event.model,
        "trimtab.format": event.format,
    }
    return {key: value for key, value in fields.items() if value}


def _span(name: str, event: Event, milliseconds: float, failed: bool) -> None:
    """A span that ends now, below the span that the program is in."""
    from opentelemetry.trace import Status, StatusCode

    now = time.time_ns()
    tracer, _ = _instruments()
    span = tracer.start_span(
        name, attributes=attributes(event), start_time=now - round(milliseconds * 1e6)
    )
    if failed:
        span.set_attribute("error.type", attributes(event)["trimtab.outcome"])
        span.set_status(Status(StatusCode.ERROR))
    span.end(now)


def _measured(name: str, value: float, event: Event, **more: str | int) -> None:
    own = {f"trimtab.{key}": text for key, text in more.items()}
    _, instruments = _instruments()
    instrument, kind = instruments[name], METRICS[name][0]
    (instrument.record if kind == "histogram" else instrument.add)(
        value, {**_request(event), **own}
    )


def _current() -> Any:
    from opentelemetry import trace

    return trace.get_current_span()


@cache
def _instruments() -> tuple[Any, dict[str, Any]]:
    """The tracer, and each metric's instrument; they follow a provider that is set later."""
    from opentelemetry import metrics, trace

    meter = metrics.get_meter("trimtab")
    make: dict[str, Any] = {"histogram": meter.create_histogram, "counter": meter.create_counter}
    return trace.get_tracer("trimtab"), {
        name: make[kind](name, unit, about) for name, (kind, unit, about) in METRICS.items()
    }
