"""What colours tell is seen by every eye: three to one, or a line between (WCAG 2.2, 1.4.11)."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas, contrast

WHITE = np.ones(3)
GREEN, ORANGE, PALE = map(cv.rgb, (cv.GREEN, cv.ORANGE, cv.PALE))


def edges(colors: list, size: float = 0.3) -> set:
    """The lines that stand on a grid of cells, as pairs of places counted in cells."""
    page = Canvas("t")
    page.cells(0, 0, np.array(colors), size, edges=True)
    ink = to_rgb(cv.INK)
    lines = [x for x in page.axes.collections if tuple(x.get_colors()[0][:3]) == ink]
    return {
        tuple(map(tuple, np.round(segment / size).astype(int).tolist()))
        for one in lines
        for segment in one.get_segments()
    }


def test_the_measure_is_that_of_wcag():
    assert contrast(WHITE, np.zeros(3)) == pytest.approx(21)
    assert contrast(np.full(3, 0x76 / 255), WHITE) == pytest.approx(4.54, abs=0.01)


def test_between_cells_that_some_eyes_confuse_stands_a_line():
    assert ((1, 0), (1, 1)) in edges([[GREEN, ORANGE]])
    assert edges([[GREEN, GREEN]]) == set(), "alike, and as dark as the page asks for"
    black = np.zeros(3)
    assert ((1, 0), (1, 1)) not in edges([[black, ORANGE]]), "seen without one"


def test_a_pale_cell_has_a_line_around_it_and_one_that_nothing_touched_has_none():
    assert len(edges([[PALE, PALE, PALE]])) == 0
    around = edges([[PALE, ORANGE, PALE]])
    assert {((1, 0), (1, 1)), ((2, 0), (2, 1)), ((1, 0), (2, 0)), ((1, 1), (2, 1))} == around


def test_the_edge_of_a_region_is_one_line_however_small_its_cells():
    assert len(edges([[ORANGE] * 40] * 40, size=0.01)) == 4 * 40 // 40


@pytest.mark.parametrize("warps", [1, 2, 8, 32])
def test_lines_of_a_warp_are_seen_on_the_page(warps):
    colors = [cv.warp_color(warp, warps) for warp in range(warps)]
    assert min(contrast(color, WHITE) for color in colors) >= 3
    assert all(np.abs(a - b).max() > 0.005 for a, b in pairwise(colors))


def test_a_pale_swatch_of_a_legend_has_a_line_around_it():
    page = Canvas("t")
    page.legend([(cv.YELLOW, "pale"), (cv.BLUE, "dark")])
    pale, dark = page.axes.patches
    assert pale.get_edgecolor()[:3] == to_rgb(cv.INK) and dark.get_edgecolor()[3] == 0
