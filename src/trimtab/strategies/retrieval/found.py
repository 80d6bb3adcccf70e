"""The articles of a text, whatever way the list of them is spelled.

Knows which readers there are and in which order they are asked.  Does not know how any of them
reads, nor what becomes of an article.
"""

from __future__ import annotations

from trimtab.strategies.base import utf8_bytes
from trimtab.strategies.retrieval.article import Article, ArticleRule
from trimtab.strategies.retrieval.json_lists import json_articles
from trimtab.strategies.retrieval.text_lists import text_articles

LEAST_BYTES = 400
"""A list whose articles are all shorter is a table, not a list of articles."""


def read_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text that are long enough to shorten; none where it is no list of them."""
    found = all_articles(text, rule)
    return [article for article in found if utf8_bytes(article.content) >= LEAST_BYTES]


def all_articles(text: str, rule: ArticleRule) -> list[Article]:
    """The articles of a text, short ones too."""
    found = json_articles(text, rule.list_keys)
    if not found and text[:64].lstrip()[:1] not in ("{", "["):
        found = text_articles(text)
    if not found and text[:1] == "[" and text[1:2].isdigit():  # "[1] …" is not JSON
        found = text_articles(text)
    return found
