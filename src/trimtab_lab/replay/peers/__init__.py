"""Other libraries as policies, each in its own environment and process.

Their requirements conflict, so none is imported here; worker.py calls them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trimtab.errors import MissingExtra
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep
from trimtab_lab.replay.recording_index import RecordingIndex

ENVIRONMENTS = {
    "langchain": ("langchain", "langchain-core", "splintr-rs"),
    "litellm": ("litellm",),
    "headroom": ("headroom-ai",),
}
"""Name of an environment → the packages installed into it."""

WORKER = Path(__file__).with_name("worker.py")


def home() -> Path:
    """The folder of the environments: TRIMTAB_PEERS, else ``~/.cache/trimtab/peers``."""
    named = os.environ.get("TRIMTAB_PEERS")
    return Path(named) if named else Path.home() / ".cache" / "trimtab" / "peers"


def setup() -> Iterator[str]:
    """Create the missing environments; yields lines that describe the progress.

    If pip fails for one, the others are still created.  Raises MissingExtra at the end, naming
    those that failed; a second run tries them again.
    """
    failed = []
    for name, packages in ENVIRONMENTS.items():
        folder = home() / name
        if not all(_version(folder, package) for package in packages):
            yield f"{name}: installing {', '.join(packages)} into {folder}"
            said = _install(folder, packages)
            if said:
                failed.append(name)
                yield f"{name}: failed\n{said}"
                continue
        versions = ", ".join(f"{package} {_version(folder, package)}" for package in packages)
        yield f"{name}: {versions} in {folder}"
    if failed:
        raise MissingExtra(f"could not be installed: {', '.join(failed)}; what pip said is above")


def _install(folder: Path, packages: Sequence[str]) -> str:
    """Install the packages into an environment; return the end of pip's error, "" on success."""
    if not _python(folder).exists():
        venv.EnvBuilder(with_pip=True).create(folder)
    done = subprocess.run(
        [str(_python(folder)), "-m", "pip", "install", "-q", *packages],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr[-500:] or f"exit code {done.returncode}"


def _version(folder: Path, package: str) -> str:
    """The installed version of a package in an environment; "" if it is not installed."""
    stem = package.replace("-", "_")
    for packages in ("lib/python*/site-packages", "Lib/site-packages"):
        for dist_info in folder.glob(f"{packages}/{stem}-*.dist-info"):
            return dist_info.name.removesuffix(".dist-info").rpartition("-")[2]
    return ""


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


class _Peer:
    """One way to call one library.  Raises MissingExtra if its environment does not exist."""

    name = ""
    environment = ""
    package = ""
    format = "openai-chat"

    def __init__(self) -> None:
        self.python = _python(home() / self.environment)
        if not self.python.exists():
            raise MissingExtra(
                f"{self.name} needs its own environment: run trimtab replay --setup-peers"
            )
        self.call = self.name

    @property
    def version(self) -> str:
        """The library's installed version."""
        return _version(home() / self.environment, self.package) or "unknown"

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Start a process for this recording, so that recordings share no state."""
        return _Process([str(self.python), str(WORKER), self.call, str(window)]).step


class LangChainTrim(_Peer):
    """``langchain_core.messages.trim_messages``."""

    name, environment, package = "langchain-trim", "langchain", "langchain-core"


class LangChainClear(_Peer):
    """``langchain.agents.middleware.ClearToolUsesEdit``."""

    name, environment, package = "langchain-clear", "langchain", "langchain"


class LangChainSummarize(_Peer):
    """``langchain.agents.middleware.SummarizationMiddleware`` with a stub as its model."""

    name, environment, package = "langchain-summarize", "langchain", "langchain"


class LiteLLMTrim(_Peer):
    """``litellm.utils.trim_messages``."""

    name, environment, package = "litellm-trim", "litellm", "litellm"


class LiteLLMCompress(_Peer):
    """``litellm.compress``."""

    name, environment, package = "litellm-compress", "litellm", "litellm"


class Headroom(_Peer):
    """``headroom.compress``."""

    name, environment, package = "headroom", "headroom", "headroom-ai"


class _Process:
    """A worker process for one recording; it is killed when this object is deleted."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8",
        )  # fmt: skip
        self.sent = 0

    def step(self, body: dict[str, Any]) -> PolicyOutput:
        messages = body["messages"]
        # Lone surrogates cannot cross a pipe as UTF-8; json.dumps writes them as escapes.
        answer = self._ask({"add": messages[self.sent :]})
        self.sent = len(messages)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        kept = [messages[m] if isinstance(m, int) else m for m in answer["messages"]]
        return PolicyOutput(
            {**body, "messages": kept}, originals=answer.get("originals") or {},
            calls=[(asked, said) for asked, said in answer.get("calls") or ()],
            seconds=answer["seconds"],
        )  # fmt: skip

    def _ask(self, question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("its process has ended") from None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("its process has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __del__(self) -> None:
        self.process.kill()
        self.process.wait()
