"""The report of a fit: what was done and why, for people (``str``) and programs (``as_dict``)."""

from __future__ import annotations

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
SHOWN_EDITS, SHOWN_NAMES = 8, 4
"""How much a printed report names: edits, and identifiers that are gone."""
WAY_BACK = '  recall("{0}") returns the original, Session.undo("{0}") sends it again'


@dataclass(frozen=True, kw_only=True)
class ReportEdit:
    """One edit, in a report, a history, the dashboard's JSON and the command line's.

    ``handle`` is for ``recall`` and ``undo``; ``why`` is the reason; ``steps`` counts the whole
    steps that it took out, 0 where it changes a part of one.  ``tokens_before`` and
    ``tokens_after`` are sizes of what it changes (0: made by a release that did not keep them);
    ``loss`` is from 0 to 1.  ``refs`` can be pinned.  ``at``: when it was made, in seconds since
    1970; None without a store.  ``undone``: whether the original is sent again.
    ``replaced_by``: the handle of a newer edit that changes the same blocks in its place, "" if
    there is none.  An edit that is neither undone nor replaced is in force.

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
    replaced_by: str = ""
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

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        state = " (undone)" if self.undone else ""
        if self.replaced_by:
            state = f" (replaced by {self.replaced_by})"
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
    lines, and identifiers (paths, ids, numbers, compound names)."""

    handle: str
    path: Path
    kind: str
    why: str
    lines: int
    identifiers: tuple[str, ...]

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
    summaries: Mapping[str, int] = field(default_factory=dict)
    """Calls of a summarizer: how many, tokens in our count, milliseconds."""
    window_of: str = ""
    """The model whose window was looked up; "" if the caller gave a limit."""
    calibration: Mapping[str, float] = field(default_factory=dict)
    """What the provider billed for one token of our count: ``mean``, ``worst``, ``answers``; the
    limits are in our tokens.  ``room``: those of the provider's that the window leaves, 0 without
    one.  Empty where no answer was observed."""
    money: Mapping[str, Any] = field(default_factory=dict)
    """What the new edits cost or save (``economics.CutCost``); empty without ``prices=``."""
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
            "summaries": dict(self.summaries),
        }

    def __repr__(self) -> str:
        counts = [many(len(self.edits), "edit"), many(len(self.repairs), "repair")]
        if self.warnings:
            counts.append(many(len(self.warnings), "warning"))
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        return f"<Report: {sizes}, {', '.join(counts)}; print it>"

    def __str__(self) -> str:
        return "\n".join(self.lines(way_back=True))

    def lines(self, *, way_back: bool = False) -> list[str]:
        """The report for a reader; ``way_back``: with the calls that return an original."""
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
            lines.append(self._calibration_line())
        if self.repairs:
            lines.append(f"{many(len(self.repairs), 'repair')}:")
            lines += [f"  {paths.escape(r.path)}: {r.message} ({r.rule})" for r in self.repairs]
        if self.edits:
            lines += self._edit_lines(way_back)
        if self.money:
            lines.append(self.money["told"])
        if self.summaries.get("asked") or self.summaries.get("cached"):
            lines.append(
                "summaries: {asked} asked ({tokens_in:,} tokens in, {tokens_out:,} out, "
                "{milliseconds:,} ms), {cached} known".format(**self.summaries)
            )
        return [*lines, *(f"warning: {text}" for text in self.warnings)]

    def _calibration_line(self) -> str:
        """Why the limits, which are in our tokens, are not those that were given."""
        count, room = int(self.calibration["answers"]), self.calibration.get("room", 0)
        billed = (
            f"{many(count, 'answer')} {'was' if count == 1 else 'were'} billed at "
            f"{self.calibration['mean']:.3g} of our count on average; the window is counted at "
            f"{self.calibration['worst']:.3g}, to be safe"
        )
        if not room:
            return f"limits are in our tokens: {billed}"
        ours = self.limits["capacity"]
        return f"the window allows {room:,} of the provider's tokens, {ours:,} of ours: {billed}"

    def _edit_lines(self, way_back: bool) -> list[str]:
        """The largest edits, then what went, then how to get it back."""
        saved = sum(edit.tokens_saved for edit in self.edits)
        lines = [f"{many(len(self.edits), 'edit')}, {saved:,} tokens saved:"]
        largest = sorted(self.edits, key=lambda edit: -edit.tokens_saved)
        lines += [f"  {edit}" for edit in largest[:SHOWN_EDITS]]
        rest = largest[SHOWN_EDITS:]
        if rest:
            rest_saved = sum(edit.tokens_saved for edit in rest)
            lines.append(f"  and {many(len(rest), 'smaller edit')}, {rest_saved:,} tokens saved")
        lines += self._loss_line()
        if way_back:
            lines.append(WAY_BACK.format(largest[0].handle))
        return lines

    def _loss_line(self) -> list[str]:
        """The lines and identifiers that are nowhere in the request sent."""
        gone = sum(loss.lines for loss in self.losses)
        if not gone:
            return []
        most = sorted(self.losses, key=lambda loss: (-len(loss.identifiers), -loss.lines))
        names = list(dict.fromkeys(name for loss in most for name in loss.identifiers))
        more = len(names) - SHOWN_NAMES
        also = f" and {more:,} more" if more > 0 else ""
        shown = f", with {', '.join(names[:SHOWN_NAMES])}{also}" if names else ""
        return [f"  no longer sent: {many(gone, 'line')}{shown}"]
