"""What became of each article, as log lines whose figures add up.

Knows outcomes and the logger it is given.  Does not know formats, and logs no content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.model import Edit
from trimtab.strategies.retrieval.found import all_articles
from trimtab.turns.work import Outcome

KINDS = ("articles", "summary")
WARNING = 30
"""Its number in the standard library's ``logging``."""
TITLE_CHARS = 100


def log_articles(outcome: Outcome, logger: Any) -> None:
    """One warning that results are compressed, a line for each article, and the totals.

    What was saved is the sum of the lines: what other reductions, marks and earlier turns saved
    has a line of its own.  Nothing where no article was shortened in this call.
    """
    edits = [edit for edit in outcome.new if edit.kind in KINDS and edit.op == "replace"]
    if not edits or not logger.isEnabledFor(WARNING):
        return
    before, after, window = outcome.tokens_before, outcome.tokens_after, outcome.work.force.window
    logger.warning(
        "Context at %s tokens (%s of %s window), compressing tool results",
        f"{before:,}", f"{before / window:.0%}", f"{window:,}",
    )  # fmt: skip
    rest = before - after
    for edit in edits:
        for title, was, now in _articles(outcome, edit):
            rest -= was - now
            logger.info(
                "Compressed article '%s': %s → %s tokens (saved %s)",
                title, f"{was:,}", f"{now:,}", f"{was - now:,}",
            )  # fmt: skip
    if rest:
        logger.info("Other reductions, marks and earlier turns: saved %s tokens", f"{rest:,}")
    logger.info(
        "Compression complete: saved %s tokens, new total %s (%s of window)",
        f"{before - after:,}", f"{after:,}", f"{after / window:.0%}",
    )  # fmt: skip


def _articles(outcome: Outcome, edit: Edit) -> Iterator[tuple[str, int, int]]:
    """(title, tokens before, tokens now) of every article that the edit changed."""
    work = outcome.work
    count, rule = work.usage.counter, work.settings.articles
    for place in work.places(edit):
        old, new = all_articles(place.block.text, rule), all_articles(edit.text, rule)
        if len(old) == len(new):
            for was, now in zip(old, new, strict=True):
                if was.content != now.content:
                    title = "".join(c for c in was.title or was.url if c.isprintable())
                    yield title[:TITLE_CHARS], count(was.content), count(now.content)
