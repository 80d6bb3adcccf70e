"""The proxy's settings, declared once: where it listens, whom it sends to, what it keeps.

The keys of ``proxy.toml``, the variables ``TRIMTAB_PROXY_*``, the options of ``trimtab proxy`` and
``trimtab run`` and the table in docs/reference/proxy.md all follow from ``ProxySettings``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from trimtab import config
from trimtab.errors import InvalidSetting
from trimtab.pricing.keep_warm import DOLLARS_A_DAY, PINGS_A_SESSION
from trimtab.proxy.config.upstreams import Upstream, standard
from trimtab.retry.guesses import RESULT_CHARS
from trimtab.setting_kinds import (
    COUNT,
    DOLLARS,
    FLAG,
    FLAG_OR_NONE,
    SECONDS,
    SECONDS_OR_NONE,
    SECRET,
    TEXT,
    TEXTS,
    ValueKind,
    check_kinds,
    list_of,
    one_of,
    readable,
    setting,
)
from trimtab.settings import Settings, naming_nearest
from trimtab.suggestions import nearest

PREFIX = "TRIMTAB_PROXY_"
TOKEN_VARIABLE, CLIENT_TOKEN_VARIABLE = f"{PREFIX}TOKEN", f"{PREFIX}CLIENT_TOKEN"
DEFAULT_FIT = Settings(reserve_share=0.2)
"""Defaults of ``fit`` in the proxy.  ``reserve_share``: an agent that asks for 128,000 output
tokens must not leave 72,000 tokens of a window of 200,000, and none of 100,000."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")

Tenants = Literal["one", "key"]
KeepWarm = Literal["off", "auto"]


class Address(NamedTuple):
    """A host and port to listen on; port 0 picks a free one."""

    host: str = "127.0.0.1"
    port: int = 4141

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: Any) -> Address:
    """``"127.0.0.1:4141"``, ``":4141"``, ``"4141"`` or ``"[::1]:4141"``.  Raises ValueError."""
    address = str(text) if type(text) is int else text
    if not isinstance(address, str):
        raise ValueError
    parts = urlsplit(f"//:{address}" if address.isdigit() else f"//{address}")
    if parts.port is None:  # a name alone may be a word that is no host
        raise ValueError
    return Address(parts.hostname or Address().host, parts.port)


def _lower(value: Any) -> tuple[str, ...]:
    assert TEXTS.read is not None
    return tuple(text.lower() for text in TEXTS.read(value))


ADDRESS = ValueKind(
    lambda value: isinstance(value, Address), "HOST:PORT", read_address,
    "HOST:PORT, such as 127.0.0.1:4141", "HOST:PORT",
    takes_text=True,
)  # fmt: skip
STORE_URL = replace(TEXT, expected="URL of a store", metavar="URL")
HEADS = replace(TEXTS, read=_lower)
UPSTREAMS = list_of(lambda value: isinstance(value, Upstream), "a list of trimtab.proxy.Upstream")
FIT = ValueKind(
    lambda value: isinstance(value, Settings), "a trimtab.Settings", expected="a table",
    keys=config.SETTINGS,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """All settings of a proxy.  Raises InvalidSetting for a value of the wrong kind."""

    listen: Address = setting(
        Address(), ADDRESS,
        "where it listens; port 0 is a free one; beyond loopback TRIMTAB_PROXY_TOKEN has to be set",
        group="Where it listens and sends",
    )  # fmt: skip
    hosts: tuple[str, ...] = setting(
        (), HEADS, "further names by which clients call this machine (the header Host)"
    )
    upstreams: tuple[Upstream, ...] = setting(
        standard(), UPSTREAMS, "the providers, asked in order; in a file: [[upstream]], below"
    )
    workers: int = setting(
        1, COUNT, "processes that serve the one port, with a store that they share"
    )
    reconnect_seconds: float | None = setting(
        None, SECONDS_OR_NONE,
        "how long a provider that cannot be reached is tried again before the client gets a 502; "
        "unset: 0, and 600 for `trimtab run codex`",
    )  # fmt: skip
    system_proxy: bool = setting(False, FLAG, "send through HTTPS_PROXY of the environment")

    fit: Settings = setting(Settings(), FIT, "what is fitted, and how")

    store: str = setting(
        "", STORE_URL,
        "where originals and edits are kept; `memory:` keeps nothing; unset: a file of your own, "
        "but memory for `ProxySettings()`",
        group="What is kept, and for whom",
    )  # fmt: skip
    tenants: Tenants | None = setting(
        None, one_of(Tenants),
        "one user, or one for each key that comes with requests: what one has sent can never be "
        "recalled by another; unset: one on loopback, else key",
    )  # fmt: skip
    key_headers: tuple[str, ...] = setting(
        ("ocp-apim-subscription-key",), HEADS,
        "headers, apart from those of the providers, whose value tells tenants apart",
    )  # fmt: skip
    token: str = setting(
        "", SECRET,
        "asked for by the dashboard, and by requests that the proxy signs; unset: one is made",
    )  # fmt: skip
    require_token: bool | None = setting(
        None, FLAG_OR_NONE,
        "all other requests have to bring the token, too; unset: beyond loopback",
    )  # fmt: skip
    client_token: str = setting(
        "", SECRET,
        "lets requests pass like the token, and opens no page: for clients that must not read what "
        "others sent; unset: clients need the token itself",
    )  # fmt: skip

    dashboard_texts: bool | None = setting(
        None, FLAG_OR_NONE,
        "the dashboard names sessions by their first prompt, and shows requests and answers (in "
        "memory only, 32 MB at most); unset: on loopback",
    )  # fmt: skip

    recall: bool = setting(
        False, FLAG, "offer the model a tool that brings originals back",
        group="What the proxy does by itself",
    )  # fmt: skip
    pass_through: bool = setting(
        False, FLAG,
        "every request goes on unchanged, for all tenants: nothing is cut, repaired or recalled",
    )  # fmt: skip
    prune: bool = setting(
        False, FLAG,
        "and one that takes out results the model no longer needs; recall comes with it",
    )  # fmt: skip
    notes: bool = setting(
        False, FLAG,
        "offer it one that keeps its own texts word for word; recall comes with it",
    )  # fmt: skip
    retry_result_chars: int = setting(
        RESULT_CHARS, COUNT,
        "to what a refusal that names nothing (a bare ERROR) cuts each tool result; 0: such a "
        "refusal is passed on",
    )  # fmt: skip
    keep_warm: KeepWarm = setting(
        "off", one_of(KeepWarm),
        "auto: send the cheapest request that reads an idle conversation's prefix before its cache "
        "expires, where learned gaps say that this pays",
    )  # fmt: skip
    keep_warm_dollars: float = setting(
        DOLLARS_A_DAY, DOLLARS,
        "the most for all such pings of a day (UTC), in US dollars at list prices",
    )  # fmt: skip
    keep_warm_pings: int = setting(PINGS_A_SESSION, COUNT, "the most in one conversation")

    max_bytes: int = setting(
        64_000_000, COUNT,
        "longer bodies are passed through unchanged, unread; where the proxy signs they are "
        "declined",
        group="Bounds",
    )  # fmt: skip
    max_held_bytes: int = setting(
        1_000_000_000, COUNT,
        "of all requests together, parsed ones included; a request beyond it passes "
        "unchanged",
    )  # fmt: skip
    read_seconds: float = setting(
        600.0, SECONDS,
        "the longest wait between two pieces of an answer, or of a request's body",
    )  # fmt: skip
    drain_seconds: float = setting(
        30.0, SECONDS, "how long running answers may take when the proxy is told to stop"
    )

    warnings: tuple[str, ...] = field(default=(), repr=False)
    """What could not be understood when the settings were read."""

    def __post_init__(self) -> None:
        check_kinds(self)

    @property
    def fitting(self) -> Settings:
        """``fit`` with the proxy's defaults for what it leaves unset."""
        return DEFAULT_FIT | self.fit

    @property
    def local(self) -> bool:
        """Whether it listens on loopback, so that only this machine can reach it."""
        return self.listen.host in LOOPBACK

    @property
    def one_tenant(self) -> bool:
        """Whether all requests belong to one user."""
        return (self.tenants or ("one" if self.local else "key")) == "one"

    @property
    def offers_recall(self) -> bool:
        """Whether models are offered the recall tool."""
        return self.recall or self.prune or self.notes

    @property
    def keeps_texts(self) -> bool:
        """Whether the dashboard shows texts of requests."""
        return self.local if self.dashboard_texts is None else self.dashboard_texts

    @property
    def asks_for_token(self) -> bool:
        """Whether every request must carry the token."""
        return not self.local if self.require_token is None else self.require_token

    @property
    def clients_hold_its_token(self) -> bool:
        """Whether several people have to send the token that opens every page."""
        is_shared = not (self.local and self.one_tenant)
        return is_shared and self.asks_for_token and not self.client_token

    def checked(self) -> ProxySettings:
        """These settings.  Raises InvalidSetting if they contradict each other."""
        if not self.local and not self.token:
            raise InvalidSetting(
                f"on {self.listen.host} others could reach the dashboard: "
                f"set {TOKEN_VARIABLE}, or listen on 127.0.0.1"
            )
        if self.client_token and self.client_token == self.token:
            raise InvalidSetting(
                "client_token is the token: clients could open every page; give them another one"
            )
        if not self.upstreams:
            raise InvalidSetting("no upstream: give --upstream URL or [[upstream]] in the file")
        names = {u.name for u in self.upstreams}
        if bad := next((name for name in names if not name or "/" in name), None):
            raise InvalidSetting(f"upstream {bad!r}: a name without slashes")
        return self

    def over(self, values: Mapping[str, Any], *problems: str) -> ProxySettings:
        """These settings, overridden by values by key as ``config`` reads them."""
        overrides = dict(values)
        if "fit" in overrides:
            overrides["fit"] = self.fit | config.Loaded(overrides["fit"], env=os.environ).settings()
        return replace(self, **overrides, warnings=(*self.warnings, *problems))


ProxySettings.__init__ = naming_nearest(ProxySettings.__init__)  # type: ignore[method-assign]

KEYS = readable(ProxySettings)
OPTIONS = {name: one for name, one in KEYS.items() if name != "fit"}
"""The settings with a variable and an option of the proxy; those of ``fit`` have their own."""
_OF_FILES = {*KEYS, "upstream", "standard_upstreams"}
_OF_UPSTREAMS = readable(Upstream)


def from_environment(env: Mapping[str, str], base: ProxySettings) -> ProxySettings:
    """The variables ``TRIMTAB_PROXY_*`` over other settings.  Raises InvalidSetting."""
    problems: list[str] = []
    return base.over(config.from_environment(env, OPTIONS, problems, PREFIX), *problems)


def load(path: str | os.PathLike[str], base: ProxySettings | None = None) -> ProxySettings:
    """A TOML file over other settings.  Raises InvalidSetting."""
    file = Path(path)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise InvalidSetting(f"{file}: {reason}: name a file that can be read") from error
    except ValueError as error:
        raise InvalidSetting(f"{file}: {error}; correct it") from error
    own_upstreams, with_standard = (
        table.pop("upstream", None),
        table.pop("standard_upstreams", True),
    )
    own_keys = {key: table[key] for key in table if key in KEYS}
    unknown = [key for key in table if key not in KEYS]
    problems = [f"{file}: unknown key {key}{nearest(key, _OF_FILES)}" for key in unknown]
    values = dict(config.read_table(own_keys, KEYS, str(file), problems))
    if own_upstreams is not None or not with_standard:
        others = standard() if with_standard else ()
        values["upstreams"] = (*_upstreams(own_upstreams or [], str(file)), *others)
    return (base or ProxySettings()).over(values, *problems)


def _upstreams(rows: Any, source: str) -> Iterator[Upstream]:
    """The tables ``[[upstream]]``; an unknown key is an error here: a request could go astray."""
    for row in rows if isinstance(rows, list) else [rows]:
        if not isinstance(row, dict) or not {"name", "url"} <= row.keys():
            raise InvalidSetting(f"{source}: each [[upstream]] needs name and url")
        problems: list[str] = []
        where = f"{source}: upstream {row['name']}"
        values = dict(config.read_table(row, _OF_UPSTREAMS, where, problems))
        if problems:
            raise InvalidSetting(min(problems))
        yield Upstream(**values)
