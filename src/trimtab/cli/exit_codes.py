"""The exit codes: the meaning of each, and the code of each error."""

from __future__ import annotations

from trimtab.errors import (
    CannotFit,
    InvalidRequest,
    InvalidSetting,
    NotAccepted,
    StoreError,
    TrimtabError,
    UnknownHandle,
)
from trimtab.jsontext.parsing import parse_bytes

DONE, VIOLATIONS, USAGE, UNREADABLE, UNKNOWN_FORMAT, CANNOT_FIT, MISSING, NO_ORIGINAL = range(8)
INTERNAL = 70
"""EX_SOFTWARE of sysexits.h: a fault of ours."""

MEANINGS = {
    DONE: "done; check: the request is acceptable",
    VIOLATIONS: "check, fit --strict: the request breaks rules of the provider; check --session: "
    "a note says something untrue; doctor: a fault; "
    "conform: a property does not hold; batch: records failed",
    USAGE: "wrong usage: an option is missing, malformed or contradicts another",
    UNREADABLE: "the input is not JSON, or a file or store cannot be read or written",
    UNKNOWN_FORMAT: "JSON, but no request of a format we know",
    CANNOT_FIT: "the request cannot be made to fit; nothing was written",
    MISSING: "no such file",
    NO_ORIGINAL: "recall: nothing is kept under this handle",
    INTERNAL: "a fault of trimtab (TRIMTAB_TRACEBACK=1 shows where)",
}


class ExitWith(Exception):  # no TrimtabError: the library never raises it
    """Ends the command with an exit code of MEANINGS and one line for the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: TrimtabError, request: bytes | None) -> int:
    """The exit code of an error of the library; ``request``: the bytes that were read, if any."""
    match error:
        case NotAccepted():
            return VIOLATIONS
        case CannotFit():
            return CANNOT_FIT
        case UnknownHandle():
            return NO_ORIGINAL
        case InvalidSetting():
            return USAGE
        case StoreError():
            return UNREADABLE
        case InvalidRequest() if request is None or not is_json(request):
            return UNREADABLE
        case InvalidRequest():
            return UNKNOWN_FORMAT
    return USAGE


def is_json(data: bytes) -> bool:
    """Whether the library can parse ``data``; called only after an error."""
    try:
        parse_bytes(data)
    except InvalidRequest:
        return False
    return True
