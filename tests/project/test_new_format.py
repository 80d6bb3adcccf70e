"""The files that the page about a new format shows work, in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "new-format.md"
FILES = dict(re.findall(r'```python title="([^"]+)"\n(.*?)```', PAGE.read_text("utf-8"), re.S))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of both packages with the folder of the page and the line in the registry."""
    source = tmp_path_factory.mktemp("new_format")
    for package in ("trimtab", "trimtab_lab"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / package, source / package, ignore=skip)
    formats = source / "trimtab" / "formats"
    for name, text in FILES.items():
        file = (formats if "/" in name else source) / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    registry = formats / "registry.py"
    text = registry.read_text("utf-8")
    for old, new in (
        ("    bedrock,\n", "    bedrock,\n    cohere,\n"),
        ("bedrock, anthropic", "bedrock, cohere, anthropic"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    registry.write_text(text, "utf-8")
    return source


def run(copy, *command):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=copy, timeout=300,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_format_of_the_page_keeps_the_laws_and_is_fitted_repaired_and_answered(copy):
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cohere.py")


def test_the_files_of_the_page_are_written_as_those_of_the_package(copy):
    files = [str(copy / "trimtab" / "formats" / name) for name in FILES if "/" in name]
    config = str(ROOT / "pyproject.toml")
    run(copy, "-m", "ruff", "check", "--no-cache", "--config", config, *files)
    run(copy, "-m", "ruff", "format", "--check", "--no-cache", "--config", config, *files)


def test_the_format_of_the_page_is_not_shipped():
    assert not (ROOT / "src" / "trimtab" / "formats" / "cohere").exists()
