"""Every shell block of README and the docs runs in a reader's folder, or says here why it does not.

What serves is ended once it has printed its address.  Programs of others that a block starts are
stood in for by ones that do nothing.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import trimtab

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.S | re.M)
SERVES = ("trimtab proxy", "python -m trimtab.testing")
SECONDS = 60

NETWORK = "downloads packages"
MINUTES = "takes minutes: a page's figures, which scripts/benchmark.py compares"
NOT_RUN = {
    "python3 -m venv .venv && .venv/bin/pip install": "downloads packages: .ci/run runs it",
    "pip install 'trimtab[": NETWORK,
    "pip install openai": NETWORK,
    "trimtab conform messages:litellm": "LiteLLM has an environment of its own: .ci/world",
    "pytest --conform": "takes minutes: tests/lab/testing/test_conformance.py has its options",
    "python bench/answerable": MINUTES,
    "python bench/peers/run.py": MINUTES,
    "python bench/kits": MINUTES,
}
"""How a command begins, and why it is not run."""
VERDICTS = {
    "trimtab conform": 1,  # a property of the reader's function does not hold
    "trimtab bill sqlite:": 3,  # nobody has used this proxy
}
"""How a command begins that may end with another code than 0."""


def commands() -> list[tuple[Path, int, str]]:
    """(page, line, command) of each, a command that goes on in the next line being one."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            line = text[: block.start(1)].count("\n") + 1
            whole = re.sub(r"\\\n\s*", " ", block[1])
            found += [(page, line, one.strip()) for one in whole.splitlines() if one.strip()]
    return found


def why_not(command: str) -> str:
    return next((why for start, why in NOT_RUN.items() if command.startswith(start)), "")


RUN = [one for one in commands() if not why_not(one[2])]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What the pages take for granted: our examples, an agent's logs, a module of one's own."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for name, words in (
        ("trimtab", '-m trimtab "$@"'), ("python", '"$@"'), ("claude", '-c ""'),
    ):  # fmt: skip
        (bin / name).write_text(f"#!/bin/sh\nexec {sys.executable} {words}\n")
        (bin / name).chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package/context.py").write_text(
        "import trimtab\n\n\ndef shorten(request, window):\n"
        "    return trimtab.fit(request, window=window).request\n"
    )
    (tmp_path / "my_package/agents.py").write_text(
        "from trimtab.clients.langchain import TrimtabMiddleware\n\n\n"
        "def middleware(window):\n    return TrimtabMiddleware(window=window)\n"
    )
    (tmp_path / "script.json").write_text('["Hello."]')
    logs = tmp_path / ".claude/projects/mine"
    logs.mkdir(parents=True)
    (logs / "s1.jsonl").write_text("\n".join(map(json.dumps, log_lines())) + "\n")
    return tmp_path


def log_lines() -> list[dict[str, object]]:
    """A session of Claude Code with one call, and what it was billed."""
    usage = {"input_tokens": 900, "output_tokens": 30, "cache_read_input_tokens": 0,
             "cache_creation_input_tokens": 5_000,
             "cache_creation": {"ephemeral_5m_input_tokens": 5_000}}  # fmt: skip
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    told = [
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": [use], "usage": usage},
        {"role": "user",
         "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}], "usage": usage},
    ]  # fmt: skip
    return [
        {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "s1",
         "type": message["role"], "timestamp": f"2026-11-20T1{n}:00:00Z",
         "message": {**message, "model": "claude-opus-4-5", "id": f"m{n}"}}
        for n, message in enumerate(told)
    ]  # fmt: skip


def environment(place: Path) -> dict[str, str]:
    return {
        "PATH": f"{place}/bin{os.pathsep}{os.environ['PATH']}", "HOME": str(place),
        "PYTHONPATH": f"{ROOT}/src{os.pathsep}{place}", "TRIMTAB_PROXY_LISTEN": "127.0.0.1:0",
        "LANG": "C.UTF-8", "COLUMNS": "100",
    }  # fmt: skip


def ready(command: str, place: Path) -> str:
    """The command with what a reader puts in: a handle of his own; ports that are free here."""
    command = command.partition(" #")[0].strip()
    command = command.replace("--port 8080", f"--port {free_port()}")
    command = command.replace("127.0.0.1:4141", f"127.0.0.1:{free_port()}")
    if command.startswith("trimtab conform"):  # one case in place of sixty
        command += " --seed 8"
    if command.startswith("trimtab recall"):
        command = re.sub(r"recall \w+ ", f"recall {kept(place / 'kept.db')} ", command)
    if "/.local/state/trimtab/proxy.db" in command:
        kept(place / ".local/state/trimtab/proxy.db", tenant="anthropic/local")
    return command


def kept(file: Path, tenant: str = "default") -> str:
    """A store with one edit; its handle."""
    file.parent.mkdir(parents=True, exist_ok=True)
    function = {"name": "f", "arguments": "{}"}
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c",
         "content": " ".join(str(number * 7919) for number in range(3_000))},
    ]  # fmt: skip
    session = trimtab.Session(store=f"sqlite:///{file}", tenant=tenant, window=2_000)
    found = next(one.handle for one in session.fit(history).report.edits if one.handle)
    session.close()
    return found


def test_every_reason_not_to_run_one_is_needed():
    begun = [start for start in NOT_RUN if any(c.startswith(start) for _, _, c in commands())]
    assert begun == list(NOT_RUN)


@pytest.mark.skipif(os.name == "nt", reason="sh")
@pytest.mark.parametrize(
    ("page", "line", "command"), RUN,
    ids=[f"{page.relative_to(ROOT)}-{command[:40]}" for page, _, command in RUN],
)  # fmt: skip
def test_a_command_of_a_page_runs_as_it_is_printed(page, line, command, place):
    command, env = ready(command, place), environment(place)
    if not command.startswith(SERVES):
        done = subprocess.run(
            ["sh", "-c", command], cwd=place, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        verdict = next((n for start, n in VERDICTS.items() if command.startswith(start)), 0)
        assert done.returncode in (0, verdict), (
            f"{page}:{line}: {command}\n{done.stdout}{done.stderr}"
        )
        assert "Traceback" not in done.stderr
        return
    # The shell gives way to the program, so that the signal reaches it.
    with subprocess.Popen(
        ["sh", "-c", f"exec {command} 2>&1"], cwd=place, env=env, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        ending = threading.Timer(SECONDS, serving.kill)
        ending.start()
        said = next((text for text in serving.stdout if "http://127.0.0.1" in text), "")
        serving.send_signal(signal.SIGTERM)
        rest = serving.stdout.read()
        ending.cancel()
        assert said, f"{page}:{line}: {command}\n{rest}"
        assert serving.wait(SECONDS) in (0, -signal.SIGTERM), rest


def test_the_typescript_of_a_page_is_what_the_world_tier_runs():
    page = (ROOT / "docs/howto/frameworks.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^ *```ts\n(.*?)^ *```", page, re.S | re.M)
    driver = (ROOT / "tests/world/frameworks/ai_sdk.mjs").read_text(encoding="utf-8")
    imported, made = (line.strip() for line in block.splitlines())
    assert imported in driver
    made, _, use = made.partition("// ")
    there = made.strip().replace('"http://127.0.0.1:4141/v1"', "`${url}/v1`")
    assert there in driver.replace('apiKey: "k", ', "")
    assert use in driver
