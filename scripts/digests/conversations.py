"""Conversations through one session in memory: as recorded, in other formats, with options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from digests.chain import Chain, Clock, Told, as_keywords, body_bytes, internal
from digests.corpus import FORMATS, MAX_TURNS, Record, Talk, number

WINDOWS = (8_192, 16_384, 32_768, 100_000)
PRESETS = ("balanced", "economy", "in-place")
VARIANT_TURNS = 12

Found = Iterator[tuple[str, Told]]
After = Callable[[Any, int, Any, Any], None]
"""Called with the session, the turn's number, the request and what became of it."""


def run(
    talk: Talk,
    salt: str,
    *,
    most: int = MAX_TURNS,
    jumps: bool = False,
    after: After | None = None,
    **keywords: Any,
) -> Told:
    """One conversation, turn by turn.  The salt says whether requests are bytes, and whether
    objects that were sent before are the very same ones."""
    import trimtab

    clock, chain = Clock(jumps), Chain()
    session = trimtab.Session(clock=clock, **as_keywords(keywords))
    before = body_bytes(list(talk.messages))
    for count, end in enumerate(talk.some_ends(most)):
        clock.turn()
        request = written(talk.body(end), salt)
        done = chain.step(partial(session.fit, request))
        if after is not None:
            after(session, count, request, done)
    chain.add("untouched" if body_bytes(list(talk.messages)) == before else "CHANGED ITS INPUT")
    return chain.told(session.journal)


def written(body: dict[str, Any], salt: str) -> Any:
    """Half of all conversations come as bytes, a quarter as objects that are new on each turn."""
    kind = number(salt, 4)
    if kind >= 2:
        return json.dumps(body, ensure_ascii=kind == 2).encode("utf-8", "surrogatepass")
    return json.loads(json.dumps(body)) if kind == 1 else body


def keywords_of(talk: Talk, salt: str, window: int) -> dict[str, Any]:
    """Window, and by chance a reserve and recall."""
    chosen: dict[str, Any] = {"window": window, "recall": bool(number(f"recall {salt}", 2))}
    if number(f"reserve {salt}", 4):
        chosen["reserve"] = 1_000
    return chosen


def sessions(record: Record, windows: Sequence[int] = WINDOWS) -> Found:
    """Part 1: a recording in its own format, at each window."""
    talk = record.talk
    for window in windows:
        salt = f"{window} {record.name}"
        words = keywords_of(talk, salt, window)
        yield f"session/{window}/{record.name}", run(talk, salt, **words)
    if number(f"idle {record.name}", 4) == 0:
        for window in windows[:3]:
            salt = f"idle {window} {record.name}"
            words = {**keywords_of(talk, salt, window), "prices": "claude-5m"}
            yield f"session-idle/{window}/{record.name}", run(talk, salt, jumps=True, **words)


# --- part 2 ---


def converted(record: Record, to: str) -> Talk | None:
    """The recording's last request in another format; None where there is no such thing."""
    import trimtab

    if to == record.format:
        return record.talk
    try:
        done = trimtab.convert(record.talk.last, to, format=record.format)
    except trimtab.TrimtabError:
        return None
    return Talk.of_body(to, done.request)


def variants(record: Record, share: int = 1) -> Found:
    """Part 2: a recording in five formats and with three presets; of them one in ``share``."""
    import trimtab

    for to in FORMATS:
        wanted = [p for p in PRESETS if number(f"{p} {to} {record.name}", share) == 0]
        talk = converted(record, to) if wanted else None
        if talk is None:
            continue
        for preset in wanted:
            key = f"{preset}/{to}/{record.name}"
            window = WINDOWS[number(f"window {key}", 2)]
            words = {**keywords_of(talk, key, window), "preset": preset}
            chain = Chain()
            chain.step(partial(trimtab.fit, talk.last, **as_keywords(words)))
            yield f"variant-fit/{key}", chain.told()
            yield f"variant-session/{key}", run(talk, key, most=VARIANT_TURNS, **words)


# --- settings and what else a session can do ---


def _shorter(prompt: str) -> str:
    """A summarizer that says the same to the same prompt."""
    words = prompt.split()
    return " ".join(words[-60:-8])


def _count(text: str) -> int:
    return len(text) // 3


@cache
def options() -> Mapping[str, Callable[[], dict[str, Any]]]:
    """Keywords of ``Session`` by a name for them."""
    import trimtab

    limits = getattr(trimtab, "Limits", None) or trimtab.Settings
    return {
        "prices": lambda: {"prices": "claude-5m", "idle_seconds": 4_000.0},
        "protected": lambda: {
            "protected_tools": ("Read", "*search*", "get_*"),
            "protected_paths": ("*.go", "*.md"),
            "protected_turns": 3,
        },
        "duplicates": lambda: {
            "duplicates": internal("Duplicates")(enabled=False),
            "failed_inputs": internal("FailedInputs")(enabled=False),
        },
        "failed-inputs": lambda: {
            "duplicates": internal("Duplicates")(superseded=False, protected_tools=("Read",)),
            "failed_inputs": internal("FailedInputs")(min_calls=0, min_turns=0),
        },
        "result-chars": lambda: {"limits": limits(result_chars=2_000), "recall": True},
        "request-bytes": lambda: {"window": None, "limits": limits(request_bytes=40_000)},
        "images": lambda: {"limits": limits(images=1, trigger=0.6, target=0.4)},
        "target": lambda: {"target": 0.3},
        "drop-block": lambda: {"thinking": "drop_block"},
        "quote": lambda: {"quote_embedded": True},
        "articles": lambda: {"articles": trimtab.ArticleRule.just_in_time()},
        "articles-keep": lambda: {"articles": trimtab.ArticleRule(keep=2, newest_first=True)},
        "summarizer": lambda: {"summarizer": _shorter},
        "estimate": lambda: {"counter": "estimate"},
        "own-counter": lambda: {"counter": _count},
        "calls-left": lambda: {"calls_left": 3},
        "strict": lambda: {"strict": True},
        "open-tail": lambda: {"open_tail": True},
        "pins": lambda: {"pins": (_long_text,)},
        "no-strategies": lambda: {"reducers": ()},
        "observed": lambda: {"recall": True, "after": _observe},
        "said": lambda: {"recall": True, "after": _pin_and_undo},
        "pruned": lambda: {"recall": True, "after": _prune},
    }


def _long_text(block: Any) -> bool:
    return len(getattr(block, "text", "") or "") % 7 == 0


def _observe(session: Any, count: int, request: Any, done: Any) -> None:
    """A provider that counts more than we do."""
    if done is not None and count % 2 == 0:
        tokens = int(done.tokens_after * 1.3) + 900
        session.observe({"usage": {"input_tokens": tokens, "output_tokens": 9}}, done)


def _pin_and_undo(session: Any, count: int, request: Any, done: Any) -> None:
    """Now and then an edit is pinned, undone, or unpinned."""
    rows = [row for row in session.journal["edits"] if row["handle"] and row["op"] != "restore"]
    if not rows or count % 3:
        return
    row = rows[number(f"{count} {len(rows)}", len(rows))]
    if count % 2:
        session.undo(row["handle"])
    else:
        session.pin(row["handle"])
        if count % 4 == 0:
            session.unpin(row["handle"])


def _prune(session: Any, count: int, request: Any, done: Any) -> None:
    """Now and then the model gives up a result."""
    if count % 4 == 2 and done is not None:
        own = getattr(session, "prunable", None)
        able = own(request) if own else internal("prunable")(session, request)
        names = [one.name for one in able]
        if hasattr(session, "prune"):
            session.prune(request, names[::3])
        else:
            prune = internal("prune")
            internal("take_out")(session, request, lambda given: prune(given, names[::3]))


def with_option(record: Record, name: str) -> Found:
    """A part of its own: a recording with one of the options."""
    talk, key = record.talk, f"{name}/{record.name}"
    window = WINDOWS[number(f"window {key}", 3)]
    words = {"window": window, "reserve": 1_000, **options()[name]()}
    if "limits" in words and words["window"] is None:
        words["reserve"] = None
    yield f"option/{key}", run(talk, key, most=20, jumps=bool(number(f"jump {key}", 2)), **words)
