"""Histories kept by a provider's server, recorded as they pass: answer id → its history.

A request that names an earlier answer (``previous_response_id``, ``conversation``,
``previous_interaction_id``) contains only what is new.  If every turn of such a chain was seen, the
whole history can be sent instead, without the server's state.  Kept in this process, bounded.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from trimtab.forking import Lock
from trimtab.formats.engine.parts import PartRow
from trimtab.formats.engine.sdk_objects import as_mapping
from trimtab.formats.gemini_interactions.parts import CONTENT as STEP_CONTENT
from trimtab.formats.openai_responses.parts import CONTENT, ITEMS
from trimtab.jsontext import paths
from trimtab.pricing.reported_usage import read_usage

PREVIOUS = ("previous_response_id", "previous_interaction_id")
"""Keys whose value is the id of the answer before."""
STATES = (*PREVIOUS, "conversation")
MAX_CHARS = 64_000_000
"""Most chars of the histories kept, of all chains but the one in use; the answers used least
recently are forgotten first."""
_ERROR, _ERROR_TOKENS = 1.15, 64
"""A prompt of plain text and functions is billed with at most so many times our count, and so many
tokens more (OpenAI's tokenizer is ours; how it spells functions is not known).  A conversation of
which more is billed has items that were not seen here."""
_ERROR_OF_FIRST = 1.5
"""The same for a first prompt with media, files or the provider's own tools, of which our count is
an estimate."""
_UNSEEN_CHARS = 200
"""What an entry for a conversation with unseen items counts."""
_ENDED = ("completed", "incomplete")
"""States of an answer that later requests can name."""
_PLAIN_CALLS = [
    kind
    for kind, row in ITEMS.items()
    if isinstance(row, PartRow) and row.kind == "call" and row.spelling != "json"
]
_PLAIN_RESULTS = [f"{kind}_output" for kind in _PLAIN_CALLS]
_PLAIN_ITEMS = (None, "message", "reasoning", *_PLAIN_CALLS, *_PLAIN_RESULTS)
_PLAIN_PARTS = [kind for kind, row in CONTENT.items() if row.kind == "text"]
_PLAIN_TOOLS = ("function", "custom")


@dataclass(eq=False)
class ChainLink:
    """What one turn added to a chain.

    ``tokens``: billed size of the history after it; ``chars``: of its items; ``detached``: the
    server's conversation lacks a turn, because it was sent whole without it; ``unseen``: the
    conversation has items that were not seen here, so it can't be sent whole.
    """

    before: ChainLink | None = field(repr=False)
    items: tuple[Any, ...] = field(repr=False)
    tokens: int
    chars: int
    detached: bool = False
    unseen: bool = False
    users: int = 0
    """How many ids name it and how many links follow it."""

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
        """By the ids that requests name, the one used least recently first."""
        self._chars = 0
        self._lock = Lock()

    def link(self, tree: Any) -> ChainLink | None:
        """The history on the server that this request names, if all of it was seen."""
        named = state_named(tree)
        if named is None:
            return None
        with self._lock:
            link = self._links.get(named[1])
            if link is None or link.unseen:
                return None
            self._links.move_to_end(named[1])
            return link

    def take(
        self, tree: Any, answer: Any, sent: int, scale: float = 1.0, *, was_whole: bool = False
    ) -> None:
        """Record the history behind this answer's id.

        ``tree``: the request as the client made it; ``sent``: our count of what was sent, in
        tokens; ``scale``: the provider's tokens per one of ours, at most; ``was_whole``: it was
        sent with its history.
        """
        response = chained_answer(answer)
        if response is None or not isinstance(tree, Mapping) or not isinstance(response["id"], str):
            return
        usage, named, id = read_usage(response), state_named(tree), response["id"]
        conversation = named[1] if named is not None and named[0] == "conversation" else ""
        output = _output(response)
        items = copy.deepcopy((*input_items(tree, "output" not in response), *output))
        size = len(paths.dump(list(items)))
        with self._lock:
            before = self._links.get(named[1]) if named is not None else None
            if (named is not None and before is None and not conversation) or (
                conversation and id in self._links  # taken before
            ):
                return
            if named is not None and before is not None:
                self._links.move_to_end(named[1])
            held = before.tokens if before is not None and not was_whole else 0
            billed = usage.input_tokens if usage else held + sent
            if conversation and not was_whole:
                most = _max_billed(tree, output, held, int(sent * scale))
                if billed > most or (before is not None and before.unseen):
                    self._keep(conversation, ChainLink(None, (), 0, _UNSEEN_CHARS, unseen=True))
                    return
            tokens = billed + (usage.output_tokens if usage else 0)
            link = ChainLink(before, items, tokens, size)
            self._keep(id, link)
            if conversation:
                detached = was_whole or (before is not None and before.detached)
                self._keep(conversation, ChainLink(link, (), tokens, 0, detached))

    def _keep(self, name: str, link: ChainLink) -> None:
        """Keep a new link under a name, and forget others above MAX_CHARS."""
        link.users += 1
        self._chars += link.chars
        if link.before is not None:
            link.before.users += 1
        self._release(self._links.pop(name, None))
        self._links[name] = link
        while self._chars > MAX_CHARS and len(self._links) > 1:
            self._release(self._links.popitem(last=False)[1])

    def _release(self, link: ChainLink | None) -> None:
        """Take one user off a link; without any it is kept no more, nor are those before it that
        have no other."""
        while link is not None:
            link.users -= 1
            if link.users:
                return
            self._chars -= link.chars
            link = link.before


def _max_billed(tree: Mapping[str, Any], output: Sequence[Any], held: int, sent: int) -> float:
    """The most that a turn of a conversation can be billed with if all of it was seen: infinite
    where the turn has content of which our count is an estimate."""
    if _is_plain(tree, output):
        return held + _ERROR * sent + _ERROR_TOKENS
    return inf if held else _ERROR_OF_FIRST * sent + _ERROR_TOKENS


def _is_plain(tree: Mapping[str, Any], output: Sequence[Any]) -> bool:
    """Whether a turn has text, functions and reasoning alone."""
    items = [*input_items(tree, is_interaction=False), *output]
    listed = (item.get(key) for item in items if isinstance(item, Mapping)
              for key in ("content", "output"))  # fmt: skip
    parts = [part for value in listed if isinstance(value, list) for part in value]
    return (
        tree.get("prompt") is None  # a template at the server
        and _are(items, _PLAIN_ITEMS)
        and _are(parts, _PLAIN_PARTS)
        and _are(tree.get("tools") or [], _PLAIN_TOOLS)
    )


def _are(values: Any, kinds: Sequence[str | None]) -> bool:
    """Whether all of a list are objects of one of these types."""
    return isinstance(values, list) and all(
        isinstance(value, Mapping) and value.get("type") in kinds for value in values
    )


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
    return isinstance(first, Mapping) and first.get("type") in STEP_CONTENT


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
    """Whether an answer came to its end and says nothing, as one that ``max_output_tokens`` cut
    off in its thinking."""
    said = [answer.get(key) for key in ("output", "steps", "outputs")]
    return [] in said and answer.get("status") in _ENDED


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
