"""Every key of the settings: what it takes, and what its tables stand for.

Knows kinds of values, and how to make rules and summarizers of them.  Does not know where settings
are read from, nor which of them wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from trimtab.amounts import amount, share
from trimtab.asking.embedding import EmbeddingRanker
from trimtab.asking.endpoint import Endpoint
from trimtab.asking.summarizer import Summarizer
from trimtab.errors import InvalidSetting
from trimtab.presets import PRESETS
from trimtab.reading.history import Duplicates, FailedInputs
from trimtab.strategies.retrieval.article import ArticleRule


class Key(NamedTuple):
    """What one key takes: how it is read (``ValueError`` where it cannot be) and in words."""

    read: Callable[[Any], Any]
    expected: str


def _amount(value: Any) -> int:
    number = amount(value) if isinstance(value, str) else value
    if type(number) is not int or number < 0:
        raise ValueError
    return number


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    return share(str(value))


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        value = _FLAGS.get(value.strip().lower())
    if not isinstance(value, bool):
        raise ValueError
    return value


_FLAGS = {"true": True, "yes": True, "on": True, "1": True}
_FLAGS |= {"false": False, "no": False, "off": False, "0": False}


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return tuple(value)


def _shares(value: Any) -> tuple[float, ...]:
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",") if item.strip()]
    if not isinstance(value, list):
        raise ValueError
    return tuple(map(_share, value))


def _seconds(value: Any) -> float:
    number = float(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < 1e9:
        raise ValueError
    return float(number)


def _one_of(*choices: str) -> Key:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Key(read, " or ".join(f'"{choice}"' for choice in choices))


AMOUNT = Key(_amount, 'a whole number, or text such as "128k"')
COUNT = Key(_amount, "a whole number, 0 or more")
SHARE = Key(_share, 'a share above 0 and up to 1, or text such as "90%"')
FLAG = Key(_flag, "true or false")
NAMES = Key(_names, "a list of texts")
TEXT = Key(_text, "a text")
SHARES = Key(_shares, "a list of shares, each above 0 and up to 1")
SECONDS = Key(_seconds, "a number above 0")

LIMITS = {
    "window": AMOUNT, "reserve": AMOUNT, "trigger": SHARE, "target": SHARE,
    "request_bytes": AMOUNT, "result_chars": AMOUNT, "images": COUNT,
}  # fmt: skip
KEYS: dict[str, Key | dict[str, Key]] = {
    **LIMITS,
    "preset": _one_of(*PRESETS),
    "format": TEXT,
    "model": TEXT,
    "counter": TEXT,
    "protected_tools": NAMES,
    "protected_paths": NAMES,
    "protected_turns": COUNT,
    "internal": NAMES,
    "recall": FLAG,
    "open_tail": FLAG,
    "strict": FLAG,
    "thinking": _one_of("drop", "drop_block"),
    "quote_embedded": FLAG,
    "calls_left": COUNT,
    "prices": TEXT,
    "arrival": _one_of("none", "lossless", "large"),
    "plugins": FLAG,
    "duplicates": {"enabled": FLAG, "superseded": FLAG, "protected_tools": NAMES},
    "failed_inputs": {
        "enabled": FLAG, "min_calls": COUNT, "min_turns": COUNT, "protected_tools": NAMES,
    },
    "articles": {
        "rule": _one_of("match", "position", "just-in-time"), "shares": SHARES, "keep": COUNT,
        "least_tokens": COUNT, "newest_first": FLAG, "list_keys": NAMES,
        "ranker": _one_of("words", "embed"), "ranker_share": SHARE,
    },
    "summarizer": {
        "url": TEXT, "model": TEXT, "api": _one_of("openai", "anthropic"), "key_env": TEXT,
        "seconds": SECONDS, "parallel": COUNT, "most_asks": COUNT, "steps": FLAG,
    },
}  # fmt: skip
"""Every key and what it takes; the nested ones are tables."""


def built(tables: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The tables among these values as what ``fit`` takes; all else as it is.

    Raises InvalidSetting where a table lacks something, MissingExtra where a package is.
    """
    found = dict(tables)
    for key, kind in (("duplicates", Duplicates), ("failed_inputs", FailedInputs)):
        if key in found:
            found[key] = kind(**found[key])
    if "articles" in found:
        found["articles"] = _article_rule(**found["articles"])
    if "summarizer" in found:
        found["summarizer"] = _summarizer(env, **found["summarizer"])
    return found


def _article_rule(rule: str = "match", ranker: str = "words", **given: Any) -> ArticleRule:
    if ranker == "embed":
        given["ranker"] = EmbeddingRanker()
    if rule == "just-in-time":
        return replace(ArticleRule.just_in_time(), **given)
    return ArticleRule(order="position" if rule == "position" else "match", **given)


def _summarizer(
    env: Mapping[str, str],
    url: str = "",
    model: str = "",
    api: Literal["openai", "anthropic"] | None = None,
    key_env: str = "",
    **given: Any,
) -> Summarizer:
    if not url or not model:
        raise InvalidSetting("summarizer: give the url of an endpoint and the model to ask there")
    if key_env and not env.get(key_env):
        raise InvalidSetting(
            f"summarizer.key_env: the variable {key_env} is not set; set it to the endpoint's key, "
            "or leave key_env out"
        )
    return Summarizer(Endpoint(url, model, api=api, key=env.get(key_env, "")), **given)
