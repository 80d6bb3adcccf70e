"""Searches texts with the words that the agent wrote next, and checks whether the first hits have a
lost string."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.journal.passages import PassageIndex
from trimtab.transcript.identifiers import TOKEN, names_in
from trimtab.transcript.tokens import counter_for

HITS, HIT_TOKENS = 5, 2_000
"""The most hits that are read, and the most tokens of them together."""
MAX_WORDS = 400


class SearchedTexts:
    """Searchable texts by name."""

    def __init__(self) -> None:
        self._index, self._texts = PassageIndex(), dict[str, str]()
        self._count = counter_for("o200k", model=None, format="")
        self._shown: dict[tuple[int, tuple[str, ...]], str] = {}

    def add(self, name: str, text: str) -> None:
        """Add a text, unless there is one of this name."""
        if name not in self._texts:
            self._texts[name] = text
            self._index.add(name, text)

    def holds(self, lost: str, words: Sequence[str]) -> bool:
        """Whether the first hits for ``words``, without the words in ``lost``, contain ``lost``."""
        own = {token.lower() for token in TOKEN.findall(lost)}
        query = tuple(word for word in words if word.lower() not in own)
        return lost in self._hits(query)

    def _hits(self, query: tuple[str, ...]) -> str:
        key = (len(self._index), query)
        if key not in self._shown:
            self._shown = {key: self._read(query)}
        return self._shown[key]

    def _read(self, query: tuple[str, ...]) -> str:
        texts, left = list[str](), HIT_TOKENS
        for passage in self._index.search(" ".join(query), HITS):
            text = passage.text(self._texts[passage.handle])
            left -= self._count(text)
            if left < 0:
                break
            texts.append(text)
        return "\n".join(texts)


def plain_words(text: str) -> list[str]:
    """The words of a text that are not identifiers, each once; at most MAX_WORDS."""
    words = dict.fromkeys(
        token for token in TOKEN.findall(text) if len(token) > 1 and not names_in(token)
    )
    return list(words)[:MAX_WORDS]
