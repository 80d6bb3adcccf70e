"""Limits learned per endpoint, model and credential: how long they last, and what corrects them."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.retry.learned_limits import NO_LIMITS, LearnedLimits, ModelLimits


@pytest.mark.parametrize(
    ("exactness", "hours"), [("exact", 168), ("estimate", 24), ("lower_bound", 24), ("guess", 1)]
)
def test_a_limit_is_kept_the_longer_the_surer_it_was(exactness: str, hours: int) -> None:
    now = [1_000.0]
    learned = LearnedLimits(clock=lambda: now[0])
    learned.put("k", ModelLimits(8_000, exactness=exactness))
    now[0] += hours * 3_600 - 1
    assert learned.get("k").limit == 8_000
    now[0] += 1
    assert learned.get("k") is NO_LIMITS


@pytest.mark.parametrize(
    ("known", "tokens", "expected"),
    [
        # Without a limit that was named, the largest prompt accepted is the evidence.
        (ModelLimits(refused=9_000, accepted=5_000), 6_000, (None, 9_000, 6_000)),
        (ModelLimits(refused=9_000, accepted=5_000), 4_000, (None, 9_000, 5_000)),
        (ModelLimits(refused=9_000, accepted=5_000), 8_500, (None, 9_000, 8_500)),
        (ModelLimits(refused=9_000, accepted=5_000), 9_000, (None, None, 9_000)),
        # A limit that was named holds until a longer prompt is accepted.
        (ModelLimits(8_000, refused=9_000), 7_000, (8_000, 9_000, 0)),
        (ModelLimits(8_000, refused=9_000), 8_500, (None, 9_000, 8_500)),
    ],
)
def test_an_accepted_prompt_raises_what_is_known_and_never_lowers_it(
    known: ModelLimits, tokens: int, expected: tuple[int | None, int | None, int]
) -> None:
    learned = LearnedLimits(clock=lambda: 0.0)
    learned.put("k", known)
    learned.accepted("k", tokens, 0)
    after = learned.get("k")
    assert (after.limit, after.refused, after.accepted) == expected


def test_of_a_model_of_which_nothing_is_known_nothing_is_kept() -> None:
    facts: dict[str, object] = {}
    LearnedLimits(facts).accepted("k", 5_000, 0)  # type: ignore[arg-type]
    assert facts == {}


KNOWN = ModelLimits(
    200_000, ratio=1.77, exactness="exact", refused=120_000, accepted=100_000, images=5,
    output=8_192, short=(10, 20), counter="o200k/1×1.0",
)  # fmt: skip


def test_what_another_counter_counted_is_forgotten_and_what_the_provider_said_is_kept() -> None:
    """A release, a setting or a model's name may change how we count; a ratio learned under the
    old counts would then shrink the window for a second time."""
    learned = LearnedLimits({}, clock=lambda: 0.0)
    learned.put("k", KNOWN)
    assert learned.get("k", "o200k/1×1.0") == KNOWN
    other = learned.get("k", "gemma/1×1.0")
    assert (other.ratio, other.refused, other.accepted, other.short) == (1.0, None, 0, None)
    assert (other.limit, other.images, other.output) == (200_000, 5, 8_192)
    assert other.prompt_tokens(0) == 200_000
    assert learned.get("new", "gemma/1×1.0") is NO_LIMITS


def test_a_row_of_a_release_before_counters_were_named_is_one_of_o200k() -> None:
    facts: dict[str, Any] = {}
    LearnedLimits(facts, clock=lambda: 0.0).put("k", KNOWN)
    del facts["k"]["counter"]
    learned = LearnedLimits(facts, clock=lambda: 0.0)
    assert learned.get("k", "o200k/1×1.0").ratio == 1.77
    assert learned.get("k", "gemma/1×1.0").ratio == 1.0
