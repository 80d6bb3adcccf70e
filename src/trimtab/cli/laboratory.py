"""The commands that the laboratory brings, loaded when they are called."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module
from typing import Any


def command(name: str) -> Any:
    """The module of a command of ``trimtab_lab``.  Nothing of the library imports it by name."""
    return import_module(f"trimtab_lab.commands.{name}")


def options(name: str) -> Callable[[ArgumentParser], None]:
    """What adds the options of this command to a parser."""
    return lambda parser: command(name).add(parser)
