"""The result of ``fit``: the request, the report, and the originals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab import formats
from trimtab.errors import StoreError, UnknownHandle, expect_text
from trimtab.formats.repair import refused_rules
from trimtab.journal.archive import Archived, of_transcript
from trimtab.journal.folded_steps import FoldedStep, folded_steps, step_range, steps_of
from trimtab.lazy import cached_property
from trimtab.planning.advice import advice, size_in_bytes
from trimtab.pricing.observed_usage import Counted
from trimtab.report import Report
from trimtab.request.applied import taken_by_repair
from trimtab.request.fit_report import report_of
from trimtab.request.limits import calibration_key
from trimtab.request.pipeline import FitResult
from trimtab.settings import NO_WINDOW, Settings


class Fitted:
    """A request that can be sent, and what was done to it.

    ``request`` has the type that was given; it is the same object if nothing had to change.
    ``report`` says what happened and why.  It can be pickled and copied.
    """

    def __init__(self, result: FitResult, originals: Mapping[str, str]) -> None:
        self.request: Any = result.sent.returned(result.measured.received.body)
        self._result, self._failures = result, result.measured.sizes.counter.failures
        self._originals = originals
        self.arm = ""
        """The arm of an experiment (``control=``): "treated", "control" or "control, outgrown"."""
        self.held_tokens = 0
        """Billed tokens of the history that the provider's server adds to the request."""
        self.chained: Any = None
        """The client's own request, where ``request`` has the history that the server would add."""
        self.conversation = ""
        """The id or name of its conversation; "" if its session has only one."""
        self.hint: str | None = None
        """The name that the caller gave to its conversation."""
        self.attempts: Any = None
        """The retry flow that it is an attempt of, if the caller sends by itself."""
        self.streamed: Any = None
        """The steps of the answer so far, if a session observes it as a stream of events."""

    @cached_property
    def counted(self) -> Counted | None:
        """Our count of the request sent, which ``Session.observe`` compares with the bill."""
        return counted(self._result)

    @cached_property
    def report(self) -> Report:
        """What was done and why; computed on first use."""
        return report_of(self._result, self._failures)

    @cached_property
    def tokens_after(self) -> int:
        """Tokens of ``request``; the report says the same, but need not be made for it."""
        return self._result.tokens_after

    @cached_property
    def tokens_before(self) -> int:
        """Tokens of the request as it came."""
        return self._result.tokens_before

    @cached_property
    def capacity(self) -> int:
        """The most tokens that the prompt may have; 0 if there is no window."""
        return 0 if self.window is None else self._result.measured.limits.bounds.capacity

    @cached_property
    def trigger(self) -> int:
        """Tokens above which a cut begins; 0 if there is no window."""
        return 0 if self.window is None else self._result.measured.limits.bounds.trigger

    @cached_property
    def body_bytes(self) -> int:
        """Encoded bytes of ``request``."""
        return self._result.sent.body_bytes

    @cached_property
    def longest_result(self) -> int:
        """Chars of the longest tool result in ``request``, which is read again to find it."""
        sent, format = self._result.sent, self._result.measured.transcript.format
        return formats.read(sent.tree, format).longest_result()

    @cached_property
    def longest_answered_result(self) -> int:
        """Chars of the longest tool result in ``request`` that a message of the model follows: the
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
        """Output limit of the request itself, in tokens; 0 if it has none."""
        asked = self._result.measured.transcript.facts.max_output
        return asked if type(asked) is int and asked > 0 else 0

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

    @cached_property
    def longest_counted(self) -> int:
        """Tokens of the longest prompt that the provider counted recently; 0: unknown."""
        measured = self._result.measured
        key = calibration_key(measured.settings, measured.transcript, measured.sizes.counter)
        calibration = measured.inputs.calibrations.get(key)
        return max((one.billed for one in calibration.samples), default=0) if calibration else 0

    @cached_property
    def scale(self) -> float:
        """How many tokens the provider counts, at worst, for one of ours; 1.0 if no answer told.

        A window that the caller gives is divided by it.
        """
        measured, tokens, signed = self._result.measured, self.tokens_after, self._result.signed
        key = calibration_key(measured.settings, measured.transcript, measured.sizes.counter)
        calibration = measured.inputs.calibrations.get(key)
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
    def changed(self) -> bool:
        """Whether ``request`` differs from the request as received."""
        result = self._result
        return bool(result.applied) or result.measured.repaired.made is not None

    @cached_property
    def handles(self) -> tuple[str, ...]:
        """The handle of each edit that ``request`` has, in the report's order; "" for none."""
        return tuple(applied.edit.handle for applied in self._result.applied)

    @cached_property
    def archive(self) -> tuple[Archived, ...]:
        """What ``request`` lacks of the one received: its originals, newest first."""
        result = self._result
        edits = [applied.edit for applied in result.applied]
        return of_transcript(result.measured.transcript, edits, taken_by_repair(result.measured))

    @cached_property
    def made_edits(self) -> bool:
        """Whether any edit is new; else all of them were made on earlier turns."""
        return bool(self._result.new)

    @cached_property
    def repairs(self) -> int:
        """How many repairs ``request`` has."""
        made = self._result.measured.repaired.made
        return len(made.repairs) if made else 0

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

    def recall(self, handle: str, *, steps: int | str | tuple[int, int] | None = None) -> str:
        """The exact original behind a handle: the string of a text, else JSON text.

        ``steps``: only these steps of a fold, by number (``3``, ``"3-5"``), see ``contents``.

        Raises UnknownHandle; ValueError if there are no such steps.
        """
        text = recall(self._originals, handle)
        asked = step_range(steps)
        return text if asked is None else steps_of(text, *asked)

    def contents(self, handle: str) -> list[FoldedStep]:
        """The steps of the fold behind a handle; [] for any other original.

        Raises UnknownHandle.
        """
        return folded_steps(self.recall(handle))

    def __getstate__(self) -> dict[str, Any]:
        """All values, computed now.  What they are computed from is left out: it holds functions of
        the caller, which need not be picklable."""
        known = {name: getattr(self, name) for name, value in vars(Fitted).items()
                 if isinstance(value, cached_property)}  # fmt: skip
        own = {"request": self.request, "_originals": self._standing_originals(), "arm": self.arm}
        passing = dict.fromkeys(("chained", "streamed", "attempts"))
        own |= {"conversation": self.conversation, "hint": self.hint}
        return {**own, "held_tokens": self.held_tokens, **passing, **known}

    def _standing_originals(self) -> dict[str, str]:
        """The originals of this turn, and those of earlier edits that ``request`` has, which a
        store may have; without those that the store does not give."""
        known = dict(self._originals)
        try:
            for handle in self.handles:
                if handle not in known and (text := self._originals.get(handle)) is not None:
                    known[handle] = text
        except StoreError:
            pass
        return known

    def __repr__(self) -> str:
        return f"<Fitted {self.report.tokens_before:,} → {self.report.tokens_after:,} tokens>"


def recall(originals: Mapping[str, str], handle: str) -> str:
    """Look up one handle.  Raises UnknownHandle, whose text says what to do."""
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


def withdrawal_of(fitted: Fitted) -> list[str]:
    """What a journal keeps if the repairs for refused rules did not help."""
    measured = fitted._result.measured
    if measured.repaired.made is None:
        return []
    made, destination = measured.repaired.made, measured.received.destination
    return refused_rules.withdrawal_of(made, destination, measured.inputs.refused)


def counted(result: FitResult) -> Counted | None:
    """Our count, to compare with a bill; None if no model is named."""
    measured = result.measured
    key = calibration_key(measured.settings, measured.transcript, measured.sizes.counter)
    if not key:
        return None
    facts, signed = measured.transcript.facts, result.signed
    return Counted(key, result.tokens_after - signed, signed, facts.managed, facts.server_state)
