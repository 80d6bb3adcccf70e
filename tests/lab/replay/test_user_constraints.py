"""Sentences in which a user forbids or demands something."""

from __future__ import annotations

import pytest

import trimtab
from trimtab_lab.replay.user_constraints import demands
from trimtab_lab.testing.conformance import Options, TargetOptions, run
from trimtab_lab.testing.conformance.callable_target import CallableTarget


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Never change config/app.toml. Go on.", ["Never change config/app.toml."]),
        ("Use v1.2 always! Never touch app.py, please.",
         ["Use v1.2 always!", "Never touch app.py, please."]),
        ("You must keep .env as it is", ["You must keep .env as it is"]),
        ("Stop... You must never push. Thanks", ["You must never push."]),
        ("不要修改 config/app.toml 这个文件。好的。", ["不要修改 config/app.toml 这个文件。"]),
        ("Always answer in one line\nof text", ["Always answer in one line"]),
    ],
)  # fmt: skip
def test_a_stop_within_a_name_or_a_number_ends_no_sentence(text: str, found: list[str]) -> None:
    assert demands(text) == found


def test_a_file_that_the_user_forbids_keeps_its_ending_when_the_words_are_folded() -> None:
    def session(window: int) -> trimtab.Session:
        return trimtab.Session(window=window, preset="in-place")

    target = CallableTarget("in place", session, TargetOptions(8_000, factory=True))
    board = run(target, Options(8_000, formats=("openai-chat",), only=(111,)))
    assert board.row("constraints").failures == ()
