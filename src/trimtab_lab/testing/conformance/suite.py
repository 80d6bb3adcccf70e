"""Runs a target through the cases and judges the requests it would send."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trimtab_lab.testing.conformance import properties
from trimtab_lab.testing.conformance.cases import Case, case, seeds
from trimtab_lab.testing.conformance.properties import Weighed
from trimtab_lab.testing.conformance.reading import SaidPiece, read
from trimtab_lab.testing.conformance.scoreboard import CaseTally, Scoreboard
from trimtab_lab.testing.conformance.speakers import Speakers
from trimtab_lab.testing.conformance.stories import Story
from trimtab_lab.testing.conformance.targets import Sent, Target, TargetConversation
from trimtab_lab.testing.conformance.writing import write

ROOM = 0.4
"""While the previous request plus the new messages are below this share of the window, earlier
messages must not be rewritten.  It is low because targets act below the window, and some count more
tokens than o200k."""
SMALL_STEP = 0.08
"""Share of the window: two successive turns that add less than this must not both rewrite."""


@dataclass(frozen=True)
class Options:
    """``window`` in tokens; ``slack``: the share of it by which a prompt may be larger, for targets
    with another counter than o200k; ``only``: seeds to run instead of the first ``cases``."""

    window: int = 8_000
    cases: int = 60
    slack: float = 0.0
    formats: tuple[str, ...] = ()
    only: tuple[int, ...] = ()


def run(
    target: Target, options: Options, progress: Callable[[str, int], None] | None = None
) -> Scoreboard:
    """Run every case in every format; ``progress`` is called with format and seed before each."""
    formats = options.formats or target.formats
    tallies = []
    for seed in options.only or seeds(options.cases):
        one = case(seed, options.window)
        speakers = Speakers(one.story)
        for format in formats:
            if progress is not None:
                progress(format, seed)
            tallies.append(judged(target, one, format, options, speakers))
    tallies.sort(key=lambda tally: formats.index(tally.format))
    return Scoreboard.of(target.name, options.window, formats, tallies)


def judged(
    target: Target, one: Case, format: str, options: Options, speakers: Speakers
) -> CaseTally:
    """Judge one case in one format, in new conversations."""
    tally = CaseTally(one.seed, one.name, format)
    if format not in one.formats:
        return tally
    stories = one.story.requests() if one.grows else [one.story]
    watch = _Watch(one, format, options, tally, speakers)
    conversation = target.conversation(format)
    try:
        for turn, story in enumerate(stories, 1):
            watch.turn(conversation, story, turn)
    finally:
        conversation.close()
    if watch.last is not None:
        _again(target, format, watch.last, tally)
    return tally


@dataclass(frozen=True)
class _Turn:
    """One request before and after the target."""

    number: int
    arrived: list[SaidPiece]
    sent: list[SaidPiece]
    body: Any
    before: Weighed
    after: Weighed


class _Watch:
    """Judges the turns of one conversation, comparing each with the previous one."""

    def __init__(
        self, case: Case, format: str, options: Options, tally: CaseTally, speakers: Speakers
    ) -> None:
        self._case, self._format, self._options, self._tally = case, format, options, tally
        self._speakers = speakers
        self._handles: dict[str, None] = {}
        self._rewrote = False
        self.last: _Turn | None = None

    def turn(self, conversation: TargetConversation, story: Story, number: int) -> None:
        """Send one request and judge the result."""
        request = write(story, self._format)
        try:
            sent = conversation.send(request)
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            self._tally.add("fits", [f"nothing is sent: {why}"], number)
            self.last = None
            return
        now = _Turn(
            number, read(request, self._format), read(sent.request, self._format), sent.request,
            properties.weigh(request, self._format), properties.weigh(sent.request, self._format),
        )  # fmt: skip
        self._judge(now, story)
        self._reversible(conversation, sent, now)
        self.last = now

    def _judge(self, now: _Turn, story: Story) -> None:
        add, turn = self._tally.add, now.number
        add("fits", list(self._too_large(now)), turn)
        add("legal", [now.after.refused] if now.after.refused else [], turn)
        add("pairs", self._unpaired(now), turn)
        add("speakers", properties.foreign(now.sent, self._speakers), turn)
        if story.constraints:
            add("constraints", properties.constraints(now.sent, story), turn)
        if any(piece.kind == "sealed" for piece in now.arrived):
            add("sealed", properties.sealed(now.arrived, now.sent), turn)
        if now.before.tokens <= ROOM * self._options.window:
            add("untouched", list(self._changed(now)), turn)
        if self.last is not None and self._case.is_even:
            add("sticky", list(self._rewritten(self.last, now)), turn)

    def _unpaired(self, now: _Turn) -> Iterator[str]:
        yield from properties.pairs(now.sent, self._format)
        yield from properties.unloaded(now.arrived, now.sent)

    def _changed(self, now: _Turn) -> Iterator[str]:
        """What was changed in a small request, apart from what the provider would refuse."""
        if now.before.refused:
            yield from properties.gone(now.arrived, now.sent)
        elif changed := properties.difference(now.arrived, now.sent):
            yield changed

    def _too_large(self, now: _Turn) -> Iterator[str]:
        window = self._options.window
        if all(piece.speaker == "system" for piece in now.sent):
            yield "no message is left"
        if now.after.tokens > window * (1 + self._options.slack):
            share = now.after.tokens / window
            yield f"{now.after.tokens:,} tokens, {share:.2f} × the window"

    def _rewritten(self, before: _Turn, now: _Turn) -> Iterator[str]:
        """Reasons if earlier messages were rewritten although there was room, or twice in a row
        for small steps."""
        start = now.sent[: len(before.sent)]
        changed = properties.difference(before.sent, start)
        rewrote_before, self._rewrote = self._rewrote, bool(changed)
        if not changed:
            return
        window = self._options.window
        new = now.before.tokens - before.before.tokens
        wanted = before.after.tokens + new
        if wanted <= ROOM * window:
            yield f"rewritten with room for {window - wanted:,} of {window:,} tokens: {changed}"
        elif rewrote_before and new <= SMALL_STEP * window:
            yield f"rewritten on two turns in a row, {new:,} tokens were new: {changed}"

    def _reversible(self, conversation: TargetConversation, sent: Sent, now: _Turn) -> None:
        self._handles |= dict.fromkeys(sent.handles)
        if not self._handles:
            return
        recalled = []
        for handle in self._handles:
            text = conversation.recall(handle)
            if text is None:
                return
            recalled.append(text)
        self._tally.add("reversible", properties.lost(now.arrived, now.sent, recalled), now.number)


def _again(target: Target, format: str, last: _Turn, tally: CaseTally) -> None:
    """Judge idempotence: the result, sent in a new conversation, should come out unchanged."""
    if last.after.refused:
        return  # nobody would send a request that is refused
    conversation = target.conversation(format)
    try:
        sent = conversation.send(last.body)
    except Exception as error:
        tally.add("idempotent", [f"raises {type(error).__name__} for its own output"], last.number)
        return
    finally:
        conversation.close()
    changed = properties.difference(last.sent, read(sent.request, format))
    tally.add("idempotent", [changed] if changed else [], last.number)
