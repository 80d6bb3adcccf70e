"""How wide the interval of an experiment is: ``python bench/control_arm.py``.

Made-up fleets, in which trimtab saves 25 % of what prompts cost.  Prints the median width of the
95 % interval in points, by share of the control arm and number of conversations; then the bill of
one such fleet as ``trimtab bill STORE`` prints it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from fleets import fleet  # noqa: E402

from trimtab.pricing.arms import savings  # noqa: E402
from trimtab.pricing.call_usage import CallUsage  # noqa: E402
from trimtab.pricing.conversation_usage import ConversationUsage  # noqa: E402
from trimtab_lab.replay.bill.report import as_text  # noqa: E402
from trimtab_lab.replay.bill.store import bill_of_facts  # noqa: E402

SHARES, CONVERSATIONS, FLEETS = (0.05, 0.1, 0.2, 0.5), (200, 400, 1_000, 2_000), 40
READ, WRITTEN = 3e-7, 3.75e-6
"""Dollars for a token of claude-sonnet-4-5."""


def width(conversations: int, share: float) -> float:
    """Points between the two ends of the interval, the median of some fleets."""
    found = [savings(*fleet(seed, conversations, share)) for seed in range(FLEETS)]
    return median(
        100 * (one.high - one.low) for one in found if one.low is not None and one.high is not None
    )


def bill(conversations: int, share: float) -> str:
    """The bill of one fleet: two thirds of the dollars are reads of the cache."""
    facts = []
    for arm, units in zip(("treated", "control"), fleet(0, conversations, share), strict=True):
        for number, unit in enumerate(units):
            one = ConversationUsage(f"{arm} {number}", "claude-cli", "anthropic", arm)
            read, written = (int(unit.dollars * p) for p in (0.67 / READ, 0.33 / WRITTEN))
            usage = CallUsage("claude-sonnet-4-5", 0, read, written, 0, unit.arrived // 500)
            one.add("2026-11-23", unit.arrived, usage)
            facts.append(one.as_dict())
    return as_text(bill_of_facts(facts, by="agent"))


if __name__ == "__main__":
    print("conversations", *(f"{share:.0%}" for share in SHARES), sep="\t")
    for number in CONVERSATIONS:
        widths = (f"{width(number, share):.0f}" for share in SHARES)
        print(f"{number:,}", *widths, sep="\t")
    print(f"\n{bill(1_000, 0.2)}")
