"""Histories kept by a provider's server, recorded as they pass: answer id → its history.

A request that names an earlier answer (``previous_response_id``, ``conversation``,
``previous_interaction_id``) contains only what is new.  If every turn of such a chain was seen, the
whole history can be sent instead, without the server's state.  Kept in this process, bounded.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from trimtab.jsontext import paths
from trimtab.pricing.reported_usage import as_mapping, read_usage

PREVIOUS = ("previous_response_id", "previous_interaction_id")
"""Keys whose value is the id of the answer before."""
STATES = (*PREVIOUS, "conversation")
MOST_CHARS = 64_000_000
"""Most chars of the histories kept; the oldest answers are forgotten first."""
_SLACK = 1.5
"""A server-side conversation counts as seen from its beginning if its first prompt, as billed, is
at most this many times what was sent."""
_CONTENT = ("text", "image", "audio", "video", "document")


@dataclass(frozen=True, eq=False)
class ChainLink:
    """What one turn added to a chain; ``tokens``: billed size of the history after it;
    ``detached``: the server's conversation lacks a turn, because it was sent whole without it."""

    before: ChainLink | None
    items: tuple[Any, ...]
    tokens: int
    chars: int
    detached: bool = False

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
        self._links: OrderedDict[str, ChainLink] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def link(self, tree: Any) -> ChainLink | None:
        """The history on the server that this request names, if all of it was seen."""
        named = state_named(tree)
        return self._links.get(named[1]) if named else None

    def take(self, tree: Any, answer: Any, sent_tokens: int, was_whole: bool = False) -> None:
        """Record the history behind this answer's id.  ``tree``: the request as the client made it;
        ``sent_tokens``: our count of what was sent; ``was_whole``: it was sent with its history."""
        response = chained_answer(answer)
        if response is None or not isinstance(tree, Mapping) or not isinstance(response["id"], str):
            return
        usage, named, before = read_usage(response), state_named(tree), self.link(tree)
        billed = usage.input_tokens if usage else sent_tokens
        if named is not None and before is None:
            begins = named[0] == "conversation" and billed <= _SLACK * sent_tokens
            if not begins:  # the history before it is unknown
                return
        given = input_items(tree, is_interaction="output" not in response)
        items = copy.deepcopy((*given, *_output(response)))
        tokens = billed + (usage.output_tokens if usage else 0)
        size, in_conversation = len(paths.dump(list(items))), named and named[0] == "conversation"
        detached = in_conversation and (was_whole or (before is not None and before.detached))
        with self._lock:
            self._keep(response["id"], ChainLink(before, items, tokens, size))
            if named is not None and in_conversation:
                self._keep(named[1], ChainLink(before, items, tokens, size, bool(detached)))

    def _keep(self, name: str, link: ChainLink) -> None:
        if (old := self._links.pop(name, None)) is not None:
            self._chars -= old.chars
        self._links[name] = link
        self._chars += link.chars
        while self._chars > MOST_CHARS and len(self._links) > 1:
            self._chars -= self._links.popitem(last=False)[1].chars


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
        if isinstance(holder, Mapping) and holder.get("id") and _output(holder):
            return holder
    return None


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
