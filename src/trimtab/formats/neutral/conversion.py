"""A format's part in conversions: its table, its reader and its writer."""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.formats.neutral.ids import ConversionTarget
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import ConversionLog, NeutralRequest
from trimtab.formats.neutral.table import ConversionTable
from trimtab.formats.neutral.writer import NeutralWriter


class Conversion(NamedTuple):
    """One format; the ``CONVERSION`` of the ``conversion.py`` in its folder."""

    table: ConversionTable
    reader: type[NeutralReader]
    writer: type[NeutralWriter]

    def read(self, tree: Any, log: ConversionLog) -> NeutralRequest:
        """The neutral request of a body, or of a bare list of messages."""
        return self.reader(self.table, log).read(tree)

    def write(
        self, neutral: NeutralRequest, target: ConversionTarget, log: ConversionLog
    ) -> dict[str, Any]:
        """The body of a neutral request."""
        return self.writer(self.table, neutral, target, log).write()
