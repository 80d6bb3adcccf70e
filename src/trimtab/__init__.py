"""trimtab makes a request fit its model and keeps every original.

``fit``, ``Session``, ``check``, ``repair`` and ``convert`` are the whole of it.  A name is
loaded when it is first used, so importing costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab import forking

if TYPE_CHECKING:
    from trimtab import batch as batch
    from trimtab import clients as clients
    from trimtab import conversion as conversion
    from trimtab import errors as errors
    from trimtab import events as events
    from trimtab import report as report
    from trimtab import settings as settings
    from trimtab import stores as stores
    from trimtab import testing as testing
    from trimtab.api import check, fit, repair
    from trimtab.clients.wrapping import wrap
    from trimtab.config import load_settings
    from trimtab.conversion import convert
    from trimtab.errors import (
        CannotFit,
        InvalidRequest,
        InvalidSetting,
        StoreError,
        TrimtabError,
        UnknownHandle,
    )
    from trimtab.formats import rules as rules
    from trimtab.formats.detect import detect
    from trimtab.reducers.articles.article import ArticleRule
    from trimtab.reporting.measured import measure
    from trimtab.request.fitted import Fitted
    from trimtab.retry import flow as flow
    from trimtab.retry import refusals as refusals
    from trimtab.session import Session
    from trimtab.sessions.note_tool import note_tool
    from trimtab.sessions.recall_tool import recall_tool
    from trimtab.settings import Settings
    from trimtab.summarizers.endpoint import Endpoint
    from trimtab.summarizers.summarizer import Summarizer

    __version__: str
    transports = clients

_WHERE = {
    "api": ("check", "fit", "repair"),
    "clients.wrapping": ("wrap",),
    "config": ("load_settings",),
    "conversion": ("convert",),
    "errors": (
        "CannotFit", "InvalidRequest", "InvalidSetting", "StoreError", "TrimtabError",
        "UnknownHandle",
    ),
    "request.fitted": ("Fitted",),
    "reducers.articles.article": ("ArticleRule",),
    "reporting.measured": ("measure",),
    "session": ("Session",),
    "sessions.note_tool": ("note_tool",),
    "sessions.recall_tool": ("recall_tool",),
    "settings": ("Settings",),
    "summarizers.endpoint": ("Endpoint",),
    "summarizers.summarizer": ("Summarizer",),
    "formats.detect": ("detect",),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}
_PARTS = {
    **{name: name for name in (
        "batch", "clients", "conversion", "errors", "events", "report",
        "settings", "stores", "testing",
    )},
    "flow": "retry.flow",
    "refusals": "retry.refusals",
    "rules": "formats.rules",
    "transports": "clients",
}  # fmt: skip
"""Modules that are public as a whole: the name users say, and where it lives."""

if not TYPE_CHECKING:  # so that a type checker catches a misspelt name

    def __getattr__(name):
        from importlib import import_module

        if name == "__version__":
            return _installed_version()
        if name not in _PARTS and name not in _MODULE:
            raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
        with forking.loading:
            if name in _PARTS:
                return import_module(f"trimtab.{_PARTS[name]}")
            value = globals()[name] = getattr(import_module(f"trimtab.{_MODULE[name]}"), name)
        return value


def _installed_version() -> str:
    """The version that was installed; "0+unknown" in a tree that was not."""
    from importlib import metadata

    try:
        return metadata.version("trimtab")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE, *_PARTS})


__all__ = [
    "ArticleRule",
    "CannotFit",
    "Endpoint",
    "Fitted",
    "InvalidRequest",
    "InvalidSetting",
    "Session",
    "Settings",
    "StoreError",
    "Summarizer",
    "TrimtabError",
    "UnknownHandle",
    "check",
    "convert",
    "detect",
    "fit",
    "load_settings",
    "measure",
    "note_tool",
    "recall_tool",
    "repair",
    "wrap",
]
