"""One key is one credential to what is learned of limits, however a client sends it."""

from __future__ import annotations

import pytest

from trimtab.clients.request_target import request_target
from trimtab.retry.credentials import bare_key

URL = "https://api.anthropic.com/v1/messages"
BODY = b'{"model": "claude-sonnet-4-5", "messages": []}'


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("sk-1", "sk-1"), ("Bearer sk-1", "sk-1"), ("bearer  sk-1 ", "sk-1"), ("Bearer", "Bearer"),
        ("Basic dTpw", "Basic dTpw"), ("Bearersk-1", "Bearersk-1"), ("", ""),
    ],
)  # fmt: skip
def test_the_key_in_a_header(value: str, key: str) -> None:
    assert bare_key(value) == key


def test_limits_are_learned_for_a_key_and_not_for_its_header() -> None:
    ways = [{"authorization": "Bearer sk-1"}, {"x-api-key": "sk-1"}, {"api-key": "sk-1"},
            {"x-goog-api-key": "sk-1"}]  # fmt: skip
    targets = [request_target("POST", URL, headers, BODY) for headers in ways]
    other = request_target("POST", URL, {"x-api-key": "sk-2"}, BODY)
    assert all(targets)
    assert other is not None
    assert len({target.key for target in targets if target}) == 1
    assert other.key not in {target.key for target in targets if target}
