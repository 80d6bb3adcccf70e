"""How a setting is declared: a dataclass field with a kind of value and a help text.

A kind knows which values are valid and how one is read from a file, a variable or an option.  The
settings themselves are declared in ``settings.py``, ``proxy/config/settings.py`` and the tables
that these name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields, replace
from math import isfinite
from typing import Any, NamedTuple, TypeVar, get_args

from trimtab import amounts
from trimtab.errors import InvalidSetting, shown

T = TypeVar("T")
MAX = 2**62
"""The largest whole number a setting takes; nothing that is counted here comes near it."""


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value.

    ``holds``: whether a value given by a program is valid; ``give``: what to give instead, in
    words.  ``read`` converts a value from a file, a variable or an option, and raises ValueError if
    it is invalid; without ``read`` only programs can set it.  ``expected``: what ``read`` accepts,
    in words.  ``is_list``: a variable separates items by commas, an option is repeated.
    ``keys``: the settings of a table by name; ``build`` makes the value from a table and the
    environment.
    """

    holds: Callable[[Any], bool]
    give: str
    read: Callable[[Any], Any] | None = None
    expected: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    is_list: bool = False
    keys: Mapping[str, Declared] | None = None
    build: Callable[[Mapping[str, Any], Mapping[str, str]], Any] | None = None
    takes_text: bool = False
    """Whether a program may also give it as text: ``"32k"``, ``"90%"``."""
    is_secret: bool = False
    """Whether it has no option, since other users of the machine can see a program's arguments."""

    @property
    def is_readable(self) -> bool:
        """Whether files, variables and options can set it."""
        return self.read is not None or self.keys is not None


class Declared(NamedTuple):
    """One setting as it was declared."""

    name: str
    kind: ValueKind
    help: str
    default: Any
    group: str = ""


def setting(default: T, kind: ValueKind, help: str, group: str = "") -> T:
    """A dataclass field for a setting.  ``group``: the heading above it and those after it."""
    declared: T = field(default=default, metadata={"kind": kind, "help": help, "group": group})
    return declared


def required(kind: ValueKind, help: str) -> Any:
    """A dataclass field for a setting without a default."""
    return field(metadata={"kind": kind, "help": help, "group": ""})


_DECLARED: dict[type, Mapping[str, Declared]] = {}


def declared(cls: type) -> Mapping[str, Declared]:
    """The settings that a dataclass declares, by name, in order."""
    if cls not in _DECLARED:
        _DECLARED[cls] = dict(_read_declarations(cls))
    return _DECLARED[cls]


def readable(cls: type) -> dict[str, Declared]:
    """The settings of a dataclass that files, variables and options can set."""
    settings = declared(cls).items()
    return {name: setting for name, setting in settings if setting.kind.is_readable}


def _read_declarations(cls: type) -> Iterator[tuple[str, Declared]]:
    group = ""
    for attribute in fields(cls):
        if "kind" in attribute.metadata:
            group = attribute.metadata["group"] or group
            default = None if attribute.default is MISSING else attribute.default
            kind, text = attribute.metadata["kind"], attribute.metadata["help"]
            yield attribute.name, Declared(attribute.name, kind, text, default, group)


def check_kinds(owner: Any, within: str = "") -> None:
    """Raise InvalidSetting for the first invalid value of a dataclass; the message names it with
    ``within`` before it."""
    for name, declaration in declared(type(owner)).items():
        value = getattr(owner, name)
        if value is declaration.default:
            continue
        if declaration.kind.takes_text and isinstance(value, str):
            value = _from_text(declaration.kind, value)
            object.__setattr__(owner, name, value)  # frozen, and still in its __post_init__
        if not _holds(declaration.kind, value):
            raise InvalidSetting(f"{within}{name}={shown(value)}: give {declaration.kind.give}")
        if declaration.kind.keys is not None and hasattr(type(value), "__dataclass_fields__"):
            check_kinds(value, f"{name}.")


def _from_text(kind: ValueKind, text: str) -> Any:
    """The number in a text; the text itself if it is not a number."""
    try:
        return text if kind.read is None else kind.read(text)
    except ValueError:
        return text


def _holds(kind: ValueKind, value: Any) -> bool:
    try:
        return kind.holds(value)
    except Exception:  # a value of a foreign class may raise anything
        return False


# --- reading -----------------------------------------------------------------------------------


def _read_whole(value: Any) -> int:
    number = amounts.amount(value) if isinstance(value, str) else value
    if type(number) is not int or not 0 <= number <= MAX:
        raise ValueError
    return number


def _read_share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError
    return amounts.share(str(value))


def _read_flag(value: Any) -> bool:
    if isinstance(value, str):
        value = _FLAGS.get(value.strip().lower())
    if not isinstance(value, bool):
        raise ValueError
    return value


_FLAGS = {"true": True, "yes": True, "on": True, "1": True}
_FLAGS |= {"false": False, "no": False, "off": False, "0": False}


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return tuple(value)


def _read_shares(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(map(_read_share, value))


def _read_number(value: Any) -> float:
    number = float(value) if isinstance(value, str) else value
    if not _is_number(number):
        raise ValueError
    return float(number)


# --- kinds -------------------------------------------------------------------------------------


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 1


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX and isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(least: int, metavar: str) -> ValueKind:
    def read(value: Any) -> int:
        number = _read_whole(value)
        if number < least:
            raise ValueError
        return number

    expected = "a whole number above 0" if least else "a whole number, 0 or more"
    return ValueKind(
        lambda value: type(value) is int and least <= value <= MAX,
        f'{expected}, or text such as "128k"', read, f'{expected}, or text such as "128k"', metavar,
        takes_text=True,
    )  # fmt: skip


def list_of(inner: Callable[[Any], bool], give: str) -> ValueKind:
    """A sequence or set (not an iterator); for programs only."""

    def holds(value: Any) -> bool:
        walks_again = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes))
        return walks_again and all(map(inner, value))

    return ValueKind(holds, give)


def _or_none(kind: ValueKind) -> ValueKind:
    """A kind that also allows None; a file says None by leaving the key out."""
    return replace(kind, holds=lambda value: value is None or kind.holds(value))


def one_of(literal: Any) -> ValueKind:
    """The values of a ``Literal`` of strings."""
    return one_of_names(get_args(literal))


def one_of_names(choices: tuple[str, ...]) -> ValueKind:
    """One of these texts."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    quoted = [f'"{choice}"' for choice in choices]
    expected = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    return ValueKind(lambda value: value in choices, expected, read, expected, choices=choices)


def program_only(holds: Callable[[Any], bool], give: str) -> ValueKind:
    """A value that only a program can give, such as a function; or None."""
    return _or_none(ValueKind(holds, give))


def table(cls: type) -> ValueKind:
    """A dataclass of settings: a table in a file."""
    return ValueKind(
        lambda value: isinstance(value, cls), f"a trimtab.settings.{cls.__name__}",
        expected="a table", keys=readable(cls), build=lambda values, env: cls(**values),
    )  # fmt: skip


AMOUNT = _or_none(_whole(1, "N"))
COUNT = _whole(0, "N")
COUNT_OR_NONE = _or_none(COUNT)
SHARE = _or_none(
    ValueKind(_is_share, "a share, 0 < share ≤ 1", _read_share,
         'a share above 0 and up to 1, or text such as "90%"', "SHARE", takes_text=True)
)  # fmt: skip
SHARE_OR_0 = ValueKind(
    lambda value: type(value) in (int, float) and 0 <= value <= 1, "a share, 0 to 1",
    lambda value: 0.0 if value in (0, "0", "0.0", "0%") else _read_share(value),
    'a share from 0 to 1, or text such as "5%"', "SHARE",
)  # fmt: skip
SHARES = ValueKind(
    list_of(_is_share, "").holds, "a list of shares, each above 0 and up to 1", _read_shares,
    "a list of shares, each above 0 and up to 1", "SHARE", is_list=True,
)  # fmt: skip
SECONDS = ValueKind(
    _is_number, "seconds, 0 or more", _read_number, "a number, 0 or more", "SECONDS"
)
SECONDS_OR_NONE = _or_none(SECONDS)
DOLLARS = ValueKind(
    _is_number, "US dollars, 0 or more", _read_number, "a number, 0 or more", "DOLLARS"
)
FLAG = ValueKind(
    lambda value: type(value) is bool, "True or False", _read_flag, "true or false", is_flag=True
)
FLAG_OR_NONE = _or_none(FLAG)
TEXT = ValueKind(_is_text, "a text", _read_text, "a text", "TEXT")
TEXT_OR_NONE = _or_none(TEXT)
SECRET = replace(TEXT, is_secret=True)
TEXTS = ValueKind(
    list_of(_is_text, "").holds, 'a list of texts, as ["read", "grep"]', _read_texts,
    "a list of texts", "TEXT", is_list=True,
)  # fmt: skip
