"""Every command: what it is for in one sentence, examples, and the options that its help begins
with.

Plain data, so that the list of commands is printed before any of them is loaded.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command.

    ``module`` has ``add``, which gives a parser the command's options.  ``options``: those that
    ``--help`` shows, in this order; ``--help-all`` has all.  Without any, all are shown.
    """

    about: str
    module: str
    examples: tuple[str, ...]
    options: tuple[str, ...] = ()
    add: str = "add"


_LAB = "trimtab_lab.commands."

GROUPS: dict[str, dict[str, Command]] = {
    "start here": {
        "demo": Command(
            "Watch a recorded session outgrow its window, with nothing to set up.",
            f"{_LAB}demo",
            ("trimtab demo", "trimtab demo --html demo.html"),
        ),
        "run": Command(
            "Start a coding agent that never outgrows its window.",
            "trimtab.cli.proxy",
            (
                "trimtab run claude",
                "trimtab run --window 100k --recall codex exec 'fix the test'",
            ),
            ("--window", "--recall", "--notes", "--status", "--proxy", "--upstream", "--preset",
             "--store", "--log", "--config"),
            add="add_run",
        ),
        "proxy": Command(
            "Put a proxy between your agents and their providers.",
            "trimtab.cli.proxy",
            (
                "trimtab proxy --window 100k",
                "trimtab proxy --listen 127.0.0.1:4142 --upstream http://localhost:8000",
            ),
            ("--window", "--listen", "--upstream", "--recall", "--notes", "--preset", "--store",
             "--tenants", "--workers", "--config"),
            add="add_proxy",
        ),
        "fit": Command(
            "Make one request fit its model's window.",
            "trimtab.cli.fit",
            (
                "trimtab fit request.json --window 32k -o fitted.json",
                "trimtab fit ~/.claude/projects/-work-app/0f3a.jsonl --turn 40 --window 100k",
                "trimtab fit request.json --window 32k --journal kept.json > fitted.json",
                "trimtab fit request.json --window 32k --dry-run",
            ),
            ("--window", "--model", "--output", "--journal", "--dry-run", "--json", "--turn",
             "--preset", "--target", "--protected-tools"),
            add="add_fit",
        ),
    },
    "look": {
        "inspect": Command(
            "See what fills the window of a request.",
            "trimtab.cli.inspect",
            (
                "trimtab inspect request.json --window 128k",
                "trimtab inspect ~/.claude/projects/-work-app/0f3a.jsonl --turn 40 --top 20",
            ),
            ("--window", "--model", "--turn", "--top", "--json"),
        ),
        "check": Command(
            "Find out whether the provider would refuse a request.",
            "trimtab.cli.check",
            (
                "trimtab check request.json",
                "trimtab check messages.json --format anthropic --json",
                "trimtab check ~/.codex/sessions/2026/11/23/rollout-1.jsonl",
                "trimtab check --session ~/.claude/projects/-work-app/0f3a.jsonl --window 60k",
            ),
            ("--window", "--model", "--format", "--turn", "--session", "--json"),
        ),
        "recall": Command(
            "Read what a cut took out, or list all that was cut.",
            "trimtab.cli.recall",
            (
                "trimtab recall",
                "trimtab recall rn5ee4xezey --lines 40-60",
                "trimtab recall rn5ee4xezey --journal kept.json --why",
                "trimtab recall --store sqlite:///kept.db --all originals",
            ),
            ("--lines", "--range", "--steps", "--whole", "--file", "--why", "--all", "--journal",
             "--store", "--output"),
        ),
        "search": Command(
            "Find a line in everything that was cut.",
            "trimtab.cli.search",
            (
                "trimtab search 'exit status'",
                "trimtab search 'error test_parser' rn5ee4xezey --store sqlite:///kept.db",
            ),
            ("--journal", "--store", "--output"),
        ),
        "status": Command(
            "See how full the window is, and what all cuts saved.",
            "trimtab.cli.status",
            (
                "trimtab status",
                "trimtab status --session ses_5f2 --json",
                "trimtab status --total",
                "trimtab status --store sqlite:///kept.db --tenant anthropic/local",
            ),
            ("--session", "--proxy", "--total", "--store", "--json"),
        ),
        "dashboard": Command(
            "Print the address of your running proxy's dashboard.",
            "trimtab.cli.dashboard",
            ("trimtab dashboard", "trimtab dashboard --open"),
        ),
    },
    "measure": {
        "replay": Command(
            "Play recorded sessions again and see what would have been sent.",
            f"{_LAB}replay",
            (
                "trimtab replay ~/.claude/projects --advise",
                "trimtab replay ~/.claude/projects --window 60k,100k",
                "trimtab replay session.jsonl --window 32k --policy trimtab --turn 12 --show",
            ),
            ("--window", "--advise", "--policy", "--id", "--limit", "--by", "--columns", "--html",
             "--turn", "--show", "--lost"),
        ),
        "bill": Command(
            "See what your sessions cost, and what they would have cost.",
            f"{_LAB}bill",
            (
                "trimtab bill ~/.claude/projects --by day",
                "trimtab bill sqlite:///kept.db --html bill.html",
            ),
            ("--by", "--window", "--paid-only", "--html", "--json"),
        ),
    },
    "serve": {
        "mcp": Command(
            "Let an MCP client look up what was cut.",
            "trimtab.cli.mcp",
            (
                "trimtab mcp --store sqlite:///kept.db",
                "trimtab mcp --store sqlite:///kept.db --http",
            ),
            ("--store", "--http", "--port"),
        ),
        "batch": Command(
            "Make a whole corpus of requests fit, for training or evaluation.",
            f"{_LAB}batch",
            ("trimtab batch corpus.jsonl fitted --window 32k --key request",),
            ("--window", "--model", "--key", "--preset", "--target", "--jobs", "--engine",
             "--originals", "--allow-failures", "--shard-bytes"),
        ),
    },
    "keep": {
        "pin": Command(
            "Undo a cut, or keep a sentence or a file whole in every cut.",
            "trimtab.cli.pin",
            (
                "trimtab pin rn5ee4xezey",
                "trimtab pin --text 'Never push to main.'",
                "trimtab pin --file src/clock.py --journal kept.json",
                "trimtab pin --list",
            ),
            ("--text", "--file", "--list", "--remove", "--conversation", "--journal", "--store"),
        ),
        "doctor": Command(
            "Check that your agents can run behind trimtab, or that a store is sound.",
            "trimtab.cli.store",
            ("trimtab doctor", "trimtab doctor --store sqlite:///kept.db"),
            add="add_doctor",
        ),
        "purge": Command(
            "Delete conversations and their originals.",
            "trimtab.cli.store",
            (
                "trimtab purge --older-than 30d",
                "trimtab purge 0f3a91",
                "trimtab purge --store sqlite:///kept.db --keep-bytes 500m",
            ),
            ("--older-than", "--keep-bytes", "--store"),
            add="add_purge",
        ),
    },
    "more": {
        "sweep": Command(
            "Take the newest tool results out of a request.",
            "trimtab.cli.sweep",
            ("trimtab sweep request.json --newest 3 --journal kept.json -o swept.json",),
            ("--newest", "--protected-tools", "--journal", "--store", "--output"),
        ),
        "convert": Command(
            "Write a request in another provider's format.",
            "trimtab.cli.convert",
            ("trimtab convert request.json --to anthropic -o other.json",),
            ("--to", "--model", "--format", "--turn", "--output", "--json"),
        ),
        "conform": Command(
            "Test a tool that shortens conversations: what it keeps, what it breaks.",
            f"{_LAB}conform",
            (
                "trimtab conform mine.shorten:fit --window 8k",
                "trimtab conform http://127.0.0.1:8080 --upstream 127.0.0.1:9000",
            ),
            ("--window", "--format", "--cases", "--seed", "--factory", "--upstream", "--start",
             "--json", "--junit"),
        ),
        "completion": Command(
            "Print a script that lets your shell complete commands and options.",
            "trimtab.cli.completion",
            (
                "trimtab completion bash > ~/.local/share/bash-completion/completions/trimtab",
                "trimtab completion zsh > ~/.zfunc/_trimtab",
            ),
        ),
    },
}  # fmt: skip

COMMANDS = {name: one for group in GROUPS.values() for name, one in group.items()}

BESIDES = ("more",)
"""Groups that only ``trimtab --help-all`` lists."""

ELSEWHERE = {
    "explain": "inspect",
    "count": "inspect",
    "stats": "status --total",
    "validate": "check",
    "undo": "pin HANDLE",
    "history": "recall",
    "recall --search": "search TEXT [HANDLE]",
}
"""What people call a command or an option → what to type."""
