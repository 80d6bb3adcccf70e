"""One request on its way: as it came, as it was read after repair, and what it must meet.

Knows how a request is prepared and what an outcome holds.  Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from trimtab import paths, rules
from trimtab.asking.asks import Answers
from trimtab.errors import NotAccepted
from trimtab.model import Block, Edit, Path, Place, Transcript
from trimtab.money import economics, prices
from trimtab.money.economics import Money
from trimtab.money.forecast import with_calls_left
from trimtab.planning import arrival
from trimtab.planning.edits import Applied
from trimtab.planning.plan import Bounds, Planner
from trimtab.planning.scope import Choice
from trimtab.presets import PRESETS
from trimtab.protect import pinned, spared
from trimtab.reading import embedded
from trimtab.reading.asked import Asked
from trimtab.reading.history import History
from trimtab.reading.known import Known
from trimtab.reading.sound import Sound
from trimtab.reading.source import Source
from trimtab.reading.usage import Usage
from trimtab.rules import Mend, Repaired, Violation
from trimtab.settings import InForce, Settings, calibrated, in_force
from trimtab.strategies import DEEP, Config, Offer, levels
from trimtab.telling.report import ReportEdit
from trimtab.turns.journal import Journal


@dataclass
class Work:
    """``source`` and ``given`` as it came, ``repaired`` and ``transcript`` after repair.

    ``journal``: of the turns before.
    """

    source: Source
    given: Transcript
    format_reason: str
    repaired: Source
    transcript: Transcript
    mends: Repaired | None
    usage: Usage
    force: InForce
    settings: Settings
    journal: Journal
    known: Known
    warnings: list[str]
    stuck: frozenset[str] = frozenset()
    """Rules that repair could not mend; edits are not blamed for them."""
    settled: bool = True
    """Whether the repair holds whatever follows."""
    gone_on: bool = False
    """Whether what was decided in the turn before stands."""

    @cached_property
    def active(self) -> tuple[Edit, ...]:
        """The journal's edits that count here."""
        return self.journal.active(self.transcript)

    @property
    def mended(self) -> frozenset[str]:
        """The repairs the journal has seen before."""
        return self.journal.mended

    @property
    def new_mends(self) -> list[Mend]:
        """The repairs that no earlier request of this journal had."""
        if self.mends is None:
            return []
        return [m for rule, m in self.mends.mends if mend_key(rule, m.path) not in self.mended]

    def before_repair(self, path: Path, passes: int | None = None) -> Path:
        """A path of the repaired request in the request as it came (itself where it is new).

        ``passes``: after how many passes of repair the path holds; None: after all.
        """
        at: Path | None = path
        for before in reversed(self._rebasers[:passes]):
            at = None if at is None else before(at)
        return self._moved(path) if at is None else at

    @cached_property
    def _rebasers(self) -> list[Callable[[Path], Path | None]]:
        return [paths.rebaser(ops) for ops in (self.mends.passes if self.mends else [])]

    def _moved(self, path: Path) -> Path:
        """Where a part that a repair moved stood: operations keep the very objects they move."""
        for end in range(len(path), len(self.transcript.base), -1):
            try:
                value = paths.get(self.repaired.tree, path[:end])
            except LookupError:
                continue
            if isinstance(value, (dict, list)) and id(value) in self._stood:
                return (*self._stood[id(value)], *path[end:])
        return path

    @cached_property
    def _stood(self) -> dict[int, Path]:
        """Where each message and each part of one stood in the request as it came."""
        base, found = self.transcript.base, dict[int, Path]()
        for number, message in enumerate(paths.get(self.source.tree, base)):
            found[id(message)] = (*base, number)
            for key, value in message.items() if isinstance(message, dict) else ():
                for index, part in enumerate(value if isinstance(value, list) else ()):
                    found[id(part)] = (*base, number, key, index)
        return found

    def places(self, edit: Edit) -> list[Place]:
        """The blocks an edit stands for."""
        refs = self.transcript.refs
        return [refs[ref] for ref in edit.targets if ref in refs]

    def check(self, transcript: Transcript) -> tuple[Violation, ...]:
        """Violations that edits brought; a rule that raises is a warning unless ``strict``."""
        found = checked(transcript, self.settings, self.warnings, self.known.sound_sent)
        return tuple(violation for violation in found if violation.rule not in self.stuck)

    def may_exceed(self, limit: int) -> bool:
        """Whether the body can have more bytes than this at all; cheap."""
        if self.source.written is not None:
            return 4 * len(self.source.written) > limit
        return self.usage.bytes_bound(self.transcript) > limit

    def needs(self, tokens: int) -> bool:
        """Whether anything is above a trigger or a limit."""
        bounds = self.force.bounds
        if tokens > bounds.trigger or tokens > bounds.capacity:
            return True
        if self.arriving:
            return True
        if bounds.images is not None and self.usage.media(self.transcript) > bounds.images:
            return True
        if bounds.result_chars is not None and self.longest_result() > bounds.result_chars:
            return True
        limit = bounds.body_bytes
        return limit is not None and self.may_exceed(limit) and self.repaired.body_bytes > limit

    @cached_property
    def arriving(self) -> bool:
        """Whether new results can be shown smaller from the start."""
        settings, force = self.settings, self.force
        if settings.arrival == "none" or force.internal:
            return False
        config = Config(self.usage.counter, settings.recall, articles=settings.articles)
        light = tuple(one for one in settings.all_strategies if one not in DEEP)

        def offers(block: Block) -> Iterator[Offer]:
            return levels(block, config, strategies=light)

        capacity = force.bounds.capacity
        return arrival.due(
            self.transcript, self.usage, settings.arrival, capacity, offers, self.quotable
        )

    def quotable(self, place: Place) -> bool:
        """Whether a result was read from a file, so that an edit may have to quote it exactly."""
        return self.history.action(place) == "read"

    def longest_result(self) -> int:
        """Chars of the longest tool result."""
        return max(
            (
                sum(
                    len(block.text)
                    for block in message.blocks
                    if block.kind == "result" and block.item[: len(part.path)] == part.path
                )
                for message in self.transcript.messages
                for part in message.results
            ),
            default=0,
        )

    @cached_property
    def history(self) -> History:
        """What came later than each block; worked out when a plan first asks."""
        settings = self.settings
        return History(
            self.transcript, self.known.past, settings.duplicates, settings.failed_inputs
        )

    def planner(
        self, bounds: Bounds | None = None, *, drops: bool = True, want: bool = True
    ) -> Planner:
        """A planner for this request, its journal's edits already shown."""
        settings, transcript = self.settings, self.transcript
        preset = PRESETS[settings.preset]
        bounds = bounds or self.force.bounds
        config = Config(self.usage.counter, settings.recall, articles=settings.articles)
        edited = {target for edit in self.active for target in edit.targets}
        choice = Choice(
            config=config,
            about=Asked(transcript, config, edited).about,
            strategies=settings.all_strategies,
            offered=self.known.offered(
                transcript,
                config,
                settings.all_strategies,
                frozenset(edited),
                settings.duplicates,
                settings.failed_inputs,
            ),
            pinned=pinned(transcript, settings.pins),
            spared=spared(
                transcript,
                settings.protected_tools,
                settings.protected_paths,
                settings.protected_turns,
                preset.recent_turns,
            ),
            facts=self.history.facts,
            open_tail=settings.open_tail,
            drops=drops,
            want=want,
            lines=self.known.lines,
            weights=self.known.weights,
            remains=self.known.remains,
            most_loss=preset.most_loss,
            folds=preset.folds,
            recent=preset.recent_results,
            handle_key=settings.handle_key,
        )
        if bounds.body_bytes is None or not self.may_exceed(bounds.body_bytes):
            return Planner(transcript, self.usage, choice, bounds, self.active)
        size, item_bytes = self.repaired.body_bytes, self.repaired.item_bytes
        return Planner(transcript, self.usage, choice, bounds, self.active, size, item_bytes)

    def unpinned(self) -> Work:
        """The same without its pins."""
        return replace(self, settings=replace(self.settings, pins=()))


@dataclass(frozen=True)
class Outcome:
    """What leaves: the request, the edits on it, and how its size came about."""

    work: Work
    sent: Source
    tokens_before: int
    tokens_after: int
    applied: tuple[Applied, ...] = ()
    new: tuple[Edit, ...] = ()
    originals: Mapping[str, str] = field(default_factory=dict)
    target: int | None = None
    step: str = ""
    """Which step of the ladder gave it; "" where nothing had to be planned."""
    asked: Answers | None = None
    """What a summarizer was asked; None where there is none."""
    money: Money | None = None
    """What the new edits do to the bill; None where no price table was named."""
    signed: int = 0
    """Of ``tokens_after``, those of hidden thinking behind signatures."""
    rows: list[ReportEdit] = field(default_factory=list, compare=False)
    """What the report says of each edit, once it was asked; shared while the edits are the same."""


def mend_key(rule: str, path: Path) -> str:
    """Names a repair, so that a journal can tell one it has seen."""
    return f"{rule} {paths.escape(path)}"


def prepare(request: Any, settings: Settings, known: Known, journal: Journal) -> Work:
    """Read and repair.  Raises InvalidRequest, InvalidSetting, NotAccepted (strict)."""
    source = known.source(request)
    _, format, reason, _, given = known.read(source, settings.format, settings.model)
    transcript = given
    warnings: list[str] = []
    repaired, stuck, settled = source, frozenset[str](), True
    mends = None if settings.strict else known.mending.again(
        source, given, open_tail=settings.open_tail
    )  # fmt: skip
    if mends is not None:
        repaired, transcript = source.after(mends.passes), mends.transcript
    elif found := checked(transcript, settings, warnings, known.sound):
        if settings.strict:
            raise NotAccepted(
                f"{len(found)} violation(s), the first: {paths.escape(found[0].path)}: "
                f"{found[0].message}; repair() mends them",
                found,
            )
        mends, left, failed = known.mended(
            source, given, settings.open_tail, lambda: _mended(source, given, settings)
        )
        settled = not (left or failed) and known.mending.keep(
            given, source.tree, mends, open_tail=settings.open_tail
        )
        warnings += failed
        repaired, transcript = source.after(mends.passes), mends.transcript
        stuck = frozenset(violation.rule for violation in left)
        mends = mends if mends.passes else None
    if settings.quote_embedded and (quotes := embedded.mends(transcript, repaired.tree)):
        blank = Repaired(repaired.tree, transcript, [], [], [], [])
        mends = embedded.after(mends or blank, quotes)
        repaired = source.after(mends.passes)
        transcript, settled = known.transcript(repaired, format, settings.model), False
    usage = known.usage(settings.counter, transcript.facts.model, format.name)
    force = in_force(settings, transcript, usage.counter)
    if settings.calibrations:
        force = calibrated(force, settings, transcript, usage)
    table = None if settings.prices is None else prices.named(settings.prices)
    if not force.internal and economics.cold(settings.idle_seconds, table):
        force = replace(force, bounds=economics.when_cold(force.bounds), cold=True)
    if settings.calls_left is not None:
        bounds = with_calls_left(force.bounds, transcript, usage, settings.calls_left)
        force = replace(force, bounds=bounds)
    return Work(
        source, given, reason, repaired, transcript, mends, usage,
        force, settings, journal, known, warnings, stuck, settled,
    )  # fmt: skip


def _mended(
    source: Source, given: Transcript, settings: Settings
) -> tuple[Repaired, tuple[Violation, ...], list[str]]:
    """The request after repair, what is still wrong with it, and the rules that failed."""
    failed: list[str] = []
    made = rules.repair(
        source.tree, given.format, given, open_tail=settings.open_tail, failures=failed
    )
    return made, checked(made.transcript, settings, failed, Sound()), failed


def checked(
    transcript: Transcript, settings: Settings, warnings: list[str], sound: Sound
) -> tuple[Violation, ...]:
    """Violations; a rule that raises is a warning (raised again with ``strict``)."""
    failures = None if settings.strict else warnings
    return sound.check(transcript, open_tail=settings.open_tail, failures=failures)
