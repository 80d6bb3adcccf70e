"""The proxy's addons: all that it does beside carrying requests, one file each.

``base`` says what an addon is and sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.proxy.addons.base import Addon, Core
from trimtab.proxy.addons.compress import Compress
from trimtab.proxy.addons.dashboard import Dashboard
from trimtab.proxy.addons.keep_warm import KeepWarm
from trimtab.proxy.addons.metrics import Metrics
from trimtab.proxy.addons.recall import Recall
from trimtab.proxy.addons.records import Records
from trimtab.proxy.addons.request_log import RequestLog


class Addons:
    """Iterates over all of them in the order in which they see a request."""

    def __init__(self, core: Core) -> None:
        self.recall = Recall(core)
        self.records = Records(core)
        self.request_log = RequestLog(self.records)
        self.metrics = Metrics(core, self.records)
        self.compress = Compress(core, self.records, self.metrics)
        self.keep_warm = KeepWarm(core, self.records, self.metrics)
        self.dashboard = Dashboard(core, self.records, self.metrics, self.recall, self.keep_warm)

    def __iter__(self) -> Iterator[Addon]:
        yield self.recall
        yield self.compress
        yield self.records
        yield self.request_log
        yield self.keep_warm
        yield self.dashboard
        yield self.metrics  # the last one: a request in flight is in none of the others yet
