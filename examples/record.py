"""Records the example conversation: runs the calls of ``steps.py`` on a copy of ``tally``.

    python examples/record.py

Writes ``session.anthropic.json`` and ``session.openai.json`` beside itself: one conversation,
spelled as the body of a request of both providers.  Every tool result is what the command really
printed; scrubbed are paths, owners, memory addresses and durations, so that the same tools give
the same files.  Needs git and a Python with pytest.  Knows nothing of trimtab.

Nothing is written unless the whole story ran, and each command ended as it did before: with
``--changed`` for a story of which other commands fail now.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from steps import STEPS, SYSTEM, TOOLS, Call

HERE = Path(__file__).resolve().parent
HISTORY = [
    ("Parse access logs", ["README.md", "pyproject.toml", "tally/parse.py", "tally/clock.py"]),
    ("Report by hour", ["tally/__init__.py", "tally/report.py", "tools"]),
    ("Add the command line and CSV export", ["tally/__main__.py", "tally/export.py"]),
    ("Cover clock, parser and report with tests (T-4417 is open)", ["tests"]),
]
FAILED = "[exit status"
DATE = "2024-03-04T09:00:00+0000"


class Scratch:
    """A copy of tally in a temporary folder, with a history, and the five tools of the agent."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "tally"
        ignore = shutil.ignore_patterns("__pycache__", ".*_cache")
        shutil.copytree(HERE / "tally", self.project, ignore=ignore)
        person = {f"GIT_{who}_NAME": "Dev" for who in ("AUTHOR", "COMMITTER")}
        person |= {f"GIT_{who}_EMAIL": "dev@example.com" for who in ("AUTHOR", "COMMITTER")}
        person |= {f"GIT_{who}_DATE": DATE for who in ("AUTHOR", "COMMITTER")}
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "COLUMNS": "100",
            **person,
        }
        self.must("git --version")
        self.must("python -m pytest --version")
        self.must("git init -q -b main && printf 'logs/\\n' > .git/info/exclude")
        for subject, paths in HISTORY:
            self.must(f"git add {' '.join(paths)} && git commit -qm '{subject}'")
        self.must(f"find . -path ./.git -prune -o -exec touch -d {DATE} {{}} +")

    def must(self, command: str) -> None:
        """Run a command that has to succeed."""
        text = self.shell(command)
        if FAILED in text:
            raise SystemExit(f"nothing was recorded, {command!r} failed:\n{text}")

    def shell(self, command: str) -> str:
        """What a command printed, and its exit status when it is not 0."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        text = done.stdout.decode()
        return text if done.returncode == 0 else f"{text}\n{FAILED} {done.returncode}]"

    def call(self, name: str, given: dict[str, str]) -> str:
        """The result of one call of the agent, scrubbed."""
        return self.scrub(getattr(self, f"tool_{name}")(**given)) or "(no output)"

    def tool_bash(self, command: str) -> str:
        return self.shell(command)

    def tool_grep(self, pattern: str) -> str:
        return self.shell(f"grep -rnE --include='*.py' '{pattern}' . | sort")

    def tool_read_file(self, path: str) -> str:
        lines = (self.project / path).read_text().splitlines()
        return "\n".join(f"{number:5d}\t{line}" for number, line in enumerate(lines, 1))

    def tool_write_file(self, path: str, content: str) -> str:
        (self.project / path).write_text(content)
        return f"{path}: {len(content.splitlines())} lines written"

    def tool_edit_file(self, path: str, old: str, new: str) -> str:
        text = (self.project / path).read_text()
        if text.count(old) != 1:
            raise SystemExit(
                f"the story is out of step: {old!r} stands {text.count(old)}× in {path}"
            )
        (self.project / path).write_text(text.replace(old, new))
        return f"{path}: 1 place replaced"

    def scrub(self, text: str) -> str:
        """Take out what belongs to this machine or this moment."""
        text = text.replace(str(self.project), "/home/dev/tally")
        text = text.replace(str(self.project.parent), "/home/dev").replace(sys.prefix, "/usr")
        text = re.sub(r"0x[0-9a-f]{6,}", "0x7f0000000000", text)
        text = re.sub(r"\b(in|took) \d+\.\d+s", r"\1 0.40s", text)
        return re.sub(r"(?m)^[drwx-]{10} +\d+ \S+ \S+", lambda m: _owner(m[0]), text)


def _owner(listing: str) -> str:
    mode, links, *_ = listing.split()
    return f"{mode} {links} dev dev"


Turn = tuple[str, str, list[tuple[str, Call, str]]]
"""(speaker, text, [(call id, call, result)])."""


def record() -> list[Turn]:
    """Run every call of the story, in order."""
    turns: list[Turn] = []
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder).resolve())
        for speaker, text, calls in STEPS:
            ran = []
            for call in calls:
                number += 1
                ran.append((f"call_{number:04d}", call, scratch.call(*call)))
            turns.append((speaker, text, ran))
    return turns


def anthropic(turns: list[Turn]) -> dict[str, Any]:
    """The conversation as the body of a request to Anthropic's Messages API."""
    messages: list[dict[str, Any]] = []
    for speaker, text, ran in turns:
        said: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        said += [
            {"type": "tool_use", "id": key.replace("call", "toolu"), "name": name, "input": given}
            for key, (name, given), _ in ran
        ]
        messages.append({"role": speaker, "content": said if ran else text})
        if ran:
            results = [
                {"type": "tool_result", "tool_use_id": key.replace("call", "toolu"), "content": out}
                | ({"is_error": True} if FAILED in out[-20:] else {})
                for key, _, out in ran
            ]
            messages.append({"role": "user", "content": results})
    system = {"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 4096}
    return {**body, "system": [system], "tools": TOOLS, "messages": messages}


def openai(turns: list[Turn]) -> dict[str, Any]:
    """The conversation as the body of a request to OpenAI's Chat Completions API."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for speaker, text, ran in turns:
        message: dict[str, Any] = {"role": speaker, "content": text or None}
        if ran:
            message["tool_calls"] = [
                {
                    "id": key,
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for key, (name, given), _ in ran
            ]
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": key, "content": out} for key, _, out in ran]
    functions = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        }
        for tool in TOOLS
    ]
    body = {"model": "gpt-4.1", "max_completion_tokens": 4096}
    return {**body, "tools": functions, "messages": messages}


def outcomes(body: dict[str, Any]) -> list[str]:
    """Of each result in an OpenAI body: the exit status of a command that failed, or ""."""
    results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    return [out[out.rindex(FAILED) :] if FAILED in out[-20:] else "" for out in results]


def refuse_other_outcomes(body: dict[str, Any]) -> None:
    """Stop if a command ended otherwise than in the session that is there."""
    shipped = HERE / "session.openai.json"
    before = outcomes(json.loads(shipped.read_text(encoding="utf-8"))) if shipped.exists() else []
    pairs = enumerate(itertools.zip_longest(before, outcomes(body)), 1)
    other = [f"call {n}: {was or 'ok'} → {now or 'ok'}" for n, (was, now) in pairs if was != now]
    if before and other:
        raise SystemExit(
            "nothing was written, commands ended otherwise than before: "
            f"{'; '.join(other)}. If the story was changed: python examples/record.py --changed"
        )


def main() -> None:
    """Record once, then write both spellings."""
    turns = record()
    bodies = {"anthropic": anthropic(turns), "openai": openai(turns)}
    if "--changed" not in sys.argv[1:]:
        refuse_other_outcomes(bodies["openai"])
    for name, body in bodies.items():
        target, fresh = HERE / f"session.{name}.json", HERE / f"session.{name}.json.new"
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
        print(f"{target.name}: {len(text):,} chars")


if __name__ == "__main__":
    main()
