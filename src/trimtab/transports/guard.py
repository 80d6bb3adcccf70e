"""What all transports share: a session, what was learned, and how a request becomes a flow.

Knows which requests are ours.  Does not know any HTTP library; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.fitted import Fitted
from trimtab.flow import Done, Flow, Totals, flow
from trimtab.sending.learned import LearnedLimits
from trimtab.sending.stored_limits import StoredLimits
from trimtab.session import Session
from trimtab.telling.log import logger
from trimtab.transports.spots import Spot, place, spot

HEADER = "x-trimtab"
"""On every response of ours: one line about what was done."""


class Guard:
    """Fits what goes through it, and reacts to refusals; one for any number of clients.

    Takes the keywords of ``Session``, or ``session=`` itself.  ``learned``: what refusals taught,
    to be shared or kept (``LearnedLimits``); ``retry_result_chars``: to what a refusal that says
    nothing but "ERROR" cuts each tool result; ``strict``: raise our errors instead of sending
    what came.  ``totals`` counts what became of all requests.
    """

    def __init__(
        self,
        *,
        session: Session | None = None,
        learned: LearnedLimits | None = None,
        retry_result_chars: int | None = None,
        strict: bool = False,
        **keywords: Any,
    ) -> None:
        if session is not None and keywords:
            raise InvalidSetting(f"session= and {', '.join(keywords)}: give them to the session")
        if retry_result_chars is not None and retry_result_chars <= 0:
            raise InvalidSetting(
                f"retry_result_chars={retry_result_chars!r}: give a number above 0"
            )
        if "journal" not in keywords:  # a client serves any number of conversations
            keywords.setdefault("store", "memory:")
        self.session = Session(**keywords) if session is None else session
        self.learned = LearnedLimits(StoredLimits(self.session)) if learned is None else learned
        self.totals = Totals()
        self._chars, self._strict = retry_result_chars, strict
        self._on_event = keywords.get("on_event")

    def wants(self, method: str, url: str) -> bool:
        """Whether a request may be one of ours; else its body need not even be read."""
        return method.upper() == "POST" and place(url) is not None

    def start(
        self, method: str, url: str, headers: Mapping[str, str], body: Callable[[], bytes]
    ) -> tuple[Flow, Spot] | None:
        """The flow of a request, not begun; None where it is none of ours.

        ``body`` is called only for a request that may be one.
        """
        if not self.wants(method, url):
            return None
        try:
            data = body()
            where = spot(method, url, headers, data)
        except Exception as error:
            if self._strict:
                raise
            logger().warning("passed on untouched: %s", type(error).__name__)
            return None
        return None if where is None else (self.flow(data, where), where)

    def flow(self, request: Any, where: Spot, **keywords: Any) -> Flow:
        """The flow of one request to a known place; ``keywords`` for ``fit``."""
        words = {"format": where.format, **keywords}
        if where.model:
            words["model"] = where.model
        return flow(
            request,
            partial(self._fit, words),
            key=where.key,
            learned=self.learned,
            retry_result_chars=self._chars,
            streaming=where.streams,
            strict=self._strict,
            on_event=self._on_event,
            undo=self._undo,
            totals=self.totals,
        )

    def observe(self, answer: Any, done: Done) -> None:
        """Let the session learn from the usage in an answer, or in an event of a stream."""
        if not done.accepted or done.fitted is None:
            return
        try:
            self.session.observe(answer, done.fitted)
        except Exception as error:
            logger().warning("usage not read: %s", type(error).__name__)

    def _undo(self, fitted: Fitted) -> None:
        """Take back edits that were made on a guess and helped nothing."""
        for edit in fitted.report.edits:
            if edit.new:
                self.session.undo(edit.handle)
                self.session.unpin(edit.handle)

    def _fit(self, words: dict[str, Any], request: Any, **more: Any) -> Fitted:
        return self.session.fit(request, **{**words, **more})


def guard_of(guard: Guard | None, keywords: dict[str, Any]) -> Guard:
    """The guard given, or one made of the keywords.  Raises InvalidSetting for both."""
    if guard is None:
        return Guard(**keywords)
    if keywords:
        raise InvalidSetting(f"guard= and {', '.join(keywords)}: give them to the guard")
    return guard
