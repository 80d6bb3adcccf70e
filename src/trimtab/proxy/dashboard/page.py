"""Renders a page from a template, with head, navigation, one stylesheet and one script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from trimtab.reporting.pages import stylesheet, template_text, templates

HOME = "/_trimtab/"
LIVE_SECONDS = 5
Trail = Sequence[tuple[str, str]]
SESSIONS: Trail = (("Sessions", HOME),)
REQUESTS, SPEND, SEARCH = f"{HOME}requests", f"{HOME}spend", f"{HOME}search"
SECTIONS: Trail = (*SESSIONS, ("Requests", REQUESTS), ("Spend", SPEND), ("Search", SEARCH))
_SCRIPT = "page.js"


def policy() -> str:
    """The content security policy: it allows our one stylesheet and one script only."""
    style, script = stylesheet(__package__), template_text(__package__, _SCRIPT)
    return (
        f"default-src 'none'; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def page_templates() -> Any:
    """The templates.  Raises MissingExtra without jinja2."""
    return templates(__package__, "proxy")


def page(
    name: str, title: str, *, section: str = HOME, trail: Trail = (), live: int = 0,
    problem: str = "", **shown: Any,
) -> bytes:  # fmt: skip
    """A whole page.  ``live``: seconds between two refreshes by the browser; ``problem``: a warning
    at the top."""
    from markupsafe import Markup

    text: str = page_templates().get_template(name).render(
        title=title, trail=trail, live=live, problem=problem, home=HOME, section=section,
        sections=SECTIONS, style=Markup(stylesheet(__package__)),
        script=Markup(template_text(__package__, _SCRIPT)), **shown,
    )  # fmt: skip
    return text.encode("utf-8", "replace")


def message(title: str, about: str) -> bytes:
    """A page with one line."""
    return page("message.html", title, trail=SESSIONS, about=about)


def sign_in(failed: bool) -> bytes:
    """The page that asks for the token."""
    return page("sign_in.html", "Token", failed=failed)
