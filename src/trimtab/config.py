"""Loads settings from files and the environment, for the command line and for programs.

This file knows where settings are read from and in which order they override each other;
``settings`` declares them.  ``fit`` reads none of this: pass it what was loaded as ``settings``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trimtab.errors import InvalidSetting, expect
from trimtab.reducers import Reducer
from trimtab.setting_kinds import Declared, readable
from trimtab.settings import Settings
from trimtab.suggestions import nearest

if TYPE_CHECKING:  # it loads urllib
    from pathlib import Path

GROUP = "trimtab.reducers"
"""Entry points of other packages: a reducer each, or a sequence of them."""
PREFIX = "TRIMTAB_"
SENDS = "summarizer"
"""The table that names an address which gets conversations."""
_NOT_SETTINGS = tuple(
    f"{PREFIX}{name}" for name in ("TRACEBACK", "PEERS", "DATA", "PROXY", "STATUS", "STORE")
)
"""Prefixes of variables that are not settings of ``fit``."""


@dataclass
class Loaded:
    """``values`` by key; ``sources`` in the order they were read; ``problems``: one line for each
    unknown key and each package whose reducers could not be loaded."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    reducers: tuple[Reducer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment, for settings that name the variable with a key."""

    def settings(self) -> Settings:
        """The loaded values as ``Settings``.  Raises InvalidSetting for an incomplete table,
        MissingExtra for a missing package."""
        values = dict(self.values)
        for name, table in values.items():
            if (build := SETTINGS[name].kind.build) is not None:
                values[name] = build(table, self.env)
        if self.reducers:
            values["extra_reducers"] = self.reducers
        return Settings(**values)


SETTINGS = readable(Settings)


_FOLDER = "the folder of trimtab.toml, or one below it"


def load(
    folder: str | os.PathLike[str] = ".",
    env: Mapping[str, str] | None = None,
    *,
    trusts_project: bool = True,
) -> Loaded:
    """The settings that apply in a folder.  Later sources override earlier ones, key by key:

    - the user's ``~/.config/trimtab/trimtab.toml`` (``XDG_CONFIG_HOME``);
    - the project's: the nearest ``trimtab.toml`` or ``[tool.trimtab]`` of a ``pyproject.toml``,
      upwards from the folder;
    - the environment (``TRIMTAB_WINDOW=128k``, ``TRIMTAB_DUPLICATES_ENABLED=false``).

    ``trusts_project``: False for commands, which may be run in a repository of somebody else: its
    file cannot name a summarizer, which would get the conversation and the value of a variable.

    Raises InvalidSetting if it is not a folder, a file cannot be read, or a value is of the wrong
    kind.
    """
    env = os.environ if env is None else env
    loaded = Loaded(env=env)
    for file, table, is_users in _tables(folder, env):
        loaded.sources.append(str(file))
        if SENDS in table and not trusts_project and not is_users:
            table = {key: value for key, value in table.items() if key != SENDS}
            loaded.problems.append(
                f"{file}: [{SENDS}] of a project is not used by commands, since it says where "
                "conversations are sent: put it into ~/.config/trimtab/trimtab.toml"
            )
        _take(loaded, table, str(file))
    from_env = from_environment(env, SETTINGS, loaded.problems, passed_over=_NOT_SETTINGS)
    if from_env:
        loaded.sources.append("the environment")
        merge(loaded.values, from_env)
    if loaded.values.get("plugins", True):
        loaded.reducers = installed_reducers(loaded.problems)
    return loaded


def load_settings(
    folder: str | os.PathLike[str] = ".", env: Mapping[str, str] | None = None
) -> Settings:
    """Settings from files and environment: ``fit(request, settings=load_settings())``.

    Unknown keys become warnings of the logger "trimtab".  Raises InvalidSetting.
    """
    from trimtab.telemetry import logger

    loaded = load(folder, env)
    for problem in loaded.problems:
        logger().warning("%s", problem)
    return loaded.settings()


# --- files -------------------------------------------------------------------------------------


def _tables(
    start: str | os.PathLike[str], env: Mapping[str, str]
) -> Iterator[tuple[Path, Mapping[str, Any], bool]]:
    """Each file with its table, and whether it is the user's own rather than the project's."""
    from pathlib import Path

    expect(_is_path(start) and Path(start).is_dir(), "folder", start, _FOLDER)
    user = env.get("HOME") or env.get("USERPROFILE")  # the latter on Windows
    home = env.get("XDG_CONFIG_HOME") or (f"{user}/.config" if user else "")
    users_file = Path(home) / "trimtab" / "trimtab.toml"
    if home and users_file.is_file():
        yield users_file, _toml(users_file), True
    folder = Path(start).resolve()
    for place in (folder, *folder.parents):
        file = place / "trimtab.toml"
        if file.is_file() and file != users_file:
            yield file, _toml(file), False
            return
        file = place / "pyproject.toml"
        if file.is_file():
            tools = _toml(file).get("tool")
            table = tools.get("trimtab") if isinstance(tools, dict) else None
            if isinstance(table, dict):
                yield file, table, False
                return


def _is_path(value: Any) -> bool:
    try:
        return isinstance(os.fspath(value), str) and b"\0" not in os.fsencode(value)
    except (TypeError, ValueError):
        return False


def _toml(file: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{file}: {error}; correct or remove it") from error


def _take(loaded: Loaded, table: Mapping[str, Any], source: str) -> None:
    merge(loaded.values, dict(read_table(table, SETTINGS, source, loaded.problems)))


def merge(values: dict[str, Any], others: Mapping[str, Any]) -> None:
    """Override values by others; tables are merged key by key."""
    for key, value in others.items():
        if isinstance(value, dict):
            merge(values.setdefault(key, {}), value)
        else:
            values[key] = value


def read_table(
    table: Mapping[str, Any],
    settings: Mapping[str, Declared],
    source: str,
    problems: list[str],
    within: str = "",
) -> Iterator[tuple[str, Any]]:
    """The values of a table by key.  Raises InvalidSetting for one of the wrong kind."""
    for name, value in table.items():
        key = name.replace("-", "_")
        if key not in settings:
            hint = nearest(key, settings.keys(), within)
            problems.append(f"{source}: unknown key {within}{name}{hint}")
            continue
        keys = settings[key].kind.keys
        if keys is None:
            yield key, read_value(settings[key], value, f"{source}: {within}{name}")
        elif isinstance(value, dict):
            yield key, dict(read_table(value, keys, source, problems, f"{within}{name}."))
        else:
            raise _wrong(f"{source}: {within}{name}", "a table", value)


def read_value(setting: Declared, value: Any, where: str) -> Any:
    """The value of one setting.  Raises InvalidSetting, which names its source."""
    try:
        return setting.kind.read(value) if setting.kind.read else value
    except (ValueError, TypeError):
        raise _wrong(where, setting.kind.expected, value) from None


def _wrong(where: str, expected: str, value: Any) -> InvalidSetting:
    kind = "" if isinstance(value, str) else f" ({type(value).__name__})"  # quotes say it is text
    return InvalidSetting(f"{where}: expected {expected}, got {value!r}{kind}")


# --- environment -------------------------------------------------------------------------------


def leaves(settings: Mapping[str, Declared]) -> Iterator[tuple[tuple[str, ...], Declared]]:
    """Every key that holds a value, with its path, also within tables."""
    for name, setting in settings.items():
        if setting.kind.keys is None:
            yield (name,), setting
        else:
            yield from (((name, *path), inner) for path, inner in leaves(setting.kind.keys))


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """``{"a": {"b": value}}`` for the path ``("a", "b")``."""
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def variable(path: tuple[str, ...], prefix: str = PREFIX) -> str:
    """The name of the variable for a key."""
    return prefix + "_".join(path).upper()


def from_environment(
    env: Mapping[str, str],
    settings: Mapping[str, Declared],
    problems: list[str],
    prefix: str = PREFIX,
    passed_over: Sequence[str] = (),
) -> dict[str, Any]:
    """The values of the variables with a prefix, nested as in a file.

    ``passed_over``: prefixes of variables that are not settings.  Raises InvalidSetting.
    """
    names = {variable(path, prefix): (path, setting) for path, setting in leaves(settings)}
    values: dict[str, Any] = {}
    for name in sorted(env):
        if not name.startswith(prefix) or not env[name]:
            continue
        if name not in names:
            if not name.startswith(tuple(passed_over)):
                hint = nearest(name, names.keys())
                problems.append(f"the environment: unknown variable {name}{hint}")
            continue
        path, setting = names[name]
        text: Any = env[name]
        if setting.kind.is_list:
            text = [item.strip() for item in text.split(",") if item.strip()]
        merge(values, nested(path, read_value(setting, text, f"the environment: {name}")))
    return values


# --- other packages ----------------------------------------------------------------------------


def installed_reducers(problems: list[str]) -> tuple[Reducer, ...]:
    """Reducers of installed packages, by the names of their entry points; those that cannot be
    loaded are named in ``problems``."""
    from importlib import metadata

    reducers: list[Reducer] = []
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        try:
            value = point.load()
            functions = [value] if callable(value) else list(value)
            if odd := [reducer for reducer in functions if not callable(reducer)]:
                raise TypeError(f"{odd[0]!r} is no function from a block to offers")
        except Exception as error:  # whatever another package does
            problems.append(f"reducer {point.name} ({point.value}): {error}; left out")
        else:
            reducers += functions
    return tuple(reducers)
