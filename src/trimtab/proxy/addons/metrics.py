"""Counts and times requests, in the Prometheus text format.

Each proxy has a registry of its own, so that several proxies of one process stay separate.
Several workers add up: prometheus_client's multiprocess mode keeps their numbers in files of one
folder, and whichever is asked reads them all.
Labels are names of ours and statuses; never what a client sent.  Needs the extra "proxy".
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any, Literal

from trimtab.errors import MissingExtra
from trimtab.proxy.addons.base import Addon, Core, repeated
from trimtab.proxy.addons.records import SECONDS, Records
from trimtab.proxy.exchange.exchange import HUNG_UP, Exchange
from trimtab.proxy.exchange.provider_call import FAULT, TOO_SLOW
from trimtab.request.fitted import facts_of

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "trimtab_requests_total": (
        "Requests by upstream, kind and status.",
        ("upstream", "kind", "status"),
    ),
    "trimtab_refusals_total": (
        "Refusals of providers by kind and what was done.",
        ("kind", "action"),
    ),
    "trimtab_edits_total": ("New edits by kind.", ("kind",)),
    "trimtab_tokens_total": (
        "Tokens: arrived, sent, saved; billed as prompt, cached, output.",
        ("kind",),
    ),
    "trimtab_pings_total": (
        "Requests of ours that kept a cache warm: read, missed, refused.",
        ("outcome",),
    ),
    "trimtab_gateway_calls_total": (
        "Calls of gateways: shortened, unchanged, retrieved, or why not.",
        ("outcome",),
    ),
    "trimtab_gateway_rows_total": ("Rows of gateways: arrived, shortened.", ("kind",)),
    "trimtab_gateway_tokens_total": ("Tokens in those rows: arrived, kept.", ("kind",)),
    "trimtab_errors_total": (
        "What went wrong: upstream, client, a fault of ours, or a request that passed unread.",
        ("kind",),
    ),
}
_GAUGES: dict[str, tuple[str, Literal["livesum", "livemin"]]] = {
    "trimtab_in_flight": ("Requests being answered.", "livesum"),
    "trimtab_sessions": ("Sessions that are remembered.", "livesum"),
    "trimtab_store_up": (
        "1 while the store answers and keeps what it is given, else 0.",
        "livemin",
    ),
}
"""What each says, and what becomes of the numbers of several workers."""
_TIMINGS = {
    "trimtab_fit_seconds": "Time to make a request fit.",
    "trimtab_first_byte_seconds": "Time from a whole request to the first byte of its answer.",
    "trimtab_request_seconds": "Time from a whole request to the end of its answer.",
}
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder; prometheus_client reads it once, when it is imported."""
TOKEN_KINDS = ("arrived", "sent", "saved", "prompt", "cached", "output")


class Metrics(Addon):
    """The counters and timings.  Raises MissingExtra without ``prometheus_client``."""

    def __init__(self, core: Core, records: Records) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise MissingExtra(
                "the proxy's metrics need prometheus_client: pip install 'trimtab[proxy]'"
            ) from None
        self._core, self._records = core, records
        self._in_flight: set[Exchange] = set()
        registry = prometheus_client.CollectorRegistry()
        self._write = prometheus_client.generate_latest
        self._of_workers = bool(os.environ.get(FOLDER))
        self._counters: dict[str, Any] = {
            name: prometheus_client.Counter(name, about, labels, registry=registry)
            for name, (about, labels) in _COUNTERS.items()
        }
        self._gauges: dict[str, Any] = {
            name: prometheus_client.Gauge(name, about, registry=registry, multiprocess_mode=mode)
            for name, (about, mode) in _GAUGES.items()
        }
        self._observe_holdings()
        self._timings: dict[str, Any] = {
            name: prometheus_client.Histogram(name, about, buckets=BUCKETS, registry=registry)
            for name, about in _TIMINGS.items()
        }
        for kind in TOKEN_KINDS:
            self._counters["trimtab_tokens_total"].labels(kind=kind)  # there from the start, as 0
        # Without the creation times: they would add two rows for each counter.
        ends = ("_bucket", "_sum", "_count")
        shown = [*_COUNTERS, *_GAUGES, *(name + end for name in _TIMINGS for end in ends)]
        self._shown = registry.restricted_registry(shown)

    @property
    def in_flight(self) -> int:
        """Requests in progress."""
        return len(self._in_flight)

    def request(self, exchange: Exchange) -> None:
        """Count it as in progress."""
        self._in_flight.add(exchange)
        self._gauges["trimtab_in_flight"].set(self.in_flight)

    def response(self, exchange: Exchange) -> None:
        """Count what it did."""
        try:
            self._count(exchange)
        finally:
            self._in_flight.discard(exchange)
            self._gauges["trimtab_in_flight"].set(self.in_flight)

    def _count(self, exchange: Exchange) -> None:
        reply, error, records = exchange.reply, exchange.error, self._records.of(exchange)
        self.count(
            "trimtab_requests_total", upstream=exchange.request.upstream.name,
            kind=exchange.request.route.operation, status=str(reply.status),
        )  # fmt: skip
        self._took("trimtab_request_seconds", records[-1].seconds)
        if reply.begun_at:
            self._took("trimtab_first_byte_seconds", records[-1].first_byte)
        if error or exchange.note == FAULT:
            kind = "fault" if FAULT in (error, exchange.note) else "upstream"
            self.count("trimtab_errors_total", kind="client" if error == HUNG_UP else kind)
        if exchange.unread or exchange.note == TOO_SLOW:
            self.count("trimtab_errors_total", kind="unread")
        for call in exchange.calls:
            if call.fits:
                self._took("trimtab_fit_seconds", call.fit_milliseconds / 1000)
            for fitted in call.fits:
                for edit in fitted.report.edits if facts_of(fitted).made_edits else ():
                    if edit.new:
                        self.count("trimtab_edits_total", kind=edit.kind)
        for turn in (record for record in records if record.number):
            for _, kind in turn.refusals:
                self.count("trimtab_refusals_total", kind=kind, action=turn.refusal_outcome)
            if turn.answered:
                for kind in TOKEN_KINDS:
                    tokens = self._counters["trimtab_tokens_total"].labels(kind=kind)
                    tokens.inc(getattr(turn, kind))

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counters[name].labels(**labels).inc(by)

    def _took(self, name: str, seconds: float) -> None:
        self._timings[name].observe(seconds)

    def _observe_holdings(self) -> None:
        """What this proxy remembers now, and whether its store answers."""
        self._gauges["trimtab_sessions"].set(len(self._records.activity.sessions))
        self._gauges["trimtab_store_up"].set(not self._core.tenants.store_problem)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep what workers show of each other up to date."""
        async with repeated(SECONDS, self._observe):
            yield

    async def _observe(self) -> None:
        self._observe_holdings()

    def text(self) -> str:
        """All metrics in the text format that Prometheus scrapes."""
        self._observe_holdings()
        shown: Any = self._shown
        if self._of_workers:
            import prometheus_client

            collector: Any = import_module("prometheus_client.multiprocess").MultiProcessCollector
            shown = prometheus_client.CollectorRegistry()
            collector(shown)
        return bytes(self._write(shown)).decode()


def worker_ended(pid: int, folder: str) -> None:
    """Leave out what a worker held when it ended; what it counted stays."""
    with suppress(ImportError):
        multiprocess: Any = import_module("prometheus_client.multiprocess")
        multiprocess.mark_process_dead(pid, folder)
