"""Web pages from template files (jinja2), in which every inserted value is escaped.

Nothing is loaded from elsewhere.  The templates of a package are in its folder ``templates``.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from trimtab.errors import MissingExtra

_HIDDEN = frozenset(
    "\x7f\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)
_HIDDEN |= frozenset(map(chr, range(0x80, 0xA0))) | frozenset(map(chr, range(0xD800, 0xE000)))


@cache
def templates(package: str, extra: str) -> Any:
    """The templates of a package, as a jinja2 ``Environment``.

    ``extra``: the extra that installs jinja2.  Raises MissingExtra without it.
    """
    try:
        import jinja2
    except ImportError:
        raise MissingExtra(f"these pages need jinja2: pip install 'trimtab[{extra}]'") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package), autoescape=True, undefined=jinja2.StrictUndefined,
        finalize=_shown, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment


@cache
def stylesheet(package: str) -> str:
    """The text of ``style.css`` in a package's templates."""
    return template_text(package, "style.css")


@cache
def template_text(package: str, name: str) -> str:
    """The text of a file in a package's templates, as it is."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def printable(value: str) -> str:
    """Without what a browser would hide or turn around: control characters and directions."""
    return "".join(
        c if (c >= " " and c not in _HIDDEN) or c in "\n\t" else f"\\x{ord(c):02x}" for c in value
    )


def _shown(value: Any) -> Any:
    """Of all that is put into a page: plain text is made printable, mark-up stays as it is."""
    return printable(value) if type(value) is str else value
