"""Generated worlds: a long session of an agent with files, tickets, logs and tables, and questions.

A fact is said by someone (a tool, the user, the model) about an entity.  Some are said early and
never again, some change later, some are contradicted: the tool says one thing and the user another.
Of half of what tools say the agent names the entity once more, in the step after.
Every step has some of the noise that such tools give.  A tool's fact stands at a random place of
its result, among noise whose names and numbers are drawn from the same ranges; half of the failed
requests in logs are no error lines.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

TOOL, USER, MODEL = "tool", "user", "assistant"
NAMES = ["mia", "jonas", "petra", "okoro", "lin", "sasha", "ruben", "ines", "tomas", "yuki"]
SERVICES = ["billing", "ledger", "search", "media", "auth", "export", "queue", "notify"]
CONSTANTS = ["RETRY_LIMIT", "BATCH_SIZE", "TIMEOUT_MS", "MAX_WORKERS", "CACHE_SLOTS"]
HOST, HOSTS = "host-{}", (1_000, 99_999)
REQUEST, REQUESTS = "req-{}", (100_000, 999_999)
CODE, CODES = "E{}", (1_000, 9_999)
ERRORS = 0.5
"""Of the failed requests in logs: those on a line that is an error's."""
PROSE = """the request was handled by a worker that waits for its turn while other parts of the
service read from the index and write to the journal before they answer so a slow disk holds up more
than one of them and the order of what is written does not tell the order of what was asked"""
WORDS = PROSE.split()
CHARS_A_TOKEN, STEP_TOKENS = 2.9, 60
"""Of what is generated here, and what a step costs beside its results: measured; worlds come out
within a tenth of the size asked for."""


@dataclass(frozen=True)
class Question:
    """What is asked, of what kind, and the answer: ``value``, said last by ``speakers``.

    ``mentioned``: the agent named the entity once more in the step after.  ``subject``: a key of
    ``ASKED``.
    """

    text: str
    kind: str
    subject: str
    entity: str
    attribute: str
    value: str
    speakers: tuple[str, ...]
    mentioned: bool


@dataclass
class World:
    """A session in the chat format; ``turns``: before which messages the model was called."""

    name: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


TOOLS = {
    "read_file": "path", "edit_file": "path", "get_ticket": "id", "tail_log": "service",
    "query": "sql",
}  # fmt: skip
DECLARED = [
    {"type": "function", "function": {
        "name": name, "description": f"{name.replace('_', ' ')}.",
        "parameters": {"type": "object", "properties": {key: {"type": "string"}}}}}
    for name, key in TOOLS.items()
]  # fmt: skip


class _Facts:
    """What is true, and when it is to be said."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._used = draw, set[str]()

    def new(self, pattern: str, low: int, high: int) -> str:
        """An entity or value that is nowhere else in the world."""
        while True:
            one = pattern.format(self._draw.randint(low, high))
            if one not in self._used:
                self._used.add(one)
                return one

    def other(self, pattern: str, low: int, high: int) -> str:
        """For noise: one of the same make that no question is about."""
        while (one := pattern.format(self._draw.randint(low, high))) in self._used:
            pass
        return one

    def number(self) -> str:
        return self.new("{}", 1_000, 99_999)

    def date(self) -> str:
        while True:
            one = f"2027-{self._draw.randint(1, 12):02}-{self._draw.randint(1, 28):02}"
            if one not in self._used:
                self._used.add(one)
                return one

    def path(self) -> str:
        service, number = self._draw.choice(SERVICES), self._draw.randint(10, 9_999)
        path = f"src/{service}/part_{number}.py"
        return path if path not in self._used and not self._used.add(path) else self.path()

    def version(self) -> str:
        return f"v{self._draw.randint(1, 9)}.{self._draw.randint(0, 99)}.{self.number()}"

    def other_version(self) -> str:
        """A version that no question is about."""
        patch = self.other("{}", 1_000, 99_999)
        return f"v{self._draw.randint(1, 9)}.{self._draw.randint(0, 99)}.{patch}"


def build(seed: int, steps: int = 100, tokens: int = 150_000, each: int = 4) -> World:
    """A world of so many steps and about so many tokens; ``each``: facts of each sort.

    The same arguments give the same world.
    """
    draw = random.Random(f"{seed}/{steps}/{tokens}/{each}")
    world, facts = World(f"{steps} steps, seed {seed}"), _Facts(draw)
    plan = _plan(draw, facts, steps, each, world.questions)
    room = max(100, int((tokens / steps - STEP_TOKENS) * CHARS_A_TOKEN))
    world.messages += [
        {"role": "system", "content": "You keep the services of a small company running."},
        {"role": USER, "content": "Bring the services into order. I tell you more on the way."},
    ]  # fmt: skip
    for number in range(steps):
        said = plan.get(number, [])
        for text in (text for speaker, text in said if speaker == USER):
            world.messages.append({"role": USER, "content": text})
        _step(world, draw, facts, number, [one for one in said if one[0] != USER], room)
    world.messages.append({"role": USER, "content": "Good. I have a question now."})
    world.turns.append(len(world.messages))
    draw.shuffle(world.questions)
    return world


Plan = dict[int, list[tuple[str, Any]]]
"""Step → what is said in it: (speaker, words), or (tool, a line or a call with its result)."""


def _plan(
    draw: random.Random, facts: _Facts, steps: int, each: int, questions: list[Question]
) -> Plan:
    """Facts at their steps: first said in the first half, changed in the third quarter."""
    plan: Plan = {}
    early = lambda: draw.randrange(0, steps // 4)  # noqa: E731
    middle = lambda: draw.randrange(steps // 4, steps // 2)  # noqa: E731
    late = lambda: draw.randrange(steps // 2, steps * 3 // 4)  # noqa: E731

    def say(step: int, speaker: str, what: Any) -> None:
        plan.setdefault(step, []).append((speaker, what))

    def ask(kind: str, subject: str, entity: str, attribute: str, value: str, *who: str) -> None:
        text = ASKED[subject].format(entity=entity, attribute=attribute)
        mentioned = TOOL in who and draw.random() < 0.5
        if mentioned:
            first = min(step for step, said in plan.items() if entity in repr(said))
            say(first + 1, MODEL, f"I may have to come back to {entity}.")
        questions.append(Question(text, kind, subject, entity, attribute, value, who, mentioned))

    for changes in (False, True):
        kind = "changed" if changes else "early"
        for _ in range(each):
            path, name, value = facts.path(), draw.choice(CONSTANTS), facts.number()
            say(early(), TOOL, _file(path, name, value))
            if changes:
                old, value = value, facts.number()
                say(late(), TOOL, _edit(path, name, old, value))
            ask(kind, "constant", path, name, value, TOOL, MODEL)
            ticket, person = facts.new("OPS-{}", 1_000, 9_999), draw.choice(NAMES)
            say(early(), TOOL, _ticket(ticket, person, facts.date()))
            if changes:
                person = draw.choice([one for one in NAMES if one != person])
                say(late(), TOOL, _ticket(ticket, person, facts.date()))
            ask(kind, "assignee", ticket, "assignee", person, TOOL)
            host, version = facts.new(HOST, *HOSTS), facts.version()
            say(early(), TOOL, ("row", host, version))
            if changes:
                version = facts.version()
                say(late(), TOOL, ("row", host, version))
            ask(kind, "version", host, "version", version, TOOL)
    for _ in range(each):
        request, code = facts.new(REQUEST, *REQUESTS), facts.new(CODE, *CODES)
        say(early(), TOOL, ("line", request, code))
        ask("early", "code", request, "code", code, TOOL)
        ticket, due, told = facts.new("OPS-{}", 1_000, 9_999), facts.date(), facts.date()
        say(early(), TOOL, _ticket(ticket, draw.choice(NAMES), due))
        say(middle(), USER, f"The due date of {ticket} is {told}, whatever the ticket says.")
        ask("contradicted", "due", ticket, "due", due, TOOL)
        ask("contradicted", "told_due", ticket, "due", told, USER)
        project, freeze = facts.new("project-{}", 100, 999), facts.date()
        say(early(), USER, f"By the way, the freeze of {project} begins on {freeze}.")
        ask("user", "freeze", project, "freeze", freeze, USER)
        group, region = facts.new("group-{}", 100, 999), facts.new("region-{}", 100, 999)
        say(early(), USER, f"Never deploy {group} to {region}: a customer has its backups there.")
        ask("user", "forbidden", group, "region", region, USER)
        table, named = facts.new("table_{}", 100, 999), facts.new("mig-{}", 10_000, 99_999)
        say(early(), MODEL, f"I name the migration of {table} {named}.")
        ask("model", "named", table, "migration", named, MODEL)
    return plan


ASKED = {
    "constant": "What is {attribute} in {entity} now?",
    "assignee": "Who is {entity} assigned to, by its ticket?",
    "version": "Which version runs on {entity}, by the table?",
    "code": "With which code did {entity} end, by the log?",
    "due": "Which due date does the ticket {entity} itself give?",
    "told_due": "Which due date did the user give for {entity}?",
    "freeze": "When does the freeze of {entity} begin, as the user said?",
    "forbidden": "To which region did the user forbid to deploy {entity}?",
    "named": "How did the assistant name the migration of {entity}?",
}


# --- what tools say ---


def _file(path: str, name: str, value: str) -> tuple[str, dict[str, str], str]:
    return "read_file", {"path": path}, f"{name} = {value}"


def _edit(path: str, name: str, old: str, new: str) -> tuple[str, dict[str, str], str]:
    given = {"path": path, "old": f"{name} = {old}", "new": f"{name} = {new}"}
    return "edit_file", given, f"edited {path}\n-{name} = {old}\n+{name} = {new}"


def _ticket(id: str, assignee: str, due: str) -> tuple[str, dict[str, str], dict[str, str]]:
    return "get_ticket", {"id": id}, {"id": id, "assignee": assignee, "due": due}


def _step(
    world: World, draw: random.Random, facts: _Facts, number: int, said: list[Any], room: int
) -> None:
    """One step, with a call for each thing a tool is to say; at least one."""
    words = [what for speaker, what in said if speaker == MODEL]
    rows = [what for speaker, what in said if speaker == TOOL and what[0] in ("row", "line")]
    calls = [what for speaker, what in said if speaker == TOOL and what[0] not in ("row", "line")]
    made: list[tuple[str, dict[str, str], str]] = []
    share = room // max(1, len(calls) + len({row[0] for row in rows}))
    for tool, given, told in calls:
        made.append((tool, given, _result(draw, facts, tool, told, share)))
    for sort in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == sort]
        made.append(_table(draw, facts, own, share) if sort == "row" else
                    _log(draw, facts, own, share))  # fmt: skip
    if not made:
        made.append(_noise(draw, facts, room))
    for index, (tool, given, result) in enumerate(made):
        id = f"call_{number}_{index}"
        text = " ".join(words) or f"Next I look at {draw.choice(SERVICES)}."
        words = []
        call = {"id": id, "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given)}}  # fmt: skip
        world.turns.append(len(world.messages))
        world.messages += [
            {"role": MODEL, "content": text, "tool_calls": [call]},
            {"role": TOOL, "tool_call_id": id, "content": result},
        ]


def _noise(draw: random.Random, facts: _Facts, room: int) -> tuple[str, dict[str, str], str]:
    kind = draw.randrange(4)
    if kind == 0:
        tool, given, told = _file(facts.path(), draw.choice(CONSTANTS), facts.number())
        return tool, given, _result(draw, facts, tool, told, room)
    if kind == 1:
        told = _ticket(facts.new("OPS-{}", 1_000, 9_999), draw.choice(NAMES), facts.date())[2]
        return "get_ticket", {"id": told["id"]}, _result(draw, facts, "get_ticket", told, room)
    return (_table if kind == 2 else _log)(draw, facts, [], room)


def _prose(draw: random.Random, words: int) -> str:
    start = draw.randrange(len(WORDS))
    return " ".join(WORDS[(start + n * draw.choice((1, 1, 2))) % len(WORDS)] for n in range(words))


def _result(draw: random.Random, facts: _Facts, tool: str, told: Any, room: int) -> str:
    if tool == "edit_file":
        return str(told)
    if tool == "get_ticket":
        return _ticket_text(draw, told, room)
    blocks: list[str] = []
    while sum(map(len, blocks)) < room:
        name = f"{draw.choice(SERVICES)}_{draw.choice(WORDS)}"
        blocks.append(
            f'def {name}(one, other):\n    """{_prose(draw, 8)}."""\n'
            f"    if one > {draw.randrange(100)}:\n        return other.{draw.choice(WORDS)}\n"
            f"    return {name}(one + {draw.randrange(10)}, other)\n"
        )
    blocks.insert(draw.randint(0, len(blocks)), f"{told}\n")
    return "\n".join(['"""Settings of a part of the service."""\n', *blocks])


def _ticket_text(draw: random.Random, told: dict[str, str], room: int) -> str:
    """A ticket as JSON: its short members stand anywhere between its long lists."""
    lists: dict[str, list[dict[str, str]]] = {name: [] for name in ("comments", "history", "links")}
    while len(json.dumps(lists)) < room:
        entry = {"by": draw.choice(NAMES), "text": _prose(draw, 30)}
        lists[draw.choice(list(lists))].append(entry)
    members: list[tuple[str, Any]] = [*told.items(), ("title", _prose(draw, 6)), *lists.items()]
    draw.shuffle(members)
    return json.dumps(dict(members), indent=1)


def _table(
    draw: random.Random, facts: _Facts, rows: list[Any], room: int
) -> tuple[str, dict[str, str], str]:
    """Hosts with their versions: those asked for stand among others of the same make."""
    lines = [f"| {host} | {draw.choice(SERVICES)} | {draw.randrange(99)} % | {version} |"
             for _, host, version in rows]  # fmt: skip
    while sum(map(len, lines)) < room:
        host, version = facts.other(HOST, *HOSTS), facts.other_version()
        lines.append(f"| {host} | {draw.choice(SERVICES)} | {draw.randrange(99)} % | {version} |")
    draw.shuffle(lines)
    given = {"sql": f"select host, service, load, version from hosts limit {len(lines)}"}
    return "query", given, "\n".join(["| host | service | load | version |", *lines])


def _log(
    draw: random.Random, facts: _Facts, rows: list[Any], room: int
) -> tuple[str, dict[str, str], str]:
    """A log in which a few requests fail, half of them on a line that is no error's."""
    service = draw.choice(SERVICES)

    def ended(request: str, code: str) -> str:
        how = ("ERROR", "failed") if draw.random() < ERRORS else ("INFO", "ended")
        return f"{how[0]} {service} request={request} {how[1]} code={code}"

    lines = [ended(request, code) for _, request, code in rows]
    while sum(map(len, lines)) + 21 * len(lines) < room:
        if draw.random() < 0.05:
            lines.append(ended(facts.other(REQUEST, *REQUESTS), facts.other(CODE, *CODES)))
        else:
            lines.append(f"INFO {service} {_prose(draw, 7)} took={draw.randrange(900)}ms")
    draw.shuffle(lines)
    second = draw.randrange(10**6)
    stamped = []
    for line in lines:
        second += draw.randrange(1, 9)
        day, rest = divmod(second, 86_400)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        stamped.append(f"2026-01-{1 + day % 28:02}T{clock}Z {line}")
    return "tail_log", {"service": service}, "\n".join(stamped)
