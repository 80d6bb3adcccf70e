"""Counters and timings of one proxy, in the Prometheus text format.

Each ``Metrics`` has a registry of its own, so that several proxies of one process stay separate.
Labels are names of ours and statuses; never what a client sent.  Needs the extra "proxy".
"""

from __future__ import annotations

from typing import Any

from trimtab.errors import MissingExtra

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
    "trimtab_errors_total": (
        "What went wrong: upstream, client, or a fault of ours.",
        ("kind",),
    ),
}
_GAUGES = {
    "trimtab_in_flight": "Requests being answered.",
    "trimtab_sessions": "Sessions that are remembered.",
    "trimtab_store_up": "1 while the store answers and keeps what it is given, else 0.",
}
_TIMINGS = {
    "trimtab_fit_seconds": "Time to make a request fit.",
    "trimtab_first_byte_seconds": "Time from a whole request to the first byte of its answer.",
    "trimtab_request_seconds": "Time from a whole request to the end of its answer.",
}
TOKEN_KINDS = ("arrived", "sent", "saved", "prompt", "cached", "output")


class Metrics:
    """The counters and timings.  Raises MissingExtra without ``prometheus_client``."""

    def __init__(self) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise MissingExtra(
                "the proxy's metrics need prometheus_client: pip install 'trimtab[proxy]'"
            ) from None
        self.in_flight = 0
        """Requests in progress."""
        self._registry = registry = prometheus_client.CollectorRegistry()
        self._write = prometheus_client.generate_latest
        self._counters: dict[str, Any] = {
            name: prometheus_client.Counter(name, about, labels, registry=registry)
            for name, (about, labels) in _COUNTERS.items()
        }
        self._gauges: dict[str, Any] = {
            name: prometheus_client.Gauge(name, about, registry=registry)
            for name, about in _GAUGES.items()
        }
        self._gauges["trimtab_in_flight"].set_function(lambda: self.in_flight)
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

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        self._counters[name].labels(**labels).inc()

    def count_tokens(self, kind: str, number: int) -> None:
        """Add tokens of one of ``TOKEN_KINDS``."""
        self._counters["trimtab_tokens_total"].labels(kind=kind).inc(number)

    def took(self, name: str, seconds: float) -> None:
        """Add to a timing."""
        self._timings[name].observe(seconds)

    def text(self, sessions: int = 0, *, store_up: bool = True) -> str:
        """All metrics in the text format that Prometheus scrapes."""
        self._gauges["trimtab_sessions"].set(sessions)
        self._gauges["trimtab_store_up"].set(store_up)
        return bytes(self._write(self._shown)).decode()
