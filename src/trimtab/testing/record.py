"""The provider's record of one request: the log that tests read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trimtab.rules import Violation


@dataclass(slots=True)
class Record:
    """One request and what became of it.

    ``format`` and ``operation`` say how it was read; ``tokens`` is the prompt, ``output`` the
    tokens it asks for; ``violations`` all rules it breaks; ``refusal`` the kind of refusal ("" when
    answered), ``status`` what was sent; ``cached_tokens`` of the prompt were read from the prefix
    cache, ``written_tokens`` put into it; ``dropped`` are thinking blocks that were left out as
    the request asked, ``truncated`` the tokens left out in silence.
    """

    number: int
    format: str
    operation: Literal["generate", "count"]
    path: str
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    stream: bool = False
    tokens: int = 0
    output: int = 0
    body_bytes: int = 0
    violations: tuple[Violation, ...] = ()
    refusal: str = ""
    status: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    dropped: tuple[str, ...] = ()
    truncated: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; headers are left out, since keys stand in them."""
        names = [name for name in self.__slots__ if name not in ("headers", "violations")]
        row: dict[str, Any] = {name: getattr(self, name) for name in names}
        violations = [{"rule": one.rule, "message": one.message} for one in self.violations]
        return {**row, "dropped": list(self.dropped), "violations": violations}
