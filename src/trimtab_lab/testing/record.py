"""The provider's record of one request: the log that tests read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trimtab.formats.rules import Violation


@dataclass(slots=True)
class Record:
    """One request and its outcome.

    ``format`` and ``operation``: how it was read; ``tokens``: size of the prompt; ``output``:
    requested output tokens; ``violations``: all rules it breaks; ``refusal``: the kind of refusal
    ("" if answered); ``status``: the HTTP status; ``cached_tokens``: prompt tokens read from the
    prefix cache; ``written_tokens``: those written to it; ``dropped``: thinking blocks left out at
    the request's own wish; ``truncated``: tokens silently left out.
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
        """JSON-able; headers are left out, because they contain API keys."""
        names = [name for name in self.__slots__ if name not in ("headers", "violations")]
        row: dict[str, Any] = {name: getattr(self, name) for name in names}
        violations = [{"rule": v.rule, "message": v.message} for v in self.violations]
        return {**row, "dropped": list(self.dropped), "violations": violations}
