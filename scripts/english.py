"""Holds the English of README, the docs and what users read in the program: words and length.

    python scripts/english.py            what is against the word list, and pages that are too long
    python scripts/english.py --counts   also the words of each page

Text of the program is every string with two words or more in src/trimtab that is no docstring.
Code blocks, inline code, links and quotes of others are not read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MAX_README = 650
"""Words of README outside code and tables."""
MAX_DOCS = 34_000
"""Words of the docs outside code, without the reference."""
MAX_SENTENCE = 40
"""Words of one sentence of a page.  The aim is 20; from here on a sentence is two."""

REFERENCE = ("reference/", "rules.md", "settings.md")
GENERATED = ("docs/rules.md", "docs/reference/cli.md")
"""Pages that quote providers or the program: their words are checked where they come from."""
QUOTES = ("rules.py", "refusal_rows.py", "error_texts.py")
"""Ends of names of modules that quote providers."""


class Rule(NamedTuple):
    """A word that readers stumbled over, and what they understand at once."""

    pattern: str
    instead: str


RULES = (
    Rule(r"\bstands (?:in|for|at|on|by|beside|below|above|there)\b", "is in, is for, is at …"),
    Rule(r"\bas (?:it|they) c[ao]me\b", "unchanged"),
    Rule(r"\bdearer\b|\bdearest\b", "more expensive"),
    Rule(r"\bbeside\b", "next to, compared with"),
    Rule(r"\bof (?:its|their|his|our) own\b", "separate, or name whose it is"),
    Rule(r"\b(?:had|have|has|be had) again\b", "restored"),
    Rule(r"\bcomes? to [\d$€]", "totals"),
    Rule(r"\w\(s\)(?!\w)", "a real plural"),
    Rule(r"\b(?:il)?legal(?:ly)?\b", "valid, invalid"),
    Rule(r"\bthe head\b(?! of)", "the system prompt and tools"),
    Rule(r"\ball the same\b|\bnonetheless\b|\bnevertheless\b", "still, or nothing"),
    Rule(r"\bhence\b|\bthus\b|\bwhereas\b|\btherefore\b", "so, but"),
    Rule(r"\bis to be had\b|\bcan be had\b", "you can get, you find"),
    Rule(r"\bnot (?:only|just)\b[^.]{1,80}\bbut also\b", "two sentences"),
    Rule(r"\b(?:simply|easily|seamless(?:ly)?|powerful|robust)\b", "what it does"),
    Rule(r"\b(?:utili[sz]e|leverage|facilitate)s?\b", "use, help"),
    Rule(r"\b(?:e\.g\.|i\.e\.|etc\.)", "for example, that is, and so on"),
)


class Finding(NamedTuple):
    """One place to mend.  ``line``: from 1, of the file ``path``."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.what}"


def prose(text: str) -> str:
    """A page with everything else blanked, line by line: code, inline code, links' targets."""
    blank = re.compile(
        r"^( *)(`{3,})[^\n]*\n.*?^\1\2 *$|<!--.*?-->|<[^<>\n]+>", re.DOTALL | re.MULTILINE
    )
    text = blank.sub(lambda found: re.sub(r"[^\n]+", "", found[0]), text)
    text = re.sub(r"`[^`\n]*`", "`code`", text)
    return re.sub(r"\]\([^()\s]*(?:\([^()\s]*\))?[^()\s]*\)", "]", text)


def words(text: str) -> int:
    """Words of a page's prose, marks of Markdown not counted."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def without_tables(text: str) -> str:
    """A page's prose without rows of tables."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("|"))


def against_rules(path: Path, text: str, first: int = 1) -> Iterator[Finding]:
    """What of the word list occurs in a text that begins at line ``first`` of its file."""
    for rule in RULES:
        for found in re.finditer(rule.pattern, text, re.IGNORECASE):
            line = first + text.count("\n", 0, found.start())
            yield Finding(path, line, f'"{found[0]}": {rule.instead}')


def long_sentences(path: Path, text: str) -> Iterator[Finding]:
    """Sentences of more than MAX_SENTENCE words; a row, an item and a heading end one."""
    line = 1
    for block in re.split(r"(\n(?:\s*\n|(?=\s*(?:[-*|#]|\d+\. ))))", without_tables(text)):
        for sentence in re.split(r"(?<=[.!?:])[\s*_\"]+", block):
            if words(sentence) > MAX_SENTENCE:
                start = " ".join(sentence.split()[:6])
                yield Finding(path, line, f"{words(sentence)} words in a sentence: {start} …")
        line += block.count("\n")


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the strings of a module that users may read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                if " " in text.strip():
                    yield node.lineno, text


def pages() -> list[Path]:
    """README and the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def counts() -> dict[Path, int]:
    """Words of each page: README's outside code and tables, the others' outside code."""
    readme = ROOT / "README.md"
    texts = {page: prose(page.read_text(encoding="utf-8")) for page in pages()}
    return {
        page: words(without_tables(text) if page == readme else text)
        for page, text in texts.items()
    }


def is_reference(page: Path) -> bool:
    """Whether a page lists what there is, so that its length is not chosen."""
    return page.relative_to(ROOT / "docs").as_posix().startswith(REFERENCE)


def findings() -> Iterator[Finding]:
    """Everything to mend."""
    for page in pages():
        if page.relative_to(ROOT).as_posix() not in GENERATED:
            text = prose(page.read_text(encoding="utf-8"))
            yield from against_rules(page, text)
            yield from long_sentences(page, text)
    for module in sorted((ROOT / "src" / "trimtab").rglob("*.py")):
        if not module.name.endswith(QUOTES):
            for line, text in strings(module):
                yield from against_rules(module, text, line)


def main(arguments: list[str]) -> int:
    """Print what is found; 1 where anything is."""
    found = [str(finding) for finding in findings()]
    readme, *docs = counts().items()
    total = sum(count for page, count in docs if not is_reference(page))
    if "--counts" in arguments:
        for page, count in (readme, *docs):
            print(f"{count:6,} {page.relative_to(ROOT)}")
    print(f"README {readme[1]} words (at most {MAX_README}), docs {total:,} (at most {MAX_DOCS:,})")
    if readme[1] > MAX_README or total > MAX_DOCS:
        found.append("too many words")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
