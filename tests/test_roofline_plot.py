"""The roofline: its corner is a point of it, its points have names, its figures are stored."""

import ast

import pytest

from utils.ground.paths import workspace
from utils.notebooks import documents
from utils.timing import results, roofline, roofline_plot, rows
from utils.timing.roofline import Ceilings

LIMITS = Ceilings("X", bytes_per_second=4e12, flops_per_second=60e12)
KERNELS = {  # operations, bytes, milliseconds
    "slow": (10**9, 10**10, 5.0),
    "fused": (2 * 10**9, 10**9, 0.25),
    "fused_too": (2 * 10**9, 10**9, 0.251),
    "product": (10**12, 10**9, 50.0),
}


@pytest.fixture
def axes():
    (axes,) = roofline_plot.roofline(KERNELS, LIMITS, "Kernels on X").figure.axes
    return axes


def test_the_corner_is_a_point_of_the_roof(axes):
    roof = max(axes.lines, key=lambda line: len(line.get_xdata()))
    assert (15.0, 60e3) in zip(*roof.get_data(), strict=True)
    for x, y in zip(*roof.get_data(), strict=True):
        assert y == pytest.approx(min(4e12 * x, 60e12) / 1e9)


def test_every_point_has_its_name_and_those_that_share_a_place_stand_together(axes):
    texts = {text.get_text(): text.xy for text in axes.texts}
    assert set(texts) == {"memory", "arithmetic", "slow", "fused\nfused_too", "product"}
    assert texts["product"] == (1000.0, pytest.approx(20e3))


def test_the_words_have_every_kernel_with_both_figures():
    words = roofline_plot.roofline(KERNELS, LIMITS, "Kernels on X").description
    assert words.startswith("Kernels on X. Memory up to 15 operations a byte")
    assert "slow 0.1 and 200;" in words and "product 1000 and 20000." in words


def test_the_roofline_of_chapter_07_shows_what_is_stored():
    cells = documents.read(workspace().notebooks / "07_pointwise_fusion.ipynb").cells
    (cell,) = [cell for cell in cells if cell.source.endswith("}") and "gemm_tiled" in cell.source]
    (table,) = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Dict)]
    shown = {
        name.value: row.elts[-1].value for name, row in zip(table.keys, table.values, strict=True)
    }
    (stored,) = results.stored("NVIDIA H200")
    for id, entry in stored.entries.items():
        if (name := id.rpartition("/")[2]) in shown:
            assert shown.pop(name) == float(rows.digits(entry.ours().median_ms)), name
    assert not shown
    assert roofline.ceilings("NVIDIA H200").bytes_per_second
