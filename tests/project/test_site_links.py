"""The checker of the site's links finds what it is for; CI runs it on the built site."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import site_links  # noqa: E402

BLOB = "https://github.com/trimtab/trimtab/blob/main/"


def site(folder: Path, **pages: str) -> Path:
    """Pages of these names; two underlines are a folder."""
    for name, text in pages.items():
        path = folder / f"{name.replace('__', '/')}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_a_site_in_order_has_no_problem(tmp_path: Path) -> None:
    made = site(
        tmp_path,
        index=f'<a href="howto/a.html#there">a</a><a href="{BLOB}README.md">file</a>',
        howto__a='<h2 id="there"></h2><a href="../">front</a><a href="https://x.example">x</a>',
    )
    assert list(site_links.problems(made)) == []
    assert site_links.external(made) == [f"{BLOB}README.md", "https://x.example"]


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("gone.html", "no such page"),
        ("a.html#gone", "no such heading"),
        (f"{BLOB}docs/gone.md", "no such file in the repository"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, link: str, why: str) -> None:
    made = site(tmp_path, index=f'<a href="a.html"></a><a href="{link}"></a>', a="")
    assert list(site_links.problems(made)) == [f"index.html: {link}: {why}"]


def test_a_page_that_nobody_links_to_is_named(tmp_path: Path) -> None:
    made = site(tmp_path, index="", a='<a href="b.html"></a>', b="")
    assert sorted(site_links.problems(made)) == [
        "a.html: no page leads here",
        "b.html: no page leads here",
    ]


def test_a_built_site_loads_nothing_from_elsewhere_for_its_search() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    [shim] = [line for line in config.splitlines() if line.strip().startswith("polyfills:")]
    path = shim.partition("[")[2].rstrip("]")
    assert "iframe-worker" in path  # else the theme adds one from a content network
    assert (ROOT / "docs" / path).is_file()
