"""Measures how the package is built, and exits with 1 where a bound is broken.

    python scripts/house.py                   this clone
    python scripts/house.py -v                with what ``fit`` enters, and the imports that make a
                                              cycle of folders
    python scripts/house.py --src OTHER/src   another source tree

Bounds: the files of which ``fit`` executes a function, class names defined more than once, import
cycles between files, between layers (folders and files at the top of the package) and between all
folders, and doors loaded by ``fit``.  For information: files that know the words of a format,
settings, public names, files of more than 400 lines, and lines of library and laboratory.
The order of the layers is held by import-linter.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

IDLE_FILES = 50
CUTTING_FILES = 113
"""The bound is this high because each kind of reduction has a file of its own."""
LONG_FILE_LINES = 400
DOORS = ("proxy", "clients", "conversion", "mcp", "cli")
"""Packages that ``fit`` must not load; nor the laboratory, ``trimtab_lab``."""
PACKAGES = ("trimtab", "trimtab_lab")
WORDS = {
    "openai-chat": {"tool_calls", "tool_call_id"},
    "openai-responses": {"function_call", "function_call_output", "call_id"},
    "anthropic": {"tool_use", "tool_result", "tool_use_id"},
    "bedrock": {"toolUse", "toolResult", "toolUseId"},
    "gemini": {"functionCall", "functionResponse"},
    "gemini-interactions": {"function_result"},
}
"""Format → texts by which its calls and results are recognised."""

FORMATS = {"openai-chat": "session.openai.json", "anthropic": "session.anthropic.json"}
"""Format → the recorded session that is cut to a window of 32k."""

FIT = """
import json, sys

CO_OPTIMIZED = 1  # set for functions, not for the bodies of modules and classes
src, format, example = sys.argv[1:]
import trimtab

def small(text):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100} if format == "anthropic" else {
        "model": "gpt-5"}
    return {**body, "messages": [{"role": "user", "content": text}]}

trimtab.fit(small("Hello."), window=32_000)

def entered(request):
    files = {}
    def called(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(src):
            files.setdefault(code.co_filename[len(src):], {})[code.co_qualname] = None
    sys.setprofile(called)
    try:
        fitted = trimtab.fit(request, window=32_000)
    finally:
        sys.setprofile(None)
    return files, len(fitted.report.edits)

idle, none = entered(small("Good morning."))
cutting, some = entered(json.load(open(example, encoding="utf-8")))
assert none == 0 and some, (none, some)
modules = sorted(name for name in sys.modules if name.startswith("trimtab"))
print(json.dumps({"idle": idle, "cutting": cutting, "modules": modules}))
"""


def traced(src: Path, format: str) -> dict[str, Any]:
    """The functions that an idle and a cutting ``fit`` enter (file → functions), and all modules of
    the package that are loaded after both."""
    done = subprocess.run(
        [sys.executable, "-c", FIT, f"{src}/trimtab/", format, str(EXAMPLES / FORMATS[format])],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(src)},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Module(NamedTuple):
    """One file: its dotted name, its path (below ``src/trimtab``, or below ``src``), its text and
    syntax tree."""

    name: str
    path: str
    text: str
    tree: ast.Module


def modules(src: Path) -> dict[str, Module]:
    """Every file of both packages by its dotted name."""
    found = {}
    for file in sorted(file for name in PACKAGES for file in (src / name).rglob("*.py")):
        path = file.relative_to(src)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text(encoding="utf-8")
        path_text = path.as_posix().removeprefix("trimtab/")
        found[name] = Module(name, path_text, text, ast.parse(text))
    return found


def spoken(known: Mapping[str, Module]) -> dict[str, list[str]]:
    """Format → the files of the library in which one of its words is a whole text."""
    texts = {
        module.path: {
            node.value
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        for module in known.values()
    }
    return {
        format: [path for path, said in texts.items() if said & words and not in_lab(path)]
        for format, words in WORDS.items()
    }


def in_lab(path: str) -> bool:
    """Whether a file belongs to the laboratory."""
    return path.startswith("trimtab_lab/")


def imports(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    """The modules of the package that a file imports anywhere: within functions and for
    annotations too."""
    if module.name == "trimtab":  # names what is public, and loads it when it is asked for
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in known else node.module


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Sets of nodes that reach each other (strongly connected components of two or more)."""
    reach = {node: reachable(graph, node) for node in graph}
    found = {
        tuple(sorted({other for other in reach[node] if node in reach.get(other, ())}))
        for node in graph
        if node in reach[node]
    }
    return sorted((list(group) for group in found if len(group) > 1), key=len)


def reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Every node that can be reached from ``start`` by at least one edge."""
    found, open_ = set[str](), [start]
    while open_:
        for other in graph.get(open_.pop(), ()):
            if other not in found:
                found.add(other)
                open_.append(other)
    return found


def edges(
    graph: Mapping[str, set[str]], known: Mapping[str, Module], place: Callable[[Module], str]
) -> dict[str, dict[str, list[str]]]:
    """Place → place → the imports that lead from one to the other."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, others in graph.items():
        for other in others:
            here, there = place(known[name]), place(known[other])
            if here != there:
                found[here][there].append(f"{known[name].path} → {known[other].path}")
    return found


def folder(module: Module) -> str:
    """The folder that a file lies in; at the top, the file itself."""
    above = module.path.rpartition("/")[0]
    return f"{above}/" if above.removeprefix("trimtab_lab") else module.path


def layer(module: Module) -> str:
    """The folder at the top of its package that a file lies in; at the top, the file itself."""
    parts = module.path.split("/")
    above = parts[: 2 if in_lab(module.path) else 1] if len(parts) > 1 else []
    return module.path if above == parts or not above else f"{'/'.join(above)}/"


def repeated_classes(known: Mapping[str, Module]) -> dict[str, list[str]]:
    """Class name → the files that define it, where there are two or more definitions."""
    found = defaultdict(list)
    for module in known.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module.path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def public_names(src: Path) -> list[str]:
    """What ``trimtab`` exports."""
    code = "import trimtab; print(*trimtab.__all__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(src)},
    )  # fmt: skip
    return done.stdout.split()


def fields(module: Module, name: str) -> int:
    """How many annotated fields a class has."""
    found = next(
        node for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name == name
    )  # fmt: skip
    return sum(isinstance(node, ast.AnnAssign) for node in found.body)


def show(title: str, value: Any, rows: Iterable[str] = ()) -> None:
    """Print one figure, and its details below it."""
    print(f"{title:<52}{value:>8}")
    for row in rows:
        print(f"    {row}")


def main() -> int:
    """Print the figures; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="folder that holds trimtab/")
    parser.add_argument("-v", "--verbose", action="store_true", help="list what was counted")
    args = parser.parse_args()
    src, broken = args.src.resolve(), list[str]()

    def bound(ok: bool, words: str) -> None:
        if not ok:
            broken.append(words)

    loaded = set[str]()
    for format in FORMATS:
        run = traced(src, format)
        loaded |= set(run["modules"])
        for kind, most in (("idle", IDLE_FILES), ("cutting", CUTTING_FILES)):
            files: dict[str, list[str]] = run[kind]
            title = f"files entered by fit, {kind}, {format} (≤ {most})"
            rows = [f"{path}: {', '.join(files[path])}" for path in sorted(files)]
            show(title, len(files), rows if args.verbose else ())
            bound(len(files) <= most, title)

    known = modules(src)
    graph = {name: set(imports(module, known)) - {name} for name, module in known.items()}

    classes = repeated_classes(known)
    rows = [f"{name}: {', '.join(paths)}" for name, paths in classes.items()]
    show("class names defined more than once (0)", len(classes), rows)
    bound(not classes, "class names defined more than once")

    file_cycles = cycles(graph)
    show("import cycles between files (0)", len(file_cycles), map(" ↔ ".join, file_cycles))
    bound(not file_cycles, "import cycles between files")

    layers = cycles(edges(graph, known, layer))
    show("import cycles between layers (0)", len(layers), map(" ↔ ".join, layers))
    bound(not layers, "import cycles between layers")
    folders = edges(graph, known, folder)
    within = cycles(folders)
    show("import cycles between folders (0)", len(within), map(" ↔ ".join, within))
    bound(not within, "import cycles between folders")
    if args.verbose:
        for group in within:
            for here, there in permutations(group, 2):
                for edge in folders[here].get(there, ())[:3]:
                    print(f"        {edge}")

    for door in (*DOORS, "trimtab_lab"):
        held = sorted(name for name in loaded if door in name.split(".")[:2])
        show(f"files of {door} loaded by fit (0)", len(held), held)
        bound(not held, f"{door} is loaded by fit")

    for format, paths in spoken(known).items():
        show(f"files that know words of {format}", len(paths), paths if args.verbose else ())
    show("public names", len(public_names(src)))
    show("settings of fit", fields(known["trimtab.settings"], "Settings"))
    proxy = known["trimtab.proxy.config.settings"]
    show("settings of the proxy", fields(proxy, "ProxySettings"))

    lines = {module.path: len(module.text.splitlines()) for module in known.values()}
    long = sorted((n, path) for path, n in lines.items() if n > LONG_FILE_LINES)
    show(f"files of more than {LONG_FILE_LINES} lines", len(long), (f"{n:>6} {p}" for n, p in long))
    for title, own in (("library", False), ("laboratory", True)):
        counted = {path: n for path, n in lines.items() if in_lab(path) is own}
        show(f"files of the {title}", len(counted))
        show(f"lines of the {title}", f"{sum(counted.values()):,}")
        by_folder = Counter[str]()
        for module in known.values():
            if module.path in counted:
                by_folder[layer(module) if "/" in module.path else "(top)"] += lines[module.path]
        for name, count in by_folder.most_common():
            show(f"    {name}", f"{count:,}")

    for words in broken:
        print(f"broken: {words}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
