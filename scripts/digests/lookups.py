"""What is said of what was taken out: to a program by ``Session``, to a model by its tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from digests.answers import Call, turn
from digests.chain import Chain, Clock
from digests.conversations import Found, converted, written
from digests.corpus import FORMATS, Record, Talk, number
from digests.kept import folder, seeded
from digests.scripted import Words

WINDOW, TURNS, HANDLES = 16_384, 24, 4


def lookups(record: Record, share: int = 1) -> Found:
    """A recording in its own format, in memory and on a store; and, one in ``share``, in others."""
    yield f"search/memory/{record.name}", _of_session(record.talk, record.name, stored=False)
    yield f"search/store/{record.name}", _of_session(record.talk, record.name, stored=True)
    for to in FORMATS:
        if number(f"tools {to} {record.name}", share) == 0:
            talk = converted(record, to)
            if talk is not None:
                yield f"search/tools/{to}/{record.name}", _of_tools(talk, record.name)


def _of_session(talk: Talk, salt: str, *, stored: bool) -> Any:
    import trimtab

    chain, clock, words = Chain(), Clock(), Words(talk, salt)
    ends = talk.some_ends(TURNS)
    with folder() as place:
        more: dict[str, Any] = {"store": seeded(place / "store.db", "default")} if stored else {}
        session = trimtab.Session(window=WINDOW, reserve=1_000, recall=True, clock=clock, **more)
        for count, end in enumerate(ends):
            clock.turn()
            chain.step(partial(session.fit, written(talk.body(end), f"search {salt}")))
            if count % 8 == 7 or count == len(ends) - 1:
                for asked in _questions(session, words, count):
                    chain.add(_tried(asked))
        session.close()
    return chain.told()


def _questions(session: Any, words: Words, count: int) -> Iterator[Callable[[], Any]]:
    """What a program can ask."""
    yield session.history
    yield session.look_up
    for number_ in range(4):
        word, other = (words.word(f"{one} {count} {number_}") for one in ("first", "second"))
        yield partial(session.search, word)
        yield partial(session.search, f"{word} {other}", most=5)
        yield partial(session.look_up, search=word if number_ % 2 else f"{word} {other}")
        yield partial(session.look_up, file=words.path(f"{count} {number_}"))
    for handle in _handles(session, count):
        word = words.word(f"{count} {handle}")
        yield partial(session.recall, handle)
        yield partial(session.recall, handle, 10, 400)
        yield partial(session.recall, handle, steps="1-2")
        yield partial(session.search, word, handle)
        yield partial(session.look_up, handle=handle)
        yield partial(session.look_up, handle=handle, search=word)
        yield partial(session.look_up, handle=handle, steps="2-3")
        yield partial(session.look_up, handle=handle, lines="2-9")
        yield partial(session.look_up, handle=handle, start=50, end=900)


def _handles(session: Any, count: int) -> list[str]:
    """Some handles, spread over the edits, and one of no edit."""
    made = [row["handle"] for row in session.journal["edits"] if row["handle"]]
    known = list(dict.fromkeys(made))
    step = -(-len(known) // HANDLES) or 1
    return [*known[count % step :: step], "unknown"]


def _of_tools(talk: Talk, salt: str) -> Any:
    """A model that looks things up and notes things down, in its own loop: the exchanges stay in
    the history."""
    import trimtab

    format = talk.format
    recall, note = trimtab.recall_tool(format), trimtab.note_tool(format)
    chain, clock, words = Chain(), Clock(), Words(talk, salt)
    chain.add(json.dumps([recall.definition, note.definition]))
    session = trimtab.Session(window=WINDOW, reserve=1_000, recall=True, clock=clock)
    key = {"openai-responses": "input", "gemini": "contents"}.get(format, "messages")
    held, done, handles = list[Any](), 0, list[str]()
    for count, end in enumerate(talk.some_ends(TURNS)):
        clock.turn()
        held += talk.messages[done:end]
        done = end
        body = _with_tools(talk, [recall.definition, note.definition])
        fitted = chain.step(partial(session.fit, {**body, key: list(held)}))
        if count % 3 == 2 and fitted is not None:
            handles = _handles(session, count)
            for at, call in enumerate(_calls(words, handles, count)):
                said = turn(format, "", [call])
                part = _part(format, said)
                known: Any = session if at % 2 else fitted
                tool: Any = recall
                if call.name == "note":
                    tool, known = note, {**body, key: held}
                chain.add(_tried(partial(tool.result, known, part)))
                held += [*said, tool.execute(known, part)]
            chain.add(json.dumps(dict(note.notes({**body, key: held}))))
    return chain.told()


def _with_tools(talk: Talk, ours: list[Any]) -> dict[str, Any]:
    """A body without messages, that offers our tools too."""
    body = dict(talk.base)
    if talk.format == "bedrock":
        tools = (body.get("toolConfig") or {}).get("tools") or []
        return {**body, "toolConfig": {"tools": [*tools, *ours]}}
    return {**body, "tools": [*(body.get("tools") or []), *ours]}


def _calls(words: Words, handles: list[str], count: int) -> list[Call]:
    """What a model asks at one turn."""
    handle = handles[count % len(handles)]
    asked: list[dict[str, Any]] = [
        {}, {"search": words.word(count)}, {"handle": handle}, {"handle": handle, "steps": "1-2"},
        {"file": words.path(count)}, {"handle": handle, "lines": "3-5"},
        {"handle": handle, "search": words.word(-count)}, {"handle": handle, "end": 300},
    ]  # fmt: skip
    recalls = [
        Call(f"call_r{count}_{at}", "recall", asked[(count + at) % len(asked)]) for at in range(2)
    ]
    noted = {"name": f"plan {count % 4}", "text": f"Of step {count}: {words.word(f'n{count}')}"}
    return [*recalls, Call(f"call_n{count}", "note", noted)]


def _part(format: str, said: list[Any]) -> Any:
    """The part of a turn that is its call, as a provider's client gives it."""
    last = said[-1]
    if format == "openai-responses":
        return last
    return last[{"openai-chat": "tool_calls", "gemini": "parts"}.get(format, "content")][-1]


def _tried(asked: Callable[[], Any]) -> str:
    """What is answered, as text; of an error its name and what it says."""
    try:
        found = asked()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(found, str):
        return found
    return json.dumps(found, ensure_ascii=False, default=str)
