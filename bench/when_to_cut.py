"""Prints what prompts cost if a history is cut by size alone, or as soon as that pays.

    python bench/when_to_cut.py LOGS… [--look-ups 0.1] [--window 200000]

From logs with the billed size of each prompt: a policy sees how the request grows and chooses
when to cut, and to how much; what was cut is gone from all later prompts.  Costs are in plain input
tokens, a share of sending everything, for both lifetimes of Claude's cache, with a bootstrap
interval over conversations.  Where the log has times, a prompt after the lifetime is written anew.
After a first cut each ``1 / look-ups`` calls one look-up is made: the prompt is read once more, and
LOOK_UP_TOKENS are added.  No text is cut here, and no quality measured (``trimtab replay`` does).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trimtab.logs import log_files
from trimtab.planning.presets import PRESETS
from trimtab.pricing.economics import CutEffect, pays
from trimtab.pricing.prices import TABLES, Prices
from trimtab_lab.replay.bill.conversations import conversations

COMPACTED = 0.7
"""A prompt below this share of the one before is one that the client compacted: a new start."""
SUMMARY_TOKENS = 8_000
"""What an agent's own compaction leaves beside its head."""
LOOK_UP_TOKENS = 600
MIN_CALLS = 4
SAMPLES = 400


@dataclass(frozen=True)
class Growth:
    """One stretch of a conversation: (tokens of a prompt, seconds since the one before or −1)."""

    id: str
    source: str
    prompts: Sequence[tuple[int, float]]


Policy = Callable[[int, int, int, bool, Prices], int | None]
"""(tokens now, tokens of the head, calls since the last cut, whether the cache is cold, prices) →
tokens to cut down to; None: no cut."""


def stretches(names: Sequence[str]) -> Iterator[Growth]:
    """The stretches of all conversations between compactions by their client."""
    for one in conversations(log_files.read(list(names)).recordings):
        rows: list[tuple[int, float]] = []
        before = None
        for call in one.counted:
            tokens = call.usage.prompt
            gap = -1.0 if before is None or call.when is None else max(0.0, call.when - before)
            if rows and tokens < COMPACTED * rows[-1][0]:
                yield Growth(one.id, one.source, rows)
                rows = []
            rows.append((tokens, gap))
            before = call.when
        yield Growth(one.id, one.source, rows)


def by_size(limit: int, share: float) -> Policy:
    """A cut at the limit, to a share of the room."""

    def cut(now: int, head: int, calls: int, cold: bool, prices: Prices) -> int | None:
        return head + int(share * max(0, limit - head)) if now > 0.95 * limit else None

    return cut


def compaction(limit: int) -> Policy:
    """What agents do: at the limit all becomes a summary."""

    def cut(now: int, head: int, calls: int, cold: bool, prices: Prices) -> int | None:
        return head + SUMMARY_TOKENS if now > limit else None

    return cut


def economy(now: int, head: int, calls: int, cold: bool, prices: Prices) -> int | None:
    """The preset."""
    preset = PRESETS["economy"]
    assert preset.history is not None
    left = int(preset.history * preset.target)
    batch = CutEffect(left, now - head - left, cold)
    return head + left if pays(prices, batch, now, calls) else None


def cost(one: Growth, policy: Policy | None, prices: Prices, look_ups: float) -> tuple[float, int]:
    """(what the prompts cost in plain input tokens, the number of cuts)."""
    head = now = one.prompts[0][0]
    paid, calls, cuts = now * prices.write, 1, 0
    for (before, _), (tokens, gap) in pairwise(one.prompts):
        sent, now, calls = now, now + max(0, tokens - before), calls + 1
        cold = prices.ttl_seconds is not None and gap > prices.ttl_seconds
        read = 0 if cold else sent
        left = policy(now, head, calls, cold, prices) if policy else None
        if left is not None and left < now:
            now, read, calls, cuts = max(left, head), 0 if cold else head, 1, cuts + 1
        paid += read * prices.read + (now - read) * prices.write
        if cuts and policy is economy:
            paid += look_ups * (now * prices.read + LOOK_UP_TOKENS * prices.write)
    return paid, cuts


def row(
    growths: Sequence[Growth], policy: Policy | None, prices: Prices, look_ups: float
) -> tuple[str, int]:
    """("0.71 [0.66, 0.77]", the number of cuts)."""
    pairs, cuts = [], 0
    for one in growths:
        paid, made = cost(one, policy, prices, look_ups)
        pairs.append((paid, cost(one, None, prices, look_ups)[0]))
        cuts += made
    draw = random.Random(0)
    ratios = sorted(ratio(draw.choices(pairs, k=len(pairs))) for _ in range(SAMPLES))
    low, high = ratios[SAMPLES // 40], ratios[-SAMPLES // 40 - 1]
    return f"{ratio(pairs):.2f} [{low:.2f}, {high:.2f}]", cuts


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(paid for paid, _ in pairs) / sum(whole for _, whole in pairs)


def main() -> None:
    """Print a table for each source, and one for all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--look-ups", type=float, default=0.1, help="a call, after a first cut")
    parser.add_argument("--window", type=int, default=200_000, help="the agent's own")
    args = parser.parse_args()
    growths = [one for one in stretches(args.logs) if len(one.prompts) >= MIN_CALLS]
    policies: dict[str, Policy] = {
        f"own compaction at {args.window * 8 // 10:,}": compaction(args.window * 8 // 10),
        "own compaction at 100,000": compaction(100_000),
        "balanced at 100,000": by_size(100_000, PRESETS["balanced"].target),
        "economy": economy,
    }
    for source in (*sorted({one.source for one in growths}), ""):
        own = [one for one in growths if source in ("", one.source)]
        calls = sum(len(one.prompts) for one in own)
        timed = sum(gap >= 0 for one in own for _, gap in one.prompts)
        print(f"\n{source or 'all'}: {len(own)} stretches, {calls:,} calls, {timed:,} with times")
        print("| policy | 5-minute prices | cuts | 1-hour prices | cuts |\n|---|---|---|---|---|")
        for name, policy in policies.items():
            cells = [row(own, policy, TABLES[t], args.look_ups) for t in ("claude-5m", "claude-1h")]
            print(f"| {name} | " + " | ".join(f"{text} | {cuts}" for text, cuts in cells) + " |")


if __name__ == "__main__":
    main()
