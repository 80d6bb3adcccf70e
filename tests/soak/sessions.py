"""Sessions on trial: conversations that grow, are rewound, forked, cut at the head and edited.

    python tests/soak/sessions.py --count 1000 --seed 1

``trial(seed)`` plays one session turn by turn through one ``Session`` with a store and says what
went wrong: a refusal of a judge, an edit whose reasons are no longer in the conversation, a handle
that does not give back what stood there, a restarted session that sends something else.  Knows the
public API and the judges; does not know how the library decides which edits count.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from smallest import enough_tokens  # noqa: E402

import trimtab  # noqa: E402
from soak import story as stories  # noqa: E402
from soak.story import FORMATS, Draw, Frame, Message, Part, Story  # noqa: E402
from soak.trial import MASKED, problems, tokens  # noqa: E402
from soak.writers_more import WRITERS  # noqa: E402
from trimtab import CannotFit  # noqa: E402

TURNS = 14
MOVES = ("on",) * 8 + ("rewind", "fork", "regenerate", "behead", "behead", "edit", "move marks")
FITS = (0.35, 0.5, 0.7)


class Reason(NamedTuple):
    """Why an edit may be made: what the model had said last, when it was."""

    kind: str
    model: str
    again: str = ""


class Trial(NamedTuple):
    """How a session went: faults in words, and how often what happened."""

    seed: int
    format: str
    faults: list[str]
    counts: Counter[str]


class _Play:
    """One session under way."""

    moves = MOVES

    def __init__(self, seed: int, format: str = "") -> None:
        self.draw = Draw(random.Random(seed))
        self.format = format or FORMATS[seed % len(FORMATS)]
        self.frame: Frame = stories.frame(self.draw, self.format)
        self.told: Story = [stories._user(self.draw)]
        self.other: Story | None = None
        self.url = f"memory:soak-{uuid.uuid4().hex}"
        self.recall = self.draw.one_in(3)
        self.session = self.opened()
        self.window = 0
        self.reasons: dict[str, list[Reason]] = {}
        """Of each handle: two branches may come to the same edit."""
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()

    def opened(self) -> trimtab.Session:
        """A session as another process would open it."""
        return trimtab.Session(
            window=1,
            store=self.url,
            format=self.format,
            model=self.frame.model,
            reserve=0,
            recall=self.recall,
            settings=trimtab.Settings(counter="o200k"),
        )

    # --- what a client does ---

    def move(self) -> None:
        """Something happens to the history; it ends with words or results for the model."""
        name = self.draw.pick(self.moves) if len(self.told) > 6 else "on"
        self.counts[name] += 1
        getattr(self, "_" + name.replace(" ", "_"))()

    def _on(self) -> None:
        for _ in range(1 + int(self.draw.rng.random() * 3)):
            self.told += stories._turn(self.draw, self.frame, len(self.told))
        if self.draw.one_in(4):
            self.told.append(Message("assistant", [_text(self.draw)]))
            self.told.append(stories._user(self.draw))

    def _rewind(self) -> None:
        """Back to an earlier message for the model, and on from there."""
        places = [n for n, message in enumerate(self.told) if message.role == "user"]
        self.told = self.told[: self.draw.pick(places[: max(1, len(places) - 1)]) + 1]
        if self.draw.one_in(2):
            self._on()

    def _fork(self) -> None:
        """Two conversations go on from here in turn."""
        self.other = None if self.other is None else self.other
        mine = self.told
        self.told = self.other if self.other is not None else [m.copy() for m in mine]
        self.other = mine
        self._on()

    def _regenerate(self) -> None:
        """The same request once more: the model's answer did not please."""

    def _behead(self) -> None:
        """The client leaves out its oldest steps; the first words may stay."""
        places = [n for n, m in enumerate(self.told) if m.role == "assistant" and n > 1]
        at = self.draw.pick(places[: max(1, len(places) // 2)])
        first = self.told[0] if self.draw.one_in(2) else stories._user(self.draw)
        self.told = [first, *self.told[at:]]

    def _edit(self) -> None:
        """The client rewrites one of its results."""
        parts = [p for m in self.told for p in m.parts if p.kind == "result"]
        if parts:
            part = self.draw.pick(parts)
            twin = part.copy()
            twin.text = self.draw.pick(stories.MIDDLE)
            for message in self.told:
                message.parts = [twin if p is part else p for p in message.parts]

    def _move_marks(self) -> None:
        """The client puts its cache breakpoints elsewhere."""
        for message in self.told:
            if message.role == "user":
                for part in message.parts:
                    if part.kind == "text":
                        part.shape = "marked" if self.draw.one_in(3) else ""

    # --- a turn ---

    def turn(self) -> None:
        """One request through the session, judged."""
        request = WRITERS[self.format](self.told, self.frame)
        case = {"format": self.format, "model": self.frame.model}
        if problems(case, request):
            self.counts["not legal by itself"] += 1
            return
        size = tokens(case, request)
        if not self.window or self.draw.one_in(12):
            self.window = max(600, int(size * self.draw.pick(FITS)) + 400)
        try:
            done = self.session.fit(request, window=self.window)
        except CannotFit as refusal:
            self.counts["cannot fit"] += 1
            if refusal.minimum > enough_tokens(request, self.format):
                self.faults.append(f"turn {self.counts['turns']}: a refusal that was not due")
            return
        self.counts["turns"] += 1
        self.counts["reduced"] += bool(done.report.edits)
        self._judge(case, request, done)
        self._again(request, done)
        self._elsewhere(request, done)

    def _judge(self, case: dict[str, Any], request: Any, done: trimtab.Fitted) -> None:
        found = [f"invalid: {line}" for line in problems(case, done.request)]
        if tokens(case, done.request) > self.window:
            found.append("over the window")
        found += [f"masked: {text}" for text in done.report.warnings if MASKED.match(text)]
        # What is sent may not be the first message any more; what was given may not change.
        for edit in done.report.edits:
            if edit.new:
                self.counts["edits"] += 1
                self.reasons.setdefault(edit.handle, []).append(self._reason(edit))
                # What is kept is what was repaired; a signature does not tell thoughts apart.
                if not done.report.repairs and "reasoning" not in edit.kind:
                    found += self._recalled(request, edit)
            elif edit.op != "insert":
                self.counts["edits that stood"] += 1
                found += self._still(edit)
        self.faults += [f"turn {self.counts['turns']}: {text}" for text in found]

    def _reason(self, edit: trimtab.report.ReportEdit) -> Reason:
        """What the model said last; of a duplicate what it repeats."""
        last = next((m for m in reversed(self.told) if m.role == "assistant"), None)
        again = self.session.recall(edit.handle) if edit.kind == "duplicate" else ""
        return Reason(edit.kind, self._meaning(last.parts[-1]) if last else "", again)

    def _meaning(self, part: Part) -> str:
        return _meaning(part, self.format != "gemini" or self.frame.ids != "none")

    def _still(self, edit: trimtab.report.ReportEdit) -> list[str]:
        """An edit counts only where what the model had said by then is in the conversation, and
        a duplicate only where its text stands in another result too (or nearly)."""
        reasons = self.reasons.get(edit.handle)
        if reasons is None:
            return [f"an edit from nowhere: {edit.kind} {edit.handle}"]
        present = {self._meaning(p) for m in self.told if m.role == "assistant" for p in m.parts}
        standing = [reason for reason in reasons if not reason.model or reason.model in present]
        if not standing:
            return [f"an edit from the future: {edit.kind} {edit.handle}"]
        again = [reason.again for reason in standing if reason.kind == edit.kind == "duplicate"]
        results = [p.text for m in self.told for p in m.parts if p.kind == "result"]
        alone = again and all(results.count(text) < 2 for text in again)
        return [f"a duplicate of nothing: {edit.handle}"] if alone else []

    def _recalled(self, request: Any, edit: trimtab.report.ReportEdit) -> list[str]:
        """A new edit's handle gives what stood there."""
        text = _unmarked(self.session.recall(edit.handle))
        values = [_unmarked(_at(request, path)) for path in (edit.paths or (edit.path,))]
        if edit.op in ("drop", "fold"):
            same = json.loads(text) == [value for value in values if isinstance(value, dict)]
        else:
            whole = values[0]
            same = text == whole if isinstance(whole, str) else json.loads(text) == whole
        return [] if same else [f"not what stood there: {edit.op} {edit.kind} {edit.handle}"]

    def _again(self, request: Any, done: trimtab.Fitted) -> None:
        """The same request once more is sent as it was, and leaves the journal as it was."""
        before = len(self.session.journal["edits"])
        if self.session.fit(request, window=self.window).request != done.request:
            self.faults.append(f"turn {self.counts['turns']}: the same request is sent as another")
        elif len(self.session.journal["edits"]) != before:
            self.faults.append(f"turn {self.counts['turns']}: the same request adds an entry")

    def _elsewhere(self, request: Any, done: trimtab.Fitted) -> None:
        """A restarted session sends the same and recalls the same."""
        self.counts["restarts"] += 1
        other = self.opened()
        again = other.fit(json.dumps(request), window=self.window)
        if json.loads(again.request) != done.request:
            self.faults.append(f"turn {self.counts['turns']}: a restarted session sends another")
        handles = [edit.handle for edit in done.report.edits if edit.op != "insert"]
        for handle in handles[:5]:
            if other.recall(handle) != self.session.recall(handle):
                self.faults.append(f"a restarted session recalls another {handle}")


def trial(seed: int, format: str = "") -> Trial:
    """One session of some turns."""
    play = _Play(seed, format)
    for number in range(TURNS):
        if number:
            play.move()
        play.turn()
    return Trial(seed, play.format, play.faults, play.counts)


def _text(draw: Draw) -> Part:
    return Part("text", draw.tag(), draw.pick(stories.SHORT))


def _meaning(part: Part, named: bool) -> str:
    """What a part says; ``named``: its call id goes over the wire."""
    return json.dumps([part.kind, part.text, part.id * named, part.name, part.arguments])


def _unmarked(value: Any) -> Any:
    """Without cache breakpoints, which a client moves about: they name no other original."""
    if isinstance(value, str):
        try:
            return json.dumps(_unmarked(json.loads(value))) if value[:1] in "[{" else value
        except ValueError:
            return value
    if isinstance(value, list):
        return [_unmarked(item) for item in value if item != {"cachePoint": {"type": "default"}}]
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


def _at(tree: Any, path: Any) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (LookupError, TypeError):
            return None
    return tree


def main(act: Callable[[int], Trial]) -> int:
    """Try many seeds; each fault is printed with its own."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1)
    args = options.parse_args()
    total, bad = Counter[str](), 0
    with multiprocessing.Pool(args.jobs) as pool:
        seeds = range(args.seed, args.seed + args.count)
        for done in pool.imap_unordered(act, seeds, chunksize=20):
            total += done.counts
            bad += bool(done.faults)
            for fault in done.faults[:3]:
                print(f"seed {done.seed} ({done.format}): {fault}", flush=True)
    print(f"{args.count} sessions, {bad} with faults: {dict(total)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(trial))
