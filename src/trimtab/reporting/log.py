"""Lines of the logger "trimtab" about what was done: counts and sizes, and titles of articles.

The program sets logging up, not this module.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator

from trimtab.amounts import many
from trimtab.jsontext import paths
from trimtab.reducers.article_selection import all_articles
from trimtab.report import Report
from trimtab.request.fitted import Fitted, facts_of
from trimtab.request.pipeline import AS_RECEIVED, FitResult
from trimtab.request.received import repair_key
from trimtab.telemetry import logger
from trimtab.transcript.model import Edit

_FILTERED = ("orphan_result", "duplicate_result")
"""Rules whose repair removes a whole tool result from the conversation."""
_SAID = re.compile(r"(: (?:[A-Z]\w*|\w*error)): .*", re.DOTALL)
"""An exception's text may quote a message or a key, so only its class is logged; the rest is in the
report."""
_LINE_CHARS = 300


def log_fit(result: FitResult, done: Fitted) -> None:
    """The lines of one request: warnings, results taken out among them; what was replaced and why
    (info), each edit (debug), shortened articles.  What an earlier turn of the session logged is
    not logged again.  A warning where the request is expected to be refused."""
    if result.is_refusal_expected:
        logger().warning(
            "%s: %d tokens of %d: this request is expected to be refused, no step made it smaller",
            done.report.format, result.tokens_after, result.measured.limits.bounds.capacity,
        )  # fmt: skip
    if result.measured.new_repairs and result.step != AS_RECEIVED:
        _filtered(result, done.report)
    _warned(result, done)
    if result.new and "logging" in sys.modules:  # else nobody listens
        if logger().isEnabledFor(20):
            _cut(result, done.report)
        _log_articles(result)


def _warned(result: FitResult, done: Fitted) -> None:
    """The warnings of the report, each once in a conversation."""
    if not result.may_warn:
        return
    logged = result.measured.inputs.cache.logged
    for text in done.report.warnings:
        if text not in logged:
            logged.add(text)
            logger().warning("%s: %s", facts_of(done).format, _printable(_SAID.sub(r"\1", text)))


def _cut(result: FitResult, report: Report) -> None:
    """``cut 12 steps and 4 results (61,204 → 24,310 tokens: fold ×1 −36,402, …); undo:
    session.undo("t3f9…")``"""
    new = [edit for edit in report.edits if edit.new]
    kinds, saved, parts = Counter(edit.kind for edit in new), Counter[str](), Counter[str]()
    for edit in new:
        saved[edit.kind] += edit.tokens_saved
        parts[edit.noun] += edit.steps or 1
    causes = ", ".join(f"{kind} ×{n} −{saved[kind]:,}" for kind, n in kinds.most_common())
    largest = max(new, key=lambda edit: edit.tokens_saved)
    others = f" ({many(len(new) - 1, 'more edit')} in history())" if len(new) > 1 else ""
    logger().info(
        "cut %s (%s → %s tokens: %s); %s%s",
        " and ".join(many(count, noun) for noun, count in parts.most_common()),
        f"{report.tokens_before:,}", f"{report.tokens_after:,}", causes,
        result.measured.inputs.way_back.format(largest.handle), others,
    )  # fmt: skip
    for edit in new:
        number = next((step for step in edit.path if isinstance(step, int)), -1)
        logger().debug(
            "#%d from %d chars to %d chars (%s: %s); handle %s",
            number, edit.chars_before, edit.chars_after, edit.kind, _printable(edit.why),
            edit.handle,
        )  # fmt: skip


def _filtered(result: FitResult, report: Report) -> None:
    """A warning for each tool result taken out; once in a session.

    Names place, rule, tool or call id, size and handle, never what the result said.
    """
    repairs, seen = result.measured.repaired.made, result.measured.inputs.journal.repaired
    assert repairs is not None
    rows = zip(repairs.repairs, repairs.keys, report.repairs, strict=True)
    for (rule, _), key, row in rows:
        if rule in _FILTERED and repair_key(rule, key) not in seen:
            text = _printable(f"{paths.escape(row.path)} ({rule}): {row.message}")
            logger().warning("FILTERING OUT %s; handle %s", text, row.handle)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)[:_LINE_CHARS]


# --- shortened articles; their figures add up to the total ---

ARTICLE_KINDS = ("articles", "summary")
WARNING = 30
"""Its number in the standard library's ``logging``."""
TITLE_CHARS = 100


def _log_articles(result: FitResult) -> None:
    """One warning that results are compressed, a line for each article, and the totals.

    What was saved is the sum of the lines: what other reductions, marks and earlier turns saved
    has a separate line.  Nothing where no article was shortened in this call.  A line with a title
    is marked ``quotes_tool``: the proxy, whose log others read, leaves it out.
    """
    edits = [edit for edit in result.new if edit.kind in ARTICLE_KINDS and edit.op == "replace"]
    if not edits or not logger().isEnabledFor(WARNING):
        return
    before, after, window = result.tokens_before, result.tokens_after, result.measured.limits.window
    logger().warning(
        "Context at %s tokens (%s of %s window), compressing tool results",
        f"{before:,}", f"{before / window:.0%}", f"{window:,}",
    )  # fmt: skip
    rest = before - after
    for edit in edits:
        for title, was, now in _articles(result, edit):
            rest -= was - now
            logger().info(
                "Compressed article '%s': %s → %s tokens (saved %s)",
                title, f"{was:,}", f"{now:,}", f"{was - now:,}", extra={"quotes_tool": True},
            )  # fmt: skip
    if rest:
        logger().info("Other reductions, marks and earlier turns: saved %s tokens", f"{rest:,}")
    logger().info(
        "Compression complete: saved %s tokens, new total %s (%s of window)",
        f"{before - after:,}", f"{after:,}", f"{after / window:.0%}",
    )  # fmt: skip


def _articles(result: FitResult, edit: Edit) -> Iterator[tuple[str, int, int]]:
    """(title, tokens before, tokens now) of every article that the edit changed."""
    measured = result.measured
    count, rule = measured.sizes.counter, measured.settings.articles
    for place in measured.repaired.places(edit):
        old, new = all_articles(place.block.text, rule), all_articles(edit.text, rule)
        if len(old) == len(new):
            for was, now in zip(old, new, strict=True):
                if was.content != now.content:
                    title = "".join(c for c in was.title or was.url if c.isprintable())
                    yield title[:TITLE_CHARS], count(was.content), count(now.content)
