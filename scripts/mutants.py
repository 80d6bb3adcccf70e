"""Breaks the library in one place at a time and says which breaks no test notices.

    python scripts/mutants.py --count 100 --seed 1            a sample over DEFAULT folders
    python scripts/mutants.py --count 50 planning/fold.py     files or folders below src/trimtab
    python scripts/mutants.py --only planning/fold.py:88      every mutant of one line, tests shown

A mutant is one comparison turned, one condition negated, one ``and`` made ``or``, one number one
larger, one statement or returned value taken away.  Works on a copy of this clone in a temporary
folder.  First the tests below run once with ``coverage`` (``--map FILE`` keeps what they covered
for the next run); then each mutant meets the tests that enter its line, the fastest first; where
the line runs on import, those that enter its file, and its folder of tests/unit.  What changes a
function meets them in a fork of one process that has imported everything, where the function gets
new code; what changes an import, and whatever survived a fork, in a process of its own.  Prints
each survivor, then the sums.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, NamedTuple

from mutations import Mutant, mutants

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ("planning", "rules", "retry", "journal")
TESTS = (
    "tests/unit/planning", "tests/unit/formats", "tests/unit/retry", "tests/unit/journal",
    "tests/property/test_every_path.py", "tests/property/test_safe_cutting.py",
)  # fmt: skip
SLOW = "not thousands and not 50_mb and not ten_thousand and not in_time"
SECONDS = 60
"""CPU time after which a mutant counts as hanging, and so as noticed.  Its tests take at most a
third of that without the mutant."""
DEAR = 2.0
"""A test that takes more seconds of CPU time is not run on mutants."""


# --- which tests enter which line ----------------------------------------------------------------


class Covered(NamedTuple):
    """``lines``: file → line → numbers of tests; ``tests``: their ids; ``seconds`` of each."""

    lines: dict[str, dict[str, list[int]]]
    tests: list[str]
    seconds: dict[str, float]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that enter a mutant's line, the fastest first; for a line that runs on import
        those that enter its file, and those of its folder."""
        here = self.lines.get(mutant.file, {})
        found = set(here.get(str(mutant.line), ()))
        if not found:
            folder = f"tests/unit/{Path(mutant.file).parent}/"
            found = {n for numbers in here.values() for n in numbers}
            found |= {n for n, test in enumerate(self.tests) if test.startswith(folder)}
        ids = sorted((self.tests[n] for n in found), key=self.seconds.__getitem__)
        sums = itertools.accumulate(self.seconds[test] for test in ids)
        return [test for test, so_far in zip(ids, sums, strict=True) if so_far < SECONDS / 3]


PLUGIN = """
import json, os, signal, time, coverage, pytest
SECONDS = {}

def dear(number, frame):
    pytest.skip("dear")

signal.signal(signal.SIGVTALRM, dear)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    if now := coverage.Coverage.current():
        now.switch_context(item.nodeid)
    yield

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    signal.setitimer(signal.ITIMER_VIRTUAL, float(os.environ["MUTANTS_DEAR"]))
    began = time.process_time()
    outcome = yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if outcome.exception is None:
        SECONDS[item.nodeid] = time.process_time() - began

def pytest_sessionfinish():
    if path := os.environ.get("MUTANTS_SECONDS"):
        with open(path, "w") as file:
            json.dump(SECONDS, file)
"""


def environment(copy: Path) -> dict[str, str]:
    """The environment of test runs: few examples, always the same ones, no files written."""
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
    env = {**environment(copy), "MUTANTS_SECONDS": str(seconds), "MUTANTS_DEAR": str(DEAR)}
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
        if context not in seconds or not Path(path).is_relative_to(src):
            continue
        if context not in number:
            number[context] = len(tests)
            tests.append(context)
        here = lines.setdefault(Path(path).relative_to(src).as_posix(), {})
        for line in numbits_to_nums(bits):
            here.setdefault(str(line), []).append(number[context])
    return Covered(lines, tests, seconds)


# --- one mutant ----------------------------------------------------------------------------------


def mutated(mutant: Mutant, whole: bytes) -> bytes:
    """The file's content with the mutant."""
    return whole[: mutant.start] + mutant.new.encode() + whole[mutant.end :]


def survives(mutant: Mutant, tests: list[str], copy: Path, told: bool = False) -> bool:
    """Whether every test passes with the mutant, in a process of its own."""
    file = copy / "src" / "trimtab" / mutant.file
    whole = file.read_bytes()
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:warnings",
        "--tb=line", *tests,
    ]  # fmt: skip
    try:
        file.write_bytes(mutated(mutant, whole))
        done = subprocess.run(
            command, cwd=copy, env=environment(copy), capture_output=True, text=True,
            preexec_fn=limit_cpu, check=False,
        )  # fmt: skip
    finally:
        file.write_bytes(whole)
    if told:
        print(done.stdout[-600:])
    return done.returncode == 0


def limit_cpu() -> None:
    """Limit the CPU time of this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Forks:
    """A plugin of pytest that, once all tests are collected, tries each mutant in a fork."""

    def __init__(self, copy: Path, known: Covered, chosen: list[Mutant]) -> None:
        self.copy, self.known, self.chosen = copy, known, chosen
        self.alive: list[Mutant] = []
        self.functions: dict[str, list[FunctionType]] = {}

    def run(self) -> list[Mutant]:
        """The mutants that no fork noticed."""
        import pytest

        os.environ.update(environment(self.copy))
        sys.path[:0] = [str(self.copy / "src"), str(self.copy)]
        os.chdir(self.copy)
        files = sorted({test.partition("::")[0] for test in self.known.tests})
        pytest.main(["-q", "-s", "-p", "no:cacheprovider", *files], plugins=[self])
        return self.alive

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants instead of running the tests."""
        gc.unfreeze()  # modules and collected tests: see tests/conftest.py
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                self.functions.setdefault(found.__code__.co_filename, []).append(found)
        gc.freeze()
        items = {item.nodeid: item for item in session.items}
        for number, mutant in enumerate(self.chosen, 1):
            tests = [items[test] for test in self.known.of(mutant) if test in items]
            if not self._killed(mutant, tests):
                self.alive.append(mutant)
                print(f"alive  {mutant}  ({len(tests)} tests)", flush=True)
            print(f"{number} tried, {len(self.alive)} alive", end="\r", file=sys.stderr, flush=True)
        return True

    def _killed(self, mutant: Mutant, tests: list[pytest.Item]) -> bool:
        swaps = self._swaps(mutant)
        if not swaps or not tests:
            return False
        if not (child := os.fork()):
            try:
                limit_cpu()
                signal.alarm(20 * SECONDS)  # for what waits without working
                silent = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silent, 1)
                os.dup2(silent, 2)
                for function, code in swaps:
                    function.__code__ = code
                for test, after in zip(tests, [*tests[1:], None], strict=True):
                    test.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
            except BaseException:
                os._exit(1)
            os._exit(0)
        return os.waitpid(child, 0)[1] != 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Only a fork runs tests."""
        if report.failed:
            os._exit(1)

    def _swaps(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        """Each function of the mutant's file, with its new code; none where an import runs it."""
        path = str(self.copy / "src" / "trimtab" / mutant.file)
        whole = Path(path).read_bytes()
        old, new = (compile(text, path, "exec") for text in (whole, mutated(mutant, whole)))
        if at_import(old) != at_import(new):
            return []
        pairs = dict(zip(map(_place, codes(old)), codes(new), strict=True))
        live = [found for found in self.functions.get(path, ()) if _place(found.__code__) in pairs]
        swaps = [(function, pairs[_place(function.__code__)]) for function in live]
        same = all(len(f.__code__.co_freevars) == len(code.co_freevars) for f, code in swaps)
        return swaps if same else []


def codes(code: CodeType) -> list[CodeType]:
    """The functions of a module, of its classes and of other functions, in order: what a function
    made on import is swapped too."""
    found = list[CodeType]()
    for value in code.co_consts:
        if isinstance(value, CodeType):
            function = value.co_flags & inspect.CO_OPTIMIZED
            inner = codes(value)
            found += [value, *(c for c in inner if c.co_name[0] != "<")] if function else inner
    return found


def at_import(code: CodeType) -> object:
    """The code that runs when the module is imported, for comparison."""
    values = [value for value in code.co_consts if not isinstance(value, CodeType)]
    inner = [value for value in code.co_consts if isinstance(value, CodeType)]
    classes = [at_import(value) for value in inner if not value.co_flags & inspect.CO_OPTIMIZED]
    return code.co_code, code.co_names, repr(values), len(codes(code)), classes


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


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
    """Try the mutants and print the survivors."""
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
    chosen = sample(args)[args.skip :]
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
        alive = chosen if args.only else Forks(copy, known, chosen).run()
        survivors = 0
        for mutant in alive:
            tests, started = known.of(mutant), time.monotonic()
            survived = not tests or survives(mutant, tests, copy, told=bool(args.only))
            survivors += survived
            took = f"{len(tests)} tests, {time.monotonic() - started:.0f} s"
            if survived or args.only:
                print(f"{'SURVIVED' if survived else 'killed'}  {mutant}  ({took})", flush=True)
    tried = len(chosen)
    print(f"{tried} tried, {tried - survivors} killed, {survivors} survived (seed {args.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
