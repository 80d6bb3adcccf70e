"""Articles within results: which are shortened, in which order, what stays, how they are marked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from blocks import CONFIG, TEXT, block, count, lone_surrogates
from effort import examples, large
from hypothesis import given
from hypothesis import strategies as st
from retrieval_cases import ANSWER, QUESTION, SHAPES, articles, conversation, prose, results_of
from shapes import FORMATS

import trimtab
from trimtab import ArticleRule
from trimtab.reducers import Config, Offer, levels
from trimtab.reducers.article_selection import articles as reducer
from trimtab.reducers.article_selection import long_articles
from trimtab.reducers.base import json_bytes, utf8_bytes
from trimtab.transcript.tokens import counter_for

ASKED = replace(CONFIG, question=QUESTION)
JUST_IN_TIME = replace(ASKED, articles=ArticleRule.just_in_time())


def offers(text: str, config: Config = ASKED) -> list[Offer]:
    """The levels of the reducer alone, as the chain passes them on."""
    found = levels(block(text), config)
    return [offer for offer in found if offer.kind == "articles"]


def contents(text: str) -> list[str]:
    return [item["content"] for item in json.loads(text)["articles"]]


def shortened(text: str) -> list[str]:
    """Titles of the articles that say they are compressed."""
    return [
        item["title"] for item in json.loads(text)["articles"]
        if isinstance(item.get("metadata"), dict) and item["metadata"].get("compressed")
    ]  # fmt: skip


# ---------------------------------------------------------------- order


@pytest.mark.row("C3")
def test_the_last_article_goes_first_where_position_decides() -> None:
    text = json.dumps({"articles": articles(5, answer=4)})
    titles = [shortened(offer.text) for offer in offers(text, JUST_IN_TIME)]
    assert titles[:5] == [[f"Article 0-{n}" for n in range(first, 5)] for first in (4, 3, 2, 1, 0)]


@pytest.mark.row("C3")
def test_an_explicit_score_beats_the_position() -> None:
    items = articles(3)
    for item, score in zip(items, (0.2, 0.9, 0.5), strict=True):
        item["score"] = score
    titles = [shortened(o.text) for o in offers(json.dumps({"articles": items}), JUST_IN_TIME)]
    assert titles[:3] == [
        ["Article 0-0"],
        ["Article 0-0", "Article 0-2"],
        ["Article 0-0", "Article 0-1", "Article 0-2"],
    ]


@pytest.mark.row("C3")
def test_by_default_what_matches_the_question_least_goes_first_and_the_answer_last() -> None:
    text = json.dumps({"articles": articles(5, answer=3)})
    for offer in offers(text)[:-1]:
        assert ANSWER in offer.text
    assert contents(offers(text)[1].text)[3] == contents(text)[3]


@pytest.mark.row("C3")
@pytest.mark.parametrize("format", FORMATS)
def test_the_newest_result_goes_first_where_the_rule_says_so(format: str) -> None:
    results = [json.dumps({"articles": articles(6, seed=n)}) for n in range(3)]
    body = conversation(format, results)
    total = trimtab.fit(
        body, window=10**7, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=int(total * 0.9), reserve=0, trigger=1.0, target=1.0)
    for newest_first, changed in ((True, [False, False, True]), (False, [True, False, False])):
        rule = replace(ArticleRule.just_in_time(), newest_first=newest_first)
        fitted = trimtab.fit(
            body, settings=limits | trimtab.Settings(counter="o200k", articles=rule)
        )
        assert {edit.kind for edit in fitted.report.edits} == {"articles"}
        sent = results_of(fitted.request)
        assert [a != b for a, b in zip(sent, results, strict=True)] == changed


def alike(number: int, scores: list[float] | None = None) -> str:
    """Articles that match the question about as well."""
    items = articles(number)
    for index, item in enumerate(items):
        item["content"] = item["content"].replace(". ", f". {ANSWER} ", 5 + index % 3)
        if scores:
            item["score"] = scores[index]
    return json.dumps({"articles": items})


@pytest.mark.row("C3", "C7")
@pytest.mark.parametrize("scores", [None, [0.2, 0.9, 0.5, 0.7, 0.4]])
def test_where_all_match_alike_the_lowest_score_or_the_last_goes_first(
    scores: list[float] | None,
) -> None:
    order = [0, 4, 2, 3, 1] if scores else [4, 3, 2, 1, 0]
    titles = [shortened(offer.text) for offer in offers(alike(5, scores))]
    assert titles[:5] == [
        [f"Article 0-{n}" for n in sorted(order[:cut])] for cut in range(1, 6)
    ]  # fmt: skip


@pytest.mark.row("C4", "C5")
def test_where_all_match_alike_none_goes_below_a_share_before_all_are_at_it() -> None:
    text = alike(5)
    for offer in offers(text):
        cut = zip(contents(text), contents(offer.text), strict=True)
        kept = [count(new) / count(old) for old, new in cut]
        assert min(kept) > 0.15 or max(kept) < 0.35


@pytest.mark.row("C4")
def test_no_title_goes_alone_before_the_others_are_at_their_share() -> None:
    items = articles(4)
    items[3]["content"] = "x" * 2_000  # no piece of it fits into its share
    rule = ArticleRule(order="position", shares=(0.05,))
    found = offers(json.dumps({"articles": items}), replace(ASKED, articles=rule))
    alone = ["left out to fit" in contents(offer.text)[3] for offer in found]
    others = [len(set(shortened(offer.text)) - {"Article 0-3"}) for offer in found]
    assert min(n for n, here in zip(others, alone, strict=True) if here) == 3


@pytest.mark.row("C3")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_level_is_cheaper_than_the_one_before(shape: str) -> None:
    items = articles(6, answer=5)  # the last goes first, and its pieces are worth the most
    for rule in (ArticleRule(order="position"), ArticleRule(), ArticleRule.just_in_time()):
        config = replace(ASKED, articles=rule)
        prices = [offer.price or 0.0 for offer in offers(SHAPES[shape](items), config)]
        assert prices
        assert prices == sorted(prices)


SKIPPED: dict[str, Any] = {
    "not JSON": "no articles here, just words. " * 60,
    "no list": json.dumps({"answer": prose(1, 40)}),
    "empty list": json.dumps({"articles": []}),
    "not a list": json.dumps({"articles": {"content": prose(1, 40)}}),
    "a list of texts": json.dumps({"articles": [prose(1, 40), prose(2, 40)]}),
    "no content": json.dumps({"articles": [{"title": "t", "url": "u", "metadata": {}}] * 40}),
    "content is no text": json.dumps({"articles": [{"title": "t", "content": [1] * 900}]}),
    "neither title nor url": json.dumps({"articles": [{"content": prose(1, 40)}]}),
    "an unknown key": json.dumps({"things": articles(3)}),
    "too short": json.dumps({"articles": articles(9, sentences=2)}),
    "a page with links": "".join(
        f"## Part {n}\n\nSee https://ex.org/{n} for more.\n\n{prose(n, 20)}\n" for n in range(4)
    ),
    "a page with a few addresses": "".join(
        f"## Part {n}\n{'https://ex.org' if n < 2 else ''}\n{prose(n, 20)}\n" for n in range(9)
    ),
    "numbers in a list": "".join(f"{n}. {prose(n, 9)}\n" for n in range(1, 9)),
    "cut JSON": json.dumps({"articles": articles(3)})[:-40],
}


@pytest.mark.row("C3")
@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_no_list_of_articles_is_skipped(name: str) -> None:
    assert list(reducer(block(SKIPPED[name]), ASKED)) == []


@pytest.mark.row("C3")
def test_an_article_without_content_is_skipped_and_the_others_are_not() -> None:
    items = articles(3)
    del items[2]["content"]
    last = offers(json.dumps({"articles": items}), JUST_IN_TIME)[-1]
    assert shortened(last.text) == ["Article 0-0", "Article 0-1"]
    assert json.loads(last.text)["articles"][2] == items[2]


@pytest.mark.row("C3")
def test_other_list_keys_are_configurable() -> None:
    text = json.dumps({"things": articles(3)})
    rule = ArticleRule(list_keys=("things",))
    assert offers(text) == []
    assert len(offers(text, replace(ASKED, articles=rule))) > 3


# ---------------------------------------------------------------- 30 %


@pytest.mark.row("C4")
@pytest.mark.parametrize("shape", SHAPES)
def test_each_article_keeps_at_most_its_share_and_the_sentence_asked_for(shape: str) -> None:
    text = SHAPES[shape](articles(4, sentences=40, answer=2))
    rule = ArticleRule(order="position", shares=(0.30,), newest_first=True)
    last = next(
        offer for offer in reducer(block(text), replace(ASKED, articles=rule))
        if offer.why.startswith("4 of 4")
    )  # fmt: skip
    before = long_articles(text, rule)
    whole, after = {a.title: a for a in before}, _all(last.text, rule)
    assert [a.title for a in after] == [a.title for a in before]
    assert [a.url for a in after] == [a.url for a in before]
    for article in after:
        kept, note = article.content.rsplit(" [of ", 1)
        assert count(kept) <= 0.30 * count(whole[article.title].content)
        assert note.split(" ")[0] == f"{len(whole[article.title].content):,}"
        for piece in kept.replace("[...]", "\n").split("\n"):
            assert piece.strip() in whole[article.title].content
    assert ANSWER in last.text
    assert all(article.compressed for article in after)


def _all(text: str, rule: ArticleRule) -> list[Any]:
    from trimtab.reducers.articles.json_lists import json_articles
    from trimtab.reducers.articles.text_lists import text_articles

    return json_articles(text, rule.list_keys) or text_articles(text)


@pytest.mark.row("C4")
def test_an_article_below_the_minimum_size_is_left_alone() -> None:
    items = [*articles(1, sentences=60), *articles(1, sentences=6, seed=1)]
    text = json.dumps({"articles": items})
    rule = ArticleRule(min_tokens=300)
    every = offers(text, replace(ASKED, articles=rule))
    assert every
    for offer in every:
        assert shortened(offer.text) == ["Article 0-0"]
        assert contents(offer.text)[1] == items[1]["content"]


@pytest.mark.row("C4")
@pytest.mark.parametrize("format", FORMATS)
def test_the_question_is_the_last_human_message_also_as_a_list(format: str) -> None:
    text = json.dumps({"articles": articles(8, answer=6)})
    other = "What did the council say about the harbour?"
    body = conversation(format, [text], question=other)
    items = body.get("messages") or body.get("contents") or body.get("input")
    assert items is not None
    first = items[0]
    if format == "gemini":
        first["parts"] = [{"text": other}, {"text": QUESTION}]
    elif format == "bedrock":
        first["content"] = [{"text": other}, {"text": QUESTION}]
    else:
        kind = "input_text" if format == "openai-responses" else "text"
        first["content"] = [{"type": kind, "text": other}, {"type": kind, "text": QUESTION}]
    window = int(trimtab.fit(body, window=10**7).report.tokens_before * 0.4)
    fitted = trimtab.fit(body, window=window, reserve=0)
    assert ANSWER in results_of(fitted.request)[0]


# ---------------------------------------------------------------- stop at the target


def of_tokens(seed: int, tokens: int) -> str:
    """Prose of so many o200k tokens, give or take a dozen."""
    text = prose(seed, tokens // 14)
    o200k = counter_for("o200k", model=None, format="")
    while o200k(text) > tokens:
        text = text[: -8 * max(1, (o200k(text) - tokens) // 3)]
    return text


@cache
def three_searches() -> list[str]:
    """21 articles in three results, 330,000 tokens in all."""
    results = []
    for call in range(3):
        items = articles(7, sentences=1, seed=call)
        for number, item in enumerate(items):
            item["content"] = of_tokens(7 * call + number, 15_660)
        results.append(json.dumps({"articles": items}))
    return results


@pytest.mark.row("C5")
@pytest.mark.parametrize("format", FORMATS)
def test_eleven_of_21_articles_are_enough(format: str) -> None:
    body = conversation(format, three_searches())
    limits = trimtab.Settings(window=262_144, reserve=0, trigger=0.85, target=0.80)
    rule = ArticleRule.just_in_time()
    fitted = trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k", articles=rule))
    report = fitted.report
    assert 329_000 <= report.tokens_before <= 331_000
    assert report.tokens_after <= 0.80 * 262_144 + 100
    assert report.tokens_after + 11_600 > 0.80 * 262_144  # ten articles would not do
    sent = [shortened(text) for text in results_of(fitted.request)]
    assert sent == [
        [],
        [f"Article 1-{n}" for n in (3, 4, 5, 6)],
        [f"Article 2-{n}" for n in range(7)],
    ]


@pytest.mark.row("C4", "C5", "C7")
def test_by_default_too_eleven_of_21_are_cut_to_30_percent_and_ten_stay_whole() -> None:
    items = [item for text in three_searches() for item in json.loads(text)["articles"]]
    text = json.dumps({"articles": items})
    limits = trimtab.Settings(window=262_144, reserve=0, trigger=0.85, target=0.80)
    body = conversation("openai-chat", [text])
    fitted = trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k"))
    (sent,) = results_of(fitted.request)
    assert shortened(sent) == [item["title"] for item in items[10:]]
    assert contents(sent)[:10] == contents(text)[:10]


@pytest.mark.row("C5")
def test_where_all_at_30_percent_are_too_much_the_next_rung_follows() -> None:
    body = conversation("openai-chat", three_searches())
    limits = trimtab.Settings(window=60_000, reserve=0, trigger=0.85, target=0.80)
    rule = ArticleRule.just_in_time()
    fitted = trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k", articles=rule))
    assert fitted.report.tokens_after <= 0.80 * 60_000 + 100
    assert sum(len(shortened(text)) for text in results_of(fitted.request)) == 21


@pytest.mark.row("C5")
def test_below_the_trigger_nothing_happens() -> None:
    body = conversation("openai-chat", three_searches())
    total = trimtab.fit(
        body, window=10**7, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=total, reserve=0, trigger=1.0)
    assert trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k")).request is body


# ---------------------------------------------------------------- the mark


METADATA: list[tuple[Any, Any, Any]] = [  # metadata; what becomes of it; of the article besides
    ({"a": 1}, {"a": 1, "compressed": True}, {}),
    ({}, {"compressed": True}, {}),
    ({"compressed": False, "a": 1}, {"compressed": True, "a": 1}, {}),
    (None, None, {"compressed": True}),
    ("wiki", "wiki", {"compressed": True}),
    (["wiki"], ["wiki"], {"compressed": True}),
    (7, 7, {"compressed": True}),
]


@pytest.mark.row("C6")
@pytest.mark.parametrize(("given", "then", "beside"), METADATA)
def test_the_mark_stands_in_the_metadata_and_all_else_stays(
    given: Any, then: Any, beside: dict[str, Any]
) -> None:
    item = {"url": "u", "score": 1.50, "metadata": given, "content": prose(1, 60), "title": "t"}
    text = json.dumps({"before": 1, "articles": [item], "after": [2]})
    last = offers(text)[-1]
    tree = json.loads(last.text)
    assert list(tree) == ["before", "articles", "after"]
    (new,) = tree["articles"]
    assert new == {**item, "metadata": then, **beside, "content": new["content"]}
    assert list(new) == [*item, *beside]
    assert '"score": 1.5' in last.text or '"score":1.5' in last.text


@pytest.mark.row("C6")
def test_whoever_wants_half_of_each_article_finds_the_mark_on_it() -> None:
    rule = ArticleRule(order="position", shares=(0.5,))
    titles = [shortened(o.text) for o in offers(json.dumps({"articles": articles(3)}),
                                                replace(ASKED, articles=rule))]  # fmt: skip
    assert titles[0] == ["Article 0-2"]


@pytest.mark.row("C6")
def test_without_metadata_some_is_added_behind_the_other_fields() -> None:
    item = {"title": "t", "url": "u", "content": prose(1, 60)}
    (new,) = json.loads(offers(json.dumps([item]))[-1].text)
    assert list(new) == ["title", "url", "content", "metadata"]
    assert new["metadata"] == {"compressed": True}


@pytest.mark.row("C6")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_compressed_already_never_is_again(shape: str) -> None:
    text = SHAPES[shape](articles(4, sentences=40, answer=2))
    for offer in reducer(block(text), ASKED):
        for again in reducer(block(offer.text), ASKED):
            before = {a.title: a for a in _all(offer.text, ArticleRule())}
            for article in _all(again.text, ArticleRule()):
                if before[article.title].compressed:
                    assert article.content == before[article.title].content
    assert list(reducer(block(offer.text), ASKED)) == []


# ---------------------------------------------------------------- the best stay


@pytest.mark.row("C7")
@pytest.mark.parametrize("format", FORMATS)
def test_the_most_relevant_articles_stay_whole(format: str) -> None:
    results = [json.dumps({"articles": articles(7, seed=n, answer=n)}) for n in range(2)]
    body = conversation(format, results)
    total = trimtab.fit(
        body, window=10**7, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=total // 2, reserve=0, trigger=1.0, target=1.0)
    fitted = trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k"))
    for number, sent in enumerate(results_of(fitted.request)):
        assert contents(sent)[number] == contents(results[number])[number]


@pytest.mark.row("C7")
@pytest.mark.parametrize("keep", [0, 1, 3, 7])
def test_how_many_stay_whole_in_each_result_is_configurable(keep: int) -> None:
    text = json.dumps({"articles": articles(7, answer=5)})
    rule = ArticleRule(keep=keep)
    found = offers(text, replace(ASKED, articles=rule))
    if keep == 7:
        assert found == []
        return
    assert len(shortened(found[-1].text)) == 7 - keep
    assert keep == 0 or contents(found[-1].text)[5] == contents(text)[5]


# ---------------------------------------------------------------- repeats, escapes


@pytest.mark.parametrize("format", FORMATS)
def test_a_repeated_article_is_shown_once(format: str) -> None:
    twice = articles(2, seed=5, answer=0)
    results = [
        json.dumps({"articles": [*articles(3, seed=1), *twice]}),
        json.dumps({"articles": [*twice, *articles(3, seed=2)]}),
    ]
    body = conversation(format, results)
    total = trimtab.fit(
        body, window=10**7, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    limits = trimtab.Settings(window=int(total * 0.85), reserve=0, trigger=1.0, target=1.0)
    fitted = trimtab.fit(body, settings=limits | trimtab.Settings(counter="o200k"))
    first, second = (contents(text) for text in results_of(fitted.request))
    assert all(text.startswith("[") and "given more than once" in text for text in first[3:])
    assert second[:2] == [item["content"] for item in twice]
    assert sum(text.count(ANSWER) for text in (*first, *second)) == 1


def test_within_one_result_the_first_of_equal_articles_stays() -> None:
    text = json.dumps({"articles": [*articles(2), articles(1)[0]]})
    first = offers(text)[0]
    assert contents(first.text)[:2] == contents(text)[:2]
    assert "given more than once" in contents(first.text)[2]


def test_escaped_letters_are_written_out_and_can_be_told_from_what_is_shown() -> None:
    text = json.dumps({"результат": "Вопрос \\u0434 \u200b\n" * 40, "emoji": "🦀🇩🇪" * 9})
    first = next(iter(levels(block(text), CONFIG)))
    assert (first.kind, first.loss) == ("unescape", 0.0)
    assert count(first.text) < count(text) * 0.6
    assert json.loads(first.text) == json.loads(text)
    assert json.dumps(first.text)[1:-1].replace('\\"', '"').replace("\\\\", "\\") == text


@pytest.mark.parametrize(
    "text",
    [
        'print("\\u0434' + "\\u0435" * 40 + '")',  # not JSON
        json.dumps({"a": "д" * 40}, ensure_ascii=False) + " ",  # nothing escaped
        json.dumps({"a": "д" * 40}).replace("\\u0434", "\\u0434д"),  # both: not to be told apart
        json.dumps({"a": "ꯍ" * 40}).replace("abcd", "ABCD"),  # upper case
        json.dumps({"a": "\u200b" * 40}),  # nothing printable
        json.dumps({"a": "\ud83d" * 40}),  # half characters
    ],
)
def test_escapes_that_could_not_be_written_again_stay(text: str) -> None:
    assert all(offer.kind != "unescape" for offer in levels(block(text), CONFIG))


# ---------------------------------------------------------------- laws


ITEM = st.fixed_dictionaries(
    {"title": st.text(max_size=20), "content": TEXT},
    optional={"url": st.text(max_size=9), "metadata": st.none() | st.just({"k": 1}),
              "score": st.floats()},
)  # fmt: skip


@examples(1.2)
@given(
    st.lists(ITEM, max_size=5), st.sampled_from(sorted(SHAPES)), st.booleans(),
    st.sampled_from([ArticleRule(min_tokens=1), ArticleRule.just_in_time(), ArticleRule(keep=1)]),
    TEXT,
)  # fmt: skip
def test_each_level_is_smaller_and_loses_more(
    items: list[Any], shape: str, recall: bool, rule: ArticleRule, question: str
) -> None:
    if shape not in ("articles", "bare list", "results", "JSON lines"):
        items = [{"url": "u", **item} for item in items]
    text = SHAPES[shape](items)
    config = Config(count, recall, question=question, articles=rule)
    last, loss, failures = text, 0.0, list[str]()
    for offer in levels(block(text), config, failures=failures):
        assert count(offer.text) < count(last)
        assert utf8_bytes(offer.text) < utf8_bytes(last)
        assert json_bytes(offer.text) < json_bytes(last)
        assert loss <= offer.loss <= 0.95
        assert lone_surrogates(offer.text) <= lone_surrogates(text)
        last, loss = offer.text, offer.loss
    assert failures == []


def one(content: str) -> str:
    return json.dumps({"articles": [{"title": "t", "content": content}]})


GREAT: dict[str, Callable[[], str]] = {
    "many articles": lambda: json.dumps({"articles": articles(large(900), sentences=12)}),
    "one article": lambda: json.dumps({"articles": articles(2, sentences=large(6_000))}),
    "one word": lambda: json.dumps(
        {"articles": [{"title": "t", "content": "a" * large(1_000_000)}]}
    ),
    "spaces": lambda: one(" " * large(1_000_000)),
    "stops": lambda: one(". " * large(500_000)),
    "fences": lambda: json.dumps(
        {"articles": [{"title": "t", "content": "```\n" * large(250_000)}]}
    ),
    "Chinese": lambda: json.dumps(
        {"articles": [{"title": "t", "content": "顶级联赛。" * large(70_000)}]}
    ),
    "numbered": lambda: "".join(
        f"[{n}] t\nURL: https://a.b\n\nx\n" for n in range(1, large(30_000))
    ),
    "headings": lambda: "## a\nhttps://a.b\n" * large(60_000),
    "open tags": lambda: "<document a>" * large(80_000),
    "tags": lambda: "<document a>b</document>" * large(40_000),
    "titles": lambda: "Title: a\n" * large(110_000),
    "escapes": lambda: json.dumps({"a": "д" * large(160_000)}),
}


@pytest.mark.parametrize("name", GREAT)
def test_a_great_list_of_articles_is_read_in_time(name: str) -> None:
    failures, great = list[str](), block(GREAT[name]())
    started = time.process_time()
    found = list(levels(great, ASKED, failures=failures))
    assert time.process_time() - started < 4
    assert failures == []
    assert count(found[-1].text) <= 200
