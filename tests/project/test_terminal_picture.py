"""The picture of the terminal shows what ``trimtab demo`` prints today."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import terminal_picture  # noqa: E402


def test_the_picture_has_the_lines_that_the_demo_prints():
    lines = terminal_picture.shown(terminal_picture.printed())
    assert terminal_picture.PICTURE.read_text(encoding="utf-8") == terminal_picture.drawn(lines)


def test_the_pictures_are_well_formed_and_load_nothing():
    for name in ("demo.svg", "mechanism.svg"):
        text = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
        ElementTree.fromstring(text)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
