"""README tells the truth: its Python prints what it says, its commands are those that CI runs.

python tests/project/test_readme.py     writes what the examples print into README
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(README)
SHELL = [text for language, text in BLOCKS if language == "sh"]


EXAMPLES = [
    (BLOCKS[n][1], BLOCKS[n + 1]) for n, (language, _) in enumerate(BLOCKS) if language == "python"
]


def printed(code: str) -> str:
    """What an example prints, run in a Python of its own at the root of the clone."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize(("code", "below"), EXAMPLES)
def test_an_example_prints_what_stands_below_it(code, below):
    assert ("text", printed(code)) == below


def test_there_are_examples_and_the_first_has_six_lines():
    assert EXAMPLES[0][0].count("\n") == 6


def test_the_first_two_shell_blocks_are_one_line_each_and_make_their_own_environment():
    install_and_run, install_and_test = SHELL[0], SHELL[1]
    for text in (install_and_run, install_and_test):
        assert text.count("\n") == 1
        assert text.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
    assert "apt install python3-venv" in install_and_run.partition("#")[2]
    assert " .venv/bin/trimtab fit examples/" in install_and_run
    assert " .venv/bin/python -m pytest " in install_and_test


def test_ci_runs_the_two_commands_of_readme_themselves(tmp_path):
    """``.ci/run`` cuts them out of README: run its own function on it."""
    script = (ROOT / ".ci" / "run").read_text()
    function = re.search(r"^readme\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    assert function
    for number, block in enumerate(SHELL[:2], 1):
        assert f'run "$(readme {number})"' in script
        code = f"work={shlex.quote(str(tmp_path))}\n{function[0]}\nreadme {number}"
        done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, cwd=ROOT)
        elsewhere = done.stdout.replace(f"{tmp_path}/venv", ".venv")
        assert elsewhere.replace(f"{tmp_path}/fitted.json", "fitted.json") == block


def test_the_core_tier_is_the_same_command_in_readme_and_contributing():
    marker = '-m "not data and not world"'
    assert marker in SHELL[1]
    assert marker in (ROOT / "CONTRIBUTING.md").read_text()


if __name__ == "__main__":
    text = README
    for code, (_, below) in EXAMPLES:
        old = f"```python\n{code}```\n\n```text\n"
        text = text.replace(f"{old}{below}```", f"{old}{printed(code)}```")
    (ROOT / "README.md").write_text(text, encoding="utf-8")
