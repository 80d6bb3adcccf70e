"""Finds what a user names on the command line: ``module:name`` or ``file.py:name``."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

from trimtab.errors import InvalidSetting


def load(name: str) -> Callable[..., Any]:
    """The object behind ``module:name`` (the current folder first) or ``file.py:name``.

    Raises InvalidSetting.
    """
    module, _, path = name.partition(":")
    if not module or not path:
        raise InvalidSetting(f"{name!r} names no target: give module:function, or a URL")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        first, *rest = path.split(".")
        if module.endswith(".py"):
            value: Any = runpy.run_path(module)[first]
        else:
            value = getattr(importlib.import_module(module), first)
        for part in rest:
            value = getattr(value, part)
    except Exception as error:  # importing the user's module may raise anything
        said = f"{type(error).__name__}: {error}"
        raise InvalidSetting(f"{name!r} cannot be loaded: {said}") from error
    if not callable(value):
        raise InvalidSetting(f"{name!r} is not callable")
    loaded: Callable[..., Any] = value
    return loaded
