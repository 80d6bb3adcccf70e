"""The result of ``fit``: the request, the report, and the originals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from trimtab.errors import StoreError, UnknownHandle, handle_in
from trimtab.formats.body import RequestBody
from trimtab.formats.registry import FORMATS
from trimtab.journal.archive import Archived, of_transcript
from trimtab.journal.folded_steps import step_range, steps_of
from trimtab.lazy import cached_property
from trimtab.report import Report, ReportEdit
from trimtab.request.applied import taken_by_repair
from trimtab.request.fit_report import report_of
from trimtab.request.fitted_facts import FittedFacts
from trimtab.request.pipeline import FitResult
from trimtab.suggestions import SuggestsNames

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")


class Fitted(SuggestsNames, Generic[R]):
    """A request that can be sent, and what was done to it.

    ``request`` has the type that was given; it is the same object if nothing had to change.
    ``report`` says what happened and why.  It can be pickled and copied.
    """

    _GUESSES: ClassVar[Mapping[str, str]] = {
        "text": "messages", "contents": "messages", "input": "messages", "body": "request",
        "edits": "report.edits", "warnings": "report.warnings", "format": "report.format",
        "handle": "report.edits[0].handle",
        "tokens": "tokens_after", "tokens_saved": "report.tokens_saved",
    }  # fmt: skip

    def __init__(self, result: FitResult, originals: Mapping[str, str]) -> None:
        self.request = cast(R, result.sent.returned(result.measured.received.body))
        self._result, self._failures = result, result.measured.sizes.counter.failures
        self._originals, self._facts = originals, FittedFacts(result)
        self.conversation = ""
        """The id or name of its conversation; "" if its session has only one."""
        self.arm = ""
        """The arm of an experiment (``control=``): "treated", "control" or "control, outgrown"."""

    @cached_property
    def messages(self) -> Any:
        """The messages of ``request``: its ``messages``, ``contents`` or ``input``, parsed if it is
        JSON text; a bare list is ``request`` itself.  [] where the server has them all."""
        body: Any = self.request
        if not isinstance(body, (dict, list)):
            body = RequestBody.of(body).tree
        return (
            body
            if isinstance(body, list)
            else body.get(FORMATS[self._facts.format].messages_key, [])
        )

    @cached_property
    def report(self) -> Report:
        """What was done and why; computed on first use."""
        return report_of(self._result, self._failures, self._facts.learned)

    @cached_property
    def tokens_before(self) -> int:
        """Tokens of the request as it came."""
        return self._result.tokens_before

    @cached_property
    def tokens_after(self) -> int:
        """Tokens of ``request``; the report says the same, but need not be made for it."""
        return self._result.tokens_after

    @cached_property
    def changed(self) -> bool:
        """Whether ``request`` differs from the request as received."""
        result = self._result
        return bool(result.applied) or result.measured.repaired.made is not None

    def recall(
        self,
        handle: str | ReportEdit | Archived,
        *,
        steps: int | str | tuple[int, int] | None = None,
    ) -> str:
        """The exact original behind a handle: the string of a text, else JSON text.

        ``handle``: also its beginning, or the edit itself.  ``steps``: only these steps of folded
        ones, numbered as in their note (``3``, ``"3-5"``).

        Raises UnknownHandle; ValueError if there are no such steps.
        """
        text = recall(self._originals, whole_handle(handle_in(handle), self._facts.handles))
        numbers = step_range(steps)
        return text if numbers is None else steps_of(text, *numbers)

    @cached_property
    def archive(self) -> tuple[Archived, ...]:
        """What ``request`` lacks of the one received: its originals, newest first."""
        result = self._result
        edits = [applied.edit for applied in result.applied]
        return of_transcript(result.measured.transcript, edits, taken_by_repair(result.measured))

    if not TYPE_CHECKING:  # a type checker knows that there are none

        def __getitem__(self, key):
            raise TypeError("a Fitted is no body: its body is .request, the list in it .messages")

    def __getstate__(self) -> dict[str, Any]:
        """All values, computed now.  What they are computed from is left out: it holds functions of
        the caller, which need not be picklable."""
        computed = ("report", "tokens_before", "tokens_after", "changed", "archive")
        given = ("request", "conversation", "arm", "_facts")
        values = {name: getattr(self, name) for name in (*given, *computed)}
        return {**values, "_originals": self._originals_in_force()}

    def _originals_in_force(self) -> dict[str, str]:
        """The originals of this turn, and those of earlier edits that ``request`` has, which a
        store may have; without those that the store does not give."""
        originals = dict(self._originals)
        try:
            for handle in self._facts.handles:
                if handle not in originals and (text := self._originals.get(handle)) is not None:
                    originals[handle] = text
        except StoreError:
            pass
        return originals

    def __repr__(self) -> str:
        return f"<Fitted {self.tokens_before:,} → {self.tokens_after:,} tokens>"


def facts_of(fitted: Fitted[Any]) -> FittedFacts:
    """What our own doors need to know of a fitted request."""
    return fitted._facts


def note_learned(fitted: Fitted[Any], room: int, window: int | None) -> None:
    """Note the limit that a refusal taught of its model, as ``FittedFacts.learned``; a report made
    without it is made again."""
    facts_of(fitted).learned = (room, window or 0)
    vars(fitted).pop("report", None)


def whole_handle(handle: str, handles: Iterable[str]) -> str:
    """The one of ``handles`` that begins so; ``handle`` itself where none or several do."""
    found = {one for one in handles if one.startswith(handle)}
    return found.pop() if handle and handle not in found and len(found) == 1 else handle


def recall(originals: Mapping[str, str], handle: str) -> str:
    """Look up one handle.  Raises UnknownHandle, whose text says what to do."""
    try:
        return originals[handle]
    except UnknownHandle:
        raise
    except KeyError:
        raise UnknownHandle(
            f"no original is kept under {handle!r} here: run the tool again, "
            "or recall it from the session that made the edit"
        ) from None
