"""A conversation over its turns: edits made once stay where they are.

Knows the journal and what was read before.  In memory; it does no I/O.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from threading import Lock, RLock
from typing import Any

from trimtab import config, fitting, formats, journal_format, log, told
from trimtab.article_log import log_articles
from trimtab.errors import CannotFit, InvalidSetting
from trimtab.fitted import Fitted, recall
from trimtab.journal import Journal
from trimtab.known import Known
from trimtab.model import Edit, Limits
from trimtab.observed import Observed
from trimtab.settings import Settings, joined_settings
from trimtab.source import Source
from trimtab.summarizer import Summarizer
from trimtab.work import Outcome, mend_key, prepare


class Session:
    """Fits the requests of one conversation; each edit is made once and then stays.

    Takes the keywords of ``fit``.  ``journal`` is what ``session.journal`` of an earlier session
    returned.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        reserve: int | None = None,
        limits: Limits | None = None,
        journal: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> None:
        self._settings = asking(joined_settings(window, reserve, limits, **keywords))
        self._journal = Journal() if journal is None else journal_format.from_dict(journal)
        self._known = Known()
        self._observed = Observed()
        self._lock = RLock()

    @classmethod
    def from_config(cls, folder: str | PathLike[str] = ".", **keywords: Any) -> Session:
        """A session with what files and environment say (see ``load_settings``); keywords win.

        Raises InvalidSetting.
        """
        return cls(**{**config.load_settings(folder), **keywords})

    def fit(self, request: Any, **keywords: Any) -> Fitted:
        """Fit one request; keywords override the session's for this call.

        Raises what ``trimtab.fit`` raises; a failed call leaves the journal as it was.
        """
        wanted = replace_settings(self._settings, keywords)
        with self._lock:
            wanted = replace(wanted, calibrations=self._observed.calibrations)
            done, self._journal = fitted(request, wanted, self._known, self._journal)
            self._observed.last = done.counted
        return done

    def observe(self, answer: Any, fitted: Fitted | None = None) -> None:
        """Learn from the usage in an answer how the provider counts this model's tokens.

        ``answer``: a response of any of the five formats as JSON, bytes or the client's object, an
        event of a stream that has a usage, or a usage by itself; what has none is passed over.
        ``fitted``: what it answers; None: the request this session fitted last.
        """
        with self._lock:
            self._observed.answer(answer, fitted.counted if fitted else None)

    def recall(self, handle: str) -> str:
        """The original behind a handle of this session.  Raises UnknownHandle."""
        return recall(self._journal.originals, handle)

    @property
    def journal(self) -> dict[str, Any]:
        """All edits and originals so far, JSON-able; ``Session(journal=…)`` continues it."""
        return journal_format.to_dict(self._journal)


def replace_settings(base: Settings, keywords: Mapping[str, Any]) -> Settings:
    """The session's settings with some of them replaced.  Raises InvalidSetting."""
    if not keywords:
        return base
    own = dict(keywords)
    limits = own.pop("limits", None) or base.limits
    rest = {name: getattr(base, name) for name in base.__dataclass_fields__ if name != "limits"}
    return joined_settings(
        own.pop("window", None), own.pop("reserve", None), limits, **{**rest, **own}
    )


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
) -> tuple[Fitted, Journal]:
    """One call: the result, and the journal behind it."""
    started = time.perf_counter()
    work = prepare(request, asking(wanted), known, journal)
    try:
        outcome = fitting.run(work)
    except CannotFit:
        told.cannot_fit(work, started)
        raise
    after = _journalled(outcome, journal)
    originals = after.originals
    if work.force.internal:  # no part of the conversation: for this result alone
        originals = {**originals, **outcome.originals}
    done = Fitted(outcome, originals)
    log.told(outcome, done)
    if "logging" in sys.modules:  # else nobody listens
        log_articles(outcome, log.logger())
    told.fitted(outcome, done.report, started)
    return done, after


def _journalled(outcome: Outcome, journal: Journal) -> Journal:
    work = outcome.work
    if work.force.internal or (not outcome.new and work.mends is None):
        return journal
    mends = work.mends.mends if work.mends else []
    keys = [mend_key(rule, mend.path) for rule, mend in mends]
    return journal.add([*outcome.new, *_tip(outcome)], outcome.originals, keys)


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


# --- calls without a session -----------------------------------------------------------------

_RECENT = 8
"""Conversations of which plain ``fit`` remembers what it read and counted (never what it did)."""

_lock = Lock()
_recent: OrderedDict[tuple[str, ...], Known] = OrderedDict()


@contextmanager
def known_for(request: Any, wanted: Settings) -> Iterator[Known]:
    """What was read before of the conversation that begins like this one.

    A memo: it changes no result, only time.  It belongs to one call at a time.
    """
    key = _beginning(request, wanted)
    with _lock:
        known = _recent.pop(key, None) or Known()
    yield known
    with _lock:
        _recent[key] = known
        while len(_recent) > _RECENT:
            _recent.popitem(last=False)


def _beginning(request: Any, wanted: Settings) -> tuple[str, ...]:
    if isinstance(request, (dict, list)):
        messages = request.get("messages") if isinstance(request, dict) else request
        first = messages[0] if isinstance(messages, list) and messages else None
        content = first.get("content") if isinstance(first, dict) else None
        if isinstance(content, list) and content and isinstance(content[0], dict):
            content = content[0].get("text")
        text = content[:200] if isinstance(content, str) else ""
        return ("tree", text, str(wanted.counter), str(wanted.format))
    if not isinstance(request, (str, bytes, bytearray, memoryview)):
        return ("other",)
    start = request[:400]
    text = start if isinstance(start, str) else bytes(start).hex()
    return ("text", text, str(wanted.counter), str(wanted.format))


def repair_only(request: Any, wanted: Settings) -> Fitted:
    """Repairs alone, whatever the size."""
    work = prepare(request, replace(wanted, strict=False), Known(), Journal())
    if work.mends is None:
        tokens = work.usage.measure(work.transcript)
        return Fitted(Outcome(work, work.source, tokens, tokens), {})
    outcome = fitting.only_repaired(work)
    done = Fitted(outcome, outcome.originals)
    log.told(outcome, done)
    return done


def check_only(
    request: Any, *, format: str | None, model: str | None, open_tail: bool
) -> tuple[Any, ...]:
    """The violations of a request as it stands."""
    from trimtab import rules

    source = Source.of(request)
    found, _ = formats.find(source.tree, format)
    transcript = formats.read(source.tree, found, model=model, memo=formats.Memo())
    return rules.check(transcript, open_tail=open_tail)
