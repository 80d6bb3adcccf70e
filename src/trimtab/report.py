"""The report of a fit: what was done and why, for people (``str``) and programs (``as_dict``)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, TypeVar

from trimtab.amounts import many
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.lazy import cached_property
from trimtab.suggestions import SuggestsNames

Value = TypeVar("Value")
SHOWN_WHYS, SHOWN_LOSSES, SHOWN_NAMES = 3, 3, 4
"""How much of it a printed report names: reasons of one kind, edits, identifiers of one."""
SEVERAL_TOOLS = "folded steps of several tools"


@dataclass(frozen=True, kw_only=True)
class ReportEdit:
    """One edit, in a report, a history, the dashboard's JSON and the command line's.

    ``handle`` is for ``recall`` and ``undo``; ``why`` is the reason; ``steps`` counts the whole
    steps that it took out, 0 where it changes a part of one.  ``tokens_before`` and
    ``tokens_after`` are sizes of what it changes (0: made by a release that did not keep them);
    ``loss`` is from 0 to 1.  ``refs`` can be pinned.  ``at``: when it was made, in seconds since
    1970; None without a store.  ``undone``: whether the original is sent again.

    Only of a request: ``path`` is its place there as given, ``paths`` are all places it changes,
    ``chars_…`` are sizes of the text, and ``new`` says whether it was made in this call.
    """

    handle: str
    kind: str
    op: str
    why: str
    steps: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    loss: float = 0.0
    tool: str | None = None
    role: str = ""
    refs: tuple[str, ...] = ()
    at: float | None = None
    undone: bool = False
    path: Path = ()
    paths: tuple[Path, ...] = ()
    new: bool = True
    chars_before: int = 0
    chars_after: int = 0

    @property
    def tokens_saved(self) -> int:
        """Tokens before minus tokens after."""
        return self.tokens_before - self.tokens_after

    @property
    def title(self) -> str:
        """What was done, in words: ``12 steps folded into a note``."""
        return (
            f"{self._changed()} {_VERBS.get(self.kind) or _VERBS_OF_OP.get(self.op, 'shortened')}"
        )

    @property
    def noun(self) -> str:
        """What was changed, to be counted: "step", "result", "call", "text" …"""
        if self.op in ("fold", "drop"):
            return "step"
        if self.kind in _NOUNS:
            return _NOUNS[self.kind]
        return "result" if self.tool or self.role == "tool" else "text"

    def _changed(self) -> str:
        noun = self.noun
        if noun == "step":
            return many(self.steps, noun) if self.steps else "steps"
        if noun == "call":
            noun = "arguments"
        if noun in ("result", "arguments") and self.tool:
            return f"{noun} of {self.tool}"
        if noun == "text" and self.role:
            return f"{noun} of the {_SPEAKERS.get(self.role, self.role)}"
        return noun

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        row["path"], row["paths"] = list(self.path), [list(path) for path in self.paths]
        words = {"title": self.title, "tokens_saved": self.tokens_saved}
        return {**row, "refs": list(self.refs), **words}

    def __str__(self) -> str:
        state = " (undone)" if self.undone else ""
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        return f"{self.handle}: {self.title}, {sizes}: {self.why}{state}"


_VERBS = {
    "fold": "folded into a note",
    "drop": "taken out",
    "duplicate": "replaced by a pointer to the same content",
    "superseded": "replaced by a pointer to newer content",
    "marker": "replaced by one line",
    "media": "replaced by one line",
    "smaller-image": "made smaller",
    "respell": "written in fewer tokens",
    "line-numbers": "written in fewer tokens",
    "table": "written in fewer tokens",
}
_VERBS_OF_OP = {"remove": "taken out", "insert": "added"}
_NOUNS = {
    "arguments": "call",
    "failed-input": "call",
    "reasoning": "thinking block",
    "bound-reasoning": "thinking block",
    "media": "image",
    "smaller-image": "image",
    "user-text": "text",
}
"""By the kind of an edit; of all others the operation, the tool and the speaker say it."""
_SPEAKERS = {"assistant": "model", "head": "system prompt"}


@dataclass(frozen=True)
class EditLoss:
    """What one edit of this call removed that occurs nowhere else in the request sent: a number of
    lines, and identifiers (paths, ids, numbers, compound names); ``remedy``: how to get it back or
    keep it."""

    handle: str
    path: Path
    kind: str
    why: str
    lines: int
    identifiers: tuple[str, ...]
    remedy: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**row, "path": list(self.path), "identifiers": list(self.identifiers)}


@dataclass(frozen=True)
class ReportRepair:
    """One repair: the rule that was broken, where, what was done, and a handle for what was
    taken out (else "").  ``paths``: all places it changes, in the request as it was given;
    ``handles``: of all that it took out, in order; ``handle`` is the last of them."""

    rule: str
    path: Path
    message: str
    handle: str = ""
    paths: tuple[Path, ...] = ()
    handles: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "rule": self.rule, "path": list(self.path), "message": self.message,
            "handle": self.handle, "paths": [list(path) for path in self.paths],
            "handles": list(self.handles),
        }  # fmt: skip


def _known(value: Value) -> Value:
    return value


@dataclass(frozen=True)
class Report(SuggestsNames):
    """Everything that happened to one request; ``str`` of it is meant to be read."""

    _GUESSES: ClassVar[Mapping[str, str]] = {
        "saved": "tokens_saved", "changes": "edits", "cuts": "edits", "history": "edits",
        "changed": "modified", "text": "str(report)", "window": 'limits["window"]',
    }  # fmt: skip

    reason: str
    format: str
    format_reason: str
    counter: str
    factor: float
    tokens_before: int
    tokens_after: int
    limits: Mapping[str, int | None]
    edits: tuple[ReportEdit, ...] = ()
    repairs: tuple[ReportRepair, ...] = ()
    warnings: tuple[str, ...] = ()
    asked: Mapping[str, int] = field(default_factory=dict)
    """Calls of a summarizer: how many, tokens in our count, milliseconds."""
    window_of: str = ""
    """The model whose window was looked up; "" if the caller gave a limit."""
    calibration: Mapping[str, float] = field(default_factory=dict)
    """What the provider billed for one token of our count: ``mean``, ``worst``, ``answers``; the
    limits are in our tokens.  Empty where no answer was observed."""
    money: Mapping[str, Any] = field(default_factory=dict)
    """What the new edits cost or save (``economics.BatchCost``); empty without ``prices=``."""
    _losses: Callable[[], tuple[EditLoss, ...]] = field(
        default=lambda: (), repr=False, compare=False
    )
    _minimum: Callable[[], int] = field(default=lambda: 0, repr=False, compare=False)
    _bytes: Callable[[], tuple[int, int]] = field(default=lambda: (0, 0), repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """The state with all lazy values computed, since they need the request."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in known.items():
            if callable(value):
                known[name] = partial(_known, value())
        return known

    @cached_property
    def minimum(self) -> int:
        """The smallest window, output reserve included, that this request can be made to fit, in
        the provider's tokens if learned from answers.  Computed on first use."""
        return self._minimum()

    @cached_property
    def losses(self) -> tuple[EditLoss, ...]:
        """What each new edit lost; computed on first use."""
        return self._losses()

    @property
    def tokens_saved(self) -> int:
        """Tokens before minus tokens after."""
        return self.tokens_before - self.tokens_after

    @property
    def modified(self) -> bool:
        """Whether the request sent differs from the one received: an edit always removes bytes."""
        return bool(self.edits or self.repairs)

    @cached_property
    def _body_bytes(self) -> tuple[int, int]:
        return self._bytes()

    @property
    def bytes_before(self) -> int:
        """Encoded bytes of the request as received (compact JSON if it was given as objects)."""
        return self._body_bytes[0]

    @property
    def bytes_after(self) -> int:
        """Encoded bytes of the request sent."""
        return self._body_bytes[1]

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; computes the minimum."""
        return {
            "reason": self.reason,
            "format": self.format,
            "format_reason": self.format_reason,
            "counter": self.counter,
            "factor": self.factor,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "tokens_saved": self.tokens_saved,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "minimum": self.minimum,
            "limits": dict(self.limits),
            "window_of": self.window_of,
            "calibration": dict(self.calibration),
            "money": dict(self.money),
            "edits": [edit.as_dict() for edit in self.edits],
            "losses": [loss.as_dict() for loss in self.losses],
            "repairs": [repair.as_dict() for repair in self.repairs],
            "warnings": list(self.warnings),
            "asked": dict(self.asked),
        }

    def __str__(self) -> str:
        lines = [self.reason]
        factor = f", factor {self.factor:g}" if self.factor != 1.0 else ""
        lines.append(
            f"format {self.format} ({self.format_reason}); counted with {self.counter}{factor}"
        )
        if self.window_of:
            lines.append(
                f"window {self.limits['window']:,}: {self.window_of} in our table of models "
                "(window=… overrides)"
            )
        if self.calibration:
            lines.append(
                "limits are in our tokens: the provider billed {mean:.3g} for one on average, "
                "{worst:.3g} at the worst ({answers} answers)".format(**self.calibration)
            )
        if self.repairs:
            lines.append(f"{len(self.repairs)} repair(s):")
            lines += [f"  {paths.escape(r.path)}: {r.message} ({r.rule})" for r in self.repairs]
        if self.edits:
            lines += self._edit_lines()
        if self.money:
            lines.append(self.money["told"])
        if self.asked.get("asked") or self.asked.get("cached"):
            lines.append(
                "summaries: {asked} asked ({tokens_in:,} tokens in, {tokens_out:,} out, "
                "{milliseconds:,} ms), {cached} known".format(**self.asked)
            )
        lines += [f"warning: {text}" for text in self.warnings]
        return "\n".join(lines)

    def _edit_lines(self) -> list[str]:
        saved = sum(edit.tokens_saved for edit in self.edits)
        lines = [f"{len(self.edits)} edit(s), {saved:,} tokens saved:"]
        kinds = Tally(edit.kind for edit in self.edits)
        for kind, count in kinds.most_common():
            rows = [edit for edit in self.edits if edit.kind == kind]
            before, after = sum(e.tokens_before for e in rows), sum(e.tokens_after for e in rows)
            lines.append(f"  {kind:16} ×{count:<4} {before:>9,} → {after:>8,} tokens")
            whys = Tally(edit.why for edit in rows)
            lines += [
                f"    {why} (×{n})" if n > 1 else f"    {why}"
                for why, n in whys.most_common(SHOWN_WHYS)
            ]
        tools: Tally[str] = Tally()
        for edit in self.edits:
            tools[_saved_by(edit)] += edit.tokens_saved
        if any(name != SEVERAL_TOOLS for name in tools):
            savings = ", ".join(f"{name} −{size:,}" for name, size in tools.most_common(8))
            lines.append(f"  by tool: {savings}")
        return [*lines, *self._loss_lines()]

    def _loss_lines(self) -> list[str]:
        """What went, in one line; and that of the edits that lost most."""
        gone = sum(loss.lines for loss in self.losses)
        if not gone:
            return []
        names = {name for loss in self.losses for name in loss.identifiers}
        identifiers = f"{len(names):,} identifier(s) found nowhere else"
        said = f"  no longer sent: {gone:,} line(s), {identifiers}"
        most = sorted(self.losses, key=lambda loss: (-len(loss.identifiers), -loss.lines))
        return [said, *(f"    {_loss_line(loss)}" for loss in most[:SHOWN_LOSSES] if loss.lines)]


def _saved_by(edit: ReportEdit) -> str:
    """The tool whose results were reduced, or the speaker if no tool's were."""
    name = edit.tool or edit.role or "text"
    return SEVERAL_TOOLS if ", " in name else name


def _loss_line(loss: EditLoss) -> str:
    names = ", ".join(loss.identifiers[:SHOWN_NAMES])
    more = len(loss.identifiers) - SHOWN_NAMES
    also = f" and {more:,} more" if more > 0 else ""
    identifiers = f" with {names}{also}" if names else ""
    return f"{paths.escape(loss.path)}: {loss.lines:,} line(s){identifiers}; {loss.remedy}"
