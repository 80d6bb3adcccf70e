"""The built site, opened as files without a network."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import browser
import pytest
import world_needs

pytestmark = pytest.mark.world
ROOT = Path(__file__).resolve().parents[2]
ASK = """(() => {
  document.querySelector("#__search").click()
  const input = document.querySelector(".md-search__input")
  input.value = "two replicas"
  input.dispatchEvent(new Event("input", { bubbles: true }))
  input.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }))
})()"""
FOUND = '[...document.querySelectorAll(".md-search-result__link")].map(a => a.href).join(" ")'


def test_the_search_of_the_site_works_from_files(tmp_path: Path) -> None:
    world_needs.module("mkdocs", extra="docs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, timeout=300)
    with browser.tab("--host-resolver-rules=MAP * ~NOTFOUND") as tab:
        tab.open((tmp_path / "index.html").as_uri())
        tab.eval(ASK)
        deadline = time.monotonic() + 20
        while not (found := tab.eval(FOUND)) and time.monotonic() < deadline:
            time.sleep(0.2)
    assert "start/fleet.html" in found
