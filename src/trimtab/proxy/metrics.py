"""Counters and timings as Prometheus reads them.

Knows the text format (version 0.0.4).  Labels are names of ours and statuses; never what a client
sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)

_ABOUT = {
    "trimtab_requests_total": "Requests by upstream, kind and status.",
    "trimtab_refusals_total": "Refusals of providers by kind and what was done.",
    "trimtab_edits_total": "New edits by kind.",
    "trimtab_tokens_total": "Tokens: arrived, sent, saved; billed as prompt, cached, output.",
    "trimtab_errors_total": "What went wrong: upstream, client, or a fault of ours.",
    "trimtab_in_flight": "Requests being answered.",
    "trimtab_sessions": "Sessions that are remembered.",
    "trimtab_fit_seconds": "Time to make a request fit.",
    "trimtab_first_byte_seconds": "Time from a whole request to the first byte of its answer.",
    "trimtab_request_seconds": "Time from a whole request to the end of its answer.",
}


class Histogram:
    """How often something took at most so many seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.counters: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self.times: dict[str, Histogram] = {
            name: Histogram() for name in _ABOUT if name.endswith("_seconds")
        }
        self.in_flight = 0

    def count(self, name: str, **labels: str) -> None:
        """Add to a counter."""
        self.counters[name, tuple(sorted(labels.items()))] += 1

    def took(self, name: str, seconds: float) -> None:
        """Add to a timing."""
        self.times[name].add(seconds)

    def text(self, totals: Mapping[str, int], sessions: int) -> str:
        """All of it as the page that is scraped."""
        return "\n".join(self._lines(totals, sessions)) + "\n"

    def _lines(self, totals: Mapping[str, int], sessions: int) -> Iterator[str]:
        kinds = ("arrived", "sent", "saved")
        tokens = {kind: totals.get(f"tokens_{kind}", 0) for kind in kinds}
        billed = ("prompt", "cached", "output")
        tokens |= {kind: totals.get(f"{kind}_tokens", 0) for kind in billed}
        counters = Counter(self.counters)
        for kind, number in tokens.items():
            counters["trimtab_tokens_total", (("kind", kind),)] = number
        for name, about in _ABOUT.items():
            yield f"# HELP {name} {about}"
            if name in self.times:
                yield f"# TYPE {name} histogram"
                yield from self._histogram(name)
            elif name.endswith("_total"):
                yield f"# TYPE {name} counter"
                rows = [(labels, n) for (of, labels), n in counters.items() if of == name]
                yield from (f"{name}{_labels(labels)} {n}" for labels, n in sorted(rows))
            else:
                yield f"# TYPE {name} gauge"
                yield f"{name} {self.in_flight if name.endswith('flight') else sessions}"

    def _histogram(self, name: str) -> Iterator[str]:
        found = self.times[name]
        sums = list(accumulate(found.counts))
        for bound, number in zip(BUCKETS, sums, strict=False):
            yield f'{name}_bucket{{le="{bound:g}"}} {number}'
        yield f'{name}_bucket{{le="+Inf"}} {sums[-1]}'
        yield f"{name}_sum {found.total:.6f}"
        yield f"{name}_count {sums[-1]}"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
