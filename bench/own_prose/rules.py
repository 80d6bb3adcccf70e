"""What users write: rules, corrections and exceptions, each with the pieces that must survive."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("rules.jsonl")
KINDS = (
    "short", "long", "wrapped", "list", "no_modal", "preference", "correction", "exception",
)  # fmt: skip
CONPACT = "conpact"
"""The kind of the side constraints of the package of that name."""


@dataclass(frozen=True)
class Written:
    """A text that the user wrote; all its ``needles`` must be found for it to be kept.

    A list's needles are its heading and its items, a wrapped sentence's its lines.  ``corrects``:
    the text that a correction corrects, "" for all else.
    """

    language: str
    kind: str
    text: str
    needles: tuple[str, ...]
    corrects: str = ""


def load() -> list[Written]:
    """The rules of ``rules.jsonl``, in its order."""
    rows = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
    return [
        Written(row["language"], row["kind"], row["text"], tuple(row["needles"]),
                row.get("corrects", ""))
        for row in rows
    ]  # fmt: skip


def load_conpact() -> list[Written]:
    """The 15 side constraints of the PyPI package conpact (Zhiqi Wang, MIT license), read from
    where it is installed; none where it is not.

    Only its file of constraints is run: the package itself imports a client and data sets.
    """
    package = importlib.util.find_spec(CONPACT)
    if package is None or package.origin is None:
        return []
    file = Path(package.origin).with_name("constraints.py")
    spec = importlib.util.spec_from_file_location("conpact_constraints", file)
    if spec is None or spec.loader is None or not file.exists():
        return []
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts = [str(row["sc"]) for row in module.SCS]
    return [Written("English", CONPACT, text, (text,)) for text in texts]


def half(rules: Iterable[Written], held_out: bool) -> list[Written]:
    """Every second rule of each language and kind: those that are run by default, or the others."""
    seen, found = Counter[tuple[str, str]](), list[Written]()
    for rule in rules:
        key = rule.language, rule.kind
        if seen[key] % 2 == held_out:
            found.append(rule)
        seen[key] += 1
    return found
