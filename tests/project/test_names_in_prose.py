"""Names in prose exist and take what is said: inline code of the pages, docstrings, messages.

Blocks of code run (test_code_blocks.py); what stands between backticks within a sentence is read
here.  A call is looked up by its name, and its keywords by the signature.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trimtab
import trimtab.clients
import trimtab.clients.langchain
import trimtab.mcp
import trimtab.pricing.prices
import trimtab.settings
import trimtab.stores
import trimtab.summarizers.summarizer
import trimtab_lab.testing
from trimtab.cli.commands import parser
from trimtab.clients.langchain import TrimtabMiddleware

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "trimtab"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = (
    trimtab, trimtab.clients, trimtab.clients.langchain, trimtab.settings, trimtab_lab.testing,
    trimtab.summarizers.summarizer, trimtab.stores,
)  # fmt: skip
RECEIVERS: dict[str, Any] = {
    "session": trimtab.Session, "fitted": trimtab.Fitted, "middleware": TrimtabMiddleware,
}  # fmt: skip
"""What a variable of this name is in our prose."""
FENCE = re.compile(r"^(```|~~~).*?^\1", re.S | re.M)
INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
DOTTED = re.compile(r"(?<![\w./@-])trimtab(?:\.[A-Za-z_]\w*)+")
FILES = ("toml", "db", "log", "json", "txt", "yaml", "yml", "service", "sqlite", "md", "py")
COMMANDS = parser()
REPORTED = set(re.findall(r'"(trimtab\.[\w.]+)"', (SRC / "telemetry.py").read_text("utf-8")))
REPORTED |= {
    name for file in SRC.rglob("*.py")
    for name in re.findall(r'^GROUP = "(.*)"', file.read_text("utf-8"), re.M)
}  # fmt: skip
"""Names of spans, attributes and metrics, and of groups of entry points."""


def spans_of_page(page: Path) -> Iterator[tuple[int, str]]:
    """(line, inline code) of a page, outside of blocks."""
    text = page.read_text(encoding="utf-8")
    plain = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for match in INLINE.finditer(plain):
        yield plain[: match.start()].count("\n") + 1, match[1].replace("\\|", "|")


def spans_of_module(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text): code between backticks of docstrings, and the texts of a module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.encode("utf-8", "replace").decode()
            spans = re.findall(r"``([^`]+)``", text)
            for span in spans or ([text] if "\n" not in text else []):
                yield node.lineno, span


def resolved(dotted: str) -> Any:
    """The object behind a dotted name.  Raises ImportError or AttributeError."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


def called(node: ast.expr) -> Any:
    """What a call in our prose calls, if it is ours; else None."""
    name = ast.unparse(node)
    if re.fullmatch(r"trimtab(\.\w+)+", name):
        return resolved(name)
    head, _, rest = name.rpartition(".")
    if head.rpartition(".")[2] in RECEIVERS and rest:
        return getattr(RECEIVERS[head.rpartition(".")[2]], rest)
    if head:
        owner = exported(head)
        return getattr(owner, rest) if isinstance(owner, type) else None
    return exported(name)


def exported(name: str) -> Any:
    """What a module of ours offers under this name; else None."""
    for module in MODULES:
        if name in getattr(module, "__all__", ()) or name in vars(module):
            return getattr(module, name)
    return None


def keywords_of(function: Any) -> set[str] | None:
    """The names of the keywords that it takes; None if it takes any."""
    names: set[str] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            names.add(name)
            continue
        hint = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if hint is None:
            return None
        plain = inspect.unwrap(function.__init__ if isinstance(function, type) else function)
        names |= getattr(plain, "__func__", plain).__globals__[hint[1]].__annotations__.keys()
    return names


def problems_in(span: str) -> Iterator[str]:
    """What is wrong in one piece of code."""
    for dotted in DOTTED.findall(span):
        if (
            dotted in REPORTED
            or dotted.rpartition(".")[2] in FILES
            or re.search(rf"\W{re.escape(dotted)}[/-]", span)
        ):
            continue
        try:
            resolved(dotted)
        except (ImportError, AttributeError):
            yield f"{dotted} does not exist"
            return
    code = re.sub(r"[=(,\[]\s*…", lambda m: f"{m[0][:-1]}None", span).replace(", …", "")
    code = code.replace("[…]", "[]").replace("…", "None")
    try:
        with warnings.catch_warnings(action="ignore"):  # a pattern is no Python
            tree = ast.parse(code.strip())
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            continue
        try:
            function = called(node.func)
        except AttributeError as error:
            yield str(error)
            continue
        if not callable(function):
            continue
        known = keywords_of(function)
        for keyword in node.keywords:
            if known is not None and keyword.arg is not None and keyword.arg not in known:
                yield f"{ast.unparse(node.func)} takes no {keyword.arg}="


def found_in(spans: Iterator[tuple[int, str]], where: Path) -> list[str]:
    name = where.relative_to(ROOT)
    return [f"{name}:{line}: {problem} (`{span}`)"
            for line, span in spans for problem in problems_in(span)]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_inline_code_of_a_page_names_what_exists(page: Path) -> None:
    assert found_in(spans_of_page(page), page) == []


def test_docstrings_and_messages_name_what_exists() -> None:
    files = sorted(SRC.rglob("*.py"))
    assert [problem for file in files for problem in found_in(spans_of_module(file), file)] == []


def test_the_page_of_langchain_names_only_keywords_that_its_classes_take() -> None:
    page = ROOT / "docs" / "langchain.md"
    taken = set[str]()
    for made in (TrimtabMiddleware, TrimtabMiddleware.just_in_time,
                 trimtab.clients.langchain.pre_model_hook):  # fmt: skip
        taken |= keywords_of(made) or set()
    named = {m[1] for _, span in spans_of_page(page) if (m := re.match(r"(\w+)=[^=]*$", span))}
    assert {"summarizer", "protected_tools", "pins", "on_event"} <= named
    assert named <= taken


def test_options_of_commands_in_prose_exist() -> None:
    missing = []
    for page in PAGES:
        for line, span in spans_of_page(page):
            words = span.split()
            if words[:1] != ["trimtab"] or len(words) < 2 or "--" not in span:
                continue
            own = options_of(words[1])
            for word in words[2:]:
                if word == "--" or (words[1] == "run" and not word.startswith("--")):
                    break  # the rest is the agent's
                option = word.partition("=")[0].rstrip(",.;:")
                if own and option.startswith("--") and option not in own:
                    missing.append(f"{page.name}:{line}: {option} (`{span}`)")
    assert missing == []


def options_of(command: str) -> set[str]:
    """The options of a command, by its parser; empty if there is no such command."""
    for action in COMMANDS._actions:
        choices = getattr(action, "choices", None)
        if isinstance(choices, dict) and command in choices:
            return {name for one in choices[command]._actions for name in one.option_strings}
    return set()


@pytest.mark.parametrize(
    ("span", "problem"),
    [
        ("trimtab.Sesion", "trimtab.Sesion does not exist"),
        ("Settings(targt=0.5)", "Settings takes no targt="),
        ("TrimtabMiddleware(window=1, trigger=0.9)", "TrimtabMiddleware takes no trigger="),
        ("TrimtabMiddleware.just_in_time(treshold=…)",
         "TrimtabMiddleware.just_in_time takes no treshold="),
        ("session.recal(handle)", "type object 'Session' has no attribute 'recal'"),
        ("settings=trimtab.Settings(recal=…)", "trimtab.Settings takes no recal="),
        ("trimtab.fit(request, windw=32_000)", "trimtab.fit takes no windw="),
        ("wrap(client, strict=True)", None), ("Settings(pins=[…])", None),
        ("trimtab.toml", None), ("fitted.recall(handle)", None), ("OpenAI(base_url=…)", None),
    ],
)  # fmt: skip
def test_the_search_finds_what_is_wrong_and_leaves_the_rest(span: str, problem: str | None) -> None:
    assert list(problems_in(span)) == ([problem] if problem else [])
