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


def test_as_many_images_stay_as_the_refusal_allows() -> None:
    refusal = Refusal("too_large", 5, rule="images", unit="images")
    assert keywords_for_retry(refusal, SENT, NOTHING, Settings()) == {
        "settings": Settings(images=5)
    }
    assert learn_from_refusal(refusal, SENT, NOTHING).images == 5


@pytest.mark.parametrize(
    ("unit", "limit", "name", "images"),
    [
        ("pixels", 2_000, "image_pixels", 20),  # Anthropic: only where there are more than 20
        ("pixels", 8_000, "image_pixels", 0),
        ("bytes", 5_000_000, "image_bytes", 0),
    ],
)
def test_images_that_are_too_large_become_smaller_and_are_left_out_where_that_was_not_enough(
    unit: Any, limit: int, name: str, images: int
) -> None:
    refusal = Refusal("too_large", limit, rule="images", unit=unit)
    smaller: dict[str, Any] = {name: limit}
    words = keywords_for_retry(refusal, SENT, NOTHING, Settings())
    assert words == {"settings": Settings(**smaller)}
    again = keywords_for_retry(refusal, SENT, NOTHING, Settings(**smaller))
    assert again == {"settings": Settings(**smaller, images=images)}
    learned = learn_from_refusal(refusal, SENT, NOTHING)
    assert learned.images is None, "no count"
    assert getattr(learned, name) == (None if limit == 2_000 else limit), "alone it is taken"


@pytest.mark.parametrize(
    ("known", "asked", "expected"),
    [
        ({}, {}, {}),
        ({"request_bytes": 30_000}, {}, {"request_bytes": 30_000}),
        ({"request_bytes": 30_000}, {"request_bytes": 20_000}, {}),
        ({"request_bytes": 50_000}, {}, {}),
        ({"images": 5}, {}, {"images": 5}),
        ({"images": 5}, {"images": 4}, {}),
        ({"image_pixels": 900}, {}, {"image_pixels": 900}),
        ({"image_bytes": 900}, {"image_bytes": 800}, {}),
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
