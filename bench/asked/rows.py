"""Tables and lists of hits: a fact is a row, asked for by its key."""

from __future__ import annotations

from asked.facts import Content, Fact
from asked.words import Words

KEYS = ("invoice", "host", "person", "sku")
Row = tuple[str, ...]


def _key(words: Words, kind: str) -> str:
    if kind == "invoice":
        return words.new(lambda: f"INV-{words.plain(2019, 2027)}-{words.plain(1, 99_999):05}")
    if kind == "host":
        return words.host()
    if kind == "person":
        return words.person()
    return words.new(lambda: f"{words.one('noun')[:3].upper()}{words.plain(100, 9_999)}")


def _table(words: Words, many: int) -> tuple[Row, list[Row], tuple[Fact, ...]]:
    """Heads, rows and facts; the key is not always the first column."""
    kind, place = words.pick(KEYS), words.draw.randrange(2)
    heads = [kind, "town", "opened", words.one("quality"), "amount", "note"]
    rows, facts = list[Row](), list[Fact]()
    for _ in range(many):
        key, amount = _key(words, kind), words.money()
        row = [key, words.one("town"), words.date(), str(words.plain()), amount,
               " ".join(words.of("quality", "noun", "filler")[: words.plain(2, 3)])]  # fmt: skip
        row.insert(place, row.pop(0))
        rows.append(tuple(row))
        facts.append(Fact(key, amount, words.pick([
            f"the amount of {kind} {key}", f"how much {key} has", f"the amount for {key}",
        ])))  # fmt: skip
    heads.insert(place, heads.pop(0))
    return tuple(heads), rows, tuple(facts)


def csv(words: Words, size: float = 1.0) -> Content:
    heads, rows, facts = _table(words, int(400 * size))
    mark = words.pick([",", ";"])
    text = "\n".join(mark.join(row) for row in [heads, *rows])
    return Content(text, facts, "line", words.path(".csv"))


def psql(words: Words, size: float = 1.0) -> Content:
    heads, rows, facts = _table(words, int(220 * size))
    wide = [max(len(row[n]) for row in [heads, *rows]) for n in range(len(heads))]
    lines = [" | ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) for row in rows]
    top = " | ".join(cell.center(w) for cell, w in zip(heads, wide, strict=True))
    rule = "-+-".join("-" * w for w in wide)
    body = "\n".join(f" {line}".rstrip() for line in lines)
    return Content(f" {top}\n-{rule}-\n{body}\n({len(rows)} rows)\n", facts, "line",
                   f"{words.one('service')}.{words.one('noun')}s")  # fmt: skip


def markdown(words: Words, size: float = 1.0) -> Content:
    heads, rows, facts = _table(words, int(220 * size))
    lines = [f"| {' | '.join(row)} |" for row in [heads, ("---",) * len(heads), *rows]]
    text = f"# {words.one('noun').capitalize()}s\n\n{words.sentence()}\n\n" + "\n".join(lines)
    return Content(f"{text}\n", facts, "line", "docs/overview.md")


def html(words: Words, size: float = 1.0) -> Content:
    heads, rows, facts = _table(words, int(110 * size))
    apart, close = words.pick(["", "\n      "]), "</tr>"
    close = f"\n    {close}" if apart else close
    of_cells = [apart.join(f"<td>{cell}</td>" for cell in row) for row in rows]
    mark = words.pick(["", ' class="row"'])
    body = "\n".join(f"    <tr{mark}>{apart}{cells}{close}" for cells in of_cells)
    top = "".join(f"<th>{head}</th>" for head in heads)
    title = " ".join(words.of("quality", "noun")).capitalize()
    return Content(
        f"<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body>\n"
        f"<nav><a href='/'>Home</a> <a href='/list'>All</a></nav>\n<h1>{title}</h1>\n"
        f"<p>{words.sentence()}</p>\n<table>\n  <thead><tr>{top}</tr></thead>\n  <tbody>\n{body}\n"
        "  </tbody>\n</table>\n<footer>Contact</footer>\n</body>\n</html>\n",
        facts, "chars", f"https://intranet.example/{words.one('noun')}s",
    )  # fmt: skip


def grep(words: Words, size: float = 1.0) -> Content:
    """Hits of one pattern in many files."""
    what, lines, facts = words.one("noun"), list[str](), list[Fact]()
    for _ in range(int(220 * size)):
        path, value = words.path(words.pick([".py", ".ts", ".go"])), words.number()
        name = "_".join(words.of("quality", "noun"))
        line = words.pick([
            f"{name} = {what}_limit({value})", f"if {what}.size > {value}:  # {name}",
            f"return {what}({name}, {value})", f'"{what}.{name}": {value},',
        ])  # fmt: skip
        lines.append(f"{path}:{words.plain(3, 900)}:{' ' * words.plain(0, 8)}{line}")
        facts.append(Fact(path, value, words.pick([
            f"the number that {path} has there", f"what {path} sets for {what}",
        ])))  # fmt: skip
    return Content("\n".join(lines), tuple(facts), "line", what)


KINDS = {"csv": csv, "psql": psql, "grep": grep, "markdown table": markdown, "html table": html}
