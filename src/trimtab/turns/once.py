"""Calls without a session: one request, and what was read before of its conversation.

Knows the memo that plain ``fit`` keeps, which changes no result, only time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from trimtab import formats
from trimtab.errors import CannotFit
from trimtab.fitted import Fitted
from trimtab.reading.known import Known
from trimtab.reading.source import Source
from trimtab.settings import Settings
from trimtab.telling import log
from trimtab.turns import fitting
from trimtab.turns.journal import Journal
from trimtab.turns.work import Outcome, prepare

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
    try:
        yield known
    except CannotFit:  # what was read is as good as before
        _keep(key, known)
        raise
    _keep(key, known)


def _keep(key: tuple[str, ...], known: Known) -> None:
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
