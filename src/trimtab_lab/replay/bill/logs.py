"""A bill of session logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trimtab.logs.recording import Recording
from trimtab.pricing.paid import PaidCall
from trimtab_lab.replay.bill.conversations import BilledConversation, conversations
from trimtab_lab.replay.bill.policies import Comparison
from trimtab_lab.replay.bill.report import Bill


def bill_of(
    recordings: Iterable[Recording], *, by: str = "session", policies: bool = True,
    window: int | None = None, progress: Callable[[int, int], None] | None = None,
) -> Bill:  # fmt: skip
    """The bill of recordings with the usage of their calls.

    ``policies``: whether to estimate the cost under each policy too; ``window``: for these
    estimates, in the provider's tokens (None: the window that each conversation had).
    """
    billed = conversations(recordings)
    bill = Bill(
        [call for conversation in billed for call in _paid(conversation)], by, window=window,
        unmeasured=sum(conversation.unmeasured for conversation in billed),
        again=sum(call.again for conversation in billed for call in conversation.calls),
        compactions=sum(len(one.parts) - 1 for one in billed if one.counted),
    )  # fmt: skip
    if policies and bill.calls:
        comparison = Comparison(conversation for conversation in billed if conversation.counted)
        bill.error = comparison.error()
        bill.policies = comparison.policies(window, progress)
    return bill


def _paid(conversation: BilledConversation) -> Iterable[PaidCall]:
    for call in conversation.counted:
        yield PaidCall(
            conversation.id, conversation.agent, conversation.source, call.day, call.usage,
            call.output_measured,
        )  # fmt: skip
