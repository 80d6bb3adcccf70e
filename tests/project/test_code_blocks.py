"""Every Python block of README and the docs runs, page by page, against the strict provider."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trimtab_lab.testing import StrictProvider

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, code) of the Python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start()].count("\n") + 2, m[1]) for m in BLOCK.finditer(text)]


@pytest.fixture
def keys_of_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The environment that a reader would have: keys, the SDKs' addresses, the clone's examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    with StrictProvider(answer="OK") as provider:
        for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL"):
            monkeypatch.setenv(f"{name}_API_KEY", "a key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
        yield provider


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_python_of_a_page_runs_as_it_is_printed(page, keys_of_a_reader, capsys):
    shared: dict[str, Any] = {"__name__": "__main__"}
    for line, code in blocks(page):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), shared)
