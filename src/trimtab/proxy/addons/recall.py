"""Offers the model tools of ours, for originals, pruning and notes, and answers their calls."""

from __future__ import annotations

import logging

from trimtab.proxy.addons.base import Addon, Core
from trimtab.proxy.callers.tenants import NOBODY
from trimtab.proxy.config import log_lines
from trimtab.proxy.exchange.exchange import Exchange
from trimtab.rounds import ExchangeMemory, RecallRounds, rewritable


class Recall(Addon):
    """``hidden``: what clients did not see of their answers, by upstream and tenant."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.hidden = ExchangeMemory()
        self._warned = False

    def request(self, exchange: Exchange) -> None:
        """Give the request its tools."""
        settings, request = exchange.settings, exchange.request
        if not settings.offers_recall or not exchange.is_fitted:
            return
        if exchange.tenant == NOBODY:
            self._warn()
            return
        route, upstream = request.route, request.upstream
        if not rewritable(route.format, listed=route.listed, framed=route.framed):
            return
        exchange.own_rounds = RecallRounds(
            route.format, exchange.session.session, self.hidden.of(upstream.name, exchange.tenant),
            self._core.tenants.exchanges(upstream, exchange.tenant), prune=settings.prune,
            notes=settings.notes, model=route.model,
        )  # fmt: skip

    def _warn(self) -> None:
        """One line a run: boto3's signature names a key and proves nothing to us."""
        if not self._warned:
            self._warned = True
            log_lines.say(
                "a request without a key that tells its tenant (signed by AWS, say) gets no recall "
                "tool: send the proxy's token with it, or set tenants = one",
                level=logging.WARNING,
            )
