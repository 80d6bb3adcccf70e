"""The page that searches what was cut: of one session, of all of its tenant's, or of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from trimtab.errors import StoreError
from trimtab.journal.archive import ArchivedStep, steps_of_archive
from trimtab.journal.excerpts import MAX_READ_CHARS, readable
from trimtab.journal.passages import find
from trimtab.proxy.dashboard.archive import SessionArchive
from trimtab.proxy.dashboard.page import HOME, SEARCH, page
from trimtab.proxy.records.session_record import SessionRecord

MAX_SESSIONS, MAX_EACH, MAX_FOUND = 50, 8, 60
"""Sessions searched, the newest first; lines shown of each, and of all."""
LINE_CHARS = 240
SCOPES = {"": "all sessions", "tenant": "all of this session's tenant", "session": "this session"}


class Found(NamedTuple):
    """One line: of which session, in which step of which edit (0: it has none), and its text."""

    session: SessionRecord
    handle: str
    step: int
    about: str
    line: int
    text: str


def of_scope(
    sessions: Iterable[SessionRecord], of: SessionRecord | None, scope: str
) -> list[SessionRecord]:
    """The sessions of a scope of ``SCOPES``, newest first."""
    if of is not None and scope == "session":
        return [of]
    same = [
        one for one in sessions
        if of is None or scope != "tenant" or (one.upstream, one.tenant) == (of.upstream, of.tenant)
    ]  # fmt: skip
    return sorted(same, key=lambda one: -one.last)[:MAX_SESSIONS]


def found_in(archives: Sequence[tuple[SessionRecord, SessionArchive]], words: str) -> list[Found]:
    """Lines with all of the words, else those nearest to them.  Runs in a worker thread."""
    wanted, left = words.casefold().split(), MAX_READ_CHARS
    exact, near = list[Found](), list[Found]()
    for session, archive in archives:
        steps = list[ArchivedStep]()
        try:
            steps += steps_of_archive(archive, archive.archive, left)
        except StoreError:
            continue
        left -= sum(len(step.text) for step in steps)
        for one in islice(_lines(session, steps, words), MAX_EACH):
            text = one.text.casefold()
            (exact if all(word in text for word in wanted) else near).append(one)
        if len(exact) >= MAX_FOUND:
            break
    return (exact or near)[:MAX_FOUND]


def _lines(session: SessionRecord, steps: Sequence[ArchivedStep], words: str) -> Iterator[Found]:
    for step, hit in find(steps, words, MAX_EACH):
        text = readable(hit.text) if step.number else hit.text
        yield Found(
            session, step.archived.handle, step.number, step.about, hit.line, _around(text, words)
        )


def _around(text: str, words: str) -> str:
    """The text; of a long one what is around the first word."""
    if len(text) <= LINE_CHARS:
        return text
    low = text.casefold()
    at = min((at for word in words.casefold().split() if (at := low.find(word)) >= 0), default=0)
    begin = max(0, min(at - LINE_CHARS // 3, len(text) - LINE_CHARS))
    return f"…{text[begin : begin + LINE_CHARS]}…"


def search(
    of: SessionRecord | None, scope: str, words: str, searched: int, found: Sequence[Found]
) -> bytes:
    """The page.  ``of``: the session that it was opened from; ``searched``: how many were."""
    about = of.id if of is not None else ""
    scopes = SCOPES if of is not None else {"": SCOPES[""]}
    return page(
        "search.html", "Search what was cut", section=SEARCH, wanted=words, address=SEARCH,
        hidden=[(name, value) for name, value in (("s", about), ("in", scope)) if value],
        scopes=[
            (name, f"{SEARCH}?{urlencode({'q': words, 's': about, 'in': key})}", key == scope)
            for key, name in scopes.items()
        ],
        searched=searched, rows=list(_rows(found)),
    )  # fmt: skip


def _rows(found: Sequence[Found]) -> Iterator[dict[str, Any]]:
    """The lines, those of one step together."""
    for (id, handle, step), own in groupby(
        found, lambda one: (one.session.id, one.handle, one.step)
    ):
        lines = list(own)
        address = f"{HOME}s/{id}/e/{quote(handle, safe='')}"
        yield {
            "session": lines[0].session.title, "session_address": f"{HOME}s/{id}",
            "address": f"{address}?step={step}" if step else address, "about": lines[0].about,
            "lines": [(one.line, one.text) for one in lines],
        }  # fmt: skip
