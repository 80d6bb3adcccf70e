"""The tables ``[articles]`` and ``[summarizer]`` of a settings file.

``ArticleRule`` and ``Summarizer``, which hold functions, are built from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from trimtab.errors import InvalidSetting
from trimtab.reducers.articles.article import ArticleRule
from trimtab.setting_kinds import (
    COUNT,
    FLAG,
    SECONDS,
    TEXT,
    ValueKind,
    one_of,
    readable,
    setting,
)
from trimtab.summarizers.endpoint import Endpoint
from trimtab.summarizers.summarizer import Summarizer


@dataclass(frozen=True)
class ArticleTable:
    """The key of ``[articles]`` that is not a field of ``ArticleRule``."""

    rule: Literal["match", "position", "just-in-time"] = setting(
        "match", one_of(Literal["match", "position", "just-in-time"]),
        "which articles go first: what matches the question least, the last of the list, or each "
        "to 30 % of its tokens from the last of the newest result on",
    )  # fmt: skip


@dataclass(frozen=True)
class SummarizerTable:
    """A model at an endpoint, and the limits for asking it."""

    url: str = setting(
        "", TEXT, "base address of an endpoint compatible with OpenAI's API or Anthropic's"
    )
    model: str = setting("", TEXT, "the model to ask there")
    api: Literal["openai", "anthropic"] | None = setting(
        None, one_of(Literal["openai", "anthropic"]), "whose API it is; unset: by the url"
    )
    key_env: str = setting("", TEXT, "the variable that holds the key; unset: no key is sent")
    seconds: float = setting(30.0, SECONDS, "for all asks of one request together")
    parallel: int = setting(4, COUNT, "asks at the same time")
    max_asks: int = setting(16, COUNT, "asks of one request")
    steps: bool = setting(True, FLAG, "old steps too; false: their notes stay word for word")

    def summarizer(self, env: Mapping[str, str]) -> Summarizer:
        """The summarizer.  Raises InvalidSetting if the table is incomplete."""
        if not self.url or not self.model:
            raise InvalidSetting(
                "summarizer: give the url of an endpoint and the model to ask there"
            )
        if self.key_env and not env.get(self.key_env):
            raise InvalidSetting(
                f"summarizer.key_env: the variable {self.key_env} is not set; set it to the "
                "endpoint's key, or leave key_env out"
            )
        endpoint = Endpoint(self.url, self.model, api=self.api, key=env.get(self.key_env, ""))
        return Summarizer(
            endpoint, seconds=self.seconds, parallel=self.parallel, max_asks=self.max_asks,
            steps=self.steps,
        )  # fmt: skip


def _article_rule(values: Mapping[str, Any], env: Mapping[str, str]) -> ArticleRule:
    options = dict(values)
    rule = options.pop("rule", "match")
    if rule == "just-in-time":
        return replace(ArticleRule.just_in_time(), **options)
    return ArticleRule(order=rule, **options)


def _is_rule(value: Any) -> bool:
    return isinstance(value, ArticleRule)


def _table(
    holds: Callable[[Any], bool], give: str, keys: Mapping[str, Any], build: Callable[..., Any]
) -> ValueKind:
    return ValueKind(holds, give, expected="a table", keys=keys, build=build)


ARTICLES = _table(
    _is_rule, "a trimtab.ArticleRule", {**readable(ArticleTable), **readable(ArticleRule)},
    _article_rule,
)  # fmt: skip
SUMMARIZER = _table(
    lambda value: value is None or callable(value),
    "a function, an Endpoint or a Summarizer", readable(SummarizerTable),
    lambda values, env: SummarizerTable(**values).summarizer(env),
)  # fmt: skip
