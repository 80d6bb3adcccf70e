"""A request that only goes on where the last one ended: what was decided then stands.

Knows when nothing has to be decided anew.  Decides nothing: whatever is in doubt is planned as if
there had been no turn before, and gives the same bytes.  It is what makes a turn cost what is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trimtab.formats.base import alone
from trimtab.index import begins, goes_on
from trimtab.model import Edit, Place, Transcript
from trimtab.paths import Ops
from trimtab.planning.binding import asks_more
from trimtab.planning.edits import Applied, in_order
from trimtab.settings import Settings
from trimtab.turns.journal import Journal, stands
from trimtab.turns.work import Outcome, Work


@dataclass(frozen=True)
class Last:
    """The outcome of a turn whose edits will stand, and the journal behind it."""

    outcome: Outcome
    entries: tuple[Edit, ...]
    ops: Ops
    """What the edits come to; nothing of it depends on what more arrives, but for ``tip``."""
    arrived: tuple[int, int]
    """Tokens of its request after repair, and those behind signatures."""
    tip: Place | None = None
    """The newest reasoning taken out: items behind it, which may be yet to come, may refer to
    it."""


def remember(outcome: Outcome, journal: Journal) -> None:
    """Keep what the next turn may go on from; nothing where it could come out otherwise."""
    work = outcome.work
    before: Last | None = work.known.last
    arrived = work.usage.measure(work.transcript), work.usage.signed(work.transcript)
    if before is not None and work.gone_on:
        work.known.last = replace(before, outcome=outcome, entries=journal.entries, arrived=arrived)
    elif (
        (outcome.step == "planned" or (outcome.step == "" and work.mends is not None))
        and work.settled
        and outcome.asked is None
        and _all_there(work.transcript, journal.entries, before)
    ):
        ops, tip = in_order(outcome.applied), _tip(work.transcript, outcome.applied)
        work.known.last = Last(outcome, journal.entries, ops, arrived, tip)
    else:
        work.known.last = None


def _all_there(transcript: Transcript, entries: tuple[Edit, ...], before: Last | None) -> bool:
    """Whether every entry found its blocks: none can begin to count when more arrives.

    ``before``: of whose entries that is known.
    """
    refs, known = transcript.refs, () if before is None else before.entries
    if before is None or not begins(before.outcome.work.transcript, transcript):
        known = ()
    new = entries[len(known) :] if entries[: len(known)] == known else entries
    return all(edit.op != "insert" and stands(edit, refs) for edit in new)


def _tip(transcript: Transcript, applied: Sequence[Applied]) -> Place | None:
    """The newest reasoning that an edit takes out, where something may refer to it."""
    if transcript.format.goes_with is alone:
        return None
    gone = (ref for a in applied if a.edit.op in ("remove", "drop") for ref in a.edit.targets)
    places = (place for ref in gone if (place := transcript.refs[ref]).block.kind == "reasoning")
    return max(places, key=lambda place: place.message, default=None)


def _refers(transcript: Transcript, tip: Place, old: int) -> bool:
    """Whether something behind the first ``old`` messages goes with a reasoning."""
    paths, depth = transcript.format.goes_with(transcript, tip), len(transcript.base)
    return any(path[depth] in range(old, len(transcript.messages)) for path in paths)


def continued(work: Work) -> Outcome | None:
    """The edits of the turn before on a request that extends it; None where it does not, or where
    more has to be done."""
    try:
        return _continued(work)
    except Exception as error:  # planned as if there had been no turn before (law 10)
        if work.settings.strict:
            raise
        work.warnings.append(f"going on failed: {type(error).__name__}: {error}")
        return None


def _continued(work: Work) -> Outcome | None:
    last: Last | None = work.known.last
    if last is None or work.journal.entries != last.entries or not _extends(work, last.outcome):
        return None
    before, transcript, usage = last.outcome, work.transcript, work.usage
    more = usage.measure(transcript) - last.arrived[0]
    tokens = before.tokens_after + more
    if work.needs(tokens):
        return None
    old = len(before.work.transcript.messages)
    if last.tip and _refers(transcript, last.tip, old):
        return None
    if asks_more(work, before.applied, transcript.messages[old:]):
        return None
    sent, after, ops = work.repaired, transcript, last.ops
    if ops:
        sent = sent.after_as(before.work.repaired, before.sent, ops) or sent.after([ops])
        after = work.known.as_sent(sent, transcript.format, work.settings.model)
    if work.check(after):
        return None
    work.gone_on = True
    return replace(
        before, work=work, sent=sent, tokens_before=before.tokens_before + more,
        tokens_after=tokens, new=(), originals={}, target=None, asked=None, money=None,
        signed=before.signed + usage.signed(transcript) - last.arrived[1],
    )  # fmt: skip


def _extends(work: Work, before: Outcome) -> bool:
    """Whether nothing but messages behind the last one is new."""
    then, now = before.work.transcript, work.transcript
    return (
        work.settled
        and not work.new_mends
        and work.usage is before.work.usage
        and len(then.messages) > 0
        and goes_on(now.messages, then.messages)
        and now.head == then.head
        and now.facts == then.facts
        and now.format is then.format
        and _same(work.settings, before.work.settings)
    )


def _same(one: Settings, other: Settings) -> bool:
    """Equal but for what was learned and how long it took meanwhile, which move limits only."""
    return one is other or _timeless(one) == _timeless(other)


def _timeless(settings: Settings) -> Settings:
    return replace(settings, calibrations={}, idle_seconds=None)
