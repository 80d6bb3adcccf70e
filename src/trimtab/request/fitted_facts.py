"""What our own doors need to know of a fitted request: its sizes and limits, the request it came
from, and how far it is on its way.

Users see none of it: what they need is in ``Fitted`` and its report.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from trimtab import formats
from trimtab.formats.repair import refused_rules
from trimtab.lazy import cached_property
from trimtab.planning.advice import advice, size_in_bytes
from trimtab.pricing.calibration import Calibration
from trimtab.pricing.observed_usage import Counted
from trimtab.report import Report
from trimtab.request.edit_figures import replaced_tokens
from trimtab.request.limits import calibration_key, output_limit
from trimtab.request.pipeline import FitResult
from trimtab.settings import NO_WINDOW, Settings


class FittedFacts:
    """Facts of one fitted request; each is computed when a door first needs it."""

    def __init__(self, result: FitResult) -> None:
        self._result = result
        self.held_tokens = 0
        """Billed tokens of the history that the provider's server adds to the request."""
        self.chained: Any = None
        """The client's own request, where ours has the history that the server would add."""
        self.hint: str | None = None
        """The name that the caller gave to its conversation."""
        self.attempts: Any = None
        """The retry flow that it is an attempt of, if the caller sends by itself."""
        self.shortened: Report | None = None
        """What was done, before this fit, to the agent's state that the request was made from."""
        self.learned: tuple[int, int] | None = None
        """(the most tokens of a prompt in our count, the window in the provider's or 0) where a
        refusal taught a limit."""
        self.streamed: Any = None
        """The steps of the answer so far, if a session observes it as a stream of events."""

    @cached_property
    def counted(self) -> Counted | None:
        """Our count of the request sent, which ``Session.observe`` compares with the bill."""
        if not self._key:
            return None
        facts, signed = self._result.measured.transcript.facts, self._result.signed
        own = self._result.tokens_after - signed
        return Counted(self._key, own, signed, facts.managed, facts.server_state)

    @cached_property
    def capacity(self) -> int:
        """The most tokens that the prompt may have; 0 if there is no window."""
        return 0 if self.window is None else self._result.measured.limits.bounds.capacity

    @cached_property
    def room(self) -> int:
        """The window less the output reserve, in the provider's tokens; 0 if there is none."""
        limits = self._result.measured.limits
        return 0 if self.window is None else (limits.given or limits.window) - limits.reserve

    @cached_property
    def trigger(self) -> int:
        """Tokens above which a cut begins; 0 if there is no window."""
        return 0 if self.window is None else self._result.measured.limits.bounds.trigger

    @cached_property
    def body_bytes(self) -> int:
        """Encoded bytes of the request."""
        return self._result.sent.body_bytes

    @cached_property
    def longest_result(self) -> int:
        """Chars of the longest tool result in the request, which is read again to find it."""
        sent, format = self._result.sent, self._result.measured.transcript.format
        return formats.read(sent.tree, format).longest_result()

    @cached_property
    def longest_answered_result(self) -> int:
        """Chars of the longest tool result in the request that a message of the model follows: the
        provider took it before."""
        sent, format = self._result.sent, self._result.measured.transcript.format
        transcript = formats.read(sent.tree, format)
        last = max(
            (n for n, one in enumerate(transcript.messages) if one.role == "assistant"), default=0
        )
        return transcript.longest_result(last)

    @property
    def settings(self) -> Settings:
        """The settings of the call."""
        return self._result.measured.settings

    @cached_property
    def window(self) -> int | None:
        """The window that applied; None if there was none."""
        window = self._result.measured.limits.window
        return None if window >= NO_WINDOW else window

    @cached_property
    def output_asked(self) -> int:
        """Output limit of the request sent, in tokens; 0 if it has none."""
        return output_limit(self._result.measured.transcript)

    @cached_property
    def output_given(self) -> int:
        """Output limit of the request as received, in tokens; 0 if it has none."""
        return output_limit(self._result.measured.received.transcript)

    @cached_property
    def reserve(self) -> int:
        """Tokens of the window that are kept free for the answer."""
        return self._result.measured.limits.reserve

    @cached_property
    def released(self) -> tuple[str, ...]:
        """Refs whose pin (by ``pin`` or ``undo``) was released because the request did not fit."""
        return self._result.measured.released

    @cached_property
    def format(self) -> str:
        """The format of the request."""
        return str(self._result.measured.transcript.format.name)

    @cached_property
    def spoken(self) -> str:
        """The format with its dialect, as the setting ``format`` takes it."""
        transcript = self._result.measured.transcript
        dialect = transcript.facts.dialect
        named = dialect in transcript.format.dialects
        return f"{self.format}:{dialect}" if named else self.format

    @cached_property
    def factor(self) -> float:
        """The factor that scales our count to the model's tokenizer."""
        return self._result.measured.sizes.counter.factor

    @cached_property
    def counter(self) -> str:
        """The version of our counter: what it counted is compared with no other's counts."""
        return self._result.measured.sizes.counter.version

    @property
    def _key(self) -> str:
        measured = self._result.measured
        return calibration_key(measured.settings, measured.transcript, measured.sizes.counter)

    @property
    def _calibration(self) -> Calibration | None:
        return self._result.measured.inputs.calibrations.get(self._key)

    @cached_property
    def longest_counted(self) -> int:
        """Tokens of the longest prompt that the provider counted recently; 0: unknown."""
        calibration = self._calibration
        return max((one.billed for one in calibration.samples), default=0) if calibration else 0

    @cached_property
    def scale(self) -> float:
        """How many tokens the provider counts, at worst, for one of ours; 1.0 if no answer told.

        A window that the caller gives is divided by it.
        """
        signed, tokens = self._result.signed, self._result.tokens_after
        calibration = self._calibration
        factors = calibration.factors(tokens - signed, signed, tokens) if calibration else None
        return factors.worst if factors else 1.0

    def advice(self, unit: str = "tokens") -> str:
        """What to do if the provider refuses even this as too large; "" if there is no advice.

        It depends on which part takes most of the request as received, in tokens or bytes.
        """
        arrived, sizes = self._result.measured.received.transcript, self._result.measured.sizes
        in_bytes = unit == "bytes"
        rows = ((p, size_in_bytes(p) if in_bytes else sizes.block(arrived, p))
                for p in arrived.places())  # fmt: skip
        return advice(arrived, rows, unit)

    @cached_property
    def handles(self) -> tuple[str, ...]:
        """The handle of each edit that the request has, in the report's order; "" for none."""
        return tuple(applied.edit.handle for applied in self._result.applied)

    @property
    def tokens_shortened(self) -> int:
        """Tokens that the agent's state lost before this fit and that the request lacks for it."""
        if self.shortened is None:
            return 0
        again = set(self.handles)
        edits = self.shortened.edits
        return sum(edit.tokens_saved for edit in edits if edit.handle not in again)

    @cached_property
    def made_edits(self) -> bool:
        """Whether any edit is new; else all of them were made on earlier turns."""
        return bool(self._result.new)

    @cached_property
    def replaced_tokens(self) -> Counter[str]:
        """Tokens that earlier edits had saved and that new ones save in their place, by kind."""
        return replaced_tokens(self._result.measured.active, self._result.new)

    @cached_property
    def repairs(self) -> int:
        """How many repairs the request has."""
        made = self._result.measured.repaired.made
        return len(made.repairs) if made else 0

    @cached_property
    def is_client_request(self) -> bool:
        """Whether the client made the request for itself (a title, a summary): no turn of a
        conversation."""
        return self._result.measured.limits.is_client_request

    @cached_property
    def managed(self) -> bool:
        """Whether the request tells the provider to clear or compact it, so that the provider may
        accept more than its window."""
        return self._result.measured.transcript.facts.managed

    @cached_property
    def server_state(self) -> bool:
        """Whether the provider's server keeps a part of the conversation outside the request."""
        return self._result.measured.transcript.facts.server_state

    @cached_property
    def model(self) -> str:
        """The model's name, as the settings or the request have it; "" if neither does."""
        measured = self._result.measured
        return str(measured.settings.model or measured.transcript.facts.model or "")

    @property
    def source(self) -> Any:
        """The request in the type in which the client gave it."""
        return self._result.measured.received.body.given if self.chained is None else self.chained

    def given(self) -> Any:
        """The parsed request as the client made it; None if no longer known (after pickling)."""
        result = vars(self).get("_result")
        if self.chained is not None or result is None:
            return self.chained
        return result.measured.received.body.tree

    def __getstate__(self) -> dict[str, Any]:
        """Every cached value, computed now.  What they are computed from is left out, as it holds
        functions of the caller, and what only the process that sends needs is None."""
        known = {name: getattr(self, name) for name, value in vars(FittedFacts).items()
                 if isinstance(value, cached_property)}  # fmt: skip
        passing = dict.fromkeys(("chained", "shortened", "streamed", "attempts"))
        given = {name: getattr(self, name) for name in ("held_tokens", "hint", "learned")}
        return {**passing, **known, **given}


def withdrawal_of(facts: FittedFacts) -> list[str]:
    """What a journal keeps if the repairs for refused rules did not help."""
    measured = facts._result.measured
    if measured.repaired.made is None:
        return []
    made, destination = measured.repaired.made, measured.received.destination
    return refused_rules.withdrawal_of(made, destination, measured.inputs.refused)
