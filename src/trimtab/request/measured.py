"""The third stage: the tokens of a repaired request, the limits that it has to meet, and the edits
of earlier turns that apply to it.

    RepairedRequest ──measure──► MeasuredRequest

A cut begins above the trigger.  It begins later where few calls are left, and earlier where the
prompt cache is lost anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from trimtab.formats.repair import shape
from trimtab.formats.rules import Repair
from trimtab.journal.cleared_results import cleared_key, is_cleared
from trimtab.journal.journal import Journal
from trimtab.planning.image_sizes import has_too_large_image
from trimtab.planning.tool_definitions import MAX_SHARE, tool_sizes, tools_take
from trimtab.pricing import economics, models
from trimtab.pricing.economics import with_calls_left
from trimtab.reducers.smaller_images import SmallerImages
from trimtab.request.limits import EffectiveLimits, calibrated, effective_limits
from trimtab.request.received import ReceivedRequest, RepairedRequest, TurnInputs
from trimtab.settings import NO_WINDOW, Settings
from trimtab.transcript.model import Edit, Place
from trimtab.transcript.protected import FILE_PIN, TEXT_PIN, pinned_by_words
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import Transcript

MOSTLY = 0.5
"""The cache counts as lost if this share of the trigger is behind a result that the client has
emptied."""


@dataclass(frozen=True)
class MeasuredRequest:
    """A repaired request, ready to be planned."""

    inputs: TurnInputs
    repaired: RepairedRequest
    sizes: TokenSizes
    limits: EffectiveLimits
    active: tuple[Edit, ...] = ()
    """The journal's edits that apply to it; none of what is pinned by its words."""
    newly_cleared: tuple[Place, ...] = ()
    """Results that the client has emptied since the last request and that no edit hides, oldest
    first.  Before the first edit there are none: nothing tells then which are new."""
    warnings: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    """Refs whose pin in the journal was released because the request did not fit."""
    holds_notes: bool = True
    """Whether the model's own notes stay whole; where not, they give way late."""
    images: SmallerImages = field(default_factory=SmallerImages)
    """What was made of its images, for all plans of it."""

    @property
    def received(self) -> ReceivedRequest:
        """The request before repair."""
        return self.repaired.received

    @property
    def transcript(self) -> Transcript:
        """Its blocks and groups, after repair."""
        return self.repaired.transcript

    @property
    def settings(self) -> Settings:
        """The settings of the call."""
        return self.inputs.settings

    @property
    def tokens_before(self) -> int:
        """Tokens of the request as received."""
        return self.sizes.measure(self.received.transcript)

    @property
    def new_repairs(self) -> list[Repair]:
        """The repairs that no earlier request of the journal had."""
        return self.repaired.new_repairs(self.inputs.journal)

    @property
    def idle_seconds(self) -> float | None:
        """Seconds since the last request of the conversation; None if unknown."""
        idle = self.settings.idle_seconds
        return self.inputs.idle_seconds if idle is None else idle

    @property
    def too_many_images(self) -> bool:
        """Whether it has more images and documents than allowed."""
        limit = self.limits.bounds.images
        return limit is not None and self.sizes.media(self.transcript) > limit

    @property
    def too_large_image(self) -> bool:
        """Whether one of its images has more pixels or bytes than allowed."""
        return has_too_large_image(self.transcript, self.limits.bounds)

    @property
    def too_long_result(self) -> bool:
        """Whether one of its tool results is longer than allowed."""
        limit = self.limits.bounds.result_chars
        return limit is not None and self.transcript.longest_result() > limit

    @property
    def is_over(self) -> bool:
        """Whether it is above the trigger or a limit, without any edit."""
        bounds, tokens = self.limits.bounds, self.sizes.measure(self.transcript)
        if tokens > bounds.trigger or tokens > bounds.capacity:
            return True
        if self.too_many_images or self.too_large_image or self.too_long_result:
            return True
        limit = bounds.body_bytes
        return limit is not None and self.repaired.body.exceeds(limit)

    @property
    def early_tokens(self) -> int | None:
        """Least tokens of dead weight that go before the trigger; None if they wait for it."""
        if self.limits.is_client_request:
            return None
        early = self.settings.early
        return None if early is None else max(1, early)

    @property
    def may_begin_early(self) -> bool:
        """Whether the settings let a cut begin before the trigger."""
        early = self.early_tokens is not None or self.limits.bounds.history is not None
        return early or self.inputs.is_preview

    def with_journal(self, journal: Journal) -> MeasuredRequest:
        """The same request with another journal: the limits stay."""
        active, cleared = _remembered(self.transcript, journal)
        inputs = replace(self.inputs, journal=journal)
        return replace(self, inputs=inputs, active=active, newly_cleared=cleared)

    def tools_advice(self) -> str:
        """What to do about the definitions of tools, where they take more than half of the room;
        "" where they don't."""
        transcript, limits = self.transcript, self.limits
        capacity = limits.bounds.capacity
        tools = tool_sizes(transcript.places(), lambda place: self.sizes.block(transcript, place))
        if limits.window >= NO_WINDOW or sum(tool.size for tool in tools) <= MAX_SHARE * capacity:
            return ""
        tools = [tool._replace(size=limits.theirs(tool.size)) for tool in tools]
        room = f"the {limits.theirs(capacity):,} tokens that a prompt may have"
        return tools_take(tools, room, transcript.format)

    def without_pins(self) -> MeasuredRequest:
        """The same request without any pins, those of the model's notes included."""
        unpinned = self.with_journal(replace(self.inputs.journal, pins=frozenset()))
        inputs = replace(unpinned.inputs, settings=self.settings | Settings(pins=()))
        return replace(unpinned, inputs=inputs, holds_notes=False)


def measure(repaired: RepairedRequest, inputs: TurnInputs) -> MeasuredRequest:
    """Count its tokens, and find its limits.  Raises InvalidSetting."""
    settings, transcript = inputs.settings, repaired.transcript
    model, format = transcript.facts.model, repaired.received.transcript.format.name
    sizes = inputs.cache.sizes(settings.counter, model, format)
    limits = effective_limits(settings, transcript, sizes.counter)
    if inputs.calibrations:
        limits = calibrated(limits, settings, inputs.calibrations, transcript, sizes)
    warnings = (*repaired.warnings, *shape.warnings(transcript.format, repaired.body.tree))
    warnings += tuple(_window_of_another(settings.model or model, limits))
    warnings += tuple(_pins_of_nothing(transcript, inputs.journal))
    active, cleared = _remembered(transcript, inputs.journal)
    return _with_trigger_moved(
        MeasuredRequest(inputs, repaired, sizes, limits, active, cleared, warnings)
    )


def _pins_of_nothing(transcript: Transcript, journal: Journal) -> Iterator[str]:
    """A warning for each pin of words or of a file that nothing in the request has."""
    for pin in sorted(journal.pins):
        if pin.startswith((TEXT_PIN, FILE_PIN)) and not pinned_by_words(transcript, [pin]):
            kind = pin.partition(":")[0]
            yield f"a pin keeps nothing: no part of this request has its {kind}; pins() lists it"


def _window_of_another(model: str | None, limits: EffectiveLimits) -> Iterator[str]:
    """A warning where the window is that of the nearest version of an unknown model."""
    if model and limits.window_of and models.find(model) is None:
        yield (
            f"the window of {model[:80]} is not in our table: that of {limits.window_of} is taken, "
            f"{limits.window:,} tokens; window= says another"
        )


def _remembered(
    transcript: Transcript, journal: Journal
) -> tuple[tuple[Edit, ...], tuple[Place, ...]]:
    """(the journal's edits that apply, the results that the client has emptied since then)."""
    if not journal.entries:
        return (), ()
    edits = journal.active(transcript)
    if whole := pinned_by_words(transcript, journal.pins):
        edits = tuple(edit for edit in edits if whole.isdisjoint(edit.targets))
    hidden = _hidden(edits)
    return edits, tuple(
        place
        for ref, place in transcript.refs.items()
        if is_cleared(place.block)
        and ref not in hidden
        and cleared_key(ref) not in journal.repaired
    )


def _hidden(edits: Sequence[Edit]) -> set[str]:
    """Refs of the blocks that these edits replace or take out."""
    return {ref for edit in edits for ref in edit.targets}


# --- when a cut begins ---


def _with_trigger_moved(measured: MeasuredRequest) -> MeasuredRequest:
    """A cut begins later where few calls are left, and earlier where the prompt cache is lost
    anyway.  Where all calls that are left fit, none begins early."""
    limits, left = measured.limits, measured.settings.calls_left
    if left is not None:
        bounds = with_calls_left(limits.bounds, measured.transcript, measured.sizes, left)
        limits = replace(limits, bounds=bounds)
    all_fit = left is not None and limits.bounds.trigger == limits.bounds.capacity
    if not all_fit and not limits.is_client_request:
        limits = _with_lost_cache(measured, limits)
    return measured if limits is measured.limits else replace(measured, limits=limits)


def _with_lost_cache(measured: MeasuredRequest, limits: EffectiveLimits) -> EffectiveLimits:
    """The limits with an earlier trigger if the cache has expired, or if the client has emptied a
    result with most of the request behind it."""
    idle, table = measured.idle_seconds, measured.settings.prices
    cold = idle is not None and idle > economics.lifetime(table, measured.transcript)
    cleared = not cold and _tokens_behind_cleared(measured) > MOSTLY * limits.bounds.trigger
    if not (cold or cleared):
        return limits
    if measured.settings.waits_for_the_window:
        return replace(limits, cold=cold)
    bounds = economics.bounds_for_lost_cache(limits.bounds)
    return replace(limits, bounds=bounds, cold=cold, cleared=cleared)


def _tokens_behind_cleared(measured: MeasuredRequest) -> int:
    """Tokens from the first newly emptied result to the end, as sent; 0 if there is none."""
    transcript, cleared = measured.transcript, measured.newly_cleared
    if not cleared:
        return 0
    hidden = _hidden(measured.active)
    return sum(
        measured.sizes.block(transcript, place)
        for number in range(cleared[0].message, len(transcript.messages))
        for place in transcript.places_in(number)
        if transcript.ref(place) not in hidden
    )


def calls_since_cut(measured: MeasuredRequest) -> int:
    """Model calls of the history that came after the newest cut that applies to it."""
    refs, messages = measured.transcript.refs, measured.transcript.messages
    cuts = [refs[edit.witness].message for edit in measured.active if edit.witness in refs]
    roles = [message.role for message in messages[max(cuts, default=-1) + 1 :]]
    pairs = zip(roles, ["", *roles], strict=False)
    return sum(role == "assistant" != before for role, before in pairs)


def lower_bound(measured: MeasuredRequest) -> int:
    """A lower bound of the tokens of any plan, found without planning: the head, the system
    messages, and the frame of one user message."""
    transcript, sizes = measured.transcript, measured.sizes
    head = sum(sizes.block_cost(block) for block in transcript.head if block.kind != "text")
    words = [transcript.messages[number] for number in transcript.table.user_and_system]
    system = sum(sizes.message(message) for message in words if message.role == "system")
    said = any(message.role == "user" and message.framed for message in words)
    return head + system + said * sizes.counter.scaled(MESSAGE_TOKENS)
