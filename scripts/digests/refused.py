"""Requests that are refused in the words of providers, and what is sent instead."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from digests.chain import Chain, body_bytes, internal
from digests.conversations import Found, converted
from digests.corpus import FORMATS, Record

WINDOW = 48_000
_STARTS = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "gemini": "gemini",
    "openai-responses": "openai-responses",
}


class Error(NamedTuple):
    """A refusal as it was seen."""

    name: str
    format: str
    status: int
    body: str
    numbers: str
    """A pattern with the groups ``limit`` and ``requested``; "" where there is none."""


def errors(file: Path) -> list[Error]:
    """All refusals of the catalogue."""
    found = list[Error]()
    for at, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        written = str(row["format"])
        format = next((f for s, f in _STARTS.items() if written.startswith(s)), "openai-chat")
        found.append(
            Error(
                f"{at:03}-{row['kind']}", format, int(row["status"] or 400), str(row["body"]),
                str(row.get("limit_regex_hint") or ""),
            )
        )  # fmt: skip
    return found


def scaled(error: Error, tokens: int) -> str:
    """The same words with a limit somewhat below what was sent."""
    body, values = error.body, {"limit": tokens * 3 // 5, "requested": tokens}
    try:
        match = re.search(error.numbers, body) if error.numbers else None
    except re.error:
        return body
    spans = [
        (match.span(name), str(value))
        for name, value in values.items()
        if match and name in match.re.groupindex and match.span(name)[0] >= 0
    ]
    for (start, end), text in sorted(spans, reverse=True):
        body = body[:start] + text + body[end:]
    return body


def refusals(error: Error, records: Sequence[Record]) -> Found:
    """Part 6, for one error: refused once, each time, with a limit that fits, and learned from."""
    record = records[sum(map(ord, error.name)) % len(records)]
    talk = converted(record, error.format)
    if talk is None:
        return
    ends = talk.some_ends(40)
    data = json.dumps(talk.body(ends[-1] if ends else None)).encode()
    for kind in ("once", "always", "scaled"):
        chain = Chain()
        drive(chain, data, error, kind)
        yield f"flow/{kind}/{error.name}", chain.told()
    chain, learned = Chain(), internal("LearnedLimits")()
    for end in ends[-3:]:
        body = talk.body(end)
        drive(chain, body, error, "scaled", key="one model", learned=learned)
    yield f"flow/learned/{error.name}", chain.told()


def drive(chain: Chain, request: Any, error: Error, kind: str, **options: Any) -> None:
    """Send until the flow is done; all sends, and how it ended."""
    import trimtab

    flow, accepted, refused = internal("flow"), internal("Accepted"), internal("Refused")
    session = trimtab.Session(window=WINDOW, reserve=1_000, recall=kind == "once")

    def reply(attempt: int, fitted: Any) -> Any:
        if attempt > 1 and kind != "always":
            return accepted()
        body = error.body
        if kind == "scaled" and fitted is not None:
            body = scaled(error, fitted.tokens_after)
        if error.status < 400:  # an answer that is too small a count, or an error in a stream
            return accepted(900, False) if "truncation" in error.name else refused(200, body)
        return refused(error.status, body.encode(), {"content-type": "application/json"})

    run = flow(request, session.fit, **options)
    effect = next(run)
    while True:
        chain.add(body_bytes(effect.request), effect.attempt)
        try:
            effect = run.send(reply(effect.attempt, effect.fitted))
        except StopIteration as stop:
            done = stop.value
            break
    kinds = " ".join(f"{one.kind} {one.limit} {one.requested}" for one in done.refusals)
    chain.add(done.accepted, done.attempts, kinds)


def all_formats(found: Sequence[Record]) -> Sequence[Record]:
    """Those that can be had in every format."""
    return [one for one in found if all(converted(one, to) is not None for to in FORMATS)]
