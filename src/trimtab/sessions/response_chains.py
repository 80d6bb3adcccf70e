"""Histories kept by a provider's server, recorded as they pass: answer id → its history.

A request that names an earlier answer (``previous_response_id``, ``conversation``,
``previous_interaction_id``) contains only what is new.  If every turn of such a chain was seen, the
whole history can be sent instead, without the server's state.  Kept in this process, bounded.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from trimtab.jsontext import paths
from trimtab.pricing.reported_usage import as_mapping, read_usage

PREVIOUS = ("previous_response_id", "previous_interaction_id")
"""Keys whose value is the id of the answer before."""
STATES = (*PREVIOUS, "conversation")
MOST_CHARS = 64_000_000
"""Most chars of the histories kept; of several chains, the one used least recently is forgotten
first, as a whole."""
_TEXT_ERROR, _HEAD_ERROR, _TOKENS_ERROR = 0.02, 0.15, 64
"""How far a bill may be above our count of the same prompt: a share of the messages, a share of
instructions and tools (whose spelling at the provider is not known), and a constant.  Above it the
server's conversation has items that were not seen here."""
_UNSEEN_CHARS = 200
"""Counted for a conversation of which only is kept that it was not seen."""
_UNFINISHED = ("queued", "in_progress")
"""States of an answer of which more is to come."""
_CONTENT = ("text", "image", "audio", "video", "document")


@dataclass(eq=False)
class Chain:
    """All turns that go back to one first request: their size, and the ids that name them."""

    chars: int = 0
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class ChainLink:
    """What one turn added to a chain; ``tokens``: billed size of the history after it;
    ``detached``: the server's conversation lacks a turn, because it was sent whole without it;
    ``unseen``: it has items that were not seen here, so it can't be sent whole."""

    chain: Chain = field(repr=False)
    before: ChainLink | None = field(repr=False)
    items: tuple[Any, ...] = field(repr=False)
    tokens: int
    detached: bool = False
    unseen: bool = False

    def history(self) -> list[Any]:
        """Every item since the chain began."""
        links = [self]
        while (before := links[-1].before) is not None:
            links.append(before)
        return [item for link in reversed(links) for item in link.items]


def state_named(tree: Any) -> tuple[str, str] | None:
    """The key and id by which a request names history on the server; None if it names none."""
    if not isinstance(tree, Mapping):
        return None
    for key in STATES:
        value = tree.get(key)
        value = value.get("id") if isinstance(value, Mapping) else value
        if isinstance(value, str) and value:
            return key, value
    return None


class ResponseChains:
    """The chains that one session has seen; several threads may use it."""

    def __init__(self) -> None:
        self._links: dict[str, ChainLink] = {}
        self._chars = 0
        self._chains: OrderedDict[Chain, None] = OrderedDict()
        """By last use, the oldest first."""
        self._lock = Lock()

    def link(self, tree: Any) -> ChainLink | None:
        """The history on the server that this request names, if all of it was seen."""
        named = state_named(tree)
        link = self._links.get(named[1]) if named else None
        return None if link is None or link.unseen else link

    def take(
        self, tree: Any, answer: Any, sent: int, head: int = 0, *, was_whole: bool = False
    ) -> None:
        """Record the history behind this answer's id.

        ``tree``: the request as the client made it; ``sent``: our count of what was sent, in
        tokens, of which ``head`` are instructions and tools; ``was_whole``: it was sent with its
        history.
        """
        response = chained_answer(answer)
        if response is None or not isinstance(tree, Mapping) or not isinstance(response["id"], str):
            return
        usage, named, before = read_usage(response), state_named(tree), self.link(tree)
        billed = usage.input_tokens if usage else sent
        conversation = named[1] if named is not None and named[0] == "conversation" else ""
        if named is not None and before is None and not conversation:
            return  # the history before it is unknown
        if conversation and not was_whole and self._has_more(conversation, billed, sent, head):
            unseen = ChainLink(Chain(), None, (), 0, unseen=True)
            with self._lock:
                self._keep(conversation, unseen, _UNSEEN_CHARS)
            return
        given = input_items(tree, is_interaction="output" not in response)
        items = copy.deepcopy((*given, *_output(response)))
        tokens, size = billed + (usage.output_tokens if usage else 0), len(paths.dump(list(items)))
        detached = was_whole or (before is not None and before.detached)
        chain = Chain() if before is None else before.chain
        with self._lock:
            self._keep(response["id"], ChainLink(chain, before, items, tokens), size)
            if conversation:
                self._keep(conversation, ChainLink(chain, before, items, tokens, detached))

    def _has_more(self, conversation: str, billed: int, sent: int, head: int) -> bool:
        """Whether a conversation at the server has items that were not seen here: then more is
        billed than was sent and seen."""
        known = self._links.get(conversation)
        held = 0 if known is None else known.tokens - head
        error = _TEXT_ERROR * (sent - head) + _HEAD_ERROR * head + _TOKENS_ERROR
        return billed > held + sent + error or (known is not None and known.unseen)

    def _keep(self, name: str, link: ChainLink, chars: int = 0) -> None:
        """Keep a link under a name, and forget whole chains above MOST_CHARS."""
        chain = link.chain
        self._links[name] = link
        chain.names.add(name)
        chain.chars += chars
        self._chars += chars
        self._chains[chain] = None
        self._chains.move_to_end(chain)
        while self._chars > MOST_CHARS and len(self._chains) > 1:
            oldest, _ = self._chains.popitem(last=False)
            self._chars -= oldest.chars
            for name in oldest.names:
                if self._links[name].chain is oldest:
                    del self._links[name]


def unchained(tree: Mapping[str, Any], link: ChainLink) -> dict[str, Any]:
    """The request with its whole history and without keys of the server's state; whether the answer
    is stored stays as the client set it."""
    fields = {key: value for key, value in tree.items() if key not in STATES}
    new = input_items(tree, is_interaction="previous_interaction_id" in tree)
    return {**fields, "input": [*link.history(), *new]}


def input_items(tree: Mapping[str, Any], is_interaction: bool) -> list[Any]:
    """The request's own input as items; a bare text or bare contents become a user item."""
    items = tree.get("input")
    if isinstance(items, str):
        if is_interaction:
            return [{"type": "user_input", "content": [{"type": "text", "text": items}]}]
        return [{"type": "message", "role": "user", "content": items}]
    if isinstance(items, Mapping):
        items = [items]
    if not isinstance(items, list):
        return []
    if is_interaction and _is_content(items):
        return [{"type": "user_input", "content": items}]
    return items


def _is_content(items: Any) -> bool:
    """Whether an input is Gemini contents without a step around them."""
    first = items[0] if isinstance(items, list) and items else items
    return isinstance(first, Mapping) and first.get("type") in _CONTENT


def chained_answer(answer: Any) -> Mapping[str, Any] | None:
    """The answer (or the one inside a stream's event) that a later request may name, else None."""
    whole = as_mapping(answer)
    if not isinstance(whole, Mapping):
        return None
    for holder in (whole, *(as_mapping(whole.get(key)) for key in ("response", "interaction"))):
        if not isinstance(holder, Mapping) or not holder.get("id"):
            continue
        if _output(holder) or ("event_type" not in whole and _ended_silently(holder)):
            return holder
    return None


def _ended_silently(answer: Mapping[str, Any]) -> bool:
    """Whether an answer is complete and says nothing: one cut off by ``max_output_tokens``, say."""
    said = [answer.get(key) for key in ("output", "steps", "outputs")]
    status = answer.get("status")
    return [] in said and isinstance(status, str) and status not in _UNFINISHED


def _output(answer: Mapping[str, Any]) -> list[Any]:
    for key in ("output", "steps", "outputs"):
        if isinstance(output := answer.get(key), list):
            items = [as_mapping(item) for item in output]
            if key == "outputs":  # contents without the step around them
                items = [_said(item) if _is_content(item) else item for item in items]
            return items
    return []


def _said(content: Any) -> Any:
    """The model's content as a step."""
    return {"type": "model_output", "content": [content]}
