"""What tests of the world tier do where something they need is not there.

Knows where to look.  ``.ci/world`` sets up all that can be set up without being root.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import NoReturn

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def absent(how: str) -> NoReturn:
    """Skip, saying how to get what is missing; where CI is set, fail: there it has to be."""
    if os.environ.get("CI"):
        pytest.fail(how)
    pytest.skip(how)


def browser() -> str:
    """The path of a Chromium."""
    named = os.environ.get("TRIMTAB_BROWSER")
    found = [named] if named else [path for name in BROWSERS if (path := shutil.which(name))]
    if not found:
        absent("no Chromium: apt-get install chromium, or name one in TRIMTAB_BROWSER")
    return found[0]


def program(name: str) -> str:
    """The path of a program."""
    return shutil.which(name) or absent(f"{name} is not installed: apt-get install {name}")


def module(name: str, extra: str) -> None:
    """An optional dependency in this environment."""
    if importlib.util.find_spec(name) is None:
        absent(f"{name} is not installed: .ci/world does it, or pip install 'trimtab[{extra}]'")
