"""What a provider's compaction replaced costs nothing; what it kept beside it still counts."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab

COMPACTION = {"type": "compaction", "encrypted_content": "gAAAA" + "x" * 200}
CALL = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "word " * 3_000}
KEPT = [{"type": "message", "role": "user", "content": f"task {n}: " + "word " * 500}
        for n in range(6)]  # fmt: skip
LAST = {"type": "message", "role": "user", "content": "go on"}


@pytest.mark.parametrize(
    ("before", "counts"),
    [(KEPT, True), ([*KEPT, CALL, OUTPUT], False)],
    ids=["a window of /responses/compact", "a compaction in the stream"],
)
def test_the_words_of_the_user_before_a_compaction_count_where_the_provider_reads_them(
    before: list[Any], counts: bool
) -> None:
    whole = trimtab.measure({"model": "gpt-5.5", "input": [*before, COMPACTION, LAST]}).total
    alone = trimtab.measure({"model": "gpt-5.5", "input": [COMPACTION, LAST]}).total
    assert (whole > alone + 2_500) is counts


def test_a_window_that_the_provider_compacted_is_fitted_with_all_that_is_live_in_it() -> None:
    steps = [item for _ in range(4) for item in (CALL, OUTPUT)]
    request = {"model": "gpt-5.5", "input": [*KEPT, COMPACTION, *steps, LAST], "store": False}
    fitted = trimtab.fit(request, window=9_000)
    assert COMPACTION in fitted.request["input"]
    plain = [item for item in fitted.request["input"] if item is not COMPACTION]
    assert trimtab.measure({"model": "gpt-5.5", "input": plain}).total < 9_000
