"""The beginning of a stream is held back until it is known to be an answer or an error."""

from __future__ import annotations

import json

import pytest

from trimtab.retry.refusals.stream_start import MAX_BYTES, StreamStart

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def line(event: object) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def test_of_a_stream_that_stays_undecided_a_bounded_part_is_held_back() -> None:
    start, fed = StreamStart(), 0
    while not start.feed(PING):
        fed += len(PING)
        assert fed <= MAX_BYTES
    assert start.verdict == "content"
    assert len(start.held) == fed + len(PING) > MAX_BYTES


def test_an_error_is_a_refusal_however_long_it_is() -> None:
    long = {**ERROR, "error": {"type": "x", "message": "too long " * MAX_BYTES}}
    start = StreamStart()
    assert start.feed(PING + line(long)) == "refused"
    assert start.error == long


@pytest.mark.parametrize(
    ("sent", "verdict", "error"),
    [(b"", "refused", b""), (b" \n\n", "refused", b""), (PING, "content", b"")],
    ids=["nothing", "blank", "a ping"],
)
def test_a_stream_that_ends_undecided_is_a_refusal_only_if_it_was_empty(
    sent: bytes, verdict: str, error: bytes
) -> None:
    start = StreamStart()
    assert start.feed(sent) == ""
    assert (start.end(), start.error) == (verdict, error)
