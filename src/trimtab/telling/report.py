"""What was done and why, for people and programs.

Knows how a result is told.  Does not decide anything.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trimtab import paths
from trimtab.model import Path


@dataclass(frozen=True)
class ReportEdit:
    """One edit of this request.

    ``path`` is where it stands in the request that was given (``paths`` all places it changes),
    ``tokens_before``/``tokens_after`` (and
    ``chars_…``: of its text) of what it touches, ``loss`` from 0 to 1, ``handle`` for
    ``recall``, ``refs`` what to pin, ``new`` whether it was decided in this call.
    """

    kind: str
    op: str
    path: Path
    paths: tuple[Path, ...]
    why: str
    tokens_before: int
    tokens_after: int
    loss: float
    handle: str
    tool: str | None = None
    role: str = ""
    refs: tuple[str, ...] = ()
    new: bool = True
    chars_before: int = 0
    chars_after: int = 0

    @property
    def tokens_saved(self) -> int:
        """Tokens before minus tokens after."""
        return self.tokens_before - self.tokens_after

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        row["path"], row["paths"] = list(self.path), [list(path) for path in self.paths]
        return {**row, "refs": list(self.refs), "tokens_saved": self.tokens_saved}


@dataclass(frozen=True)
class ReportRepair:
    """One repair: the rule that was broken, where, what was done, and a handle for what was
    taken out (else "").  ``paths``: all places it changes, in the request as it was given."""

    rule: str
    path: Path
    message: str
    handle: str = ""
    paths: tuple[Path, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "rule": self.rule, "path": list(self.path), "message": self.message,
            "handle": self.handle, "paths": [list(path) for path in self.paths],
        }  # fmt: skip


@dataclass(frozen=True)
class Report:
    """Everything that happened to one request; ``str`` of it is meant to be read."""

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
    """What a summarizer was asked: how often, tokens in our count, milliseconds."""
    window_of: str = ""
    """The model whose window was looked up; "" where the caller gave a limit."""
    calibration: Mapping[str, float] = field(default_factory=dict)
    """What the provider billed for one token of our count: ``mean``, ``worst``, ``answers``; the
    limits are in our tokens.  Empty where no answer was observed."""
    money: Mapping[str, Any] = field(default_factory=dict)
    """What the new edits do to the bill (see ``economics.Money``); empty without ``prices=``."""
    _floor: Callable[[], int] = field(default=lambda: 0, repr=False, compare=False)
    _bytes: Callable[[], tuple[int, int]] = field(default=lambda: (0, 0), repr=False, compare=False)

    @cached_property
    def floor(self) -> int:
        """The smallest window, output reserve included, this request can be made to fit: in tokens
        as the provider counts where answers taught that.  Worked out when first asked for."""
        return self._floor()

    @property
    def modified(self) -> bool:
        """Whether what is sent differs from what came: an edit always takes bytes away."""
        return bool(self.edits or self.repairs)

    @cached_property
    def _body_bytes(self) -> tuple[int, int]:
        return self._bytes()

    @property
    def bytes_before(self) -> int:
        """Encoded bytes of the request as it came (compact where it came as objects)."""
        return self._body_bytes[0]

    @property
    def bytes_after(self) -> int:
        """Encoded bytes of the request as it leaves."""
        return self._body_bytes[1]

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; computes the floor."""
        return {
            "reason": self.reason,
            "format": self.format,
            "format_reason": self.format_reason,
            "counter": self.counter,
            "factor": self.factor,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "floor": self.floor,
            "limits": dict(self.limits),
            "window_of": self.window_of,
            "calibration": dict(self.calibration),
            "money": dict(self.money),
            "edits": [edit.as_dict() for edit in self.edits],
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
        tools: Tally[str] = Tally()
        for edit in self.edits:
            tools[edit.tool or edit.role or "text"] += edit.tokens_saved
        shown = ", ".join(f"{name} −{size:,}" for name, size in tools.most_common(8))
        lines.append(f"  by tool: {shown}")
        return lines
