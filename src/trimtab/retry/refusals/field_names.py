"""The fields that a refusal names: ``'input[1].action'``, ``property "citations" is unsupported``.

What is found here are candidates: only those that the request really has are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trimtab.retry.refusals.nested_errors import NestedError

_KEY = r"(?:parameter|field|propert(?:y|ies)|key|argument|attribute|member)s?"
_NOT = (
    r"(?:is |are )?(?:not (?:supported|allowed|permitted|recogni[sz]ed|known|accepted|valid)|"
    r"unsupported|unknown|forbidden|unrecogni[sz]ed|unexpected)"
)
REFUSED = re.compile(
    rf"extra (?:input|field|key|propert)\w* {_NOT}|extra_forbidden|"
    r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|additional|undefined) "
    rf"(?:request |json |input |message )?(?:{_KEY}|name)\b|"
    rf"{_KEY} (?:\S+ )?{_NOT}|additional ?properties {_NOT}|"
    rf"does not (?:support|accept|allow|have) (?:the |a )?{_KEY}|cannot find field|no such field|"
    rf"got an unexpected keyword|^\S*[a-z]_\S+:? {_NOT}",
    re.DOTALL,
)
"""Words of an error that refuses a field for its name, in a text normalised by ``plain``."""
_STEP = r"[A-Za-z_][\w-]*"
_QUOTED = re.compile(r"[`'\"“‘]([A-Za-z_][\w.\[\]-]*)[`'\"”’]")
_INDEX = r"(?:\.\d+|\[\d+\])"
_PATH = re.compile(rf"(?<![\w.])({_STEP}(?:\.{_STEP}|{_INDEX})*{_INDEX}(?:\.{_STEP}|{_INDEX})*)")
_AFTER = re.compile(
    rf"(?:parameter|field|name|key|property|argument|attribute|member|support|permitted|"
    rf"allowed)s?(?: supplied| provided)?"
    rf"[:=]? +({_STEP}(?:\.{_STEP})*)"
)
_BEFORE = re.compile(
    rf"(?<![\w.])({_STEP}(?:\.{_STEP})*):? +(?:is|are|not|extra|unsupported)\b", re.IGNORECASE
)
_AT = re.compile(r"[`'\"]([A-Za-z_][\w-]*)[`'\"] at [`'\"]([\w.\[\]-]+)[`'\"]")
"""Google's words: the key, and the object that has it."""
_ITEMS = 24


def named_fields(layers: Iterable[NestedError]) -> tuple[str, ...]:
    """Candidates in order: the places that the error's own keys give, then those in its text."""
    found = dict.fromkeys(name for layer in layers for name in _of_layer(layer))
    return tuple(found)[:_ITEMS]


def _of_layer(layer: NestedError) -> Iterator[str]:
    if layer.place:
        yield layer.place
    for key, holder in _AT.findall(layer.text):
        yield f"{holder}.{key}"
    for words in (_PATH, _QUOTED, _AFTER, _BEFORE):
        yield from words.findall(layer.text)
