"""Runs each framework's tool loop against the strict provider and prints a table.

    python tests/world/frameworks/table.py [NAME …]

Each framework gets an environment of its own under ``TRIMTAB_FRAMEWORKS`` (default
~/.cache/trimtab/frameworks), made at first use and kept.  The window is 8k, the loop outgrows it
several times, and nobody tells trimtab the window: one refusal, hidden from the framework, does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from trimtab.testing import Answer, Call, StrictProvider

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WINDOW, TURNS = 8_000, 20


@dataclass(frozen=True)
class Framework:
    """``packages`` to install, the first names the version; ``way``: how trimtab comes in."""

    name: str
    packages: tuple[str, ...]
    line: str
    way: str = "wrap"
    streams: bool = True
    tool: str = "read_file"
    final: str = ""
    """A tool that ends the run, where the framework asks for one."""
    npm: bool = False
    home: str = ""
    """Whose environment it runs in, where it is not its own."""


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework(
            "pydantic_ai", ("pydantic-ai-slim", "pydantic-ai-slim[openai]"),
            "OpenAIProvider(openai_client=trimtab.wrap(AsyncOpenAI()))",
        ),
        Framework(
            "openai_agents", ("openai-agents",),
            "set_default_openai_client(trimtab.wrap(AsyncOpenAI()))",
        ),
        Framework(
            "strands", ("strands-agents", "strands-agents[openai]"),
            "OpenAIModel(client=trimtab.wrap(AsyncOpenAI()), …)",
        ),
        Framework(
            "google_adk", ("google-adk",),
            "Gemini(model=…, client=trimtab.wrap(genai.Client)())",
        ),
        Framework(
            "llama_index", ("llama-index-core", "llama-index-llms-openai"),
            "OpenAI(openai_client=trimtab.wrap(OpenAI()), async_openai_client=…)",
        ),
        Framework(
            "smolagents", ("smolagents", "smolagents[openai]"),
            "model.client = trimtab.wrap(model.client)", final="final_answer",
        ),
        Framework(
            "agent_framework", ("agent-framework-core", "agent-framework-openai"),
            "OpenAIChatCompletionClient(async_client=trimtab.wrap(AsyncOpenAI()))",
        ),
        Framework(
            "agent_framework_chained", ("agent-framework-core", "agent-framework-openai"),
            "OpenAIChatClient(async_client=trimtab.wrap(AsyncOpenAI()))", home="agent_framework",
        ),
        Framework("agno", ("agno", "openai"), "OpenAIChat(client=trimtab.wrap(OpenAI()))"),
        Framework(
            "agno_chained", ("agno", "openai"), "OpenAIResponses(client=trimtab.wrap(OpenAI()))",
            home="agno",
        ),
        Framework(
            "haystack", ("haystack-ai",), "generator.client = trimtab.wrap(generator.client)"
        ),
        Framework(
            "langchain", ("langchain", "langchain-openai", "langgraph"),
            "create_agent(…, middleware=[TrimtabMiddleware()])",
        ),
        Framework(
            "deepagents", ("deepagents", "langchain-openai"),
            "create_deep_agent(middleware=[TrimtabMiddleware()])",
        ),
        Framework("crewai", ("crewai",), "LLM(base_url=PROXY + \"/v1\")", way="proxy"),
        Framework("dspy", ("dspy",), "LM(api_base=PROXY + \"/v1\")", way="proxy", streams=False),
        Framework(
            "autogen", ("autogen-agentchat", "autogen-ext[openai]"),
            "OpenAIChatCompletionClient(base_url=PROXY + \"/v1\")", way="proxy",
        ),
        Framework(
            "ai_sdk", ("ai", "@ai-sdk/openai", "zod"),
            "createOpenAI({ baseURL: PROXY + \"/v1\" })", way="proxy", npm=True,
        ),
        Framework(
            "mastra", ("@mastra/core", "@ai-sdk/openai@2", "zod"),
            "createOpenAI({ baseURL: PROXY + \"/v1\" })", way="proxy", npm=True,
        ),
        Framework(
            "openai_agents_filter", ("openai-agents",),
            "RunConfig(call_model_input_filter=trimtab.clients.call_model_input_filter(window=…))",
            home="openai_agents",
        ),
        Framework(
            "google_adk_plugin", ("google-adk",),
            "InMemoryRunner(…, plugins=[trimtab.clients.adk_plugin(window=…)])", home="google_adk",
        ),
        Framework(
            "claude_agent_sdk", ("claude-agent-sdk",),
            "ClaudeAgentOptions(env={\"ANTHROPIC_BASE_URL\": PROXY})", way="proxy",
            tool="mcp__files__read_file",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What one run came to; ``refused`` are refusals that the provider gave."""

    framework: str
    version: str
    mode: str
    said: str
    requests: int
    refused: int
    arrived: int
    """Tokens of the largest request the provider took."""

    @property
    def works(self) -> bool:
        """The loop came to its end, and at most one refusal was needed to learn the window."""
        ends = (line.split()[-1:] for line in self.said.splitlines())  # some show progress there
        return ["done"] in ends and self.requests > TURNS and self.refused <= 1


def home_of(framework: Framework) -> Path:
    """Where its environment is kept."""
    home = os.environ.get("TRIMTAB_FRAMEWORKS") or "~/.cache/trimtab/frameworks"
    return Path(home).expanduser() / (framework.home or framework.name)


def command_of(framework: Framework) -> list[str]:
    """What runs its driver, in an environment that is made here if it is not there."""
    if not framework.npm:
        return [str(python_of(framework)), str(HERE / "drivers.py"), framework.name]
    home = home_of(framework)
    if not (home / "node_modules").exists():
        home.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", *framework.packages]
        subprocess.run(npm, check=True, cwd=home)
    driver = home / f"{framework.name}.mjs"  # beside its modules, where node looks for them
    driver.write_text((HERE / driver.name).read_text(encoding="utf-8"), encoding="utf-8")
    return ["node", str(driver)]


def python_of(framework: Framework) -> Path:
    """The framework's own Python, with trimtab in it."""
    home = home_of(framework)
    python, marker = home / "bin/python", home / "ready"
    if not marker.exists():
        if not python.exists():
            venv.create(home, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, *framework.packages, str(ROOT)], check=True)
        marker.touch()
    return python


def version_of(framework: Framework) -> str:
    """The installed version of its first package."""
    package = framework.packages[0]
    if framework.npm:
        manifest = home_of(framework) / "node_modules" / package / "package.json"
        return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    python = python_of(framework)
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or "?"


@contextmanager
def served(provider: StrictProvider, way: str) -> Iterator[str]:
    """The address that the framework is given."""
    if way == "wrap":
        yield provider.url
        return
    command = [sys.executable, "-m", "trimtab", "proxy", "--listen", "127.0.0.1:0", "--store",
               "memory:", "--upstream", provider.url]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            line = next(text for text in run.stderr if "http://127.0.0.1" in text)
            yield re.search(r"http://127\.0\.0\.1:\d+", line)[0]  # type: ignore[index]
        finally:
            run.terminate()


def script(framework: Framework) -> list[Answer | str]:
    """Twenty calls, then the end."""
    calls: list[Answer | str] = [
        Answer("", calls=[Call(framework.tool, {"path": f"/file_{number}"})])
        for number in range(TURNS)
    ]
    if framework.final:
        calls.append(Answer("", calls=[Call(framework.final, {"answer": "done"})]))
    return calls


def run(framework: Framework, streams: bool) -> Outcome:
    """One loop."""
    command = command_of(framework)
    with (
        StrictProvider(
            script(framework), window=WINDOW, answer="done", max_requests=80
        ) as provider,
        served(provider, framework.way) as url,
    ):
        quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true",
                 "HAYSTACK_TELEMETRY_ENABLED": "False", "AGNO_TELEMETRY": "false"}  # fmt: skip
        done = subprocess.run(
            [*command, url, *["stream"][: int(streams)]],
            capture_output=True, text=True, timeout=300,
            env={**os.environ, **quiet, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        refused = sum(bool(record.refusal) for record in provider.requests)  # also inside a stream
        taken = [record.tokens for record in provider.requests if not record.refusal]
    said = done.stdout.strip() or done.stderr.strip()[-1500:]
    return Outcome(
        framework.name, version_of(framework),
        "stream" if streams else "plain", said, len(taken), refused, max(taken, default=0),
    )  # fmt: skip


def rows(names: list[str]) -> Iterator[Outcome]:
    """Each of these frameworks, plain and streaming."""
    for name in names:
        framework = FRAMEWORKS[name]
        for streams in (False, True)[: 1 + framework.streams]:
            yield run(framework, streams)


def main() -> int:
    """Print the table; 1 where a row does not work."""
    print(f"{date.today()}: {TURNS} tool calls in a window of {WINDOW:,}, unknown to trimtab")
    print("| framework | version | mode | requests taken | refused, hidden | largest | works |")
    print("|---|---|---|---|---|---|---|")
    failed = []
    for row in rows(sys.argv[1:] or list(FRAMEWORKS)):
        print(f"| {row.framework} | {row.version} | {row.mode} | {row.requests} | {row.refused} "
              f"| {row.arrived:,} | {'yes' if row.works else 'NO'} |", flush=True)  # fmt: skip
        if not row.works:
            failed.append(row)
    for row in failed:
        print(json.dumps(row.__dict__), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
