"""Request formats: read a request as blocks and groups, and write edits back into it."""

from __future__ import annotations

from trimtab.formats.detect import find
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.reading import read
from trimtab.formats.registry import FORMATS

__all__ = ["FORMATS", "Format", "find", "read"]
