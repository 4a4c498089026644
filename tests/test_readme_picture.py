"""The README's picture shows the stored figures of the matrix products and no others."""

import pytest
from support.figures import STAMP

from utils.notebooks import readme, sync
from utils.timing import results
from utils.timing.rows import Entry, Results, Row

SIZES = {"M": 4096, "N": 4096, "K": 4096}


def entry(label: str, median: float, sizes=SIZES) -> Entry:
    rows = (Row(label, "ours", median, median, median), Row("cuBLAS", "library", 2.7, 2.7, 2.7))
    return Entry(sizes, bytes=201326592, flops=137438953472, rows=rows, **STAMP)


def store(**medians: float) -> None:
    topics = {"gemm_naive": "01_naive_gemm", "linear": "01_naive_gemm"}
    entries = {
        f"{topics.get(name, '02_shared_memory_tiling')}/{name}": entry(name, ms)
        for name, ms in medians.items()
    }
    results.write(results.path_of("NVIDIA X"), Results("NVIDIA X", entries))


@pytest.fixture(autouse=True)
def folder(no_figures, place):
    place(root=no_figures)
    return no_figures


def test_the_rungs_stand_in_the_order_of_the_chapters_and_the_library_last():
    store(gemm_tiled=15.5, gemm_naive=276.0)
    svg = readme.picture()
    words = "on NVIDIA X, 2026-11-20. gemm_naive 276 ms, gemm_tiled 15.5 ms, cuBLAS 2.7 ms"
    assert words in svg and svg == readme.picture()


def test_other_products_and_kernels_to_be_mended_are_no_rungs():
    store(gemm_naive=276.0, linear=275.0, gemm_tiled_race=15.5)
    svg = readme.picture()
    assert "gemm_naive" in svg and "linear" not in svg and "race" not in svg


def test_without_figures_there_is_no_picture():
    assert readme.picture() is None and readme.in_step("")


def test_new_figures_put_the_picture_out_of_step(folder):
    path, report = folder / "ladder.svg", sync.Synced()
    store(gemm_naive=276.0)
    sync._sync_picture(report, check=True)
    assert report.changed == ["ladder.svg"] and not path.exists()
    sync._sync_picture(report, check=False)
    drawn = path.read_text()
    sync._sync_picture(report, check=False)
    assert path.read_text() == drawn and len(report.changed) == 2
    store(gemm_naive=200.0)
    sync._sync_picture(report, check=False)
    assert "gemm_naive 200 ms" in path.read_text()
