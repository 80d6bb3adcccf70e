"""The proxy's settings: where it listens, whom it sends to, what it keeps.

Knows keys, files and defaults.  Opens nothing.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from trimtab import config
from trimtab.amounts import amount
from trimtab.errors import InvalidSetting
from trimtab.proxy.upstreams import Upstream, standard

PORT = 4141
TOKEN_VARIABLE = "TRIMTAB_PROXY_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")

Tenants = Literal["one", "key"]


@dataclass(frozen=True)
class ProxySettings:
    """All that a proxy is told.

    - ``host``, ``port``: where it listens; port 0 is a free one.
    - ``upstreams``: the providers, asked in order.
    - ``fit``: keywords of ``Session`` (window, preset, protected tools …).
    - ``store``: URL of a store; "" keeps everything in memory.
    - ``tenants``: "one" user, or one for each "key" that comes with requests: what one has sent
      can never be recalled by another.  "" is "one" on loopback, else "key".
    - ``token``: asked for by the dashboard, and by requests that the proxy signs.
    - ``hosts``: further values of the header ``Host`` that are answered.
    - ``most_bytes``: longer bodies are passed through as they come, unread; where the proxy signs
      they are declined.
    - ``head_seconds``: how long a client may take over the head of a request.
    - ``read_seconds``: the longest wait between two pieces, of an answer or of a request's body.
    - ``recall``: offer the model a tool that brings originals back.
    - ``prune``: with ``recall``, also one that takes out results it no longer needs.
    - ``drain_seconds``: how long running answers may take when the proxy is told to stop.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    upstreams: tuple[Upstream, ...] = field(default_factory=standard)
    fit: Mapping[str, Any] = field(default_factory=dict)
    store: str = ""
    tenants: Tenants | Literal[""] = ""
    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    most_bytes: int = 64_000_000
    recall: bool = False
    prune: bool = False
    head_seconds: float = 60.0
    connect_seconds: float = 20.0
    read_seconds: float = 600.0
    drain_seconds: float = 30.0
    system_proxy: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def one_tenant(self) -> bool:
        """Whether all requests belong to one user."""
        return (self.tenants or ("one" if self.local else "key")) == "one"

    def checked(self) -> ProxySettings:
        """These settings.  Raises InvalidSetting where they contradict each other."""
        if self.tenants and self.tenants not in get_args(Tenants):
            raise InvalidSetting(f"tenants={self.tenants!r}: choose 'one' or 'key'")
        if not self.local and not self.token:
            raise InvalidSetting(
                f"listening on {self.host}, others can reach the dashboard: "
                f"set {TOKEN_VARIABLE} to a secret of your own, or listen on 127.0.0.1"
            )
        if not self.upstreams:
            raise InvalidSetting("no upstream: give --upstream URL or [[upstream]] in the file")
        names = {u.name for u in self.upstreams}
        if bad := next((name for name in names if not name or "/" in name), None):
            raise InvalidSetting(f"upstream {bad!r}: a name without slashes")
        return self


_PLAIN: dict[str, type | tuple[type, ...]] = {
    "store": str, "tenants": str, "token": str, "recall": bool, "prune": bool, "system_proxy": bool,
    "head_seconds": (int, float), "connect_seconds": (int, float), "read_seconds": (int, float),
    "drain_seconds": (int, float),
}  # fmt: skip
_UPSTREAM = {f.name for f in fields(Upstream)}


def load(path: str | os.PathLike[str], base: ProxySettings | None = None) -> ProxySettings:
    """Settings from a TOML file.  Raises InvalidSetting."""
    file = Path(path)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise InvalidSetting(f"{file}: {reason}: name a file that can be read") from error
    except ValueError as error:
        raise InvalidSetting(f"{file}: {error}; mend it") from error
    return _read(table, str(file), base or ProxySettings())


def _read(table: Mapping[str, Any], source: str, base: ProxySettings) -> ProxySettings:
    found: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in table.items():
        if key == "listen":
            found["host"], found["port"] = listening(value)
        elif key == "fit" and isinstance(value, dict):
            loaded = config.from_table(value, f"{source}: fit")
            found["fit"] = {**base.fit, **loaded.keywords()}
            problems += loaded.problems
        elif key == "upstream":
            own = tuple(_upstream(row, source) for row in value)
            rest = standard() if table.get("standard_upstreams", True) else ()
            found["upstreams"] = (*own, *rest)
        elif key == "hosts":
            found[key] = tuple(str(item).lower() for item in value)
        elif key == "most_bytes":
            found[key] = amount(value) if isinstance(value, str) else int(value)
        elif key in _PLAIN:
            if not isinstance(value, _PLAIN[key]):
                raise InvalidSetting(f"{source}: {key}: got {value!r} ({type(value).__name__})")
            found[key] = value
        elif key != "standard_upstreams":
            problems.append(f"{source}: unknown key {key}")
    if table.get("standard_upstreams") is False and "upstream" not in table:
        found["upstreams"] = ()
    return replace(base, **found, warnings=(*base.warnings, *problems))


def _upstream(row: Any, source: str) -> Upstream:
    if not isinstance(row, dict) or not {"name", "url"} <= set(row):
        raise InvalidSetting(f"{source}: each [[upstream]] needs name and url")
    if unknown := set(row) - _UPSTREAM:
        raise InvalidSetting(f"{source}: upstream {row['name']}: unknown key {min(unknown)}")
    given = dict(row)
    given["paths"] = tuple(given.get("paths", ()))
    if isinstance(window := given.get("window"), str):
        given["window"] = amount(window)
    return Upstream(**given)


def listening(text: Any) -> tuple[str, int]:
    """``"127.0.0.1:4141"``, ``":4141"``, ``"4141"`` or ``"[::1]:4141"``.  Raises InvalidSetting."""
    if isinstance(text, int):
        text = str(text)
    try:
        given = f":{text}" if text.isdigit() else text
        parts = urlsplit(f"//{given}")
        port = PORT if parts.port is None else parts.port
    except (ValueError, AttributeError):
        raise InvalidSetting(f"listen={text!r}: give HOST:PORT") from None
    return parts.hostname or "127.0.0.1", port
