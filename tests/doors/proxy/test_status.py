"""``trimtab status``: what agents give their hooks goes in, one line comes out, and nothing fails.

Knows the documented inputs of Claude Code's status line and hooks, and of Codex's.
"""

from __future__ import annotations

import io
import json
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proxies import ask, proxied, settled

from trimtab.cli import main, state_files
from trimtab.cli.status import NO_PROXY
from trimtab.config import load
from trimtab.proxy.agents import LaunchContext, agent_for
from trimtab_lab.testing import StrictProvider

ROOT = Path(__file__).resolve().parents[3]
SESSION = "0f3a91c2-6a55-4a0e-9b1f-5d2c6f0a7e11"
STATUS_LINE = {
    "session_id": SESSION, "transcript_path": "/home/me/.claude/projects/-app/0f3a.jsonl",
    "cwd": "/home/me/app", "model": {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"},
    "workspace": {"current_dir": "/home/me/app", "project_dir": "/home/me/app"},
    "version": "2.1.330", "output_style": {"name": "default"},
    "cost": {"total_cost_usd": 0.42, "total_duration_ms": 180_000},
    "context_window": {"context_window_size": 200_000, "used_percentage": 4},
}  # fmt: skip
PRE_COMPACT = {
    "session_id": SESSION, "transcript_path": "/home/me/.claude/projects/-app/0f3a.jsonl",
    "cwd": "/home/me/app", "hook_event_name": "PreCompact", "trigger": "auto",
    "custom_instructions": "",
}  # fmt: skip
CODEX_STOP = {
    "session_id": SESSION, "turn_id": "019d036d", "transcript_path": None, "cwd": "/home/me/app",
    "hook_event_name": "Stop", "model": "gpt-5.1", "permission_mode": "default",
    "stop_hook_active": False, "last_assistant_message": "Done.",
}  # fmt: skip
CODEX_NOTIFY = {
    "type": "agent-turn-complete", "thread-id": SESSION, "turn-id": "1", "cwd": "/home/me/app",
    "input-messages": ["list"], "last-assistant-message": "Done.",
}  # fmt: skip


def history(calls: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "List the files."}]
    for n in range(calls):
        text = "\n".join(f"src/module_{n}_{row}.py {row * 7919 % 10007}" for row in range(300))
        use = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"ls {n}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return messages


@pytest.fixture
def session(monkeypatch, tmp_path):
    """A proxy that has cut a session of Claude Code; the store is its user's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "trimtab").mkdir()
    store = f"sqlite:///{tmp_path}/trimtab/proxy.db"
    tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
    with StrictProvider() as provider, proxied(provider.url, window=16_000, store=store) as server:
        monkeypatch.setenv("TRIMTAB_PROXY", server.base)
        headers = {"x-api-key": "k", "x-claude-code-session-id": SESSION, "content-type": "x"}
        for calls in (1, 2, 6):
            body = {"model": "claude-sonnet-4-5", "max_tokens": 1_000, "tools": tools,
                    "messages": history(calls)}  # fmt: skip
            status, _, _ = ask(server.url, "POST", "/v1/messages", json.dumps(body), headers)
            assert status == 200
        title = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "title"}]}
        ask(server.url, "POST", "/v1/messages", json.dumps(title), headers)
        yield settled(server)


def said(capsys, monkeypatch, *words: str, given: Any = None) -> str:
    text = "" if given is None else json.dumps(given)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["status", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


LINE = r"trimtab \d+% of 1[3-6]k · [\d,]+k? cut \(fold ×1\) · trimtab recall r\w+"


def test_the_status_line_says_how_full_what_was_cut_and_how_to_recall(session, capsys, monkeypatch):
    out = said(capsys, monkeypatch, given=STATUS_LINE)
    assert re.fullmatch(LINE + "\n", out)
    assert said(capsys, monkeypatch, "--session", SESSION) == out
    assert said(capsys, monkeypatch, json.dumps(CODEX_NOTIFY)) == out
    handle = out.split()[-1]
    assert main(["recall", handle, "--whole"]) == 0
    assert "src/module_0_299.py" in capsys.readouterr().out


def test_a_compaction_of_claude_code_is_told_to_keep_the_handles(session, capsys, monkeypatch):
    handle = said(capsys, monkeypatch, given=STATUS_LINE).split()[-1]
    out = said(capsys, monkeypatch, given=PRE_COMPACT)
    assert f"word for word ({handle})" in out
    assert out.count("\n") == 1
    with pytest.raises(ValueError, match="Expecting value"):  # JSON would be read as JSON
        json.loads(out)


def test_codex_gets_the_json_that_its_hooks_have_to_print(session, capsys, monkeypatch):
    line = said(capsys, monkeypatch, given=STATUS_LINE)[:-1]
    assert json.loads(said(capsys, monkeypatch, given=CODEX_STOP)) == {"systemMessage": line}
    compact = {**CODEX_STOP, "hook_event_name": "PreCompact", "trigger": "auto"}
    assert json.loads(said(capsys, monkeypatch, given=compact)) == {"systemMessage": line}


def test_a_model_with_the_recall_tool_is_told_of_the_tool(session, capsys, monkeypatch):
    session.proxy.settings = replace(session.proxy.settings, recall=True)
    assert said(capsys, monkeypatch, given=STATUS_LINE).endswith(" · recall tool\n")
    assert "the tool recall gives" in said(capsys, monkeypatch, given=PRE_COMPACT)


def test_another_session_is_not_shown_and_without_a_name_the_newest_is(
    session, capsys, monkeypatch
):
    assert said(capsys, monkeypatch, "--session", "other") == "trimtab: no request yet\n"
    assert re.fullmatch(LINE + "\n", said(capsys, monkeypatch))
    found = json.loads(said(capsys, monkeypatch, "--json"))
    assert (found["session"], found["requests"], found["edits"]) == (SESSION, 3, {"fold": 1})


def test_a_proxy_that_runs_is_found_as_the_dashboard_is(session, capsys, monkeypatch):
    line = said(capsys, monkeypatch)
    monkeypatch.delenv("TRIMTAB_PROXY")
    state_files.keep_dashboard(session.dashboard)
    state_files.keep_dashboard("http://127.0.0.1:1/_trimtab/?token=of-one-that-has-ended")
    assert said(capsys, monkeypatch) == line
    with StrictProvider() as provider, proxied(provider.url) as newer:
        state_files.keep_dashboard(newer.dashboard)
        assert said(capsys, monkeypatch) == "trimtab: no request yet\n"
        assert said(capsys, monkeypatch, "--session", SESSION) == line


def test_a_session_is_known_by_how_its_id_begins(session, capsys, monkeypatch):
    line = said(capsys, monkeypatch, "--session", SESSION)
    assert said(capsys, monkeypatch, "--session", SESSION[:6]) == line
    page = json.loads(said(capsys, monkeypatch, "--json"))["page"].rpartition("/")[2]
    assert said(capsys, monkeypatch, "--session", page[:6]) == line
    session.proxy.addons.records._collect()
    session.proxy.addons.records.write()
    for name in (SESSION[:6], page[:6]):
        assert main(["recall", name]) == 0
        assert line.split()[-1] in capsys.readouterr().out
    assert main(["purge", SESSION[:6]]) == 0
    assert capsys.readouterr().out.startswith("1 conversation with ")


def test_a_beginning_that_several_sessions_have_names_them(session, capsys, monkeypatch):
    headers = {
        "x-api-key": "k",
        "x-claude-code-session-id": SESSION[:8] + "-b",
        "content-type": "x",
    }
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Else."}]}
    assert ask(session.url, "POST", "/v1/messages", json.dumps(body), headers)[0] == 200
    settled(session)
    line = f"trimtab: several sessions begin so: {SESSION[:8]}-b, {SESSION}"
    names = {*line.partition("so: ")[2].split(", ")}
    found = said(capsys, monkeypatch, "--session", SESSION[:6])
    assert {*found.strip().partition("so: ")[2].split(", ")} == names


def test_the_figures_need_the_token(session):
    path = f"/_trimtab/status?session={SESSION}"
    assert ask(session.url, "GET", path, bring_token=False)[0] == 401
    assert ask(session.url, "GET", path)[0] == 200


@pytest.mark.parametrize(
    "given", [STATUS_LINE, PRE_COMPACT, CODEX_STOP, [], "x", {"session_id": 3}, None]
)
def test_without_a_proxy_it_says_so_or_nothing_and_ends_well(given, capsys, monkeypatch):
    with socket.socket() as taken:  # answers nobody
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("TRIMTAB_PROXY", f"http://127.0.0.1:{taken.getsockname()[1]}/token/x")
        out = said(capsys, monkeypatch, given=given)
    hook = isinstance(given, dict) and "hook_event_name" in given
    assert out == ("" if hook else f"{NO_PROXY}\n")


@pytest.mark.parametrize("address", ["", "nonsense", "http://", "https://x/y", "http://[::1"])
def test_an_address_that_is_none_does_not_fail_either(address, capsys, monkeypatch):
    out = said(capsys, monkeypatch, "--proxy", address, given=STATUS_LINE)
    assert out in ("", f"{NO_PROXY}\n")


def test_it_loads_nothing_but_itself():
    code = (
        "import sys; from trimtab.cli import main; main(['status', '--proxy', 'http://0:1']); "
        "print(sorted(m for m in sys.modules if m.startswith('trimtab')), "
        "{'urllib.request', 'asyncio', 'inspect', 'dataclasses'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True)
    assert (
        done.stdout.splitlines()[-1]
        == "['trimtab', 'trimtab.cli', 'trimtab.cli.status', 'trimtab.forking'] set()"
    )


# --- what agents are given ------------------------------------------------------------------------


def test_run_with_status_gives_claude_a_status_line_and_a_hook(tmp_path):
    place = LaunchContext({}, tmp_path, tmp_path)
    agent = agent_for("claude")
    setup = agent.prepare(place)
    agent.show_status(place, setup, ["/a b/python", "-m", "trimtab", "status"])
    option, settings = setup.arguments
    command = {"type": "command", "command": "'/a b/python' -m trimtab status"}
    assert option == "--settings"
    assert json.loads(settings) == {
        "statusLine": command, "hooks": {"PreCompact": [{"hooks": [command]}]},
    }  # fmt: skip


def test_run_with_status_gives_opencode_a_plugin_beside_its_own(tmp_path):
    content = {"plugin": ["mine"], "theme": "dark"}
    place = LaunchContext({"OPENCODE_CONFIG_CONTENT": json.dumps(content)}, tmp_path, tmp_path)
    agent = agent_for("opencode")
    setup = agent.prepare(place)
    agent.show_status(place, setup, ["trimtab", "status"])
    mine, ours = json.loads(setup.env["OPENCODE_CONFIG_CONTENT"])["plugin"]
    assert mine == "mine"
    assert Path(ours.removeprefix("file://")).read_text().startswith("// Shows trimtab's line")
    assert json.loads(setup.env["TRIMTAB_STATUS"]) == ["trimtab", "status"]


def test_run_with_status_says_where_an_agent_cannot_be_told(capsys):
    assert main(["run", "--status", "--store", "memory:", sys.executable, "-c", "0"]) == 2
    assert "cannot be told from outside; leave it out" in capsys.readouterr().err


def test_an_agent_that_is_run_finds_its_proxy(capfd):
    code = "import os; print(os.environ['TRIMTAB_PROXY'])"
    assert main(["run", "--store", "memory:", sys.executable, "-c", code]) == 0
    out = capfd.readouterr().out
    assert re.match(r"http://127\.0\.0\.1:\d+/token/\S{20,}", out)
    assert load(env={"TRIMTAB_PROXY": out, "TRIMTAB_STATUS": "[]"}).problems == []


def test_the_configurations_of_the_page_are_what_the_agents_read():
    text = (ROOT / "docs/howto/hooks.md").read_text(encoding="utf-8")
    claude, codex = map(json.loads, re.findall(r"```json\n(.*?)```", text, re.S))
    assert claude["statusLine"] == {"type": "command", "command": "trimtab status"}
    assert claude["hooks"]["PreCompact"][0]["hooks"][0] == claude["statusLine"]
    assert codex["hooks"]["Stop"][0]["hooks"][0] == claude["statusLine"]
