"""Prints how near our token counts are to the tokenizer of each family, by kind of text.

    python bench/counts.py --npm node_modules --pygments pygments-2.21.0 [--all] [--speed]

Each figure is ours / real: the mean over the texts of a kind, and the lowest.  The texts
(``bench/count_texts.py``) are none of those that corrections were fitted on; the judges are
tokenizers of other makers (``bench/reference_tokenizers.py``, with the packages that they need).
``--all`` prints the kinds too where ours equals the judge's; ``--speed`` what counting costs,
against o200k.  "outside" marks a mean more than 3 % below or 25 % above, or a text 8 % below.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

from count_texts import Text, test_texts  # noqa: E402
from reference_tokenizers import Judge, judges  # noqa: E402

from trimtab.transcript.tokens import Counter, counter_for  # noqa: E402

MEAN, MIN = (0.97, 1.25), 0.92
NEAR = 0.005
ROUNDS = 5


def ratios(judge: Judge, texts: Sequence[Text]) -> Mapping[str, list[float]]:
    """Ours / real of each text, by kind."""
    count = counter_for(None, model=judge.model, format="openai-chat")
    found = defaultdict(list)
    for text, real in zip(texts, judge.count([text.text for text in texts]), strict=True):
        found[text.kind].append(count(text.text) / real)
    return found


def is_within(of_kind: Sequence[float]) -> bool:
    return MEAN[0] <= statistics.mean(of_kind) <= MEAN[1] and min(of_kind) >= MIN


def print_family(judge: Judge, texts: Sequence[Text], whole: bool) -> None:
    """One line a kind."""
    name = counter_for(None, model=judge.model, format="openai-chat").name
    print(f"{judge.family}: {judge.model} by {name}; judge {judge.by}")
    by_kind = ratios(judge, texts)
    equal = []
    for kind, of_kind in by_kind.items():
        mean, least = statistics.mean(of_kind), min(of_kind)
        if not whole and max(abs(mean - 1), abs(least - 1)) < NEAR:
            equal.append(kind)
            continue
        fault = "" if is_within(of_kind) else "  outside"
        print(f"  {kind:<28}{len(of_kind):>3}  mean {mean:5.2f}  lowest {least:5.2f}{fault}")
    if equal:
        print(f"  {len(equal)} of {len(by_kind)} kinds within {NEAR:.1%}")
    print()


def seconds(count: Counter, texts: Sequence[str]) -> float:
    """Processor time to count texts that the counter has not seen."""
    start = time.process_time()
    for text in texts:
        count.source.measure(text)
    return time.process_time() - start


def print_speed(models: Sequence[str], texts: Sequence[str]) -> None:
    """Paired: each round counts by o200k and by the other, in turn."""
    plain = counter_for("o200k", model=None, format="")
    for model in models:
        count = counter_for(None, model=model, format="openai-chat")
        pairs = [(seconds(plain, texts), seconds(count, texts)) for _ in range(ROUNDS + 1)][1:]
        times = statistics.median(own / base for base, own in pairs)
        print(f"  {model:<22}{times:5.2f} × the time of o200k  ({count.name})")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--npm", type=Path, required=True, help="a folder node_modules")
    parser.add_argument("--pygments", type=Path, required=True, help="its source archive, unpacked")
    parser.add_argument("--all", action="store_true", help="kinds that are equal, too")
    parser.add_argument("--speed", action="store_true", help="what counting costs")
    args = parser.parse_args()
    texts = list(test_texts(args.npm.resolve(), args.pygments))
    print(f"{len(texts)} texts, {sum(len(text.text) for text in texts) / 1e6:.1f} M characters\n")
    found = list(judges(args.npm.resolve()))
    for judge in found:
        print_family(judge, texts, args.all)
    if args.speed:
        print_speed([judge.model for judge in found], [text.text for text in texts])


if __name__ == "__main__":
    main()
