"""What is needed to start an agent behind a proxy: addresses, environment, arguments, a warning."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trimtab.proxy.config.upstreams import PREFIX, Upstream, standard


@dataclass(frozen=True)
class LaunchContext:
    """Where an agent runs: its environment, home, working folder and arguments."""

    env: Mapping[str, str]
    home: Path
    folder: Path
    arguments: Sequence[str] = ()


@dataclass
class Setup:
    """How to start an agent so that it talks to the proxy.

    ``upstreams``: where the proxy forwards to.  ``files``: variables that get the path of a file
    with this text, which is there while the agent runs.  In ``env``, ``files`` and ``arguments``,
    ``{proxy}`` is replaced by the proxy's address.  ``problem``: one line if a login cannot go
    through a proxy, with what to do.
    """

    upstreams: list[Upstream] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    problem: str = ""

    def send(self, name: str, url: str) -> str:
        """Forward requests for this upstream; returns the base URL for the agent."""
        if all(upstream.name != name for upstream in self.upstreams):
            self.upstreams.append(Upstream(name, url))
        return "{proxy}" + PREFIX + name

    def variable(self, place: LaunchContext, variable: str, name: str, default: str) -> None:
        """Set a variable that holds a base URL; the proxy forwards to its former value."""
        self.env[variable] = self.send(name, place.env.get(variable) or default)

    def send_to(self, url: str) -> None:
        """Forward everything to this address; without a path it gets that of the API it
        replaces."""
        target = url.rstrip("/")
        bare = not urlsplit(target).path
        self.upstreams = [
            replace(
                upstream, url=target + urlsplit(upstream.url).path.rstrip("/") if bare else target
            )
            for upstream in self.upstreams
        ]

    def attached(self, proxy: str) -> Setup:
        """The same for a proxy that is already running: it recognises known providers by path, all
        others by the names in its configuration."""
        known_names = {upstream.name for upstream in standard()} | {"google"}
        paths = {
            re.compile(re.escape("{proxy}" + PREFIX + upstream.name) + r"(?![\w-])"): "{proxy}"
            + urlsplit(upstream.url).path.rstrip("/")
            for upstream in self.upstreams
            if upstream.name in known_names
        }

        def by_path(text: str) -> str:
            for placeholder, path in paths.items():
                text = placeholder.sub(path, text)
            return text

        return self._with(by_path).at(proxy)

    def at(self, proxy: str) -> Setup:
        """The same with the proxy's address in place of ``{proxy}``."""
        return self._with(lambda text: text.replace("{proxy}", proxy))

    def _with(self, change: Callable[[str], str]) -> Setup:
        """The same with each text that may hold an address changed."""
        return replace(
            self,
            env={key: change(text) for key, text in self.env.items()},
            files={key: change(text) for key, text in self.files.items()},
            arguments=[change(word) for word in self.arguments],
        )


WHOLE_WINDOW = 0.9
"""The highest trigger: where the agent does not compact within the window."""


@dataclass(frozen=True)
class Agent:
    """One agent.

    ``trigger``: share of the window at which we cut; below the share at which the agent would
    compact its conversation itself (``compacts``), which would lose more.  ``waits_seconds``: how
    long connecting to an unreachable provider is retried, for agents that wait for the network
    themselves: to them the proxy is the network.
    """

    name: str
    prepare: Callable[[LaunchContext], Setup]
    install: str
    trigger: float
    compacts: str
    command: str = ""
    waits_seconds: float = 0.0
    own_window: int = 0
    """The smallest window that it takes any of its models to have, whatever window the user gave
    us; 0: it differs by model, or by the user's configuration."""
    of_window: bool = False
    """Whether ``trigger`` is a share of the whole window, reserve included, as in ``compacts``."""
    min_window: int = 0
    """Below so many tokens many turns are cut, since its own instructions and tools take much of
    the window (``python bench/agents.py``); 0: no such window is known."""
    show_status: Callable[[LaunchContext, Setup, Sequence[str]], None] | None = None
    """Adds what makes the agent show the output of a command (words); None: it cannot be told."""

    @property
    def program(self) -> str:
        """The program to execute."""
        return self.command or self.name

    def begins(self, window: int | None) -> float:
        """The trigger in a window that the user gave.  In one smaller than the agent's own it is a
        larger share, since the agent compacts at the same number of tokens as before."""
        if window is not None and window < self.own_window:
            return min(WHOLE_WINDOW, self.trigger * self.own_window / window)
        return self.trigger

    def too_small(self, window: int | None) -> str:
        """What to say of a window that the user gave; "" where nothing is wrong with it."""
        if window is None or window >= self.min_window:
            return ""
        return (
            f"{window:,} tokens are little for {self.name}: its instructions and tools fill much "
            "of them. Many turns will be cut, and each cut loses the prompt cache. "
            f"Take --window {self.min_window // 1000}k or more"
        )


def read_json(path: Path) -> Any:
    """The object in a JSON file (comments allowed); {} if there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return {}
    for candidate in (text, _COMMENTS.sub(lambda m: m[1] or "", text)):
        try:
            tree = json.loads(re.sub(r",(\s*[}\]])", r"\1", candidate))
        except ValueError:
            continue
        return tree if isinstance(tree, dict) else {}
    return {}


_COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; {} if there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def inner(value: Any, *keys: str) -> Any:
    """The value below these keys; None if one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
