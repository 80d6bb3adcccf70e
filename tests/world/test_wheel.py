"""The wheel, built and installed into a new environment: what a newcomer runs first."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.world
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 5.0
"""Of processor time, which does not depend on what else the machine does."""


def processor_seconds() -> float:
    """Of all processes that this one has run (0 on Windows)."""
    times = os.times()
    return times.children_user + times.children_system


def must(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trimtab(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command in an environment that has the wheel and its one dependency."""
    folder = tmp_path_factory.mktemp("wheel")
    must(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", ".", str(ROOT), cwd=folder)
    (wheel,) = folder.glob("trimtab-*.whl")
    venv.create(folder / "new", with_pip=True)
    scripts = folder / "new" / ("Scripts" if sys.platform == "win32" else "bin")
    must(str(scripts / "python"), "-m", "pip", "install", "-q", str(wheel), cwd=folder)
    return str(scripts / "trimtab")


def test_the_demo_runs_from_the_wheel_alone_in_five_seconds(trimtab: str, tmp_path: Path) -> None:
    began = processor_seconds()
    said = must(trimtab, "demo", "--html", "demo.html", cwd=tmp_path)
    seconds = processor_seconds() - began
    assert said.startswith("9 of 19 requests would have been refused; all were answered.")
    assert "4 of 4 are equal to the recording" in " ".join(said.split())
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    assert seconds < SECONDS
