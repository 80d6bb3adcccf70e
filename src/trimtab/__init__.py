"""trimtab makes a request fit its model and keeps every original.

``fit``, ``Session``, ``check``, ``repair`` and ``convert`` are the whole of it.  Knows where each
public name lives; a name is loaded when it is first used, so importing costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from trimtab.api import check, fit, repair
    from trimtab.clients.wrapping import wrap
    from trimtab.config import load_settings
    from trimtab.conversion import Converted, Loss, convert
    from trimtab.errors import (
        CannotFit,
        InvalidRequest,
        InvalidSetting,
        MissingExtra,
        NotAccepted,
        NotAClient,
        StoreError,
        TrimtabError,
        UnknownHandle,
    )
    from trimtab.events import EditEvent, Event, FitEvent, RefusalEvent, RetryEvent
    from trimtab.fitted import Fitted
    from trimtab.planning.redundancy import Duplicates, FailedInputs
    from trimtab.reducers.articles.article import ArticleRule
    from trimtab.reducers.articles.embedding import EmbeddingRanker
    from trimtab.report import Report, ReportEdit, ReportRepair
    from trimtab.reporting.measured import Measured, MeasuredBlock, measure
    from trimtab.rules import Violation
    from trimtab.session import Session
    from trimtab.sessions.recall_tool import RecallTool, recall_tool
    from trimtab.settings import Settings
    from trimtab.summarizers.endpoint import Endpoint
    from trimtab.summarizers.summarizer import Summarizer
    from trimtab.transcript.tokens import Counter
    from trimtab.wire.detect import Detected, detect

_WHERE = {
    "api": ("check", "fit", "repair"),
    "config": ("load_settings",),
    "conversion": ("Converted", "Loss", "convert"),
    "summarizers.endpoint": ("Endpoint",),
    "errors": (
        "CannotFit",
        "InvalidRequest",
        "InvalidSetting",
        "MissingExtra",
        "NotAClient",
        "NotAccepted",
        "StoreError",
        "TrimtabError",
        "UnknownHandle",
    ),
    "events": ("EditEvent", "Event", "FitEvent", "RefusalEvent", "RetryEvent"),
    "fitted": ("Fitted",),
    "wire.detect": ("Detected", "detect"),
    "planning.redundancy": ("Duplicates", "FailedInputs"),
    "sessions.recall_tool": ("RecallTool", "recall_tool"),
    "report": ("Report", "ReportEdit", "ReportRepair"),
    "rules": ("Violation",),
    "session": ("Session",),
    "settings": ("Settings",),
    "reporting.measured": ("Measured", "MeasuredBlock", "measure"),
    "reducers.articles.article": ("ArticleRule",),
    "reducers.articles.embedding": ("EmbeddingRanker",),
    "summarizers.summarizer": ("Summarizer",),
    "transcript.tokens": ("Counter",),
    "clients.wrapping": ("wrap",),
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}
_PARTS = {
    "batch": "batch",
    "clients": "clients",
    "flow": "retry.flow",
    "refusals": "retry.refusals",
    "replay": "replay",
    "stores": "stores",
    "testing": "testing",
    "transports": "clients",
}
"""Modules that are public as a whole: the name users say, and where it lives."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _installed_version()
    if name in _PARTS:
        return import_module(f"trimtab.{_PARTS[name]}")
    if name not in _MODULE:
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
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
    "Converted",
    "Counter",
    "Detected",
    "Duplicates",
    "EditEvent",
    "EmbeddingRanker",
    "Endpoint",
    "Event",
    "FailedInputs",
    "FitEvent",
    "Fitted",
    "InvalidRequest",
    "InvalidSetting",
    "Loss",
    "Measured",
    "MeasuredBlock",
    "MissingExtra",
    "NotAClient",
    "NotAccepted",
    "RecallTool",
    "RefusalEvent",
    "Report",
    "ReportEdit",
    "ReportRepair",
    "RetryEvent",
    "Session",
    "Settings",
    "StoreError",
    "Summarizer",
    "TrimtabError",
    "UnknownHandle",
    "Violation",
    "check",
    "convert",
    "detect",
    "fit",
    "load_settings",
    "measure",
    "recall_tool",
    "repair",
    "wrap",
]
