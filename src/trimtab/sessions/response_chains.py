"""Histories that a provider's server holds, as they went by: what each answer's id stands for.

A request that names an earlier answer (``previous_response_id``, ``conversation``,
``previous_interaction_id``) carries only what is new.  Where every turn of such a chain was seen,
the whole can be sent instead, without the server's state.  Kept in this process, bounded.
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
"""Of the histories that are kept; the oldest answers are forgotten first."""
_SLACK = 1.5
"""A conversation of the server's was seen from its beginning where its first prompt, as billed, is
no longer than this times what was sent."""
_CONTENT = ("text", "image", "audio", "video", "document")


@dataclass(frozen=True, eq=False)
class ChainLink:
    """What one turn added to a chain; ``tokens``: what the server then holds, as it was billed;
    ``detached``: the server's conversation lacks a turn that was sent whole, without it."""

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
    """The key and the id by which a request names what the server holds; None for any other."""
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

    def __init__(self, most_chars: int = MOST_CHARS) -> None:
        self._links: OrderedDict[str, ChainLink] = OrderedDict()
        self._chars, self._most = 0, most_chars
        self._lock = Lock()

    def link(self, tree: Any) -> ChainLink | None:
        """What the server holds for this request, where all of it was seen."""
        named = state_named(tree)
        return self._links.get(named[1]) if named else None

    def take(self, tree: Any, answer: Any, sent_tokens: int, was_whole: bool = False) -> None:
        """Remember what this answer's id stands for.  ``tree``: the request as the client made it;
        ``sent_tokens``: our count of what was sent; ``was_whole``: its history was put into it."""
        response = chained_answer(answer)
        if response is None or not isinstance(tree, Mapping) or not isinstance(response["id"], str):
            return
        usage, named, before = read_usage(response), state_named(tree), self.link(tree)
        billed = usage.input_tokens if usage else sent_tokens
        if named is not None and before is None:
            begins = named[0] == "conversation" and billed <= _SLACK * sent_tokens
            if not begins:  # what came before it is not known
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
        while self._chars > self._most and len(self._links) > 1:
            self._chars -= self._links.popitem(last=False)[1].chars


def unchained(tree: Mapping[str, Any], link: ChainLink) -> dict[str, Any]:
    """The same request with the whole history in it, and nothing of the server's state; whether the
    answer is stored stays as the client wished it."""
    rest = {key: value for key, value in tree.items() if key not in STATES}
    new = input_items(tree, is_interaction="previous_interaction_id" in tree)
    return {**rest, "input": [*link.history(), *new]}


def input_items(tree: Mapping[str, Any], is_interaction: bool) -> list[Any]:
    """What a request adds, as items: a text, or contents by themselves, are the user's."""
    given = tree.get("input")
    if isinstance(given, str):
        if is_interaction:
            return [{"type": "user_input", "content": [{"type": "text", "text": given}]}]
        return [{"type": "message", "role": "user", "content": given}]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        return []
    if is_interaction and _is_content(given):
        return [{"type": "user_input", "content": given}]
    return given


def _is_content(given: Any) -> bool:
    """Whether an input is contents of Gemini's without the turn around them."""
    first = given[0] if isinstance(given, list) and given else given
    return isinstance(first, Mapping) and first.get("type") in _CONTENT


def chained_answer(answer: Any) -> Mapping[str, Any] | None:
    """The answer, or the one in an event of a stream, that a later request may name."""
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
    """A content of the model's as a step."""
    return {"type": "model_output", "content": [content]}
