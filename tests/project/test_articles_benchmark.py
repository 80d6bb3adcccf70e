"""The benchmark of articles: it counts cuts as they are, and who cuts the wrong ones is told so.

Knows ``bench/articles.py``.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import trimtab

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import articles
from articles import COUNT, ON_TOPIC, Made

TARGET = int(articles.RULE_TARGET * articles.WINDOWS[0])


def first_words(text: str, share: float) -> str:
    words = text.split()
    return " ".join(words[: int(share * len(words))])


def cut(one: Made, names: set[str], share: float = 0.3) -> dict[str, Any]:
    """The request with these articles shortened."""
    sent: dict[str, Any] = json.loads(json.dumps(one.request))
    result = sent["messages"][3]
    for article in one.articles:
        if article.name in names:
            result["content"] = result["content"].replace(
                article.text, first_words(article.text, share)
            )
    return sent


def judged(one: Made, sent: dict[str, Any]) -> articles.Verdict:
    before, after = (trimtab.measure(r, counter="o200k").total for r in (one.request, sent))
    return articles.judge(one, sent, before, after, TARGET)


def worst(one: Made, count: int) -> set[str]:
    return set(sorted(one.ranks, key=lambda name: -one.ranks[name])[:count])


@pytest.fixture(scope="module", params=[("json", "shuffled"), ("text", "alike")])
def one(request: pytest.FixtureRequest) -> Made:
    return articles.made(1, *request.param)


def test_the_rule_needs_eleven_of_twenty_one_and_ten_stay_whole(one: Made) -> None:
    found = judged(one, cut(one, worst(one, 11)))
    assert found.needed == found.cut == 11
    assert (found.whole, found.inverted, found.right) == (ON_TOPIC, 0, True)
    assert found.share == pytest.approx(0.3, abs=0.02)
    assert found.used < 1


def test_who_cuts_the_best_first_is_not_right(one: Made) -> None:
    best = set(one.ranks) - worst(one, COUNT - 11)
    found = judged(one, cut(one, best))
    assert (found.cut, found.whole, found.right) == (11, 0, False)
    assert found.inverted == ON_TOPIC


def test_who_cuts_all_a_little_is_not_right(one: Made) -> None:
    found = judged(one, cut(one, set(one.ranks), 0.6))
    assert (found.cut, found.whole, found.right) == (COUNT, 0, False)
    assert found.share == pytest.approx(0.6, abs=0.02)


def test_an_article_that_is_gone_has_nothing_left(one: Made) -> None:
    sent = json.loads(json.dumps(one.request))
    sent["messages"][3]["content"] = "[left out]"
    found = judged(one, sent)
    assert (found.cut, found.share, found.whole) == (COUNT, 0.0, 0)


@pytest.mark.parametrize("shape", ["json", "text"])
@pytest.mark.parametrize("order", ["ranked", "shuffled", "alike", "scored"])
def test_what_is_made_is_valid_and_read_again_as_it_was_made(shape: str, order: str) -> None:
    one = articles.made(2, shape, order)
    assert trimtab.check(one.request) == ()
    assert articles.articles(one.request["messages"][3]["content"]) == list(one.articles)
    assert articles.made(2, shape, order) == one
    assert articles.made(3, shape, order) != one


def test_held_out_conversations_are_not_those_that_are_printed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "rag-x.jsonl.gz", "wt") as file:
        file.writelines(f'{{"id": {number}}}\n' for number in range(5))
    ids = [
        {record["id"] for _, record in articles.conversations(tmp_path, held_out)}
        for held_out in (False, True)
    ]
    assert ids == [{0, 2, 4}, {1, 3}]


def test_an_answer_in_an_article_that_was_cut_is_not_whole() -> None:
    one = articles.made(4, "json", "shuffled")
    place = next(n for n, a in enumerate(one.articles) if one.ranks[a.name] == COUNT - 1)
    record = {
        "messages": one.request["messages"],
        "meta": {"gold": [{"call_id": "call_1", "index": place}]},
    }
    found = articles.recorded(record, 0.6, None)
    assert found is not None
    assert (found.articles, found.gold, found.whole) == (COUNT, 1, 0)
