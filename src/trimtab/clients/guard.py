"""``Guard``: the session, the learned limits and the settings that all clients share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Unpack

from trimtab.clients.request_target import RequestTarget, path_target, request_target
from trimtab.errors import InvalidSetting, expect
from trimtab.fitted import Fitted
from trimtab.retry.flow import Done, Flow, SendStats, flow
from trimtab.retry.guesses import RESULT_CHARS, result_chars, undo_new_edits
from trimtab.retry.learned_limits import LearnedLimits
from trimtab.retry.stored_limits import StoredLimits
from trimtab.session import Session, SessionKeywords
from trimtab.settings import FitKeywords, check_names
from trimtab.telemetry import logger

_GIVE = "a trimtab.clients.Guard, or session=… for a session"
HEADER = "x-trimtab"
"""On every response of ours: one line about what was done.  On a request, "off": send it as it
came."""


def is_off(headers: Mapping[str, str]) -> bool:
    """Whether a request asks to be sent as it came."""
    return str(headers.get(HEADER, "")).strip().lower() == "off"


class GuardKeywords(SessionKeywords, total=False):
    """The keywords of ``Guard``."""

    session: Session | None
    learned: LearnedLimits | None
    retry_result_chars: int
    strict: bool


class Guard:
    """Fits what goes through it, and reacts to refusals; one for any number of clients.

    Takes the keywords of ``Session``, or ``session=`` itself.  ``learned``: what refusals taught,
    to be shared or kept (``LearnedLimits``); ``retry_result_chars``: to what a refusal that names
    nothing (a bare "ERROR") cuts each tool result, 0: such a refusal stands; ``strict``: raise our
    errors instead of sending what came.  ``stats`` counts what became of all requests.
    """

    def __init__(
        self,
        *,
        session: Session | None = None,
        learned: LearnedLimits | None = None,
        retry_result_chars: int = RESULT_CHARS,
        strict: bool = False,
        **keywords: Unpack[SessionKeywords],
    ) -> None:
        check_names(keywords, GuardKeywords.__annotations__.keys(), "Guard")
        given = session is None or isinstance(session, Session)
        expect(given, "session", session, "a trimtab.Session")
        if session is not None and keywords:
            raise InvalidSetting(f"session= and {', '.join(keywords)}: give them to the session")
        if "journal" not in keywords:  # a client serves any number of conversations
            keywords.setdefault("store", "memory:")
        self.session = Session(**keywords) if session is None else session
        self.learned = LearnedLimits(StoredLimits(self.session)) if learned is None else learned
        self.stats = SendStats()
        self._chars, self._strict = result_chars(retry_result_chars), strict
        self._on_event = self.session.settings.on_event

    def wants(self, method: str, url: str) -> bool:
        """Whether a request may be one of ours; else its body need not even be read."""
        return method.upper() == "POST" and path_target(url) is not None

    def start(
        self, method: str, url: str, headers: Mapping[str, str], body: Callable[[], bytes]
    ) -> tuple[Flow, RequestTarget] | None:
        """The flow of a request, not begun; None where it is none of ours.

        ``body`` is called only for a request that may be one.
        """
        if not self.wants(method, url):
            return None
        try:
            data = body()
            target = request_target(method, url, headers, data)
        except Exception as error:
            if self._strict:
                raise
            logger().warning("passed on untouched: %s", type(error).__name__)
            return None
        return None if target is None else (self.flow(data, target), target)

    def flow(self, request: Any, target: RequestTarget) -> Flow:
        """The flow of one request to this target."""
        words: FitKeywords = {"format": target.format}
        if target.model:
            words["model"] = target.model
        return flow(
            request,
            partial(self._fit, words),
            key=target.key,
            learned=self.learned,
            retry_result_chars=self._chars,
            streaming=target.streams,
            strict=self._strict,
            on_event=self._on_event,
            undo=partial(undo_new_edits, self.session),
            stats=self.stats,
        )

    def compaction_offer(self, body: bytes, target: RequestTarget) -> Fitted | None:
        """A fit whose ``compaction_offer`` says what to ask the provider before this request is
        sent; None where nothing is asked."""
        if self.session.settings.compaction != "provider":
            return None
        if target.format not in ("anthropic", "openai-responses") or target.model:
            return None
        try:
            fitted = self._fit({"format": target.format}, body)
        except Exception:  # what is wrong with it shows when it is fitted to be sent
            return None
        return fitted if fitted.compaction_offer is not None else None

    def compacted(self, fitted: Fitted, status: int, answer: Any) -> None:
        """Take what the provider made of ``fitted.compaction_offer``; else our fold stays."""
        try:
            used = status < 400 and self.session.compacted(fitted, answer)
        except Exception as error:
            used = False
            logger().warning("the provider's compaction was not read: %s", type(error).__name__)
        if not used:
            logger().warning("the provider did not compact (status %s): folded instead", status)

    def observe(self, answer: Any, done: Done) -> None:
        """Let the session learn from the usage in an answer, or in an event of a stream."""
        if not done.accepted or done.fitted is None:
            return
        try:
            self.session.observe(answer, done.fitted)
        except Exception as error:
            logger().warning("usage not read: %s", type(error).__name__)

    def _fit(self, words: FitKeywords, request: Any, **more: Unpack[FitKeywords]) -> Fitted:
        joined: FitKeywords = {**words, **more}
        return self.session.fit(request, **joined)


def guard_of(guard: Guard | None, keywords: GuardKeywords) -> Guard:
    """The guard given, or one made of the keywords.  Raises InvalidSetting for both."""
    expect(guard is None or isinstance(guard, Guard), "guard", guard, _GIVE)
    if guard is None:
        return Guard(**keywords)
    if keywords:
        raise InvalidSetting(f"guard= and {', '.join(keywords)}: give them to the guard")
    return guard
