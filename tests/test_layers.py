"""Who may import whom, how big the kernel is, and what ``import trimtab`` costs.

Knows the files of the package as text.  Does not know what they do.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src"
FILES = sorted((SRC / "trimtab").rglob("*.py"))

# Imports point up this list, or stay within a line.  A module that stands nowhere has no layer yet.
LAYERS = [
    {"errors", "model", "index", "amounts", "models", "calibration", "prices"},
    {"jsontext", "paths", "calls", "failures", "protect", "names", "demands", "notes"},
    {"refusals"},
    {"formats", "rules", "tokens", "usage", "rows", "source", "grown"},
    {"strategies"},
    {"exchanges", "past", "history", "presets", "internal"},
    {"lines", "weights", "remains", "cover", "edits", "runs", "gone"},
    {"value", "scope", "board", "plan", "lifting", "fold", "offered"},
    {
        "hard_limits",
        "journal",
        "journal_format",
        "sound",
        "mended",
        "known",
        "report",
        "billed",
        "observed",
    },
    {"asked", "asks", "step_asks", "forecast", "economics", "arrival"},
    {"settings", "conversion"},
    {"embedded", "work", "continuing", "binding", "floor", "fitting", "fitted", "sizes", "pruning"},
    {"passages", "recalling"},
    {"log"},
    {"events", "telemetry"},
    {"summarizer", "embedding", "endpoint", "article_log", "told", "setting_keys", "config"},
    {"turn", "once", "totals"},
    {"conversation", "stores"},
    {"learned"},
    {"tighter", "mending", "sends", "truncation"},
    {"shelf", "flow"},
    {"stored", "mcp"},
    {"session"},
    {"stored_limits"},
    {"transports"},
    {"api"},
    {"__init__"},
    {"testing", "replay", "integrations"},
    {"proxy"},
    {"cli", "__main__"},
]
FRAMEWORKS = {"langchain": {"langchain", "langchain_core", "langgraph"}}
"""Third-party, and at once: by the folder of ``integrations`` that is for them."""
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
STRATEGIES_SEE = {"demands", "errors", "jsontext", "model", "names", "strategies"}
LAZY = {"cryptography", "opentelemetry", "psycopg", "redis", "splintr", "uvicorn"}
LAZY |= {"mcp", "mcp_types"}
LAZY |= {"anthropic", "litellm"}  # the transports'
LAZY |= {"aiohttp", "botocore", "multidict", "yarl", "zstandard"}  # the proxy's
LAZY |= {"numpy", "onnxruntime", "tokenizers"}  # the embedding ranker's
"""Third-party, and only within a function."""

KERNEL = {"model", "paths", "errors", "tokens", "value", "plan", "journal", "fitting"}
RULES_ENGINE = {"rules/__init__.py", "rules/base.py"}


FOLDERS = {"asking", "money", "planning", "reading", "sending", "telling", "turns"}
"""Only keep files together: in these each module has a layer of its own."""


def part_of(file: Path) -> str:
    """``cli`` for cli/fit.py, ``plan`` for planning/plan.py, ``tokens`` for tokens.py."""
    return part_named(".".join(file.relative_to(SRC / "trimtab").with_suffix("").parts))


def part_named(module: str) -> str:
    """The same for ``planning.plan.Planner``."""
    first, _, rest = module.partition(".")
    return (rest.partition(".")[0] if first in FOLDERS else first) or first


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """(dotted module, whether it is imported when the file is) of every import statement."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            spread = node.module in {"trimtab", *(f"trimtab.{folder}" for folder in FOLDERS)}
            for name in names if spread else [node.module or ""]:
                yield name, id(node) in at_once


def code_lines(file: Path) -> int:
    """Lines that hold code: no blanks, comments or docstrings."""
    text = file.read_text(encoding="utf-8")
    lines = set()
    fresh = True  # a string that begins a statement is documentation
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            fresh = True
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            if not (fresh and token.type == tokenize.STRING):
                lines.update(range(token.start[0], token.end[0] + 1))
            fresh = False
    return len(lines)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_imports_point_one_way(file):
    here = part_of(file)
    assert here in RANK, f"give {here} a layer"
    for name, _ in imports(file):
        root, _, rest = name.partition(".")
        if root == "trimtab":
            other = part_named(rest)
            other = other if other in RANK else "__init__"
            assert RANK[other] <= RANK[here], f"{here} imports {other}"
            assert here != "strategies" or other in STRATEGIES_SEE, f"strategies import {other}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_third_party_modules_are_imported_on_first_use(file):
    for name, at_once in imports(file):
        root = name.partition(".")[0]
        known = root == "trimtab" or root in sys.stdlib_module_names
        known = known or ("integrations" in file.parts and root in FRAMEWORKS[file.parent.name])
        assert known or (root in LAZY and not at_once), f"{file.name} imports {root}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_file_says_what_it_knows_and_stays_short(file):
    text = file.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{file.name} begins without a docstring"
    assert len(text.splitlines()) <= 400


def test_the_kernel_is_at_most_1500_lines_of_code():
    kernel = [
        file
        for file in FILES
        if part_of(file) in KERNEL or file.relative_to(SRC / "trimtab").as_posix() in RULES_ENGINE
    ]
    sizes = {part_of(file): code_lines(file) for file in kernel}
    assert sum(code_lines(file) for file in kernel) <= 1_500, sizes


PROVIDERS = re.compile(
    r"openai|anthropic|bedrock|gemini|claude|deepseek|kimi|minimax|mistral|openrouter|vllm|azure",
    re.IGNORECASE,
)
NEUTRAL = {"model", "paths", "value", "scope", "plan", "board", "edits", "journal", "fitting"}
NEUTRAL |= {
    "fold",
    "cover",
    "lines",
    "names",
    "work",
    "floor",
    "binding",
    "hard_limits",
    "usage",
    "source",
    "rows",
    "known",
    "strategies",
}
NEUTRAL |= {"asked", "asks", "step_asks", "summarizer", "forecast", "article_log"}


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if part_of(file) in NEUTRAL],
    ids=lambda file: str(file.relative_to(SRC)),
)
def test_kernel_and_strategies_name_no_provider(file):
    """In code: prose may name the source of a number."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    prose = {
        id(node.value) for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }  # fmt: skip
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            text = node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            text = node.id if isinstance(node, ast.Name) else node.attr
        assert not PROVIDERS.search(text), f"{file.name}: {text}"


IMPORT = """
import sys

def watch(event, args):
    if event.startswith(("socket.", "subprocess.", "os.system", "os.remove", "os.mkdir")):
        raise SystemExit(f"import trimtab: {event} {args}")
    if event == "open" and args[1] is not None and set(args[1]) & set("wax+"):
        raise SystemExit(f"import trimtab writes {args[0]}")

before = set(sys.modules)
sys.dont_write_bytecode = True
sys.addaudithook(watch)
import trimtab
assert [getattr(trimtab, name) for name in trimtab.__all__]
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
HEAVY = {"asyncio", "http", "multiprocessing", "socket", "sqlite3", "ssl", "subprocess", "urllib"}


def test_importing_the_package_opens_nothing_and_loads_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, cwd=SRC, timeout=60
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "trimtab" in loaded
    assert not loaded & HEAVY
    assert not {name for name in loaded - {"trimtab"} if name not in sys.stdlib_module_names}


def test_every_public_name_loads_and_none_hides_behind_a_file_of_that_name():
    code = (
        "import importlib, pkgutil, trimtab\n"
        "for found in pkgutil.iter_modules(trimtab.__path__):\n"
        "    assert found.name not in trimtab.__all__, found.name\n"
        "assert all(getattr(trimtab, name) is not None for name in trimtab.__all__)\n"
        "assert set(trimtab.__all__) <= set(trimtab._MODULE), 'a name without a home'\n"
        "try:\n    trimtab.nothing\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "no attribute 'nothing'" in done.stdout, done.stderr


def test_no_two_files_of_tests_have_one_name():
    names = [file.name for file in (SRC.parent / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), "pytest collects neither"
