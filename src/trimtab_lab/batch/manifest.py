"""manifest.json: the results of a run, summed over its records.

A record that occurs several times in the corpus is written each time and counted once.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from trimtab import __version__ as own_version
from trimtab_lab.batch.files import OutputFolder
from trimtab_lab.batch.shard import ShardDone, rows_name

NAME = "manifest.json"
MAX_KNOWN = 500_000
"""How many digests are held in memory (some 60 MB); larger corpora are read in several passes."""


def versions(*, parquet: bool) -> dict[str, str]:
    """The versions of everything that affects the output bytes."""
    installed = {"trimtab": own_version, "python": platform.python_version()}
    for name in ("splintr-rs", "pyarrow") if parquet else ("splintr-rs",):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def summed(
    folder: OutputFolder, done: Sequence[ShardDone], max_known: int = MAX_KNOWN
) -> dict[str, Any]:
    """``records``, ``tokens``, ``edits``, ``repairs``, ``formats`` and ``errors`` of all shards,
    and the first record with each kind of error.

    ``max_known``: digests held at a time.
    """
    sums = _Sums()
    numbers = [shard.number for shard in done]
    count = sum(1 for _ in _rows(folder, numbers))
    passes = max(1, -(-count // max_known))
    for number in range(passes):
        known: set[bytes] = set()
        for place, row in enumerate(_rows(folder, numbers)):
            digest = bytes.fromhex(row["digest"])
            if digest[0] * 256 + digest[1] >= (number + 1) * 65_536 // passes:
                continue
            if digest[0] * 256 + digest[1] < number * 65_536 // passes:
                continue
            sums.add(row, place, again=digest in known)
            known.add(digest)
    return sums.as_dict()


def _rows(folder: OutputFolder, numbers: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    for number in sorted(numbers):
        for line in (folder.read(rows_name(number)) or b"").splitlines():
            yield json.loads(line)


class _Sums:
    """Counts of records, and of tokens, edits and repairs in distinct records."""

    def __init__(self) -> None:
        self.read = self.repeated = self.written = self.changed = self.before = self.after = 0
        self.edits: dict[str, Counter[str]] = {}
        self.repairs, self.formats, self.errors = Counter[str](), Counter[str](), Counter[str]()
        self.first: dict[str, tuple[int, Mapping[str, Any]]] = {}
        """Kind of error → (place of the row, the row) of the first record with it."""

    def add(self, row: Mapping[str, Any], place: int, *, again: bool) -> None:
        """Count one record, the ``place``-th of the corpus."""
        self.read += 1
        if "error" in row:
            kind = row["error"]
            self.errors[kind] += 1
            if kind not in self.first or place < self.first[kind][0]:
                self.first[kind] = place, row
        else:
            self.written += 1
        if again:
            self.repeated += 1
            return
        if "error" in row:
            return
        self.formats[row["format"]] += 1
        self.changed += bool(row.get("edits") or row.get("repairs"))
        self.before, self.after = self.before + row["before"], self.after + row["after"]
        self.repairs.update(row.get("repairs", {}))
        for kind, (count, before, after) in row.get("edits", {}).items():
            sums = self.edits.setdefault(kind, Counter())
            sums.update(count=count, tokens_before=before, tokens_after=after)

    def as_dict(self) -> dict[str, Any]:
        """The sums as they are written in the manifest."""
        return {
            "records": {
                "read": self.read, "written": self.written, "failed": self.read - self.written,
                "repeated": self.repeated,
            },
            "distinct": {
                "records": self.read - self.repeated, "changed": self.changed,
                "tokens_before": self.before, "tokens_after": self.after,
                "formats": dict(sorted(self.formats.items())),
                "edits": {kind: dict(sums) for kind, sums in sorted(self.edits.items())},
                "repairs": dict(sorted(self.repairs.items())),
            },
            "errors": dict(sorted(self.errors.items())),
            "first_errors": {
                error: {key: row[key] for key in ("file", "at", "kind", "message")}
                for error, (_, row) in sorted(self.first.items())
            },
        }  # fmt: skip
