"""A real model in the reader's place, through an OpenAI-compatible server.

Each question is one conversation: the request as the policy left it, the question, and as many
rounds of recall as the budget has.  It stops before the next question once the cap is reached.
With a file of answers each is appended to it, and what it holds is not asked again.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asked.trial import sign_test

from answerable import policies, reader, trial
from answerable.policies import Sent
from answerable.tokens import count
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
TIMEOUT_SECONDS = 120.0
LATE = "late"
"""The score of a question whose answer did not come in time: not right, and asked again."""
RESAMPLES = 2_000


@dataclass
class Endpoint:
    """A server and what it costs; ``spent`` in dollars and ``read`` in its tokens so far.

    ``answers``: the file that keeps them.  ``paired``: sessions without tools, cut by each policy
    to as many tokens as trimtab:balanced sends.  ``longest``: tokens of an answer, 0 is any.
    """

    url: str
    name: str
    cap: float
    price_in: float
    price_out: float
    seed: int = 0
    budget: int = reader.BUDGET
    timeout: float = TIMEOUT_SECONDS
    longest: int = 0
    answers: Path | None = None
    paired: bool = False
    spent: float = 0.0
    read: int = 0

    @classmethod
    def of(cls, args: argparse.Namespace) -> Endpoint:
        """What the options say."""
        return cls(
            args.model, args.name, args.cap, args.price_in, args.price_out, args.model_seed,
            timeout=args.timeout, longest=args.longest, answers=args.answers, paired=args.paired,
        )  # fmt: skip

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The model's message.  Raises TimeoutError where it does not come in time, another
        OSError where the server does not answer."""
        body = {**request, "model": self.name, "temperature": 0, "seed": self.seed}
        if self.longest:
            body["max_tokens"] = self.longest
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("ANSWERABLE_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        url = f"{self.url.rstrip('/')}/chat/completions"
        sent = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(sent, timeout=self.timeout) as answer:
                tree = json.load(answer)
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise error.reason from error
            raise
        usage = tree.get("usage") or {}
        self.read += usage.get("prompt_tokens", 0)
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
    group.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS,
                       help="seconds for an answer; one that is late is told apart and counts as "
                       "not right")  # fmt: skip
    group.add_argument("--longest", type=int, default=0, help="tokens of an answer")
    group.add_argument("--answers", type=Path, metavar="FILE",
                       help="JSON lines: keeps answers, which are not asked again")  # fmt: skip
    group.add_argument("--paired", action="store_true",
                       help="no tools; all send as many tokens as trimtab:balanced")  # fmt: skip


def answer(sent: Sent, question: Question, endpoint: Endpoint, *, recall: bool) -> str:
    """What the model says, after at most the budget of recalls."""
    request = copy.deepcopy(sent.request)
    offered = sent.recaller if recall else None
    if offered is None:
        if "tools" in request:
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


@dataclass(frozen=True)
class Asked:
    """A question of a task, and what is sent for it."""

    task: Task
    question: Question
    recall: bool
    sent: Sent

    def key(self, endpoint: Endpoint) -> list[Any]:
        """What makes it the same question as one that was answered before."""
        task = self.task
        world = [task.seed, task.steps, task.tokens, task.each]
        return [endpoint.name, endpoint.seed, endpoint.paired, task.policy, task.window, world,
                self.recall, self.question.text]  # fmt: skip


@dataclass
class Kept:
    """Answers by their keys; each is a line of the file, if there is one."""

    file: Path | None
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path | None) -> Kept:
        """Those of a file.  Raises ValueError where a line is no JSON."""
        kept = cls(file)
        if file is not None and file.exists():
            for line in file.read_text("utf-8").splitlines():
                row = json.loads(line)
                kept.lines[json.dumps(row["key"])] = row
        return kept

    def add(self, row: dict[str, Any]) -> None:
        """One more, at once in the file."""
        self.lines[json.dumps(row["key"])] = row
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(f"{json.dumps(row)}\n")


def asked(tasks: Sequence[Task], endpoint: Endpoint) -> Iterator[Asked]:
    """All questions, world by world, so that what is stopped early has whole pairs."""
    for task in sorted(tasks, key=lambda one: (one.window, one.seed, one.steps)):
        world = build(task.seed, task.steps, task.tokens, task.each)
        alone = task.policy == policies.ALONE
        same = None if alone else sent_by(task, world, endpoint)
        for question in world.questions:
            sent = same or policies.fact_alone(world, question)
            for recall in (False, True) if sent.recaller else (False,):
                yield Asked(task, question, recall, sent)


def sent_by(task: Task, world: World, endpoint: Endpoint) -> Sent:
    """The last request of a policy."""
    last = policies.equal if endpoint.paired else policies.last
    return last(task.policy, world, task.window)


def answers(tasks: Sequence[Task], endpoint: Endpoint) -> Iterator[tuple[Asked, str | None]]:
    """(question, what the model said, None where it was late), until the cap is reached.

    What the file of answers holds is not asked; what it cost counts."""
    kept = Kept.read(endpoint.answers)
    endpoint.spent += sum(row["dollars"] for row in kept.lines.values())
    for one in asked(tasks, endpoint):
        key = one.key(endpoint)
        row = kept.lines.get(json.dumps(key))
        over = endpoint.spent >= endpoint.cap
        if row is None and over:
            return
        if row is None or (row["said"] is None and not over):
            row = _answered(one, key, endpoint)
            kept.add(row)
        yield one, row["said"]


def _answered(one: Asked, key: list[Any], endpoint: Endpoint) -> dict[str, Any]:
    spent, read = endpoint.spent, endpoint.read
    try:
        said = answer(one.sent, one.question, endpoint, recall=one.recall)
    except TimeoutError:
        said = None
    return {"key": key, "said": said, "dollars": endpoint.spent - spent,
            "read": endpoint.read - read}  # fmt: skip


def scores(tasks: Sequence[Task], endpoint: Endpoint) -> Iterator[tuple[Task, bool, Scored]]:
    """(task, with recall, score) of each question, until the cap is reached."""
    for one, said in answers(tasks, endpoint):
        scored = LATE if said is None else score(one.question, said)
        yield one.task, one.recall, Scored(one.question, scored)


def table(tasks: Sequence[Task], endpoint: Endpoint) -> str:
    """The shares with their intervals, and what was spent."""
    found: dict[tuple[int, str, bool], list[Scored]] = {}
    for task, recall, one in scores(tasks, endpoint):
        found.setdefault((task.window, task.policy, recall), []).append(one)
    rows = [
        "| window | policy | recall | questions | right | wrong | unknown | late |",
        f"|{'---|' * 8}",
    ]
    for (window, policy, recall), own in found.items():
        low, high = trial.interval(own)
        rows.append(
            f"| {window:,} | {policies.SHOWN.get(policy, policy)} | {'yes' if recall else 'no'} "
            f"| {len(own)} | {trial.share(own):.0%} ({low:.0%}–{high:.0%}) "
            f"| {trial.share(own, 'wrong'):.0%} | {trial.share(own, 'none'):.0%} "
            f"| {sum(one.score == LATE for one in own)} |"
        )
    stopped = "; stopped at the cap" if endpoint.spent >= endpoint.cap else ""
    rows.append(f"\nmodel {endpoint.name}, ${endpoint.spent:.2f} spent{stopped}")
    return "\n".join(rows)


# --- the same questions of every policy ---


@dataclass(frozen=True)
class Pair:
    """A question under one policy: whether its answer can be read in what was sent, by the program
    of ``reader``, and the score of what the model said; ``size``: tokens sent."""

    there: bool
    score: str
    size: int
    group: str


Pairs = dict[str, dict[tuple[int, int, str], Pair]]
"""Policy → (world's seed, its steps, question) → what became of it."""


def pairs(tasks: Sequence[Task], endpoint: Endpoint) -> Pairs:
    """What was answered under every policy; a question that one of them lacks is left out."""
    found: Pairs = {task.policy: {} for task in tasks}
    for one, said in answers(tasks, endpoint):
        alone = reader.read(one.sent.request, one.question, None).answer
        found[one.task.policy][one.task.seed, one.task.steps, one.question.text] = Pair(
            alone is not None and alone.value == one.question.value,
            LATE if said is None else score(one.question, said),
            count(one.sent.request), trial.group(one.question),
        )  # fmt: skip
    common = set.intersection(*(set(own) for own in found.values()))
    return {name: {key: own[key] for key in sorted(common)} for name, own in found.items()}


def paired_tables(tasks: Sequence[Task], endpoint: Endpoint) -> str:
    """How each policy did, and the first against each other one."""
    found = pairs(tasks, endpoint)
    first, *others = found
    rows = ["| sent | tokens | questions | the answer is there | right | wrong | unknown | late "
            f"| {' | '.join(f'right of {name}' for name in trial.GROUPS.values())} |",
            f"|{'---|' * (8 + len(trial.GROUPS))}"]  # fmt: skip
    rows += [_policy_row(name, list(own.values())) for name, own in found.items()]
    rows += ["", f"| {first} against | questions | only it right | only the other right "
             "| difference in points (95 %) | McNemar's p |", f"|{'---|' * 6}"]  # fmt: skip
    for name in others if found[first] else ():
        both = [(one.score == "right", found[name][key].score == "right")
                for key, one in found[first].items()]  # fmt: skip
        rows.append(_pair_row(name, both))
    rows.append(f"\nmodel {endpoint.name}, {len({key[0] for key in found[first]})} worlds")
    return "\n".join(rows)


def there(tasks: Sequence[Task], endpoint: Endpoint) -> str:
    """In how many questions the answer can be read in what each sends, by the program; no model."""
    rows = [f"| window | sent | tokens | {' | '.join(trial.GROUPS.values())} |",
            f"|{'---|' * (3 + len(trial.GROUPS))}"]  # fmt: skip
    found: dict[tuple[int, str], list[tuple[str, bool, int]]] = {}
    for one in asked(tasks, endpoint):
        alone = reader.read(one.sent.request, one.question, None).answer
        right = alone is not None and alone.value == one.question.value
        own = found.setdefault((one.task.window, one.task.policy), [])
        own.append((trial.group(one.question), right, count(one.sent.request)))
    for (window, name), own in found.items():
        groups = [[right for key, right, _ in own if key == group] for group in trial.GROUPS]
        size = sum(size for *_, size in own) / len(own)
        cells = " | ".join(f"{sum(one)} of {len(one)}" for one in groups)
        rows.append(f"| {window:,} | {policies.SHOWN.get(name, name)} | {size:,.0f} | {cells} |")
    return "\n".join(rows)


def _policy_row(name: str, own: Sequence[Pair]) -> str:
    n = len(own)
    right = [one for one in own if one.score == "right"]
    low, high = trial.wilson(len(right), n)
    counts = [sum(one.score == score for one in own) for score in ("wrong", "none", LATE)]
    groups = [
        f"{sum(one.group == key for one in right)} of {sum(one.group == key for one in own)}"
        for key in trial.GROUPS
    ]
    size = sum(one.size for one in own) / max(1, n)
    return (
        f"| {policies.SHOWN.get(name, name)} | {size:,.0f} | {n} | {sum(o.there for o in own)} "
        f"| {len(right)} ({low:.0%}–{high:.0%}) | {' | '.join(map(str, counts))} "
        f"| {' | '.join(groups)} |"
    )


def _pair_row(name: str, both: Sequence[tuple[bool, bool]]) -> str:
    ours, theirs = (sum(one and not two for one, two in both),
                    sum(two and not one for one, two in both))  # fmt: skip
    draw = random.Random(0)
    steps = [one - two for one, two in both]
    means = sorted(sum(draw.choices(steps, k=len(steps))) / len(steps) for _ in range(RESAMPLES))
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]
    return (
        f"| {policies.SHOWN.get(name, name)} | {len(both)} | {ours} | {theirs} "
        f"| {100 * sum(steps) / len(steps):+.0f} [{100 * low:+.0f}, {100 * high:+.0f}] "
        f"| {sign_test(both):.2f} |"
    )
