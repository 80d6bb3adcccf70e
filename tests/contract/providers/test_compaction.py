"""Conversations with providers that compact by themselves: none refused, no block changed.

Knows the provider's side only as ``compacting_provider`` enforces it.  ``python -m soak.compacted``
holds as many as are asked for.
"""

from __future__ import annotations

import pytest
from compacted_doors import through_door
from compacted_talks import WAYS, Told, blocks, drawn, hold, through
from compacting_provider import Compacting, seal

import trimtab

SEEDS = 60


def held(seed):
    talk, told = drawn(seed), Told()
    provider = Compacting(talk.window, seed)
    session = trimtab.Session(window=talk.window, settings=trimtab.Settings(counter="o200k"))
    done = hold(talk, through(session, provider, talk, told))
    return done, told


@pytest.mark.parametrize("first", range(len(WAYS)), ids=WAYS)
def test_a_session_over_its_turns_is_never_refused_and_changes_no_block(first):
    compactions = cut = 0
    for seed in range(first, SEEDS, len(WAYS)):
        done, told = held(seed)
        assert told.faults == []
        compactions, cut = compactions + done.compactions, cut + told.cut_behind
    assert compactions > 5
    assert cut > 8


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("door", ["wrap", "proxy"])
def test_wrap_and_the_proxy_are_never_refused_either(door, seed):
    faults, done = through_door(door, drawn(seed), seed)
    assert faults == []
    assert done.turns == drawn(seed).turns


def test_the_provider_refuses_what_it_should():
    """Else nothing above says anything."""
    signed = {"type": "compaction", "content": "S.", "signature": seal("S.", []),
              "encrypted_content": seal("opaque", "S."), "tool_changes": []}  # fmt: skip
    user = {"role": "user", "content": "Go on."}

    def code(*messages, window=10_000):
        provider = Compacting(window)
        provider.answer({"model": "claude-opus-4-6", "messages": list(messages)})
        return provider.asked[0].refusal

    first = {"role": "assistant", "content": [signed]}
    assert code(first, user) == ""
    assert code(user, first, user) == "compaction_block_misplaced"
    assert code(first, user, first, user) == "compaction_block_ambiguous"
    for key, value, refusal in (
        ("content", "T.", "compaction_content_mismatch"),
        ("signature", "00", "compaction_signature_invalid"),
        ("tool_changes", [{}], "compaction_tool_changes_mismatch"),
        ("content", "", "empty"),
    ):
        changed = {"role": "assistant", "content": [{**signed, key: value}]}
        assert code(changed, user) == refusal
    assert code(first, {"role": "user", "content": "word " * 300}, window=200) == "too long"
    assert blocks([first, user]) == [signed]
