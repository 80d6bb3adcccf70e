"""Request formats: read a request as blocks and groups, and write edits back into it."""

from __future__ import annotations

from trimtab.wire.base import Format, read
from trimtab.wire.detect import FORMATS, find

__all__ = ["FORMATS", "Format", "find", "read"]
