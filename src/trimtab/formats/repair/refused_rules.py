"""Which rules a conversation is known to be refused for, as its journal keeps them.

    refused 1f9a03c2 blank_text 8c1d…      there, for this rule, where this block is
    refused 1f9a03c2 field:citations *     there, for this rule, in all of the conversation
    withdrawn 1f9a03c2 blank_text 8c1d…    the repair did not help

Rules belong to the endpoint and model that refused: where a session goes on with another model,
they do not hold.  What takes content away or adds words belongs to its block, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from trimtab.formats.engine.rule import Repaired
from trimtab.formats.repair.named_rules import DIALECT, is_conversation_wide

RefusedRules = Mapping[str, frozenset[str] | None]
"""Rule → digests of the blocks where it holds (``digest_at``); None: everywhere."""
_REFUSED, _WITHDRAWN, _ALL = "refused", "withdrawn", "*"


def destination_of(address: str, model: str | None) -> str:
    """The name of an endpoint and model among refused rules: 8 hex characters.  ``address``:
    ``api.openai.com|gpt-5.1``; "": only the model is known."""
    text = address or f"|{model or ''}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def known(keys: Iterable[str], destination: str, refused: Iterable[str]) -> RefusedRules:
    """The rules that hold for a request: those in a journal's ``keys``, and ``refused``, which
    hold everywhere in it."""
    found: dict[str, frozenset[str] | None] = {}
    began = f"{_REFUSED} {destination} "
    mine = [key for key in keys if key.startswith(began)]
    withdrawn = {key for key in keys if key.startswith(_WITHDRAWN)} if mine else set()
    for key in mine:
        if key.replace(_REFUSED, _WITHDRAWN, 1) in withdrawn:
            continue
        rule, _, digest = key.removeprefix(began).rpartition(" ")
        before = found.get(rule, frozenset())
        found[rule] = None if digest == _ALL or before is None else before | {digest}
    return {**found, **dict.fromkeys(refused)}


def dialect_in(refused: RefusedRules) -> str:
    """The dialect that a refusal showed; "" if none did."""
    named = sorted(rule for rule in refused if rule.startswith(DIALECT))
    return named[-1].removeprefix(DIALECT) if named else ""


def keys_of(
    made: Repaired, destination: str, refused: Iterable[str], before: Iterable[str] = ()
) -> Iterator[str]:
    """What a journal, which has the keys ``before``, keeps of repairs that rules of a refusal made.

    A rule that is refused a second time holds for all of the conversation: it is no coincidence.
    """
    named = frozenset(refused)
    again = known(before, destination, ()).keys() & named
    for rule, digest in made.found:
        if rule in named:
            where = _ALL if is_conversation_wide(rule) or rule in again else digest
            yield f"{_REFUSED} {destination} {rule} {where}"
    for rule in named:
        if rule.startswith(DIALECT):
            yield f"{_REFUSED} {destination} {rule} {_ALL}"


def withdrawal_of(made: Repaired, destination: str, refused: Iterable[str]) -> list[str]:
    """What a journal keeps where the request was refused after these repairs as well."""
    keys = keys_of(made, destination, refused)
    return [key.replace(_REFUSED, _WITHDRAWN, 1) for key in keys]
