"""``Guard``: what one wrapped client has: its session, what it learned, and what it sent last."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from trimtab.clients.request_target import RequestTarget, path_target, request_target
from trimtab.clients.sent_fits import SentFits
from trimtab.errors import InvalidSetting, expect
from trimtab.request.fitted import Fitted
from trimtab.retry.flow import Done, Flow, flow
from trimtab.retry.guesses import RESULT_CHARS, result_chars
from trimtab.retry.learned_limits import LearnedLimits
from trimtab.session import Session, SessionKeywords, learned_limits
from trimtab.sessions.edit_history import take_back
from trimtab.sessions.session_turns import undone_by
from trimtab.settings import FitKeywords, check_names
from trimtab.telemetry import fault, logger

if TYPE_CHECKING:
    from trimtab.clients.recalls import Recalls
    from trimtab.rounds.recall_rounds import RecallRounds


class Started(NamedTuple):
    """``flow`` of a request, not yet started, its ``target``, and its ``rounds`` if it offers the
    recall tool, which is then answered here; ``given``: the request without it."""

    flow: Flow
    target: RequestTarget
    rounds: RecallRounds | None = None
    given: Any = None


class WrapKeywords(SessionKeywords, total=False):
    """The keywords of ``wrap`` and all other doors of this folder."""

    session: Session | None
    learned: LearnedLimits | None
    retry_result_chars: int
    strict: bool
    notes: bool


class Guard:
    """Fits the requests of one client and reacts to refusals.

    Takes what users give to ``wrap``; ``client`` names the client.  ``learned``: limits learned
    from refusals; None: those of the session.  ``fits``: what was sent, for ``trimtab.of``.
    ``gateway``: see ``Recalls``.
    """

    def __init__(
        self,
        client: str = "",
        *,
        session: Session | None = None,
        learned: LearnedLimits | None = None,
        retry_result_chars: int = RESULT_CHARS,
        strict: bool = False,
        notes: bool = False,
        gateway: bool = False,
        **keywords: Unpack[SessionKeywords],
    ) -> None:
        given = session is None or isinstance(session, Session)
        expect(given, "session", session, "a trimtab.Session")
        if session is not None and keywords:
            raise InvalidSetting(f"session= and {', '.join(keywords)}: give them to the session")
        if "journal" not in keywords:  # a client serves any number of conversations
            keywords.setdefault("store", "memory:")
        self.session = Session(**keywords) if session is None else session
        if session is None:
            undone_by(self.session, 'trimtab.of(client).undo("{}")')
        self.learned = learned_limits(self.session) if learned is None else learned
        self.fits = SentFits(client, self.session)
        self.stats = self.fits.stats
        self._chars, self.strict = result_chars(retry_result_chars), strict
        self._on_event = self.session.settings.on_event
        self._recalls: Recalls | None = None
        if self.session.settings.recall or notes:
            from trimtab.clients.recalls import Recalls

            self._recalls = Recalls(self.session, notes=notes, gateway=gateway)

    def wants(self, method: str, url: str) -> bool:
        """Whether a request may have to be fitted; if not, its body need not be read."""
        return method.upper() == "POST" and path_target(url) is not None

    def start(
        self, method: str, url: str, headers: Mapping[str, str], body: Callable[[], bytes],
        *, streams_rewritten: bool = True,
    ) -> Started | None:  # fmt: skip
        """How to send a request; None if it is not to be fitted.

        ``body`` is called only if ``wants`` is true.  ``streams_rewritten``: whether who sends it
        can take calls of the recall tool out of a stream.
        """
        if not self.wants(method, url):
            return None
        try:
            data = body()
            target = request_target(method, url, headers, data)
        except Exception as error:
            if self.strict:
                raise
            logger().warning("passed on unchanged: %s", type(error).__name__)
            return None
        if target is None:
            return None
        if self._recalls is None:
            return Started(self.flow(data, target), target)
        try:
            offer = self._recalls.offer(data, url, headers, target, streams=streams_rewritten)
        except Exception as error:
            if self.strict:
                raise
            fault("recall", error)
            return Started(self.flow(data, target, recall=False), target)
        flow = self.flow(offer.body, target, recall=offer.named)
        return Started(flow, target, offer.rounds, data)

    def without_recall(self, started: Started, done: Done, error: Any) -> Flow | None:
        """The flow of a request without the recall tool, where the provider refused it for that;
        ``error``: the body of the refusal."""
        recalls = self._recalls
        if recalls is None or started.rounds is None or done.accepted or not done.refusals:
            return None
        if done.refusals[-1].kind not in ("invalid_other", "other"):
            return None
        return self._flow_without(recalls, started) if recalls.may_be_refused(error) else None

    def _flow_without(self, recalls: Recalls, started: Started) -> Flow:
        done = yield from self.flow(started.given, started.target, recall=False)
        if done.accepted:
            recalls.was_refused(started.given, started.target)
        return done

    def start_parsed(
        self, body: dict[str, Any], url: str, headers: Mapping[str, str], target: RequestTarget,
        *, streams_rewritten: bool = False,
    ) -> Started:  # fmt: skip
        """``start`` for a body that is no bytes yet."""
        if self._recalls is None:
            return Started(self.flow(body, target), target)
        data = json.dumps(body).encode()
        offer = self._recalls.offer(data, url, headers, target, streams=streams_rewritten)
        sent = body if offer.body is data else json.loads(offer.body)
        flow = self.flow(sent, target, recall=offer.named)
        return Started(flow, target, offer.rounds, body)

    def flow(self, request: Any, target: RequestTarget, *, recall: bool | None = None) -> Flow:
        """The retry flow of one request to ``target``.  ``recall``: whether notes may name the
        tool, if the session's do; None: if the request offers it."""
        keywords: FitKeywords = {"format": target.fitted_as}
        if recall is None and self._recalls is not None:
            recall = self._recalls.is_offered(request)
        if recall is False:
            keywords["recall"] = False
        if target.model:
            keywords["model"] = target.model
        return flow(
            request,
            partial(self._fit, keywords),
            key=target.key,
            learned=self.learned,
            retry_result_chars=self._chars,
            streaming=target.streams,
            strict=self.strict,
            on_event=self._on_event,
            undo=partial(take_back, self.session),
            stats=self.stats,
        )

    def round_flow(self, body: Any, target: RequestTarget) -> Flow:
        """The retry flow of a later round, which carries what the model recalled."""
        self.stats.rounds += 1
        return self.flow(body, target, recall=True)

    def observe(self, answer: Any, done: Done) -> None:
        """Pass an answer, or an event of a stream, to the session, which learns from its usage."""
        if not done.accepted or done.fitted is None:
            return
        try:
            self.session.observe(answer, done.fitted)
        except Exception as error:
            logger().warning("usage not read: %s", type(error).__name__)

    def _fit(self, keywords: FitKeywords, request: Any, **more: Unpack[FitKeywords]) -> Fitted:
        merged: FitKeywords = {**keywords, **more}
        return self.fit(request, **merged)

    def fit(self, request: Any, **keywords: Unpack[FitKeywords]) -> Fitted:
        """``session.fit``; ``trimtab.of`` shows the result."""
        fitted = self.session.fit(request, **keywords)
        self.fits.add(self.session, fitted)
        return fitted


_UNANSWERED = (
    "{}=True: {} does not answer the model's calls of our tools; leave it out, or give "
    "session=trimtab.Session(recall=True, store=…) and answer them with trimtab.{}"
)
_TOOLS = {"recall": "recall_tool", "notes": "note_tool"}


def guard_of(door: str, keywords: WrapKeywords, client: str = "", *, answers: bool = True) -> Guard:
    """A guard with these keywords; ``answers``: whether the door can answer calls of our tools.

    Raises TypeError for an unknown keyword, in the name of ``door``; InvalidSetting.
    """
    check_names(keywords, WrapKeywords.__annotations__.keys(), door)
    for name, tool in _TOOLS.items():
        if keywords.get(name) and not answers:
            raise InvalidSetting(_UNANSWERED.format(name, client or door, tool))
    return Guard(client or door, **keywords)
