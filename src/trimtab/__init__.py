"""trimtab makes a request fit its model and keeps every original.

``fit`` and ``Session`` are what most programs need; ``wrap`` does the same for an SDK's client.
A name is loaded when it is first used, so importing costs next to nothing.
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
    from trimtab import retry as retry
    from trimtab import settings as settings
    from trimtab import stores as stores
    from trimtab import testing as testing
    from trimtab.api import check, count_tokens, fit, repair
    from trimtab.clients.wrapped_clients import of
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
    from trimtab.formats.detect import detect
    from trimtab.reducers.articles.article import ArticleRule
    from trimtab.reporting.measured import measure
    from trimtab.request.fitted import Fitted
    from trimtab.session import Session
    from trimtab.sessions.note_tool import note_tool
    from trimtab.sessions.recall_tool import recall_tool
    from trimtab.settings import Settings
    from trimtab.summarizers.endpoint import Endpoint
    from trimtab.summarizers.summarizer import Summarizer

    __version__: str

_WHERE = {
    "api": ("check", "count_tokens", "fit", "repair"),
    "clients.wrapped_clients": ("of",),
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
_PARTS = (
    "batch", "clients", "conversion", "errors", "events", "report", "retry", "settings", "stores",
    "testing",
)  # fmt: skip
"""Modules that are public as a whole."""

if not TYPE_CHECKING:  # so that a type checker catches a misspelt name

    def __getattr__(name):
        from importlib import import_module

        if name == "__version__":
            return _installed_version()
        if name not in _PARTS and name not in _MODULE:
            raise AttributeError(f"trimtab has no attribute {name!r}{_meant(name)}")
        with forking.loading:
            if name in _PARTS:
                return import_module(f"trimtab.{name}")
            value = globals()[name] = getattr(import_module(f"trimtab.{_MODULE[name]}"), name)
        return value


def _meant(name: str) -> str:
    """The public name that somebody probably meant, as the end of an error."""
    if name.startswith("_"):
        return ""
    from trimtab.suggestions import nearest

    fits = dict.fromkeys(("compact", "compress", "shrink", "trim", "truncate"), "fit")
    others = {
        "transports": "clients", "flow": "retry.flow", "refusals": "retry.refusals",
        "history": "of(client).history", "report_of": "of(client).report",
        "recall": "of(client).recall, or Session.recall",
    }  # fmt: skip
    meant = {**fits, **others}.get(name)
    return f"; did you mean {meant}?" if meant else nearest(name, [*__all__, *_PARTS])


def _installed_version() -> str:
    """The version that was installed; "0+unknown" in a tree that was not."""
    from importlib import metadata

    try:
        return metadata.version("trimtab")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *_MODULE, *_PARTS, "__version__"})


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
    "count_tokens",
    "detect",
    "fit",
    "load_settings",
    "measure",
    "note_tool",
    "of",
    "recall_tool",
    "repair",
    "wrap",
]
