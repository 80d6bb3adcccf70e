"""Real coding agents through ``trimtab run``: ``python bench/agents.py claude codex …``.

Runs each program without a person against the strict provider, and prints one row for each:
  tool       a tool turn ends as it does without us
  long       45 turns or more, with results that the agent sends whole and that come to --times the
             window: turns that rewrite the prefix, share of the prompts that a cache could read,
             requests above the window, compactions by the agent itself
  overflow   a refusal for size in mid-session is survived
  error      an error of the provider in mid-session reaches the agent, whose own retry ends well
  restart    a second ``trimtab run`` takes the session up: the same bytes as before
  undo       an undo of what does not fit, before that: nothing above the window leaves

The agents have to be installed: on the path, or in a folder that TRIMTAB_AGENTS names.
TRIMTAB_AGENT_SECONDS: how long one run may take.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import agents_world as world  # noqa: E402

import trimtab  # noqa: E402
from trimtab.rounds.request_layouts import history  # noqa: E402
from trimtab_lab.testing import StrictProvider  # noqa: E402

LINE_TOKENS, LINE_CHARS = 15, 47
"""Of one line that a step prints."""
TURNS = 45
"""Of a long session, at the least."""
COMPACTS = ("create a detailed summary", "context checkpoint compaction", "state_snapshot",
            "compaction_trigger", "what did we do so far", "<summary>")  # fmt: skip
COLUMNS = ("tool", "long", "overflow", "error", "restart", "undo")


def story(agent: world.Agent, steps: int, lines: int, **more: Any) -> world.Story:
    return world.Story(
        agent.tool, agent.argument, steps, lines, more=dict(agent.more), final=agent.final, **more
    )


MARK = re.compile(r'"cache_control": \{[^}]*\}(, )?|, "cache_control": \{[^}]*\}')


def told(request: Any) -> list[str]:
    """The messages of a request as text, without breakpoints of the cache."""
    messages = history(request.format, request.body)
    return [MARK.sub("", json.dumps(message, sort_keys=True)) for message in messages]


def conversation(agent: world.Agent, provider: StrictProvider) -> list[Any]:
    """Its requests of the session itself: those with the tool, so not those for a title."""
    kept = []
    for one in provider.requests:
        body = one.body if isinstance(one.body, dict) else {}
        if one.operation == "generate" and agent.tool in json.dumps(body.get("tools") or ""):
            kept.append(one)
    return kept


def prefixes(requests: Sequence[Any]) -> Iterator[tuple[int, int, int, float]]:
    """For each request but the first: its messages, those of the one before, how many of these it
    begins with, and the share of its characters that they are."""
    before: list[str] = []
    for request in requests:
        now = told(request)
        same = 0
        while same < min(len(now), len(before)) and now[same] == before[same]:
            same += 1
        whole = len(json.dumps(request.body))
        rest = sum(map(len, now[same:]))
        if before:
            yield len(now), len(before), same, 1 - rest / max(whole, 1)
        before = now


def well(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0 and "MARMALADE" in done.stdout


class Run:
    """One agent in a home of its own."""

    def __init__(self, agent: world.Agent, window: int, times: float) -> None:
        self.agent, self.window, self.times = agent, window, times

    def filling(self, least: int, times: float) -> world.Story:
        """So many steps or more whose results come to ``times`` the window and arrive whole."""
        lines = self.window * times / LINE_TOKENS
        steps = max(least, ceil(lines * LINE_CHARS / self.agent.max_chars))
        return story(self.agent, steps, int(lines / steps))

    def tool(self, home: Path) -> str:
        with StrictProvider(story(self.agent, 1, 20), max_requests=40) as provider:
            done = world.run(self.agent, provider, home)
            clean = {one.status for one in provider.requests} == {200}
        return "ok" if well(done) and clean else f"no ({done.returncode})"

    def long(self, home: Path) -> str:
        told = self.filling(TURNS, self.times)
        with StrictProvider(told, window=self.window, max_requests=3 * told.steps) as provider:
            done = world.run(self.agent, provider, home, "--window", str(self.window))
            mine = conversation(self.agent, provider)
        rows = list(prefixes(mine))
        tokens = [one.tokens for one in mine[1:]]
        read = sum(t * share for t, (*_, share) in zip(tokens, rows, strict=True))
        # Agents themselves take reminders off the newest message: that is no rewrite.
        rewritten = sum(same < before - 1 for _, before, same, _ in rows)
        over = sum(one.status >= 400 for one in provider.requests)
        texts = (json.dumps(one.body)[-6_000:].casefold() for one in provider.requests)
        compacted = sum(any(sign in text for sign in COMPACTS) for text in texts)
        end, share = "ok" if well(done) else "no", read / max(sum(tokens), 1)
        grown = [after - before for before, after in pairwise(tokens) if after > before]
        came = median(grown or [0]) * told.steps / self.window
        return (f"{end}, {came:.1f} × the window came, {rewritten} of {len(mine)} rewrite, "
                f"{share:.2f} cacheable, {over} over, {compacted} compacted")  # fmt: skip

    def overflow(self, home: Path) -> str:
        told = story(self.agent, 6, 400, refuse_at=5 if self.agent.tool else 1)
        with StrictProvider(told, window=200_000, max_requests=60) as provider:
            done = world.run(self.agent, provider, home)
            refused = sum(bool(one.refusal) for one in provider.requests)
        survived = "1 refusal survived" in done.stderr or not refused
        return "ok" if well(done) and survived else f"no ({done.returncode}, {refused} refused)"

    def error(self, home: Path) -> str:
        told = story(self.agent, 4, 20, fail_at=3 if self.agent.tool else 1)
        with StrictProvider(told, max_requests=60) as provider:
            done = world.run(self.agent, provider, home)
        seen = "1 request failed" in done.stderr
        return "ok" if well(done) and seen else f"no ({done.returncode})"

    def restart(self, home: Path, *, undo: bool = False) -> str:
        if not self.agent.again:
            return "–"
        told = self.filling(14, 3.0)
        more = ("--window", str(self.window))
        with StrictProvider(told, window=self.window, max_requests=6 * told.steps) as provider:
            first = world.run(self.agent, provider, home, *more)
            count = len(provider.requests)
            taken = undone(home) if undo else 0
            second = world.run(self.agent, provider, home, *more, again=True)
            mine = conversation(self.agent, provider)
        over = sum(one.status >= 400 for one in provider.requests)
        if not (well(first) and well(second)) or over:
            return f"no ({first.returncode}, {second.returncode}, {over} over)"
        if undo:
            return f"ok, {taken:,} tokens" if taken > self.window else f"ok, only {taken:,} tokens"
        at = next((n for n, one in enumerate(mine) if one.number > count), 0)
        if not at:
            return "no: it did not go on"
        _, before, same, _ = next(prefixes(mine[at - 1 : at + 1]))
        return "ok" if same == before else f"{same} of {before} messages"

    def undo(self, home: Path) -> str:
        return self.restart(home, undo=True)


def undone(home: Path) -> int:
    """Take the largest edit of the proxy's own store back; the tokens of its original."""
    from trimtab import stores

    url = f"sqlite:///{home}/.local/state/trimtab/proxy.db"
    for row in stores.open_store(url).conversations():
        session = trimtab.Session(
            store=url, tenant=row.tenant, settings=trimtab.Settings(window=9_000)
        )
        handles = stores.open_store(url).handles(row.tenant, row.conversation)
        sizes = {one: len(session.recall(one)) for one in handles}
        if sizes:
            largest = max(sizes, key=lambda one: sizes[one])
            session.undo(largest)
            session.close()
            return sizes[largest] // 3
    return 0


def main() -> None:
    """Print the table, row by row."""
    names = [agent.name for agent in world.AGENTS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("agents", nargs="*", default=names, metavar="AGENT")
    parser.add_argument("--window", type=int, default=100_000)
    parser.add_argument("--times", type=float, default=5.0)
    parser.add_argument("--only", default=",".join(COLUMNS), help="columns")
    args = parser.parse_args()
    columns = [name for name in COLUMNS if name in args.only.split(",")]
    print("| agent |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|", flush=True)
    for agent in world.AGENTS:
        if agent.name not in args.agents:
            continue
        run, row = Run(agent, args.window, args.times), []
        for column in columns:
            ask: Callable[[Path], str] = getattr(run, column)
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row.append(ask(Path(folder) / "home"))
                except subprocess.TimeoutExpired:
                    row.append(f"no end in {time.monotonic() - began:.0f} s")
            print(f"  {agent.name} {column}: {row[-1]}, {time.monotonic() - began:.0f} s",
                  file=sys.stderr, flush=True)  # fmt: skip
        print(f"| {agent.name} |", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
