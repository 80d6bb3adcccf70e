"""The proxy's settings: where it listens, whom it sends to, what it keeps."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from trimtab import config
from trimtab.amounts import amount
from trimtab.errors import InvalidSetting, shown
from trimtab.pricing.keep_warm import DOLLARS_A_DAY, PINGS_A_SESSION
from trimtab.proxy.upstreams import Upstream, standard
from trimtab.retry.flow import RESULT_CHARS, result_chars
from trimtab.setting_kinds import nearest
from trimtab.settings import Settings

PORT = 4141
TOKEN_VARIABLE = "TRIMTAB_PROXY_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")

Tenants = Literal["one", "key"]
KeepWarm = Literal["off", "auto"]


@dataclass(frozen=True)
class ProxySettings:
    """All settings of a proxy.

    - ``host``, ``port``: where it listens; port 0 is a free one.
    - ``upstreams``: the providers, asked in order.
    - ``fit``: what is fitted, and how (window, preset, protected tools …).
    - ``store``: URL of a store; "" keeps everything in memory.
    - ``tenants``: "one" user, or one for each "key" that comes with requests: what one has sent
      can never be recalled by another.  "" is "one" on loopback, else "key".
    - ``key_headers``: headers, beside those of the providers, whose value tells tenants apart.
    - ``token``: asked for by the dashboard, and by requests that the proxy signs; "": one is made.
    - ``require_token``: all other requests have to bring it, too; None: beyond loopback.
    - ``hosts``: further values of the header ``Host`` that are answered.
    - ``most_bytes``: longer bodies are passed through as they come, unread; where the proxy signs
      they are declined.
    - ``most_held_bytes``: of all requests together, parsed ones included; a request beyond it is
      passed through as it comes.
    - ``most_parts``: messages, and parts of their contents, of a request that is made to fit; one
      with more is sent as it came.
    - ``plan_seconds``: how long a request may be worked on; then it is sent as it came.
    - ``body_seconds``: the longest that a client may take over the body of a request.
    - ``most_connections``: of clients; beyond it the one that has waited longest for a request is
      closed.  None: a third of the descriptors that the process may have.
    - ``head_seconds``: how long a client may take over the head of a request.
    - ``read_seconds``: the longest wait between two pieces, of an answer or of a request's body.
    - ``recall``: offer the model a tool that brings originals back.
    - ``prune``: with ``recall``, also one that takes out results it no longer needs.
    - ``retry_result_chars``: to what a refusal that names nothing (a bare "ERROR") cuts each tool
      result; 0: such a refusal is passed on.
    - ``keep_warm``: "auto" sends the cheapest request that reads an idle conversation's prefix
      before its cache expires, where learned gaps say that this pays; "off" (default).
      ``keep_warm_dollars``: the most for all such pings of a day (UTC), in US dollars at list
      prices; ``keep_warm_pings``: the most in one conversation.
    - ``drain_seconds``: how long running answers may take when the proxy is told to stop.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    upstreams: tuple[Upstream, ...] = field(default_factory=standard)
    fit: Settings = field(default_factory=Settings)
    store: str = ""
    tenants: Tenants | Literal[""] = ""
    key_headers: tuple[str, ...] = ("ocp-apim-subscription-key",)
    token: str = field(default="", repr=False)
    require_token: bool | None = None
    hosts: tuple[str, ...] = ()
    most_bytes: int = 64_000_000
    most_held_bytes: int = 1_000_000_000
    most_parts: int = 50_000
    plan_seconds: float = 30.0
    body_seconds: float = 1_800.0
    most_connections: int | None = None
    recall: bool = False
    prune: bool = False
    head_seconds: float = 60.0
    connect_seconds: float = 20.0
    read_seconds: float = 600.0
    drain_seconds: float = 30.0
    retry_result_chars: int = RESULT_CHARS
    system_proxy: bool = False
    keep_warm: KeepWarm = "off"
    keep_warm_dollars: float = DOLLARS_A_DAY
    keep_warm_pings: int = PINGS_A_SESSION
    warnings: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def one_tenant(self) -> bool:
        """Whether all requests belong to one user."""
        return (self.tenants or ("one" if self.local else "key")) == "one"

    @property
    def asks_for_token(self) -> bool:
        """Whether every request has to bring the token."""
        return not self.local if self.require_token is None else self.require_token

    def checked(self) -> ProxySettings:
        """These settings.  Raises InvalidSetting where they contradict each other."""
        if not isinstance(self.fit, Settings):
            raise InvalidSetting(f"fit={shown(self.fit)}: give a trimtab.Settings")
        if self.tenants and self.tenants not in get_args(Tenants):
            raise InvalidSetting(f"tenants={self.tenants!r}: choose 'one' or 'key'")
        if not self.local and not self.token:
            raise InvalidSetting(
                f"listening on {self.host}, others can reach the dashboard: "
                f"set {TOKEN_VARIABLE} to a secret of your own, or listen on 127.0.0.1"
            )
        if self.keep_warm not in get_args(KeepWarm):
            raise InvalidSetting(f"keep_warm={self.keep_warm!r}: choose 'off' or 'auto'")
        if self.keep_warm_dollars < 0 or self.keep_warm_pings < 0:
            raise InvalidSetting("keep_warm_dollars and keep_warm_pings: give 0 or more")
        result_chars(self.retry_result_chars)
        if not self.upstreams:
            raise InvalidSetting("no upstream: give --upstream URL or [[upstream]] in the file")
        names = {u.name for u in self.upstreams}
        if bad := next((name for name in names if not name or "/" in name), None):
            raise InvalidSetting(f"upstream {bad!r}: a name without slashes")
        return self


_PLAIN: dict[str, type | tuple[type, ...]] = {
    "store": str, "tenants": str, "token": str, "require_token": bool,
    "recall": bool, "prune": bool, "system_proxy": bool,
    "most_parts": int, "most_connections": int,
    "plan_seconds": (int, float), "body_seconds": (int, float),
    "head_seconds": (int, float), "connect_seconds": (int, float), "read_seconds": (int, float),
    "drain_seconds": (int, float), "retry_result_chars": int,
    "keep_warm": str, "keep_warm_dollars": (int, float), "keep_warm_pings": int,
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
        raise InvalidSetting(f"{file}: {error}; correct it") from error
    return _read(table, str(file), base or ProxySettings())


def _names(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise TypeError
    return {key: tuple(str(item).lower() for item in value)}


def _bytes(key: str, value: Any) -> dict[str, Any]:
    return {key: amount(value) if isinstance(value, str) else int(value)}


def _listen(key: str, value: Any) -> dict[str, Any]:
    host, port = listening(value)
    return {"host": host, "port": port}


_READ: Mapping[str, Callable[[str, Any], dict[str, Any]]] = {
    "listen": _listen, "hosts": _names, "key_headers": _names, "most_bytes": _bytes,
    "most_held_bytes": _bytes,
}  # fmt: skip


_KEYS = frozenset({"fit", "upstream", "standard_upstreams", *_READ, *_PLAIN})


def _read(table: Mapping[str, Any], source: str, base: ProxySettings) -> ProxySettings:
    found: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in table.items():
        try:
            if key == "fit" and isinstance(value, dict):
                loaded = config.from_table(value, f"{source}: fit")
                found["fit"] = base.fit | loaded.settings()
                problems += loaded.problems
            elif key == "upstream":
                own = tuple(_upstream(row, source) for row in value)
                rest = standard() if table.get("standard_upstreams", True) else ()
                found["upstreams"] = (*own, *rest)
            elif key in _READ:
                found |= _READ[key](key, value)
            elif key in _PLAIN and isinstance(value, _PLAIN[key]):
                found[key] = value
            elif key in _PLAIN:
                raise TypeError
            elif key != "standard_upstreams":
                problems.append(f"{source}: unknown key {key}{nearest(key, _KEYS)}")
        except InvalidSetting:
            raise
        except (TypeError, ValueError, AttributeError):
            raise InvalidSetting(
                f"{source}: {key}: got {value!r} ({type(value).__name__})"
            ) from None
    if table.get("standard_upstreams") is False and "upstream" not in table:
        found["upstreams"] = ()
    return replace(base, **found, warnings=(*base.warnings, *problems))


def _upstream(row: Any, source: str) -> Upstream:
    if not isinstance(row, dict) or not {"name", "url"} <= set(row):
        raise InvalidSetting(f"{source}: each [[upstream]] needs name and url")
    if unknown := set(row) - _UPSTREAM:
        key = min(unknown)
        hint = nearest(key, _UPSTREAM)
        raise InvalidSetting(f"{source}: upstream {row['name']}: unknown key {key}{hint}")
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
