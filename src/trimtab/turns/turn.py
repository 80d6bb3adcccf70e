"""One turn of a conversation: decided, then told.

Knows what a journal has to remember of an outcome.  Does not know where it is kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.asking.summarizer import Summarizer
from trimtab.errors import CannotFit, InvalidSetting
from trimtab.fitted import Fitted
from trimtab.model import Edit, Transcript
from trimtab.money.economics import when_cold
from trimtab.reading.known import Known
from trimtab.settings import Settings
from trimtab.telling import log, told
from trimtab.telling.article_log import log_articles
from trimtab.turns import fitting
from trimtab.turns.continuing import remember
from trimtab.turns.journal import Journal
from trimtab.turns.work import Outcome, mend_key, prepare


@dataclass(frozen=True)
class Turn:
    """What came out, and the journal behind it (without originals)."""

    outcome: Outcome
    journal: Journal
    started: float

    @property
    def internal(self) -> bool:
        """Whether it was a request of the client's own, no part of the conversation."""
        return self.outcome.work.force.internal


def room_left(outcome: Outcome) -> int:
    """Tokens that may come behind this request before anything has to be decided anew; 0 where
    each turn decides."""
    work, bounds = outcome.work, outcome.work.force.bounds
    asks = work.settings.arrival != "none" or work.settings.calls_left is not None
    if asks or bounds.result_chars is not None or work.mends is not None:
        return 0
    if outcome.applied and work.known.last is None:
        return 0
    return max(when_cold(bounds).trigger - outcome.tokens_after, 0)  # the cache may expire


def decide(request: Any, wanted: Settings, known: Known, journal: Journal) -> Turn:
    """Fit one request.  Raises what ``trimtab.fit`` raises; nothing is remembered yet."""
    started = time.perf_counter()
    work = prepare(request, asking(wanted), known, journal)
    with known.past.lent():
        try:
            outcome = fitting.run(work)
        except CannotFit:
            told.cannot_fit(work, started)
            raise
        after = _journalled(outcome, journal)
    remember(outcome, after)
    known.forget_offered()
    return Turn(outcome, after, started)


def tell(turn: Turn, originals: Mapping[str, str]) -> Fitted:
    """The result, logged and reported; ``originals`` by handle."""
    outcome = turn.outcome
    done = Fitted(outcome, originals)
    log.told(outcome, done)
    if "logging" in sys.modules:  # else nobody listens
        log_articles(outcome, log.logger())
    told.fitted(outcome, done, turn.started)
    return done


def asking(wanted: Settings) -> Settings:
    """The settings with a plain function as summarizer wrapped in one that asks within bounds."""
    say = wanted.summarizer
    if say is None or isinstance(say, Summarizer):
        return wanted
    if not callable(say):
        raise InvalidSetting(f"summarizer={say!r}: give a function, an Endpoint or a Summarizer")
    return replace(wanted, summarizer=Summarizer(say))


def fitted(
    request: Any, wanted: Settings, known: Known, journal: Journal
) -> tuple[Turn, Fitted, Journal]:
    """A turn whose journal keeps the originals itself, its result, and the journal behind it."""
    turn = decide(request, wanted, known, journal)
    if turn.internal:  # no part of the conversation: for this result alone
        return turn, tell(turn, {**journal.originals, **turn.outcome.originals}), journal
    after = turn.journal
    if after is not journal or turn.outcome.originals.keys() - journal.originals.keys():
        after = after.add((), turn.outcome.originals)
    return turn, tell(turn, after.originals), after


def _journalled(outcome: Outcome, journal: Journal) -> Journal:
    work = outcome.work
    if work.force.internal or work.gone_on or (not outcome.new and work.mends is None):
        return journal
    mends = work.mends.mends if work.mends else []
    keys = [mend_key(rule, mend.path) for rule, mend in mends]
    return journal.add([*_resting(outcome), *_tip(outcome)], {}, keys)


COMPANY = 2
"""Steps of the model before the witness that have to be there too: a call alone may come again."""


def _resting(outcome: Outcome) -> Iterator[Edit]:
    """The new edits, each with what else has to be there for it to count.

    What the model said before the witness; and what came again later may be left out only while
    the later one is there.
    """
    work, company = outcome.work, _company(outcome.work.transcript)
    for edit in outcome.new:
        needs = company
        if edit.op == "replace" and edit.kind in ("duplicate", "superseded"):
            keys = work.history.rests_on(work.transcript.refs[edit.targets[0]])
            needs = (*company, *(work.transcript.ref_of[key] for key in keys))
        yield replace(edit, needs=tuple(dict.fromkeys(needs)))


def _company(transcript: Transcript) -> tuple[str, ...]:
    """The newest call or words of the model in each of the last closed steps: the witness may be
    a part that says little."""
    found: list[str] = []
    closed = [group for group in transcript.groups[-COMPANY - 3 :] if group.closed]
    for group in closed[-COMPANY - 1 :]:
        own = [
            place
            for place in group.places
            if transcript.messages[place.message].role == "assistant"
            and place.block.kind in ("call", "text")
        ]
        found += [transcript.ref(place) for place in own[-1:]]
    return tuple(found)


def _tip(outcome: Outcome) -> list[Edit]:
    """What repair put behind the last message: it has to stand there again next turn."""
    work, found = outcome.work, list[Edit]()
    for rule, mend in work.mends.mends if work.mends else ():
        if rule != "last_not_user":
            continue
        transcript = work.transcript
        number = len(transcript.messages) - 2
        blocks = transcript.messages[number].blocks if number >= 0 else ()
        text = transcript.messages[-1].blocks
        if blocks and text:
            ref = transcript.ref_of[number, len(blocks) - 1]
            found.append(Edit("insert", (ref,), text[0].text, "repair", mend.message))
    return found
