"""Progress on standard error: a bar on a terminal; else a line at every tenth."""

from __future__ import annotations

import sys
import time

from trimtab.cli.terminal import Terminal

_BAR_COLUMNS = 30


class ProgressLine:
    """One line that is drawn again and again; ``began``: monotonic seconds."""

    def __init__(self) -> None:
        self.is_terminal, self.began = sys.stderr.isatty(), time.monotonic()
        self._terminal, self._tenth = Terminal.of_stdout(), -1

    def show(self, share: float, text: str) -> None:
        """Draw the line for this share of the work (0 … 1)."""
        if self.is_terminal:
            bar = self._terminal.bar(share, _BAR_COLUMNS).ljust(_BAR_COLUMNS)
            end = "\n" if share >= 1 else ""
            print(f"\r{bar} {text}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif int(10 * share) > self._tenth:
            self._tenth = int(10 * share)
            print(text, file=sys.stderr, flush=True)


class Progress:
    """Called with the number of things done and of all; ``things``: their name."""

    def __init__(self, things: str = "calls") -> None:
        self._things, self._line = things, ProgressLine()

    def __call__(self, done: int, total: int) -> None:
        if total:
            seconds = time.monotonic() - self._line.began
            text = f"{done:,} of {total:,} {self._things}, {seconds:.0f} s"
            self._line.show(done / total, text)
