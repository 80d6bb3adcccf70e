"""What a user hooks into trimtab, as the replicas and the sessions of the soak have it.

A reducer that takes every other row away, and fails at some results; a callback for events.  Both
decide by the text alone, as docs/howto/reducer.md asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from trimtab.events import Event
from trimtab.reducers import HANDLE, Config, Offer
from trimtab.transcript.model import Block

NAME = "every-other-row"
METADATA = "Metadata-Version: 2.1\nName: soak-user-code\nVersion: 1.0\n"
POINTS = f"[trimtab.reducers]\n{NAME} = soak.user_code:every_other_row\n"


def every_other_row(block: Block, config: Config) -> Iterator[Offer]:
    """Of one result in three; it raises at one in twenty."""
    dice = crc32(block.text.encode("utf-8", "replace")) % 60
    lines = block.text.split("\n")
    if block.kind != "result" or len(lines) < 10 or dice % 3:
        return
    if dice % 20 == 0:
        raise RuntimeError("the user's own mistake")
    kept = "\n".join(lines[::2])
    whole = f' (all of it: recall("{HANDLE}"))' if config.recall else ""
    yield Offer("replace", kept + whole, loss=0.3, kind=NAME, why="the other rows say the same")


def on_event(event: Event) -> None:
    """It raises where anything was cut."""
    if getattr(event, "edits", ()):
        raise RuntimeError("the user's own mistake")


def installed(folder: Path) -> Path:
    """A folder for PYTHONPATH in which the reducer is a package with an entry point."""
    place = folder / "installed" / "soak_user_code-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(METADATA, "utf-8")
    (place / "entry_points.txt").write_text(POINTS, "utf-8")
    return place.parent
