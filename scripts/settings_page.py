"""Writes the tables of docs/settings.md and docs/reference/proxy.md from the declarations.

python scripts/settings_page.py            write them
python scripts/settings_page.py --check    1 where they are out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from trimtab.proxy import ProxySettings, Upstream  # noqa: E402
from trimtab.proxy.config.settings import Address  # noqa: E402
from trimtab.setting_kinds import Declared, declared  # noqa: E402
from trimtab.settings import Settings  # noqa: E402

BEGIN, END = "<!-- keys: written by scripts/settings_page.py -->", "<!-- end of keys -->"
MAX = 40
"""Characters of a default; a longer one is not told."""


def tables(settings: Mapping[str, Declared]) -> str:
    """Markdown: one table a group of settings, one for each table among them."""
    return "\n".join(_lines(settings)).strip()


def _lines(settings: Mapping[str, Declared]) -> Iterator[str]:
    group = ""
    for one in settings.values():
        if one.kind.keys is None:
            if one.group != group:
                group = one.group
                yield from ("", f"### {group}", "", *HEAD)
            yield _row(one)
    for name, one in settings.items():
        if one.kind.keys is not None:
            yield from ("", f"### [{name}]", "", f"{_sentence(one.help)}.", "", *HEAD)
            yield from map(_row, one.kind.keys.values())


HEAD = ("| key | takes | default | what it does |", "|---|---|---|---|")


def _row(one: Declared) -> str:
    takes = one.kind.expected if one.kind.is_readable else f"{one.kind.give} (programs only)"
    default = "" if one.default in (None, "") else f"`{_toml(one.default)}`"
    cells = (f"`{one.name}`", takes, default if len(default) <= MAX else "", one.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Address):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    found = {}
    proxy = {name: one for name, one in declared(ProxySettings).items() if name != "fit"}
    upstream = "\n".join(("### [[upstream]]", "", *HEAD, *map(_row, declared(Upstream).values())))
    for name, text in {
        "settings": tables(declared(Settings)), "reference/proxy": f"{tables(proxy)}\n\n{upstream}",
    }.items():  # fmt: skip
        path = ROOT / "docs" / f"{name}.md"
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        found[path] = f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"
    return found


def main() -> int:
    """Write the pages, or say which are out of date."""
    stale = [p for p, text in pages().items() if p.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: run scripts/settings_page.py")
        return 1 if stale else 0
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
