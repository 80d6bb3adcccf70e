"""A model's window, output limit, prices and smallest cached prefix, from a table in this package.

The table comes from LiteLLM's MIT-licensed data (scripts/model_table.py).  A limit that a provider
named in a refusal is more reliable than the table: pass it as ``window=``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache

from trimtab.errors import InvalidSetting
from trimtab.forking import loading

_REGION = re.compile(r"^(?:us|eu|apac|global|jp|au|ca|us-gov|sa|me|af|il|in)\.(?=[a-z0-9]+\.)")
_VENDOR = re.compile(
    r"^(?:anthropic|amazon|meta|mistral|deepseek|qwen|openai|cohere|ai21|google|nvidia|minimax"
    r"|moonshot|moonshotai|writer|zai|twelvelabs|xai)\.(?=[a-z])"
)
_ARN = re.compile(r"^arn:[^/]*/(?=.)")
_BUILD = re.compile(r"-v\d+:\d+(?::\d+k)?$|(?<=\d):0$")
_TAG = re.compile(r":(?:free|nitro|floor|thinking|extended|online|exacto|beta)$")
_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest|default)$")
_HIGH = re.compile(r"\[1m\]$", re.IGNORECASE)
"""The suffix with which coding agents ask for the window of a million tokens."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model in the table.  Sizes are in tokens; ``None`` if unknown.

    ``shared``: whether input and output share one window.  ``input_price``: US dollars for
    a million tokens of input; ``output``, ``read``, ``write``, ``write_1h``: multiples of it.
    ``min_cached``: shorter prefixes are not cached.  ``tier_tokens``/``tier``: above this size
    input costs ``tier`` times as much.
    """

    name: str
    input_tokens: int
    output_tokens: int | None
    shared: bool
    input_price: float | None
    output: float | None
    read: float | None
    write: float | None
    write_1h: float | None
    min_cached: int | None
    tier_tokens: int | None
    tier: float | None

    @property
    def window(self) -> int:
        """Tokens of input and output together."""
        return self.input_tokens + (0 if self.shared else self.output_tokens or 0)


def plain_name(model: str) -> str:
    """A model's name without provider, region, vendor and build.

    >>> plain_name("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    'claude-sonnet-4-5-20250929'
    """
    name = _ARN.sub("", model.strip().lower()).rpartition("/")[2]
    name = _HIGH.sub("", _VENDOR.sub("", _REGION.sub("", name)))
    return _TAG.sub("", _BUILD.sub("", name)).replace("@", "-")


def undated(name: str) -> str:
    """A plain name without the date it was released on: ``gpt-5-2025-08-07`` → ``gpt-5``."""
    return _DATE.sub("", name)


def find(model: str) -> Model | None:
    """The table's entry for a model, by any spelling of its name; None if there is none.

    An entry for the host comes before the model's own (``github_copilot/gpt-5.5``), one for a dated
    release before the name without its date.
    """
    plain, host = plain_name(model), model.strip().lower().partition("/")[0]
    for key in (f"{host}/{plain}", f"{host}/{undated(plain)}", plain, undated(plain)):
        if text := _table().get(key):
            listed = _model(key, text)
            large = bool(_HIGH.search(model)) and listed.input_tokens < 1_000_000
            return replace(listed, input_tokens=1_000_000) if large else listed
    return None


def nearest_version(model: str) -> Model | None:
    """The entry of the same family whose version is nearest: the newest before it, else the oldest
    behind it; of a name without a version the newest.  A version far above its newest may lack its
    dot: ``grok-41-fast`` is 4.1.  None if it does not, as ``claude4``, or if the family is not in
    the table.

    >>> nearest_version("claude-fable-5-9").name
    'claude-fable-5-1'
    """
    plain = undated(plain_name(model))
    family, version = _family(plain)
    relatives = _families().get(family, ())
    if not relatives or (not version and len(family) < 2):  # "gpt" alone names no model
        return None

    newest = max(_family(name)[1][:1] or (0,) for name in relatives)
    if version and version[0] > _FAR * newest[0] > 0:
        same = [name for name in relatives if _family(name)[1] == divmod(version[0], 10)]
        return find(min(same, key=len)) if same else None

    def distance(name: str) -> tuple[bool, tuple[int, ...], bool, str]:
        """The smallest is nearest; names spelled alike before others: 5-1 and 5.1."""
        own = _family(name)[1]
        behind = bool(version) and own > version
        order = own if behind else tuple(-number for number in (*own, 0, 0, 0)[:4])
        return behind, order, ("." in name) != ("." in plain), name

    return find(min(relatives, key=distance))


_FAR = 3
"""A major version above so many times the newest of its family is a slip, not a model to come."""
_VERSION = re.compile(r"([a-z]*)(\d{1,2}(?:\.\d{1,3})*)")
_RELEASE = re.compile(r"\d{4,}|\d{1,2}(?=-\d{4}$)")


def _family(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """(words, version) of a plain name: ``gpt-5.1-mini`` → (gpt, mini), (5, 1);
    ``qwen3-32b`` → (qwen, 32b), (3)."""
    words, version = list[str](), list[int]()
    for part in name.split("-"):
        if match := _VERSION.fullmatch(part):
            words += filter(None, [match[1].removesuffix("v")])
            version += map(int, match[2].split("."))
        elif not _RELEASE.fullmatch(part):
            words.append(part)
    return tuple(words), tuple(version)


@cache
def _families() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    families: dict[tuple[str, ...], list[str]] = {}
    for name in _table():
        if "/" not in name and ":" not in name:
            families.setdefault(_family(name)[0], []).append(name)
    return {family: tuple(names) for family, names in families.items()}


def require(model: str | None) -> Model:
    """The entry of a model whose window must be known, else of the nearest version of its family.

    Raises InvalidSetting with advice.
    """
    if model and (listed := find(model) or nearest_version(model)):
        return listed
    about = "neither one nor a model is named"
    if model:
        near = get_close_matches(undated(plain_name(model)), _table(), n=1, cutoff=0.8)
        about = f"the model {model!r} is not in our table"
        about += f" (did you mean {near[0]!r}?)" if near else ""
    raise InvalidSetting(
        f"no window: {about}; say how many tokens the model takes, as window=128_000 "
        "(--window 128k)"
    )


@cache
def _table() -> Mapping[str, str]:
    with loading:  # a fork waits for it: reading a resource imports modules
        from importlib import resources

        text = (resources.files("trimtab.pricing") / "models.txt").read_text(encoding="utf-8")
    facts_by_name: dict[str, str] = {}
    for line in text.splitlines():
        facts, bar, names = line.partition(" | ")
        if bar and not facts.startswith("#"):
            facts_by_name.update(dict.fromkeys(names.split(), facts))
    return facts_by_name


def _model(name: str, text: str) -> Model:
    given, said, kind, price, output, read, write, hour, least, tier = text.split()
    above, _, times = tier.partition("k×")
    return Model(
        name, int(given), int(said) or None, kind == "s", float(price) or None,
        _number(output), _number(read), _number(write), _number(hour),
        None if least == "-" else int(least),
        int(above) * 1000 if times else None, _number(times or "-"),
    )  # fmt: skip


def _number(text: str) -> float | None:
    return None if text == "-" else float(text)
