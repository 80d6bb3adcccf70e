"""The errors of trimtab, named for what the caller can do about them.

    TrimtabError
     +- InvalidRequest (ValueError)    not JSON, or no format we know: correct the input
     +- InvalidSetting (ValueError)    an argument contradicts another: correct the call
     |   +- NotAClient (TypeError)     what wrap was given is no client: wrap the client itself
     +- CannotFit                      one part cannot shrink enough: enlarge the window
     +- NotAccepted (ValueError)       strict only: the request breaks a provider's rule
     +- UnknownHandle (KeyError)       nothing is stored under this handle: run the tool again
     +- MissingExtra (ImportError)     pip install 'trimtab[x]'
     +- StoreError (OSError)           a store does not answer: a Session goes on without it

A provider's own errors are never wrapped.  This file knows no format.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any


def shown(value: object) -> str:
    """A value for an error message: its ``repr`` in at most 80 characters; never raises."""
    try:
        text = repr(value)
    except Exception:  # too many digits, too deep, or a class of somebody else's
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def expect(holds: bool, name: str, value: object, give: str) -> None:
    """Raise InvalidSetting unless ``holds``; the message says what to give."""
    if not holds:
        raise InvalidSetting(f"{name}={shown(value)}: give {give}")


def expect_text(name: str, value: object) -> None:
    """``expect`` for a string."""
    expect(isinstance(value, str), name, value, "a text")


def handle_in(value: object) -> str:
    """A handle, or that of an edit or of whatever else has one.  Raises InvalidSetting."""
    own = value if isinstance(value, str) else getattr(value, "handle", None)
    if not isinstance(own, str):
        give = "the handle of an edit, as session.report.edits[0].handle"
        raise InvalidSetting(f"handle={shown(value)}: give {give}")
    return own


class TrimtabError(Exception):
    """Base of all errors raised on purpose by trimtab; each message ends with the next step."""


class InvalidRequest(TrimtabError, ValueError):
    """The input is not JSON, or has the shape of no format we know."""


class InvalidSetting(TrimtabError, ValueError):
    """Two settings contradict each other, or one has an impossible value."""


class NotAClient(InvalidSetting, TypeError):
    """What was given to ``wrap`` cannot be wrapped: a class, a part of a client, something else."""


class NotAccepted(TrimtabError, ValueError):
    """Raised with ``strict=True`` when the request breaks rules; ``violations`` lists them."""

    def __init__(self, message: str, violations: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.violations = violations


class UnknownHandle(TrimtabError, KeyError):
    """Nothing is stored under this handle."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingExtra(TrimtabError, ImportError):
    """An optional integration is not installed; the message has the pip line."""


class StoreError(TrimtabError, OSError):
    """A store cannot be reached, is full or damaged; a ``Session`` says so and goes on."""


class CannotFit(TrimtabError):
    """The request cannot be made to meet a limit, whatever is reduced.

    ``limit`` names the limit that fails ("window", "request_bytes", "result_chars", "images" or
    "pin"), ``allowed`` its value, ``minimum`` the smallest size that can be reached (same unit;
    tokens include the output reserve), ``projected`` the size without any reduction,
    ``needed`` how much is still missing, ``tried`` the kinds of reduction that were used,
    ``largest`` the biggest parts that cannot shrink, as (path, tokens, what it is),
    ``hint`` what to do.
    """

    def __init__(
        self,
        *,
        limit: str,
        allowed: int,
        minimum: int,
        projected: int,
        tried: tuple[str, ...] = (),
        largest: tuple[tuple[str, int, str], ...] = (),
        hint: str = "",
    ) -> None:
        self.limit, self.allowed, self.minimum, self.projected = limit, allowed, minimum, projected
        self.needed = minimum - allowed
        self.tried, self.largest, self.hint = tried, largest, hint
        unit = {"window": "tokens", "pin": "tokens", "request_bytes": "bytes"}.get(limit, limit)
        parts = "; ".join(f"{path} ({what}, {size:,} tokens)" for path, size, what in largest)
        ways = f"Tried: {', '.join(tried)}." if tried else "Nothing here can be cut."
        whole = f" What cannot shrink: {parts}." if parts else ""
        named = "with its pins, window" if limit == "pin" else limit
        super().__init__(
            f"cannot fit: {named} allows {allowed:,} {unit}, the smallest this request can become "
            f"is {minimum:,} ({self.needed:,} too many; it arrived with {projected:,}). "
            f"{ways}{whole} {hint}".rstrip()
        )

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("limit", "allowed", "minimum", "projected", "tried", "largest", "hint")
        given = {name: getattr(self, name) for name in names}
        return partial(type(self), **given), (), vars(self)

    def as_dict(self) -> Mapping[str, Any]:
        """The same facts as JSON-able values."""
        names = ("limit", "allowed", "minimum", "projected", "needed", "hint")
        return {
            **{name: getattr(self, name) for name in names},
            "tried": list(self.tried),
            "largest": [list(part) for part in self.largest],
        }
