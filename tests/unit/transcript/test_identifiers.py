"""Identifiers in a text: what is read run by run is what is read token by token."""

from __future__ import annotations

import random

from trimtab.transcript.identifiers import NAMES_BY_RUN, TOKEN, apart, names_in, runs

PIECES = [
    "a", "b1", "#", "_", "-", ".", "/", "@", "~", "+", "é", "²", "1", "12345", "fooBar", "→", " ",
    "\t", "v1.2.3", "max_len", "\ud800", "🚀", "x", "ABc", "1.5", "src/a.py", ",", "(",
]  # fmt: skip


def test_names_and_words_of_runs_are_those_of_tokens() -> None:
    draw = random.Random(7)
    for _ in range(20_000):
        text = "".join(draw.choices(PIECES, k=draw.randrange(1, 9)))
        tokens = TOKEN.findall(text)
        names = [name for token in tokens for name, _ in names_in(token)]
        plain = [t for t in tokens if not names_in(t) and len(t) > 1 and not t.isdigit()]
        spaced = apart(text)
        own = [NAMES_BY_RUN[run] for run in runs(text, spaced)]
        assert len(spaced) == len(text)
        assert [name for found in own for name in found or ()] == names, text
        assert own.count(None) == len(plain), text


def test_a_number_of_five_digits_and_a_compound_name_are_identifiers_and_words_are_not() -> None:
    text = "see 12345 of src/main.go, not 1234 or #12: foo_bar."
    found = {run: NAMES_BY_RUN[run] for run in runs(text, apart(text))}
    assert found["12345"] == ("12345",)
    assert found["src/main.go"] == ("src/main.go",)
    assert found["see"] is None
    assert not found["1234"]
