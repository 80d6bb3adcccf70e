"""Recorded Claude sessions in every other format, and back: each text, id and flag is kept.

Reads a sample of the transcripts (every fourth); the judge stands in conversions.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from conversions import assert_nothing_is_missing, assert_same_again, unlisted
from records import Record, body

import trimtab
from trimtab.conversion import convert

pytestmark = pytest.mark.data

EVERY = 4


@pytest.fixture(scope="module")
def sessions(data: list[tuple[str, Record]]) -> list[tuple[str, dict[str, Any]]]:
    """(id, request) of every fourth anthropic record that a provider could have been sent."""
    found = [
        (record["id"], body(record))
        for file, record in data
        if record["format"] == "anthropic" and not file.startswith("broken")
    ][::EVERY]
    assert len(found) >= 60
    return found


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "bedrock", "gemini"])
def test_recorded_sessions_keep_every_text_id_and_flag(sessions, to):
    for name, recorded in sessions:
        request = trimtab.repair(recorded, format="anthropic").request  # as it may be sent
        there = convert(request, to, format="anthropic")
        assert_nothing_is_missing(there, request)
        assert unlisted(there, request) == [], name
        back = convert(there.request, "anthropic", format=to)
        assert_nothing_is_missing(back, there.request)
        assert_same_again(there, back, request)
        assert trimtab.check(there.request, format=to) == (), name
        assert trimtab.check(back.request, format="anthropic") == (), name
