"""What users paste: ten kinds of text, generated, none of which a person wrote for the model."""

# A sentence stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from answerable.tokens import of_text

Rows = Iterator[str]
PARTS = (
    "ingest", "ledger", "mailer", "router", "parser", "indexer", "gateway", "planner", "uploader",
    "catalog", "session", "renderer",
)  # fmt: skip
NAMES = ("Priya", "Jonas", "Mei", "Olu", "Carla", "Sven", "Amira", "Tomasz")
OBJECTS = ("invoice", "shipment", "account", "voucher", "contract", "parcel", "meter", "ticket")
VERBS = ("exported", "archived", "validated", "merged", "rejected", "signed", "queued", "printed")


@dataclass(frozen=True)
class Pasted:
    """A pasted text; ``fenced``: in three backticks."""

    kind: str
    text: str
    fenced: bool


def _number(random: Random) -> str:
    return f"{random.choice('ABCDEFGH')}{random.randrange(1000, 9999)}"


def _logs(random: Random) -> Rows:
    at = random.randrange(10_000)
    while True:
        at += random.randrange(1, 40)
        stamp = f"2026-03-04T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z"
        level = random.choice(("INFO", "INFO", "DEBUG", "WARN", "ERROR"))
        told = random.choice((
            f"field {_number(random)} is required but missing",
            f"batch {_number(random)} should have ended, retrying",
            f"processed {random.randrange(9999)} rows in {random.randrange(900)} ms",
            f"connection to 10.0.{random.randrange(255)}.{random.randrange(255)} must not be reused",
        ))  # fmt: skip
        yield f"{stamp} {level} {random.choice(PARTS)}: {told}"


def _traces(random: Random) -> Rows:
    while True:
        yield "Traceback (most recent call last):"
        for _ in range(random.randrange(4, 9)):
            part = random.choice(PARTS)
            yield f'  File "/srv/app/{part}/{random.choice(PARTS)}.py", line {random.randrange(999)}, in run_{part}'
            yield f"    return self.{random.choice(PARTS)}.load({part}_id, timeout={random.randrange(90)})"
        yield f"ValueError: {random.choice(OBJECTS)} {_number(random)} must not be empty"
        yield ""


def _csv(random: Random) -> Rows:
    yield "id,customer,object,state,amount,changed"
    while True:
        yield (
            f"{_number(random)},{random.choice(NAMES)},{random.choice(OBJECTS)},"
            f"{random.choice(VERBS)},{random.randrange(99999) / 100},2026-0{random.randrange(1, 9)}-11"
        )


def _json(random: Random) -> Rows:
    while True:
        row = {
            "id": _number(random), "owner": random.choice(NAMES),
            "note": f"{random.choice(OBJECTS)} was {random.choice(VERBS)} and should be checked",
            "tags": [random.choice(PARTS), random.choice(PARTS)], "size": random.randrange(9999),
        }  # fmt: skip
        yield from json.dumps(row, indent=2).split("\n")


def _code(random: Random) -> Rows:
    yield "from __future__ import annotations"
    while True:
        one, other, thing = random.choice(PARTS), random.choice(PARTS), random.choice(OBJECTS)
        number = random.randrange(9999)
        yield from (
            "", "", f"def {one}_{thing}_{number}({thing}: dict[str, int], {other}: str) -> int:",
            f'    """Never call this while {other} is open; the {thing} must be closed first."""',
            f"    if {thing}.get({other}) is None:",
            f'        raise KeyError(f"{thing} {{{other}}} has no {one}")',
            f"    total = sum({thing}.values()) + {number}",
            f"    return total // max(1, len({thing}) - {random.randrange(9)})",
        )  # fmt: skip


def _sentence(random: Random) -> str:
    one, other = random.choice(PARTS), random.choice(PARTS)
    thing, number = random.choice(OBJECTS), _number(random)
    return random.choice((
        f"The {one} must accept every {thing} of class {number} within {random.randrange(90)} seconds.",
        f"If the {other} is down, the {one} should keep the {thing} and note {number} in its queue.",
        f"A {thing} that was {random.choice(VERBS)} by the {one} is never handed to the {other} again ({number}).",
        f"Field {number} holds the {thing} as the {other} delivered it, without leading zeros.",
        f"Operators need a way to see which {thing} the {one} has {random.choice(VERBS)} since {number}.",
    ))  # fmt: skip


def _markdown(random: Random) -> Rows:
    while True:
        yield f"## {random.choice(PARTS).title()} and {random.choice(OBJECTS)}s, part {_number(random)}"
        yield ""
        yield " ".join(_sentence(random) for _ in range(3))
        yield ""
        for _ in range(3):
            yield f"- **{random.choice(PARTS)}**: {_sentence(random)}"
        yield ""


def _requirements(random: Random) -> Rows:
    chapter = 0
    while True:
        chapter += 1
        yield f"{chapter} {random.choice(PARTS).title()}"
        for number in range(1, random.randrange(5, 9)):
            yield f"{chapter}.{number} {_sentence(random)}"


def _email(random: Random) -> Rows:
    while True:
        sender, reader = random.sample(NAMES, 2)
        yield f"From: {sender} <{sender.lower()}@example.org>"
        yield f"To: {reader} <{reader.lower()}@example.net>"
        yield f"Date: Tue, {random.randrange(1, 28)} Mar 2026 10:{random.randrange(10, 59)}:00 +0100"
        yield f"Subject: Re: {random.choice(OBJECTS)} {_number(random)}"
        yield ""
        yield f"Hi {reader},"
        yield ""
        for _ in range(3):
            yield f"{_sentence(random)} {_sentence(random)}"
            yield ""
        yield f"> {_sentence(random)}"
        yield f"> {_sentence(random)}"
        yield ""
        yield "Best regards"
        yield sender
        yield ""


def _chat(random: Random) -> Rows:
    minute = 0
    while True:
        minute += random.randrange(1, 4)
        said = random.choice((
            f"has anybody seen {random.choice(OBJECTS)} {_number(random)}?",
            f"the {random.choice(PARTS)} {random.choice(VERBS)} it twice, pls don't touch {_number(random)}",
            f"looking at {_number(random)} now, we need to ask {random.choice(NAMES)}",
            f"ok, {random.choice(PARTS)} is back, {random.randrange(99)} still queued",
        ))  # fmt: skip
        yield f"[{9 + minute // 60 % 12:02}:{minute % 60:02}] {random.choice(NAMES)}: {said}"


def _html(random: Random) -> Rows:
    while True:
        thing, number = random.choice(OBJECTS), _number(random)
        yield from (
            f'<section id="{number.lower()}" class="{random.choice(PARTS)} card">',
            f"  <h3>{thing.title()} {number}</h3>", f"  <p>{_sentence(random)}</p>",
            f'  <a href="/{random.choice(PARTS)}/{number}?ref={random.randrange(9999)}">Show</a>',
            "</section>",
        )  # fmt: skip


KINDS: dict[str, Callable[[Random], Rows]] = {
    "logs": _logs, "stack traces": _traces, "CSV": _csv, "JSON": _json, "code": _code,
    "Markdown": _markdown, "requirements": _requirements, "e-mail": _email,
    "chat transcript": _chat, "HTML": _html,
}  # fmt: skip


def paste(kind: str, tokens: int, seed: object, *, fenced: bool = False) -> Pasted:
    """A text of that kind, of about so many tokens."""
    lines, room = list[str](), tokens
    for line in KINDS[kind](Random(f"{kind} {seed}")):
        lines.append(line)
        room -= of_text(line) + 1
        if room <= 0:
            break
    text = "\n".join(lines).strip()
    return Pasted(kind, f"```\n{text}\n```" if fenced else text, fenced)
