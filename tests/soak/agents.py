"""LangChain's agents in the soak: our middleware around the strict provider, thread after thread.

Each thread is asked several times; its tool gives rows, so that what reached the provider can be
judged without the agent's state.
"""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import anthropic
import httpx
import langchain_agents as lc
import openai
from judge_speakers import by_speaker
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from soak.clients import HANDLE, PATIENCE_SECONDS, WINDOW, Findings, Upstream
from soak.rows import marks, rows, wrong_original, wrong_rows
from soak.trial import problems
from trimtab.clients.langchain import TrimtabMiddleware
from trimtab_lab.testing.record import Record

ASKS = 6
AWAY = (openai.OpenAIError, anthropic.AnthropicError, httpx.HTTPError, json.JSONDecodeError)


class Agents(threading.Thread):
    """Agent after agent, until ``stop`` is set; ``store``: where every other one keeps its cuts,
    the others have them in their state."""

    def __init__(
        self, name: str, upstream: Upstream, store: str, found: Findings, stop: threading.Event
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.upstream, self.store, self.found, self.stop = upstream, store, found, stop
        self.rng = random.Random(name)
        self.calls, self.shown = 0, set[str]()

    def run(self) -> None:
        """Talk; an error of ours is a fault too."""
        number = 0
        try:
            while not self.stop.is_set():
                number += 1
                self.talk(f"{self.name}-{number}", list(lc.MODELS)[number % len(lc.MODELS)])
        except Exception as error:
            self.found.fault(f"{self.name}: {type(error).__name__}: {error}")

    def talk(self, name: str, model: str) -> None:
        """One thread of an agent."""

        @tool
        def bash(command: str) -> str:
            """Run a command."""
            self.calls += 1
            return rows(f"{name}.{self.calls}", self.rng.randint(20, 90))

        store = self.store if self.rng.random() < 0.5 else None
        persist = self.rng.random() < 0.5
        middleware = TrimtabMiddleware(
            window=WINDOW, recall=True, notes=True, store=store, persist=persist
        )
        # What is shortened in the state is shortened in what is taken out of it later, too.
        judge, owner = (wrong_rows, "") if persist else (wrong_original, name)
        agent = create_agent(
            lc.MODELS[model](f"{self.upstream.provider.url}/{name}"), [bash],
            middleware=[middleware], checkpointer=InMemorySaver(),
        )  # fmt: skip
        self.shown = set()
        for number in range(ASKS):
            asked: Any = {"messages": [("user", f"Go through the parts, {number}.")]}
            if not self.asked(agent, name, asked):
                break
        if store:
            self.found.left(store, owner, sorted(self.shown))
            return
        state = agent.get_state({"configurable": {"thread_id": name}}).values
        for handle in self.shown:
            self.found.count("handles recalled from an agent's state")
            for wrong in judge(middleware.recall(state, handle), name):
                self.found.fault(f"{name}, {handle} of its state: {wrong}")

    def asked(self, agent: Any, name: str, asked: Any) -> bool:
        """Whether the agent came to its end; what failed goes on from where it was."""
        answered = time.monotonic()
        config = {"recursion_limit": 400, "configurable": {"thread_id": name}}
        while not self.stop.is_set():
            try:
                agent.invoke(asked, config)
            except AWAY as error:
                self.found.count("not answered")
                answered = time.monotonic() if self.judged(name) else answered
                if time.monotonic() > answered + PATIENCE_SECONDS:
                    self.found.fault(f"{name}: no answer: {type(error).__name__}: {error}")
                    return False
                asked = None
                time.sleep(0.1)
            else:
                self.judged(name)
                return True
        return False

    def judged(self, name: str) -> bool:
        """All that reached the provider: legal, within the window, results told as results.
        Whether any was answered."""
        records = self.upstream.taken(name)
        for record in records:
            self.found.count(f"requests by LangChain, {record.format}")
            wrong = [*map(str, record.violations), *wrong_rows(json.dumps(record.body), name)]
            if record.refusal.startswith(("overflow", "rule:")):
                wrong.append(f"refused: {record.refusal}, {record.tokens} tokens")
            wrong += problems({"format": record.format, "model": record.model}, record.body)
            wrong += said_by_others(record)
            if wrong:
                self.found.fault(f"{name}, {record.format}: {wrong[0]}")
            self.shown.update(HANDLE.findall(json.dumps(record.body)))
        return any(record.status == 200 for record in records)


def said_by_others(record: Record) -> list[str]:
    """Rows of a tool that stand in the name of the user or of the model."""
    said = by_speaker(record.body)
    return [f"{who} never said {mark}" for who in ("user", "model") for mark in
            sorted(marks("\n".join(said[who])))]  # fmt: skip
