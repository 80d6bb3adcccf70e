"""What a refusal advises."""

from __future__ import annotations

import pytest

import trimtab

LONG = "Leave module_7.py as it is, whoever asks. " * 400


@pytest.mark.parametrize(
    ("system", "user", "step"),
    [(LONG, "Go.", "shorten it"), ("Be brief.", LONG, "into a file that a tool reads in parts")],
)
def test_what_takes_most_of_a_request_that_cannot_fit_is_named_with_what_to_do(
    system: str, user: str, step: str
) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "system": system,
            "messages": [{"role": "user", "content": user}]}  # fmt: skip
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, window=30, reserve=0)
    assert step in str(refused.value)
