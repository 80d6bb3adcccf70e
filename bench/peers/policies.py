"""Other libraries as policies of ``trimtab replay``, each in its own environment and process.

    trimtab replay LOGS --policy trimtab,bench/peers/policies.py:LangChainClear

The environments are those of run.py, made on first use.  Their requirements conflict, so none is
imported here; worker.py calls them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

from trimtab.errors import MissingExtra
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep
from trimtab_lab.replay.recording_index import RecordingIndex

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import run  # noqa: E402
import worker  # noqa: E402

WORKER = HERE / "worker.py"


class _Peer:
    """One way to call one library.  Raises MissingExtra if it cannot be installed."""

    name = ""
    peer = ""
    """The name of its row in run.py."""
    format = "openai-chat"

    def __init__(self) -> None:
        row = next(one for one in run.PEERS if one.name == self.peer)
        if failed := run.install(row):
            raise MissingExtra(f"{self.name} cannot be installed: {failed}")
        self.python = run.python_of(row)
        self.version = run.version(row, row.packages[0])

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Start a process for this recording, so that recordings share no state."""
        return _Process([str(self.python), str(WORKER), self.name, str(window)]).step


class LangChainTrim(_Peer):
    """``langchain_core.messages.trim_messages``."""

    name, peer = "langchain-trim", "LangChain trim_messages"


class LangChainClear(_Peer):
    """``langchain.agents.middleware.ClearToolUsesEdit``."""

    name, peer = "langchain-clear", "LangChain ClearToolUsesEdit"


class LangChainSummarize(_Peer):
    """``langchain.agents.middleware.SummarizationMiddleware`` with a stub as its model."""

    name, peer = "langchain-summarize", "LangChain SummarizationMiddleware"


class LiteLLMTrim(_Peer):
    """``litellm.utils.trim_messages``."""

    name, peer = "litellm-trim", "LiteLLM trim_messages"


class LiteLLMCompress(_Peer):
    """``litellm.compress``."""

    name, peer = "litellm-compress", "LiteLLM compress"


class Headroom(_Peer):
    """``headroom.compress``."""

    name, peer = "headroom", "headroom compress"


class DeepAgents(_Peer):
    """deepagents' SummarizationMiddleware and PatchToolCalls, with a stub as its model."""

    name, peer = "deepagents", "deepagents summarization"


class StrandsSliding(_Peer):
    """``SlidingWindowConversationManager`` in an agent whose model refuses what is too long."""

    name, peer, format = "strands-sliding", "Strands sliding window", "bedrock"


class StrandsSummarizing(_Peer):
    """``SummarizingConversationManager`` in the same agent."""

    name, peer, format = "strands-summarizing", "Strands summarizing", "bedrock"


class OwnCompaction:
    """What coding agents do, simulated: at 90 % of the window the whole history becomes a summary,
    in a message of the user.  The summary is worker.SUMMARY; the call that writes it reads the
    history from the cache."""

    name, version, format = "own-compaction", "1", "openai-chat"

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """One recording."""
        sizes = [0, *accumulate(view.tokens for view in index.views)]
        head = sum(unit.tokens for unit in index.head)
        summary = {"role": "user", "content": worker.SUMMARY}
        written = worker.Count().text(worker.SUMMARY)
        first = 0

        def step(body: dict[str, Any]) -> PolicyOutput:
            nonlocal first
            messages, calls = body["messages"], []
            lead = next((n for n, m in enumerate(messages) if m["role"] != "system"), 0)
            size = head + sizes[len(messages)] - sizes[first] + (written if first else 0)
            if size > worker.TRIGGER * window and len(messages) > first + 1:
                first, calls = len(messages), [(size // 10, written)]
            kept = [*messages[:lead], summary, *messages[first:]] if first else messages
            return PolicyOutput({**body, "messages": kept}, calls=calls)

        return step


class _Process:
    """A worker process for one recording; it is killed when this object is deleted."""

    def __init__(self, command: list[str]) -> None:
        path = os.pathsep.join([str(run.ROOT / "src"), str(run.TARGETS)])
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        self.sent = 0

    def step(self, body: dict[str, Any]) -> PolicyOutput:
        messages = body["messages"]
        # Lone surrogates cannot cross a pipe as UTF-8; json.dumps writes them as escapes.
        head = {} if self.sent else {key: body[key] for key in body if key != "messages"}
        answer = self._ask({"add": messages[self.sent :], "head": head})
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
