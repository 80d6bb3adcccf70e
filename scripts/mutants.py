"""Breaks the library in one place at a time and says which breaks no test notices.

    python scripts/mutants.py --count 100 --seed 1            a sample over DEFAULT folders
    python scripts/mutants.py --count 50 planning/fold.py     files or folders below src/trimtab
    python scripts/mutants.py --only planning/fold.py:88      every mutant of one line, tests shown

A mutant is one comparison turned, one condition negated, one ``and`` made ``or``, one number one
larger, one statement or returned value taken away.  Works on a copy of this clone in a temporary
folder.  First the tests below run once with ``coverage`` (``--map FILE`` keeps what they covered
for the next run); then each mutant meets the tests that enter its line, or its file where the line
runs on import, the fastest first.  Prints each survivor, then the sums.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ("planning", "rules", "retry", "journal")
TESTS = (
    "tests/unit/planning", "tests/unit/rules", "tests/unit/retry", "tests/unit/journal",
    "tests/property/test_every_path.py", "tests/property/test_safe_cutting.py",
)  # fmt: skip
SLOW = "not thousands and not 50_mb and not ten_thousand and not in_time"
MOST_TESTS = 60
"""Of the tests that enter a line, so many meet its mutants."""
SECONDS = 90
"""A mutant that is not done by then hangs: it is noticed."""

TURNED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: in ``file`` (below src/trimtab), from ``start`` to ``end``, in bytes."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:70] for text in (self.old, self.new))
        return f"{self.file}:{self.line}: {old}  →  {new}"


def mutants(source: str, file: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its text."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    data, tree = source.encode(), ast.parse(source)

    def span(node: ast.AST) -> tuple[int, int]:
        start = lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def change(node: ast.AST, new: str, old: ast.AST | None = None) -> Mutant:
        start, end = span(old or node)
        line = node.lineno  # type: ignore[attr-defined]
        return Mutant(file, line, start, end, data[start:end].decode(), new)

    def text(node: ast.AST) -> str:
        start, end = span(node)
        return data[start:end].decode()

    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            turned = TURNED[type(node.ops[0])]
            yield change(node, f"({text(node.left)} {turned} {text(node.comparators[0])})")
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield change(node, f"({word.join(f'({text(value)})' for value in node.values)})")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield change(node, f"bool({text(node.operand)})")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield change(node, f"({text(node)} + 1)")
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield change(node, str(not node.value))
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield change(node.test, f"(not ({text(node.test)}))")
        elif isinstance(node, ast.Return) and not _is_none(node.value):
            yield change(node, "return None")
        elif isinstance(node, (ast.AugAssign, ast.Continue, ast.Break)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Yield))
        ):
            yield change(node, "pass")


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs: no annotations, no docstrings, no subscripts of types, no ``__all__``."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_typing(node):
                yield node
                yield from _code(node)


def _is_typing(node: ast.AST) -> bool:
    checks = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return checks or isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))


# --- which tests enter which line ----------------------------------------------------------------


class Covered(NamedTuple):
    """``lines``: file → line → numbers of tests; ``tests``: their ids; ``seconds`` of each."""

    lines: dict[str, dict[str, list[int]]]
    tests: list[str]
    seconds: dict[str, float]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that enter a mutant's line (or its file), the fastest first."""
        here = self.lines.get(mutant.file, {})
        found = here.get(str(mutant.line)) or {n for numbers in here.values() for n in numbers}
        ids = sorted((self.tests[n] for n in found), key=lambda test: self.seconds.get(test, 0.0))
        return ids[:MOST_TESTS]


PLUGIN = """
import json, os, coverage, pytest
SECONDS = {}

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    if now := coverage.Coverage.current():
        now.switch_context(item.nodeid)
    yield

def pytest_runtest_logreport(report):
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + report.duration

def pytest_sessionfinish():
    if path := os.environ.get("MUTANTS_SECONDS"):
        with open(path, "w") as file:
            json.dump(SECONDS, file)
"""


def environment(copy: Path) -> dict[str, str]:
    """Few examples, always the same ones, nothing written."""
    more = {
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "HYPOTHESIS_PROFILE": "quick",
        "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
    }  # fmt: skip
    return {**os.environ, **more}


def covered(copy: Path, tests: Sequence[str]) -> Covered:
    """Run the tests once."""
    (copy / "mutants_plugin.py").write_text(PLUGIN, encoding="utf-8")
    rc = copy / ".coveragerc"
    rc.write_text(f"[run]\nsource = {copy / 'src' / 'trimtab'}\n", encoding="utf-8")
    seconds = copy / "seconds.json"
    command = [
        sys.executable, "-m", "coverage", "run", f"--rcfile={rc}", "-m", "pytest", "-q", "-p",
        "mutants_plugin", "-p", "no:cacheprovider", "-m", "not data and not world", "-k", SLOW,
        *tests,
    ]  # fmt: skip
    env = {**environment(copy), "MUTANTS_SECONDS": str(seconds)}
    subprocess.run(command, cwd=copy, env=env, stdout=sys.stderr, check=False)
    return _read(copy, json.loads(seconds.read_text(encoding="utf-8")))


def _read(copy: Path, seconds: dict[str, float]) -> Covered:
    from coverage.numbits import numbits_to_nums

    src, tests = copy / "src" / "trimtab", list[str]()
    number: dict[str, int] = {}
    lines: dict[str, dict[str, list[int]]] = {}
    rows = sqlite3.connect(copy / ".coverage").execute(
        "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
        "JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
    )
    for path, context, bits in rows:
        if not context or not Path(path).is_relative_to(src):
            continue
        if context not in number:
            number[context] = len(tests)
            tests.append(context)
        here = lines.setdefault(Path(path).relative_to(src).as_posix(), {})
        for line in numbits_to_nums(bits):
            here.setdefault(str(line), []).append(number[context])
    return Covered(lines, tests, seconds)


# --- one mutant ----------------------------------------------------------------------------------


def survives(mutant: Mutant, tests: list[str], copy: Path, told: bool = False) -> bool:
    """Whether every test passes with it."""
    file = copy / "src" / "trimtab" / mutant.file
    whole = file.read_bytes()
    changed = whole[: mutant.start] + mutant.new.encode() + whole[mutant.end :]
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:warnings",
        "--tb=line", *tests,
    ]  # fmt: skip
    try:
        file.write_bytes(changed)
        done = subprocess.run(
            command, cwd=copy, env=environment(copy), capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_bytes(whole)
    if told:
        print(done.stdout[-600:])
    return done.returncode == 0


def sample(args: argparse.Namespace) -> list[Mutant]:
    """The mutants to try."""
    src, found = ROOT / "src" / "trimtab", list[Mutant]()
    only, _, line = (args.only or "").partition(":")
    for name in [only] if only else args.where or DEFAULT:
        files = [src / name] if name.endswith(".py") else sorted((src / name).rglob("*.py"))
        for file in files:
            text = file.read_text(encoding="utf-8")
            found += mutants(text, file.relative_to(src).as_posix())
    if only:
        return [mutant for mutant in found if not line or mutant.line == int(line)]
    return random.Random(args.seed).sample(found, min(args.count, len(found)))


def main() -> int:
    """Try them, print who survived."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("where", nargs="*", help="files or folders below src/trimtab")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="so many of the sample are done")
    parser.add_argument("--only", metavar="FILE[:LINE]")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="of these")
    parser.add_argument("--map", type=Path, help="what the tests covered: read, or written")
    args = parser.parse_args()
    chosen, tried, left = sample(args)[args.skip :], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        leave = shutil.ignore_patterns(".git", ".hypothesis", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=leave)
        if args.map and args.map.exists():
            known = Covered(*json.loads(args.map.read_text(encoding="utf-8")))
        else:
            known = covered(copy, args.tests)
            if args.map:
                args.map.write_text(json.dumps(known), encoding="utf-8")
        for mutant in chosen:
            tests, started = known.of(mutant), time.monotonic()
            alive = not tests or survives(mutant, tests, copy, told=bool(args.only))
            tried, left = tried + 1, left + alive
            took = f"{len(tests)} tests, {time.monotonic() - started:.0f} s"
            if alive or args.only:
                print(f"{'SURVIVED' if alive else 'killed'}  {mutant}  ({took})", flush=True)
            print(f"{tried} tried, {left} survived", end="\r", file=sys.stderr, flush=True)
    print(f"{tried} tried, {tried - left} killed, {left} survived (seed {args.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
