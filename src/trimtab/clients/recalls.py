"""Which requests of a guarded client get the recall tool.  Not loaded without ``recall``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trimtab.clients.request_target import RequestTarget
from trimtab.errors import TrimtabError
from trimtab.formats import FORMATS
from trimtab.formats.body import RequestBody
from trimtab.rounds import ExchangeMemory, RecallRounds, exchanges_of, rewritable
from trimtab.rounds.declaration import INTERNAL, OWN
from trimtab.session import Session
from trimtab.sessions.control import is_control
from trimtab.sessions.conversation import conversation_id
from trimtab.sessions.recall_tool import NAME
from trimtab.telemetry import logger

RAW = "its answer is read as raw bytes"
REFUSED = "its provider has refused such a request for a tool"
_RAW_HEADER = "x-stainless-raw-response"
"""A header of the SDKs on requests whose answer the caller reads as bytes."""

_ENDS_IN_NAME = f'{NAME}"'
"""Servers of tools put a prefix before a name: ``"mcp__trimtab__recall"``."""
_OF_TOOLS = re.compile(r"tools?\b|function|tool_", re.IGNORECASE)
_CHARS = 2_000
"""Characters of a refusal that are read."""


class ToolOffer(NamedTuple):
    """``body``: the request with what was hidden of earlier answers, and with the recall tool if
    there are ``rounds``; ``named``: whether notes may name the tool."""

    body: bytes
    rounds: RecallRounds | None
    named: bool


class Recalls:
    """Offers the recall tool in the requests of one session, and keeps what callers don't see.

    ``gateway``: it serves programs of any kind.  Then a request without tools gets none of ours,
    and the usage has the prompt of the last round: an agent reads there how full its window is.
    """

    def __init__(self, session: Session, *, notes: bool = False, gateway: bool = False) -> None:
        self._session, self._notes, self._gateway = session, notes, gateway
        self._hidden = ExchangeMemory().of("", "")
        self._told = set[str]()
        """Why requests did not get the tool, as far as it was logged."""
        self._refused = set[tuple[str, int]]()
        """(key of the target, number of the caller's tools) of what was refused for it."""

    def offer(
        self, body: bytes, url: str, headers: Mapping[str, str], target: RequestTarget, *,
        streams: bool,
    ) -> ToolOffer:  # fmt: skip
        """What to send instead of ``body``.  ``streams``: whether who sends it can take calls of
        the tool out of a stream."""
        rounds, why_not = None, _why_not_rewritable(url, headers, target, streams)
        named = _ENDS_IN_NAME.encode() in body  # the caller may have such a tool, and answer it
        if not why_not:
            body, rounds, why_not = self._with_tool(body, target)
        if why_not not in ("", OWN, INTERNAL):
            self._tell(why_not)
        return ToolOffer(body, rounds, named or rounds is not None)

    def is_offered(self, request: Any) -> bool:
        """Whether a request whose calls we don't answer has such a tool of the caller's."""
        tools = request.get("tools") if isinstance(request, Mapping) else None
        offered = _ENDS_IN_NAME in json.dumps(tools, default=str)
        if not offered:
            self._tell("this door does not answer its calls")
        return offered

    def may_be_refused(self, error: Any) -> bool:
        """Whether a refusal may be of our tool: a model may take none, or a server no more."""
        return bool(_OF_TOOLS.search(str(error)[:_CHARS]))

    def was_refused(self, given: Any, target: RequestTarget) -> None:
        """Without our tool the request was accepted: offer it no more where there are as many."""
        self._refused.add(self._kind(RequestBody.of(given).tree, target))
        self._tell(REFUSED)

    def _kind(self, tree: Any, target: RequestTarget) -> tuple[str, int]:
        tools = FORMATS[target.format.partition(":")[0]].table.tools.of(tree)
        return target.key, len(tools or ())

    def _tell(self, why_not: str) -> None:
        if why_not not in self._told:
            self._told.add(why_not)
            logger().warning("a request does not get the recall tool: %s", why_not)

    def _with_tool(
        self, body: bytes, target: RequestTarget
    ) -> tuple[bytes, RecallRounds | None, str]:
        """(body, its rounds, ""), or (body, None, why not)."""
        format = target.format.partition(":")[0]
        try:
            source = RequestBody.of(body)
            conversation = conversation_id(source, target.format)
        except TrimtabError:
            return body, None, ""  # what is wrong with it shows when it is fitted
        share = self._session.settings.control
        if share and is_control(conversation, share):
            return body, None, ""
        if self._refused and self._kind(source.tree, target) in self._refused:
            return body, None, REFUSED
        rounds = RecallRounds(
            format, self._session, self._hidden, exchanges_of(self._session),
            notes=self._notes, model=target.model, alone=not self._gateway,
            sums_prompts=not self._gateway,
        )  # fmt: skip
        prepared = rounds.prepared(source, conversation)
        body = body if prepared is None else prepared
        return body, rounds if rounds.ready else None, rounds.why_not


def _why_not_rewritable(
    url: str, headers: Mapping[str, str], target: RequestTarget, streams: bool
) -> str:
    """Why calls of the tool can't be taken out of the answer; "" if they can."""
    format = target.format.partition(":")[0]
    listed = target.listed and "alt=sse" not in url
    if not rewritable(format, listed=listed, framed=target.framed):
        return f"answers of {format} are not rewritten here"
    if target.streams and not streams:
        return f"streams of {format} are not rewritten here"
    return RAW if headers.get(_RAW_HEADER) else ""
