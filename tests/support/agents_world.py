"""Coding agents against the strict provider, through ``trimtab run``.

Knows how each is started without a person, and which tool runs a shell.  TRIMTAB_AGENTS names a
folder with node_modules; ``.ci/world`` makes one.  What was installed otherwise is found on the
path.  Asserts nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from world_needs import absent

from trimtab_lab.testing import Answer, Call, Refuse, StrictProvider

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "Do the steps."
SECONDS = float(os.environ.get("TRIMTAB_AGENT_SECONDS", "240"))
MAX_REQUESTS = 80
"""An agent that loops is stopped by the provider."""


def aside(body: dict[str, Any]) -> str:
    """What the model says to a question beside the conversation: a title, or what a schema asks.

    Gemini CLI 0.61 asks after 30 turns whether it runs in circles, and repeats the question until
    the answer is JSON.
    """
    schema = body.get("generationConfig", {}).get("responseJsonSchema")
    if not schema:
        return "A title"
    kinds = {name: one.get("type") for name, one in schema["properties"].items()}
    return json.dumps({name: 0 if kind == "number" else "no" for name, kind in kinds.items()})


@dataclass
class Story:
    """What the model does: so many shell calls that print so many lines, then an end.

    ``refuse_at``: the request of the conversation that is refused as too long, once; ``fail_at``:
    the one that gets an error of the provider ``fail_times`` times.  Without a ``tool`` the model
    only speaks; ``final``: a command that ends the agent, where it needs one.
    """

    tool: str
    argument: str
    steps: int
    lines: int
    refuse_at: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    fail_at: int = 0
    fail_times: int = 1
    final: str = ""
    asked: int = 0
    refused: bool = False
    failed: int = 0

    def __call__(self, record: Any) -> Any:
        body = record.body if isinstance(record.body, dict) else {}
        if self.tool and (not body.get("tools") or self.tool not in json.dumps(body["tools"])):
            return Answer(aside(body))
        self.asked += 1
        if self.asked == self.fail_at and self.failed < self.fail_times:
            self.failed, self.asked = self.failed + 1, self.asked - 1
            return Refuse("server_error")
        if self.asked == self.refuse_at and not self.refused:
            self.refused, self.asked = True, self.asked - 1
            return Refuse("overflow", limit=record.tokens - 500)
        if self.asked > self.steps and self.final:
            return Answer("All done.", [Call(self.tool, {self.argument: self.final, **self.more})])
        if self.asked > self.steps or not self.tool:
            return Answer("All done: MARMALADE.")
        n = self.asked
        # No $(…): Gemini CLI refuses to run a command with a substitution.
        command = (
            f'seq {self.lines} | awk \'{{print "step {n} line " $1 " value " '
            f'($1*{n}*7919)%10007 " of a long listing"}}\''
        )
        return Answer(f"Step {n}.", [Call(self.tool, {self.argument: command, **self.more})])


@dataclass(frozen=True)
class Agent:
    """One agent: its tool, its words, its environment."""

    name: str
    tool: str
    argument: str
    words: tuple[str, ...]
    more: tuple[tuple[str, Any], ...] = ()
    final: str = ""
    again: tuple[str, ...] = ()
    """Words that take up its last session; () where it cannot."""
    max_chars: int = 40_000
    """Of a result that it sends whole; longer ones it cuts, or moves to a file, by itself."""


AGENTS = (
    Agent("claude", "Bash", "command",
          ("-p", PROMPT, "--allowedTools", "Bash", "--output-format", "json"),
          (("description", "list"),),
          again=("-c", "-p", PROMPT, "--allowedTools", "Bash", "--output-format", "json"),
          max_chars=30_000),
    Agent("codex", "exec_command", "cmd",
          ("exec", "-m", "gpt-5.1", "--skip-git-repo-check", "--sandbox", "danger-full-access",
           "--json", PROMPT),
          again=("exec", "-m", "gpt-5.1", "--skip-git-repo-check", "--sandbox",
                 "danger-full-access", "resume", "--last", "--json", PROMPT), max_chars=10_000),
    Agent("opencode", "bash", "command", ("run", PROMPT), (("description", "list"),),
          again=("run", "-c", PROMPT)),
    Agent("gemini", "run_shell_command", "command",
          ("-m", "gemini-2.5-pro", "-p", PROMPT, "--yolo", "--skip-trust"),
          again=("-m", "gemini-2.5-pro", "-r", "latest", "-p", PROMPT, "--yolo", "--skip-trust")),
    Agent("qwen", "run_shell_command", "command",
          ("-p", PROMPT, "--yolo", "--auth-type", "openai"), (("is_background", False),),
          again=("-c", "-p", PROMPT, "--yolo", "--auth-type", "openai"), max_chars=25_000),
    Agent("kilo", "bash", "command", ("run", "--auto", PROMPT), (("description", "list"),),
          again=("run", "--auto", "-c", PROMPT)),
    Agent("pi", "bash", "command", ("--model", "openai/gpt-5.1", "-p", PROMPT),
          again=("--model", "openai/gpt-5.1", "-c", "-p", PROMPT)),
    Agent("cline", "run_commands", "commands",
          ("-P", "anthropic", "-m", "claude-3-5-haiku-20241022", PROMPT)),
    Agent("copilot", "bash", "command", ("-p", PROMPT, "--allow-all-tools"),
          (("description", "list"),),
          again=("--continue", "-p", PROMPT, "--allow-all-tools")),
    Agent("mini", "bash", "command",
          ("-y", "--exit-immediately", "-l", "0", "-m", "openai/gpt-5.1", "-t", PROMPT),
          final="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo MARMALADE", max_chars=10_000),
    Agent("aider", "", "",
          ("--model", "openai/gpt-5.1", "--yes-always", "--no-check-update", "--no-gitignore",
           "--no-show-model-warnings", "--no-analytics", "--no-show-release-notes",
           "--message", PROMPT)),
)  # fmt: skip


def program(name: str) -> str:
    """The path of an agent."""
    folder = os.environ.get("TRIMTAB_AGENTS", "")
    own = f"{folder}/node_modules/.bin{os.pathsep}{os.environ['PATH']}" if folder else None
    found = shutil.which(name, path=own)
    if not found:
        absent(f"{name} is not installed: .ci/world does it, or npm install it and name its folder "
               "in TRIMTAB_AGENTS")  # fmt: skip
    return found


def environment(agent: Agent, home: Path, url: str) -> dict[str, str]:
    """A fresh home, a key, and the address that the user of the agent would have."""
    folder = str(Path(program(agent.name)).parent)
    env = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb",
           "LANG": "C.UTF-8", "IS_SANDBOX": "1", "PYTHONPATH": str(ROOT / "src")}  # fmt: skip
    env |= {name: os.environ[name] for name in ("TRIMTAB_STATUS",) if name in os.environ}
    match agent.name:
        case "claude":
            env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-fake",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000"}  # fmt: skip
        case "codex":
            env |= {"OPENAI_API_KEY": "sk-fake", "OPENAI_BASE_URL": f"{url}/v1"}
        case "opencode" | "kilo":
            own = agent.name.upper()
            env |= {f"{own}_DISABLE_AUTOUPDATE": "1", f"{own}_DISABLE_MODELS_FETCH": "1"}
            limit = {"context": 272_000, "output": 4_000}
            provider = {"npm": "@ai-sdk/openai-compatible", "models": {"gpt-5.1": {"limit": limit}},
                        "options": {"baseURL": f"{url}/v1", "apiKey": "k"}}  # fmt: skip
            settings = {"model": "fake/gpt-5.1", "provider": {"fake": provider},
                        "permission": {"bash": "allow"}, "snapshot": False}  # fmt: skip
            (home / "work" / f"{agent.name}.json").write_text(json.dumps(settings))
        case "gemini":
            env |= {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url}
            (home / ".gemini").mkdir(exist_ok=True)
            chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
            (home / ".gemini" / "settings.json").write_text(json.dumps(chosen))
        case "qwen":
            env |= {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1",
                    "OPENAI_MODEL": "qwen3-coder-plus"}  # fmt: skip
        case "pi":
            env |= {"OPENAI_API_KEY": "k", "PI_OFFLINE": "1"}
            (home / ".pi/agent").mkdir(parents=True, exist_ok=True)
            own = {"gpt-5.1": {"maxTokens": 4_000}}
            chosen = {"providers": {"openai": {"baseUrl": f"{url}/v1", "modelOverrides": own}}}
            (home / ".pi/agent/models.json").write_text(json.dumps(chosen))
        case "cline":
            settings = {"provider": "anthropic", "apiKey": "sk-ant-fake", "baseUrl": f"{url}/v1"}
            entry = {"settings": settings, "updatedAt": "2026-11-28T00:00:00.000Z",
                     "tokenSource": "manual"}  # fmt: skip
            (home / ".cline/data/settings").mkdir(parents=True, exist_ok=True)
            chosen = {"version": 1, "lastUsedProvider": "anthropic", "modes": {},
                      "providers": {"anthropic": entry}}  # fmt: skip
            (home / ".cline/data/settings/providers.json").write_text(json.dumps(chosen))
        case "copilot":
            env |= {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "k",
                    "COPILOT_MODEL": "gpt-5.1", "COPILOT_AUTO_UPDATE": "false",
                    "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "4000"}  # fmt: skip
        case "mini":
            env |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": f"{url}/v1",
                    "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors",
                    "LITELLM_LOCAL_MODEL_COST_MAP": "true"}  # fmt: skip
        case "aider":
            env |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": f"{url}/v1",
                    "LITELLM_LOCAL_MODEL_COST_MAP": "true"}  # fmt: skip
    return env


def run(
    agent: Agent, provider: StrictProvider, home: Path, *options: str, again: bool = False,
    bare: bool = False,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """One run of an agent through ``trimtab run``, in a repository of its own.

    ``again``: it takes up its last session; ``bare``: without ``trimtab run``.
    """
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    env = environment(agent, home, provider.url)
    words = agent.again if again else agent.words
    ours = [] if bare else [sys.executable, "-m", "trimtab", "run", *options]
    command = [*ours, program(agent.name) if bare else agent.name, *words]
    return subprocess.run(
        command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS,
    )  # fmt: skip


def traces(home: Path) -> set[str]:
    """Files below home that speak of the proxy."""
    found = set()
    for path in home.rglob("*"):
        if path.is_file() and path.stat().st_size < 2_000_000:
            data = path.read_bytes()
            if b"127.0.0.1" in data and b"/to/" in data:
                found.add(str(path.relative_to(home)))
    return found
