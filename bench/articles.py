"""Prints which articles of a search result are cut, how deep, and whether the best stay whole.

    python bench/articles.py [FOLDER] [--held-out] [--seeds N]

A tool result of 21 articles, ten about the question (by its words, the first most of all) and
eleven about something else.  The rule to compare with (rows C3 to C7): the least relevant go first,
each to 30 % of its tokens, until 80 % of the window is reached: 11 of 21 at a window of 26,214, a
tenth of the rule's own; the ten that answer stay whole.  Then recorded retrieval conversations
(FOLDER, or TRIMTAB_DATA, or ../shared/data beside the clone): which of the articles that hold the
answer stay whole, by ``fit`` and by that rule played here.  Knows ``fit`` and ``measure`` alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import trimtab  # noqa: E402

COUNT, ON_TOPIC, ARTICLE_TOKENS = 21, 10, 1_490
"""Articles, how many are about the question, and the tokens that each has at least: a tenth of the
rule's, less what names, addresses and JSON take, so that it needs 11 of 21 here too."""
MAX_INVERTED = 1
"""Two articles next to each other in relevance may change places."""
RULE_SHARE, RULE_TRIGGER, RULE_TARGET = 0.30, 0.85, 0.80
WINDOWS = (26_214, 16_000)
WHOLE = 0.995
"""An article with this share of its tokens is whole: JSON may be spelled anew."""
SORTS = (
    ("json", "ranked"), ("json", "shuffled"), ("json", "alike"), ("json", "scored"),
    ("text", "shuffled"), ("text", "alike"),
)  # fmt: skip
"""Shapes and orders of what is made here."""
RECORDED_SHARES = (0.8, 0.6)
"""Windows of recorded conversations, as shares of their tokens."""
TOPIC = ["lighthouse", "keeper", "salary", "crowns", "winter", "lamp", "oil", "harbour"]
QUESTION = "What salary did the keeper of the lighthouse get in winter, and who paid for lamp oil?"
WORDS = (
    "the committee wrote that each orchard needs three bees a square and that nobody had measured "
    "how far the tram went before its line was closed while painters mixed chalk with milk and the "
    "library lent maps of rivers to whoever asked for them on a weekday after the market"
)
OTHER = WORDS.split()

TEXT_KEYS = ("content", "page_content", "text", "body", "snippet", "chunk")
NAME_KEYS = ("title", "id", "_id", "url", "name")


class Article(NamedTuple):
    """Its name within the result, and what it says."""

    name: str
    text: str


@dataclass(frozen=True)
class Made:
    """A request with one result of articles; ``ranks`` by name: 0 is the most relevant."""

    request: dict[str, Any]
    articles: tuple[Article, ...]
    ranks: dict[str, int]


@cache
def tokens(text: str) -> int:
    """Tokens of a text, without those of a message around it."""
    return _of_message(text) - _of_message("")


def _of_message(text: str) -> int:
    return trimtab.measure([{"role": "user", "content": text}], counter="o200k").total


# --- results made here ---


def made(seed: int, shape: str, order: str) -> Made:
    """``shape``: "json" or "text".  ``order``: "ranked" or "shuffled" by the words of the question;
    "alike": all articles have as many of them, and only their place ranks them; "scored": only a
    score does."""
    draw = random.Random(f"articles/{seed}")
    alike = order in ("alike", "scored")
    ranks = {f"Paper {name}": rank for rank, name in enumerate(draw.sample(range(100, 999), COUNT))}
    listed = [
        Article(name, _article(draw, 0.5 if alike else _match(rank)))
        for name, rank in ranks.items()
    ]
    if order in ("shuffled", "scored"):
        draw.shuffle(listed)
    function = {"name": "search", "arguments": json.dumps({"query": "lighthouse keeper salary"})}
    call = {"id": "call_1", "type": "function", "function": function}
    scores = {name: 9 - rank / 4 for name, rank in ranks.items()} if order == "scored" else {}
    messages = [
        {"role": "system", "content": "You answer from articles."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": _result(listed, shape, scores)},
    ]
    return Made({"model": "gpt-5.1", "messages": messages}, tuple(listed), ranks)


def _match(rank: int) -> float:
    """Which share of the sentences of an article is about the question."""
    return 0.0 if rank >= ON_TOPIC else 0.9 - 0.07 * rank


def _article(draw: random.Random, share: float) -> str:
    """Sentences, of which this share has words of the question."""
    said: list[str] = []
    size = 0
    while size < ARTICLE_TOKENS:
        words = [draw.choice(OTHER) for _ in range(draw.randrange(8, 18))]
        if draw.random() < share:
            for word in draw.sample(TOPIC, 3):
                words.insert(draw.randrange(len(words)), word)
        said.append(f"{' '.join(words).capitalize()} {draw.randrange(10**5)}.")
        size += tokens(f" {said[-1]}")
    return " ".join(said)


def _result(listed: Sequence[Article], shape: str, scores: dict[str, float]) -> str:
    if shape == "text":
        return "\n\n".join(
            f"[{number}] {one.name}\nURL: https://example.org/{number}\n\n{one.text}"
            for number, one in enumerate(listed, 1)
        )
    rows = [
        {"title": one.name, "url": f"https://example.org/{number}", "content": one.text,
         **({"score": scores[one.name]} if scores else {}), "metadata": {"source": "archive"}}
        for number, one in enumerate(listed, 1)
    ]  # fmt: skip
    return json.dumps({"articles": rows})


# --- what is read in what was sent ---


def articles(result: str) -> list[Article]:
    """The articles of a result, JSON or text; equal names are told apart by their number."""
    try:
        found = list(_in_json(json.loads(result)))
    except ValueError:
        parts = re.split(r"(?m)^\[\d+\] ", result)[1:]
        found = [Article(*_head_and_body(part)) for part in parts]
    seen: dict[str, int] = {}
    numbered = []
    for name, text in found:
        seen[name] = seen.get(name, 0) + 1
        numbered.append(Article(f"{name}#{seen[name]}" if seen[name] > 1 else name, text))
    return numbered


def _head_and_body(part: str) -> tuple[str, str]:
    """The first line, and what follows the first blank one."""
    return part.split("\n", 1)[0].strip(), part.partition("\n\n")[2].strip()


def _in_json(value: Any) -> Iterator[Article]:
    if isinstance(value, list):
        for one in value:
            yield from _in_json(one)
    elif isinstance(value, dict):
        text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), None)
        name = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), None)
        if text is not None and name is not None:
            yield Article(name, text)
        else:
            for one in value.values():
                yield from _in_json(one)


def shares(given: Sequence[Article], sent: str) -> dict[str, float]:
    """By name: the share of its tokens that an article still has; 0 where it is gone."""
    left = {one.name: one.text for one in articles(sent)}
    return {
        name: min(1.0, tokens(left[name].strip()) / max(1, tokens(text.strip())))
        if left.get(name)
        else 0.0
        for name, text in given
    }


def needed(total: int, target: int, sizes: Sequence[int]) -> int:
    """How many of these articles, in this order, have to go to 30 % to reach a target."""
    for number, size in enumerate(sizes):
        if total <= target:
            return number
        total -= round((1 - RULE_SHARE) * size)
    return len(sizes)


@dataclass(frozen=True)
class Verdict:
    """``cut``: articles shorter than given; ``share``: the median of theirs; ``whole``: of the ten
    about the question; ``inverted``: articles cut although a less relevant one is whole; ``used``:
    sent tokens as a share of the target; ``needed``: cuts by the rule."""

    cut: int
    share: float
    whole: int
    inverted: int
    used: float
    needed: int
    asked: int = 0

    @property
    def right(self) -> bool:
        """Whether no more are cut than the rule needs, the least relevant first, and as many of the
        best stay whole as the rule leaves whole."""
        enough = self.whole >= min(ON_TOPIC, COUNT - self.needed)
        return self.cut <= self.needed and enough and self.inverted <= MAX_INVERTED


def judge(one: Made, sent: dict[str, Any], before: int, after: int, target: int) -> Verdict:
    """What became of the articles of a request."""
    result = next(m["content"] for m in sent["messages"] if m["role"] == "tool")
    left = shares(one.articles, result)
    ranked = sorted(left, key=lambda name: one.ranks[name])
    whole = [name for name in ranked if left[name] >= WHOLE]
    cut = [name for name in ranked if left[name] < WHOLE]
    last = max((one.ranks[name] for name in whole), default=-1)
    # Those off topic have no order among them.
    inverted = sum(one.ranks[name] < min(last, ON_TOPIC) for name in cut)
    sizes = [tokens(text) for _, text in one.articles]
    return Verdict(
        len(cut), statistics.median([left[name] for name in cut] or [1.0]),
        sum(one.ranks[name] < ON_TOPIC for name in whole), inverted, after / target,
        needed(before, target, sizes),
    )  # fmt: skip


# --- ours ---


def summarize(prompt: str) -> str:
    """In a model's place: the first words of the text, as many as are asked for or fewer."""
    most = re.search(r"at most (\d+) tokens", prompt)
    text = prompt.split(" begin\n", 1)[-1].rsplit("\n", 1)[0]
    return " ".join(text.split()[: int(0.7 * int(most[1] if most else 100))])


def fitted(
    request: dict[str, Any], window: int, by_rule: bool, summarizer: Callable[[str], str] | None
) -> Any:
    """``fit``: ``by_rule`` with the rule's own trigger and target, else with the defaults."""
    settings = trimtab.Settings(summarizer=summarizer) if summarizer else trimtab.Settings()
    if by_rule:
        settings |= trimtab.Settings(trigger=RULE_TRIGGER, target=RULE_TARGET)
    return trimtab.fit(request, window=window, reserve=0, settings=settings)


def target_of(report: Any, window: int, by_rule: bool) -> int:
    """What the cut aimed at."""
    share = RULE_TARGET if by_rule else 0.7
    return int(report.limits.get("target_tokens") or share * window)


def trial(one: Made, window: int, by_rule: bool, summarizer: Any) -> Verdict:
    """One request at one window."""
    done = fitted(one.request, window, by_rule, summarizer)
    report, target = done.report, target_of(done.report, window, by_rule)
    found = judge(one, done.request, report.tokens_before, report.tokens_after, target)
    asked = report.summaries.get("asked", 0) + report.summaries.get("cached", 0)
    return Verdict(**{**found.__dict__, "asked": asked})


def print_made(seeds: Sequence[int]) -> None:
    """The table of results made here."""
    print(
        f"21 articles, ten of them about the question; mean of {len(seeds)} requests\n"
        f"{'window':>7} {'settings':9}{'result':15}{'summarizer':11}{'cut':>6}{'rule':>6}"
        f"{'to':>7}{'best whole':>12}{'inverted':>10}{'of target':>11}{'asks':>6}{'right':>7}"
    )
    for window in WINDOWS:
        for by_rule in (True, False):
            for shape, order in SORTS:
                for summarizer in (None, summarize):
                    found = [
                        trial(made(seed, shape, order), window, by_rule, summarizer)
                        for seed in seeds
                    ]
                    print(
                        f"{window:7,} {'rule' if by_rule else 'default':9}"
                        f"{f'{shape} {order}':15}{'yes' if summarizer else 'no':11}{row(found)}",
                        flush=True,
                    )


def row(found: Sequence[Verdict]) -> str:
    """The means of a row."""

    def mean(name: str) -> float:
        return statistics.mean(float(getattr(one, name)) for one in found)

    whole = f"{mean('whole'):.1f} of {ON_TOPIC}"
    return (
        f"{mean('cut'):6.1f}{mean('needed'):6.1f}{mean('share'):7.0%}"
        f"{whole:>12}{mean('inverted'):10.1f}{mean('used'):11.1%}"
        f"{mean('asked'):6.1f}{sum(one.right for one in found):4} of {len(found)}"
    )


# --- recorded conversations ---


class Gold(NamedTuple):
    """Of a conversation: articles cut and to which share, and of those that hold the answer how
    many there are, how many are whole, and how many by the rule."""

    articles: int
    cut: int
    share: float
    gold: int
    whole: int
    by_rule: int


def conversations(where: Path, held_out: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file, record) of every second retrieval conversation; ``held_out``: the others."""
    for path in sorted(where.glob("rag-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number % 2 == held_out:
                    yield path.name.removesuffix(".jsonl.gz"), json.loads(line)


def recorded(record: dict[str, Any], share: float, summarizer: Any) -> Gold | None:
    """One conversation at a share of its tokens; None where its articles can't be told apart."""
    request = {"model": "gpt-4o", "messages": record["messages"], "tools": record.get("tools")}
    request = {key: value for key, value in request.items() if value}
    total = trimtab.measure(request, counter="o200k").total
    window = int(total * share / RULE_TARGET)
    done = fitted(request, window, True, summarizer)
    target = target_of(done.report, window, True)
    given = {m["tool_call_id"]: articles(m["content"]) for m in _results(request)}
    sent = {m["tool_call_id"]: m["content"] for m in _results(done.request)}
    if not all(given.values()):
        return None
    left = {
        (id, number): kept
        for id, own in given.items()
        for number, kept in enumerate(shares(own, sent.get(id, "")).values())
    }
    order = [(id, n) for id in reversed(given) for n in range(len(given[id]) - 1, -1, -1)]
    sizes = [tokens(given[id][number].text) for id, number in order]
    ruled = set(order[: needed(total, target, sizes)])
    gold = {(one["call_id"], one["index"]) for one in record["meta"]["gold"]} & set(left)
    cut = [kept for kept in left.values() if kept < WHOLE]
    return Gold(
        len(left), len(cut), statistics.median(cut or [1.0]), len(gold),
        sum(left[place] >= WHOLE for place in gold), len(gold - ruled),
    )  # fmt: skip


def _results(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [m for m in request["messages"] if m["role"] == "tool"]


def print_recorded(where: Path, held_out: bool) -> None:
    """The table of recorded conversations."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for name, record in conversations(where, held_out):
        by_file.setdefault(name, []).append(record)
    if not by_file:
        print(f"\nno rag-*.jsonl.gz in {where}: name the folder, or set TRIMTAB_DATA")
        return
    print(
        "\nrecorded conversations at a share of their tokens; whole: articles that hold the answer"
        f"\n{'file':11}{'share':>6} {'summarizer':11}{'articles':>9}{'cut':>6}{'to':>7}"
        f"{'whole':>12}{'by the rule':>13}"
    )
    for name, records in by_file.items():
        for share in RECORDED_SHARES:
            for summarizer in (None, summarize):
                found = [one for r in records if (one := recorded(r, share, summarizer))]
                total = sum(one.gold for one in found)
                print(
                    f"{name:11}{share:6.0%} {'yes' if summarizer else 'no':11}"
                    f"{sum(one.articles for one in found):9}{sum(one.cut for one in found):6}"
                    f"{statistics.median(one.share for one in found):7.0%}"
                    f"{f'{sum(one.whole for one in found)} of {total}':>12}"
                    f"{f'{sum(one.by_rule for one in found)} of {total}':>13}",
                    flush=True,
                )


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", nargs="?")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--held-out", action="store_true", help="other seeds and conversations")
    args = options.parse_args(argv)
    named = args.folder or os.environ.get("TRIMTAB_DATA")
    first = 5_000 if args.held_out else 0
    print_made(range(first, first + args.seeds))
    print_recorded(Path(named) if named else ROOT.parent / "shared" / "data", args.held_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
