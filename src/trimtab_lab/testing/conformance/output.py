"""A scoreboard as a table, JUnit XML and a badge."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from trimtab.amounts import many
from trimtab_lab.testing.conformance.scoreboard import Row, Scoreboard

_GREEN, _AMBER, _RED = "#3fa34d", "#c9862a", "#c0392b"


def table(
    scoreboard: Scoreboard, again: str, paint: Callable[[bool, str], str] | None = None
) -> str:
    """One row per property: the share that passed, the first failure, and how to run it again.

    ``again``: the command, to which ``--seed N --format F`` is added; ``paint(passed, text)``
    colours the share.
    """
    colour = paint or (lambda passed, text: text)
    lines = [
        f"{scoreboard.target}: {many(scoreboard.cases, 'case')} at {scoreboard.window:,} tokens, "
        f"formats {', '.join(scoreboard.formats)}"
    ]
    for row in scoreboard.rows:
        share = colour(not row.failures, f"{_share(row):>6}")
        count = f"{row.passed:,}/{row.judged:,}" if row.judged else ""
        lines.append(f"  {row.name:<12}{share}  {count:>11}  {row.about}")
        if row.failures:
            first = row.failures[0]
            reason = first.reason if len(first.reason) <= 160 else first.reason[:159] + "…"
            where = f"seed {first.seed} ({first.case}), {first.format}, turn {first.turn}"
            lines += [
                f"{'':14}first: {where}: {reason}",
                f"{'':14}again: {again} --seed {first.seed} --format {first.format}",
            ]
    lines.append(f"{scoreboard.held} of {scoreboard.judged} properties hold")
    return "\n".join(lines)


def _share(row: Row) -> str:
    """The share in percent; "100 %" only if all passed."""
    if row.share is None:
        return "–"
    percent = row.share * 100
    return "100 %" if not row.failures else f"{min(percent, 99.9):.1f} %"


def to_json(scoreboard: Scoreboard) -> str:
    """The whole scoreboard as JSON, failures included."""
    return json.dumps(scoreboard.as_dict(), indent=1, ensure_ascii=False) + "\n"


def to_junit(scoreboard: Scoreboard) -> str:
    """JUnit XML with one test case for each property; properties that were not judged are
    skipped."""
    failed = sum(1 for row in scoreboard.rows if row.failures)
    skipped = sum(1 for row in scoreboard.rows if not row.judged)
    suite = ElementTree.Element(
        "testsuite", name=f"conform {scoreboard.target}", tests=str(len(scoreboard.rows)),
        failures=str(failed), skipped=str(skipped), errors="0",
    )  # fmt: skip
    for row in scoreboard.rows:
        element = ElementTree.SubElement(suite, "testcase", classname="conform", name=row.name)
        if not row.judged:
            ElementTree.SubElement(element, "skipped", message="no case asked for it")
        if row.failures:
            message = f"{len(row.failures)} of {row.judged} cases"
            lines = [
                f"seed {f.seed} ({f.case}), {f.format}, turn {f.turn}: {f.reason}"
                for f in row.failures
            ]
            failure = ElementTree.SubElement(element, "failure", message=message)
            failure.text = "\n".join(_xml_safe(line) for line in lines)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        suite, encoding="unicode"
    )


def _xml_safe(text: str) -> str:
    """``text`` with control characters, which XML does not allow, replaced."""
    return "".join(char if char.isprintable() or char in "\t\n" else "�" for char in text)


def to_badge(scoreboard: Scoreboard) -> str:
    """A badge (SVG): how many of the properties hold."""
    label, value = "conform", f"{scoreboard.held}/{scoreboard.judged}"
    judged = scoreboard.judged or 1
    colour = _GREEN if scoreboard.passed else _AMBER if scoreboard.held * 2 >= judged else _RED
    left, right = 7 * len(label) + 12, 7 * len(value) + 14
    width = left + right
    title = escape(f"{label}: {value} properties")
    text = 'fill="#fff" font-family="Verdana,sans-serif" font-size="11" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<rect width="{width}" height="20" rx="3" fill="#555"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{colour}"/>'
        f'<text x="{left / 2}" y="14" {text}>{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14" {text}>{escape(value)}</text></svg>\n'
    )
