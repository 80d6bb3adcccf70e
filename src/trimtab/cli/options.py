"""Options that commands share: the request, and one for every declared setting."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab import amounts, config
from trimtab.config import SETTINGS
from trimtab.setting_kinds import Declared


def add_request(parser: ArgumentParser, *settings: str) -> None:
    """FILE, and the options of some settings."""
    add_file(parser)
    add_settings(parser, {name: SETTINGS[name] for name in settings})


def add_file(parser: ArgumentParser) -> None:
    """FILE."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE",
        help="a request as JSON or a session log; standard input if none is named",
    )  # fmt: skip


def add_output(parser: Any) -> None:
    """--output FILE."""
    parser.add_argument(
        "-o", "--output", metavar="OUT",
        help="file for the request (default: standard output, unless that is a terminal)",
    )  # fmt: skip


def add_settings(parser: ArgumentParser, settings: Mapping[str, Declared]) -> None:
    """An option for each setting, those of a table too: ``--duplicates-enabled``."""
    group: Any = parser
    heading = ""
    for name, declared in settings.items():
        if declared.group != heading and declared.kind.keys is None:
            heading = declared.group
            group = parser.add_argument_group(heading.lower())
        if declared.kind.keys is not None:
            group = parser.add_argument_group(f"{name}: {declared.help}".replace("%", "%%"))
        for path, leaf in config.leaves({name: declared}):
            if not leaf.kind.is_secret:
                _add(group, path, leaf)


def _add(group: Any, path: tuple[str, ...], declared: Declared) -> None:
    kind = declared.kind
    how: dict[str, Any] = {"dest": _dest(path), "help": declared.help.replace("%", "%%")}
    if kind.is_flag:
        how["action"] = BooleanOptionalAction
    elif kind.choices:
        how["choices"] = kind.choices
    elif kind.is_list:
        how |= {"action": "append", "metavar": kind.metavar}
        how["help"] += "; may be repeated"
    else:
        how["metavar"] = kind.metavar
    group.add_argument(option(path), **how)


def option(path: Iterable[str]) -> str:
    """``--duplicates-enabled`` for the path of a setting."""
    return "--" + "-".join(path).replace("_", "-")


def _dest(path: Iterable[str]) -> str:
    return "setting " + ".".join(path)


def given_settings(args: Namespace, settings: Mapping[str, Declared]) -> dict[str, Any]:
    """The settings given as options, nested as in a settings file.  Raises InvalidSetting."""
    values: dict[str, Any] = {}
    for path, declared in config.leaves(settings):
        value = getattr(args, _dest(path), None)
        if value is not None:
            config.merge(
                values, config.nested(path, config.read_value(declared, value, option(path)))
            )
    return values


def given_options(args: Namespace, settings: Mapping[str, Declared]) -> list[str]:
    """The options of these settings that were given, as they are typed."""
    paths = (path for path, _ in config.leaves(settings))
    return [option(path) for path in paths if getattr(args, _dest(path), None) is not None]


def add_no_config(parser: ArgumentParser) -> None:
    """--no-config."""
    parser.add_argument(
        "--no-config", action="store_true",
        help="read no trimtab.toml, no pyproject.toml and no TRIMTAB_* variables",
    )  # fmt: skip


def loaded_settings(args: Namespace) -> config.Loaded:
    """Settings of files and environment, unless ``--no-config``; options override them."""
    loaded = config.Loaded(env=os.environ) if args.no_config else config.load(trusts_project=False)
    config.merge(loaded.values, given_settings(args, SETTINGS))
    return loaded


def setting(args: Namespace, name: str) -> Any:
    """The value of one option; None if it was not given.  Raises InvalidSetting."""
    return given_settings(args, {name: SETTINGS[name]}).get(name)


def amount(text: str) -> int:
    """``"32k"`` → 32_000."""
    try:
        return amounts.amount(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def amounts_of(text: str) -> list[int]:
    """``"60k,100k"`` → [60_000, 100_000]."""
    return [amount(part) for part in text.split(",") if part.strip()]
