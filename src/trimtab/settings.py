"""Every setting, declared once: its name, what it takes, its default and what it does.

The keywords of ``fit`` and ``Session``, the keys of ``trimtab.toml``, the variables ``TRIMTAB_*``,
the options of the command line and docs/settings.md all follow from ``Settings``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar

from trimtab.errors import InvalidSetting, shown
from trimtab.events import OnEvent
from trimtab.formats.registry import FormatName
from trimtab.planning.presets import PresetName
from trimtab.planning.reasoning_signatures import Thinking
from trimtab.planning.redundancy import Duplicates, FailedInputs
from trimtab.pricing import prices
from trimtab.reducers import Reducer
from trimtab.reducers.articles.article import DEFAULT_RULE, ArticleRule
from trimtab.setting_kinds import (
    AMOUNT,
    COUNT,
    COUNT_OR_NONE,
    FLAG,
    SECONDS_OR_NONE,
    SHARE,
    SHARE_OR_0,
    TEXT_OR_NONE,
    TEXTS,
    ValueKind,
    check_kinds,
    declared,
    list_of,
    one_of,
    one_of_names,
    program_only,
    setting,
    table,
)
from trimtab.setting_tables import ARTICLES, SUMMARIZER
from trimtab.suggestions import nearest
from trimtab.summarizers.endpoint import Endpoint
from trimtab.summarizers.summarizer import Summarizer
from trimtab.transcript.client_requests import SIGNATURES
from trimtab.transcript.protected import Pin
from trimtab.transcript.tokens import Counter

__all__ = [
    "ArticleRule",
    "Counter",
    "Duplicates",
    "Endpoint",
    "FailedInputs",
    "Settings",
    "Summarizer",
]


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

BODY_LIMITS = ("request_bytes", "result_chars", "images", "image_pixels", "image_bytes")
LIMITS = ("window", "reserve", "trigger", "window_trigger", "target", *BODY_LIMITS)
NO_WINDOW = 2**62
"""Tokens; used as the window if only other limits are set.  No request is that large."""

_REF = re.compile(r"[0-9a-f]{16}\.\d+")
"""A block's ref, as ``Transcript.refs`` makes it; no other text can match a block."""

COUNTER = ValueKind(
    lambda value: value is None or isinstance(value, (str, Counter)) or callable(value),
    "'o200k', 'estimate' or a function from text to int", TEXT_OR_NONE.read, "a text", "NAME",
)  # fmt: skip
PINS = list_of(
    lambda pin: callable(pin) or (isinstance(pin, str) and _REF.fullmatch(pin) is not None),
    "a list of refs, as measure(request).rows[0].ref, and of functions from block to bool, as "
    "[lambda block: 'text' in block.text]",
)
REDUCERS = list_of(callable, "a list of functions from a block to offers")
NAME = TEXT_OR_NONE


def _remembering(cls: type[C]) -> type[C]:
    """Make a dataclass of settings remember which were set, and reject misspelt names."""
    init, names = cls.__init__, declared(cls).keys()

    @wraps(init)
    def remembering(self: C, *args: Any, **given: Any) -> None:
        if args:
            raise TypeError(f"{cls.__name__}() takes nothing by position: name each setting")
        check_names(given, names, cls.__name__)
        object.__setattr__(self, "_set", frozenset(given))
        init(self, **given)

    cls.__init__ = remembering  # type: ignore[assignment,method-assign]
    return cls


@_remembering
@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """All settings.  Those that are not set may come from other settings, files or the environment.

    ``a | b`` merges two; ``b`` wins.  Raises InvalidSetting for a value of the wrong kind, and
    TypeError for an unknown name.
    """

    window: int | None = setting(
        None, AMOUNT,
        "tokens the model takes, output included; unset: what our table of models has, where no "
        "other limit is given",
        group="Limits",
    )  # fmt: skip
    reserve: int | None = setting(
        None, COUNT_OR_NONE,
        "output tokens to keep free; unset: the request's own limit, where the model shares its "
        "window",
    )  # fmt: skip
    reserve_share: float | None = setting(
        None, SHARE,
        "the most of the window that a request's own output limit keeps free; unset: all it asks "
        "for; the proxy: 0.2, since agents ask for far more than models write",
    )  # fmt: skip
    trigger: float | None = setting(
        None, SHARE,
        "share of the window (less the reserve) above which anything happens; unset: 0.90, or 0.95 "
        "where counts are the model's own or were observed; 1 cuts only when it must, even where "
        "an earlier cut would pay",
    )  # fmt: skip
    window_trigger: float | None = setting(
        None, SHARE,
        "share of the whole window instead, the reserve included, for a client that compacts at "
        "such a share by itself; `trigger` wins over it",
    )  # fmt: skip
    target: float | None = setting(
        None, SHARE, "the one dial: share of the room a cut goes down to; unset: the preset's"
    )
    request_bytes: int | None = setting(None, AMOUNT, "bytes of the encoded body")
    result_chars: int | None = setting(None, AMOUNT, "characters of one tool result")
    images: int | None = setting(None, COUNT_OR_NONE, "images in the whole request")
    image_pixels: int | None = setting(
        None, AMOUNT,
        "pixels of an image's longest side; larger ones are made smaller (extra `images`), or left "
        "out where they can't be",
    )  # fmt: skip
    image_bytes: int | None = setting(None, AMOUNT, "bytes of an image in base64; likewise")

    format: FormatName | None = setting(
        None, NAME,
        "format of the request, as `detect` names it; unset: seen by its shape",
        group="How the request is read",
    )  # fmt: skip
    model: str | None = setting(
        None, NAME, "the model that gets it; unset: the one the request names"
    )
    counter: str | Callable[[str], int] | Counter | None = setting(
        None, COUNTER,
        "how tokens are counted: a vocabulary (o200k, qwen3 …), estimate, or a function; unset: as "
        "the model does",
    )  # fmt: skip
    open_tail: bool = setting(
        False, FLAG, "the last calls are still running: no violation, and never touched"
    )
    strict: bool = setting(False, FLAG, "refuse a broken request instead of repairing it")
    client_requests: Sequence[str] = setting(
        SIGNATURES, TEXTS,
        "how requests of the client's own begin (titles, summaries): these are reduced only where "
        "they would not fit at all",
    )  # fmt: skip

    preset: PresetName = setting(
        "balanced", one_of(PresetName),
        "when, how deep and in what way a cut is made; see Presets",
        group="What is reduced",
    )  # fmt: skip
    pins: Sequence[Pin] = setting(
        (), PINS, "refs of blocks, or functions from a block to bool: these stay whole"
    )
    protected_tools: Sequence[str] = setting(
        (), TEXTS, "globs: calls and results of these tools are touched last; case is ignored"
    )
    protected_paths: Sequence[str] = setting(
        (), TEXTS,
        "globs: calls that name these files, and their results, are touched last; * stays in a "
        "folder, ** does not",
    )  # fmt: skip
    protected_turns: int = setting(
        0, COUNT, "so many of the newest steps of the model are touched last"
    )
    recall: bool = setting(
        False, FLAG, "the model has a recall tool (wrap adds it), so markers may name it"
    )
    thinking: Thinking = setting(
        "drop", one_of(Thinking),
        "signed thinking that is bound to text an edit changed: taken out, or the provider is "
        "asked to take it out (drop_block)",
    )  # fmt: skip
    quote_embedded: bool = setting(
        False, FLAG, "mark tool output that is text in a user's message as a quote"
    )
    early: int | None = setting(
        None, COUNT_OR_NONE,
        "tokens of dead weight that go before the trigger, where that pays for the cache it "
        "breaks; unset: none",
    )  # fmt: skip
    calls_left: int | None = setting(
        None, COUNT_OR_NONE,
        "tool calls still to come: nothing is cut before they need it, and no deeper",
    )  # fmt: skip
    prices: str | None = setting(
        None, one_of_names(tuple(prices.TABLES)),
        "a price table (`trimtab replay --list` names them): the report says what a cut does to "
        "the bill",
    )  # fmt: skip
    idle_seconds: float | None = setting(
        None, SECONDS_OR_NONE,
        "since the last request of this conversation: where the cache has expired, a cut is free "
        "and comes earlier; unset: a session knows",
    )  # fmt: skip

    control: float = setting(
        0.0, SHARE_OR_0,
        "share of a session's conversations that pass untouched while they fit, so that what is "
        "saved can be measured (`trimtab bill`)",
    )  # fmt: skip

    reducers: Sequence[Reducer] | None = setting(
        None, program_only(REDUCERS.holds, REDUCERS.give),
        "instead of ours: until the window is full nothing else is done",
        group="Functions of your own",
    )  # fmt: skip
    extra_reducers: Sequence[Reducer] = setting((), REDUCERS, "reducers to use with ours")
    plugins: bool = setting(
        True, FLAG, "use reducers of installed packages, wherever files and variables are read"
    )
    on_event: OnEvent | None = setting(
        None, program_only(callable, "a function of one event"),
        "called for each fit and for each new edit: counts, tokens, milliseconds",
    )  # fmt: skip

    duplicates: Duplicates = setting(
        Duplicates(), table(Duplicates), "results that came again later"
    )
    failed_inputs: FailedInputs = setting(
        FailedInputs(), table(FailedInputs), "long values that a failed call was given"
    )
    articles: ArticleRule = setting(DEFAULT_RULE, ARTICLES, "lists of articles that a search gave")
    summarizer: Callable[[str], str] | Summarizer | None = setting(
        None, SUMMARIZER,
        "a model that says articles and old steps in its own words: a function from prompt to "
        "answer, an `Endpoint`, or a `Summarizer` around one",
    )  # fmt: skip

    _set: frozenset[str] = field(default=frozenset(), init=False)
    """The names of the settings that were set."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.window is not None and self.reserve is not None and self.reserve >= self.window:
            raise InvalidSetting(
                f"reserve {self.reserve:,} leaves nothing of the window {self.window:,}: "
                "reserve fewer output tokens, or give the model's real window"
            )

    @property
    def waits_for_the_window(self) -> bool:
        """Whether nothing is cut before the window is full, even where an earlier cut would pay."""
        return self.trigger == 1

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were set, by name."""
        return {name: getattr(self, name) for name in declared(Settings) if name in self._set}

    def __or__(self, other: Settings) -> Settings:
        if not other._set:
            return self
        return Settings(**{**self.given, **other.given})

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={shown(value)}" for name, value in self.given.items())
        return f"Settings({inner})"


class KeywordsOfFit(TypedDict, total=False):
    """The keywords of ``fit`` behind ``window``: common settings, and all others in ``settings``.

    None means not set.
    """

    reserve: int | str | None
    model: str | None
    format: FormatName | None
    preset: PresetName | None
    target: float | str | None
    recall: bool | None
    settings: Settings | None


class FitKeywords(KeywordsOfFit, total=False):
    """``window`` and the keywords of ``fit``."""

    window: int | str | None


_REQUESTS = frozenset(("body", "contents", "input", "messages", "prompt", "request"))
"""What people call the first argument."""


def with_keywords(base: Settings, keywords: FitKeywords) -> Settings:
    """The settings, overridden by the keywords of a call.  Raises InvalidSetting."""
    own: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
    _expect_window(own.get("window"))
    given = own.pop("settings", None)
    if given is not None:
        if not isinstance(given, Settings):
            raise InvalidSetting(f"settings={shown(given)}: give a trimtab.Settings")
        base = base | given
    return base | Settings(**own) if own else base


def _expect_window(window: Any) -> None:
    """Raise InvalidSetting for what people give in the place of a window."""
    if isinstance(window, str) and window[:1].isalpha():
        hint = f"a model is named by model={window!r}"
    elif isinstance(window, (list, dict, bytes)):
        hint = "the request is the first argument, as in fit(messages, 32_000)"
    else:
        return
    raise InvalidSetting(f'window={shown(window)}: give tokens, as 32_000 or "32k"; {hint}')


def check_names(given: Mapping[str, Any], names: Set[str], where: str) -> None:
    """Raise TypeError for a keyword that is not among ``names``; the message suggests the
    nearest."""
    for name in given:
        if name in names:
            continue
        if name in declared(Settings) and "settings" in names:
            hint = f": it is a setting; give settings=trimtab.Settings({name}=…)"
        elif name in _REQUESTS and ("request" in names or "settings" in names):
            hint = ": the request is given first, without a name"
        else:
            hint = nearest(name, names)
            if "settings" in names:
                hint = hint or nearest(name, declared(Settings).keys(), "the setting ")
        raise TypeError(f"{where}() got an unexpected keyword argument {name!r}{hint}")


def naming_nearest(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that the error for an unknown keyword suggests the nearest one, and that
    for an argument too many says to name it."""
    code = function.__code__
    places = code.co_varnames[: code.co_argcount]
    names = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    name = function.__qualname__.removesuffix(".__init__")
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount][:1]
    example = f"{keyword[0]}=…" if keyword else "name=…"

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if not keywords.keys() <= names:
            check_names(keywords, names, name)
        if len(args) > len(places):
            raise TypeError(f"{name}() {_takes(places)}: name what comes behind, as in {example}")
        return function(*args, **keywords)

    return call


def _takes(places: Sequence[str]) -> str:
    """What a function takes without a name."""
    given = [place for place in places if place != "self"]
    return f"takes {' and '.join(given)} by position" if given else "takes nothing by position"
