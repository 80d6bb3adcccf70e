"""Settings of the wrong kind are one clear error at the door, never a request sent too large.

Knows the public API.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from settings_words import as_keywords
from shapes import session

import trimtab
from trimtab import ArticleRule, TrimtabError
from trimtab.errors import InvalidSetting
from trimtab.request import pipeline, planned
from trimtab.setting_kinds import declared
from trimtab.settings import Duplicates, FailedInputs

TOO_LONG = session("openai-chat", steps=16)
WINDOW = 4000


class Hostile:
    """Raises whatever is asked of it."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


@pytest.mark.parametrize(
    ("name", "value", "give"),
    [
        ("pins", lambda block: True, "a list of refs"),
        ("pins", "a ref", "a list of refs"),
        ("pins", [5], "a list of refs"),
        ("protected_paths", [Path("a")], "a list of texts"),
        ("protected_tools", [None], "a list of texts"),
        ("protected_tools", "read", 'as ["read"'),
        ("protected_tools", iter(["read"]), "a list of texts"),
        ("client_requests", None, "a list of texts"),
        ("model", 5, "a text"),
        ("format", 5, "a text"),
        ("reducers", 5, "a list of functions"),
        ("extra_reducers", False, "a list of functions"),
        ("prices", [], "claude-5m"),
        ("recall", "yes", "True or False"),
        ("idle_seconds", float("nan"), "seconds"),
        ("settings", {"window": 5}, "a trimtab.Settings"),
        ("articles", ArticleRule(list_keys="results"), "a list of texts"),  # type: ignore[arg-type]
        ("duplicates", Duplicates(protected_tools=5), "a list of texts"),  # type: ignore[arg-type]
        ("failed_inputs", FailedInputs(min_calls=None), "whole number"),  # type: ignore[arg-type]
    ],
)
def test_a_setting_of_the_wrong_kind_is_an_error_that_says_what_to_give(
    name: str, value: Any, give: str
) -> None:
    for call in (
        lambda body, **k: trimtab.fit(body, **as_keywords(**k)),
        lambda body, **k: trimtab.Session(**as_keywords(**k)).fit(body),
    ):
        with pytest.raises(InvalidSetting) as raised:
            call(TOO_LONG, **{"window": WINDOW, name: value})
        assert name in str(raised.value)
        assert give in str(raised.value)


VALUES: list[Any] = [
    5, -1, 0, 1.5, float("nan"), float("inf"), True, False, "x", "", b"x", None, [], {}, (), [None],
    [5], ["a"], {"a": 1}, {1: 2}, lambda block: True, int, Path("a"), [Path("a")], object(), set(),
    10**5000, "\ud800", Hostile(), range(3), trimtab.Settings(), Duplicates(), [Hostile()],
]  # fmt: skip
KEYWORDS = [*declared(trimtab.Settings), "settings"]


@pytest.mark.parametrize("name", KEYWORDS)
def test_whatever_a_setting_is_the_request_fits_or_an_error_of_ours_says_why(name: str) -> None:
    for value in VALUES:
        try:
            fitted = trimtab.fit(TOO_LONG, **as_keywords(**{"window": WINDOW, name: value}))
        except TrimtabError:
            continue
        report = fitted.report
        assert report.tokens_after <= (report.limits["capacity"] or 0)


# --- the ladder ---


def _failing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("planted")


def test_where_every_plan_fails_the_smallest_form_is_sent_and_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planned, "make_room", _failing)
    fitted = trimtab.fit(TOO_LONG, window=WINDOW)
    assert fitted.report.tokens_after <= WINDOW
    assert trimtab.check(fitted.request) == ()
    assert "fell back to: the smallest" in fitted.report.warnings


@pytest.mark.parametrize("failing", ["planner", "repair"])
def test_what_leaves_above_the_window_says_in_log_and_report_that_it_will_be_refused(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(planned, "make_room", _failing)
    monkeypatch.setattr(pipeline, "smallest_or_cannot_fit", _failing)
    if failing == "repair":
        monkeypatch.setattr(pipeline, "only_repaired", _failing)
    with caplog.at_level(logging.WARNING, logger="trimtab"):
        fitted = trimtab.fit(TOO_LONG, window=WINDOW)
    assert fitted.report.tokens_after > WINDOW
    assert any("expected to be refused" in text for text in fitted.report.warnings)
    assert "expected to be refused" in caplog.text
    with pytest.raises(RuntimeError):
        trimtab.fit(TOO_LONG, window=WINDOW, settings=trimtab.Settings(strict=True))
