"""The proxy: any agent, one base URL.

``Proxy(ProxySettings(...))`` is an ASGI app; ``Server`` puts it on a port.  Needs the extra
"proxy" when it is started.
"""

from __future__ import annotations

from trimtab.proxy.app import Proxy
from trimtab.proxy.server import Server
from trimtab.proxy.settings import ProxySettings, load
from trimtab.proxy.upstreams import Upstream, standard

__all__ = ["Proxy", "ProxySettings", "Server", "Upstream", "load", "standard"]
