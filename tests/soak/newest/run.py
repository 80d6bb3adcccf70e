"""Sends generated conversations through every door at four windows, and prints what came of them.

    python -m tests.soak.newest.run --sessions 3000 --jobs 2
    python -m tests.soak.newest.run --sessions 200 --format anthropic --doors fit,wrap
    python -m tests.soak.newest.run --replay failures/anthropic-made-invalid-1.json

Every request is valid by the provider model before it is sent.  What must not happen: that it is
refused behind the door (made invalid), that anything differs in a window that holds it ten times
(changed below the trigger), that something can't be recalled (lost for good), that a tool which
the conversation loaded is gone (tool state lost), that words stand in another's mouth.
Noted, but no fault: calls in the model's text, and requests that we refuse as too long though
their newest turn fits.
The first request of each kind of fault is written to --out, as small as it still fails.
Ends with 1 on any fault.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "src")]

import trimtab  # noqa: E402
from soak.newest.doors import NAMES, CannotSend, Send, opened, proxies_before  # noqa: E402
from soak.newest.formats import FORMATS, provider, sign, talk_of  # noqa: E402
from soak.newest.judge import (  # noqa: E402
    CHANGED,
    MADE_INVALID,
    NEEDLESS,
    NOTES,
    SORTS,
    faults,
    is_needless,
    max_tokens,
    size,
)
from soak.newest.talk import Talk  # noqa: E402
from soak.newest.upstream import Upstream  # noqa: E402

FAR = 1_000_000
WINDOWS = (FAR, 10_000, 6_000, 4_000)
"""Tokens; the last three force cuts in most conversations."""
SURELY_BELOW = 0.5
"""Up to this share of a window, counted too high, a first cut has no reason."""
CRASHED = "crashed"
RANGE = 8


@dataclass
class Table:
    """Counts by (format, door); two of them add up."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    causes: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    features: Counter[str] = field(default_factory=Counter)

    def join(self, other: Table) -> None:
        """Add what another counted."""
        self.counts.update(other.counts)
        self.causes.update(other.causes)
        self.features.update(other.features)
        for key, example in other.examples.items():
            known = self.examples.get(key)
            if known is None or size(example["body"]) < size(known["body"]):
                self.examples[key] = example

    def faults(self, *sorts: str) -> int:
        """How many requests had a fault of these sorts, or of any."""
        return sum(n for (_, _, name), n in self.counts.items() if name in (sorts or ALL))

    def lines(self) -> Iterator[str]:
        """A readable table."""
        head = ("format", "door", "sessions", "requests", "cut", "cannot fit", *NOTES, *ALL)
        rows = [list(head)]
        for format in FORMATS:
            for door in NAMES:
                if self.counts[format, door, "sessions"]:
                    row = [f"{self.counts[format, door, name]:,}" for name in head[2:]]
                    rows.append([format, door, *row])
        total = [f"{sum(self.counts[f, d, n] for f in FORMATS for d in NAMES):,}" for n in head[2:]]
        rows.append(["all", "", *total])
        widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
        for row in rows:
            yield "  ".join(
                f"{cell:<{w}}" if n < 2 else f"{cell:>{w}}"
                for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        by_kind: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for (format, door, sort, why), many in self.causes.items():
            by_kind[format, sort, why][door] += many
        for (format, sort, why), doors in sorted(
            by_kind.items(), key=lambda row: -sum(row[1].values())
        ):
            shown = ", ".join(f"{door} {many:,}" for door, many in sorted(doors.items()))
            yield f"  {sum(doors.values()):>6,}  {format}: {sort}: {why}  ({shown})"


ALL = (*SORTS, CRASHED)


def tried(talk: Talk, seed: int, door: str, window: int, send: Send, table: Table) -> None:
    """Send all requests of one conversation and judge each."""
    requests, cut = talk.requests(sign), False
    key = (talk.format, door)
    while (body := requests.body) is not None:
        table.counts[*key, "requests"] += 1
        refused = provider(talk.format).refusal(body, talk.headers, talk.dialect)
        if refused and not cut:
            raise AssertionError(f"seed {seed}: not a valid request: {refused}")
        # A thought that answered a cut request is bound to the cut: valid where the cut stays.
        judged = not refused or door != "fit"
        below = window == FAR or (not cut and max_tokens(body) < SURELY_BELOW * window)
        found, sent_body = list[tuple[str, str]](), body
        given = json.loads(json.dumps(body))
        try:
            sent = send(body)
            if sent.same and refused and door == "proxy":  # it sends what cannot fit as it came
                raise CannotSend("sent as it came")
        except CannotSend as error:
            table.counts[*key, "cannot fit"] += 1
            if below:
                found.append((CHANGED, f"refused by us: {str(error)[:60]}"))
            elif is_needless(talk, body, window):
                found.append((NEEDLESS, f"window {window:,}"))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            found.append((CRASHED, f"{type(error).__name__}: {error} {where.name}"[:110]))
        else:
            sent_body, cut = sent.body, cut or not sent.same
            table.counts[*key, "cut"] += not sent.same
            found += faults(talk, given, sent.body, same=sent.same, below=below,
                            recalled=sent.recalled)  # fmt: skip
            if sent.problem:
                found.append(("sent twice", sent.problem))
        for sort, why in found:
            if sort == MADE_INVALID and not judged:
                continue
            table.counts[*key, sort] += 1
            table.causes[talk.format, door, sort, why] += 1
            example = table.examples.get((sort, why))
            if example is None or size(given) < size(example["body"]):
                table.examples[sort, why] = {
                    "seed": seed, "format": talk.format, "dialect": talk.dialect, "door": door,
                    "window": window, "sort": sort, "cause": why, "headers": talk.headers,
                    "model": talk.model, "key": talk.key, "body": given, "sent": sent_body,
                }  # fmt: skip
        requests.answered(sent_body)


def _range(job: tuple[int, int, str, tuple[str, ...]]) -> Table:
    first, last, format, doors = job
    table = Table()
    with (
        Upstream() as upstream,
        proxies_before(upstream, WINDOWS if "proxy" in doors else ()) as ps,
    ):
        for seed in range(first, last):
            talk = talk_of(seed, format)
            table.features.update({f"{talk.format}: {name}" for name in talk.features})
            for door in doors:
                table.counts[talk.format, door, "sessions"] += 1
                for window in WINDOWS:
                    with opened(door, talk, window, ps) as send:
                        tried(talk, seed, door, window, send, table)
    return table


def soak(
    sessions: int, *, seed: int = 1, jobs: int = 1, format: str = "",
    doors: tuple[str, ...] = NAMES, size: int = RANGE,
) -> Table:  # fmt: skip
    """Try so many conversations."""
    table, started = Table(), time.monotonic()
    work = [(n, min(n + size, seed + sessions), format, doors)
            for n in range(seed, seed + sessions, size)]  # fmt: skip
    if jobs == 1:
        results: Any = map(_range, work)
        return _joined(results, table, len(work), started)
    with multiprocessing.Pool(jobs) as pool:
        return _joined(pool.imap_unordered(_range, work), table, len(work), started)


def _joined(results: Any, table: Table, many: int, started: float) -> Table:
    for n, part in enumerate(results, 1):
        table.join(part)
        if sys.stderr.isatty() or n % 25 == 0:
            spent = time.monotonic() - started
            print(f"{n}/{many} ranges, {spent:.0f} s, {table.faults()} faults", file=sys.stderr)
    return table


# --- examples ---


def fails(example: dict[str, Any], body: dict[str, Any]) -> bool:
    """Whether one request, fitted by itself, has the fault of the example."""
    talk = Talk(example["format"], example["dialect"], example["key"], {}, [], example["model"],
                example["headers"])  # fmt: skip
    if provider(talk.format).refusal(body, talk.headers, talk.dialect):
        return False
    model = {} if "model" in body else {"model": talk.model}
    try:
        fitted = trimtab.fit(body, window=example["window"], **model)
    except trimtab.CannotFit:
        return bool(example["sort"] == NEEDLESS and is_needless(talk, body, example["window"]))
    except Exception:
        return bool(example["sort"] == CRASHED)
    handles = [edit.handle for edit in fitted.report.edits]
    handles += [handle for repair in fitted.report.repairs for handle in repair.handles]
    found = faults(
        talk, body, fitted.request, same=fitted.request is body, below=example["window"] == FAR,
        recalled=lambda: [fitted.recall(handle) for handle in handles if handle],
    )  # fmt: skip
    return example["sort"] in [sort for sort, _ in found]


def smaller(example: dict[str, Any]) -> dict[str, Any]:
    """The example with fewer messages, as long as one ``fit`` of it still fails."""
    body, key = example["body"], example["key"]
    if not fails(example, body):
        return {**example, "small": False}
    step = max(1, len(body[key]) // 2)
    while step:
        n = 0
        while n < len(body[key]):
            trial = {**body, key: body[key][:n] + body[key][n + step :]}
            if trial[key] and fails(example, trial):
                body = trial
            else:
                n += step
        step //= 2
    model = {} if "model" in body else {"model": example["model"]}
    try:
        sent = trimtab.fit(body, window=example["window"], **model).request
    except trimtab.TrimtabError as error:
        sent = str(error)
    return {**example, "body": body, "sent": sent, "small": True}


def write(table: Table, out: Path) -> None:
    """One file for each kind of fault."""
    out.mkdir(parents=True, exist_ok=True)
    for n, (_, example) in enumerate(sorted(table.examples.items())):
        name = re.sub(r"\W+", "-", f"{example['format']}-{example['sort']}-{example['cause']}")[:90]
        text = json.dumps(smaller(example), ensure_ascii=False, indent=1)
        (out / f"{n:02}-{name}.json").write_text(text + "\n", encoding="utf-8")


def main() -> int:
    """The command line."""
    arguments = argparse.ArgumentParser(description="valid conversations through every door")
    arguments.add_argument("--sessions", type=int, default=100, help="conversations")
    arguments.add_argument("--seed", type=int, default=1, help="the first seed")
    arguments.add_argument("--jobs", type=int, default=1, help="processes")
    arguments.add_argument("--format", default="", choices=("", *FORMATS), help="only this format")
    arguments.add_argument("--doors", default=",".join(NAMES), help="some of them, with commas")
    arguments.add_argument("--out", type=Path, help="a directory for failing requests")
    arguments.add_argument("--replay", type=Path, help="try a written request again")
    asked = arguments.parse_args()
    if asked.replay:
        example = json.loads(asked.replay.read_text(encoding="utf-8"))
        failed = fails(example, example["body"])
        print("fails" if failed else "passes")
        return int(failed)
    table = soak(asked.sessions, seed=asked.seed, jobs=asked.jobs, format=asked.format,
                 doors=tuple(asked.doors.split(",")))  # fmt: skip
    print("\n".join(table.lines()))
    if asked.out:
        write(table, asked.out)
    return int(table.faults() > 0)


if __name__ == "__main__":
    sys.exit(main())
