"""Prints how many answers survive when retrieval results are cut to a share of their tokens.

    python bench/retrieval.py [FOLDER]

FOLDER (or TRIMTAB_DATA, or ../shared/data beside the clone) holds rag-*.jsonl.gz: conversations
in which a tool gave articles, and where in them the answer stands.  An answer counts as kept if
its words stand verbatim in what is sent.  Counted in o200k; the window is the share.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import trimtab  # noqa: E402
from trimtab import ArticleRule  # noqa: E402

SHARES = (0.60, 0.50, 0.30, 0.15)
RULES = {
    "by relevance (default)": ArticleRule(),
    "just in time (design C)": ArticleRule.just_in_time(),
}


def folder(argument: str | None = None) -> Path:
    """Where the conversations are."""
    named = argument or os.environ.get("TRIMTAB_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def conversations(where: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file, record) of every retrieval conversation."""
    for path in sorted(where.glob("rag-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield path.name.removesuffix(".jsonl.gz"), json.loads(line)


@dataclass
class Kept:
    """How many of what was asked for stood in what was sent, by group."""

    yes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    of: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    over: int = 0
    seconds: float = 0.0
    tokens: int = 0

    def add(self, group: str, kept: bool) -> None:
        self.yes[group] += kept
        self.of[group] += 1

    def percent(self, group: str) -> float:
        return 100 * self.yes[group] / max(1, self.of[group])


def read(messages: list[dict[str, Any]]) -> str:
    """All tool results as the model reads them, JSON strings decoded."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, (dict, list)):
            for inner in value.values() if isinstance(value, dict) else value:
                walk(inner)

    for message in messages:
        if message["role"] == "tool":
            try:
                walk(json.loads(message["content"]))
            except ValueError:
                walk(message["content"])
    return "\x00".join(found)


def cut(record: dict[str, Any], share: float, rule: ArticleRule, kept: Kept) -> str:
    """What of one conversation the model reads at a share of its tokens."""
    request = {"model": "gpt-4o", "messages": record["messages"]}
    if record.get("tools"):
        request["tools"] = record["tools"]
    before = trimtab.fit(
        request, window=10**8, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    window = int(before * share)
    limits = trimtab.Settings(window=window, reserve=0, trigger=1.0, target=1.0)
    fresh = json.loads(json.dumps(request))
    started = time.process_time()
    fitted = trimtab.fit(fresh, settings=limits | trimtab.Settings(counter="o200k", articles=rule))
    kept.seconds += time.process_time() - started
    kept.tokens += before
    kept.over += fitted.report.tokens_after > window
    return read(fitted.request["messages"])


def judge(record: dict[str, Any], file: str, text: str, kept: Kept) -> None:
    """Whether answers, and for documentation whole passages, stand in the text."""
    gold = record["meta"]["gold"]
    for key in record["meta"]["keys"]:
        there = key in text
        kept.add("answers", there)
        kept.add(file, there)
        calls = {g["call"] for g in gold if len(record["meta"]["keys"]) == 1}
        if len(calls) == 1:
            call = calls.pop()
            kept.add("first call" if call == 0 else "later", there)
            kept.add("last call" if call == gold[0]["n_calls"] - 1 else "earlier", there)
    if file == "rag-docs":
        for passage in sorted({g["text"] for g in gold}):
            kept.add("passages", passage in text)


def measure(where: Path, rule: ArticleRule, share: float) -> Kept:
    """One rule at one share over all conversations."""
    kept = Kept()
    for file, record in conversations(where):
        judge(record, file, cut(record, share, rule, kept), kept)
    return kept


def main() -> None:
    """Print the table."""
    where = folder(sys.argv[1] if len(sys.argv) > 1 else None)
    count = sum(1 for _ in conversations(where))
    if not count:
        sys.exit(f"no rag-*.jsonl.gz in {where}: name the folder, or set TRIMTAB_DATA")
    print(f"{count} retrieval conversations; % kept verbatim at a share of the tokens")
    columns = ("answers", "rag-xquad", "rag-docs", "passages", "first call", "last call")
    print(f"{'rule':28}{'share':>6}" + "".join(f"{c:>11}" for c in columns) + "   over  s/100k")
    for name, rule in RULES.items():
        for share in SHARES:
            kept = measure(where, rule, share)
            cells = "".join(f"{kept.percent(c):>11.0f}" for c in columns)
            speed = kept.seconds / kept.tokens * 1e5
            print(f"{name:28}{share:>6.0%}{cells}{kept.over:>7}{speed:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
