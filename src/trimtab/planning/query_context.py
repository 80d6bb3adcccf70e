"""The context of a query: the user's last words, the model's search strings, repeated content."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from trimtab.lazy import cached_property
from trimtab.reducers import Config
from trimtab.reducers.article_selection import long_articles
from trimtab.reducers.query_terms import QueryTerms, terms_in
from trimtab.transcript.model import Place
from trimtab.transcript.transcript import Transcript

QUESTION_CHARS = 4_000
QUERY_CHARS, MAX_QUERIES = 400, 32
"""A longer argument is not taken for a query; only the newest MAX_QUERIES are used."""
ASKING_CHARS = 2_000
"""A longer text is a paste or a report, and not a question."""
NEWEST_TEXTS, NEWEST_STEPS = 3, 4
"""Of the user's texts and of the model's turns, how many of the newest ask for something."""
LOOKED_AT = 4 * MAX_QUERIES
"""How many of the newest messages are searched for queries."""


@dataclass(frozen=True)
class QueryContext:
    """The query context of one transcript; ``edited``: refs of blocks not shown as they came."""

    transcript: Transcript
    config: Config
    edited: Collection[str] = ()

    def about(self, place: Place) -> Config:
        """The configuration with the context of this block."""
        block = place.block
        if block.kind != "result":
            return self.config
        age = 1.0 - place.message / max(len(self.transcript.messages), 1)
        own = self._call(place)
        query = "\n".join(dict.fromkeys([*self._searched, *_strings(own)]))
        return replace(
            self.config, question=self.question, query=query, age=age, terms=self.terms(own),
            repeated=lambda content: self._newest(content) > (place.message, place.index),
        )  # fmt: skip

    @cached_property
    def question(self) -> str:
        """The text of the last user message, its ends if it is long; "" if there is none."""
        for number in reversed(self.transcript.table.user_and_system):
            message = self.transcript.messages[number]
            if message.role != "user":
                continue
            texts = [b.text for b in message.blocks if b.kind == "text" and b.call_id is None]
            if any(text.strip() for text in texts):
                text = "\n".join(texts)
                half = QUESTION_CHARS // 2
                return text if len(text) <= 2 * half else f"{text[:half]}\n{text[-half:]}"
        return ""

    def terms(self, own: str) -> QueryTerms:
        """What is asked for: in the call itself, by the user, in the model's newest turns."""
        found = self._terms_by_call.get(own)
        if found is None:
            found = terms_in([*_strings(own), *self._asking_texts])
            self._terms_by_call[own] = found
        return found

    @cached_property
    def _terms_by_call(self) -> dict[str, QueryTerms]:
        """A cache: arguments of a call → what is asked for in it and by the others."""
        return {}

    @cached_property
    def _asking_texts(self) -> list[str]:
        """Short texts of the user, newest before first, then of the model's newest turns; what is
        too long to be a question is a paste, and is not taken."""
        texts = [
            block.text
            for number in self.transcript.table.user_and_system
            if self.transcript.messages[number].role == "user"
            for block in self.transcript.messages[number].blocks
            if block.kind == "text" and block.call_id is None and len(block.text) <= ASKING_CHARS
        ]
        texts = [*texts[-1 : -NEWEST_TEXTS - 1 : -1], *texts[:1]]
        steps = [m for m in self.transcript.messages[-LOOKED_AT:] if m.role == "assistant"]
        for message in steps[: -NEWEST_STEPS - 1 : -1]:
            for block in message.blocks:
                if block.kind == "call":
                    texts += _strings(block.text)
                elif block.kind == "text" and len(block.text) <= ASKING_CHARS:
                    texts.append(block.text)
        return texts

    @cached_property
    def _searched(self) -> list[str]:
        """Short strings in the arguments of the calls since the user spoke, newest first."""
        queries: list[str] = []
        for message in self.transcript.messages[: -LOOKED_AT - 1 : -1]:
            if len(queries) >= MAX_QUERIES or (message.role == "user" and not message.results):
                break
            for block in message.blocks:
                if block.kind == "call":
                    queries += _strings(block.text)
        return queries[:MAX_QUERIES]

    def _call(self, place: Place) -> str:
        """The arguments of the call that a result answers; "" if there is none."""
        number = self.transcript.group_number(place.message, place.index)
        if number is None:
            return ""
        texts_by_id = self._calls.get(number)
        if texts_by_id is None:
            blocks = (one.block for one in self.transcript.groups[number].places)
            texts_by_id = {block.call_id: block.text for block in blocks if block.kind == "call"}
            self._calls[number] = texts_by_id
        return texts_by_id.get(place.block.call_id, "")

    @cached_property
    def _calls(self) -> dict[int, dict[str | None, str]]:
        """A cache: group → the arguments of its calls by id."""
        return {}

    def _newest(self, content: str) -> tuple[int, int]:
        """The last place where this content is unedited; (−1, −1) if there is none."""
        return self._contents.get(_digest(content), (-1, -1))

    @cached_property
    def _contents(self) -> dict[bytes, tuple[int, int]]:
        places: dict[bytes, tuple[int, int]] = {}
        for place in self.transcript.places():
            if place.block.kind != "result" or self.transcript.ref(place) in self.edited:
                continue
            for article in long_articles(place.block.text, self.config.articles):
                places[_digest(article.content)] = (place.message, place.index)
        return places


def _digest(content: str) -> bytes:
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _strings(arguments: str) -> Iterator[str]:
    """The short strings among a call's arguments."""
    if not arguments or len(arguments) > 8 * QUERY_CHARS:
        return
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = arguments
    values = list(values.values()) if isinstance(values, dict) else [values]
    for value in values:
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text.strip() and len(text) <= QUERY_CHARS:
                yield text
