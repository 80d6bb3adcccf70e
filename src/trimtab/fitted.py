"""The result of a call: the request, the report, and the way back to each original.

Says what was done; decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from trimtab import wire
from trimtab.effective_limits import calibration_key
from trimtab.errors import UnknownHandle, expect_text
from trimtab.fit_report import report_of
from trimtab.journal.folded_steps import FoldedStep, folded_steps, step_range, steps_of
from trimtab.pipeline import FitResult
from trimtab.planning.advice import advice, size_in_bytes
from trimtab.pricing.observed_usage import Counted
from trimtab.report import Report
from trimtab.settings import NO_WINDOW, Settings


class Fitted:
    """A request that can be sent, and what was done to it.

    ``request`` has the type that was given, and is the very same object where nothing had to
    change.  ``report`` says what happened and why.  It can be pickled and copied.
    """

    def __init__(self, result: FitResult, originals: Mapping[str, str]) -> None:
        self.request: Any = result.sent.returned(result.prepared.body)
        self._result, self._failures = result, result.prepared.sizes.counter.failures
        self._originals = originals
        self.arm = ""
        """Of an experiment (the setting ``control``): treated, control or control, outgrown."""
        self.held_tokens = 0
        """Tokens that the provider's server holds for it besides, as they were billed."""
        self.chained: Any = None
        """The request as the client made it, where its history was put into it."""
        self.compaction_offer: Any = None
        """What the provider can be asked instead of the fold that this is, where that pays."""
        self.streamed: Any = None
        """The steps of the answer so far, where it comes as events that a session observes."""

    @cached_property
    def counted(self) -> Counted | None:
        """What we counted of the request that is sent: ``Session.observe`` compares the bill."""
        return counted(self._result)

    @cached_property
    def report(self) -> Report:
        """What was done and why; worked out when it is first asked for."""
        return report_of(self._result, self._failures)

    @cached_property
    def tokens_after(self) -> int:
        """Tokens of ``request``, as the report has them, without working the report out."""
        return self._result.tokens_after

    @cached_property
    def tokens_before(self) -> int:
        """Tokens of the request as it came."""
        compacted = self._result.prepared.facts.compacted
        return self._result.tokens_before + (compacted.tokens_saved if compacted else 0)

    @cached_property
    def capacity(self) -> int:
        """Tokens that its prompt may have; 0 where there is no window."""
        return 0 if self.window is None else self._result.prepared.limits.bounds.capacity

    @cached_property
    def trigger(self) -> int:
        """Tokens above which something is done; 0 where there is no window."""
        return 0 if self.window is None else self._result.prepared.limits.bounds.trigger

    @cached_property
    def body_bytes(self) -> int:
        """Encoded bytes of ``request``."""
        return self._result.sent.body_bytes

    @cached_property
    def longest_result(self) -> int:
        """Chars of the longest tool result in ``request``, which is read for it."""
        sent, format = self._result.sent, self._result.prepared.transcript.format
        return wire.read(sent.tree, format).longest_result()

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self._result.prepared.settings

    @cached_property
    def window(self) -> int | None:
        """The window in force; None where there is none."""
        window = self._result.prepared.limits.window
        return None if window >= NO_WINDOW else window

    @cached_property
    def output_asked(self) -> int:
        """Output tokens that the request itself asks for; 0 where it does not say."""
        asked = self._result.prepared.transcript.facts.max_output
        return asked if type(asked) is int and asked > 0 else 0

    @cached_property
    def reserve(self) -> int:
        """Tokens of the window that are kept free for the answer."""
        return self._result.prepared.limits.reserve

    @cached_property
    def released(self) -> tuple[str, ...]:
        """Refs that were pinned, by hand or by an undo, and that gave way to the window."""
        return self._result.prepared.released

    @cached_property
    def format(self) -> str:
        """The format it is in."""
        return str(self._result.prepared.transcript.format.name)

    @cached_property
    def factor(self) -> float:
        """What our count was multiplied with because the model's tokenizer is not ours."""
        return self._result.prepared.sizes.counter.factor

    @cached_property
    def longest_counted(self) -> int:
        """Tokens of the longest prompt that the provider has counted of late; 0: not known."""
        prepared = self._result.prepared
        key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
        calibration = prepared.facts.calibrations.get(key)
        return max((one.billed for one in calibration.samples), default=0) if calibration else 0

    @cached_property
    def scale(self) -> float:
        """Provider's tokens for one of ours at the worst, where answers have taught that: what a
        window given to ``fit`` is divided by."""
        prepared, tokens, signed = self._result.prepared, self.tokens_after, self._result.signed
        key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
        calibration = prepared.facts.calibrations.get(key)
        factors = calibration.factors(tokens - signed, signed, tokens) if calibration else None
        return factors.worst if factors else 1.0

    def advice(self, unit: str = "tokens") -> str:
        """What to do where the provider finds even this too large, by what fills the request as it
        came, in tokens or bytes; "" where nothing takes most of it."""
        arrived, sizes = self._result.prepared.arrived, self._result.prepared.sizes
        in_bytes = unit == "bytes"
        rows = ((p, size_in_bytes(p) if in_bytes else sizes.block(arrived, p))
                for p in arrived.places())  # fmt: skip
        return advice(arrived, rows, unit)

    @cached_property
    def changed(self) -> bool:
        """Whether what leaves is not what came."""
        result = self._result
        ours = bool(result.applied) or result.prepared.repairs is not None
        return ours or result.prepared.facts.compacted is not None

    @cached_property
    def managed(self) -> bool:
        """Whether the provider is asked to clear or compact it, so that it may take more of it
        than its window."""
        return self._result.prepared.transcript.facts.managed

    @cached_property
    def server_state(self) -> bool:
        """Whether the provider holds a part of the conversation that is not in the request."""
        return self._result.prepared.transcript.facts.server_state

    def given(self) -> Any:
        """The parsed request as the client made it; None where that is not known any more."""
        result = vars(self).get("_result")
        if self.chained is not None or result is None:
            return self.chained
        return result.prepared.body.tree

    def recall(self, handle: str, *, steps: int | str | tuple[int, int] | None = None) -> str:
        """The original behind a handle, exactly: the string of a text, else JSON text; of steps
        that were folded together some by number (``3``, ``"3-5"``), see ``contents``.

        Raises UnknownHandle; ValueError where there are no such steps.
        """
        text = recall(self._originals, handle)
        asked = step_range(steps)
        return text if asked is None else steps_of(text, *asked)

    def contents(self, handle: str) -> list[FoldedStep]:
        """The steps that were folded together under a handle; [] for any other original.

        Raises UnknownHandle.
        """
        return folded_steps(self.recall(handle))

    def __getstate__(self) -> dict[str, Any]:
        """All that it tells, worked out: what it was made from has the caller's functions in it."""
        known = {name: getattr(self, name) for name, value in vars(Fitted).items()
                 if isinstance(value, cached_property)}  # fmt: skip
        own = {"request": self.request, "_originals": dict(self._originals)}
        passing = dict.fromkeys(("chained", "streamed", "compaction_offer"))
        return {**own, "held_tokens": self.held_tokens, **passing, **known}

    def __repr__(self) -> str:
        return f"<Fitted {self.report.tokens_before:,} → {self.report.tokens_after:,} tokens>"


def recall(originals: Mapping[str, str], handle: str) -> str:
    """Look up one handle.  Raises UnknownHandle with what to do."""
    expect_text("handle", handle)
    try:
        return originals[handle]
    except UnknownHandle:
        raise
    except KeyError:
        raise UnknownHandle(
            f"no original is kept under {handle!r} here: run the tool again, "
            "or recall it from the session that made the edit"
        ) from None


def counted(result: FitResult) -> Counted | None:
    """What a bill can be compared with; None where no model is named."""
    prepared = result.prepared
    key = calibration_key(prepared.settings, prepared.transcript, prepared.sizes.counter)
    if not key:
        return None
    managed = prepared.transcript.facts.managed
    return Counted(key, result.tokens_after - result.signed, result.signed, managed)
