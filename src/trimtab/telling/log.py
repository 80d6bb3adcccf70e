"""What was done, as lines of the logger "trimtab": counts and sizes, never what anything said.

Knows outcomes and reports.  Does not set logging up: the program does.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from typing import Any

from trimtab import paths
from trimtab.fitted import Fitted
from trimtab.telling.report import Report
from trimtab.turns.work import Outcome, mend_key

_FILTERED = ("orphan_result", "duplicate_result")
"""Rules whose repair takes a whole tool result out of the conversation."""
_LINE_CHARS = 300


@cache
def logger() -> Any:
    """The package's logger, loaded with its first line; silent until the program sets up logs."""
    import logging

    found = logging.getLogger("trimtab")
    found.addHandler(logging.NullHandler())
    return found


def told(outcome: Outcome, done: Fitted) -> None:
    """The lines of one request: results taken out (warning), what was replaced and why (info),
    each edit (debug).  What an earlier turn of the session told is not told again."""
    if outcome.work.new_mends and outcome.step != "original":
        _filtered(outcome, done.report)
    if outcome.new and "logging" in sys.modules and logger().isEnabledFor(20):
        _replaced(outcome, done.report)


def _replaced(outcome: Outcome, report: Report) -> None:
    """``openai-chat: 11 of 40 blocks replaced (duplicate ×2, head-and-tail ×9), …``"""
    blocks = sum(len(message.blocks) for message in outcome.work.transcript.messages)
    new = [edit for edit in report.edits if edit.new]
    kinds = Counter(edit.kind for edit in new)
    saved: Counter[str] = Counter()
    for edit in new:
        saved[edit.kind] += edit.tokens_saved
    causes = ", ".join(f"{kind} ×{n} −{saved[kind]:,}" for kind, n in kinds.most_common())
    logger().info(
        "%s: %d of %d blocks replaced, %d of them in earlier turns (%s); %d → %d tokens",
        report.format, len(report.edits), blocks, len(report.edits) - len(new), causes,
        report.tokens_before, report.tokens_after,
    )  # fmt: skip
    for edit in new:
        number = next((step for step in edit.path if isinstance(step, int)), -1)
        logger().debug(
            "#%d from %d chars to %d chars (%s)",
            number, edit.chars_before, edit.chars_after, edit.kind,
        )  # fmt: skip


def _filtered(outcome: Outcome, report: Report) -> None:
    """A warning for each tool result taken out; once in a session.

    Names place, rule, tool or call id, size and handle, never what the result said.
    """
    mends, mended = outcome.work.mends, outcome.work.mended
    assert mends is not None
    for (rule, mend), row in zip(mends.mends, report.repairs, strict=True):
        if rule in _FILTERED and mend_key(rule, mend.path) not in mended:
            text = _printable(f"{paths.escape(row.path)} ({rule}): {row.message}")
            logger().warning("FILTERING OUT %s; handle %s", text, row.handle)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)[:_LINE_CHARS]
