"""A request as received and after repair, with its limits.

It holds values and derives others from them; ``pipeline`` creates it and decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab import reducers
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.repair import ignored
from trimtab.formats.repair.provenance import Provenance
from trimtab.formats.rules import Repair, Repaired, Violation
from trimtab.journal.cleared_results import cleared_key, is_cleared
from trimtab.journal.journal import Journal
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.lazy import cached_property
from trimtab.planning.dead_weight import DeadBlock
from trimtab.planning.edits import gone_items
from trimtab.planning.eligibility import Bounds, Eligibility, PlanInputs
from trimtab.planning.offers import OfferCache
from trimtab.planning.operations import Applied
from trimtab.planning.planner import Planner
from trimtab.planning.presets import PRESETS
from trimtab.planning.query_context import QueryContext
from trimtab.planning.redundancy import CallHistory, Redundancy
from trimtab.pricing import early, economics
from trimtab.pricing.calibration import Calibration
from trimtab.pricing.economics import EditBatch
from trimtab.reducers import Config, Reducer, with_extra
from trimtab.request.effective_limits import EffectiveLimits
from trimtab.request.message_cache import MessageCache
from trimtab.settings import Settings
from trimtab.transcript.model import Edit, Place
from trimtab.transcript.model_notes import ModelNote, model_notes
from trimtab.transcript.protected import pinned, pinned_by_words, protected
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session knows about a request beside its settings and its journal."""

    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    """Calibrations learned from the provider's answers, by ``calibration_key``."""
    handle_key: bytes = b""
    """Key for handles that cannot be guessed; a session with a store has one."""
    idle_seconds: float | None = None
    """Seconds since the conversation's last request, used if the settings give none."""
    destination: str = ""
    """The endpoint and model that the request goes to, ``api.openai.com|gpt-5.1``; "": only the
    model is known.  After ``prepare`` its ``refused_rules.destination_of``."""
    is_preview: bool = False
    """Whether a cut is made although none is due: to show what it would take."""
    refused: tuple[str, ...] = ()
    """Rules that a refusal of this request named, or that its endpoint is known for."""


@dataclass(frozen=True)
class PreparedRequest:
    """``body`` and ``arrived`` are the request as received; ``repaired`` and ``transcript`` are the
    same after repair; ``repairs`` lists what was done (None: nothing was wrong)."""

    body: RequestBody
    arrived: Transcript
    format_reason: str
    repaired: RequestBody
    transcript: Transcript
    repairs: Repaired | None
    sizes: TokenSizes
    limits: EffectiveLimits
    settings: Settings
    journal: Journal
    """The journal of earlier turns."""
    cache: MessageCache
    warnings: list[str]
    broken: Mapping[str, int] = field(default_factory=dict)
    """Rules that the request breaks after repair, and how often: edits must not break them more
    often."""
    facts: SessionFacts = field(default_factory=SessionFacts)
    released: tuple[str, ...] = ()
    """Refs whose pin in the journal was released because the request did not fit."""
    holds_notes: bool = True
    """Whether the model's own notes stay whole; where not, they give way late."""

    @cached_property
    def active(self) -> tuple[Edit, ...]:
        """The journal's edits that apply to this request; none of what is pinned by its words."""
        if not self.journal.entries:
            return ()
        edits = self.journal.active(self.transcript)
        whole = pinned_by_words(self.transcript, self.journal.pins)
        return tuple(edit for edit in edits if whole.isdisjoint(edit.targets)) if whole else edits

    @cached_property
    def _hidden(self) -> set[str]:
        """Refs of the blocks that edits of earlier turns replace or take out."""
        return {ref for edit in self.active for ref in edit.targets}

    @cached_property
    def newly_cleared(self) -> tuple[Place, ...]:
        """Results that the client has emptied since the last request and that no edit hides, oldest
        first.  Before the first edit there are none: nothing tells then which are new."""
        if not self.journal.entries:
            return ()
        return tuple(
            place
            for ref, place in self.transcript.refs.items()
            if is_cleared(place.block)
            and ref not in self._hidden
            and cleared_key(ref) not in self.journal.repaired
        )

    @property
    def tokens_behind_cleared(self) -> int:
        """Tokens from the first newly emptied result to the end, as sent; 0 if there is none."""
        transcript = self.transcript
        if not self.newly_cleared:
            return 0
        return sum(
            self.sizes.block(transcript, place)
            for number in range(self.newly_cleared[0].message, len(transcript.messages))
            for place in transcript.places_in(number)
            if transcript.ref(place) not in self._hidden
        )

    @property
    def idle_seconds(self) -> float | None:
        """Seconds since the last request of the conversation; None if unknown."""
        idle = self.settings.idle_seconds
        return self.facts.idle_seconds if idle is None else idle

    @property
    def new_repairs(self) -> list[Repair]:
        """The repairs that no earlier request of this journal had.  Leaving out what the provider
        ignores is none: it changes nothing that is read."""
        if self.repairs is None:
            return []
        seen, repairs = self.journal.repaired, self.repairs
        return [
            repair
            for (rule, repair), key in zip(repairs.repairs, repairs.keys, strict=True)
            if rule != ignored.RULE and repair_key(rule, key) not in seen
        ]

    # --- paths before repair ---

    def before_repair(self, path: Path, passes: int | None = None) -> Path:
        """Map a path of the repaired request to the request as received (unchanged if it is new).

        ``passes``: the number of repair passes after which the path is valid; None: all.
        """
        given = self.provenance.given(path, passes) if self.provenance else path
        return path if given is None else given

    @cached_property
    def provenance(self) -> Provenance | None:
        """The map from repaired to original paths; None if nothing was wrong."""
        if self.repairs is None:
            return None
        return Provenance(self.repairs.trees, self.repairs.passes, self.transcript.base)

    # --- originals, as they were given ---

    def original(self, applied: Applied) -> str:
        """The original that an edit removes: the string of a leaf, the JSON of anything else."""
        edit, origins = applied.edit, self.provenance
        if edit.op in ("drop", "fold"):
            items = gone_items(self.transcript, edit)
            given = items if origins is None else origins.messages(items)
            return _listed(self.body.spelled(given))
        if len(edit.targets) > 1:
            items = [self.transcript.item(self.transcript.refs[ref]) for ref in edit.targets]
            given = items if origins is None else [origins.given(item) or item for item in items]
            return _listed(self.body.spelled(given))
        place = self.transcript.refs[edit.targets[0]]
        leaf = edit.op == "replace" and place.block.spelling in ("string", "json-string")
        path = self.transcript.where(place) if leaf else applied.paths[0]
        return self._given(path, leaf=leaf)

    def _given(self, path: Path, *, leaf: bool) -> str:
        """The value as received for a path of the repaired request."""
        given = self.provenance.given(path) if self.provenance else path
        if leaf:
            now = str(paths.get(self.repaired.tree, path))
            before = now if given is None else paths.get(self.body.tree, given)
            # Where repair joined texts, what it joined is the original of all of them.
            return before if isinstance(before, str) and before not in now else now
        if given is None:
            return self.repaired.spelled([path])[0]
        return self.body.spelled([given])[0]

    def taken_by_repair(self) -> Iterator[tuple[int, Any, str]]:
        """(number of the repair, value at the time, the original) of each removal by a repair."""
        if self.repairs is None or not self.repairs.taken:
            return
        assert self.provenance is not None
        came = [
            self.provenance.given(path, self.repairs.at[index])
            for index, path, _ in self.repairs.taken
        ]
        known = [(path, paths.get(self.body.tree, path)) for path in came if path is not None]
        others = [path for path, before in known if not isinstance(before, str)]
        texts = {path: before for path, before in known if isinstance(before, str)}
        texts |= zip(others, self.body.spelled(others), strict=True)  # the text is read once
        for (index, _, value), path in zip(self.repairs.taken, came, strict=True):
            if path is not None:
                yield index, value, texts[path]
            else:
                yield index, value, value if isinstance(value, str) else paths.dump(value)

    def places(self, edit: Edit) -> list[Place]:
        """The blocks that an edit targets."""
        refs = self.transcript.refs
        return [refs[ref] for ref in edit.targets if ref in refs]

    # --- what it needs ---

    def may_exceed(self, limit: int) -> bool:
        """Whether the body can have more than ``limit`` bytes; a cheap upper bound."""
        return self.repaired.most_bytes > limit

    def needs_edits(self, tokens: int) -> bool:
        """Whether anything exceeds a trigger or a limit."""
        bounds = self.bounds_at(tokens)
        if tokens > bounds.begin or tokens > bounds.capacity:
            return True
        if self.dead_weight_due:
            return True
        if self.too_many_images or self.too_long_result:
            return True
        limit = bounds.body_bytes
        return limit is not None and self.repaired.exceeds(limit)

    def bounds_at(self, tokens: int) -> Bounds:
        """The limits if ``tokens`` would be sent: a cut begins before the trigger where it pays.

        Decided from sums over the history as it arrived, so that a request that was cut is not cut
        again before as many calls have passed.
        """
        bounds, preview = self.limits.bounds, self.facts.is_preview
        history = None if self.settings.waits_for_the_window else bounds.history
        if not preview and (history is None or tokens <= history):
            return bounds
        target, before = self._target_and_head
        if preview:
            return replace(bounds, pays_above=target)
        batch = EditBatch(max(0, target - before), tokens - target, self.limits.cold)
        table = economics.prices_of(self.settings.prices, self.transcript)
        if not economics.pays(table, batch, tokens, self.calls_since_cut):
            return bounds
        return replace(bounds, pays_above=target)

    @cached_property
    def _target_and_head(self) -> tuple[int, int]:
        """(the tokens that a cut goes down to, the tokens before the first closed step)."""
        transcript, sizes, bounds = self.transcript, self.sizes, self.limits.bounds
        inputs = self._inputs(drops=True, to_target=True)
        target = Eligibility(transcript, sizes, inputs, bounds).target
        first = next((one.first for one in transcript.groups if one.closed and one.has_calls), 0)
        return target, sizes.head(transcript) + sum(map(sizes.message, transcript.messages[:first]))

    @cached_property
    def calls_since_cut(self) -> int:
        """Model calls of the history that came after the newest cut that applies to it."""
        refs, messages = self.transcript.refs, self.transcript.messages
        cuts = [refs[edit.witness].message for edit in self.active if edit.witness in refs]
        roles = [message.role for message in messages[max(cuts, default=-1) + 1 :]]
        pairs = zip(roles, ["", *roles], strict=False)
        return sum(role == "assistant" != before for role, before in pairs)

    @property
    def too_many_images(self) -> bool:
        """Whether it has more images and documents than allowed."""
        limit = self.limits.bounds.images
        return limit is not None and self.sizes.media(self.transcript) > limit

    @property
    def too_long_result(self) -> bool:
        """Whether one of its tool results is longer than allowed."""
        limit = self.limits.bounds.result_chars
        return limit is not None and self.longest_result() > limit

    @cached_property
    def dead_weight_due(self) -> bool:
        """Whether there is dead weight to remove before the trigger is reached."""
        return bool(self.early_dead_weight(self.planner())) if self._early else False

    def early_dead_weight(self, plan: Planner) -> Sequence[DeadBlock]:
        """The dead weight to remove before the trigger, in a plan with nothing chosen yet."""
        if not self._early:
            return ()
        table = economics.prices_of(self.settings.prices, self.transcript)
        return early.worth_pruning(plan, table, self._early, cold=self.limits.cold)

    @property
    def _early(self) -> int | None:
        """Least tokens of dead weight removed early; None if it waits for the trigger."""
        early = self.settings.early
        if self.limits.is_client_request:
            return None
        return None if early is None else max(1, early)

    @property
    def reducers(self) -> tuple[Reducer, ...]:
        """The reducers to use, in order."""
        given = self.settings.reducers
        ours = reducers.REDUCERS if given is None else tuple(given)
        return with_extra(ours, self.settings.extra_reducers)

    def longest_result(self) -> int:
        """Chars of the longest tool result."""
        return self.transcript.longest_result()

    @cached_property
    def redundancy(self) -> Redundancy:
        """Which blocks later content repeats or supersedes."""
        calls = CallHistory(self.transcript, self.cache.calls)
        return Redundancy(
            self.transcript, calls, self.settings.duplicates, self.settings.failed_inputs
        )

    @cached_property
    def model_notes(self) -> tuple[ModelNote, ...]:
        """What the model noted down to keep, newest first."""
        return model_notes(self.transcript)

    # --- rules ---

    def check(self, transcript: Transcript) -> tuple[Violation, ...]:
        """Violations caused by edits; a rule that raises is a warning unless ``strict``."""
        violations = checked(transcript, self.settings, self.warnings)
        often = Counter(violation.rule for violation in violations)
        return tuple(one for one in violations if often[one.rule] > self.broken.get(one.rule, 0))

    # --- planning ---

    @cached_property
    def _offers(self) -> OfferCache:
        """The reducers' offers for its blocks, computed once for all its planners."""
        return OfferCache()

    def planner(
        self, bounds: Bounds | None = None, *, drops: bool = True, to_target: bool = True
    ) -> Planner:
        """A planner for this request, with the journal's edits already applied."""
        bounds, inputs = bounds or self.limits.bounds, self._inputs(drops, to_target)
        if bounds.body_bytes is None or not self.may_exceed(bounds.body_bytes):
            return Planner(self.transcript, self.sizes, inputs, bounds, self.active)
        size, item_bytes = self.repaired.body_bytes, self.repaired.item_bytes
        return Planner(self.transcript, self.sizes, inputs, bounds, self.active, size, item_bytes)

    def _inputs(self, drops: bool, to_target: bool) -> PlanInputs:
        settings, transcript = self.settings, self.transcript
        preset = PRESETS[settings.preset]
        config = Config(self.sizes.counter, settings.recall, articles=settings.articles)
        held = settings.protected_tools, settings.protected_paths, settings.protected_turns
        edited = {target for edit in self.active for target in edit.targets}
        context = QueryContext(transcript, config, edited)
        notes = [(p.message, p.index) for note in self.model_notes for p in note.places]
        kept = {transcript.ref_of[key] for key in notes} if self.holds_notes else set[str]()
        return PlanInputs(
            config=config,
            about=context.about,
            asked=context.asked,
            reducers=self.reducers,
            offered=self._offers,
            pinned=pinned(
                transcript,
                (*settings.pins, *sorted(self.journal.pins)),
                None if settings.strict else self.warnings,
            ).union(kept),
            protected=protected(transcript, *held, preset.recent_turns).union(notes),
            held_by_user=protected(transcript, *held),
            facts=lambda place: self.redundancy.facts(place),  # not all plans ask for them
            calls=lambda group: self.redundancy.calls.by_turn[group],
            open_tail=settings.open_tail,
            drops=drops,
            to_target=to_target,
            lines=self.cache.lines,
            folds=preset.folds,
            reducers_only=settings.reducers is not None,
            recent=preset.recent_results,
            handle_key=self.facts.handle_key,
        )

    def without_pins(self) -> PreparedRequest:
        """The same request without any pins, those of the model's notes included."""
        settings = self.settings | Settings(pins=())
        journal = replace(self.journal, pins=frozenset())
        return replace(self, settings=settings, journal=journal, holds_notes=False)


def _listed(values: list[str]) -> str:
    """JSON values as one list.  Changes ``values``: brackets put on afterwards would need one more
    copy of a list that may be as long as the request."""
    if not values:
        return "[]"
    values[0] = f"[{values[0]}"
    values[-1] += "]"
    return ",".join(values)


def repair_key(rule: str, key: str) -> str:
    """The name of a repair, by which a journal recognises it; ``key``: one of ``Repaired.keys``."""
    return f"{rule} {key}"


def checked(
    transcript: Transcript, settings: Settings, warnings: list[str]
) -> tuple[Violation, ...]:
    """Violations, certain or not; a rule that raises is a warning (with ``strict`` it raises)."""
    failures = None if settings.strict else warnings
    return rules.check(transcript, open_tail=settings.open_tail, failures=failures, doubtful=True)
