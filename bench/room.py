"""Prints how much of its target a cut uses where more could be shown, and where it falls off.

    python bench/room.py [FOLDER] [--part recordings fits chats newest] [--full] [--held-out]

FOLDER (or TRIMTAB_DATA, or ../shared/data beside the clone) holds recorded sessions.  Four parts:
recordings turn by turn, the same histories in one ``fit``, generated chats without tools at many
windows, and which of the newest tool results stay whole.  A cut should use 90 % of its target where
more was left out than the free room takes; one token less of window should never send less than .8
of what one more sends.  Knows ``fit``, ``Session`` and ``measure`` alone, and their counts.
``--held-out``: other sessions and other seeds, to judge what was tuned on these.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import trimtab  # noqa: E402
from trimtab.errors import CannotFit  # noqa: E402
from trimtab.logs import log_files  # noqa: E402
from trimtab.logs.recording import Recording  # noqa: E402
from trimtab.request.fitted import Fitted  # noqa: E402

WINDOWS = (32_000, 60_000, 100_000)
FIT_WINDOWS = (16_000, 32_000, 60_000, 100_000, 160_000)
NEWEST_WINDOWS = (8_000, 16_000, 24_000, 32_000, 48_000, 64_000, 80_000)
ENOUGH = 0.90
"""Share of the target that a cut should use, where more could be shown."""
DEFAULT_TARGET = 0.70
"""Of the window, where a report names no target."""
MIN_KEPT = 0.80
"""Of what one token more of window sends, what one less has to send."""
MIN_CLIFF = 60
"""Tokens: a smaller difference may be one sentence."""
NOISE = 0.02
"""By so much a larger window may send less: pieces do not fill each room alike."""
SESSIONS, MAX_TURNS, MIN_CHARS = 30, 60, 200_000
CHATS, POINTS, FULL_CHATS, FULL_POINTS = 40, 16, 200, 64
AGENTS = (
    "agentv", "context-evaluator", "entire-cli", "entire-skills", "oh-my-posh", "openhands-sdk",
    "pi-mono", "livemcpbench",
)  # fmt: skip
"""Files of agents' sessions."""
WORDS = (
    "we talked about the plan for the harbour and nobody could say why the old crane was left "
    "standing when every other machine had gone so I asked the engineer who built it and she told "
    "me that its foundation holds the quay together and that whoever removes it has to pour a new "
    "wall first which costs more than the whole place is worth today"
)
PROSE = WORDS.split()


class Cut(NamedTuple):
    """One cut, in tokens: the request as given, as sent, and what the cut aimed at."""

    before: int
    sent: int
    target: int

    @property
    def used(self) -> float:
        """Share of the target."""
        return self.sent / max(1, self.target)

    @property
    def more(self) -> bool:
        """Whether what is not shown would more than fill the free room."""
        return self.before - self.sent > self.target - self.sent


def cut_of(fitted: Fitted, window: int) -> Cut:
    """What a report says of its cut."""
    report = fitted.report
    capacity = report.limits.get("capacity") or window
    target = report.limits.get("target_tokens") or int(DEFAULT_TARGET * capacity)
    return Cut(report.tokens_before, report.tokens_after, target)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def verdict(cuts: Iterable[Cut]) -> str:
    """Quantiles of the share of the target used, over the cuts where more could be shown."""
    every = list(cuts)
    used = [cut.used for cut in every if cut.more]
    if not used:
        return f"{len(every):5} cuts, none where more could be shown"
    marks = " ".join(f"{quantile(used, share):6.1%}" for share in (0.0, 0.1, 0.25, 0.5, 0.75))
    enough = sum(share >= ENOUGH for share in used) / len(used)
    return f"{len(every):5} {len(used):5}   {marks}   {enough:6.1%}"


HEAD = f"{'cuts':>5} {'more':>5}   {'least':>6} {'10 %':>6} {'25 %':>6} {'50 %':>6} {'75 %':>6}   "
HEAD += "≥ 90 %"


# --- recorded sessions ---


def folder(argument: str | None) -> Path:
    """Where the recordings are."""
    named = argument or os.environ.get("TRIMTAB_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def sample(where: Path, held_out: bool, count: int = SESSIONS) -> list[Recording]:
    """Long sessions of agents, in turn one of each source; by a digest of their ids, so that the
    choice stays the same, and that of ``held_out`` shares none with the other."""
    by_source: dict[str, list[tuple[str, Recording]]] = defaultdict(list)
    for name in AGENTS:
        for path in sorted(where.glob(f"{name}.jsonl*")):
            for one in log_files.read([str(path)]).recordings:
                mark = hashlib.sha256(one.id.encode()).hexdigest()
                if (int(mark, 16) % 2 == 1) == held_out and chars(one.messages) >= MIN_CHARS:
                    by_source[name].append((mark, one))
    queues = [sorted(own, key=lambda pair: pair[0]) for _, own in sorted(by_source.items())]
    chosen: list[Recording] = []
    while any(queues) and len(chosen) < count:
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0)[1])
    return chosen


def chars(value: Any) -> int:
    """Characters of all strings of a JSON value."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(chars, inner))


def fitted_turns(recording: Recording, window: int) -> Iterator[tuple[int, Fitted]]:
    """(messages that arrived, what is sent) of a session in which the agent's calls come in turn,
    at most ``MAX_TURNS``."""
    session = trimtab.Session(
        window=window, reserve=0, settings=recording.facts, clock=lambda: 0.0
    )  # fmt: skip
    turns = recording.turns
    for turn in turns[:: -(-len(turns) // MAX_TURNS) or 1]:
        try:
            yield turn.sent, session.fit(recording.request(turn))
        except CannotFit:
            continue


def played(recording: Recording, window: int) -> Iterator[Cut]:
    """The cuts of a session."""
    for _, fitted in fitted_turns(recording, window):
        if any(edit.new for edit in fitted.report.edits):
            yield cut_of(fitted, window)


def at_once(recording: Recording, window: int) -> Iterator[Cut]:
    """The cut of the last request of a session, by itself."""
    try:
        fitted = trimtab.fit(
            recording.request(recording.turns[-1]),
            window=window, reserve=0, settings=recording.facts,
        )  # fmt: skip
    except CannotFit:
        return
    if fitted.report.edits:
        yield cut_of(fitted, window)


def recorded(
    title: str, recordings: Sequence[Recording], windows: Iterable[int],
    play: Callable[[Recording, int], Iterator[Cut]],
) -> None:  # fmt: skip
    """Print one part over the recordings, a row a window."""
    print(f"\n{title}, {len(recordings)} sessions; share of the target used\n{'window':>8} {HEAD}")
    for window in windows:
        cuts = [cut for one in recordings if one.turns for cut in play(one, window)]
        print(f"{window:8,} {verdict(cuts)}", flush=True)


# --- chats without tools ---

Send = Callable[[dict[str, Any], int], Cut]
"""A request and a window → what is sent."""


def ours(request: dict[str, Any], window: int) -> Cut:
    """``fit`` with its defaults.  Raises CannotFit."""
    return cut_of(trimtab.fit(request, window=window, reserve=0), window)


def chat(seed: int) -> dict[str, Any]:
    """A chat of user and model in prose, lengths log-normal; the user pastes something at times."""
    draw = random.Random(f"room/{seed}")
    messages = [{"role": "system", "content": "You are a careful assistant."}]
    for number in range(draw.randrange(6, 40)):
        words = min(1_500, 3 + int(draw.lognormvariate(3.2, 1.0)))
        text = prose(draw, words)
        if draw.random() < 0.12:
            text += f"\n\n```\n{pasted(draw)}\n```"
        messages.append({"role": "user", "content": f"{number}. {text}"})
        words = min(2_500, 5 + int(draw.lognormvariate(4.6, 0.9)))
        messages.append({"role": "assistant", "content": prose(draw, words)})
    messages.append({"role": "user", "content": "And what follows from that for the wall?"})
    return {"model": "gpt-5.1", "messages": messages}


def prose(draw: random.Random, words: int) -> str:
    """Sentences of so many words, with numbers that stand nowhere else."""
    said, paragraph = list[str](), list[str]()
    while words > 0:
        length = min(words, draw.randrange(5, 22))
        sentence = " ".join(draw.choice(PROSE) for _ in range(length))
        paragraph.append(f"{sentence.capitalize()} {draw.randrange(10**4)}.")
        words -= length
        if draw.random() < 0.2:
            said.append(" ".join(paragraph))
            paragraph = []
    return "\n\n".join([*said, " ".join(paragraph)]).strip()


def pasted(draw: random.Random) -> str:
    """Lines of a log."""
    return "\n".join(
        f"2026-03-{draw.randrange(1, 29):02} {draw.choice(PROSE)} took={draw.randrange(9_999)}ms"
        for _ in range(min(300, 8 + int(draw.lognormvariate(3.2, 1.0))))
    )


@dataclass
class Smoothness:
    """What windows next to each other send: ``pairs`` w−1 and w, both cut.

    ``begins``: pairs in which the larger window needs no cut: there the step down to the target is
    meant.  ``fell``: pairs that send less than ``MIN_KEPT``, ``cliffs``: of these such as differ by
    ``MIN_CLIFF`` tokens, more than one sentence; ``worst``: the least share and where.  ``steps``:
    neighbours among the points; ``backward``: of these the larger window sends less; ``uneven``:
    the smaller sends less than ``MIN_KEPT`` of what its size would lead one to expect.
    """

    pairs: int = 0
    begins: int = 0
    fell: int = 0
    cliffs: int = 0
    worst: tuple[float, str] = (1.0, "")
    steps: int = 0
    backward: int = 0
    uneven: int = 0
    refused: int = 0
    cuts: list[Cut] = field(default_factory=list)

    def pair(self, less: Cut, more: Cut, place: str) -> None:
        """What w−1 and w send."""
        if more.sent == more.before:
            self.begins += less.sent < less.before
            return
        self.pairs += 1
        kept = less.sent / more.sent
        self.fell += kept < MIN_KEPT
        self.cliffs += kept < MIN_KEPT and more.sent - less.sent >= MIN_CLIFF
        self.worst = min(self.worst, (kept, place))

    def step(self, smaller: tuple[int, Cut], larger: tuple[int, Cut]) -> None:
        """What two neighbouring points send."""
        (low, less), (high, more) = smaller, larger
        if more.sent == more.before:
            return
        self.steps += 1
        self.backward += more.sent < (1 - NOISE) * less.sent
        self.uneven += less.sent < MIN_KEPT * more.sent * low / high


def points(least: int, most: int, count: int) -> list[int]:
    """Windows from just above the least to the most, each larger by the same factor."""
    least = min(least + 1, most)
    factor = (most / least) ** (1 / max(1, count - 1))
    return sorted({round(least * factor**number) for number in range(count)})


def smoothness(
    chats: Iterable[tuple[str, dict[str, Any], int, int]], send: Send, count: int
) -> Smoothness:
    """Chats (name, request, minimum, whole size) at so many windows each."""
    found = Smoothness()
    for name, request, least, whole in chats:
        before: tuple[int, Cut] | None = None
        for window in points(least, whole, count):
            try:
                less, more = send(request, window - 1), send(request, window)
            except CannotFit:
                found.refused += 1
                continue
            found.pair(less, more, f"{name} at {window:,}: {less.sent:,} and {more.sent:,}")
            if before is not None:
                found.step(before, (window, more))
            before = window, more
            if more.sent < more.before:
                found.cuts.append(more)
    return found


def chats(count: int, first: int) -> Iterator[tuple[str, dict[str, Any], int, int]]:
    """Chats with their minimum and their whole size."""
    for seed in range(first, first + count):
        request = chat(seed)
        report = trimtab.fit(request, window=10**7, reserve=0).report
        yield f"chat {seed}", request, report.minimum, report.tokens_before


def print_chats(count: int, many: int, first: int) -> None:
    """Print the part of chats."""
    start = time.monotonic()
    found = smoothness(chats(count, first), ours, many)
    print(f"\nchats without tools, {count} at {many} windows each; share of the target used")
    print(f"{'':8} {HEAD}\n{'':8} {verdict(found.cuts)}")
    print(
        f"one token less of window: {found.pairs:,} pairs, {found.fell} send less than "
        f"{MIN_KEPT:g} of what one more sends, {found.cliffs} by {MIN_CLIFF} tokens or more; "
        f"worst {found.worst[0]:.3f} ({found.worst[1]})"
    )
    print(
        f"from window to window: {found.steps:,} steps, in {found.backward} the larger sends less, "
        f"in {found.uneven} the smaller sends less than {MIN_KEPT:g} of its share"
    )
    print(
        f"pairs at which the cut begins: {found.begins}; refused: {found.refused}; "
        f"{time.monotonic() - start:.0f} s"
    )


# --- the newest results ---


def exchanges(seed: int, count: int = 40) -> dict[str, Any]:
    """A chat whose every exchange has one call with a result of 1,000 to 3,000 tokens."""
    draw = random.Random(f"newest/{seed}")
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful assistant."}]
    for number in range(count):
        function = {"name": "look_up", "arguments": f'{{"topic": "part {number}"}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        result = prose(draw, draw.randrange(750, 2_250))
        messages += [
            {"role": "user", "content": f"What is known of part {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
            {"role": "assistant", "content": prose(draw, 40)},
        ]
    messages.append({"role": "user", "content": "Go on with the next one."})
    return {"model": "gpt-5.1", "messages": messages}


class Newest(NamedTuple):
    """``whole``: how many of the newest results stand whole, without a gap; ``free``: tokens below
    the target; ``following``: tokens of the newest that is not whole, 0 if all are."""

    whole: int
    free: int
    following: int

    @property
    def wasted(self) -> bool:
        """Whether one more would have had room."""
        return 0 < self.following <= self.free


def newest(given: dict[str, Any], sent: dict[str, Any], cut: Cut) -> Newest:
    """How many of the newest results are in what is sent as they were given."""
    kept = {str(m.get("content")) for m in sent["messages"] if m["role"] == "tool"}
    results = [m for m in reversed(given["messages"]) if m["role"] == "tool"]
    whole = next((n for n, m in enumerate(results) if m["content"] not in kept), len(results))
    following = tokens_of(results[whole]["content"]) if whole < len(results) else 0
    return Newest(whole, cut.target - cut.sent, following)


def tokens_of(text: str) -> int:
    """Tokens of a text."""
    return trimtab.measure([{"role": "user", "content": text}], counter="o200k").total


def print_newest(seeds: Sequence[int]) -> None:
    """Print the part of the newest results."""
    print(f"\n40 exchanges with a result of 1k to 3k tokens each, mean of {len(seeds)} chats")
    print(
        f"{'window':>8} {'whole':>6} {'least':>6} {'free':>8} {'target':>8} "
        f"{'room for one more':>18}"
    )
    for window in NEWEST_WINDOWS:
        rows, targets = list[Newest](), list[int]()
        for seed in seeds:
            given = exchanges(seed)
            fitted = trimtab.fit(given, window=window, reserve=0)
            cut = cut_of(fitted, window)
            rows.append(newest(given, fitted.request, cut))
            targets.append(cut.target)
        print(
            f"{window:8,} {statistics.mean(row.whole for row in rows):6.1f} "
            f"{min(row.whole for row in rows):6} {statistics.mean(row.free for row in rows):8,.0f} "
            f"{statistics.mean(targets):8,.0f} {sum(row.wasted for row in rows):8} of {len(rows)}"
        )


PARTS = ("recordings", "fits", "chats", "newest")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the parts."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", nargs="?")
    options.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--full", action="store_true", help="200 chats at 64 windows: minutes")
    options.add_argument("--held-out", action="store_true", help="other sessions and seeds")
    args = options.parse_args(argv)
    first = 5_000 if args.held_out else 0
    if "recordings" in args.part or "fits" in args.part:
        recordings = sample(folder(args.folder), args.held_out)
        if not recordings:
            print(f"no recordings in {folder(args.folder)}: name the folder, or set TRIMTAB_DATA")
        if recordings and "recordings" in args.part:
            recorded("turn by turn", recordings, WINDOWS, played)
        if recordings and "fits" in args.part:
            recorded("whole histories in one fit", recordings, FIT_WINDOWS, at_once)
    if "chats" in args.part:
        print_chats(*((FULL_CHATS, FULL_POINTS) if args.full else (CHATS, POINTS)), first)
    if "newest" in args.part:
        print_newest(range(first, first + 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
