"""The plots of the replay's page: what a reader can tell from them.

Knows positions, no colours.
"""

from __future__ import annotations

from math import hypot

from trimtab_lab.replay.plots import FrontierPlot, LinePlot

COLOURS = dict.fromkeys(("none", "trimtab", "keep-last-n", "drop-oldest-safe"), "#000")


def lines(calls: int) -> LinePlot:
    sent = [1_000.0 * call for call in range(calls)]
    series = {"none": sent, "trimtab": sent, "drop-oldest-safe": sent}
    return LinePlot(series, limit=32_000, title="Tokens sent", colours=COLOURS)


def test_calls_are_counted_in_whole_numbers_on_the_axis():
    labels = [tick.label for tick in lines(2).x_ticks]
    assert labels == ["0", "1"]
    assert [tick.label for tick in lines(3).x_ticks] == ["0", "1", "2"]
    assert [tick.label for tick in lines(2_001).x_ticks] == ["0", "500", "1k", "1.5k", "2k"]


def test_our_line_is_drawn_over_those_that_it_coincides_with():
    plot = lines(5)
    assert [one.name for one in plot.series] == ["none", "trimtab", "drop-oldest-safe"]
    assert [one.name for one in plot.drawn] == ["none", "drop-oldest-safe", "trimtab"]


def test_no_dot_hides_the_number_of_another():
    for kept in (100.0, 71.0):
        figures = {
            "none": (1.0, kept), "trimtab": (1.0, kept), "keep-last-n": (1.01, kept),
            "drop-oldest-safe": (0.4, 70.0),
        }  # fmt: skip
        plot = FrontierPlot(figures, title="Cost", colours=COLOURS)
        points = plot.points
        dots = [(point.x, point.dot_y) for point in points]
        for number, one in enumerate(dots):
            assert all(hypot(one[0] - x, one[1] - y) >= 10 for x, y in dots[:number])
        assert points[0].dot_y == points[0].y  # the first keeps its place
        assert plot.moved
        assert all(14 <= y <= 250 - 36 for _, y in dots)  # within the axes
