"""Runs each framework's tool loop against the strict provider and prints a table.

    python tests/world/frameworks/table.py [NAME …] [--write]

Each framework gets an environment of its own under ``TRIMTAB_FRAMEWORKS`` (default
~/.cache/trimtab/frameworks), made at first use and kept.  The window is 8k, the loop outgrows it
several times, and nobody tells trimtab the window: one refusal, hidden from the framework, does.
``--write`` puts the table into docs/howto/frameworks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from trimtab_lab.testing import Answer, Call, StrictProvider

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs/howto/frameworks.md"
WINDOW = 8_000


@dataclass(frozen=True)
class Framework:
    """``packages`` to install, the first names the version; ``line``: what a user writes, as
    Markdown; ``way``: how trimtab comes in."""

    name: str
    title: str
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
    python: str = ""
    """The least Python that it runs on, where that is newer than ours."""
    turns: int = 20
    """Calls of the loop, 1,350 tokens each: what the framework allows by default."""


_PROXY = 'base_url=PROXY + "/v1"'
_NODE = '`createOpenAI({ baseURL: PROXY + "/v1" })`'

FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework(
            "pydantic_ai", "Pydantic AI", ("pydantic-ai-slim", "pydantic-ai-slim[openai]"),
            "`OpenAIProvider(openai_client=trimtab.wrap(AsyncOpenAI()))`",
        ),
        Framework(
            "openai_agents", "OpenAI Agents", ("openai-agents",),
            "`set_default_openai_client(trimtab.wrap(AsyncOpenAI()))`",
        ),
        Framework(
            "openai_agents_filter", "… its hook", ("openai-agents",),
            "`RunConfig(call_model_input_filter=trimtab.clients.call_model_input_filter(window=…))`",
            home="openai_agents",
        ),
        Framework(
            "strands", "Strands", ("strands-agents", "strands-agents[openai]"),
            "`OpenAIModel(client=trimtab.wrap(AsyncOpenAI()), …)`",
        ),
        Framework(
            "google_adk", "Google ADK", ("google-adk",),
            "`Gemini(model=…, client=trimtab.wrap(genai.Client)())`",
        ),
        Framework(
            "google_adk_plugin", "… its hook", ("google-adk",),
            "`InMemoryRunner(…, plugins=[trimtab.clients.adk_plugin(window=…)])`",
            home="google_adk",
        ),
        Framework(
            "llama_index", "LlamaIndex", ("llama-index-core", "llama-index-llms-openai"),
            "`OpenAI(openai_client=trimtab.wrap(OpenAI()), async_openai_client=…)`",
        ),
        Framework(
            "smolagents", "smolagents", ("smolagents", "smolagents[openai]"),
            "`model.client = trimtab.wrap(model.client)`", final="final_answer",
        ),
        Framework(
            "agent_framework", "Microsoft Agent Framework",
            ("agent-framework-core", "agent-framework-openai"),
            "`OpenAIChatCompletionClient(async_client=trimtab.wrap(AsyncOpenAI()))`", turns=30,
        ),
        Framework(
            "agent_framework_chained", "… its default, chained",
            ("agent-framework-core", "agent-framework-openai"),
            "`OpenAIChatClient(async_client=trimtab.wrap(AsyncOpenAI()))`", home="agent_framework",
            turns=30,
        ),
        Framework(
            "agno", "Agno", ("agno", "openai"), "`OpenAIChat(client=trimtab.wrap(OpenAI()))`",
            turns=30,
        ),
        Framework(
            "agno_chained", "… its Responses, chained", ("agno", "openai"),
            "`OpenAIResponses(client=trimtab.wrap(OpenAI()))`", home="agno", turns=30,
        ),
        Framework(
            "haystack", "Haystack", ("haystack-ai",),
            "`generator.client = trimtab.wrap(generator.client)`",
        ),
        Framework(
            "langchain", "LangChain", ("langchain", "langchain-openai", "langgraph"),
            "`create_agent(…, middleware=[TrimtabMiddleware()])` ([page](../langchain.md))",
        ),
        Framework(
            "deepagents", "deepagents", ("deepagents", "langchain-openai"),
            "`create_deep_agent(middleware=[TrimtabMiddleware()])`",
        ),
        Framework("crewai", "CrewAI", ("crewai",), f"`LLM({_PROXY})`", way="proxy"),
        Framework(
            "dspy", "DSPy", ("dspy",), '`dspy.LM(api_base=PROXY + "/v1")`', way="proxy",
            streams=False,
        ),
        Framework(
            "autogen", "AutoGen", ("autogen-agentchat", "autogen-ext[openai]"),
            f"`OpenAIChatCompletionClient({_PROXY})`", way="proxy",
        ),
        Framework(
            "openhands", "OpenHands SDK", ("openhands-sdk",), f"`LLM({_PROXY}, …)`", way="proxy",
            python="3.12",
        ),
        Framework(
            "claude_agent_sdk", "Claude Agent SDK", ("claude-agent-sdk",),
            '`ClaudeAgentOptions(env={"ANTHROPIC_BASE_URL": PROXY})`', way="proxy",
            tool="mcp__files__read_file",
        ),
        Framework(
            "ai_sdk", "AI SDK (TypeScript)", ("ai", "@ai-sdk/openai", "zod"), _NODE, way="proxy",
            npm=True,
        ),
        Framework(
            "mastra", "Mastra (TypeScript)", ("@mastra/core", "@ai-sdk/openai@2", "zod"), _NODE,
            way="proxy", npm=True,
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
    turns: int

    @property
    def works(self) -> bool:
        """The loop came to its end, and at most one refusal was needed to learn the window."""
        ends = (line.split()[-1:] for line in self.said.splitlines())  # some show progress there
        return ["done"] in ends and self.requests > self.turns and self.refused <= 1


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
        if not python.exists() and framework.python:
            subprocess.run([f"python{framework.python}", "-m", "venv", str(home)], check=True)
        elif not python.exists():
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
    """Its calls, then the end."""
    calls: list[Answer | str] = [
        Answer("", calls=[Call(framework.tool, {"path": f"/file_{number}"})])
        for number in range(framework.turns)
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
                 "HAYSTACK_TELEMETRY_ENABLED": "False", "AGNO_TELEMETRY": "false",
                 "LITELLM_LOCAL_MODEL_COST_MAP": "true"}  # fmt: skip
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
        framework.turns,
    )  # fmt: skip


def outcomes(names: list[str]) -> Iterator[Outcome]:
    """Each of these frameworks, plain and streaming."""
    for name in names:
        framework = FRAMEWORKS[name]
        for streams in (False, True)[: 1 + framework.streams]:
            yield run(framework, streams)


def rows(found: Sequence[Outcome]) -> Iterator[str]:
    """The table of docs/howto/frameworks.md: a row for each framework."""
    yield "| framework | version | line | plain | stream | refusals hidden from it |"
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(one.framework for one in found):
        framework = FRAMEWORKS[name]
        both = [one for one in found if one.framework == name]
        works = ["yes" if one.works else "NO" for one in both] + ["–"] * (2 - len(both))
        hidden = ", ".join(str(one.refused) for one in both)
        cells = [framework.title, both[0].version, framework.line, *works, hidden]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield f"Run on {date.today()}. `PROXY` is the address that `trimtab proxy` prints."


def write(table: str) -> None:
    """Put the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition("| framework | version |")
    rest = rest.partition("Run on ")[2].partition("\n")[2]
    PAGE.write_text(f"{head}{table}\n{rest}", encoding="utf-8")


def main() -> int:
    """Print the table; 1 where a framework does not work."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(FRAMEWORKS))
    parser.add_argument("--write", action="store_true", help="put it into the page")
    args = parser.parse_args()
    found = []
    for one in outcomes(args.names):
        found.append(one)
        print(f"{one.framework} {one.version} {one.mode}: {one.requests} requests taken, largest "
              f"{one.arrived:,}, {one.refused} refused", file=sys.stderr, flush=True)  # fmt: skip
        if not one.works:
            print(json.dumps(one.__dict__), file=sys.stderr)
    table = "\n".join(rows(found))
    print(table)
    if args.write:
        write(table)
    return int(not all(one.works for one in found))


if __name__ == "__main__":
    sys.exit(main())
