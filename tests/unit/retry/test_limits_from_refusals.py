"""What is learned from a refusal about size, and the keywords of the next fit.

Whole conversations with a provider: ``test_flow.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.retry.learned_limits import ModelLimits
from trimtab.retry.limits_from_refusals import (
    SentRequest,
    keywords_for_known_limits,
    keywords_for_retry,
    learn_from_refusal,
)
from trimtab.retry.refusals import Refusal
from trimtab.settings import Settings

NOTHING = ModelLimits()
SENT = SentRequest(tokens=10_000, body_bytes=40_000, longest_result=8_000)


@pytest.mark.parametrize(
    ("unit", "limit", "images"),
    [
        ("images", 5, 5),
        ("pixels", 2_000, 20),  # Anthropic: so large only where there are more than 20 of them
        ("pixels", 8_000, 0),
        ("bytes", 5_000_000, 0),
    ],
)
def test_as_many_images_stay_as_the_refusal_allows_none_where_each_is_too_large(
    unit: Any, limit: int, images: int
) -> None:
    refusal = Refusal("too_large", limit, rule="images", unit=unit)
    words = keywords_for_retry(refusal, SENT, NOTHING, Settings())
    assert words == {"settings": Settings(images=images)}
    learned = learn_from_refusal(refusal, SENT, NOTHING).images
    assert learned == (images if unit == "images" else None), "a count, not what one of them has"


@pytest.mark.parametrize(
    ("known", "asked", "expected"),
    [
        ({}, {}, {}),
        ({"request_bytes": 30_000}, {}, {"request_bytes": 30_000}),
        ({"request_bytes": 30_000}, {"request_bytes": 20_000}, {}),
        ({"request_bytes": 50_000}, {}, {}),
        ({"images": 5}, {}, {"images": 5}),
        ({"images": 5}, {"images": 4}, {}),
        ({"result_chars": 900}, {}, {"result_chars": 900}),
        ({"unnamed": (512, 9_000, 0.0, 2)}, {}, {"result_chars": 512}),
        ({"unnamed": (512, 9_000, 0.0, 1)}, {}, {}),  # once is a coincidence
        ({"unnamed": (512, 900_000, 0.0, 2)}, {}, {}),
    ],
    ids=str,
)
def test_a_learned_limit_is_applied_where_the_request_exceeds_it_and_nothing_tighter_is_set(
    known: dict[str, Any], asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    words = keywords_for_known_limits(ModelLimits(**known), Settings(**asked), SENT)
    assert words == ({"settings": Settings(**expected)} if expected else {})
