"""A real model in the reader's place, through an OpenAI-compatible server.

Each question is one conversation: the request as the policy left it, the question, and as many
rounds of recall as the budget has.  It stops before the next question once the cap is reached.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from answerable import policies, reader, trial
from answerable.policies import Sent
from answerable.trial import Scored, Task
from answerable.worlds import Question, World, build

ASKED = "{question} Answer with the value alone; answer unknown where you cannot know it."
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds lines in all that was left out of this conversation.",
        "parameters": {
            "type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"],
        },
    },
}  # fmt: skip
TIMEOUT_SECONDS = 120


@dataclass
class Endpoint:
    """A server and what it costs; ``spent`` so far, in dollars."""

    url: str
    name: str
    cap: float
    price_in: float
    price_out: float
    seed: int = 0
    budget: int = reader.BUDGET
    spent: float = 0.0

    @classmethod
    def of(cls, args: argparse.Namespace) -> Endpoint:
        """What the options say."""
        return cls(
            args.model, args.name, args.cap, args.price_in, args.price_out, args.model_seed
        )  # fmt: skip

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The model's message.  Raises OSError where the server does not answer."""
        body = {**request, "model": self.name, "temperature": 0, "seed": self.seed}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("ANSWERABLE_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        url = f"{self.url.rstrip('/')}/chat/completions"
        sent = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(sent, timeout=TIMEOUT_SECONDS) as answer:
            tree = json.load(answer)
        usage = tree.get("usage") or {}
        self.spent += usage.get("prompt_tokens", 0) * self.price_in / 1e6
        self.spent += usage.get("completion_tokens", 0) * self.price_out / 1e6
        message: dict[str, Any] = tree["choices"][0]["message"]
        return message


def add_options(group: Any) -> None:
    """The options of a real model."""
    group.add_argument("--model", metavar="URL", help="of an OpenAI-compatible server, with /v1")
    group.add_argument("--name", default=policies.MODEL_NAME, help="the model's name there")
    group.add_argument("--cap", type=float, default=1.0, help="dollars; default 1")
    group.add_argument("--price-in", type=float, default=3.0, help="dollars for 1M tokens read")
    group.add_argument("--price-out", type=float, default=15.0, help="dollars for 1M written")
    group.add_argument("--model-seed", type=int, default=0)


def answer(sent: Sent, question: Question, endpoint: Endpoint, *, recall: bool) -> str:
    """What the model says, after at most the budget of recalls."""
    request = copy.deepcopy(sent.request)
    offered = sent.recaller if recall else None
    if offered is None:
        request["tools"] = [
            tool for tool in request["tools"] if tool["function"]["name"] != "recall"
        ]
    else:
        request["tools"].append(SEARCH)
    asked = ASKED.format(question=question.text)
    request["messages"].append({"role": "user", "content": asked})
    for used in range(endpoint.budget + 1):
        message = endpoint.ask(request)
        calls = message.get("tool_calls") or []
        if not calls or offered is None or used == endpoint.budget:
            return str(message.get("content") or "")
        request["messages"].append(message)
        for call in calls:
            result = {"role": "tool", "tool_call_id": call["id"], "content": _ran(offered, call)}
            request["messages"].append(result)
    return ""


def _ran(recaller: reader.Recaller, call: Mapping[str, Any]) -> str:
    try:
        given = json.loads(call["function"]["arguments"] or "{}")
    except ValueError:
        return "the arguments are no JSON"
    if call["function"]["name"] == "search":
        hits = recaller.search(str(given.get("words", "")))
        return "\n".join(f"{handle} {low}-{high}: {line}" for handle, low, high, line in hits)
    if call["function"]["name"] == "recall":
        return recaller.recall(given)
    return "this tool is not there any more"


def score(question: Question, said: str) -> str:
    """``right`` where the value stands in the answer as a word of its own, else ``wrong`` or
    ``none``."""
    if re.search(rf"(?<![\w.-]){re.escape(question.value)}(?![\w-])", said):
        return "right"
    return "none" if not said.strip() or "unknown" in said.lower() else "wrong"


def scores(tasks: Sequence[Task], endpoint: Endpoint) -> Iterator[tuple[Task, bool, Scored]]:
    """(task, with recall, score) of each question, until the cap is reached."""
    for task in tasks:
        world = build(task.seed, task.steps, task.tokens, task.each)
        sent = _last(world, policies.start(task.policy, world, task.window))
        for question in world.questions:
            for recall in (False, True) if sent.recaller else (False,):
                if endpoint.spent >= endpoint.cap:
                    return
                said = answer(sent, question, endpoint, recall=recall)
                yield task, recall, Scored(question, score(question, said))


def _last(world: World, step: policies.Step) -> Sent:
    """What is sent at the end, after all that was sent before."""
    sent = None
    for turn in world.turns:
        sent = step(world.messages[:turn])
    assert sent is not None, "a world has turns"
    return sent


def table(tasks: Sequence[Task], endpoint: Endpoint) -> str:
    """The shares with their intervals, and what was spent."""
    found: dict[tuple[int, str, bool], list[Scored]] = {}
    for task, recall, one in scores(tasks, endpoint):
        found.setdefault((task.window, task.policy, recall), []).append(one)
    rows = ["| window | policy | recall | questions | right | wrong |", "|---|---|---|---|---|---|"]
    for (window, policy, recall), own in found.items():
        low, high = trial.interval(own)
        rows.append(
            f"| {window:,} | {policies.SHOWN.get(policy, policy)} | {'yes' if recall else 'no'} "
            f"| {len(own)} | {trial.share(own):.0%} ({low:.0%}–{high:.0%}) "
            f"| {trial.share(own, 'wrong'):.0%} |"
        )
    stopped = "; stopped at the cap" if endpoint.spent >= endpoint.cap else ""
    rows.append(f"\nmodel {endpoint.name}, ${endpoint.spent:.2f} spent{stopped}")
    return "\n".join(rows)
