"""Limits learned per endpoint, model and credential: how long they last, and what corrects them."""

from __future__ import annotations

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
