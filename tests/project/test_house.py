"""How the package is built: who imports whom, what is imported when, what importing costs.

Who may import whom is said in pyproject.toml (``[tool.importlinter]``).
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import trimtab

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
sys.path.insert(0, str(ROOT / "scripts"))

import house  # noqa: E402

FILES = sorted(file for name in house.PACKAGES for file in (SRC / name).rglob("*.py"))

FRAMEWORKS = {"langchain": {"langchain", "langchain_core", "langgraph"}}
"""Third-party, and at once: by the folder of ``clients`` that is for them."""
LAZY = {"cryptography", "opentelemetry", "psycopg", "redis", "splintr", "uvicorn"}
LAZY |= {"mcp", "mcp_types"}
LAZY |= {"typing_extensions"}  # for type checkers alone
LAZY |= {"anthropic", "google", "litellm"}  # the transports'
LAZY |= {"aiohttp", "botocore", "multidict", "yarl", "zstandard"}  # the proxy's
LAZY |= {"jinja2", "markupsafe", "prometheus_client"}  # of pages and metrics
LAZY |= {"langchain", "langchain_core", "langgraph"}  # a target of the conformance suite
LAZY |= {"shtab"}  # the command line's
LAZY |= {"PIL"}  # of images that are made smaller
"""Third-party, and only within a function."""


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file of the package, for all tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """(dotted module, whether it is imported when the file is) of every import statement."""
    tree = parsed(file)
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names if node.module == "trimtab" else [node.module or ""]:
                yield name, id(node) in at_once


def test_imports_point_down_the_layers_that_pyproject_lists():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()",
         "--no-cache", "--no-logo"],
        capture_output=True, text=True, cwd=SRC.parent, timeout=120,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def known():
    """Every file of the package by its dotted name."""
    return house.modules(SRC)


def test_no_files_and_no_layers_import_each_other(known):
    graph = {name: set(house.imports(module, known)) - {name} for name, module in known.items()}
    assert not house.cycles(graph)
    assert not house.cycles(house.edges(graph, known, house.layer))


def test_a_class_name_is_defined_once(known):
    assert not house.repeated_classes(known)


def test_fit_loads_no_door():
    loaded = house.traced(SRC, "openai-chat")["modules"]
    assert not {part for name in loaded for part in name.split(".")[:2]} & {
        *house.DOORS,
        "trimtab_lab",
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_third_party_modules_are_imported_on_first_use(file):
    for name, at_once in imports(file):
        root = name.partition(".")[0]
        known = root in house.PACKAGES or root in sys.stdlib_module_names
        known = known or (root in FRAMEWORKS.get(file.parent.name, ()))
        known = known or (root == "pytest" and file.name == "pytest_plugin.py")
        assert known or (root in LAZY and not at_once), f"{file.name} imports {root}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_file_begins_by_saying_what_it_is_for(file):
    assert ast.get_docstring(parsed(file)), f"{file.name} begins without a docstring"


PROVIDERS = re.compile(
    r"openai|anthropic|bedrock|gemini|claude|deepseek|kimi|minimax|mistral|openrouter|vllm|azure",
    re.IGNORECASE,
)
NEUTRAL = ("planning", "journal", "reducers", "request")
"""Folders and files that name no provider."""


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in FILES
        if any(file.is_relative_to(SRC / "trimtab" / place) for place in NEUTRAL)
    ],
    ids=lambda file: str(file.relative_to(SRC)),
)
def test_what_decides_names_no_provider(file):
    """In code: prose may name the source of a number."""
    tree = parsed(file)
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


PARTS = (
    "batch", "clients", "conversion", "errors", "events", "report", "retry", "settings", "stores",
    "testing",
)  # fmt: skip
FITTED = {
    "archive", "arm", "changed", "conversation", "messages", "recall", "report", "request",
    "tokens_after", "tokens_before",
}  # fmt: skip
SESSION = {
    "afit", "archive", "close", "fit", "from_config", "history", "journal", "look_up", "observe",
    "pin", "pins", "preview", "recall", "refused", "report", "search", "settings", "shown",
    "stats", "sweep", "undo", "unpin",
}  # fmt: skip


def test_what_users_see_is_small_and_the_rest_is_in_parts_that_need_no_import():
    assert 15 <= len(trimtab.__all__) <= 24
    fitted = trimtab.fit([{"role": "user", "content": "hi"}], 9_000)
    assert {name for name in dir(fitted) if not name.startswith("_")} == FITTED
    assert {name for name in dir(trimtab.Session) if not name.startswith("_")} == SESSION
    assert trimtab._PARTS == PARTS
    for name in PARTS:
        assert inspect.ismodule(getattr(trimtab, name)), name
    for name in trimtab.settings.__all__:
        assert getattr(trimtab.settings, name).__name__ == name


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:[\w.]+/)*[\w.]*(?:/|\.(?:py|md|toml)))(?:::([\w.]+))?`", ARCHITECTURE)
"""(path, the function or class in it, or "")."""
FOLDERS = sorted({f"{file.parent.relative_to(SRC).as_posix()}/" for file in FILES})


def defined(file: Path) -> set[str]:
    """Functions, classes, methods (``Class.method``) and names bound at the top of a file."""
    found = set[str]()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if hasattr(one, "name")}
        for target in [*getattr(node, "targets", []), getattr(node, "target", None)]:
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_what_the_page_on_architecture_names_exists(path, name):
    file = next(
        (base / path for base in (ROOT, SRC, SRC / "trimtab") if (base / path).exists()), None
    )
    assert file is not None, path
    assert not name or name in defined(file), f"{path}::{name}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_on_architecture_names_every_folder(folder):
    assert f"`{folder.removeprefix('trimtab/')}`" in ARCHITECTURE or folder == "trimtab/"


def test_the_page_on_architecture_stays_short():
    assert len(ARCHITECTURE.splitlines()) <= 300


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"\b((?:src|tests|docs|scripts|bench|examples)/[\w/.-]*\w)", text)
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    for path in [*(ROOT / name for name in named), *(page.parent / link for link in links)]:
        assert path.exists() or list(path.parent.glob(f"{path.name}*")), path


PUBLIC_FIELDS = {"_asdict", "_fields", "_make", "_replace"}
"""Of named tuples, by their documentation."""
OURS = {"_digest", "_trimtab"}
"""A field of our ``Block``, and what we put on answers of LiteLLM's."""
OF_ITSELF = {"self", "cls", "this"}


def given_names(tree: ast.AST) -> Iterator[str]:
    """Names that a file gives to something of its own."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in OF_ITSELF:
            yield node.attr


def private_uses(file: Path, tree: ast.Module) -> Iterator[str]:
    """Private attributes and modules of others that a file uses, by name or as a text.

    Of others: what nothing in the file itself is called.
    """
    own = PUBLIC_FIELDS | OURS | set(given_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            named = [] if getattr(node.value, "id", "") in OF_ITSELF else [node.attr]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("trimtab"):
            named = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            named = [name for name in named if name != "__future__"]
        elif isinstance(node, ast.Import):
            named = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            named = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
        else:
            continue
        for name in named:
            if name.startswith("_") and not name.endswith("__") and name not in own:
                yield f"{file.name}:{node.lineno}: {name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_nothing_private_of_another_package_is_used(file):
    assert not list(private_uses(file, parsed(file)))
    assert "uvicorn.protocols" not in file.read_text(encoding="utf-8")


def test_what_is_private_is_found_however_it_is_written():
    text = """
import httpx._client
from openai import _base_client
from openai._base_client import post
client._transport
getattr(client, "_mounts")
"""
    file = Path("reaching.py")
    found = {line.rpartition(" ")[2] for line in private_uses(file, ast.parse(text))}
    assert found == {"_client", "_base_client", "_transport", "_mounts"}
    text = "class A:\n    def __init__(self):\n        self._a = 1\n\n\ndef f(a: A):\n    a._a"
    assert not list(private_uses(file, ast.parse(text)))
