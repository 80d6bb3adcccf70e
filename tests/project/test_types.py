"""A user's program under mypy and pyright: what is misspelt is caught, what is legal is clean.

The two type checkers read the package's annotations only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"

LEGAL = """
import openai
import trimtab
from trimtab import ArticleRule, Settings
from trimtab.settings import Duplicates
from trimtab.testing import StrictProvider

def pick(flag: bool) -> int:
    messages: list[dict[str, object]] = [{"role": "user", "content": "hi"}]
    careful = Settings(protected_tools=["todo*"], preset="economy", thinking="drop_block")
    fitted = trimtab.fit(messages, 32_000, settings=careful)
    same: list[dict[str, object]] = fitted.request
    body: dict[str, object] = {"messages": messages, "model": "m"}
    sent: dict[str, object] = trimtab.repair(body).request
    plain: trimtab.Fitted = fitted  # of whatever type
    saved: int = fitted.report.tokens_saved + trimtab.count_tokens(body, "gpt-5.1")
    print(same, sent, plain.messages[0]["role"], saved)
    both = careful | Settings(early=0, duplicates=Duplicates(enabled=False))
    session = trimtab.Session(window=32_000, preset="economy", settings=both, store="memory:")
    text: str = session.fit("[]", "32k").request
    session.fit(messages, conversation="c", target=0.5, settings=Settings(calls_left=3))
    print(text, session.report.edits)
    trimtab.fit(b"[]", format="openai-chat:deepseek", recall=flag)
    trimtab.Session.from_config(window=5, tenant="t")
    trimtab.check(messages, open_tail=True)
    trimtab.fit(messages, settings=Settings(articles=ArticleRule(keep=2), counter=len))
    trimtab.fit(messages, settings=trimtab.load_settings())
    client = trimtab.wrap(openai.OpenAI(api_key="k"), window=9_000, strict=True)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    trimtab.wrap(openai.AsyncOpenAI(api_key="k"), session=session)
    seen: trimtab.report.Report | None = trimtab.of(client).report
    titles: list[str] = [edit.title for edit in trimtab.of(client).history()]
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": ""}])
    session.observe(answer, fitted)
    handles: list[str | None] = [edit.handle for edit in fitted.report.edits]
    originals: list[str] = [session.recall(handle, 0, 9) for handle in handles if handle]
    tool: dict[str, object] = trimtab.recall_tool("anthropic").definition
    rules: set[str] = {violation.rule for violation in trimtab.check(messages)}
    trimtab.convert(messages, to="gemini").request
    trimtab.Session(store=trimtab.stores.open_store("memory:"))
    told: list[trimtab.events.Event] = []
    trimtab.fit(messages, settings=Settings(on_event=told.append))
    print(seen, titles, trimtab.retry)
    with StrictProvider(window=8_000) as provider:
        print(provider.url)
    name: str = trimtab.detect({"messages": messages, "tools": [tool]}).name
    try:
        trimtab.repair(messages, format="bedrock")
    except trimtab.CannotFit as error:
        return error.minimum + len(originals) + len(rules) + len(name)
    except (trimtab.InvalidRequest, trimtab.errors.NotAClient):
        return 0
    return fitted.tokens_after

async def turn(session: trimtab.Session) -> str:
    fitted = await session.afit("[]", 9_000, reserve="2k")
    text: str = fitted.request
    print(text)
    return fitted.report.format
"""
WRONG = (
    "trimtab.Session(windw=3)",
    "trimtab.fit([], windw=3)",
    "trimtab.Session(window=9).fit([], tarjet=0.5)",
    "trimtab.Settings(protected_tool=[])",
    'trimtab.Session(preset="agressive")',
    'trimtab.Settings(thinking="dorp")',
    'trimtab.Settings(early="soon")',
    'trimtab.fit([], format="openai-caht")',
    'trimtab.fit([], settings={"window": 3})',
    "trimtab.wrap(openai.OpenAI(), windw=3)",
    "trimtab.wrap(openai.OpenAI()).chat.compltions",
    "trimtab.fit([], window=[32_000])",
    "trimtab.fit([]).requst",
    "trimtab.fit({}).request.append(3)",
    'trimtab.Session().fit("[]").request.append(3)',
    "trimtab.fit([], 32_000, 2_000)",
    "trimtab.transports",
    "trimtab.convert([])",
    "trimtab.Session(window=9).recall(3)",
    "trimtab.Session(window=9).afit([]).request",
    "trimtab.check([], strict=True)",
    "trimtab.fitt([])",
    'trimtab.stores.opn("memory:")',
)
OPENAI = """
class Completions:
    def create(self, *, model: str, messages: list[dict[str, str]]) -> object: ...

class Chat:
    completions: Completions

class OpenAI:
    chat: Chat
    def __init__(self, *, api_key: str | None = None) -> None: ...

class AsyncOpenAI(OpenAI): ...
"""
"""What the program uses of ``openai``, for mypy: to read all of it takes mypy half of its time.
pyright reads the package itself."""


def problems(checker: str, program: Path) -> set[int]:
    """The lines with an error."""
    commands = {
        "mypy": [
            "mypy",
            "--strict",
            "--no-error-summary",
            "--follow-imports=silent",
            f"--cache-dir={os.devnull}",
        ],
        "pyright": ["pyright", "--pythonpath", sys.executable],
    }
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", *commands[checker], program.name], cwd=program.parent,
        capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYTHONPATH": str(SRC), "MYPYPATH": f"{SRC}{os.pathsep}."},
    )  # fmt: skip
    found = re.findall(rf"{program.name}:(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    assert found or done.returncode == 0, done.stdout + done.stderr
    return set(map(int, found))


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_legal_uses_are_clean_and_each_misspelling_is_caught(checker: str, tmp_path: Path) -> None:
    wrong = "".join(f"\ndef wrong_{n}() -> None:\n    {line}\n" for n, line in enumerate(WRONG))
    (tmp_path / "program.py").write_text(LEGAL + wrong)
    if checker == "pyright":
        config = f'{{"extraPaths": ["{SRC}"], "typeCheckingMode": "basic"}}'
        (tmp_path / "pyrightconfig.json").write_text(config)
    else:
        (tmp_path / "openai.pyi").write_text(OPENAI)
    lines = (LEGAL + wrong).splitlines()
    caught = problems(checker, tmp_path / "program.py")
    assert {lines[n - 1].strip() for n in caught} == set(WRONG)
    assert min(len(WRONG), LEGAL.count("trimtab.")) >= 12
