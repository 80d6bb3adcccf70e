"""Single calls: fit, repair, check and convert on each recording's last request."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from digests.chain import Chain, Told, body_bytes
from digests.conversations import Found
from digests.corpus import FORMATS, Record, Talk

WINDOWS = (8_192, 32_768)


def calls(record: Record) -> Found:
    """Part 3, for one recording."""
    import trimtab

    talk, name = record.talk, record.name
    for kind, body in [("last", talk.last), *([("whole", talk.body())] if record.broken else [])]:
        text = json.dumps(body)
        data = text.encode()
        for window in WINDOWS:
            chain = Chain()
            for request in (body, data):
                chain.step(partial(trimtab.fit, request, window=window, reserve=1_000))
            chain.step(partial(trimtab.fit, text, window=window, recall=True))
            yield f"fit/{kind}/{window}/{name}", chain.told()
        yield f"check/{kind}/{name}", _mended(body, data)
        yield from _conversions(kind, Talk.of_body(record.format, body), name)


def _mended(body: Any, data: bytes) -> Told:
    import trimtab

    chain = Chain()
    for request in (body, data):
        found = _tried(partial(trimtab.check, request))
        chain.add("check", found if isinstance(found, str) else _rules(found))
        chain.step(partial(trimtab.repair, request))
    return chain.told()


def _rules(found: Any) -> str:
    return f"{len(found)} {' '.join(str(one.rule) for one in found)}"


def _conversions(kind: str, talk: Talk, name: str) -> Found:
    """To each format, back again, and repaired."""
    import trimtab

    for to in FORMATS:
        chain, given = Chain(), talk.body()
        there = _tried(partial(trimtab.convert, given, to, format=talk.format))
        _account(chain, there)
        if not isinstance(there, str):
            chain.step(partial(trimtab.repair, there.request, format=to))
            back = _tried(partial(trimtab.convert, there.request, talk.format, format=to))
            _account(chain, back)
        yield f"convert/{kind}/{to}/{name}", chain.told()


def _account(chain: Chain, done: Any) -> None:
    if isinstance(done, str):
        chain.add("error", done)
        return
    ids = json.dumps([dict(done.ids), dict(done.names)])
    chain.add(body_bytes(done.request), ids, len(done.losses), len(done.notes))


def _tried(act: Callable[[], Any]) -> Any:
    """What it returns; the name of the error where it raises one of the package's."""
    import trimtab

    try:
        return act()
    except trimtab.TrimtabError as error:
        return type(error).__name__
