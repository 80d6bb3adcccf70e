"""Prints how billed prompts grow against our counts, per model: where the factors come from.

    python bench/growth.py [directory of transcripts]

Reads transcripts (`*.jsonl.gz`, directory from the argument, TRIMTAB_DATA or ../shared/data) whose
records carry ``meta.prompt_tokens``.  Walks Anthropic messages and Responses items by itself.
An Anthropic entry [index, tokens] is the bill of messages[:index].  A Responses log notes a bill
after the step it paid for, so there an entry's prompt ends at the index of the entry before.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from trimtab.transcript.families import CALL_TOKENS
from trimtab.transcript.token_sources import estimate
from trimtab.transcript.tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    SEALED_CHARS_PER_TOKEN,
    counter_for,
)

GREW = 10_000
STEP = 500
O200K = counter_for("o200k", model=None, format="")


@dataclass(frozen=True)
class Step:
    """What came in between two bills; whether thinking was hidden in it, and whether shown."""

    billed: int
    tokens: int
    signature_chars: int
    hidden: bool
    shown: bool


@dataclass(frozen=True)
class Session:
    model: str
    format: str
    steps: tuple[Step, ...]

    @property
    def billed(self) -> int:
        return sum(step.billed for step in self.steps)

    def ours(self, factor: float, signature_rate: float) -> float:
        text = sum(step.tokens for step in self.steps)
        return factor * text + signature_rate * sum(s.signature_chars for s in self.steps)


def strings(value: Any) -> Iterator[str]:
    """Every string the model reads in a content value: text, or unknown parts as JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, dict):
        known = {"text", "input_text", "output_text", "summary_text", "reasoning_text", "thinking"}
        if value.get("type") in known:
            yield value.get("text") or value.get("thinking") or ""
        elif value.get("type") == "tool_use":
            yield value["name"]
            yield compact(value["input"])
        elif value.get("type") == "tool_result":
            yield from strings(value.get("content") or "")
        elif value.get("type") not in ("image", "input_image"):
            yield compact(value)
    elif value is not None:
        yield compact(value)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def fixed_tokens(value: Any) -> int:
    """Overheads of the parts of a content value: calls, results, images."""
    if not isinstance(value, list):
        return 0
    cost = {"tool_use": CALL_TOKENS, "tool_result": CALL_TOKENS}
    cost |= {"image": IMAGE_TOKENS, "input_image": IMAGE_TOKENS}
    parts = [part for part in value if isinstance(part, dict)]
    return sum(
        cost.get(str(part.get("type")), 0) + fixed_tokens(part.get("content")) for part in parts
    )


def message_strings(item: dict[str, Any]) -> Iterator[str]:
    kind = item.get("type", "message")
    if kind == "message":
        yield from strings(item.get("content"))
    elif kind == "reasoning":
        yield from strings(item.get("summary"))
        yield from strings(item.get("content"))
    elif kind in ("function_call", "custom_tool_call"):
        yield item["name"]
        yield item.get("arguments") or item.get("input") or ""
    elif kind.endswith("_output"):
        yield from strings(item.get("output", item.get("tools")))
    else:
        rest = {k: v for k, v in item.items() if k not in ("type", "id", "call_id", "status")}
        yield compact(rest)


def message_tokens(item: dict[str, Any]) -> int:
    """o200k tokens of one message or item, overheads included."""
    kind = item.get("type", "message")
    sealed = len(item.get("encrypted_content") or "") // SEALED_CHARS_PER_TOKEN
    frame = {"message": MESSAGE_TOKENS, "reasoning": 0}.get(kind, CALL_TOKENS)
    content = item.get("content") if kind == "message" else item.get("output")
    text = sum(O200K(string) for string in message_strings(item))
    return text + frame + sealed + fixed_tokens(content)


def dict_parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    content = item.get("content")
    return [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []


def signature_chars(item: dict[str, Any]) -> int:
    return sum(len(part.get("signature") or "") for part in dict_parts(item))


def shows_thinking(item: dict[str, Any]) -> bool:
    return any(part.get("thinking") for part in dict_parts(item))


def session_of(record: dict[str, Any]) -> Session | None:
    bills = (record.get("meta") or {}).get("prompt_tokens") or []
    if record["format"] == "openai-responses":
        bills = [(before[0], bill[1]) for before, bill in pairwise(bills)]
    elif record["format"] != "anthropic":
        return None
    steps = []
    for (start, paid), (end, paid_next) in pairwise(bills):
        new = record["messages"][start:end]
        chars = sum(map(signature_chars, new))
        hidden = chars > 0 or any(item.get("type") == "reasoning" for item in new)
        shown = any(map(shows_thinking, new))
        steps.append(Step(paid_next - paid, sum(map(message_tokens, new)), chars, hidden, shown))
    return Session(record["model"], record["format"], tuple(steps)) if steps else None


def records(directory: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(directory.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if isinstance(record.get("messages"), list):
                    yield record


def at(share: float, ordered: Sequence[float]) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, ratios: list[float], *more: str) -> None:
    ratios.sort()
    figures = "  ".join(f"{at(share, ratios):5.2f}" for share in (0.05, 0.5, 0.95))
    print(f"  {name:<30}{len(ratios):>5}  {figures}  {'  '.join(more)}")


def covered(sessions: list[Session], rate: Callable[[Session], tuple[float, float]]) -> str:
    enough = sum(s.ours(*rate(s)) >= s.billed for s in sessions)
    return f"{100 * enough / len(sessions):5.1f} %"


def documented(session: Session) -> tuple[float, float]:
    counter = counter_for(None, model=session.model, format=session.format)
    return counter.factor, counter.signature_rate


def text_only(session: Session) -> tuple[float, float]:
    return documented(session)[0], 0.0


def generation(session: Session) -> str:
    counter = counter_for(None, model=session.model, format=session.format)
    return counter.label or "openai"


def grouped(
    sessions: list[Session], key: Callable[[Session], str]
) -> list[tuple[str, list[Session]]]:
    groups = defaultdict(list)
    for session in sessions:
        groups[key(session)].append(session)
    return sorted(groups.items())


def print_growth(sessions: list[Session]) -> None:
    print(f"Sessions that grew by more than {GREW:,} billed tokens: billed / o200k")
    print(
        "   model                           n     p5    p50    p95  factor  ours ≥ bill: text, all"
    )
    keys: tuple[Callable[[Session], str], ...] = (generation, lambda session: session.model)
    for key in keys:
        for name, group in grouped(sessions, key):
            ratios = [s.billed / max(1.0, s.ours(1.0, 0.0)) for s in group]
            row(
                name,
                ratios,
                f"×{documented(group[0])[0]:<5g}",
                covered(group, text_only),
                covered(group, documented),
            )
        print()


def plain_ratios(group: list[Session]) -> list[float]:
    """billed / o200k of every longer step without hidden thinking."""
    steps = [step for session in group for step in session.steps]
    plain = [s for s in steps if not s.hidden and s.tokens > STEP and 0 < s.billed < 30_000]
    return [step.billed / step.tokens for step in plain]


def print_steps(sessions: list[Session]) -> None:
    print(f"Steps of more than {STEP} tokens without thinking: billed / o200k, share covered")
    for name, group in grouped(sessions, generation):
        ratios = plain_ratios(group)
        share = sum(r <= documented(group[0])[0] for r in ratios) / len(ratios)
        row(name, ratios, f"{100 * share:5.1f} %")
    print()


def print_signatures(sessions: list[Session]) -> None:
    print("Steps whose thinking is not shown: billed beyond the text, a character of signature")
    for name, group in grouped(sessions, generation):
        text_ratio = at(0.5, sorted(plain_ratios(group)))
        steps = [s for session in group for s in session.steps]
        steps = [s for s in steps if s.signature_chars > STEP and not s.shown]
        if steps:
            row(name, [(s.billed - text_ratio * s.tokens) / s.signature_chars for s in steps])
    print()


def fixed(factor: float) -> Callable[[Session], tuple[float, float]]:
    return lambda session: (factor, 0.0)


def print_candidates(sessions: list[Session]) -> None:
    print("Share of sessions with our growth ≥ bill, by factor on text alone")
    factors = (1.0, 1.25, 1.35, 1.4, 1.45, 1.5, 1.6, 1.75, 2.0, 2.5)
    print(" " * 20 + "".join(f"{factor:>8g}" for factor in factors))
    for name, group in grouped(sessions, generation):
        shares = [covered(group, fixed(factor)) for factor in factors]
        print(f"  {name:<18}" + "".join(f"{share:>8}" for share in shares))
    print()


def print_estimator(texts: list[list[str]]) -> None:
    print("Byte-class estimate / exact o200k, sum of one transcript of 2,000 tokens or more")
    ratios = []
    for strings_of_one in texts:
        exact = sum(map(O200K, strings_of_one))
        if exact >= 2000:
            ratios.append(sum(map(estimate, strings_of_one)) / exact)
    below = sum(ratio < 1 for ratio in ratios)
    row(f"below in {below}, least {min(ratios):.2f}", ratios)
    print()


def print_speed(texts: list[list[str]]) -> None:
    """Comes first: nothing has been counted yet, each text is new to the counter."""
    fresh = list({text: None for one in texts for text in one if len(text) >= 128})
    megabytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in fresh) / 1e6
    print(f"Speed on {megabytes:.0f} MB of different texts (128 characters or more)")
    counters: list[tuple[str, Callable[[str], int]]] = [("estimate", estimate), ("o200k", O200K)]
    for name, count in counters:
        count("load")
        start = time.process_time()
        for text in fresh:
            count(text)
        print(f"  {name:<12}{megabytes / (time.process_time() - start):6.0f} MB/s")
    seen = fresh[-2000:]
    start = time.process_time()
    for text in seen:
        O200K(text)
    print(f"  seen before {(time.process_time() - start) / len(seen) * 1e6:7.2f} µs a text\n")


def main() -> None:
    default = os.environ.get("TRIMTAB_DATA") or Path(__file__).parents[2] / "shared" / "data"
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else default)
    found = list(records(directory))
    if not found:
        sys.exit(f"no transcripts in {directory}: give a directory or set TRIMTAB_DATA")
    texts = [
        [text for item in r["messages"] for text in message_strings(item) if isinstance(text, str)]
        for r in found
        if r["format"] in ("openai-chat", "openai-responses", "anthropic")
    ]
    print_speed(texts)
    sessions = [s for s in map(session_of, found) if s and s.billed > GREW]
    print_growth(sessions)
    print_steps(sessions)
    print_signatures(sessions)
    print_candidates(sessions)
    print_estimator(texts)


if __name__ == "__main__":
    main()
