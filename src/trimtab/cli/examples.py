"""The end of each command's help: examples, and what a FILE may contain."""

from __future__ import annotations

from trimtab.cli.logged_requests import LOGS
from trimtab.formats import FORMATS

EXAMPLES: dict[str, tuple[str, ...]] = {
    "fit": (
        "trimtab fit request.json --window 32k -o fitted.json",
        "trimtab fit ~/.claude/projects/-work-app/0f3a.jsonl --turn 40 --window 100k",
        "trimtab fit request.json --window 32k --journal kept.json > fitted.json",
        "trimtab fit request.json --window 32k --dry-run",
    ),
    "check": (
        "trimtab check request.json",
        "trimtab check messages.json --format anthropic --json",
        "trimtab check ~/.codex/sessions/2026/11/23/rollout-1.jsonl",
        "trimtab check --session ~/.claude/projects/-work-app/0f3a.jsonl --window 60k",
    ),
    "explain": (
        "trimtab explain request.json --window 128k",
        "trimtab explain ~/.claude/projects/-work-app/0f3a.jsonl --turn 40 --top 20",
    ),
    "convert": (
        "trimtab convert request.json --to anthropic --model claude-sonnet-4-5 -o other.json",
    ),
    "recall": (
        "trimtab recall --store sqlite:///kept.db",
        "trimtab recall rn5ee4xezey --journal kept.json",
        "trimtab recall rn5ee4xezey --store sqlite:///kept.db --search 'error test_parser'",
    ),
    "pin": (
        "trimtab pin --text 'Never push to main.'",
        "trimtab pin --file src/clock.py --journal kept.json",
        "trimtab pin --list",
    ),
    "sweep": ("trimtab sweep request.json --newest 3 --journal kept.json -o swept.json",),
    "mcp": (
        "trimtab mcp --store sqlite:///kept.db",
        "trimtab mcp --store sqlite:///kept.db --tenant anthropic/local --http",
    ),
    "doctor": ("trimtab doctor", "trimtab doctor --store sqlite:///kept.db"),
    "purge": ("trimtab purge --store sqlite:///kept.db --older-than 30d --keep-bytes 500m",),
    "stats": ("trimtab stats --store sqlite:///kept.db --tenant anthropic/local",),
    "batch": ("trimtab batch corpus.jsonl fitted --window 32k --key request",),
    "replay": (
        "trimtab replay ~/.claude/projects --window 60k,100k",
        "trimtab replay session.jsonl --window 32k --policy trimtab --turn 12 --show",
    ),
    "conform": (
        "trimtab conform mine.shorten:fit --window 8k",
        "trimtab conform http://127.0.0.1:8080 --upstream 127.0.0.1:9000 --junit report.xml",
    ),
    "bill": (
        "trimtab bill ~/.claude/projects --by day",
        "trimtab bill sqlite:///kept.db --html bill.html",
    ),
    "run": ("trimtab run claude", "trimtab run --window 100k --recall codex exec 'fix the test'"),
    "status": ("trimtab status", "trimtab status --session ses_5f2 --json"),
    "proxy": (
        "trimtab proxy",
        "trimtab proxy --listen 127.0.0.1:4142 --upstream http://localhost:8000",
    ),
}
_OF_A_FILE = {
    "fit": True, "check": True, "explain": True, "convert": True, "sweep": False,
}  # fmt: skip
"""Command that takes a request → whether it also takes one from a log."""


def epilog(command: str) -> str:
    """The examples of a command and, if it takes a FILE, what that may contain."""
    lines = ["examples:", *(f"  {one}" for one in EXAMPLES[command])]
    if command in _OF_A_FILE:
        lines += ["", "FILE is the body of a request or a bare list of its messages, in one of"]
        lines += [f"  {', '.join(sorted(FORMATS))}"]
        if _OF_A_FILE[command]:
            lines += ["or a log; --turn chooses one of its requests:", f"  {LOGS}"]
    elif command in ("replay", "bill"):
        lines += ["", f"read are {LOGS}"]
    return "\n".join(lines)
