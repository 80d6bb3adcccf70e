"""Pages of the proxy's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.proxy.asgi import Receive, Reply, Scope

if TYPE_CHECKING:
    from trimtab.proxy.app import Proxy


async def serve(proxy: Proxy, scope: Scope, receive: Receive, reply: Reply) -> None:
    """Answer a request for one of them."""
    await reply.json(404, {})
