"""Checks the links of the built site: ``python scripts/site_links.py site``.

Every link within the site has to lead to a page that is there, and to a heading of it; every page
has to be reachable from the front page; every link of README and the pages to this repository on
GitHub has to name a file that is there.  ``--external`` prints the addresses elsewhere instead, for
somebody with a network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(f"https://github.com/trimtab/trimtab/{kind}/main/" for kind in ("blob", "tree"))
SITE = "https://trimtab.github.io/trimtab/"
BASE = urlsplit(SITE).path
NO_CONTENT = {"404.html"}


@dataclass
class Page(HTMLParser):
    """The links and the anchors of one page."""

    path: Path
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, and by what it can be reached."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src") and not (tag == "link" and SITE in value):
                self.links.append(value)


def read(site: Path) -> dict[Path, Page]:
    """Every page of a site by its path."""
    return {path.resolve(): Page(path.resolve()) for path in sorted(site.rglob("*.html"))}


def problems(site: Path, root: Path = ROOT) -> Iterator[str]:
    """What is wrong, a line each."""
    pages, site = read(site), site.resolve()
    reached = {site / "index.html"}
    waiting = [site / "index.html"]
    targets: dict[Path, set[Path]] = {}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if link.startswith(OURS):
                named = unquote(parts.path).partition("/main/")[2]
                if not (root / named).exists():
                    yield f"{path.relative_to(site)}: {link}: no such file in the repository"
            elif not parts.scheme and not parts.netloc:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                if parts.path.startswith(BASE):  # 404.html is shown at any address
                    target = (site / unquote(parts.path.removeprefix(BASE))).resolve()
                target = target / "index.html" if target.is_dir() else target
                if not target.exists():
                    yield f"{path.relative_to(site)}: {link}: no such page"
                elif target in pages:
                    targets.setdefault(path, set()).add(target)
                    if parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                        yield f"{path.relative_to(site)}: {link}: no such heading"
    while waiting:
        new = targets.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    for path in pages.keys() - reached:
        if path.name not in NO_CONTENT:
            yield f"{path.relative_to(site)}: no page leads here"


def external(site: Path) -> list[str]:
    """The addresses elsewhere, each once."""
    links = {link for page in read(site).values() for link in page.links}
    return sorted(link for link in links if urlsplit(link).scheme in ("http", "https"))


def main() -> int:
    """Print what is wrong, or the addresses elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--external", action="store_true", help="list the addresses elsewhere")
    args = parser.parse_args()
    lines = external(args.site) if args.external else sorted(problems(args.site))
    print(*lines, sep="\n")
    return int(bool(lines) and not args.external)


if __name__ == "__main__":
    sys.exit(main())
