"""One history on trial: drawn, fitted, and judged by those who do not know the library's rules.

``case_of(seed)`` draws a case, a JSON-able value; ``verdict_of(case)`` fits it and tells what came
out.  Windows are drawn around the declared minimum, as shares of the size, or far above: a window
below the minimum must be refused, one at or above it never.  Knows the public API and the judges.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import doubtful
import judge
import judge_bedrock
import judge_gemini
import judge_interactions
import judge_responses
from smallest import enough_tokens
from unreadable import as_sent

import trimtab
from soak.mutations import MUTATIONS, NAMES
from soak.story import FORMATS, Draw, Story, frame, story
from soak.writers_more import WRITERS
from trimtab import CannotFit, Fitted

Case = dict[str, Any]
KINDS = ("ok", "refused")
"""What a trial may end with; everything else is a fault: invalid | over |
refused above the minimum | crash | fallback | lost | not idempotent | miscounted | changed |
minimum too high."""
MANY = (0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5)
"""How many mutations a history comes to."""
DRAWS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("minimum", (1.0, 1.0, 1.02, 1.1, 1.3, 1.7, 2.5)),
    ("minimum", (1.0, 1.01, 1.05, 1.2, 1.5, 2.0, 4.0)),
    ("share", (0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.0, 1.2)),
    ("share", (0.3, 0.6, 0.8, 0.9, 0.99, 1.5)),
    ("below", (0.3, 0.6, 0.9, 0.99)),
    ("roomy", (1.0,)),
)
STATES = {
    "openai-responses": ("previous_response_id", "conversation"),
    "gemini-interactions": ("previous_interaction_id",),
}
SERVER_STATE = "server state"
"""What a request comes to that names an answer whose history the server holds."""
UNSAID = ("none", "empty", "odd")
"""Shapes of a result in which a writer leaves its text out."""
_WEIGHTS = (0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5)
ONES_OWN = re.compile(r" at \(.*\)$|'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{.*|\d+|\b\w*_\w*\d\w*")
"""What differs between two faults of one sort: paths, quoted words, numbers, ids."""


class Verdict(NamedTuple):
    """How a trial ended, its detail, and the facts that statistics are made of."""

    kind: str
    detail: str = ""
    messages: int = 0
    above: bool = False

    @property
    def fault(self) -> bool:
        """Whether the library broke a promise."""
        return self.kind not in KINDS

    @property
    def sort(self) -> str:
        """Kind and detail without paths, numbers and names: what belongs together."""
        plain = ONES_OWN.sub("…", self.detail)
        return f"{self.kind}: {plain[:120]}" if plain else self.kind


def case_of(seed: int, format: str = "", mutations: tuple[str, ...] | None = None) -> Case:
    """The case of a seed: formats take turns; ``mutations``: these instead of random ones."""
    rng = random.Random(seed)
    draw = Draw(rng)
    format = format or FORMATS[seed % len(FORMATS)]
    around = frame(draw, format)
    told = story(draw, around, format)
    wanted = [draw.pick(NAMES) for _ in range(draw.pick(MANY))] if mutations is None else mutations
    done = [name for name in wanted if MUTATIONS[name](draw, told)]
    kind, factors = DRAWS[draw.pick(_WEIGHTS)]
    request = WRITERS[format](told, around)
    names = STATES.get(format, ())
    if names and isinstance(request, dict) and not done and draw.one_in(3):
        request[draw.pick(names)] = "resp_1"
        done.append(SERVER_STATE)
    return {
        "seed": seed,
        "format": format,
        "model": around.model,
        "mutations": done,
        "draw": [kind, draw.pick(factors)],
        "recall": draw.one_in(6),
        "thinking": "drop_block" if draw.one_in(6) else "drop",
        "kept": kept_of(told, format != "gemini" or around.ids != "none", format in STATES),
        "request": request,
    }


def kept_of(told: Story, named: bool, items: bool) -> list[str]:
    """What a repair has no reason to take out: the user's words, results that answer a call.

    A result right behind its call, or (where calls are ``named``) anywhere behind the only call
    of its id, if it is the only result.  Where calls and results are ``items`` of their own, those
    merged into the model's message answer its calls too.
    """
    kept: list[str] = []
    calls, results = _ids(told, "call", "assistant"), _ids(told, "result", "user")
    open_: list[str] = []
    for number, message in enumerate(told):
        if message.role != "user":
            open_ = []
            for part in message.parts if message.role == "assistant" else ():
                if part.kind == "call":
                    open_.append(part.id)
                elif items and part.kind == "result" and part.id in open_:
                    open_.remove(part.id)
            continue
        leading = True
        for part in message.parts:
            leading = leading and part.kind == "result"
            if part.kind == "text" and part.text.strip():
                kept.append(part.text)
            elif part.kind == "result" and named and part.id:
                alone = len(calls.get(part.id, ())) == len(results[part.id]) == 1
                near = leading and part.id in open_
                if near:
                    open_.remove(part.id)
                if part.shape not in UNSAID and (near or (alone and calls[part.id][0] < number)):
                    kept.append(part.text)
        open_ = []
    return kept


def _ids(told: Story, kind: str, role: str) -> dict[str, list[int]]:
    """In which messages each id is called or answered, one entry a part; in a wrong
    role they count as standing behind everything."""
    found: dict[str, list[int]] = {}
    for number, message in enumerate(told):
        for part in message.parts:
            if part.kind == kind:
                found.setdefault(part.id, []).append(number if message.role == role else 10**9)
    return found


# --- the judges -----------------------------------------------------------------------------------

_JUDGES = {
    "openai-responses": judge_responses,
    "bedrock": judge_bedrock,
    "gemini": judge_gemini,
    "gemini-interactions": judge_interactions,
}


def problems(case: Case, request: Any) -> list[str]:
    """Why the provider would refuse this; [] when it would accept."""
    format, model = case["format"], case["model"]
    other = _JUDGES.get(format)
    return other.problems(request, model) if other else judge.problems(request, format, model)


def tokens(case: Case, request: Any) -> int:
    """Its size, counted without the library."""
    other = _JUDGES.get(case["format"])
    return other.tokens(request) if other else judge.tokens(request, case["format"])


def _broken_thoughts(case: Case, sent: Any) -> list[str]:
    """Signed reasoning that was sent broken."""
    if case["format"] == "anthropic":
        return judge.thinking_problems(case["request"], sent, case["model"])
    if case["format"] == "openai-responses" and "deepseek" not in str(case["model"]):
        return judge_responses.thought_problems(case["request"], sent)
    if case["format"] == "gemini-interactions":
        return judge_interactions.thought_problems(case["request"], sent)
    return []


# --- the trial ------------------------------------------------------------------------------------

MASKED = re.compile(r"(.* failed|.* skipped): (.*)")
"""Warnings under which the library went on after an error of its own."""


def fit(case: Case, request: Any, window: int) -> Fitted:
    """Fit as this case's client would, in sizes that the judge can count."""
    return trimtab.fit(
        request,
        format=case["format"],
        model=case["model"],
        window=window,
        reserve=0,
        recall=case["recall"],
        settings=trimtab.Settings(counter="o200k", thinking=case["thinking"]),
    )


def verdict_of(case: Case, thorough: bool = False) -> Verdict:
    """Fit and judge.  ``thorough``: twice, thoughts judged and the caller's request watched."""
    request = case["request"]
    before = json.dumps(request) if thorough else ""
    messages = len(messages_of(request))
    try:
        window, minimum = _window(case)
        try:
            fitted = fit(case, request, window)
        except CannotFit as refusal:
            above = refusal.projected > window
            if minimum is not None and window >= minimum:
                detail = f"{window} >= {minimum}"
                return Verdict("refused above the minimum", detail, messages, above)
            if refusal.minimum > (most := enough_tokens(request, case["format"])):
                return Verdict("minimum too high", f"{refusal.minimum} > {most}", messages, above)
            if window >= refusal.minimum:
                detail = f"{window} >= its own minimum {refusal.minimum}"
                return Verdict("refused above the minimum", detail, messages, above)
            return Verdict("refused", "", messages, above)
        above = fitted.report.tokens_before > window
        kind, detail = _judged(case, fitted, window, thorough, before)
    except Exception as error:
        return Verdict("crash", _told(error), messages)
    if kind == "invalid" and (named := _after_refusals(case)) is not None:
        return verdict_of(named, thorough)
    return Verdict(kind, detail, messages, above)


def _after_refusals(case: Case) -> Case | None:
    """The case as it is sent again once refusals have named what it breaks and nobody could know;
    None if there is no such thing."""
    repaired = doubtful.repaired(case["request"], case["format"], case["model"]).tree
    found = doubtful.found(case["request"], case["format"], case["model"])
    return {**case, "request": repaired} if not all(v.certain for v in found) else None


def messages_of(request: Any) -> list[Any]:
    """The list of messages, items or contents of a request."""
    if isinstance(request, list):
        return request
    return next(request[key] for key in ("messages", "input", "contents") if key in request)


def _window(case: Case) -> tuple[int, int | None]:
    """The window of a case and, where it was asked for, the declared minimum."""
    kind, factor = case["draw"]
    request = case["request"]
    if kind == "roomy":
        return 10**9, None
    if kind == "share":
        return max(1, int(tokens(case, request) * factor)), None
    try:
        fit(case, request, 1)
    except CannotFit as refusal:
        minimum = refusal.minimum
    else:
        minimum = 1
    return max(1, int(minimum * factor)), minimum


def _told(error: Exception) -> str:
    """An error and where it was raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}: {str(error)[:200]}"


def _judged(
    case: Case, fitted: Fitted, window: int, thorough: bool, before: str
) -> tuple[str, str]:
    sent, report = fitted.request, fitted.report
    if masked := [text for text in report.warnings if MASKED.match(text)]:
        return "fallback", masked[0][:300]
    if found := problems(case, sent):
        return "invalid", found[0]
    size = tokens(case, sent)
    if size > window:
        return "over", f"{size} > {window}"
    if size != report.tokens_after:
        return "miscounted", f"{report.tokens_after} reported, {size} counted"
    if case["draw"][0] == "below" and window > 1:
        return "minimum too high", f"fitted into {window}"
    if case["draw"][0] == "roomy" and (gone := _lost(case, sent)):
        return "lost", gone[0][:80]
    return _twice(case, fitted, window, before) if thorough else ("ok", "")


def _lost(case: Case, sent: Any) -> list[str]:
    """Of what should be kept: what was there and is not (blank texts are refused, so they go)."""
    before, after = _words(case["request"]), _words(sent)
    return [
        text
        for text in case.get("kept", [])
        if text.strip() and text in before and as_sent(text) not in after
    ]


def _words(value: Any) -> str:
    """Every string in a request, one behind the other."""
    if isinstance(value, str):
        return value
    inside = value.values() if isinstance(value, dict) else value
    return "\0".join(map(_words, inside)) if isinstance(inside, Iterable) else ""


def _twice(case: Case, fitted: Fitted, window: int, before: str) -> tuple[str, str]:
    if found := _broken_thoughts(case, fitted.request):
        return "invalid", found[0]
    if json.dumps(case["request"]) != before:
        return "changed", "the caller's request is another"
    again = fit(case, fitted.request, window)
    if again.request is not fitted.request:
        repairs = [f"repair {made.rule} at {made.path}" for made in again.report.repairs]
        made = [*repairs, *(f"{edit.kind} at {edit.path}" for edit in again.report.edits)]
        return "not idempotent", made[0] if made else "no edit named"
    return "ok", ""
