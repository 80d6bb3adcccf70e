"""Recalls everything that was taken out and prints how much of it is exactly what was given.

    python tests/soak/recalls.py --least 10000 --seed 1

Made-up histories with their mutations, and recorded conversations where there are any.  Judged
without the library's rules: whatever is recalled must occur in the request as it was given, value
for value; and what the request no longer shows must occur in what is recalled.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from settings_words import as_keywords  # noqa: E402

import trimtab  # noqa: E402
from soak.trial import case_of  # noqa: E402
from trimtab import CannotFit  # noqa: E402

MIN_CHARS = 24
"""Shorter strings say nothing of where they come from."""
SHARES = (0.9, 0.7, 0.5, 0.3, 0.15)


@dataclass
class Tally:
    """Recalls by format and kind of edit, and what was wrong with some of them."""

    exact: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """All recalls."""
        return self.exact.total() + len(self.faults)


def judge_recalls(request: Any, fitted: Any, tally: Tally, name: str) -> None:
    """Recall all that one result took out, and compare it with what was given."""
    given = Values(request)
    kinds = {edit.handle: edit.kind for edit in fitted.report.edits if edit.op != "insert"}
    for repair in fitted.report.repairs:
        kinds |= dict.fromkeys(repair.handles, "repair")
    sent, back = Values(fitted.request), Values(None)
    for handle, kind in kinds.items():
        text = fitted.recall(handle)
        back.add(text)
        if wrong := given.lacks(text):
            tally.faults.append(f"{name} {kind} {handle}: not given so: {wrong[:300]}")
        else:
            tally.exact[f"{fitted.report.format} {kind}"] += 1
    for text in given.strings - given.ids:
        if len(text) >= MIN_CHARS and text not in sent.strings and text not in back.strings:
            inside = any(text in other for other in (*sent.strings, *back.strings))
            if not inside:
                tally.faults.append(f"{name}: neither sent nor recalled: {text[:200]!r}")
                return


class Values:
    """Every value that a JSON tree holds, by its canonical text, and every string in it."""

    def __init__(self, tree: Any) -> None:
        self.known: set[str] = set()
        self.strings: set[str] = set()
        self.ids: set[str] = set()
        """What names calls; repair may respell it where it is no longer told apart."""
        self._walk(tree)

    def _walk(self, tree: Any) -> None:
        stack = [tree]
        while stack:
            value = stack.pop()
            if isinstance(value, str):
                self.strings.add(value)
            elif isinstance(value, (dict, list)):
                self.known.add(json.dumps(value, sort_keys=True))
                stack += value.values() if isinstance(value, dict) else value
                if isinstance(value, dict):
                    named = (one for key, one in value.items() if key.lower().endswith("id"))
                    self.ids.update(one for one in named if isinstance(one, str))

    def add(self, text: str) -> None:
        """What was recalled: a string, or the JSON of something."""
        self.strings.add(text)
        try:
            self._walk(json.loads(text))
        except ValueError:
            return

    def lacks(self, text: str) -> str:
        """What of a recalled text was not given so; "" where all of it was."""
        if text in self.strings:
            return ""
        try:
            value = json.loads(text)
        except ValueError:
            return text
        if json.dumps(value, sort_keys=True) in self.known:
            return ""
        if isinstance(value, str) and value in self.strings:
            return ""
        parts = value if isinstance(value, list) else [value]
        wrong = (one for one in parts if json.dumps(one, sort_keys=True) not in self.known)
        return next((json.dumps(one, ensure_ascii=False) for one in wrong), "")


def requests(seed: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """(name, request, keywords) without end: made-up histories, every tenth a recorded one."""
    recorded = _recorded()
    while True:
        case = case_of(seed)
        keywords = {"format": case["format"], "thinking": case["thinking"]}
        yield f"seed {seed}", case["request"], keywords
        if seed % 10 == 0 and (found := next(recorded, None)):
            yield found
        seed += 1


def _recorded() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    sys.path.insert(0, str(HERE.parent / "data"))
    from records import FORMATS, body, records

    for name, record in records(*FORMATS):
        yield name, body(record), {"format": record["format"]}


def run(least: int, seed: int) -> Tally:
    """At least so many recalls."""
    tally, number = Tally(), 0
    for name, request, keywords in requests(seed):
        rng = random.Random(number)
        number += 1
        before = json.dumps(request, sort_keys=True)
        size = trimtab.fit(
            request, **as_keywords(window=10**8, reserve=0, **keywords)
        ).report.tokens_before
        window = max(1, int(rng.choice(SHARES) * size))
        recall, preset = rng.random() < 0.5, rng.choice(("balanced", "economy", "in-place"))
        try:
            fitted = trimtab.fit(
                request,
                **as_keywords(window=window, reserve=0, recall=recall, preset=preset, **keywords),
            )
        except CannotFit as error:
            try:
                fitted = trimtab.fit(
                    request,
                    **as_keywords(
                        window=error.minimum, reserve=0, recall=recall, preset=preset, **keywords
                    ),
                )
            except CannotFit:
                continue
        judge_recalls(json.loads(before), fitted, tally, name)
        if tally.count >= least:
            return tally
    return tally


def main() -> int:
    """Print what came out; 1 where a recall was not exact."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--least", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tally = run(given.least, given.seed)
    for kind, count in sorted(tally.exact.items()):
        print(f"{kind:40} {count:>8,}")
    print(f"{tally.count:,} recalls, {tally.exact.total():,} exact, {len(tally.faults):,} not")
    for fault in tally.faults[:20]:
        print(f"  {fault}")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
