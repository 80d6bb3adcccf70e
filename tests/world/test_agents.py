"""Eleven coding agents, each through ``trimtab run``: a tool turn, a history five times the window,
an overflow and an error in mid-session, a session that is taken up again.

Knows what their users see.  ``bench/agents.py`` prints the same as a table, with more figures.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace

import pytest
from agents_world import AGENTS, MAX_REQUESTS, ROOT, Story, run, traces

from trimtab_lab.testing import StrictProvider

PLUGIN = ROOT / "src/trimtab/proxy/agents/opencode_status.js"
pytestmark = pytest.mark.world
EVERY = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
LONG = pytest.mark.parametrize(
    "agent",
    [agent for agent in AGENTS if agent.name not in ("gemini", "qwen", "mini", "aider")],
    ids=lambda agent: agent.name,
)
"""Those that neither shorten results themselves nor ask only once."""
HOOKED = pytest.mark.parametrize(
    "agent",
    [agent for agent in AGENTS if agent.name in ("claude", "codex", "opencode")],
    ids=lambda agent: agent.name,
)
"""Those whose hooks docs/howto/hooks.md sets up."""
RESUMING = pytest.mark.parametrize(
    "agent", [agent for agent in AGENTS[:3] if agent.again], ids=lambda agent: agent.name
)


def story(agent, steps, lines, **more):
    return Story(
        agent.tool, agent.argument, steps, lines, more=dict(agent.more), final=agent.final, **more
    )


@EVERY
def test_a_tool_turn_ends_as_it_does_without_us_and_leaves_no_trace(agent, tmp_path):
    told = story(agent, steps=1, lines=20)
    with StrictProvider(told, max_requests=MAX_REQUESTS) as provider:
        done = run(agent, provider, tmp_path / "home")
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "MARMALADE" in done.stdout
        assert provider.crashes == []
        assert {record.status for record in provider.requests} == {200}
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("trimtab: 0 of ")
        assert last.endswith(" requests") or last.endswith(" request")
    own = {name for name in traces(tmp_path / "home") if "log" not in name}
    # Copilot unpacks itself, with a list of changes that names such an address.
    own = {name for name in own if not name.startswith(".cache/copilot/pkg/")}
    assert own <= {f"work/{agent.name}.json"}


@LONG
def test_a_history_five_times_the_window_ends_well_and_is_not_compacted_by_the_agent(
    agent, tmp_path
):
    told, window = story(agent, steps=34, lines=400), 40_000
    with StrictProvider(told, window=window, max_requests=MAX_REQUESTS) as provider:
        done = run(agent, provider, tmp_path / "home", "--window", str(window))
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "MARMALADE" in done.stdout
        assert {record.status for record in provider.requests} == {200}
        assert max(record.tokens for record in provider.requests) <= window
        assert not any(map(_compacts, provider.requests))
        found = re.search(r"([\d,]+) of ([\d,]+) tokens saved", done.stderr)
        saved, arrived = (int(group.replace(",", "")) for group in found.groups())
        assert saved > arrived / 3
        # What would have been sent at the end: all that the steps printed.
        assert 4 * window < 34 * 400 * 14


@EVERY
def test_an_overflow_in_mid_session_is_survived_and_the_agent_never_sees_it(agent, tmp_path):
    told = story(agent, steps=6, lines=400, refuse_at=5 if agent.tool else 1)
    with StrictProvider(told, window=200_000, max_requests=MAX_REQUESTS) as provider:
        done = run(agent, provider, tmp_path / "home")
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "MARMALADE" in done.stdout
        refused = [record for record in provider.requests if record.refusal]
        assert len(refused) == 1
        again = provider.requests[refused[0].number]
        assert again.status == 200
        assert again.tokens < refused[0].tokens
        assert not any(map(_compacts, provider.requests))
        assert "1 refusal hidden from the client" in done.stderr


@EVERY
def test_an_error_of_the_provider_in_mid_session_is_the_agent_s_to_try_again(agent, tmp_path):
    told = story(agent, steps=4, lines=20, fail_at=3 if agent.tool else 1)
    with StrictProvider(told, max_requests=MAX_REQUESTS) as provider:
        done = run(agent, provider, tmp_path / "home")
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "MARMALADE" in done.stdout
        assert [record.status for record in provider.requests].count(500) == 1
        assert ", 1 request failed" in done.stderr


@RESUMING
def test_a_session_that_is_taken_up_again_begins_with_the_same_bytes(agent, tmp_path):
    told, window = story(agent, steps=14, lines=700), 100_000
    with StrictProvider(told, window=window, max_requests=MAX_REQUESTS) as provider:
        words = ("--window", str(window))
        first = run(agent, provider, tmp_path / "home", *words)
        before = len(provider.requests)
        again = run(agent, provider, tmp_path / "home", *words, again=True)
        assert (first.returncode, again.returncode) == (0, 0), again.stderr[-2_000:]
        assert {record.status for record in provider.requests} == {200}
        records = [
            r for r in provider.requests if json.dumps(r.body).count("of a long listing") > 9
        ]
        last, next_one = (
            [r for r in records if r.number <= before][-1],
            next(r for r in records if r.number > before),
        )
        assert next_one.cached_tokens > 0.9 * last.tokens


def _compacts(record):
    """Whether this is a request in which the agent lets its own conversation be summarized."""
    text = json.dumps(record.body)[-6_000:].casefold()
    signs = ("create a detailed summary", "context checkpoint compaction", "state_snapshot",
             "compaction_trigger", "what did we do so far", "<summary>")  # fmt: skip
    return any(sign in text for sign in signs)


STATUS = f"{sys.executable} -m trimtab status"


def _hooked(agent, home, log):
    """The configuration of docs/howto/hooks.md, whose command leaves a copy of what it printed."""
    kept = f"{STATUS} | tee -a {log}"
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": kept}]}]}
    match agent.name:
        case "claude":
            (home / ".claude").mkdir()
            (home / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
            return agent
        case "codex":
            (home / ".codex").mkdir()
            (home / ".codex/hooks.json").write_text(json.dumps({"hooks": hooks}))
            first, *rest = agent.words
            return replace(agent, words=(first, "--dangerously-bypass-hook-trust", *rest))
    folder = home / ".config/opencode/plugins"
    folder.mkdir(parents=True)
    shutil.copy(PLUGIN, folder / "trimtab.js")
    (home / "status.sh").write_text(f'#!/bin/sh\n{STATUS} "$@" | tee -a {log}\n')
    (home / "status.sh").chmod(0o755)
    return agent


@HOOKED
def test_its_hooks_are_told_how_full_the_window_of_this_session_is(agent, tmp_path, monkeypatch):
    home, log = tmp_path / "home", tmp_path / "log"
    home.mkdir()
    hooked = _hooked(agent, home, log)
    monkeypatch.setenv("TRIMTAB_STATUS", json.dumps([str(home / "status.sh")]))
    told = story(agent, steps=3, lines=100)
    with StrictProvider(told, max_requests=MAX_REQUESTS) as provider:
        done = run(hooked, provider, home, "--window", "60k")
        assert done.returncode == 0, done.stderr[-2_000:]
        assert "MARMALADE" in done.stdout
    line = log.read_text().splitlines()[-1]
    assert re.search(r"trimtab \d+% of \d+k", line), line
