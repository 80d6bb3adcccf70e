"""The rival: results cut to head and tail, so that the request is as large as trimtab's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from asked.conversations import Conversation

MARK = "\n[... cut ...]\n"


@cache
def _tokenizer() -> Any:
    return import_module("splintr").Tokenizer.from_pretrained("o200k_base")


def encoded(text: str) -> list[int]:
    """o200k tokens of a text."""
    return list(_tokenizer().encode_ordinary(text))


def shortened(tokens: Sequence[int], size: int) -> str:
    """The first and the last of these tokens, ``size`` in all with the mark between them."""
    size = max(2, size - len(encoded(MARK)))
    head, tail = size - size // 2, size // 2
    decode = _tokenizer().decode
    return f"{decode(list(tokens[:head]))}{MARK}{decode(list(tokens[-tail:]))}"


def cut(talk: Conversation, saved: int, places: Collection[int]) -> Conversation:
    """So many tokens less: the results of these steps at one largest size, shorter ones whole."""
    tokens = {place: encoded(talk.steps[place].result) for place in places}
    low, high = 2, max(map(len, tokens.values()))
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(0, len(own) - middle) for own in tokens.values()) >= saved:
            low = middle
        else:
            high = middle - 1
    results = [step.result for step in talk.steps]
    for place, own in tokens.items():
        if len(own) > low:
            results[place] = shortened(own, low)
    return talk.with_results(results)
