"""``trimtab run``: how each agent is put behind a proxy, what is said, what is left behind.

Knows the agents' configuration files.  The agents themselves run in world/test_agents.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proxies import proxied, settled

from trimtab import Settings, fit
from trimtab.proxy import ProxySettings
from trimtab.proxy.agents import AGENTS, LaunchContext, Setup, agent_for
from trimtab.proxy.agents.doctor import findings
from trimtab.proxy.agents.launch import _private
from trimtab.proxy.config.settings import DEFAULT_FIT
from trimtab_lab.testing import Refuse, StrictProvider

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def place(tmp_path):
    """A home and a working folder, and a way to write files there."""

    def made(env=None, arguments=(), **files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text)
        return LaunchContext(env or {}, tmp_path, tmp_path / "work", arguments)

    return made


def ready(name, where):
    setup = agent_for(name).prepare(where)
    return setup, setup.at("http://127.0.0.1:9")


def test_claude_keeps_the_address_that_its_user_had(place):
    setup, at = ready("claude", place())
    assert at.env == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/to/anthropic"}
    assert setup.upstreams[0].url == "https://api.anthropic.com"
    setup, at = ready("claude", place({"ANTHROPIC_BASE_URL": "https://gateway.example/claude"}))
    assert setup.upstreams[0].url == "https://gateway.example/claude"
    own = {"env": {"ANTHROPIC_BASE_URL": "https://own.example"}}
    setup, at = ready("claude", place(_DOT_claude__settings_DOT_json=own))
    assert setup.upstreams[0].url == "https://own.example"
    assert json.loads(at.arguments[1]) == {"env": at.env}  # its files win over the environment


def test_codex_keeps_its_provider_and_says_when_its_login_cannot_go_through(place):
    setup, at = ready("codex", place({"OPENAI_API_KEY": "sk"}))
    assert setup.upstreams[0].url == "https://api.openai.com/v1"
    assert 'model_providers.trimtab.base_url="http://127.0.0.1:9/to/openai"' in at.arguments
    toml = (
        'model_provider = "mine"\n[model_providers.mine]\nname = "x"\n'
        'base_url = "https://mine.example/v1"\nenv_key = "KEY"\n'
    )
    setup, at = ready("codex", place(_DOT_codex__config_DOT_toml=toml))
    assert setup.upstreams[0].url == "https://mine.example/v1"
    assert at.arguments == ["-c", 'model_providers.mine.base_url="http://127.0.0.1:9/to/codex"']
    login = {"tokens": {"access_token": "x"}}
    (place().home / ".codex" / "config.toml").unlink()
    setup, _ = ready("codex", place())
    assert setup.problem.startswith("codex: it has no key: set OPENAI_API_KEY")
    setup, _ = ready("codex", place(_DOT_codex__auth_DOT_json=login))
    assert setup.problem.count("\n") == 0
    assert setup.problem.endswith("set OPENAI_API_KEY")


def test_codex_is_kept_from_trying_websockets_first(place):
    table = {"base_url": "https://llm.corp/v1", "supports_websockets": True}
    toml = 'model_provider = "corp"\n[model_providers.corp]\n' + "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in table.items()
    )
    where = place({"OPENAI_API_KEY": "k"})
    (where.home / ".codex").mkdir()
    (where.home / ".codex" / "config.toml").write_text(toml)
    _, at = ready("codex", where)
    assert "model_providers.corp.supports_websockets=false" in at.arguments


def test_opencode_gets_an_address_for_each_provider_of_its_own(place):
    config = '{"provider": {"fake": {"options": {"baseURL": "{env:URL}/v1"}}}, /* x */ "a": 1,}'
    where = place({"URL": "https://fake.example"}, work__opencode_DOT_json=config)
    setup, at = ready("opencode", where)
    urls = {upstream.name: upstream.url for upstream in setup.upstreams}
    assert urls["fake"] == "https://fake.example/v1"
    assert urls["anthropic"] == "https://api.anthropic.com/v1"
    told = json.loads(at.env["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert told["fake"]["options"] == {"baseURL": "http://127.0.0.1:9/to/fake"}


def test_kilo_reads_opencode_s_files_and_its_own_and_its_gateway_is_left_alone(place):
    mine = {"provider": {"mine": {"options": {"baseURL": "https://mine.example/v1"}}}}
    other = {"provider": {"other": {"options": {"baseURL": "https://other.example/v1"}}}}
    where = place(work__opencode_DOT_json=other, work___DOT_kilo__kilo_DOT_json=mine)
    setup, at = ready("kilo", where)
    urls = {upstream.name: upstream.url for upstream in setup.upstreams}
    assert urls["mine"] == "https://mine.example/v1"
    assert urls["other"] == "https://other.example/v1"
    assert "kilo" not in urls
    told = json.loads(at.env["KILO_CONFIG_CONTENT"])["provider"]
    assert told["mine"]["options"] == {"baseURL": "http://127.0.0.1:9/to/mine"}


def test_pi_gets_an_extension_that_gives_each_provider_its_address(place):
    own = {"providers": {"openai": {"baseUrl": "https://llm.corp/v1"},
                         "corp": {"baseUrl": "https://corp.example"}}}  # fmt: skip
    setup, at = ready("pi", place(_DOT_pi__agent__models_DOT_json=own))
    urls = {upstream.name: upstream.url for upstream in setup.upstreams}
    assert urls["openai"] == "https://llm.corp/v1"
    assert urls["anthropic"] == "https://api.anthropic.com"
    addresses = json.loads(at.env["TRIMTAB_PI"])
    assert addresses["corp"] == "http://127.0.0.1:9/to/corp"
    option, extension = at.arguments
    assert option == "--extension"
    assert "registerProvider" in Path(extension).read_text()


def cline_file(chosen, **providers):
    entries = {name.replace("_", "-"): {"settings": {"provider": name, **settings},
                                        "updatedAt": "2026-11-28T00:00:00.000Z"}
               for name, settings in providers.items()}  # fmt: skip
    return {"version": 1, "lastUsedProvider": chosen, "providers": entries}


def test_cline_gets_a_copy_of_its_providers_with_other_addresses_and_without_logins(place):
    saved = cline_file(
        "openai-compatible", openai_compatible={"baseUrl": "https://llm.corp/v1", "apiKey": "k"},
        openai_codex={"auth": {"refreshToken": "r"}},
    )  # fmt: skip
    setup, at = ready("cline", place(_DOT_cline__data__settings__providers_DOT_json=saved))
    urls = {upstream.name: upstream.url for upstream in setup.upstreams}
    assert urls["openai-compatible"] == "https://llm.corp/v1"
    told = json.loads(at.files["CLINE_PROVIDER_SETTINGS_PATH"])
    settings = told["providers"]["openai-compatible"]["settings"]
    assert settings["baseUrl"] == "http://127.0.0.1:9/to/openai-compatible"
    assert settings["apiKey"] == "k"
    assert "openai-codex" not in told["providers"]
    assert told["lastUsedProvider"] == "openai-compatible"
    attached = setup.attached("http://127.0.0.1:9")
    told = json.loads(attached.files["CLINE_PROVIDER_SETTINGS_PATH"])
    assert told["providers"]["anthropic"]["settings"]["baseUrl"] == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("chosen", "arguments"), [("", ()), ("cline", ()), ("anthropic", ("-P", "openai-codex"))]
)
def test_cline_s_own_login_cannot_go_through(chosen, arguments, place):
    saved = cline_file(chosen, anthropic={"apiKey": "k"}, openai_codex={"auth": {}, "x": 1})
    saved["providers"]["openai-codex"]["settings"]["auth"] = {"refreshToken": "r"}
    file = {"_DOT_cline__data__settings__providers_DOT_json": saved}
    setup, _ = ready("cline", place(arguments=arguments, **file))
    assert setup.problem.startswith("cline: ")
    assert "cline auth anthropic -k KEY" in setup.problem


def test_copilot_needs_a_provider_of_its_user_s_and_takes_no_websocket(place):
    setup, _ = ready("copilot", place())
    assert "set COPILOT_PROVIDER_BASE_URL" in setup.problem
    given = {"COPILOT_PROVIDER_BASE_URL": "https://llm.corp/v1"}
    setup, at = ready("copilot", place(given))
    assert setup.upstreams[0].url == "https://llm.corp/v1"
    assert at.env == {"COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9/to/copilot"}
    _, at = ready("copilot", place({**given, "COPILOT_PROVIDER_TRANSPORT": "websockets"}))
    assert at.env["COPILOT_PROVIDER_TRANSPORT"] == "http"


@pytest.mark.parametrize(
    ("name", "file", "content", "says"),
    [
        ("gemini", "_DOT_gemini__settings_DOT_json",
         {"security": {"auth": {"selectedType": "oauth-personal"}}}, "set GEMINI_API_KEY"),
        ("qwen", "_DOT_qwen__settings_DOT_json",
         {"security": {"auth": {"selectedType": "qwen-oauth"}}}, "set OPENAI_API_KEY"),
    ],
)  # fmt: skip
def test_a_login_that_cannot_go_through_is_one_line_with_what_to_do(
    name, file, content, says, place
):
    setup, _ = ready(name, place(**{file: content}))
    assert says in setup.problem
    assert "\n" not in setup.problem
    assert ready(name, LaunchContext({}, Path("/nowhere"), Path("/nowhere")))[0].problem == ""


def test_claude_on_a_cloud_of_its_own_is_told_so(place):
    setup, _ = ready("claude", place({"CLAUDE_CODE_USE_BEDROCK": "1"}))
    assert "ANTHROPIC_API_KEY" in setup.problem
    assert ready("claude", place({"CLAUDE_CODE_USE_BEDROCK": "0"}))[0].problem == ""


def test_any_other_program_gets_the_variables_that_sdks_read(place):
    setup, at = ready("my-agent", place({"OPENAI_BASE_URL": "http://127.0.0.1:8/v1"}))
    assert at.env["OPENAI_BASE_URL"] == at.env["OPENAI_API_BASE"] == "http://127.0.0.1:9/to/openai"
    assert {u.name: u.url for u in setup.upstreams}["openai"] == "http://127.0.0.1:8/v1"
    assert at.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/to/anthropic"


COMPACTS_AT = {"claude": 0.83, "codex": 0.9, "opencode": 1.0, "gemini": 0.5, "qwen": 0.7,
               "kilo": 1.0, "pi": 0.9, "cline": 0.9, "copilot": 0.8}  # fmt: skip
"""Share of the window at which each agent compacts by itself, by its own documentation; opencode's
is one of the window less what is kept for the answer."""


@pytest.mark.row("X13")
def test_each_agent_s_trigger_is_below_the_share_at_which_it_compacts_by_itself():
    for name, share in COMPACTS_AT.items():
        assert AGENTS[name].trigger < share, name
    page = (ROOT / "docs" / "howto" / "agents.md").read_text()
    for name in COMPACTS_AT:
        agent = AGENTS[name]
        of = " of the whole window" if agent.of_window else ""
        assert f"| {name} | {agent.trigger:.0%}{of} |" in page


def test_help_and_pages_name_every_agent_and_the_page_how_each_is_installed(aider):
    _, out, _ = said_by(aider, "run", "--help")
    short = (ROOT / "docs" / "start" / "coding-agent.md").read_text()
    long = (ROOT / "docs" / "howto" / "agents.md").read_text()
    for name, agent in AGENTS.items():
        assert re.search(rf"\b{name}\b", out), name
        assert f"| {name} | {agent.trigger:.0%}" in long, name
        assert f"| `trimtab run {name}` | `{agent.install}` |" in short, name


def begins_at(name, window, **given):
    """Tokens at which a request of an agent's that asks for 32,000 tokens is first cut."""
    settings = ProxySettings(fit=DEFAULT_FIT | Settings(window=window, **given))
    own = _private(settings, AGENTS[name], Setup()).fit
    words = [{"role": "user", "content": "Begin."}]
    request = {"model": "qwen3", "max_tokens": 32_000, "messages": words}
    return fit(request, settings=own).report.limits["trigger_tokens"]


def qwen_begins_at(window, **given):
    return begins_at("qwen", window, **given)


@pytest.mark.parametrize("window", [128_000, 200_000, 272_000, 1_000_000])
def test_opencode_is_cut_before_what_it_keeps_for_the_answer_is_reached(window):
    """It compacts where prompt and answer come to the window less 32,000; of the rest a twentieth
    is left for the answer, and for a count that is not the provider's."""
    assert begins_at("opencode", window) < 0.95 * (window - 32_000)


@pytest.mark.parametrize(
    ("name", "own"), [("claude", 200_000), ("gemini", 256_000), ("qwen", 131_072)]
)
def test_a_window_that_ends_before_the_agent_compacts_is_used_up_to_nine_tenths(name, own):
    """They take every model to have at least so many tokens, whatever --window says."""
    trigger, small = AGENTS[name].trigger, int(own * AGENTS[name].trigger)
    assert begins_at(name, small) == int(0.9 * (small - min(32_000, small // 5)))
    assert AGENTS[name].begins(small) == 0.9
    assert trigger < AGENTS[name].begins(own - 10_000) < 0.9
    assert AGENTS[name].begins(own - 10_000) * (own - 10_000) == pytest.approx(trigger * own)
    assert AGENTS[name].begins(own) == AGENTS[name].begins(None) == trigger


def test_qwen_is_cut_at_a_share_of_the_whole_window_since_it_compacts_at_one():
    assert qwen_begins_at(200_000) == 130_000  # of 168,000; it would compact at 140,000
    assert qwen_begins_at(1_000_000) == 650_000  # of 968,000; it would compact at 700,000


def test_a_trigger_of_the_user_s_wins_over_that_of_the_agent():
    assert qwen_begins_at(100_000, trigger=0.5) == 40_000
    assert qwen_begins_at(100_000, window_trigger=0.5) == 50_000
    settings = ProxySettings(fit=Settings(window_trigger=0.5))
    assert _private(settings, AGENTS["claude"], Setup()).fit.trigger is None


def test_a_share_of_the_window_that_the_reserve_does_not_leave_ends_at_the_usual_trigger():
    assert qwen_begins_at(100_000, window_trigger=0.95) <= 0.95 * 80_000


# --- a program that stands for an agent ------------------------------------------------

SCRIPT = """
import json, os, sys, time, urllib.request
base = os.environ["OPENAI_API_BASE"]
messages = [{"role": "user", "content": "Go."}]
for n in range(int(sys.argv[1])):
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": f"c{n}",
         "content": "".join(f"line {i} of {n} is value_{i * 7919 % 1009 + n}\\n" for i in range(300))},
    ]
    body = json.dumps({"model": "gpt-5.1", "messages": messages}).encode()
    request = urllib.request.Request(base + "/chat/completions", body,
                                     {"content-type": "application/json"})
    print(urllib.request.urlopen(request).status)
if len(sys.argv) > 2:
    print("waiting", flush=True)
    time.sleep(20)
sys.exit(7)
"""  # noqa: E501


@pytest.fixture
def aider(tmp_path):
    """A program called aider on the path, and its environment."""
    program = tmp_path / "bin" / "aider"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{SCRIPT}")
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
           "HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
    env.pop("XDG_STATE_HOME", None)
    return env


def trimtab(env, *words, **more):
    command = [sys.executable, "-m", "trimtab", *words]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def test_an_agent_runs_behind_a_proxy_of_its_own_and_one_line_sums_up(aider, tmp_path):
    with StrictProvider([*["ok"] * 5, Refuse("overflow", limit=20_000)], window=30_000) as provider:
        env = {**aider, "OPENAI_API_BASE": f"{provider.url}/v1"}
        process = trimtab(env, "run", "--window", "30k", "aider", "9")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 7
    assert out == "200\n" * 9
    page, taught, err, back = err.splitlines(keepends=True)
    assert "so trimtab keeps to window 20,000 until" in taught
    assert page.startswith("trimtab: dashboard http://127.0.0.1:")
    assert err.startswith("trimtab: ")
    assert " tokens saved over 9 requests, " in err
    assert err.endswith("1 refusal hidden from the client\n"), "no table, no money"
    assert back == "trimtab: read a cut: trimtab recall; undo one: trimtab pin HANDLE\n"
    left = [p for p in (tmp_path / "home").rglob("*") if p.is_file()]
    assert {p.parent for p in left} == {tmp_path / "home" / ".local/state/trimtab"}
    assert all(p.stat().st_mode & 0o077 == 0 for p in left)


def test_a_file_for_the_agent_is_private_and_gone_when_it_has_ended(aider, tmp_path):
    program = tmp_path / "bin" / "cline"
    program.write_text(
        "#!/bin/sh\nstat -c %a $(dirname $CLINE_PROVIDER_SETTINGS_PATH)\n"
        "cat $CLINE_PROVIDER_SETTINGS_PATH; echo; echo $CLINE_PROVIDER_SETTINGS_PATH\n"
    )
    program.chmod(0o755)
    file = tmp_path / "home" / ".cline/data/settings/providers.json"
    file.parent.mkdir(parents=True)
    saved = json.dumps(cline_file("anthropic", anthropic={"apiKey": "k"}))
    file.write_text(saved)
    code, out, err = said_by(aider, "run", "--store", "memory:", "cline")
    mode, text, path = out.splitlines()
    assert (code, mode) == (0, "700"), err
    assert "/to/anthropic" in text
    assert not Path(path).exists()
    assert file.read_text() == saved


def test_a_signal_goes_to_the_agent_and_the_line_is_still_said(aider):
    with StrictProvider() as provider:
        env = {**aider, "OPENAI_API_BASE": f"{provider.url}/v1"}
        words = ("run", "--store", "memory:", "--window", "30k", "aider", "1", "wait")
        process = trimtab(env, *words)
        assert process.stdout.readline() == "200\n"
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - began < 15
    assert "over 1 request" in err


def test_a_window_in_which_nearly_every_turn_is_cut_is_warned_of_before_the_agent_starts(aider):
    claude = Path(aider["PATH"].split(os.pathsep)[0]) / "claude"
    claude.write_text(f"#!{sys.executable}\n")
    claude.chmod(0o755)
    for window, warned in (("60k", True), ("100k", False)):
        words = ("--store", "memory:", "--window", window, "claude")
        code, _, err = said_by(aider, "run", *words)
        assert code == 0
        assert ("warning: 60,000 tokens are little for claude: its" in err) is warned
        assert ("--window 100k or more" in err) is warned


def test_an_agent_that_is_not_installed_is_one_line_with_how_to_install_it(aider):
    process = trimtab({**aider, "PATH": "/nowhere"}, "run", "claude", "-p", "x")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 127
    assert err == ("trimtab: claude is not installed: npm install -g @anthropic-ai/claude-code\n")


def test_doctor_says_what_is_wrong_and_the_line_that_mends_it(aider, tmp_path):
    home = tmp_path / "home"
    (home / ".gemini").mkdir(parents=True)
    auth = {"security": {"auth": {"selectedType": "oauth-personal"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(auth))
    for name in ("gemini", "codex"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {**aider, "OPENAI_API_KEY": "sk"}
    env.pop("GEMINI_API_KEY", None)
    out, _ = (process := trimtab(env, "doctor")).communicate(timeout=30)
    assert process.returncode == 1
    assert "no  gemini\n" in out
    assert "set GEMINI_API_KEY" in out
    assert "ok  codex: trimtab run codex sends to https://api.openai.com/v1" in out
    assert "; starts to cut at " in out
    assert "ok  aider: " in out
    assert "--  claude: not installed\n      npm install -g @anthropic-ai/claude-code" in out


def test_the_example_of_the_settings_is_read_without_a_complaint():
    from trimtab.proxy import load

    found = load(ROOT / "examples" / "proxy" / "proxy.toml").checked()
    assert found.warnings == ()
    assert [upstream.name for upstream in found.upstreams[:2]] == ["local", "team-blue"]
    assert (found.max_bytes, found.upstreams[0].window) == (64_000_000, 32_000)


# --- what it says where it cannot ----------------------------------------------------------


def said_by(env, *words):
    process = trimtab(env, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_misspelt_agent_is_one_line_that_names_the_nearest(aider):
    code, _, err = said_by(aider, "run", "claud", "-p", "x")
    assert (code, err) == (127, "trimtab: claud is not installed; did you mean claude?\n")


def test_a_log_that_cannot_be_written_is_one_line_and_no_fault_of_ours(aider):
    code, _, err = said_by(aider, "run", "--log", "/nope/x", "aider", "1")
    assert code == 2
    assert err.strip().splitlines()[-1] == (
        "trimtab: --log /nope/x: No such file or directory: name a file in a folder that can be "
        "written"
    )


def test_a_store_that_cannot_be_written_is_said_before_the_agent_starts(aider, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with StrictProvider() as provider:
        env = {**aider, "XDG_STATE_HOME": str(tmp_path / "file"),
               "OPENAI_API_BASE": f"{provider.url}/v1"}  # fmt: skip
        code, out, err = said_by(env, "run", "--window", "30k", "aider", "1")
    assert (code, out) == (7, "200\n")
    assert "trimtab cannot be written: what is cut is kept in memory alone\n" in err


def test_another_upstream_takes_the_path_of_the_api_it_stands_for(aider):
    with StrictProvider() as provider:
        for url in (provider.url, f"{provider.url}/v1"):
            words = ("--store", "memory:", "--window", "30k", "--upstream", url, "aider", "1")
            code, out, err = said_by(aider, "run", *words)
            assert (code, out) == (7, "200\n"), err
        assert [record.path for record in provider.requests] == ["/v1/chat/completions"] * 2


def test_an_agent_can_be_attached_to_a_proxy_that_runs_already(aider):
    with StrictProvider() as provider, proxied(provider.url, window=30_000) as server:
        code, out, err = said_by(aider, "run", "--proxy", server.base, "aider", "2")
        assert (code, out, err) == (7, "200\n" * 2, "")
        assert settled(server).proxy.addons.records.activity.totals["turns"] == 2


def test_options_that_a_proxy_which_runs_does_not_take_are_named(aider):
    with StrictProvider() as provider, proxied(provider.url, window=30_000) as server:
        words = ("run", "--proxy", server.base, "--window", "50k", "--recall", "aider", "1")
        code, out, err = said_by(aider, *words)
        assert (code, out) == (7, "200\n")
    assert err == (
        "trimtab: --window and --recall are ignored: the settings of the proxy that runs hold\n"
    ) or err == (
        "trimtab: --recall and --window are ignored: the settings of the proxy that runs hold\n"
    )


def test_a_proxy_that_is_not_there_is_one_line_with_its_cause(aider):
    code, _, err = said_by(aider, "run", "--proxy", "http://127.0.0.1:1", "aider", "1")
    assert code == 2
    assert err == (
        "trimtab: cannot reach the proxy at http://127.0.0.1:1 (Connection refused): start it "
        "with trimtab proxy, or leave --proxy out\n"
    )


CREDENTIALS = {
    "claude": {".claude/.credentials.json": "{}"},
    "gemini": {".gemini/.env": "GEMINI_API_KEY=k"},
    "qwen": {".qwen/.env": "OPENAI_API_KEY=k"},
    "opencode": {".local/share/opencode/auth.json": "{}"},
    "kilo": {".local/share/kilo/auth.json": "{}"},
    "pi": {".pi/agent/auth.json": "{}"},
    "aider": {".aider.conf.yml": "openai-api-key: k"},
    "mini": {".config/mini-swe-agent/.env": "OPENAI_API_KEY=k"},
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_doctor_looks_for_a_key_or_a_login(name, tmp_path):
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    place = LaunchContext({"PATH": str(program.parent)}, tmp_path, tmp_path / "work")
    (found,) = [one for one in findings(place) if one.about.startswith(f"{name}: ")]
    assert (found.ok, found.about) == (False, f"{name}: no key and no login was found")
    for path, text in CREDENTIALS[name].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (found,) = [one for one in findings(place) if one.about.startswith(f"{name}: ")]
    assert found.ok


def test_totals_without_a_store_are_those_of_the_proxy_s_own(aider):
    code, _, err = said_by(aider, "status", "--total")
    assert code == 2
    with StrictProvider() as provider:
        env = {**aider, "OPENAI_API_BASE": f"{provider.url}/v1"}
        assert said_by(env, "run", "--window", "30k", "aider", "9")[0] == 7
        code, out, err = said_by(aider, "status", "--total")
    assert (code, err) == (0, "")
    assert out.startswith("1 conversation, 9 requests: ")
