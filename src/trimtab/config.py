"""Settings from files and environment: for the command line, and for programs that ask for them.

Knows where settings stand, which win, and the entry points of other packages.  Does not know what
a key takes (setting_keys.py) or does.  ``fit`` reads none of this: what is loaded is handed to it
as arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from trimtab.errors import InvalidSetting
from trimtab.model import Limits
from trimtab.setting_keys import KEYS, LIMITS, NAMES, Key, built
from trimtab.strategies import Strategy

if TYPE_CHECKING:  # it loads urllib
    from pathlib import Path

GROUP = "trimtab.strategies"
"""Entry points of other packages: a strategy each, or a sequence of them."""
PREFIX = "TRIMTAB_"
_NOT_SETTINGS = frozenset(
    f"{PREFIX}{name}" for name in ("TRACEBACK", "PEERS", "DATA", "PROXY_TOKEN", "STORE_KEY")
)


@dataclass
class Loaded:
    """``values`` by key; ``sources`` that were read, first to last; ``problems``: unknown keys and
    packages whose strategies could not be loaded, a line each."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    strategies: tuple[Strategy, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where a key that a setting names by its variable stands."""

    def keywords(self) -> dict[str, Any]:
        """As keywords of ``fit`` and ``Session``.  Raises InvalidSetting."""
        found = {key: value for key, value in self.values.items() if key not in LIMITS}
        found.pop("plugins", None)
        limits = {key: value for key, value in self.values.items() if key in LIMITS}
        if limits:
            found["limits"] = Limits(**limits)
        found = built(found, self.env)
        if self.strategies:
            found["extra_strategies"] = self.strategies
        return found


def load(folder: str | os.PathLike[str] = ".", env: Mapping[str, str] | None = None) -> Loaded:
    """Settings that hold in a folder, later ones winning key by key: the user's
    ``~/.config/trimtab/trimtab.toml`` (``XDG_CONFIG_HOME``), then the project's, which is the
    nearest ``trimtab.toml`` or ``[tool.trimtab]`` of a ``pyproject.toml`` upwards from the folder,
    then the environment (``TRIMTAB_WINDOW=128k``, ``TRIMTAB_DUPLICATES_ENABLED=false``).

    Raises InvalidSetting where a file cannot be read or a value is of the wrong kind.
    """
    env = os.environ if env is None else env
    loaded = Loaded(env=env)
    for file, table in _tables(folder, env):
        loaded.sources.append(str(file))
        _take(loaded, table, str(file))
    if from_env := dict(_from_env(env, loaded)):
        loaded.sources.append("the environment")
        _merge(loaded.values, from_env)
    if loaded.values.get("plugins", True):
        loaded.strategies = installed_strategies(loaded.problems)
    return loaded


def from_table(table: Mapping[str, Any], source: str) -> Loaded:
    """What one table says, as another program's file may hold one.  Raises InvalidSetting."""
    loaded = Loaded(sources=[source])
    _take(loaded, table, source)
    return loaded


def load_settings(
    folder: str | os.PathLike[str] = ".", env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Settings from files and environment, as keywords: ``fit(request, **load_settings())``.

    What is not understood is a warning of the logger "trimtab".  Raises InvalidSetting.
    """
    from trimtab.telling.log import logger

    loaded = load(folder, env)
    for problem in loaded.problems:
        logger().warning("%s", problem)
    return loaded.keywords()


# --- files -------------------------------------------------------------------------------------


def _tables(
    start: str | os.PathLike[str], env: Mapping[str, str]
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    from pathlib import Path

    home = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    own = Path(home) / "trimtab" / "trimtab.toml"
    if home and own.is_file():
        yield own, _toml(own)
    folder = Path(start).resolve()
    for place in (folder, *folder.parents):
        file = place / "trimtab.toml"
        if file.is_file() and file != own:
            yield file, _toml(file)
            return
        file = place / "pyproject.toml"
        if file.is_file():
            tools = _toml(file).get("tool")
            table = tools.get("trimtab") if isinstance(tools, dict) else None
            if isinstance(table, dict):
                yield file, table
                return


def _toml(file: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{file}: {error}; mend or remove it") from error


def _take(loaded: Loaded, table: Mapping[str, Any], source: str) -> None:
    _merge(loaded.values, dict(_read(table, KEYS, source, "", loaded.problems)))


def _merge(values: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _merge(values.setdefault(key, {}), value)
        else:
            values[key] = value


def _read(
    table: Mapping[str, Any],
    keys: Mapping[str, Any],
    source: str,
    within: str,
    problems: list[str],
) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = name.replace("-", "_")
        known = keys.get(key)
        if known is None:
            problems.append(_unknown(source, f"{within}{name}", key, keys, within))
        elif isinstance(known, Key):
            yield key, _value(known, value, source, f"{within}{name}")
        elif isinstance(value, dict):
            yield key, dict(_read(value, known, source, f"{within}{name}.", problems))
        else:
            raise _wrong(source, f"{within}{name}", "a table", value)


def _value(key: Key, value: Any, source: str, name: str) -> Any:
    try:
        return key.read(value)
    except (ValueError, TypeError):
        raise _wrong(source, name, key.expected, value) from None


def _wrong(source: str, name: str, expected: str, value: Any) -> InvalidSetting:
    return InvalidSetting(
        f"{source}: {name}: expected {expected}, got {value!r} ({type(value).__name__})"
    )


def _unknown(source: str, name: str, key: str, keys: Mapping[str, Any], within: str) -> str:
    near = get_close_matches(key, list(keys), n=1)
    hint = f"; did you mean {within}{near[0]}?" if near else ""
    return f"{source}: unknown key {name}{hint}"


# --- environment -------------------------------------------------------------------------------


def _from_env(env: Mapping[str, str], loaded: Loaded) -> Iterator[tuple[str, Any]]:
    names: dict[str, tuple[str, str, Key]] = {}
    for key, known in KEYS.items():
        if isinstance(known, Key):
            names[f"{PREFIX}{key.upper()}"] = (key, "", known)
        else:
            for inner, taken in known.items():
                names[f"{PREFIX}{key.upper()}_{inner.upper()}"] = (key, inner, taken)
    found: dict[str, Any] = {}
    for name in sorted(env):
        if not name.startswith(PREFIX) or name in _NOT_SETTINGS or not env[name]:
            continue
        if name not in names:
            near = get_close_matches(name, list(names), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            loaded.problems.append(f"the environment: unknown variable {name}{hint}")
            continue
        key, inner, taken = names[name]
        given: Any = env[name]
        if taken is NAMES:
            given = [item.strip() for item in given.split(",") if item.strip()]
        value = _value(taken, given, "the environment", name)
        if inner:
            found.setdefault(key, {})[inner] = value
        else:
            found[key] = value
    yield from found.items()


# --- other packages ----------------------------------------------------------------------------


def installed_strategies(problems: list[str]) -> tuple[Strategy, ...]:
    """Strategies of installed packages, by the names of their entry points; those that cannot be
    loaded are named in ``problems``."""
    from importlib import metadata

    found: list[Strategy] = []
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        try:
            value = point.load()
            given = [value] if callable(value) else list(value)
            if odd := [one for one in given if not callable(one)]:
                raise TypeError(f"{odd[0]!r} is no function from a block to offers")
        except Exception as error:  # whatever another package does
            problems.append(f"strategy {point.name} ({point.value}): {error}; left out")
        else:
            found += given
    return tuple(found)
