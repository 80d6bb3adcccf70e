"""Rows of a gateway, made at random and handed over turn by turn: what may change, and when."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab import Session, Settings
from trimtab.proxy.exchange.gateway_rows import GatewayRows
from trimtab.sessions.session_turns import shortened

SETTINGS = Settings(format="openai-chat", window=4_000, trigger=0.45, target=0.27, recall=True)
TEXTS = st.builds(
    lambda word, lines: "\n".join(f"{word}_{n}.py:{n}: {n * 7919}" for n in range(lines)),
    st.sampled_from(("alpha", "beta", "é", "\U0001f600", "")), st.integers(0, 120),
)  # fmt: skip
CONTENTS = st.one_of(
    TEXTS, TEXTS, TEXTS, st.none(), st.lists(st.builds(dict, type=st.just("text"), text=TEXTS)),
    st.just([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]),
)  # fmt: skip
ROWS = st.lists(
    st.one_of(
        st.builds(lambda id, content: {"role": "tool", "tool_call_id": id, "content": content},
                  st.integers(0, 40).map("call_{}".format), CONTENTS),
        st.builds(lambda role, content: {"role": role, "content": content},
                  st.sampled_from(("user", "user", "assistant", "system", "function")), CONTENTS),
        st.sampled_from(({}, {"role": "tool"}, {"role": 5, "content": "x"})),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


def bare(row: Any) -> Any:
    """A row without its text."""
    return {**row, "content": type(row.get("content"))}


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_rows_stay_in_their_places_and_are_the_same_until_the_next_cut(rows: list[Any]) -> None:
    session, before = Session(store="memory:"), list[Any]()
    for turn in range(len(rows) // 2, len(rows) + 1):
        given_rows = GatewayRows(rows[:turn], "gpt-5.1", "s")
        fitted = shortened(session, given_rows.request, SETTINGS)
        after, _ = given_rows.shortened(fitted.request["messages"], fitted.report.edits)
        assert list(map(bare, after)) == list(map(bare, rows[:turn]))
        others = [n for n, row in enumerate(rows[:turn]) if row.get("role") not in ("tool", "user")]
        assert all(after[n] is rows[n] for n in others)
        if not any(edit.new for edit in fitted.report.edits):
            assert after[: len(before)] == before
        before = after
