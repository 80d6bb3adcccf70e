"""Draws the terminal after ``trimtab demo``, line by line as it fills: docs/pictures/demo.svg.

    python scripts/terminal_picture.py

The picture shows the whole lines of the sections in ``SECTIONS``; each appears after the one above
it, once, and at once for readers who asked for less motion.
"""

from __future__ import annotations

import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
SECTIONS = ("9 of 19", "  #  tokens", "2 cuts", "Kept ")
"""Beginnings of the first lines of the demo's sections that the picture has."""

LINE, TOP, LEFT, WIDTH = 17, 52, 18, 700
"""Pixels."""
DELAY = 0.12
"""Seconds between two lines."""
STYLE = """
rect.screen { fill: #15191c }
circle { fill: #4a5459 }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d5dadd;
  white-space: pre; animation: appear 1ms both }
text.typed { fill: #4db6ac }
text.refused { fill: #e5a36b }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
"""


def printed() -> str:
    """What the demo prints, 80 columns wide."""
    command = [sys.executable, "-m", "trimtab", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout


def shown(output: str) -> list[str]:
    """The lines of the picture: the sections in question, an empty line between two."""
    lines: list[str] = []
    for section in output.split("\n\n"):
        if section.startswith(SECTIONS):
            lines += ["", *section.split("\n")] if lines else section.split("\n")
    return lines


def drawn(lines: list[str]) -> str:
    """The picture of a terminal in which ``trimtab demo`` printed these lines."""
    height = TOP + LINE * (len(lines) + 1) + 10
    texts = []
    for number, line in enumerate(["$ trimtab demo", *lines]):
        kind = "typed" if not number else "refused" if "would be refused" in line else "plain"
        place = f'x="{LEFT}" y="{TOP + LINE * number}" class="{kind}"'
        style = f'style="animation-delay: {DELAY * number:.2f}s"'
        texts.append(f'<text {place} {style} xml:space="preserve">{escape(line)}</text>')
    dots = "".join(f'<circle cx="{LEFT + 6 + 18 * n}" cy="18" r="5"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        "<title>trimtab demo: 9 of 19 requests would have been refused; all were answered</title>\n"
        f"<style>{STYLE}</style>\n"
        f'<rect class="screen" width="{WIDTH}" height="{height}" rx="8"/>{dots}\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(shown(printed())), encoding="utf-8")
