"""A pinned sentence stays with its block, whatever happens to the session: edits are taken back,
the history forks, the process ends, a replica takes the next request.

Knows the public API and the messages of two formats.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtab

RULE = "Nobody may open a port but 7443 on the staging server."
WHOLE = "\n".join([*["row of a log"] * 60, RULE, *["row"] * 60])
MOVES = st.lists(
    st.tuples(st.sampled_from(("on", "undo", "fork", "restart", "replica")), st.integers(1, 6)),
    min_size=4,
    max_size=7,
)


def request(format: str, branch: str, turns: int) -> dict[str, Any]:
    """Of all branches the first twelve steps are the same; the fourth says the rule."""
    messages: list[Any] = [{"role": "user", "content": "Begin."}]
    for n in range(turns):
        name = f"{branch if n >= 12 else ''}{n}"
        rows = "\n".join(f"CONSTANT_{name}_{row} = {row * n}" for row in range(100))
        text, given = WHOLE if n == 3 else rows, {"command": f"make part_{name}"}
        if format == "anthropic":
            call = {"type": "tool_use", "id": f"c{name}", "name": "bash", "input": given}
            result = {"type": "tool_result", "tool_use_id": f"c{name}", "content": text}
            messages += [{"role": "assistant", "content": [call]},
                         {"role": "user", "content": [result]}]  # fmt: skip
        else:
            function = {"name": "bash", "arguments": json.dumps(given)}
            call = {"id": f"c{name}", "type": "function", "function": function}
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": f"c{name}", "content": text}]  # fmt: skip
    model = "claude-sonnet-4-5" if format == "anthropic" else "gpt-5.1"
    return {"model": model, "max_tokens": 500, "messages": messages}


class Sessions:
    """Two processes at one store, each with a session of the same conversation."""

    def __init__(self, format: str, url: str) -> None:
        self.format, self.url, self.at = format, url, 0
        self.both = [self._opened(), self._opened()]
        self.turns, self.branch = {"left": 12, "right": 12}, "left"
        self.undone = 0

    def _opened(self) -> trimtab.Session:
        settings = trimtab.Settings(counter="o200k")
        return trimtab.Session(window=12_000, reserve=0, store=self.url, settings=settings)

    def fit(self) -> trimtab.Fitted:
        """The next request."""
        turns = self.turns[self.branch]
        return self.both[self.at].fit(request(self.format, self.branch, turns))

    def move(self, kind: str, count: int) -> None:
        """Something happens between two requests."""
        self.turns[self.branch] += count
        if kind == "undo" and self.undone < 2:
            edits = [edit for edit in self.fit().report.edits if edit.kind != "fold"]
            if edits:
                self.undone += 1
                self.both[self.at].undo(edits[count % len(edits)].handle)
        elif kind == "fork":
            self.branch = "right" if self.branch == "left" else "left"
        elif kind == "restart":
            self.both[self.at].close()
            self.both[self.at] = self._opened()
        elif kind == "replica":
            self.at = 1 - self.at

    def close(self) -> None:
        """Both."""
        for session in self.both:
            session.close()


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@given(before=st.integers(0, 15), moves=MOVES)
def test_a_pinned_sentence_stays_whole_through_all_that_happens_to_a_session(
    format: str, before: int, moves: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sessions = Sessions(format, f"sqlite:///{Path(folder) / 'kept.db'}")
        try:
            sessions.turns["left"] += before
            sessions.fit()
            sessions.both[0].pin(text=RULE)
            for move in [("on", 1), *moves]:
                sessions.move(*move)
                fitted = sessions.fit()
                assert fitted.tokens_after <= 12_000
                if not any("gave way" in warning for warning in fitted.report.warnings):
                    assert json.dumps(WHOLE) in json.dumps(fitted.request), move
                else:
                    assert sessions.undone, "nothing but what was taken back is in its way"
        finally:
            sessions.close()


def test_without_the_pin_the_sentence_is_cut() -> None:
    session = trimtab.Session(window=12_000, reserve=0, settings=trimtab.Settings(counter="o200k"))
    for turns in (12, 25, 40):
        fitted = session.fit(request("anthropic", "left", turns))
    assert json.dumps(WHOLE) not in json.dumps(fitted.request)
