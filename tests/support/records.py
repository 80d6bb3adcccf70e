"""Where the recorded transcripts are, and how a record becomes a request.

Knows the layout of the data folder (gzipped JSON lines, one record a line) and what each format
wants put back.  Does not know the library.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import judge

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["FORMATS", "Record", "before_last_turn", "body", "folder", "judge", "records"]
FORMATS = ("openai-chat", "anthropic")

Record = dict[str, Any]


def folder() -> Path | None:
    """TRIMTAB_DATA, or the folder beside the repository; None when there is neither."""
    named = os.environ.get("TRIMTAB_DATA")
    found = Path(named) if named else ROOT.parent / "shared" / "data"
    return found if any(found.glob("*.jsonl.gz")) else None


def records(*formats: str) -> Iterator[tuple[str, Record]]:
    """(file stem, record) of the given formats, in file order."""
    where = folder()
    for path in sorted(where.glob("*.jsonl.gz")) if where else []:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record["format"] in formats:
                    yield path.name.removesuffix(".jsonl.gz"), record


def body(record: Record) -> dict[str, Any]:
    """The request as it went out: system, tools, parameters and model put back."""
    request: dict[str, Any] = dict(record["meta"].get("params") or {})
    if record.get("model"):
        request.setdefault("model", record["model"])
    if record.get("tools") is not None:
        request["tools"] = record["tools"]
    messages = record["messages"]
    if record.get("system") is not None:
        if record["format"] == "anthropic":
            request["system"] = record["system"]
        else:
            messages = [{"role": "system", "content": record["system"]}, *messages]
    request["messages"] = messages
    return request


def before_last_turn(request: dict[str, Any]) -> dict[str, Any] | None:
    """The request that the last assistant turn answered; None when nothing stands before it."""
    messages = request["messages"]
    spoken = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    if not spoken:
        return request
    cut = spoken[-1]
    while cut > 0 and messages[cut - 1]["role"] == "assistant":
        cut -= 1  # consecutive assistant messages are one turn
    return {**request, "messages": messages[:cut]} if cut else None
