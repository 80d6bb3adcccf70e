"""The stretches of a session that its client's compactions leave, and the recordings they become.

After a compaction by the client a new recording starts, because later requests no longer repeat
the earlier messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from trimtab.logs.recording import Recording
from trimtab.pricing.call_usage import CallUsage


@dataclass
class LogSegment:
    """Items between two compactions, with their times and the billed usage of model calls.

    ``carried``: how many leading items the compaction put in place of the earlier history.
    """

    items: list[Any] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    usages: list[CallUsage | None] = field(default_factory=list)
    carried: int = 0
    window: int = 0

    def add(self, item: Any, time: float | None, usage: CallUsage | None = None) -> None:
        """Append one item."""
        self.items.append(item)
        self.times.append(time)
        self.usages.append(usage)


def seconds(stamp: Any) -> float | None:
    """``"2026-01-28T22:26:39.918Z"`` → seconds since the epoch; None for what is no time."""
    try:
        if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
            time = stamp / 1000 if stamp > 1e11 else float(stamp)
            datetime.fromtimestamp(time, UTC)
            return time
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def project(cwd: Any) -> str:
    """The last part of a working directory; "" if it is unknown."""
    return PurePosixPath(str(cwd).replace("\\", "/")).name if cwd else ""


def recordings(segments: Sequence[LogSegment], id_: str, **common: Any) -> Iterator[Recording]:
    """A recording of each segment that has items; ``common``: fields that all share."""
    for number, segment in enumerate(segments):
        if not segment.items:
            continue
        yield Recording(
            id=f"{id_}#{number}" if len(segments) > 1 else id_, messages=segment.items,
            times=tuple(segment.times) if any(segment.times) else (),
            usages=tuple(segment.usages) if any(segment.usages) else (),
            session=id_, carried=segment.carried, window=segment.window, **common,
        )  # fmt: skip
