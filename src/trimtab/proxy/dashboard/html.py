"""HTML as text: a page, tables, tiles, amounts.  Everything that is put in is escaped here.

Knows mark-up and style.  Does not know what is shown.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape


class Html(str):
    """Text that is mark-up already; all other text is escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Anything as mark-up: ``Html`` as it is, the rest escaped."""
    return value if isinstance(value, Html) else Html(escape(printable(str(value))))


def printable(value: str) -> str:
    """Without what a browser would hide or turn around: control characters and directions."""
    return "".join(
        c if (c >= " " and c not in _HIDDEN) or c in "\n\t" else f"\\x{ord(c):02x}" for c in value
    )


_HIDDEN = frozenset(
    "\x7f\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)
_HIDDEN |= frozenset(map(chr, range(0x80, 0xA0))) | frozenset(map(chr, range(0xD800, 0xE000)))


def tag(name: str, /, *inside: object, **attributes: object) -> Html:
    """``tag("a", "text", href="/")``; a trailing underscore is left out, others become dashes."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(str(value)))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in ("input", "meta"):
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{''.join(text(part) for part in inside)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Parts in a row."""
    return Html("".join(text(part) for part in parts))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, wide: int = 0) -> Html:
    """A table; columns from ``wide`` on are numbers, set to the right."""
    head = joined(tag("th", name, class_=_side(n, wide)) for n, name in enumerate(heads))
    body = joined(
        tag("tr", joined(tag("td", cell, class_=_side(n, wide)) for n, cell in enumerate(row)))
        for row in rows
    )
    inside = tag("table", tag("thead", tag("tr", head)), tag("tbody", body))
    return tag("div", inside, class_="scroll")


def _side(column: int, wide: int) -> str | None:
    return "n" if wide and column >= wide else None


def tiles(rows: Iterable[tuple[str, object, str]]) -> Html:
    """Figures with their names: (name, figure, what it means)."""
    return tag(
        "dl",
        joined(
            tag("div", tag("dt", name), tag("dd", value), title=about)
            for name, value, about in rows
        ),
        class_="tiles",
    )


def short(number: float) -> str:
    """``12_345`` → ``12.3k``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def ago(seconds: float) -> str:
    """``75`` → ``1 min ago``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now" if seconds < 2 else f"{int(seconds)} s ago"


def page(
    title: str, *inside: object, trail: Sequence[tuple[str, str]] = (), live: int = 0
) -> bytes:
    """A whole page.  ``live``: seconds after which the browser loads it again."""
    crumbs = joined(
        joined([tag("a", name, href=href), Html(" <span>/</span> ")]) for name, href in trail
    )
    here = tag("span", title) if trail else ""
    head = joined([
        Html('<meta charset="utf-8">'),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="refresh", content=live) if live else "",
        tag("title", f"{title} · trimtab"),
        Html(f"<style>{STYLE}</style>"),
    ])  # fmt: skip
    top = tag("nav", tag("a", "trimtab", href="/_trimtab/", class_="brand"), crumbs, here)
    body = tag("body", tag("header", top), tag("main", joined(inside)))
    return f'<!doctype html><html lang="en"><head>{head}</head>{body}</html>'.encode(
        "utf-8", "replace"
    )


STYLE = """
:root{--ink:#1c2330;--soft:#5d6778;--line:#dfe3ea;--paper:#fff;--back:#f5f6f9;--link:#1f5fbf;
--kept:#3b7dd8;--cached:#1d4e96;--reduced:#f0a83a;--gone:#dfe3ea;--window:#c62f3b;--trigger:#8a93a3;
--good:#1b7f4d;--bad:#b3261e;--del:#fdeaea;--ins:#e8f6ec}
@media(prefers-color-scheme:dark){:root{--ink:#e3e7ee;--soft:#98a2b3;--line:#2c3442;--paper:#171c25;
--back:#0f131a;--link:#7fb0ff;--kept:#4f8fe6;--cached:#8fbcff;--reduced:#d9942c;--gone:#2a3140;
--window:#ff6b70;--trigger:#78849a;--good:#57c98e;--bad:#ff8a80;--del:#33191b;--ins:#14291d}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
header{background:var(--paper);border-bottom:1px solid var(--line)}
nav,main{max-width:1120px;margin:0 auto;padding:12px 20px}nav span{color:var(--soft)}
.brand{font-weight:700;color:var(--ink);margin-right:14px}
h1{font-size:22px;margin:12px 0 4px;overflow-wrap:anywhere}h2{font-size:16px;margin:28px 0 8px}
p{margin:4px 0 12px}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}.tiles div{flex:1 1 130px;
background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
dt{color:var(--soft);font-size:12.5px}dd{margin:0;font-size:21px;font-weight:600;
font-variant-numeric:tabular-nums}
.card{background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:14px 16px}
.scroll{overflow-x:auto;background:var(--paper);border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--soft);font-size:12.5px;text-align:left;white-space:nowrap}
th,td{padding:7px 12px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}.n{text-align:right;white-space:nowrap}
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;max-height:70vh;overflow:auto}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:12px}
.pair h3{font-size:13px;margin:0 0 8px}.before{background:var(--del)}.after{background:var(--ins)}
.row{display:flex;gap:8px;flex-wrap:wrap;align-items:center;margin:10px 0}
input,button{font:inherit;font-size:14px;padding:6px 12px;border-radius:6px;color:inherit;
border:1px solid var(--line);background:var(--paper)}input[type=search]{min-width:240px}
button{cursor:pointer;font-weight:600}button:hover{border-color:var(--link)}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:11px}
.grid{stroke:var(--line)}.kept{fill:var(--kept)}.cached{fill:var(--cached)}
.reduced{fill:var(--reduced)}.gone{fill:var(--gone)}.window{stroke:var(--window);stroke-width:1.5;
stroke-dasharray:6 4}.trigger{stroke:var(--trigger);stroke-dasharray:2 3}.mark{fill:var(--window)}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:12.5px;color:var(--soft);margin:8px 0 0;
padding:0;list-style:none}.key svg{display:inline-block;width:12px;height:12px;margin:0 6px -1px 0}
.empty{padding:40px 20px;text-align:center;color:var(--soft)}.empty code{color:var(--ink)}
"""
STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
"""Lets the policy of the pages name the one style there is."""
