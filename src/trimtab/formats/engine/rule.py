"""What a rule is: a row of a format's table, in the provider's words, what a scan finds, and what a
repair does; and the shape that a provider demands of a body."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path, PathOp
from trimtab.transcript.model import Facts
from trimtab.transcript.transcript import Transcript


class Finding(NamedTuple):
    """One violation of a rule as a scan finds it: the rule's name, the path, and the detail."""

    rule: str
    path: Path
    detail: str
    data: Any = None


class Violation(NamedTuple):
    """A reason for which the provider would refuse this request."""

    rule: str
    path: Path
    message: str
    certain: bool = True
    """False: somebody was refused for it; whether this request would be is not known."""


class Repair(NamedTuple):
    """One repair: operations on the tree, and the parts whose originals must be kept."""

    path: Path
    message: str
    ops: tuple[PathOp, ...]
    taken: tuple[Path, ...] = ()


Scan = Callable[[Transcript, bool], Iterable[Finding]]
"""(transcript, open_tail) → findings, in order of place."""
RepairFunction = Callable[[Transcript, Any, Sequence[Finding]], Iterable[Repair]]
"""(transcript, tree, all findings of one row) → repairs, all in coordinates of this tree."""


@dataclass(frozen=True)
class Rule:
    """One row: what the provider demands, in its own words, and how a violation is repaired.

    ``sure``: "certain" (the refusal states the condition, and the scan tests exactly that),
    "refused" (somebody was refused; what else it takes is not known), "accepted" (recorded with
    200) or "inferred".  Certain rows are repaired before a request is sent; any other after a
    refusal that names it.  ``dialects``: the dialects that have the rule, None for all of the
    format; ``except_for``: dialects that don't have it.  ``models``: a pattern of the models' names
    that have it, "" for all.
    """

    name: str
    error_text: str
    source: str
    make_repairs: RepairFunction
    sure: Literal["certain", "refused", "accepted", "inferred"] = "refused"
    dialects: frozenset[str] | None = None
    except_for: frozenset[str] = frozenset()
    models: str = ""
    since: str = ""
    """The first version of the provider's API that refuses it; "": every version."""
    does: str = ""
    """The repair in one line; "": the first line of ``make_repairs``'s docstring."""

    @property
    def repair(self) -> str:
        """A description of the repair in one line."""
        return self.does or (self.make_repairs.__doc__ or "").strip().partition("\n\n")[0]

    def applies_to(self, facts: Facts) -> bool:
        """Whether this dialect and this model have the rule."""
        ours = self.dialects is None or facts.dialect in self.dialects
        if not ours or facts.dialect in self.except_for:
            return False
        return not self.models or bool(re.search(self.models, str(facts.model or "").lower()))

    def is_refused_by(self, facts: Facts, *, doubtful: bool = True) -> bool:
        """Whether the provider refuses a request that breaks the rule; ``doubtful``: count rows
        that are not certain, too."""
        if self.name in facts.refused:
            return True
        sure = ("certain", "refused") if doubtful else ("certain",)
        return self.sure in sure and self.applies_to(facts) and facts.version >= self.since


@dataclass(frozen=True)
class DialectLimit:
    """A hard limit that only some dialects of the format have.

    ``limit``: request_bytes, images, image_pixels, many_image_pixels or image_bytes; ``model``: a
    pattern of model names, "" for all.
    """

    limit: str
    most: int
    error_text: str
    source: str
    dialects: frozenset[str]
    model: str = ""

    def applies_to(self, facts: Facts) -> bool:
        """Whether the limit applies to this request."""
        ours = facts.dialect in self.dialects
        return ours and re.search(self.model, str(facts.model or "").lower()) is not None


@dataclass(frozen=True)
class RuleTable:
    """The rules of one format: rows in the order in which they are repaired, and their scans."""

    rows: tuple[Rule, ...]
    scans: tuple[Scan, ...]
    may_drop_reasoning: Callable[[Transcript, int], bool]
    """Whether the reasoning of a message may be left out while the message stays."""
    limits: dict[str, int] = field(default_factory=dict)
    """Hard limits of the provider by name, as those of dialects."""
    dialect_limits: tuple[DialectLimit, ...] = ()
    """Limits of single dialects or models."""


@dataclass
class Repaired:
    """A request after repair: the new tree, what was done, and the operations of each pass."""

    tree: Any
    transcript: Transcript
    repairs: list[tuple[str, Repair]]
    at: list[int]
    """For each repair, the number of passes after which its paths are valid."""
    passes: list[tuple[PathOp, ...]]
    taken: list[tuple[int, Path, Any]]
    """(index into ``repairs``, path at the time, original value) of each removed value."""
    trees: list[Any]
    """The request before each pass, and ``tree``."""
    keys: list[str] = field(default_factory=list)
    """For each repair, what it was made on: a digest and a number among equal ones, oldest first;
    it stays the same when messages before it come or go."""
    found: list[tuple[str, str]] = field(default_factory=list)
    """(rule, digest of what was found) of all findings that were repaired."""


def with_refused(transcript: Transcript, refused: frozenset[str]) -> Transcript:
    """The transcript of a request for which the provider has named these rows: they are true of it,
    whatever dialect it is in, and scans take no other condition than what they see."""
    if refused <= transcript.facts.refused:
        return transcript
    facts = replace(transcript.facts, refused=transcript.facts.refused | refused)
    return replace(transcript, facts=facts)


def repair_keys(done: Repaired, repairs: Sequence[Repair]) -> list[str]:
    """The key of each of these repairs, which are made on ``done`` as it is."""
    often = Counter(key.partition(".")[0] for key in done.keys)
    keys = []
    for repair in repairs:
        digest = digest_at(done.transcript, done.tree, repair.path)
        keys.append(f"{digest}.{often[digest]}")
        often[digest] += 1
    return keys


def digest_at(transcript: Transcript, tree: Any, path: Path) -> str:
    """A digest of the block at, above or first below a path; of the value if no block is there."""
    depth = len(transcript.base)
    number = path[depth] if len(path) > depth and path[:depth] == transcript.base else None
    if isinstance(number, int) and number < len(transcript.messages):
        for place in transcript.places_in(number):
            item = transcript.item(place)
            if item[: len(path)] == path or path[: len(item)] == item:
                return place.block.digest
    try:
        text = paths.dump(paths.get(tree, path))
    except LookupError:
        text = paths.escape(path)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def reports(*rules: str) -> Callable[[Scan], Scan]:
    """Declare the rows that a scan looks for; it is skipped if the dialect has none of them."""

    def marked(scan: Scan) -> Scan:
        scan.gives = frozenset(rules)  # type: ignore[attr-defined]
        return scan

    return marked


@dataclass(frozen=True)
class Shape:
    """The shape of one format's messages: what its provider demands of it, in its own words.

    ``{place}`` and ``{value}`` in an error stand for the place as the provider writes it, and for
    what was found there.
    """

    source: str
    roles: tuple[str, ...] = ()
    """All that its reference names; () where a row of the table says it."""
    role_error: str = ""
    missing_error: str = ""
    content_error: str = ""
    untyped: bool = False
    """Whether only items without a ``type`` need a role."""
    texts: bool = True
    """Whether content may be one text."""
    role_optional: bool = False
    dotted: bool = False
    """Whether the provider writes ``messages.0.role``, not ``messages[0].role``."""
    required: tuple[str, ...] = ()
    """Keys of a whole body."""
    whole: tuple[str, ...] = ("model",)
    """Keys that only a whole body has, not a part of one."""
