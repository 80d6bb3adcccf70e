"""The recorded session played turn by turn: what was refused, cut, looked up, undone and paid.

Every request goes to two strict providers inside this process: as it was recorded, and as a
``Session`` made it.  No model is asked.  The figures are those of ``trimtab replay``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import trimtab
from trimtab.logs import log_files
from trimtab.logs.recording import Recording
from trimtab.pricing import outcome
from trimtab.report import ReportEdit
from trimtab.sessions.edit_history import SearchHit
from trimtab_lab.replay import policy_run, verdict
from trimtab_lab.replay.call_inspector import as_lines
from trimtab_lab.replay.message_views import MessageView, MessageViews
from trimtab_lab.replay.metric import Judge
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.summary import SummaryRow, summarize
from trimtab_lab.replay.trimtab_policy import PlayedSession
from trimtab_lab.testing import ErrorResponse, StrictProvider

WINDOW = 32_000
SESSION = "session.json.gz"
"""examples/session.openai.json, which examples/record.py recorded."""
PATH = "/v1/chat/completions"
SOUGHT = "expected one argument"
"""What the look-up searches for: words of an error early in the session."""


@dataclass(frozen=True)
class DemoEdit:
    """One edit, with the original as a recall gives it and the text that took its place."""

    request: int
    edit: ReportEdit
    before: Sequence[str]
    after: Sequence[str]


@dataclass(frozen=True)
class PlayedRequest:
    """One request: its number from 1, tokens of the whole and of what was sent, the provider's
    answer to the whole ("" where it was accepted), and whether what was sent was accepted."""

    number: int
    whole: int
    sent: int
    refusal: str
    answered: bool
    edits: Sequence[DemoEdit]


@dataclass(frozen=True)
class FoundLine:
    """A line found by its words in what was cut, and whether its original equals the recording."""

    hit: SearchHit
    chars: int
    in_last_request: bool
    equal: bool


@dataclass(frozen=True)
class Undone:
    """An edit taken back: the tokens of the next request, and whether that has the original."""

    handle: str
    sent: int
    whole_again: bool


@dataclass(frozen=True)
class Demo:
    """All of it.  ``gone``: lines of the last request as recorded that are not in the one sent;
    ``gone_found``: those of them that are in the originals; ``originals``: how many there are, and
    ``equal``, how many of them equal the recording."""

    recording: Recording
    window: int
    requests: Sequence[PlayedRequest]
    rows: Sequence[SummaryRow]
    found: FoundLine
    undone: Undone
    gone: int
    gone_found: int
    originals: int
    equal: int

    @property
    def edits(self) -> list[DemoEdit]:
        """Every cut, in order."""
        return [one for request in self.requests for one in request.edits]

    @property
    def first_sentence(self) -> str:
        """How many requests were refused as recorded, and how many as trimtab made them."""
        refused = sum(bool(one.refusal) for one in self.requests)
        still = sum(not one.answered for one in self.requests)
        return outcome.refusals(refused, len(self.requests), still)

    @property
    def money_and_losses(self) -> list[str]:
        """The next ones: money, then what was still in the requests."""
        return list(verdict.money_and_losses({row.policy: row for row in self.rows}))


def recorded() -> Recording:
    """The session that comes with the package.  Its limit of output is left out, so that window
    and prompt can be compared."""
    with resources.as_file(resources.files(__package__) / SESSION) as path:
        return log_files.read([str(path)]).recordings[0].renamed(params={})


def play(recording: Recording, window: int = WINDOW) -> Demo:
    """Play the session at a window that it outgrows."""
    index = RecordingIndex(recording)
    as_recorded, ours = StrictProvider(window=window), StrictProvider(window=window)
    policy, judge = find("trimtab"), Judge(index, window)
    step = policy.start(index, window)
    assert isinstance(step, PlayedSession)
    requests = []
    for number, turn in enumerate(index.turns):
        body = recording.request(turn)
        judge.turn(number, policy_run.ask(step, index, number))
        assert step.fitted is not None
        refusal, whole = _ask(as_recorded, body)
        problem, sent = _ask(ours, step.fitted.request)
        edits = [
            _cut(recording, step, number + 1, edit) for edit in step.fitted.report.edits if edit.new
        ]
        requests.append(PlayedRequest(number + 1, whole, sent, refusal, not problem, edits))
    task = policy_run.Task("trimtab", window)
    results = [
        *policy_run.run(recording, [policy_run.Task("none", window)]),
        policy_run.result(recording, index, task, policy, judge.done),
    ]
    last = frozenset(_lines(index.views[: index.turns[-1].sent]))
    gone = last.difference(_lines(index.store.all(_messages(recording, step))))
    handles = {one.edit.handle for request in requests for one in request.edits}
    originals = [step.session.recall(handle) for handle in handles]
    return Demo(
        recording, window, requests, summarize(results), _look_up(recording, step),
        _undo(recording, step, _last_edits(requests)), len(gone),
        len(gone.intersection(_lines(_views(recording, originals)))), len(originals),
        sum(is_recorded(recording, original) for original in originals),
    )  # fmt: skip


def _ask(provider: StrictProvider, body: Any) -> tuple[str, int]:
    """(the message of the provider's refusal or "", tokens of the prompt as it counts)."""
    response = provider.respond("POST", PATH, "", {}, json.dumps(body).encode())
    record = provider.requests[-1]
    if record.status == 200:
        return "", record.tokens
    error = ErrorResponse(record.refusal, record.status, json.loads(b"".join(response.chunks)))
    return f"{record.status} {error.message}", record.tokens


def _last_edits(requests: Sequence[PlayedRequest]) -> Sequence[DemoEdit]:
    return next(request.edits for request in reversed(requests) if request.edits)


def _cut(recording: Recording, step: PlayedSession, number: int, edit: ReportEdit) -> DemoEdit:
    original = step.session.recall(edit.handle)
    views = _views(recording, [original])
    before = list(as_lines(views)) if views else original.splitlines()
    return DemoEdit(number, edit, before, step.session.shown(edit.handle).splitlines())


def _views(recording: Recording, originals: Iterable[str]) -> list[MessageView]:
    """The messages in these originals; none where an original is one text."""
    messages = [
        message
        for original in originals
        if original.startswith("[{")
        for message in json.loads(original)
    ]
    return MessageViews(recording.reader).all(messages)


def _lines(views: Iterable[MessageView]) -> Iterator[str]:
    for view in views:
        yield from view.lines


def _messages(recording: Recording, step: PlayedSession) -> Sequence[Any]:
    """The messages of the request that was sent last."""
    assert step.fitted is not None
    messages: Sequence[Any] = step.fitted.request[recording.reader.messages_key]
    return messages


def _look_up(recording: Recording, step: PlayedSession) -> FoundLine:
    """Search what was cut, read the original that has the line, and compare it."""
    hit = step.session.search(SOUGHT)[0]
    original = step.session.recall(hit.handle)
    sent = json.dumps(_messages(recording, step), ensure_ascii=False)
    there = json.dumps(hit.text, ensure_ascii=False)[1:-1] in sent
    return FoundLine(hit, len(original), there, is_recorded(recording, original))


def is_recorded(recording: Recording, original: str) -> bool:
    """Whether an original, bytes for bytes, is in the recording: messages, or one text of it."""
    if original.startswith("[{"):
        recorded = {_bytes(message) for message in recording.messages}
        return all(_bytes(message) in recorded for message in json.loads(original))
    return any(original == block.text for view in recording.views for block in view.blocks)


def _bytes(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


def _undo(recording: Recording, step: PlayedSession, edits: Sequence[DemoEdit]) -> Undone:
    """Undo the smallest of these edits in a copy of the session, and fit the request again."""
    one = min(edits, key=lambda one: one.edit.tokens_before)
    session = trimtab.Session(
        settings=step.session.settings, journal=step.session.journal, clock=lambda: 0.0
    )
    body = recording.request(recording.turns[-1])
    session.undo(one.edit.handle)
    fitted = session.fit(body)
    original = step.session.recall(one.edit.handle)
    messages = json.loads(original) if one.edit.op == "fold" else []
    again = all(message in fitted.request[recording.reader.messages_key] for message in messages)
    return Undone(one.edit.handle, fitted.report.tokens_after, again and bool(messages))
