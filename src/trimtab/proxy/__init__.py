"""The proxy: any agent, one base URL.

``Proxy(ProxySettings(...))`` is an ASGI app; ``Server`` puts it on a port.  Needs the extra
"proxy" to run.  The server's modules are imported on first use, the settings at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trimtab.proxy.config.settings import ProxySettings, load
from trimtab.proxy.config.upstreams import Upstream, standard

if TYPE_CHECKING:
    from trimtab.proxy.app import Proxy
    from trimtab.proxy.server import Server


def __getattr__(name: str) -> Any:
    if name == "Proxy":
        from trimtab.proxy.app import Proxy

        return Proxy
    if name == "Server":
        from trimtab.proxy.server import Server

        return Server
    raise AttributeError(f"module 'trimtab.proxy' has no attribute {name!r}")


__all__ = ["Proxy", "ProxySettings", "Server", "Upstream", "load", "standard"]
