"""A policy for ``trimtab replay`` that knows which names and lines the agent will write again.

    trimtab replay LOGS --window 32k --policy trimtab,bench/oracle.py:Oracle

It is a bound, not a usable policy: it reads the recording's future from the index.  Near the limit
and in large batches, it folds everything but the newest turns and the user's texts into notes.  The
notes keep excerpts around identifiers and lines that will be needed, the most needed per char
first.  The choice is greedy, so it bounds policies of this kind and proves nothing about others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.transcript.model import Edit, Group, Place
from trimtab.transcript.transcript import Transcript
from trimtab_lab.replay import text_features
from trimtab_lab.replay.baseline_policies import applied, dropped, size_of
from trimtab_lab.replay.message_views import MessageView, transcript_of
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep
from trimtab_lab.replay.recording_index import RecordingIndex

TRIGGER, TARGET, TAIL = 0.97, 0.75, 0.20
"""A batch is made at TRIGGER of the window.  Of the room beside the parts that can't be folded,
notes may fill up to TARGET, and the newest TAIL stays unfolded."""
ARRIVAL = 0.10
"""A result above this share of the room is cut to what will be needed."""
SOON_TURNS = 20
"""A need so many turns away has half the worth, because a later batch may choose again."""
OCCURRENCES = 6
"""How many of the oldest, and of the newest, places of an identifier are considered."""
LONG_LINE = 160
CHARS_PER_TOKEN = 3.5
WIDE, WIDE_WORTH = "\0", 0.3
"""The mark of an identifier wanted with its context across lines, and the extra worth of that."""
GONE, KEPT = "[left out]", "[left out but for:]"


class Excerpt(NamedTuple):
    """A stretch of one text: message, number of its piece, first and last character."""

    message: int
    piece: int
    start: int
    end: int


class Oracle:
    """The policy; see the top of this file."""

    name, version, format = "oracle", "1", ""

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """One run over one recording."""
        return _OracleRun(index, window).step


class _OracleRun:
    def __init__(self, index: RecordingIndex, window: int) -> None:
        self.index, self.window = index, window
        self.number = -1
        self.notes: dict[int, str] = {}
        """First message of a folded group → the note that replaces it."""
        self.cuts: dict[tuple[int, int], str] = {}
        """(message, block) → the text that replaces a result that was too large."""

    def step(self, body: dict[str, Any]) -> PolicyOutput:
        self.number += 1
        count = self.index.turns[self.number].sent
        transcript = transcript_of(self.index.recording, body, self.index.views[:count])
        size = self._size(transcript)
        if size > TRIGGER * self.window:
            room = max(0, self.window - self._fixed(transcript))
            tail = self._tail(transcript, TAIL * room)
            target = self.window - (1 - TARGET) * room
            self._cut(transcript, to=ARRIVAL * room)
            self._fold(transcript, tail, target, again=False)
            if self._size(transcript) > target + 100:
                self._fold(transcript, tail, target, again=True)
            if self._size(transcript) > TRIGGER * self.window:
                self._cut(transcript, to=0)
        edits = self._edits(transcript)
        return PolicyOutput(
            applied(transcript, body, edits), notes=[("", f"{e.kind}: {e.why}") for e in edits]
        )

    # --- what is folded -----------------------------------------------------------------------

    def _fixed(self, transcript: Transcript) -> int:
        """Tokens that can't be folded: system, tools, the user's words."""
        usage = self.index.store.usage
        foldable = (g for g in transcript.groups if g.closed and g.has_calls)
        return usage.measure(transcript) - sum(size_of(self.index, transcript, g) for g in foldable)

    def _tail(self, transcript: Transcript, room: float) -> int:
        """The first of the newest messages, which stay unfolded."""
        first = len(transcript.messages)
        for group in reversed(transcript.groups):
            room -= sum(self._view(n).tokens for n in range(group.first, group.last + 1))
            if room < 0:
                break
            first = group.first
        newest = transcript.groups[-1].first if transcript.groups else first
        return min(first, newest)

    def _fold(self, transcript: Transcript, tail: int, target: float, *, again: bool) -> None:
        """Fold what is not folded yet; ``again``: choose again for all folded groups."""
        if again:
            self.notes = {}
        groups = [
            g
            for g in transcript.groups
            if g.closed and g.has_calls and g.places and g.last < tail and g.first not in self.notes
        ]
        for group in groups:
            self.notes[group.first] = GONE
        room = target - self._size(transcript)
        inside = [n for g in groups for n in _numbers(g)]
        chosen = self._choose(inside, self._standing(transcript, tail), room)
        for group in groups:
            own = [e for e in chosen if e.message in set(_numbers(group))]
            if own:
                self.notes[group.first] = "\n".join([KEPT, *self._texts(own)])

    def _standing(self, transcript: Transcript, tail: int) -> set[str]:
        """Identifiers and lines that the messages and notes which stay have, with their context."""
        folded = {n for g in transcript.groups if g.first in self.notes for n in _numbers(g)}
        stays = [self._view(n) for n in range(len(transcript.messages)) if n not in folded]
        standing: set[str] = set()
        for view in stays:
            standing |= view.lines
            standing |= {identifier for identifier in view.spans if _grounded(view, identifier)}
        for note in self.notes.values():
            standing.update(
                span.identifier
                for span in text_features.spans(note)
                if text_features.can_ground(text_features.near(note, span))
            )
            standing.update(text_features.lines(note))
        return standing

    def _wanted(self) -> dict[str, float]:
        """Identifier or line → its worth: the number of later turns that need it, sooner ones
        weighing more."""
        wanted: dict[str, float] = {}
        for distance, need in enumerate(self.index.needs[self.number :]):
            worth = SOON_TURNS / (SOON_TURNS + distance)
            for text in (*need.identifiers, *need.lines):
                wanted[text] = wanted.get(text, 0.0) + worth
            for identifier in need.identifiers:
                wanted[WIDE + identifier] = wanted.get(WIDE + identifier, 0.0) + WIDE_WORTH * worth
        return wanted

    def _choose(self, messages: Sequence[int], standing: set[str], room: float) -> list[Excerpt]:
        """The excerpts worth most per character that fit into ``room`` tokens."""
        wanted = self._wanted()
        for text in standing:
            wanted.pop(text, None)
            wanted.pop(WIDE + text, None)
        serves: dict[Excerpt, set[str]] = {}
        for text, excerpt in self._candidates(messages, wanted):
            serves.setdefault(excerpt, set()).add(text)
        heap = [(-_worth(e, t, wanted), e) for e, t in serves.items()]
        heapq.heapify(heap)
        chosen: list[Excerpt] = []
        left = room * CHARS_PER_TOKEN
        while heap and left > 0:
            worth, excerpt = heapq.heappop(heap)
            now = -_worth(excerpt, serves[excerpt], wanted)
            if now > worth and now < 0:
                heapq.heappush(heap, (now, excerpt))
            elif now < 0 and excerpt.end - excerpt.start <= left:
                chosen.append(excerpt)
                left -= excerpt.end - excerpt.start + 1
                for text in serves[excerpt]:
                    wanted.pop(text, None)
        return chosen

    def _candidates(
        self, messages: Sequence[int], wanted: Mapping[str, float]
    ) -> Iterator[tuple[str, Excerpt]]:
        """(identifier or line, an excerpt that contains it with its context)."""
        places: dict[str, list[tuple[bool, Excerpt]]] = {}
        for number in messages:
            view = self._view(number)
            for identifier in view.spans.keys() & wanted.keys():
                contexts = view.contexts(identifier, wide=False)
                for (piece, span), context in zip(view.spans[identifier], contexts, strict=True):
                    good, text = text_features.can_ground(context), view.pieces[piece].text
                    short = Excerpt(number, piece, *_line(text, span.start, span.end))
                    wide = Excerpt(number, piece, *_surroundings(text, span.start, span.end))
                    places.setdefault(identifier, []).append((good, short))
                    places.setdefault(identifier, []).append((good, wide))
                    places.setdefault(WIDE + identifier, []).append((good, wide))
            for line in view.lines & wanted.keys():
                for piece, part in enumerate(view.pieces):
                    at = part.text.find(line)
                    if at >= 0:
                        whole_line = Excerpt(number, piece, at, at + len(line))
                        places.setdefault(line, []).append((True, whole_line))
                        break
        for text, several in places.items():
            # If an identifier has words beside it somewhere, places without any are of no use.
            best = [e for good, e in several if good] or [e for _, e in several]
            few = best if len(best) <= 2 * OCCURRENCES else None
            for excerpt in few or (*best[:OCCURRENCES], *best[-OCCURRENCES:]):
                yield text, excerpt

    def _texts(self, chosen: Iterable[Excerpt]) -> Iterator[str]:
        """The texts of excerpts in order; adjacent excerpts are joined."""
        joined: list[Excerpt] = []
        for excerpt in sorted(chosen):
            last = joined[-1] if joined else None
            if last and last[:2] == excerpt[:2] and excerpt.start <= last.end + 1:
                joined[-1] = last._replace(end=max(last.end, excerpt.end))
            else:
                joined.append(excerpt)
        for message, piece, start, end in joined:
            yield self._view(message).pieces[piece].text[start:end].strip("\n")

    # --- what is cut where it stands ----------------------------------------------------------

    def _cut(self, transcript: Transcript, *, to: float) -> None:
        """Shorten results outside notes: those above ``to`` tokens to that size.  With 0: the
        largest first until the request fits, also prose and images of turns that can't be
        folded."""
        folded = {n for g in transcript.groups if g.first in self.notes for n in _numbers(g)}
        results = [
            (self.index.store.usage.block(transcript, place), place)
            for place in transcript.places()
            if place.message >= 0
            and place.message not in folded
            and _may_cut(transcript, place, last=not to)
            and ((place.message, place.index) not in self.cuts or not to)
        ]
        for tokens, place in sorted(results, key=lambda r: -r[0]):
            over = self._size(transcript) - TRIGGER * self.window
            if tokens < 50 or (tokens <= to if to else over <= 0):
                break
            room = to or max(0, tokens - over - 100)
            self.cuts[place.message, place.index] = self._short(place, room)

    def _short(self, place: Place, room: float) -> str:
        text = text_features.plain_text(place.block.text)
        pieces = self._view(place.message).pieces
        number = next((n for n, p in enumerate(pieces) if p.text == text), None)
        chosen = self._choose([place.message], set(), room)
        own = [e for e in chosen if e.piece == number]
        return "\n".join([KEPT, *self._texts(own)]) if own else GONE

    # --- what is sent -------------------------------------------------------------------------

    def _edits(self, transcript: Transcript) -> list[Edit]:
        groups = [g for g in transcript.groups if g.first in self.notes]
        by_ref = {transcript.ref(g.places[0]): self.notes[g.first] for g in groups}
        edits = []
        for edit in dropped(transcript, groups):
            texts = [by_ref[ref] for ref in edit.targets if ref in by_ref]
            kept = [text for text in texts if text != GONE]
            edits.append(Edit(edit.op, edit.targets, "\n".join(kept) or GONE, "fold", "the oldest"))
        folded = {n for g in groups for n in _numbers(g)}
        for (message, number), text in self.cuts.items():
            if message not in folded:
                ref = transcript.ref(transcript.at(message, number))
                edits.append(Edit("replace", (ref,), text, "cut", "too large where it stands"))
        return edits

    def _size(self, transcript: Transcript) -> int:
        """Tokens of the request with the notes and cuts so far."""
        usage = self.index.store.usage
        total, count = usage.measure(transcript), usage.counter
        for group in transcript.groups:
            if group.first in self.notes:
                total -= size_of(self.index, transcript, group)
                total += count(self.notes[group.first]) + 1
        folded = {n for g in transcript.groups if g.first in self.notes for n in _numbers(g)}
        for (message, number), text in self.cuts.items():
            if message not in folded and message < len(transcript.messages):
                total -= usage.block(transcript, transcript.at(message, number)) - count(text)
        return total

    def _view(self, number: int) -> MessageView:
        return self.index.views[number]


def _may_cut(transcript: Transcript, place: Place, *, last: bool) -> bool:
    block = place.block
    if block.kind == "result":
        return block.spelling == "string"
    prose = block.kind == "text" and transcript.messages[place.message].role == "assistant"
    return last and (prose or block.kind == "media") and not block.sealed


def _numbers(group: Group) -> list[int]:
    return sorted({place.message for place in group.places})


def _worth(excerpt: Excerpt, texts: Iterable[str], wanted: Mapping[str, float]) -> float:
    value = sum(wanted.get(text, 0) for text in texts)
    return value / (excerpt.end - excerpt.start + 1)


def _grounded(view: MessageView, identifier: str) -> bool:
    return any(map(text_features.can_ground, view.contexts(identifier, wide=False)))


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The line around the identifier; of a long line, NEAR_CHARS on both sides."""
    low = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    near = text_features.NEAR_CHARS
    return (
        (low, stop) if stop - low <= LONG_LINE else (max(low, start - near), min(stop, end + near))
    )


def _surroundings(text: str, start: int, end: int) -> tuple[int, int]:
    """The context of g3, extended to the beginning and end of its lines if they are near."""
    low, high = (
        max(0, start - text_features.CONTEXT_CHARS),
        min(len(text), end + text_features.CONTEXT_CHARS),
    )
    line = text.rfind("\n", 0, low) + 1
    low = line if low - line <= LONG_LINE else low
    stop = text.find("\n", high)
    stop = len(text) if stop < 0 else stop
    return low, stop if stop - high <= LONG_LINE else high
