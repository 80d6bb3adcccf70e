"""Web pages: the text they show is kept, the markup is not, and nothing takes long."""

from __future__ import annotations

import pydoc
import time

import pytest
from blocks import TEXT, block, offers
from hypothesis import given
from hypothesis import strategies as st
from sizes import o200k

from trimtab.reducers import Config
from trimtab.reducers.html_text import html_text, visible_text

PAGE = """<!doctype html>
<html><head><title>The shards</title><style>p { color: red }</style></head>
<body><script>var secret = "<p>not shown</p>";</script>
<!-- <p>not shown either</p> -->
<nav><ul><li><a href="/docs">Docs</a></li><li><a href="#top">Top</a></li></ul></nav>
<h1>Shards &amp; parts</h1>
<p>Each shard holds
   at most <b>4,096</b> parts.</p>
<table><tr><th>name</th><th>size</th></tr><tr><td>a</td><td>12&nbsp;MB</td></tr></table>
<img src="x.png" alt="A diagram of shards">
<p>See <a href="https://example.org/guide?a=1&amp;b=2">the guide</a>.</p>
</body></html>"""


def test_headings_lists_tables_links_and_alt_texts_stay() -> None:
    assert visible_text(PAGE).split("\n") == [
        "The shards",
        "- Docs </docs>",
        "- Top",
        "# Shards & parts",
        "Each shard holds at most 4,096 parts.",
        "name | size |",
        "a | 12 MB |",
        "A diagram of shards",
        "See the guide <https://example.org/guide?a=1&b=2>.",
    ]


def test_a_real_page_becomes_its_text_and_then_digests_of_it() -> None:
    html = pydoc.HTMLDoc().page("json", pydoc.HTMLDoc().document(__import__("json"), "json"))
    count = o200k()
    found = [o for o in offers(block(html), Config(count)) if o.op == "replace"]
    kinds = [o.kind for o in found]
    first = found[kinds.index("page-text")]
    assert count(first.text) < 0.7 * count(html)
    assert "JSON (JavaScript Object Notation)" in first.text
    assert "</" not in first.text
    assert all(kind.endswith("-digest") for kind in kinds[kinds.index("page-text") + 1 :][:3])
    assert [o.loss for o in found] == sorted(o.loss for o in found)


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d\n" * 90,
        "<Component prop={1} />\n" * 40,
        "<div>one tag and then a lot of text " + "word " * 900,
        "```html\n" + PAGE + "\n```",
        "   12→" + PAGE,
    ],
)
def test_other_texts_are_no_pages(text: str) -> None:
    config = Config(o200k())
    assert list(html_text(block(text), config)) == []
    assert list(html_text(block(PAGE, "text"), config)) == []


@given(TEXT, st.sampled_from(["<div>", "<p>", "</p>", "<script>", "<!--", "&amp;", "<a href=/x>"]))
def test_no_page_makes_it_raise_and_none_is_offered_twice(text: str, piece: str) -> None:
    html = "<html>" + f"{piece}{text}" * 14
    new = visible_text(html)
    assert not new or visible_text(new) in ("", new)
    for offer in html_text(block(html), Config(o200k())):
        assert offer.text.strip()
        assert list(html_text(block(offer.text), Config(o200k()))) == []


@pytest.mark.parametrize(
    "piece", ["<", "<div", "<!--", "<a href='", "<script>", "</p>", "<p>&amp;", "&" * 40, "<p> \n"]
)
def test_a_megabyte_of_markup_is_read_in_time(piece: str) -> None:
    html = "<html>" + piece * (1_000_000 // len(piece))
    started = time.process_time()
    visible_text(html)
    assert time.process_time() - started < 2
