"""Finds the target behind a name: ``module:function``, ``messages:module:function``,
``langchain:module:factory`` or a URL."""

from __future__ import annotations

from trimtab_lab.loading import load
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
