"""Converts a request from any of the six formats to any other, and lists what was lost."""

from __future__ import annotations

from trimtab.conversion.converted import Converted
from trimtab.conversion.converter import convert
from trimtab.formats.neutral.request import Loss

__all__ = ["Converted", "Loss", "convert"]
