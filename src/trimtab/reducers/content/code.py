"""Source code: signatures and declarations before bodies, by line; the code is not parsed."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import Kind, LineSample, unnumbered

_SIGNATURE = re.compile(
    r"(?P<indent>[ \t]*)(?:"
    r"(?:async )?def \w|class \w|@\w"  # Python, Ruby
    r"|(?:pub(?:\([^)]{1,20}\))? )?(?:async |unsafe |const |extern )*"
    r"(?:fn|struct|enum|trait|impl|mod|union|macro_rules!)\b"  # Rust
    r"|func[ (]|type \w+ |package \w|var \(|const \("  # Go, Swift
    r"|(?:export |default |declare |abstract |async )*"
    r"(?:function\b|interface \w|enum \w|namespace \w|class \w|type \w+\s*[=<])"  # JS, TS
    r"|export (?:const|let|var|\{|\*)"
    r"|(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|sealed)"
    r"\s+){1,5}[\w<>\[\],.? ]+"  # Java, C#, Kotlin
    r"|(?:const |let )\w+ = (?:async )?(?:\(|function|\w+ =>)"
    r"|(?:template\s*<|typedef |#define |union )"  # C
    r"|[A-Za-z_][\w:<>*& ,]{0,80}\w\([^;{}]{0,200}\)\s*(?:const\s*)?\{?\s*$"
    r"|CREATE (?:TABLE|INDEX|VIEW|FUNCTION)\b|module \w|fun \w|trait \w|object \w)"
)
_IMPORT = re.compile(r"[ \t]*(?:import |from \S+ import |use |#include |require\(|using )")
_NOTE = re.compile(r"TODO|FIXME|HACK|XXX|NOTE:")
_COMMENT = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|\"\"\"|''')")
_CODE = re.compile(
    r"[ \t]*(?:def |class |return\b|if \(?|for \(?|while |else\b|elif |import |from \S+ import"
    r"|const |let |var |func |fn |pub |use |#include|package |public |private |static |struct "
    r"|type |try\b|catch|except|with |await |async |export |self\.|this\.|@\w+"
    r"|[\w.\[\]\"']+ (?::=|=|\+=) |//|/\*|\* |\"\"\"|[)}\]]+[;,)]*$"
    r"|#\[|\w+: [\w\[\]\"'|.]+,?$|[\w.]+\()"
)
_CODE_END = re.compile(r"(?:[{};,(\[:]|\)|=>|\\)\s*$")
_PROMPTED = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\[?(?:INFO|DEBUG|WARN|ERROR)\b")
_TOP, _INNER, _IMPORTED, _NOTED = 14.0, 8.0, 2.0, 4.0
_READS = re.compile(r"read|view|cat\b|open|file|edit")


def _takes(sample: LineSample) -> bool:
    numbered = sample.share(lambda line: unnumbered(line) is not line)

    def code(line: str) -> object:
        bare = unnumbered(line)
        return _CODE_END.search(bare) and not _PROMPTED.search(bare)

    def keyword(line: str) -> object:
        bare = unnumbered(line)
        return _CODE.match(bare) or _SIGNATURE.match(bare)

    likely = numbered > 0.8 or bool(_READS.search(sample.tool))
    ends, begins = sample.share(code), sample.share(keyword)
    least = 0.3 if likely else 0.4
    return ends + begins > 2 * least and begins > least * 0.8


def is_signature(line: str) -> bool:
    """Whether a line of source declares something."""
    return _SIGNATURE.match(unnumbered(line)) is not None


def _weigh(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    for number, line in enumerate(lines):
        bare = unnumbered(line)
        match = _SIGNATURE.match(bare)
        if match:
            deep = len(match["indent"].expandtabs(4)) > 4
            weights[number] += _INNER if deep or bare.lstrip()[:1] == "@" else _TOP
        elif _IMPORT.match(bare):
            weights[number] = min(weights[number], _IMPORTED)
        elif _COMMENT.match(bare):
            weights[number] *= 0.5
            if _NOTE.search(bare):
                weights[number] += _NOTED


CODE = Kind("code", _takes, _weigh, ends=False)
