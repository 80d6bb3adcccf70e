"""The recall tool for the model, run within the proxy: the client never sees it.

Knows when a request gets the tool, and what becomes of its calls.  How each format speaks stands
in the files beside this one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab import paths
from trimtab.errors import StoreError
from trimtab.proxy import logs
from trimtab.proxy.recall import tools
from trimtab.proxy.recall.chat import ChatVoice
from trimtab.proxy.recall.claude import ClaudeVoice
from trimtab.proxy.recall.converse import ConverseVoice
from trimtab.proxy.recall.google import GeminiVoice
from trimtab.proxy.recall.hidden import Hidden, Memory, turn_key
from trimtab.proxy.recall.items import ItemsVoice
from trimtab.proxy.recall.shapes import (
    SHAPES,
    history,
    offers_any,
    tools_of,
    tools_path,
    with_turn,
)
from trimtab.proxy.recall.voice import Voice, dumped
from trimtab.reading.internal import SIGNATURES
from trimtab.session import Session
from trimtab.stores import TenantStore
from trimtab.turns.recalling import NAME

VOICES: Mapping[str, Callable[[], Voice]] = {
    "openai-chat": ChatVoice, "openai-responses": ItemsVoice, "anthropic": ClaudeVoice,
    "bedrock": ConverseVoice, "gemini": GeminiVoice,
}  # fmt: skip
AGAIN_SECONDS = 5.0
"""After so long a store that did not answer is asked again."""
MOST_ROUNDS = 6
"""Model calls for one answer: then recalls are no longer answered."""


@dataclass
class Quiet:
    """Until when (monotonic) a store that did not answer is left alone."""

    until: float = 0.0


class StoredExchanges:
    """Exchanges as facts of a tenant's store.  A store that does not answer is told, not raised,
    and not asked again for a while."""

    def __init__(self, store: TenantStore, quiet: Quiet) -> None:
        self._store, self._quiet = store, quiet

    def read(self, conversation: str) -> Mapping[str, Any]:
        """All of a conversation, by key."""
        prefix = f"hidden/{conversation}/"
        found: Mapping[str, Any] = self._asked(lambda: self._store.facts(prefix)) or {}
        return {name.removeprefix(prefix): value for name, value in found.items()}

    def one(self, conversation: str, key: str) -> Any:
        """One of them; None where there is none."""
        return self._asked(lambda: self._store.fact(f"hidden/{conversation}/{key}"))

    def keep(self, conversation: str, key: str, value: Any) -> None:
        """One more."""
        fact = {f"hidden/{conversation}/{key}": value}
        self._asked(lambda: self._store.write(self._store.batch("", facts=fact)))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        if time.monotonic() < self._quiet.until:
            return None
        try:
            return ask()
        except StoreError as error:
            self._quiet.until = time.monotonic() + AGAIN_SECONDS
            logs.fault("store", error)
            return None


class Recaller:
    """One request with the recall tool, over all its rounds."""

    def __init__(
        self, format: str, conversation: str, session: Session, memory: Memory,
        facts: StoredExchanges | None, *, prune: bool = False, model: str | None = None,
    ) -> None:  # fmt: skip
        self._format, self._conversation = format, conversation
        self._session, self._memory, self._facts = session, memory, facts
        self._names, self._model = tools.names(prune), model
        self._body: Any = None
        self._asked: list[Any] = []
        self._real: list[Any] = []
        self.rounds = 1
        self.ready = False
        """Whether the request offers the tool."""
        self.voice = VOICES[format]()
        self.voice.ours = frozenset(self._names)

    def prepared(self, text: bytes) -> bytes | None:
        """The request with the tool, and with what the client never saw; None: it gets none."""
        try:
            source = text.decode()
            body = json.loads(source)
        except ValueError:
            return None
        if not eligible(self._format, body, self._names):
            return None
        self.ready = True
        self._asked = history(self._format, body)
        restored = self._memory.followed(body, self._facts)
        restored = self._memory.restored(self._format, self._conversation, restored, self._facts)
        path = tools_path(self._format)
        count = len(tools_of(self._format, body))
        insert = [
            paths.Insert((*path, count), tools.definition(self._format, name))
            for name in self._names
        ]
        self._body = paths.apply(restored, insert)
        if restored is body:  # all else stays as it was spelled
            return paths.splice(source, insert).encode()
        return dumped(self._body)

    def follow(self) -> bytes | None:
        """The next round's request, with the results of this one's recalls; None: there is none."""
        voice = self.voice
        real = voice.real()
        if not voice.recalls or voice.others or self.rounds >= MOST_ROUNDS:
            return None
        results = self._results()
        before = len(history(self._format, self._body))
        self._body = with_turn(self._format, self._body, real, results)
        self._real += history(self._format, self._body)[before:]
        self.rounds += 1
        return dumped(self._body)

    def _results(self) -> list[Any]:
        return [
            tools.result(self._format, self._session, self._body, call, self._model)
            for call in self.voice.recalls
        ]

    def remember(self) -> None:
        """Keep what the client did not see of this answer for its next requests."""
        voice = self.voice
        real, results = voice.real(), list[Any]()
        if voice.recalls and not voice.others:
            real = voice.visible()  # recalls that nobody answered any more never were
        elif voice.recalls:
            results = self._results()
        if not self._real and not results:
            return
        if isinstance(voice, ItemsVoice) and self._body.get("store") is not False:
            first, last = voice.first_id, voice.last_id
            self._memory.follow(first, last, results, self._facts)
        if not SHAPES[self._format].grouped:
            real, results = [*real, *results], []
        visible = voice.visible()
        told = [*self._asked, *visible]
        key = turn_key(self._format, told, len(self._asked), len(told))
        hidden = Hidden([*self._real, *real], results)
        self._memory.put(self._conversation, key, hidden, self._facts)


def eligible(format: str, body: Any, names: Sequence[str] = (NAME,)) -> bool:
    """Whether a request gets our tools: one with tools, none of which has one of these names, that
    is a turn of a conversation and no request of the client's own."""
    if not isinstance(body, dict) or tools_of(format, body) is None or body.get("n", 1) != 1:
        return False
    return not offers_any(format, body, names) and not _internal(format, body)


_STARTS = tuple(signature.casefold() for signature in SIGNATURES)


def _internal(format: str, body: dict[str, Any]) -> bool:
    """Whether its instructions, or its last words, begin like those of a client's own request.

    ``compaction_trigger`` is how Codex asks its provider to compact.
    """
    messages = history(format, body)
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    if last.get("type") == "compaction_trigger":
        return True
    places = (body.get("system"), body.get("instructions"), last.get("content"), last.get("parts"))
    found = [text for place in places for text in _texts(place)]
    return any(text.lstrip()[:200].casefold().startswith(_STARTS) for text in found)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(p["text"]) for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]


__all__ = ["VOICES", "Memory", "Quiet", "Recaller", "StoredExchanges", "eligible"]
