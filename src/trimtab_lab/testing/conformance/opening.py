"""Finds the target behind a name: ``module:function``, ``messages:module:function``,
``langchain:module:factory`` or a URL."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab_lab.testing.conformance.callable_target import CallableTarget
from trimtab_lab.testing.conformance.gateway import Gateway
from trimtab_lab.testing.conformance.langchain_target import LangChainMiddleware
from trimtab_lab.testing.conformance.targets import Target, TargetOptions


def open_target(name: str, options: TargetOptions) -> Target:
    """The target of this name.  Raises InvalidSetting, MissingExtra."""
    kind, _, rest = name.partition(":")
    if kind in ("http", "https"):
        return Gateway(name, options)
    if kind == "langchain":
        return LangChainMiddleware(name, load(rest), options)
    if kind == "messages":
        return CallableTarget(name, load(rest), options, bare=True)
    return CallableTarget(name, load(name), options)


def load(name: str) -> Callable[..., Any]:
    """The object behind ``module:name``, the current folder first.  Raises InvalidSetting."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise InvalidSetting(f"{name!r} names no target: give module:function, or a URL")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except Exception as error:  # importing the user's module may raise anything
        said = f"{type(error).__name__}: {error}"
        raise InvalidSetting(f"{name!r} cannot be loaded: {said}") from error
    if not callable(value):
        raise InvalidSetting(f"{name!r} is not callable")
    loaded: Callable[..., Any] = value
    return loaded
