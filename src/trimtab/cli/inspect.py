"""``trimtab inspect``: what fills the window, by role, by tool, block by block."""

from __future__ import annotations

import json
import textwrap
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import Any

import trimtab
from trimtab.cli.exit_codes import DONE
from trimtab.cli.logged_requests import add_turn, request_of
from trimtab.cli.options import add_request, amount, setting
from trimtab.cli.terminal import Terminal, clean
from trimtab.jsontext import paths
from trimtab.reporting.measured import Measured

_KINDS = {"tools": "definition"}
_LABELS = {
    "system": "system prompt",
    "tools": "tool definitions",
    "call": "tool calls",
    "result": "tool results",
    "reasoning": "reasoning",
    "media": "images, documents",
    "other": "other parts",
}


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab inspect``."""
    add_request(parser, "format", "model", "counter", "window")
    add_turn(parser)
    parser.add_argument("--top", type=amount, default=10, metavar="N", help="largest blocks shown")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Measure and print, to standard output."""
    found = request_of(args)
    measured = trimtab.measure(
        found.data, format=setting(args, "format") or found.facts.format,
        model=setting(args, "model") or found.facts.model, counter=setting(args, "counter"),
    )  # fmt: skip
    window = setting(args, "window") or measured.window
    summary = summarize(measured, window, args.top)
    if args.json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        print("\n".join(draw(summary, Terminal.of_stdout())))
    return DONE


def summarize(measured: Measured, window: int | None, top: int) -> dict[str, Any]:
    """Sums of a measurement, largest first; JSON-able.

    Tokens outside blocks (the fixed cost of messages, calls and results) are in the row "message
    overhead", so that the rows of ``by_role`` add up to the total.
    """
    by_role: Counter[str] = Counter()
    by_tool: dict[str, Counter[str]] = {}
    for row in measured.rows:
        label = f"{row.role} text" if row.kind == "text" else _LABELS.get(row.kind, row.kind)
        by_role[label] += row.tokens
        if row.kind in ("call", "result"):
            tool = by_tool.setdefault(row.tool or "(unnamed)", Counter())
            tool[f"{row.kind}_tokens"] += row.tokens
            tool[f"{row.kind}s"] += 1
    overhead = measured.total - sum(by_role.values())
    if overhead > 0:
        by_role["message overhead"] = overhead
    largest = sorted(measured.rows, key=lambda row: -row.tokens)[:top]
    return {
        "format": measured.format,
        "format_reason": measured.reason,
        "counter": measured.counter,
        "tokens": measured.total,
        "window": window,
        "trigger": measured.trigger,
        "tools_advice": measured.tools_advice(window),
        "by_role": dict(by_role.most_common()),
        "by_tool": dict(sorted(by_tool.items(), key=lambda item: -_tokens(item[1]))),
        "largest": [
            {
                "path": paths.escape(row.path),
                "what": f"{row.tool or row.role} {_KINDS.get(row.kind, row.kind)}",
                "tokens": row.tokens,
                "chars": row.chars,
            }
            for row in largest
        ],
    }


def _tokens(tool: Counter[str]) -> int:
    return tool["call_tokens"] + tool["result_tokens"]


def draw(summary: dict[str, Any], terminal: Terminal) -> list[str]:
    """The lines of the picture."""
    total, window = summary["tokens"], summary["window"]
    lines = [
        f"{summary['format']} ({summary['format_reason']})",
        f"{total:,} tokens, counted by {summary['counter']}",
    ]
    if window:
        lines += _window_lines(total, window, summary["trigger"], terminal)
    if advice := clean(summary["tools_advice"]):
        lines += ["", terminal.paint("over", "\n".join(textwrap.wrap(advice, terminal.columns)))]
    lines += _table("by role", list(summary["by_role"].items()), total, terminal)
    tools = [
        (f"{clean(name)} ×{max(tool['calls'], tool['results'])}", _tokens(tool))
        for name, tool in summary["by_tool"].items()
    ]
    lines += _table("by tool (calls and results)", tools, total, terminal)
    lines += ["", terminal.paint("bold", "largest blocks")]
    for block in summary["largest"]:
        head = f"{block['tokens']:>9,} {_percent(block['tokens'], total):>5}  "
        tail = f"  {clean(block['what'])}, {block['chars']:,} chars"
        room = max(12, terminal.columns - len(head) - len(tail))
        lines.append(f"{head}{terminal.shorten(block['path'], room)}{terminal.paint('dim', tail)}")
    return lines


def _window_lines(total: int, window: int, trigger: float, terminal: Terminal) -> list[str]:
    share = f"{_percent(total, window)} of a window of {window:,}"
    if total > window:
        about = f"{share}: {total - window:,} too many"
    elif total > trigger * window:
        about = f"{share}: above the trigger of {trigger:.0%}, fit would reduce it"
    else:
        about = f"{share}: fit would leave it alone (below {trigger:.0%}, output reserve apart)"
    return [about, terminal.gauge(total, window, terminal.columns - 1)]


def _table(title: str, rows: list[tuple[str, int]], total: int, terminal: Terminal) -> list[str]:
    if not rows:
        return []
    most = max(max(tokens for _, tokens in rows), 1)
    room = min(max(len(label) for label, _ in rows), terminal.columns // 3)
    lines = ["", terminal.paint("bold", title)]
    for label, tokens in rows:
        head = (
            f"{terminal.shorten(label, room):<{room}} {tokens:>9,} {_percent(tokens, total):>5}  "
        )
        bar = terminal.bar(tokens / most, terminal.columns - len(head))
        lines.append(head + terminal.paint("bar", bar))
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "0%"
