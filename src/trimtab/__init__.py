"""trimtab makes a request fit its model and keeps every original.

``fit``, ``Session``, ``check``, ``repair`` and ``convert`` are the whole of it.  Knows where each
public name lives; a name is loaded when it is first used, so importing costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.api import check, fit, repair
    from trimtab.asking.embedding import EmbeddingRanker
    from trimtab.asking.endpoint import Endpoint
    from trimtab.asking.summarizer import Summarizer
    from trimtab.config import load_settings
    from trimtab.conversion import Converted, Loss, convert
    from trimtab.errors import (
        CannotFit,
        InvalidRequest,
        InvalidSetting,
        MissingExtra,
        NotAccepted,
        TrimtabError,
        UnknownHandle,
    )
    from trimtab.fitted import Fitted
    from trimtab.formats.detect import Detected, detect
    from trimtab.model import Limits
    from trimtab.reading.history import Duplicates, FailedInputs
    from trimtab.rules import Violation
    from trimtab.session import Session
    from trimtab.strategies.retrieval.article import ArticleRule
    from trimtab.telling.events import EditEvent, Event, FitEvent, RefusalEvent, RetryEvent
    from trimtab.telling.report import Report, ReportEdit, ReportRepair
    from trimtab.telling.sizes import Measured, MeasuredBlock, measure
    from trimtab.tokens import Counter
    from trimtab.transports.wrapping import wrap
    from trimtab.turns.recalling import RecallTool, recall_tool

__version__ = "0.1.0"

_WHERE = {
    "api": ("check", "fit", "repair"),
    "config": ("load_settings",),
    "conversion": ("Converted", "Loss", "convert"),
    "asking.endpoint": ("Endpoint",),
    "errors": (
        "CannotFit",
        "InvalidRequest",
        "InvalidSetting",
        "MissingExtra",
        "NotAccepted",
        "TrimtabError",
        "UnknownHandle",
    ),
    "telling.events": ("EditEvent", "Event", "FitEvent", "RefusalEvent", "RetryEvent"),
    "fitted": ("Fitted",),
    "formats.detect": ("Detected", "detect"),
    "reading.history": ("Duplicates", "FailedInputs"),
    "model": ("Limits",),
    "turns.recalling": ("RecallTool", "recall_tool"),
    "telling.report": ("Report", "ReportEdit", "ReportRepair"),
    "rules": ("Violation",),
    "session": ("Session",),
    "telling.sizes": ("Measured", "MeasuredBlock", "measure"),
    "strategies.retrieval.article": ("ArticleRule",),
    "asking.embedding": ("EmbeddingRanker",),
    "asking.summarizer": ("Summarizer",),
    "tokens": ("Counter",),
    "transports.wrapping": ("wrap",),
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}
_PARTS = ("refusals", "replay", "testing", "transports")
"""Packages of their own that are public as a whole."""


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"trimtab.{name}")
    if name not in _MODULE:
        raise AttributeError(f"module 'trimtab' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"trimtab.{_MODULE[name]}"), name)
    return value


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
    "Limits",
    "Loss",
    "Measured",
    "MeasuredBlock",
    "MissingExtra",
    "NotAccepted",
    "RecallTool",
    "RefusalEvent",
    "Report",
    "ReportEdit",
    "ReportRepair",
    "RetryEvent",
    "Session",
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
