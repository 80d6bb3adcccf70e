"""When a ping at a cached prefix pays: against brute force, and at its edges."""

from __future__ import annotations

import random
from math import inf

import pytest

from trimtab.pricing.keep_warm import (
    MARGIN,
    MIN_GAPS,
    LearnedGaps,
    PrefixPrices,
    plan_pings,
    prices_for,
)

WARM = PrefixPrices(read=0.1e-6, write=1.25e-6, lifetime=300.0)


def brought(pings: int, gap: float, idle: float, tokens: int) -> float:
    """What so many pings bring, told step by step for one gap."""
    expires, at, net, warm = idle + MARGIN, idle, 0.0, gap <= idle + MARGIN
    for _ in range(pings):
        if gap <= at:
            break
        net -= tokens * WARM.read
        expires, at = at + WARM.lifetime, at + WARM.lifetime - MARGIN
    if not warm and gap <= expires:
        net += tokens * (WARM.write - WARM.read)
    return net


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_the_best_that_brute_force_finds(seed: int) -> None:
    rng = random.Random(seed)
    gaps = sorted(
        inf if rng.random() < 0.2 else rng.expovariate(1 / rng.choice([200, 900])) + 271
        for _ in range(60)
    )
    found = plan_pings(gaps, 270.0, WARM, 50_000, 12)
    each = [
        sum(brought(n, gap, 270.0, 50_000) for gap in [*gaps, inf]) / (len(gaps) + 1)
        for n in range(13)
    ]
    assert found.dollars == pytest.approx(max(each), abs=1e-9)
    assert each[found.pings] == pytest.approx(max(each), abs=1e-9)


def test_few_gaps_are_no_reason_to_spend() -> None:
    assert plan_pings([400.0] * (MIN_GAPS - 1), 270, WARM, 50_000, 12).pings == 0
    assert plan_pings([400.0] * MIN_GAPS, 270, WARM, 50_000, 12).pings == 1


def test_nothing_pays_where_writing_costs_no_more_than_reading() -> None:
    free = PrefixPrices(1e-6, 1e-6, 300.0)
    assert plan_pings([400.0] * 100, 270, free, 50_000, 12).pings == 0


def test_a_prefix_of_which_a_batch_leaves_little_does_not_pay() -> None:
    """A ping reads all of it; what it brings is what the next request still reads."""
    gaps = [400.0] * 100
    assert plan_pings(gaps, 270, WARM, 50_000, 12, read=50_000).pings == 1
    assert plan_pings(gaps, 270, WARM, 50_000, 12, read=20_000).pings == 1
    assert plan_pings(gaps, 270, WARM, 50_000, 12, read=4_000).pings == 0


def test_without_pings_left_none_are_planned() -> None:
    assert plan_pings([400.0] * 100, 270, WARM, 50_000, 0).pings == 0


def test_gaps_of_the_hour_count_before_those_of_the_day() -> None:
    gaps = LearnedGaps()
    for _ in range(30):
        gaps.add("a", 9 * 3600.0, 400.0)
        gaps.add("a", 20 * 3600.0, inf)
    assert set(gaps.of("a", 9 * 3600.0 + 86_400, 270.0)) == {400.0}
    assert set(gaps.of("a", 3 * 3600.0, 270.0)) == {400.0, inf}
    assert gaps.of("b", 0.0, 270.0) == []
    again = LearnedGaps.from_dict(gaps.as_dict())
    assert (again.by_hour, again.by_agent) == (gaps.by_hour, gaps.by_agent)


def test_only_a_documented_lifetime_is_gone_by() -> None:
    five, hour = (prices_for("claude-sonnet-4-5", hour=hour) for hour in (False, True))
    assert five is not None
    assert hour is not None
    assert (five.lifetime, hour.lifetime) == (300.0, 3600.0)
    assert five.write == pytest.approx(3.75e-6)
    assert prices_for("gpt-5.5", hour=False) is None
    gpt = prices_for("gpt-5.6-terra", hour=False)
    assert gpt == PrefixPrices(pytest.approx(0.2e-6), pytest.approx(2.5e-6), 1800.0)
    assert prices_for("databricks-gpt-5-6-terra", hour=False) is None
    assert prices_for("nobodys-model", hour=False) is None
