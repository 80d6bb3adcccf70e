"""Sizes of a conversation's requests in our tokens: as they were sent, or under a policy."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab_lab.replay.bill.conversations import BilledCall, BilledConversation
from trimtab_lab.replay.bill_estimate import SizedCall
from trimtab_lab.replay.policies import Policy
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.sent_sizes import SentSizes

SizedRow = tuple[BilledCall, SizedCall]


def as_sent(conversation: BilledConversation) -> Iterator[SizedRow]:
    """Each billed call with the size of the request that was really sent.

    A client only appends, except when it compacts: then only system text and tools are repeated.
    """
    last: float | None = None
    calls = {(call.part, call.answer): call for call in conversation.calls}
    first = True
    for number, index in enumerate(conversation.indexes):
        before = 0
        for turn in index.turns:
            tokens = index.tokens(turn)
            call = calls.get((number, turn.sent))
            times = index.recording.times
            when = times[turn.sent] if times else None
            if call is not None:
                yield call, SizedCall(tokens, before, _gap(last, when), first)
            first, before, last = False, tokens, when


def under(conversation: BilledConversation, policy: Policy, window: int) -> Iterator[SizedRow]:
    """Each billed call with the size of the request that a policy makes of the whole history.

    ``window``: in our tokens.  Raises what the policy raises.
    """
    recording, starts = conversation.joined()
    index = RecordingIndex(recording)
    step, sizes = policy.start(index, window), SentSizes(index)
    places = {
        starts[call.part] + call.answer - conversation.parts[call.part].carried: call
        for call in conversation.calls
    }
    last: float | None = None
    for number, turn in enumerate(index.turns):
        body = step(recording.request(turn)).request
        size = sizes.add(sizes.head(body), sizes.views(body, index.views[: turn.sent]))
        when = recording.times[turn.sent] if recording.times else None
        for place in range(turn.sent, turn.end):
            if place in places:
                gap = _gap(last, when)
                yield places[place], SizedCall(size.tokens, size.prefix, gap, number == 0)
        last = when


def _gap(last: float | None, when: float | None) -> float:
    return -1.0 if last is None or when is None else max(0.0, when - last)
