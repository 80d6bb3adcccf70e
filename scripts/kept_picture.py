"""Draws what policies keep against what they cost: docs/pictures/kept.svg and kept-dark.svg.

    python scripts/kept_picture.py

Reads bench/results/windows.txt, which ``python scripts/benchmark.py --full windows`` writes.  Needs
matplotlib (``pip install matplotlib``).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "windows.txt"
PICTURES = ROOT / "docs" / "pictures"
WINDOWS = ("32k", "60k", "100k")
ROW = re.compile(
    r"^(?P<window>\d+k)\s+(?P<policy>\S+)(?: \d[\w.+]*)?\s+(?P<refused>[\d,]+) (?P<cost>\d\.\d+)\s+"
    r"\S+\s+(?P<again>[\d.]+) %\s+(?P<lines>[\d.]+) %",
    re.MULTILINE,
)
SHAPES = {
    "none": ("everything is sent", "s"),
    "trimtab": ("trimtab", "o"),
    "langchain-clear": ("LangChain clears results", "^"),
    "langchain-summarize": ("LangChain summarizes", "v"),
    "headroom": ("headroom", "D"),
}
"""Policy → its name in the legend, its marker."""
MEASURES = {"again": "of names used again, %", "lines": "of old lines, %"}
THEMES = {
    "kept.svg": ("white", "#222222", "#00796b"),
    "kept-dark.svg": ("#1e2129", "#dddddd", "#4db6ac"),
}


class Point(NamedTuple):
    """One policy at one window; ``kept``: percent, by measure."""

    window: str
    policy: str
    refused: int
    cost: float
    kept: dict[str, float]


def points(text: str) -> list[Point]:
    """The rows of the table that replay prints."""
    return [
        Point(row["window"], row["policy"], int(row["refused"].replace(",", "")),
              float(row["cost"]), {name: float(row[name]) for name in MEASURES})
        for row in ROW.finditer(text)
    ]  # fmt: skip


def draw(drawn: list[Point], file: Path, back: str, ink: str, ours: str) -> None:
    """One picture: a column a window, a row a measure; hollow where a request is refused."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({
        "svg.hashsalt": "trimtab", "svg.fonttype": "none", "font.size": 9, "text.color": ink,
        "axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink, "ytick.color": ink,
    })  # fmt: skip
    figure, rows = pyplot.subplots(2, len(WINDOWS), figsize=(9.5, 5.2), sharex=True, sharey="row")
    figure.set_facecolor(back)
    for (measure, label), axes in zip(MEASURES.items(), rows, strict=True):
        for window, axis in zip(WINDOWS, axes, strict=True):
            axis.set_facecolor(back)
            axis.spines[["top", "right"]].set_visible(False)
            for point in (one for one in drawn if one.window == window):
                color = ours if point.policy == "trimtab" else ink
                name, shape = SHAPES[point.policy]
                filled = color if not point.refused else "none"
                axis.scatter(
                    point.cost, point.kept[measure], s=70, marker=shape, facecolors=filled,
                    edgecolors=color, label=name,
                )  # fmt: skip
            if measure == "again":
                axis.set_title(f"window {window}", color=ink)
            else:
                axis.set_xlabel("cost of the prompts")
            axis.margins(0.12, 0.12)
            axis.grid(alpha=0.2)
        axes[0].set_ylabel(label)
    marks, names = rows[0][0].get_legend_handles_labels()
    figure.legend(
        marks, names, loc="lower center", ncols=len(names), frameon=False, labelcolor=ink,
        title="filled: no request is refused; hollow: some are",
    )  # fmt: skip
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(file, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> int:
    """Draw both; 1 where the results have no rows."""
    drawn = points(RESULTS.read_text("utf-8"))
    for name, colors in THEMES.items():
        draw(drawn, PICTURES / name, *colors)
    print(f"{len(drawn)} rows of {RESULTS.relative_to(ROOT)}")
    return int(not drawn)


if __name__ == "__main__":
    sys.exit(main())
