"""The tables of stored figures say what was measured, on what, and beside what."""

import re
from dataclasses import replace

import pytest
from support.figures import FP32, STAMP

from utils import diagnose
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.precision import Precision
from utils.ground.paths import ROOT
from utils.notebooks import readme
from utils.timing import results
from utils.timing.rows import Entry, Results, Row

NAIVE, COALESCED = "01_naive_gemm/gemm_naive", "01_naive_gemm/gemm_coalesced"


def entry(median: float, **sizes: int) -> Entry:
    rows = (
        Row("ours", "ours", median, 0.9 * median, 1.1 * median, precision=FP32),
        Row("torch.compile", "compile", 3.0, 3.0, 3.0, precision=FP32),
        Row("cuBLAS", "library", 1.0, 1.0, 1.0, precision=FP32),
    )
    return Entry(sizes or {"M": 64, "N": 64, "K": 64}, 4_000_000, 8_000_000_000, rows, **STAMP)


@pytest.fixture
def store(tmp_path, place):
    place(results=tmp_path)

    def store(**entries: Entry) -> None:
        stored = Results("NVIDIA X", {key: value for key, value in entries.items()})
        results.write(results.path_of("NVIDIA X"), stored)

    return store


def rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if line.startswith("| ") and "`" in line]


def test_without_figures_the_tables_say_so(store):
    assert readme.readme_table() == "Nothing has been measured yet.\n"
    assert "Nothing has been measured yet." in readme.page()


def test_the_readmes_table_names_gpu_date_and_both_of_pytorchs_ways(store):
    store(**{NAIVE: entry(2.0), "99_gone/x": entry(2.0)})
    table = readme.readme_table()
    assert "Measured on an NVIDIA X, 2026-11-20, with torch 2.11.0" in table
    number = catalog.load(NAIVE).number
    beside = "fp32 | – | 2 | – | 0.50 × (1 ms) | 1.50 × (3 ms) |"
    assert rows(table) == [f"| {number} | `gemm_naive` | M=64 N=64 K=64 | {beside}"]


def test_the_readme_shows_the_last_rung_of_a_ladder_in_each_chapter(store):
    later, other = "02_shared_memory_tiling/gemm_tiled", "04_reductions/row_min"
    hidden = "01_naive_gemm/linear"  # its spec says that it is not listed
    worked, broken = "01_naive_gemm/gemm_serial", "02_shared_memory_tiling/gemm_tiled_race"
    names = (NAIVE, COALESCED, later, other, hidden, worked, broken)
    store(**{name: entry(2.0) for name in names})
    shown = [row.split("`")[1] for row in rows(readme.readme_table())]
    assert shown == ["gemm_coalesced", "gemm_tiled", "row_min"]
    listed = [row.split("`")[1] for row in rows(readme.page())]
    assert sorted(listed) == sorted(name.partition("/")[2] for name in names)


def test_a_listed_rung_keeps_its_row(store):
    """Both are of one ladder; bench shows the first above the second."""
    first, second = "00_start_here/swish", "00_start_here/swish_grid_stride"
    assert catalog.rungs(catalog.load(second))[0].id == first
    store(**{first: entry(2.0, n=64), second: entry(1.0, n=64, blocks=2)})
    assert [row.split("`")[1] for row in rows(readme.readme_table())] == ["swish", second[14:]]


def test_the_page_has_every_size_with_its_spread_and_rates(store):
    small = entry(4.0, M=8, N=8, K=8)
    store(**{NAIVE: entry(2.0), f"{NAIVE}, M=8 N=8 K=8": small})
    first, second = rows(readme.page())
    assert "| 1.8–2.2 | 2 | 4 | – | – | 2026-11-20 | `abc` |" in first
    assert "M=8 N=8 K=8 | fp32 | – | 4 |" in second


def test_a_peer_whose_times_lie_far_apart_gets_a_range_and_no_median(store):
    got = entry(2.0)
    ours, _, library = got.rows
    for p20, p80, beside in ((1.0, 8.0, "0.50–4.00 × (1–8 ms)"), (3.0, 4.0, "1.50 × (3 ms)")):
        compiled = Row("torch.compile", "compile", 3.0, p20, p80)
        store(**{NAIVE: replace(got, rows=(ours, compiled, library))})
        assert rows(readme.readme_table())[0].endswith(f"| 0.50 × (1 ms) | {beside} |")


def test_what_a_peer_does_beyond_the_kernel_stands_beside_its_time(store):
    got = entry(2.0)
    library = Row("PyTorch, forward and backward", "library", 1.0, 1.0, 1.0, precision=FP32)
    store(**{NAIVE: replace(got, rows=(*got.rows[:2], library))})
    both = "0.50 × (1 ms, forward and backward) | 1.50 × (3 ms, forward and backward) |"
    assert rows(readme.readme_table())[0].endswith(both)


def test_a_row_without_peers_has_dashes(store):
    alone = entry(2.0)
    store(**{NAIVE: Entry(alone.sizes, 1, 1, alone.rows[:1], **STAMP)})
    assert rows(readme.readme_table())[0].endswith("| 2 | – | – | – |")


def test_peers_of_another_precision_are_no_divisors(store):
    """11.4 once stood at 7.88 x: a kernel in TF32 beside torch.compile in fp32."""
    persistent, made = "11_hopper/linear_persistent", entry(2.0)
    tf32 = [replace(row, precision=Precision.TF32) for row in made.rows]
    eager = Row("PyTorch fp32", "eager", 8.0, 8.0, 8.0, precision=FP32)
    store(**{persistent: replace(made, rows=(tf32[0], eager, made.rows[1], tf32[2]))})
    assert rows(readme.readme_table())[0].endswith("TF32 | – | 2 | – | 0.50 × (1 ms) | – |")
    store(**{persistent: replace(made, rows=(tf32[0], eager, made.rows[1]))})
    assert rows(readme.readme_table())[0].endswith("TF32 | – | 2 | – | – | – |")


def test_both_ways_of_timing_and_what_the_card_did_meanwhile(store):
    loaded = {"sustained_ms": 2.5, "clock_mhz": 1234.0, "watts": 691.0, "error": 1.34e-6}
    made = entry(2.0)
    ours, compiled, library = made.rows
    library = replace(library, sustained_ms=1.5)
    store(**{NAIVE: replace(made, rows=(replace(ours, **loaded), compiled, library))})
    assert "fp32 | 1.3e-6 | 2 | 2.5 | 0.50 × (1 ms)" in rows(readme.readme_table())[0]
    assert "| 1234, 691 | 0.60 × (1.5 ms) | 2026" in rows(readme.page())[0]
    for text in (readme.readme_table(), readme.page()):
        assert "rested, of single calls" in text and "sustained, of the same call" in text


def test_the_readme_is_of_the_card_with_the_most_figures(store):
    store(**{NAIVE: entry(2.0), COALESCED: entry(1.0)})
    later = replace(entry(9.0), date="2026-12-24")
    results.write(results.path_of("NVIDIA Y"), Results("NVIDIA Y", {NAIVE: later}))
    assert "NVIDIA X" in readme.readme_table() and "NVIDIA Y" not in readme.readme_table()
    page = readme.page()
    assert "- [NVIDIA X](#nvidia-x)\n- [NVIDIA Y](#nvidia-y)" in page
    assert page.index("## NVIDIA X") < page.index("## NVIDIA Y")


def test_the_report_that_it_quotes_is_that_of_today(capsys):
    text = (ROOT / "README.md").read_text()
    quoted = re.search(r"barriers, `diagnose` says:\n\n```\n(.*?)```", text, re.DOTALL)[1]
    exercise = catalog.load("02_shared_memory_tiling/gemm_tiled_race")
    diagnose(compile_answer(exercise, catalog.starter_text(exercise), backend="emulator"))
    report = capsys.readouterr().out.splitlines()
    assert [line for line in quoted.splitlines() if line not in report] == []
