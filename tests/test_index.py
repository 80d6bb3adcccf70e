"""What was worked out about the beginning of a conversation changes no answer about the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from soak.trial import Case, case_of, messages_of

from trimtab import formats
from trimtab.model import Transcript


def read(case: Case, memo: formats.Memo, end: int) -> Transcript:
    """A history as it is read, up to a message; what is equal is the same object."""
    request = case["request"]
    if isinstance(request, list):
        request = request[:end]
    else:
        key = next(k for k in ("messages", "input", "contents") if k in request)
        request = {**request, key: request[key][:end]}
    format, _ = formats.find(request, case["format"])
    return formats.read(request, format, model=case["model"], memo=memo)


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_a_transcript_that_goes_on_is_indexed_as_one_read_at_once(first: int) -> None:
    compared = 0
    for seed in range(first, first + 40):
        case = case_of(seed)
        count, memo, before = len(messages_of(case["request"])), formats.Memo(), None
        for end in sorted({1, count // 4 or 1, count // 2 or 1, max(count - 1, 1), count}):
            alone = read(case, memo, end)
            part = replace(read(case, memo, end), before=before)
            assert part.groups == alone.groups, (seed, end)
            for name in ("names", "rows", "said"):
                assert getattr(part.index, name) == getattr(alone.index, name), (seed, end, name)
            compared += part.index._before is not None
            before = part.index.settled()
    assert compared > 60, "the beginnings were not recognised"
