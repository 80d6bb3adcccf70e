"""What is kept of one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

Row = TypeVar("Row")


@dataclass(slots=True)
class RequestTexts:
    """Bodies of one request: as received, as sent, and the answer as the client got it.

    ``encoding``: the content encoding of the first; ``cut``: whether the answer was longer.
    """

    came: bytes
    went: bytes
    answer: bytes
    encoding: str = ""
    cut: bool = False

    @property
    def held_bytes(self) -> int:
        """Bytes in memory.  A request sent unchanged is counted once: both bodies are one
        object."""
        sent = 0 if self.went is self.came else len(self.went)
        return len(self.came) + sent + len(self.answer)


@dataclass(slots=True)
class RequestRecord:
    """One request and its outcome; all sizes in tokens.

    Of an answer for which the model looked things up there is one for each call of the model.
    """

    number: int
    """Its number in its session, its turn; 0 if it belongs to none."""
    when: float
    arrived: int = 0
    sent: int = 0
    window: int = 0
    """Tokens that a prompt may have, as the provider counts; 0 if unknown."""
    trigger: int = 0
    kept: int = 0
    """Of what is sent: the part that is unchanged."""
    edits: int = 0
    new: int = 0
    rewritten: int = 0
    """Of what is sent: the part behind the first new edit; 0 without a price table."""
    repairs: int = 0
    status: int = 0
    sends: int = 1
    prompt: int = 0
    """The prompt as the provider counted it; 0 if it reported nothing."""
    cached: int = 0
    written: int = 0
    output: int = 0
    fit_ms: float = 0.0
    seconds: float = 0.0
    note: str = ""
    """Why it was not fitted as usual, or what went wrong; "" if nothing did."""
    lost: int = 0
    """Tokens that had been in the provider's cache and were not read from it."""
    cause: str = ""
    """Why they were not (``prefix_breaks``)."""
    diagnosis: str = ""
    """What the provider itself reports on its cache (``tools_changed``); "" if it does not."""
    look_up: bool = False
    """Whether it is a further call for one answer: the model reads what it looked up."""
    refusals: tuple[tuple[int, str], ...] = ()
    """Status and kind of each refusal; the client saw none of them if ``answered``."""
    request: int = 0
    """Its number among the requests of this run; 0 for an earlier run."""
    upstream: str = ""
    path: str = ""
    operation: str = ""
    client: str = ""
    model: str = ""
    session: str = ""
    first_byte: float = 0.0
    problem: str = ""
    """Why its client got no answer, or an error; "" if it was answered."""
    learned: int = 0
    """The same, where a refusal taught it; 0 without one."""
    texts: RequestTexts | None = field(default=None, repr=False)

    @property
    def answered(self) -> bool:
        """Whether the provider answered.  A stream may begin with 200 and say a refusal."""
        return 0 < self.status < 400 and len(self.refusals) < self.sends

    @property
    def was_refused(self) -> bool:
        """Whether the provider refused it for its size or its form."""
        return any(kind in _MEANINGS and kind != "rate" for _, kind in self.refusals)

    @property
    def refusal_outcome(self) -> str:
        """What was done about its refusals: "recovered" if the client never saw them."""
        return "recovered" if self.answered else "passed on"

    @property
    def saved(self) -> int:
        """Tokens that were not sent."""
        return max(self.arrived - self.sent, 0)

    def in_their_tokens(self, before: float = 1.0) -> float:
        """Convert the sizes to the provider's tokens.  Returns the provider's tokens per one of
        ours. ``before``: the ratio of the turn before, used if the provider reported no prompt
        size."""
        if not self.answered:
            return before
        ratio = self.prompt / self.sent if self.prompt and self.sent else before
        for name in ("arrived", "sent", "trigger", "kept", "rewritten"):
            setattr(self, name, round(getattr(self, name) * ratio))
        return ratio

    def as_turn(self) -> dict[str, Any]:
        """As one turn of its session, JSON-able: without what the session says itself."""
        row = as_row(self)
        for name in _OF_REQUEST:
            row.pop(name, None)
        return row


_OF_REQUEST = (
    "upstream", "path", "operation", "client", "model", "session", "first_byte", "problem",
)  # fmt: skip

_MEANINGS = {
    "too_long": "too many tokens", "too_large": "too large", "rate": "too many requests",
    "invalid_pairing": "tool calls and results do not match", "invalid_other": "an invalid request",
}  # fmt: skip


def meaning(kind: str) -> str:
    """A refusal's kind in words."""
    return _MEANINGS.get(kind, kind.replace("_", " "))


def agent_of(client: str) -> str:
    """The program that a ``User-Agent`` names: ``claude-cli/2.1 (external)`` → ``claude-cli``."""
    return client.partition("/")[0].partition(" ")[0] or "unknown"


def as_row(record: Any) -> dict[str, Any]:
    """A record as JSON-able data, without fields that have their default."""
    row = {}
    for attribute in fields(record):
        value = getattr(record, attribute.name)
        if isinstance(value, (str, int, float, tuple)) and (
            attribute.default is MISSING or value != attribute.default
        ):
            row[attribute.name] = value
    return row


def from_row(kind: type[Row], row: Mapping[str, Any]) -> Row:
    """The record that ``as_row`` wrote.  Raises TypeError if a field is missing."""
    names = {attribute.name for attribute in fields(kind) if attribute.init}  # type: ignore[arg-type]
    read = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    return kind(**{name: value for name, value in read.items() if name in names})
