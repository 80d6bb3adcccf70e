"""README's two shell blocks are the commands that CI runs.  Its Python: test_code_blocks."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(README)
SHELL = [text for language, text in BLOCKS if language == "sh"]


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
