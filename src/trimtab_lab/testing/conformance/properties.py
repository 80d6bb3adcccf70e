"""The properties, and the judges of one request that was sent.

``legal`` asks the rule table and the strict provider's judge; the others read the request with
``reading`` alone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trimtab_lab.testing import judge
from trimtab_lab.testing.conformance.reading import SaidPiece
from trimtab_lab.testing.conformance.speakers import Speakers
from trimtab_lab.testing.conformance.stories import Story
from trimtab_lab.testing.conformance.writing import MODELS
from trimtab_lab.testing.http_apis import HTTP_APIS
from trimtab_lab.testing.http_apis.refusals import style_for
from trimtab_lab.testing.record import Record


class Property(NamedTuple):
    """A property's name, and its meaning in one line."""

    name: str
    about: str


PROPERTIES = (
    Property("fits", "a request comes out, and its prompt is within the window"),
    Property("legal", "the provider would accept it: no rule of its format is broken"),
    Property("pairs", "each call has its one result and its tool, each result its call"),
    Property("speakers", "nobody's words are sent in another's name"),
    Property("constraints", "what the user demanded or forbade stands there word for word"),
    Property("sealed", "signed thinking and compaction blocks are unchanged or left out whole"),
    Property("untouched", "at most 40 % of the window: unchanged, but for what would be refused"),
    Property("idempotent", "what came out, put in again, comes out the same"),
    Property("sticky", "what was sent stays while there is room, and is not rewritten every turn"),
    Property("reversible", "every text that was taken out can be had back, exactly"),
)
NAMES = tuple(one.name for one in PROPERTIES)


class Weighed(NamedTuple):
    """Tokens of a request's prompt, and why the provider would refuse it ("": it would not)."""

    tokens: int
    refused: str


def weigh(request: Any, format: str) -> Weighed:
    """Count ``request`` with o200k and judge it without a window."""
    api = HTTP_APIS[format]
    model = MODELS[format]
    record = Record(1, format, "generate", "", None, {}, model)
    verdict = judge.judge(judge.ProviderConfig(), api, style_for(None, format), request, record)
    if not verdict.when:
        return Weighed(record.tokens, "")
    reasons = [f"{violation.rule}: {violation.message}" for violation in record.violations]
    message = reasons[0] if reasons else str(verdict.facts.get("message", ""))
    return Weighed(record.tokens, " ".join(f"{verdict.when} {message}".split()))


_SERVERS = "srvtoolu_"
"""Ids of Anthropic's server tools begin so.  In the model's last message they may wait."""


def pairs(sent: Sequence[SaidPiece], format: str) -> Iterator[str]:
    """Calls without a result, results without a call, and duplicates."""
    waiting: dict[str, int] = {}
    for piece in sent:
        if piece.kind == "call":
            if piece.id in waiting and format != "gemini":
                yield f"message {piece.message}: a second call {piece.id} before the first's result"
            waiting[piece.id] = waiting.get(piece.id, 0) + 1
        elif piece.kind == "result":
            if not waiting.get(piece.id):
                yield f"message {piece.message}: a result without its call {piece.id}"
                continue
            waiting[piece.id] -= 1
            if not waiting[piece.id]:
                del waiting[piece.id]
        elif waiting and piece.speaker == "user":
            yield f"message {piece.message}: the user speaks before the result of {min(waiting)}"
            waiting = {}
    said = [piece for piece in sent if piece.speaker == "model"]
    pending = {p.id for p in said if p.message == said[-1].message and p.id.startswith(_SERVERS)}
    if owed := waiting.keys() - pending:
        yield f"the end: no result of {min(owed)}"


def unloaded(arrived: Sequence[SaidPiece], sent: Sequence[SaidPiece]) -> Iterator[str]:
    """Calls of deferred tools without the search that loaded them."""
    waiting = {piece.name for piece in arrived if piece.kind == "loads"}
    for piece in sent:
        if piece.kind == "loads":
            waiting.discard(piece.name)
        elif piece.kind == "call" and piece.name in waiting:
            yield f"message {piece.message}: no search before it loads the tool {piece.name!r}"


def gone(arrived: Sequence[SaidPiece], sent: Sequence[SaidPiece]) -> Iterator[str]:
    """Texts, and results of calls that arrived, which are not sent as they were."""
    called = {piece.id for piece in arrived if piece.kind == "call"}
    there = {(piece.speaker, piece.kind, piece.id, piece.text) for piece in sent}
    for piece in arrived:
        is_whole = piece.kind == "text" or (piece.kind == "result" and piece.id in called)
        if is_whole and (piece.speaker, piece.kind, piece.id, piece.text) not in there:
            yield f"message {piece.message}: gone: {_short(piece)}"


def foreign(sent: Sequence[SaidPiece], speakers: Speakers) -> Iterator[str]:
    """Texts attributed to a speaker who never said them."""
    for text in sent:
        piece = speakers.foreign(text)
        if piece is not None:
            yield f"message {text.message}: the {text.speaker} never said {piece!r}"


def constraints(sent: Sequence[SaidPiece], story: Story) -> Iterator[str]:
    """Constraints of the user that are missing in the user's texts."""
    spoken = " ".join(" ".join(s.text.split()) for s in sent if (s.speaker, s.kind) == _USER_TEXT)
    for wanted in story.constraints:
        if wanted not in spoken:
            yield f"gone: {wanted!r}"


_USER_TEXT = ("user", "text")


def sealed(arrived: Sequence[SaidPiece], sent: Sequence[SaidPiece]) -> Iterator[str]:
    """Sealed blocks that were changed, invented or moved; a missing compaction block."""
    before = {(piece.id, piece.text) for piece in arrived if piece.kind == "sealed"}
    for piece in sent:
        if piece.kind == "sealed" and (piece.id, piece.text) not in before:
            yield f"message {piece.message}: the {piece.id} block is not as it arrived"
    first = next((piece for piece in arrived if piece.id == "compaction"), None)
    if first is not None:
        heads = [piece for piece in sent if piece.speaker != "system"][:1]
        if not heads or (heads[0].id, heads[0].text) != (first.id, first.text):
            yield "the compaction block does not stand first, as it arrived"


def difference(before: Sequence[SaidPiece], after: Sequence[SaidPiece]) -> str:
    """The first difference between two readings; "" if they are equal."""
    for old, new in zip(before, after, strict=False):
        if old[1:] != new[1:]:
            return f"message {old.message}: {_short(old)} → {_short(new)}"
    if len(before) != len(after):
        return f"{len(before)} pieces → {len(after)}"
    return ""


def _short(piece: SaidPiece) -> str:
    text = piece.text if len(piece.text) <= 40 else piece.text[:37] + "..."
    return f"{piece.speaker} {piece.kind} {text!r}"


def lost(
    arrived: Sequence[SaidPiece], sent: Sequence[SaidPiece], recalled: Sequence[str]
) -> Iterator[str]:
    """Texts and results that are neither in the sent request nor recalled.

    A recalled original may be the text itself, or JSON of one or more steps that contains it.
    """
    sent_texts = {piece.text for piece in sent}
    recalled_texts = {text for original in recalled for text in _strings(original)}
    for piece in arrived:
        text = piece.text
        if piece.kind not in ("text", "result") or text in sent_texts or not text.strip():
            continue
        whole = text in recalled_texts or any(text in other for other in (*recalled, *sent_texts))
        if not whole:
            yield f"message {piece.message}: cannot be had back: {_short(piece)}"


def _strings(value: Any) -> Iterator[str]:
    """Every string in a text that is JSON, the text itself first."""
    if isinstance(value, str):
        yield value
        if value[:1] in "[{" and value[-1:] in "]}":
            with contextlib.suppress(ValueError):
                yield from _strings(json.loads(value))
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
