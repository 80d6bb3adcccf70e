"""Classifies a provider's refusal: ``classify(status, body)`` returns its kind and its numbers.

This file decides in which order texts, codes and the status are compared.  ``error_texts`` has the
texts, ``field_lengths`` tells the length of one field from that of the request, ``nested_errors``
has gateway envelopes, ``numbers`` the numbers, ``stream_start`` streams.  An error that matches
nothing is ``other`` and goes to the caller unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from trimtab.retry.refusals import exceptions, numbers
from trimtab.retry.refusals.error_texts import (
    CODES,
    FIELDS,
    PAIRING,
    RATE,
    RATE_SIZE,
    SIZE,
    ErrorPattern,
)
from trimtab.retry.refusals.field_lengths import is_of_one_field
from trimtab.retry.refusals.field_names import named_fields
from trimtab.retry.refusals.nested_errors import NestedError, nested_errors
from trimtab.retry.refusals.refusal import UNKNOWN, Exactness, Kind, Refusal, Unit

Headers = Mapping[str, str] | Iterable[tuple[str, str]]

_RATE_STATUSES = (429,)
_OF_OTHERS = (401, 403, 408, 409, 499, 504)
"""Statuses of credentials, timeouts and conflicts: never a refusal of size, whatever the text."""
_INNER_STATUSES = re.compile(r"401|402|403|429|5\d\d")
_BAD_REQUEST = "400"
_MONEY = re.compile(r"\bcredits?\b|\bbilling\b|\bbalance\b|\bspend|\bbudget\b|\bprices?\b|\$ ?\d")
_STATED = re.compile(
    r"(?:error:? )*(?:(?:your|the) )?(?:input|prompt|context|request|messages?)(?: length)? "
    r"(?:is too long|exceeds? (?:the |this |your )?(?:models? )?context)|"
    r"too many (?:images|documents)\b"
)
"""A text that begins with the refusal, rather than mentioning a size later on."""
_BUSY = re.compile(
    r"\boverloaded\b|\b(?:service|server|temporarily|currently) (?:is )?(?:unavailable|busy)\b|"
    r"\bat capacity\b|out of memory"
)
"""What a server says about itself: two numbers beside it are no refusal of size."""
_ID_OF_A_CALL = re.compile(r"(?:tool|function|call)[\w.\[\]]*[ _.](?:name|id)s?\b")
_ORDER = (*PAIRING, *FIELDS, *RATE_SIZE[:2], *RATE[:2], *SIZE, *RATE[2:])
_LENGTHS = ("context_overflow", "request_bytes")
"""Rules of size whose words also refuse the length of one field."""
_RATE_TAGS = ("rate_limit", "resource_exhausted", "throttling", "token_quota")
_NO_BODY = re.compile(r"(?:\d{3} )?status code \(no body\)|no body", re.IGNORECASE)
_QUOTES = re.compile(r"[`'\"“”‘’]")
_BLANKS = re.compile(r"\s+")
_TOOL_WORDS = re.compile(r"\btool (use|result|call)s?(?=[ .,:]|$)")
_CHARS = 4_000
"""Characters of a message that are read: what follows may quote the request."""


def classify(status: Any, body: Any, headers: Headers | None = None) -> Refusal:
    """Classify a provider's error: the kind of refusal, with the limit and the size it names.

    ``status``: as int or str; None where there is none (an exception, an event in a stream).
    ``body``: bytes, text or parsed JSON in any envelope, or an SDK's message.  Patterns are tried
    in this order: pairing, single fields, size, rate.  A message that only mentions a size is
    ``other``.  ``headers`` are read only where the body matches nothing.  Never raises.
    """
    code = _status(status)
    layers = list(nested_errors(body))
    if code in (None, 200):
        code = _inner_status(layers) or code
    for layer in layers:
        if (refusal := _of_layer(layer, code)) is not None:
            if refusal.rule == "field_refused":
                return replace(refusal, fields=named_fields(layers))
            return refusal
    if code in _RATE_STATUSES or (code in (None, 503, 529) and _says_wait(headers)):
        return Refusal("rate", exactness="guess", rule="rate_limit")
    return _of_status(code, body, layers)


def classify_error(error: Any) -> Refusal:
    """Classify an exception of any SDK by its status, body and headers, or its text."""
    return classify(*exceptions.error_parts(error))


def _of_layer(layer: NestedError, status: int | None) -> Refusal | None:
    text = plain(layer.text)
    tags = layer.tags.lower()
    if _NO_BODY.fullmatch(text) or status in _OF_OTHERS:
        return None
    rate = status in _RATE_STATUSES or any(word in tags for word in _RATE_TAGS)
    for family in (*RATE_SIZE, *RATE) if rate else _ORDER:
        match = family.words.search(text)
        if match and (refusal := _read(family, match, text, layer)) is not None:
            if refusal.rule in _LENGTHS and not _coded_too_long(tags) and is_of_one_field(text):
                rule = "id_format" if _ID_OF_A_CALL.search(text) else "string_too_long"
                return Refusal("invalid_other", exactness="guess", rule=rule)
            return None if _only_mentioned(refusal, text, status, tags) else refusal
    if rate:
        return None
    for tag in tags.split():
        if tag in CODES and (tag != "raw:error" or status == int(_BAD_REQUEST)):
            kind, rule, unit = CODES[tag]
            return _with_numbers(
                Refusal(kind, exactness="guess", rule=rule, unit=unit), text, layer
            )
    if "prompt_eval_count" in layer.numbers and not text:
        refusal = Refusal("too_long", exactness="guess", rule="silent_truncation", unit="tokens")
        return _with_numbers(refusal, text, layer)
    return None


def _coded_too_long(tags: str) -> bool:
    return any(tag in CODES and CODES[tag][0] == "too_long" for tag in tags.split())


def _only_mentioned(refusal: Refusal, text: str, status: int | None, tags: str) -> bool:
    """Whether an error of the server or of billing mentions a size but does not refuse for it."""
    server = status is not None and (status in (402, 404) or status >= 500)
    if not refusal.about_size or not (server or _MONEY.search(text)):
        return False
    above = refusal.limit is not None and (refusal.requested or 0) > refusal.limit
    busy = server and _BUSY.search(text)
    return not (
        (above and not busy) or _STATED.match(text) or any(tag in CODES for tag in tags.split())
    )


def _read(
    family: ErrorPattern, match: re.Match[str], text: str, layer: NestedError
) -> Refusal | None:
    """The refusal of pattern ``family``, with the numbers of its named groups, else with other
    numbers in the error."""
    named = {name: numbers.as_int(n) for name, n in match.groupdict().items() if n}
    limit = next(
        (named[name] for name in ("limit", "limit2", "limit3", "limit4") if name in named), None
    )
    if "below" in named:
        limit = named["below"] - 1
    requested = named.get("requested")
    if requested is not None and "more" in named:
        requested += named["more"]
    refusal = Refusal(family.kind, rule=family.rule, unit=family.unit)
    if limit is not None:
        if family.rule == "rate_tpm_size" and requested is not None and requested <= limit:
            return Refusal("rate", limit, requested, rule="rate_limit")
        return replace(refusal, limit=limit, requested=requested)
    if not refusal.about_size:
        return refusal
    return _with_numbers(replace(refusal, exactness="guess"), text, layer)


def _with_numbers(refusal: Refusal, text: str, layer: NestedError) -> Refusal:
    stated = numbers.numbers_in_fields(layer.numbers)
    if stated is None and refusal.unit == "tokens":
        stated = numbers.token_numbers(text)
    elif stated is None and refusal.unit in ("bytes", "chars"):
        stated = numbers.size_numbers(text)
    if stated is None or stated.limit is None:
        return refusal if stated is None else replace(refusal, excess=stated.excess)
    return replace(
        refusal, limit=stated.limit, requested=stated.requested, output=stated.output,
        exactness=stated.exactness,
    )  # fmt: skip


def _of_status(status: int | None, body: Any, layers: list[NestedError]) -> Refusal:
    """The refusal by the status alone, for a body that matched no pattern."""
    if status == 413:
        return Refusal("too_large", exactness="guess", rule="request_bytes", unit="bytes")
    empty = body is None or (
        not body.strip() if isinstance(body, (str, bytes)) else body in ({}, [], ())
    )
    if status in (400, 200) and (empty or any(_NO_BODY.fullmatch(layer.text) for layer in layers)):
        return Refusal("too_long", exactness="guess", rule="no_body", unit="tokens")
    return UNKNOWN


def plain(text: str) -> str:
    """A message normalised for the patterns: lower case, no quotes, single blanks, and one
    spelling each of "tool use", "tool result" and "function call"."""
    small = _QUOTES.sub("", text[:_CHARS]).lower().replace("tooluse", "tool_use")
    small = small.replace("toolresult", "tool_result").replace("function_call", "function call")
    return _TOOL_WORDS.sub(r"tool_\1", _BLANKS.sub(" ", small)).strip()


def _status(status: Any) -> int | None:
    if isinstance(status, bool) or not isinstance(status, (int, str)):
        return None
    try:
        return int(status)
    except ValueError:
        return None


def _inner_status(layers: list[NestedError]) -> int | None:
    """The status inside an error that a gateway sent with HTTP 200.

    Returns one that rules out size (401, 429, 5xx, …) if there is one, else 400 if it is named.
    """
    tags = [tag for layer in layers for tag in layer.tags.split()]
    status = next((int(tag) for tag in tags if _INNER_STATUSES.fullmatch(tag)), None)
    return int(_BAD_REQUEST) if status is None and _BAD_REQUEST in tags else status


def _says_wait(headers: Headers | None) -> bool:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return any(str(name).lower() == "retry-after" for name, _ in pairs)


__all__ = ["Exactness", "Kind", "Refusal", "Unit", "classify", "classify_error", "plain"]
