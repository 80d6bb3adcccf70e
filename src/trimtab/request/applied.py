"""The stage after the plan: its edits applied to the request, and the originals that they remove.

    MeasuredRequest, edits ──apply──► Draft

Nothing of the request is changed: what an edit does not touch is shared with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.formats.body import RequestBody
from trimtab.jsontext import paths
from trimtab.planning.edits import handle
from trimtab.planning.operations import Applied, in_order
from trimtab.planning.reasoning_signatures import with_option
from trimtab.request.measured import MeasuredRequest
from trimtab.transcript.model import Edit
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True)
class Draft:
    """The request with all edits, as it may be sent if it passes the check."""

    body: RequestBody
    transcript: Transcript
    applied: tuple[Applied, ...]


def apply(measured: MeasuredRequest, edits: Sequence[Edit]) -> Draft:
    """Apply edits, and read the result; its unchanged messages are not read again."""
    applied, before = _operations(measured, edits), measured.repaired
    body = _with(before.body, applied)
    transcript = measured.inputs.cache.read_changed(body, before.body, before.transcript)
    return Draft(body, transcript, tuple(applied))


def body_with(measured: MeasuredRequest, edits: Sequence[Edit]) -> RequestBody:
    """The body with these edits, not read."""
    return _with(measured.repaired.body, _operations(measured, edits))


def _operations(measured: MeasuredRequest, edits: Sequence[Edit]) -> list[Applied]:
    repaired = measured.repaired
    changed = bool(edits) or repaired.made is not None
    thinking = measured.settings.thinking
    return with_option(repaired.transcript, repaired.body.tree, edits, thinking, changed=changed)


def _with(body: RequestBody, applied: Sequence[Applied]) -> RequestBody:
    ops = in_order(applied)
    return body.after([ops]) if ops else body


# --- originals, by handle ---


def originals_of(measured: MeasuredRequest, draft: Draft, new: Sequence[Edit]) -> dict[str, str]:
    """The originals that the new edits and repairs remove."""
    fresh = {edit.handle for edit in new}
    made = [applied for applied in draft.applied if applied.edit.handle in fresh]
    originals = {applied.edit.handle: measured.repaired.original(applied) for applied in made}
    return {**originals, **taken_by_repair(measured)}


def taken_by_repair(measured: MeasuredRequest) -> dict[str, str]:
    """The originals that repairs removed."""
    key = measured.inputs.handle_key
    return {taken_handle(value, key): text for _, value, text in measured.repaired.taken_out()}


def taken_handle(value: Any, key: bytes) -> str:
    """The handle of a value that a repair removed."""
    data = paths.dump(value).encode("utf-8", "surrogatepass")
    return handle((hashlib.blake2b(data, digest_size=8).hexdigest(), "taken"), key)
