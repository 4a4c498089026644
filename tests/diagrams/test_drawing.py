"""`draw` and `diagnose`: which run is drawn, and kernels as the emulator runs them."""

import functools
from dataclasses import replace

import pytest
import torch
from support import toys, traces
from support.fakes import FakeKernel
from support.gallery import passes_on, scene, shown, source_of
from support.reading import words

from utils import trace as trace_values
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.cuda.compiler import compile_cuda
from utils.diagrams import explain
from utils.diagrams.draw import draw, render
from utils.ground.errors import ArgumentTypeError, LaunchError, WorkbookError


def stub(exercise=toys.MISH, **more) -> FakeKernel:
    """A kernel whose accesses are not its own; see `traced`."""

    def mish(x, out, n): ...

    return FakeKernel(mish, exercise, source="a\nb", first_line=2, **more)


@pytest.fixture
def traced(monkeypatch):
    """What `draw` passes to `trace`, which answers with an axpy of that size."""
    calls = []

    def trace(kernel, arguments):
        calls.append(arguments)
        return traces.axpy(arguments["n"])

    monkeypatch.setattr("utils.diagrams.draw.trace", trace)
    return calls


# --- what is drawn


@pytest.mark.parametrize(
    "trace, outputs, title",
    [
        (lambda: traces.tree(500), ("out",), "does with part, phase by phase"),
        (passes_on, ("out",), "touches, phase by phase"),
        (lambda: traces.gemm_tiled(5, 7, 8, T=4), ("C",), "touches, phase by phase"),
        (lambda: traces.gemm(5, 6, 4), ("C",), "who reads what"),
        (lambda: traces.axpy(40), ("out",), "which thread writes"),
    ],
)
def test_the_view_suits_the_kernel(trace, outputs, title):
    assert title in render(scene(trace(), outputs)).title


def test_of_several_launches_the_one_that_writes_the_output_is_drawn():
    caption = render(scene(traces.two_launches()), "threads").caption
    assert "32 of 32 threads write out" in caption


def test_the_kernel_runs_at_a_small_size(traced):
    exercise = toys.drawn_at(toys.MISH, n=300)
    assert "300 of 512 threads" in draw(stub(exercise)).caption
    assert "31 of 256 threads" in draw(stub(exercise), n=31).caption
    assert [set(call) for call in traced] == [{"x", "out", "n"}] * 2
    assert traced[0]["x"].shape == (300,) and traced[0]["out"].isnan().all()
    draw(stub(exercise))
    assert torch.equal(traced[0]["x"], traced[2]["x"])  # the same picture every time


def test_without_a_size_of_its_own_the_last_is_taken(traced):
    draw(stub())
    assert traced[0]["n"] == 1000


def test_an_untouched_starter_is_not_run(traced, capsys):
    assert draw(stub(replace(toys.MISH, effort="about 4 lines"), untouched=True)) is None
    assert capsys.readouterr().out == (
        "mish: not attempted yet; write your part (about 4 lines), then draw it again\n"
    )
    assert traced == []


@pytest.mark.parametrize(
    "kernel, options, message",
    [
        (stub(None), {}, "belongs to no exercise"),
        (stub(), {"view": "sector"}, "no view 'sector'; there are threads, sectors"),
        (stub(), {"m": 3}, "has no size 'm'; its sizes are n"),
        (stub(), {"n": 0}, "n is 0, but a size is a whole number from 1"),
        (stub(), {"n": 1.5}, "n is 1.5, but"),
        (stub(), {"n": 9000}, "too much for a picture.*at a smaller size, such as n=4500"),
        (stub(toys.drawn_at(toys.MISH, n=300)), {"n": 9000}, "smaller size, such as n=300"),
    ],
)
def test_what_cannot_be_drawn_is_said(traced, kernel, options, message):
    with pytest.raises(WorkbookError, match=message):
        draw(kernel, **options)


def test_a_run_that_fails_fails_as_itself(monkeypatch):
    def trace(kernel, arguments):
        raise LaunchError("cudaErrorInvalidValue", "mish: no such grid")

    monkeypatch.setattr("utils.diagrams.draw.trace", trace)
    with pytest.raises(LaunchError, match="cudaErrorInvalidValue: mish: no such grid"):
        draw(stub())


# --- kernels of the workbook, as the emulator runs them


@functools.cache
def compiled(id, text=None):
    exercise = catalog.load(id)
    text = text or catalog.solution_text(exercise)
    return compile_answer(exercise, text, backend="emulator", first_line=1)


def starter(id):
    return compiled(id, catalog.starter_text(catalog.load(id)))


@pytest.mark.parametrize(
    "id, view, said",
    [
        ("00_start_here/axpy", None, "300 of 512 threads write out; 212 write no element"),
        ("00_start_here/swish_grid_stride", "threads", "A thread writes up to 3 elements"),
        ("01_naive_gemm/gemm_naive", "sectors", "Line 9, load of A: one request of warp 0"),
        ("01_naive_gemm/gemm_naive", "sectors", "touches 32 sectors; 4 would do"),
        ("01_naive_gemm/gemm_coalesced", "sectors", "No request here touches more sectors"),
        ("01_naive_gemm/gemm_coalesced", None, "320 elements of A 11,520 times, 36 times each"),
        ("01_naive_gemm/linear", "sectors", "load of W: one request of warp 0"),
        ("02_shared_memory_tiling/gemm_tiled", None, "1,024 elements of Bs 32 times each"),
        ("02_shared_memory_tiling/linear_tiled", "banks", "No request here has a bank conflict"),
    ],
)
def test_the_workbook_s_own_kernels(id, view, said):
    assert said in drawn(id, view).caption


@functools.cache
def drawn(id, view):
    return draw(compiled(id), view)


def test_a_tile_without_padding():
    text = source_of("02_shared_memory_tiling/linear_tiled").replace("[BK + 1]", "[BK]")
    picture = draw(compiled("02_shared_memory_tiling/linear_tiled", text), "banks", line=20)
    assert "Line 20, load of Ws: 32-way conflict" in picture.caption
    assert "Ws, 32 × 32" in words(picture)


def test_a_simulated_kernel_is_traced_like_the_real_one():
    """What the other tests of pictures rest on."""
    real = drawn("01_naive_gemm/gemm_naive", "sectors")
    assert real.caption == shown("ragged naive").caption


def test_a_launch_that_is_refused():
    text = source_of("00_start_here/axpy").replace("threads = 256", "threads = 2048")
    with pytest.raises(LaunchError, match="cudaErrorInvalidValue"):
        draw(compiled("00_start_here/axpy", text))


# --- their hazards


@pytest.mark.parametrize(
    "name, said",
    [
        ("shared", "64 of the 64 elements of s"),
        ("sum", "Each of the two reads out[0], changes the value and writes it back"),
        ("neighbours", "1 of the 65 elements of in is touched by two threads in two blocks"),
        ("tree", "127 of the 256 elements of s"),
        ("wide", "8 of the 64 elements of out"),
        ("dynamic", "64 of the 64 elements of part"),
        ("device variable", "Each of the two reads counter[0]"),
        ("no guard", "14 threads of the grid reach out of bounds at this line, in block 1"),
        ("before", "1 element before the first. 1 thread of the grid reaches out of bounds"),
        ("far", "999,969 elements after the last. 32 threads of the grid reach out of bounds"),
        ("over the end", "begins at out[4] and reaches beyond the end"),
        ("shared row", "Element 64 would be row 8, column 0"),
        ("dynamic too small", "32 threads of the grid reach out of bounds"),
        ("sum not set", "An atomic update builds on the value that is there"),
        ("half a tile", "40 of the 64 elements of s are written, and this one is not"),
        ("written later", "It is written later, at line 5"),
        ("in a branch", "40 wait at line 4 and 24 wait at line 7"),
        ("and left", "60 wait at line 5 and 30 wait at line 7; 10 have left the kernel"),
        ("deadlock", "16 wait at line 5 and 48 wait at line 6. The warp function at line 5"),
    ],
)
def test_what_went_wrong_in_a_real_kernel_is_said(name, said):
    assert said in shown(f"hazard, {name}").caption


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("laplace", "Element 210 would be row 3, column 0"),
        ("row_norm", "8 of the 32 elements of partial are written, and this one is not"),
        ("row_share", "255 of the 256 elements of sums are touched by two threads"),
        ("center_rows", "128 wait at line 16 and 128 wait at line 20"),
        ("row_max", "16 make the call at line 13. Its mask names lane 16 as well"),
    ],
)
def test_the_faults_of_the_debugging_chapter(name, said):
    picture = draw(starter(f"05_debugging/{name}"), "hazards")
    assert said in picture.caption and picture.title.startswith(f"{name}: ")


def test_diagnose_shows_the_first_hazard_and_what_lines_cost(capsys, monkeypatch):
    kernel, displayed = starter("02_shared_memory_tiling/gemm_tiled_race"), []
    monkeypatch.setattr(explain, "display", displayed.append)
    explain.diagnose(kernel)
    assert "race between two threads" in capsys.readouterr().out
    first, table = displayed
    assert first.title == "gemm_tiled_race: two threads race for As[0][1]"
    assert "1,024 of the 1,024 elements of As" in first.caption
    assert "Hazard 1 of 2. " in " ".join(words(first))
    assert "what each line asks of memory" in table.caption
    second = draw(kernel, "hazards", hazard=2)
    assert "race for Bs[1][0]" in second.title and "Hazard 2 of 2." in " ".join(words(second))
    with pytest.raises(WorkbookError, match="there is no hazard 3: gemm_tiled_race has 2 hazards"):
        explain.diagnose(kernel, hazard=3)


OWN = """
__global__ void tail_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2.0f * x[i];
}
void tail(const float* x, float* out, int n) { tail_kernel<<<1, 32>>>(x, out, n); }
"""


def test_a_kernel_of_no_exercise_is_watched_with_arguments_of_ones_own(capsys, monkeypatch):
    kernel, displayed = compile_cuda(OWN, "tail", backend="emulator", first_line=2), []
    monkeypatch.setattr(explain, "display", displayed.append)
    x, out = torch.arange(8.0), torch.zeros(8)
    explain.diagnose(kernel, x, out, 8)
    said = capsys.readouterr().out
    assert said.startswith("tail with n=8\ntail.cu:5: access outside of an array")
    assert "thread (8, 0, 0): reads x[8]; x has 8 elements" in said and not out.any(), "on copies"
    assert displayed[0].title == "tail: thread 8 of block 0 reads outside of x"
    table = trace_values(kernel, x, out, n=8, thread=3)
    assert table.rows[-1][2] == "x[3] = 3, out[3] = 6"
    with pytest.raises(WorkbookError, match="small tensors of your own, as diagnose"):
        explain.diagnose(kernel)
    with pytest.raises(ArgumentTypeError, match="tail is missing n; it takes x, out, n"):
        explain.diagnose(kernel, x, out)


def test_a_kernel_without_hazards_has_no_picture_of_them():
    with pytest.raises(WorkbookError, match="axpy has no hazards at n = .*: nothing to draw"):
        draw(compiled("00_start_here/axpy"), "hazards")
