"""The first two stages: a request is read, then repaired.

    request ──read──► ReceivedRequest ──repair──► RepairedRequest

``TurnInputs`` is what the caller gives beside the request.  A ``RepairedRequest`` knows where each
of its values was in the request as received: an original that is recalled later must be what was
given, not its repaired form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.amounts import many
from trimtab.errors import NotAccepted
from trimtab.formats import rules
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.compacted import ignored_paths
from trimtab.formats.repair import embedded_tool_text, ignored, refused_rules
from trimtab.formats.repair.provenance import Provenance
from trimtab.formats.repair.refused_rules import RefusedRules
from trimtab.formats.rules import Repair, Repaired, Violation
from trimtab.journal.journal import Journal
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.planning.edits import gone_items
from trimtab.planning.operations import Applied
from trimtab.pricing.calibration import Calibration
from trimtab.request.limits import byte_limit
from trimtab.request.message_cache import MessageCache
from trimtab.settings import Settings
from trimtab.transcript.model import Edit, Place
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True, slots=True)
class TurnInputs:
    """What a request is fitted with: settings, and what its conversation remembers."""

    settings: Settings
    journal: Journal = field(default_factory=Journal)
    """The journal of earlier turns."""
    cache: MessageCache = field(default_factory=MessageCache)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    """Calibrations learned from the provider's answers, by ``calibration_key``."""
    handle_key: bytes = b""
    """Key for handles that cannot be guessed; a session with a store has one."""
    idle_seconds: float | None = None
    """Seconds since the conversation's last request, used if the settings give none."""
    destination: str = ""
    """The endpoint and model that the request goes to, ``api.openai.com|gpt-5.1``; "": only the
    model is known."""
    refused: tuple[str, ...] = ()
    """Rules that a refusal of this request named, or that its endpoint is known for."""
    way_back: str = 'original: fitted.recall("{}")'
    """How the caller gets an original back, for the log; ``{}`` is the handle."""
    is_preview: bool = False
    """Whether a cut is made although none is due: to show what it would take."""
    keeps_messages: bool = False
    """Whether every message stays in its place, for who has only a part of a request: texts are
    shortened, nothing is repaired, folded, left out or refused."""


# --- read ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """The request as received, and its blocks and groups."""

    body: RequestBody
    transcript: Transcript
    format_reason: str
    destination: str
    """The name of its endpoint and model among refused rules."""
    refused: RefusedRules
    """The rules that refusals named for it."""


def read(request: Any, inputs: TurnInputs) -> ReceivedRequest:
    """Read a request.  Raises InvalidRequest, InvalidSetting."""
    settings, cache = inputs.settings, inputs.cache
    body = RequestBody.of(request)
    transcript, reason = cache.read(body, settings.format, settings.model)
    model = settings.model or transcript.facts.model
    destination = refused_rules.destination_of(inputs.destination, model)
    refused = refused_rules.known(inputs.journal.repaired, destination, inputs.refused)
    if dialect := refused_rules.dialect_in(refused):
        transcript, reason = cache.read(body, f"{transcript.format.name}:{dialect}", settings.model)
    return ReceivedRequest(body, transcript, reason, destination, refused)


# --- repair --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RepairedRequest:
    """``body`` and ``transcript`` are the request after repair; ``made`` lists what was done (None:
    nothing was wrong)."""

    received: ReceivedRequest
    body: RequestBody
    transcript: Transcript
    made: Repaired | None = None
    provenance: Provenance | None = None
    """The map from paths after repair to those before; None if nothing was wrong."""
    broken: Mapping[str, int] = field(default_factory=dict)
    """Rules that it breaks even so, and how often: edits must not break them more often."""
    warnings: tuple[str, ...] = ()

    def new_repairs(self, journal: Journal) -> list[Repair]:
        """The repairs that no earlier request of this journal had.  Leaving out what the provider
        ignores is none: it changes nothing that is read."""
        if self.made is None:
            return []
        return [
            repair
            for (rule, repair), key in zip(self.made.repairs, self.made.keys, strict=True)
            if rule != ignored.RULE and repair_key(rule, key) not in journal.repaired
        ]

    # --- paths before repair, and originals as they were given ---

    def before_repair(self, path: Path, passes: int | None = None) -> Path:
        """Map a path to the request as received (unchanged if repair made the value).

        ``passes``: the number of repair passes after which the path is valid; None: all.
        """
        given = self.provenance.given(path, passes) if self.provenance else path
        return path if given is None else given

    def original(self, applied: Applied) -> str:
        """The original that an edit removes: the string of a leaf, the JSON of anything else."""
        edit, refs = applied.edit, self.transcript.refs
        if edit.op in ("drop", "fold"):
            items = gone_items(self.transcript, edit)
            given = self.provenance.messages(items) if self.provenance else items
            return _listed(self.received.body.spelled(given))
        if len(edit.targets) > 1:
            items = [self.transcript.item(refs[ref]) for ref in edit.targets]
            return _listed(self.received.body.spelled(list(map(self.before_repair, items))))
        place = refs[edit.targets[0]]
        leaf = edit.op == "replace" and place.block.spelling in ("string", "json-string")
        path = self.transcript.where(place) if leaf else applied.paths[0]
        return self._given(path, leaf=leaf)

    def _given(self, path: Path, *, leaf: bool) -> str:
        """The value as received for a path of the repaired request."""
        given = self.provenance.given(path) if self.provenance else path
        if leaf:
            now = str(paths.get(self.body.tree, path))
            before = now if given is None else paths.get(self.received.body.tree, given)
            # Where repair joined texts, what it joined is the original of all of them.
            return before if isinstance(before, str) and before not in now else now
        if given is None:
            return self.body.spelled([path])[0]
        return self.received.body.spelled([given])[0]

    def taken_out(self) -> Iterator[tuple[int, Any, str]]:
        """(number of the repair, value at the time, the original) of each removal by a repair."""
        if self.made is None or self.provenance is None or not self.made.taken:
            return
        body, made = self.received.body, self.made
        came = [self.provenance.given(path, made.at[index]) for index, path, _ in made.taken]
        known = [(path, paths.get(body.tree, path)) for path in came if path is not None]
        others = [path for path, before in known if not isinstance(before, str)]
        texts = {path: before for path, before in known if isinstance(before, str)}
        texts |= zip(others, body.spelled(others), strict=True)  # the text is read once
        for (index, _, value), path in zip(made.taken, came, strict=True):
            if path is not None:
                yield index, value, texts[path]
            else:
                yield index, value, value if isinstance(value, str) else paths.dump(value)

    def places(self, edit: Edit) -> list[Place]:
        """The blocks that an edit targets."""
        refs = self.transcript.refs
        return [refs[ref] for ref in edit.targets if ref in refs]


def repair(received: ReceivedRequest, inputs: TurnInputs) -> RepairedRequest:
    """Repair what the provider is certain to refuse, and what it did refuse.

    Raises NotAccepted with ``strict``.
    """
    settings, cache = inputs.settings, inputs.cache
    body, transcript, made = received.body, received.transcript, None
    left, failures = checked(transcript, settings)
    if inputs.keeps_messages:
        broken = Counter(violation.rule for violation in left)
        return RepairedRequest(received, body, transcript, None, None, broken, tuple(failures))
    violations = tuple(violation for violation in left if violation.certain)
    if violations and settings.strict:
        raise NotAccepted(
            f"{many(len(violations), 'violation')}, the first: {paths.escape(violations[0].path)}: "
            f"{violations[0].message}; repair() fixes them",
            violations,
        )
    leave_out_ignored = _ignored_is_in_the_way(received, inputs)
    if violations or leave_out_ignored or received.refused:
        repaired = rules.repair(
            body.tree, transcript.format, transcript, open_tail=settings.open_tail,
            failures=failures, leave_out_ignored=leave_out_ignored, refused=received.refused,
        )  # fmt: skip
        left, more = checked(repaired.transcript, settings)
        failures += more
        body, transcript = body.after(repaired.passes), repaired.transcript
        made = repaired if repaired.passes else None
    if settings.quote_embedded and (
        quotes := embedded_tool_text.quote_repairs(transcript, body.tree)
    ):
        before, unquoted = body, transcript
        made = embedded_tool_text.with_quotes(
            made or Repaired(before.tree, unquoted, [], [], [], [], [before.tree]), quotes
        )
        body = received.body.after(made.passes)
        transcript = cache.read_changed(body, before, unquoted)
    provenance = None if made is None else Provenance(made.trees, made.passes, transcript.base)
    broken = Counter(violation.rule for violation in left)
    return RepairedRequest(received, body, transcript, made, provenance, broken, tuple(failures))


def _ignored_is_in_the_way(received: ReceivedRequest, inputs: TurnInputs) -> bool:
    """Whether the request has content that the provider ignores and too many bytes, now or in an
    earlier turn."""
    if next(ignored_paths(received.transcript), None) is None:
        return False
    limit = byte_limit(inputs.settings, received.transcript)
    before = any(key.startswith(ignored.RULE) for key in inputs.journal.repaired)
    return before or (limit is not None and received.body.exceeds(limit))


def checked(transcript: Transcript, settings: Settings) -> tuple[Sequence[Violation], list[str]]:
    """(violations, certain or not; a line for each rule that raised, which ``strict`` raises)."""
    failures: list[str] = []
    violations = rules.check(
        transcript, open_tail=settings.open_tail,
        failures=None if settings.strict else failures, doubtful=True,
    )  # fmt: skip
    return violations, failures


def repair_key(rule: str, key: str) -> str:
    """The name of a repair, by which a journal recognises it; ``key``: one of ``Repaired.keys``."""
    return f"{rule} {key}"


def _listed(values: list[str]) -> str:
    """JSON values as one list.  Changes ``values``: brackets put on afterwards would need one more
    copy of a list that may be as long as the request."""
    if not values:
        return "[]"
    values[0] = f"[{values[0]}"
    values[-1] += "]"
    return ",".join(values)
