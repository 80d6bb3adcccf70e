"""One request that the proxy carries, and what became of it.

What came, for whom, what was sent (``calls``: nobody else keeps it) and how it ended.  Addons see
it twice (``addons.base``); ``answering`` fits, sends and answers it, ``untouched`` passes on what
is not fitted.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

from trimtab.proxy.callers.conversation import conversation_of
from trimtab.proxy.callers.tenants import NOBODY, Tenants, TenantSession
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.exchange.provider_call import ProviderCall
from trimtab.proxy.http.asgi import Body, HttpResponse, Receive
from trimtab.proxy.http.budgets import HeldBytes, RequestBudget
from trimtab.proxy.http.client_request import ClientRequest
from trimtab.proxy.http.http_client import HttpClient
from trimtab.retry.own_header import is_off
from trimtab.rounds import RecallRounds

HUNG_UP = "the client hung up"


class Exchange:
    """``number``: counted from 1 while the proxy runs."""

    def __init__(
        self, number: int, request: ClientRequest, receive: Receive, reply: HttpResponse,
        settings: ProxySettings, tenants: Tenants, client: HttpClient, held: HeldBytes,
    ) -> None:  # fmt: skip
        self.number, self.request, self.reply = number, request, reply
        self.settings, self.tenants, self.client = settings, tenants, client
        self.budget = RequestBudget(held)
        self.body = Body(receive, settings.max_bytes, settings.read_seconds, self.budget)
        self.began = time.perf_counter()
        self.is_fitted = not (
            settings.pass_through or request.route.operation == "other" or is_off(request.headers)
        )
        """False if it is passed on untouched."""
        self.tenant = NOBODY
        self.received: bytes | None = None
        """The client's body; None where it is passed on without being held."""
        self.tree: Any = None
        """The parsed body; None where it was not read."""
        self.calls: list[ProviderCall] = []
        """What was sent, one call of the model after another."""
        self.own_rounds: RecallRounds | None = None
        """An addon sets it: tools that the request gets, and further calls that answer them."""
        self.error = ""
        """What went wrong between us and the provider or the client; "" if nothing did."""
        self.metadata: dict[str, Any] = {}
        """What an addon leaves here for the next ones."""
        self.unread = ""
        """Why its body was not read; "" if it was."""

    @property
    def note(self) -> str:
        """Why it was not fitted as usual; "" if it was."""
        return next((call.note for call in reversed(self.calls) if call.note), self.unread)

    @property
    def conversation(self) -> str:
        """The id of the conversation that it belongs to, once its body is parsed."""
        request = self.request
        return conversation_of(self.tenant, request.route.format, request.hint, self.tree)

    @cached_property
    def session(self) -> TenantSession:
        """The library's session of its tenant."""
        return self.tenants.served(self.request.upstream, self.tenant)
