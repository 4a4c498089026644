"""The views "threads", "matrix", "tiles" and "tree": who touches what, when, and how often."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support import traces
from support.gallery import scene, shown
from support.reading import beside, cells, legend, words
from support.traces import simulate

from utils.diagrams.draw import render
from utils.diagrams.parts.places import Place, lay_out
from utils.diagrams.parts.scene import shape_text
from utils.watch.trace import GLOBAL, SHARED, Array


def threads(kernel, block: int, n: int) -> str:
    """The caption of what the threads of one block own of n elements."""
    return render(scene(simulate(kernel, (1,), (block,), {"out": (n,)})), "threads").caption


def test_the_numbers_of_columns_stand_apart():
    figure = shown("threads of a wide matrix").figure
    texts = [t for t in figure.axes[0].texts if t.get_text().isdigit() and t.get_ha() == "center"]
    row = min(texts, key=lambda text: text.get_position()[1]).get_position()[1]
    boxes = [t.get_window_extent() for t in texts if t.get_position()[1] == row]
    assert len(boxes) > 8
    boxes.sort(key=lambda box: box.x0)
    gaps = [after.x0 - box.x1 for box, after in zip(boxes, boxes[1:], strict=False)]
    assert min(gaps) > 5  # pixels; some browsers' letters are wider


# --- captions: numbers counted by hand


@pytest.mark.parametrize(
    "name, said",
    [
        ("axpy", "300 of 512 threads write out; 212 write no element"),
        ("axpy", "Each of the 300 elements is written by exactly one thread"),
        ("passes", "A thread writes up to 3 elements, one after the other."),
        ("what a tree reads", "500 of 512 threads read x; 12 read no element"),
        ("wrong", "41 of the 440 elements are never written"),
        ("wrong", "19 of the 440 elements are written by more than one thread"),
        ("small matrix", "reads 4 times from A and 4 times from B; it writes 1 element"),
        ("small matrix", "reads the 20 elements of A 120 times, 6 times each"),
        ("small matrix", "reads the 24 elements of B 120 times, 5 times each"),
        ("small tiled matrix", "reads the 16 elements of A 48 times, 3 times each"),
        ("tree", "In phases 1 to 7 block 2 has 64, 32, 16, 8, 4, 2, 1 threads at work"),
        ("tree", "in 2, 1, 1, 1, 1, 1, 1 warps"),
        ("tree", "Together 8 issue slots, and no fewer would do"),
        ("interleaved tree", "16, 8, 4, 2, 1 threads at work, in 4, 4, 4, 4, 4, 2, 1 warps"),
        ("interleaved tree", "Together 23 issue slots; 8 would do for as many threads."),
        ("no tree", "Block 0 takes no element of s into another one."),
        ("tree's phases", "128 elements of x once each"),
        ("tree's phases", "It passes 8 barriers"),
        ("tiles", "1,024 elements of A once each and 1,024 elements of B once each"),
        ("tiles", "1,024 elements of As 32 times each"),
        ("tiles", "It passes 6 barriers"),
        ("many tiles", "23 of the phases are left out"),  # of 15 that load, 15 that use, a store
    ],
)
def test_the_caption_counts(name, said):
    assert said in shown(name).caption


def quads(t):
    for half in range(2):
        t.store(1 + half, "out", 8 * t.thread[0] + 4 * half, 4)


def sums_kept_in_global_memory(t):
    for _ in range(8):
        t.load(1, "out", t.thread[0])
        t.store(1, "out", t.thread[0])


@pytest.mark.parametrize(
    "kernel, block, n, said",
    [
        (quads, 4, 32, "A thread writes up to 8 elements, in 2 passes."),
        (lambda t: t.store(1, "out", 4 * t.thread[0], 4), 4, 16, "up to 4 elements, in 1 pass."),
        (sums_kept_in_global_memory, 4, 4, "An element is written 8.0 times on average; once, at"),
        (
            lambda t: None if t.thread[0] else t.load(1, "out", 0),
            4,
            40,
            "40 of the 40 elements are",
        ),
    ],
)
def test_who_owns_how_much_is_said(kernel, block, n, said):
    assert said in threads(kernel, block, n)


def test_elements_written_twice_or_never_are_counted_and_the_first_is_named():
    text = threads(lambda t: t.store(1, "out", 5 if t.thread[0] == 3 else t.thread[0]), 9, 10)
    assert "2 of the 10 elements are never written" in text  # 3 and 9
    assert "1 of the 10 elements is written by more than one thread, the first of them out[5]" in (
        text
    )


# --- threads: what is painted


def test_the_legend_counts_the_threads_of_each_block():
    assert [*legend(shown("axpy"))] == [
        "block 0: 256 of 256 threads write",
        "block 1: 44 of 256 threads write",
    ]


def test_a_cell_carries_its_threads_number_in_its_block():
    said = Counter(words(shown("axpy")))
    assert (
        said["43"] == 2 and said["255"] == 2 and "256" not in said
    )  # 44 … 255 are idle in block 1
    assert "212 threads write no element" in said and "out[32]" in said


def test_passes_of_a_loop_are_numbered():
    said = set(words(shown("passes")))
    assert {"block 0, pass 1", "block 1, pass 2", "block 0, pass 3"} <= said


def test_elements_written_never_are_crossed_and_twice_are_struck_through():
    """A cross is two lines, a stroke one; each stands in a cell."""
    lines = [c.get_segments() for c in shown("wrong").figure.axes[0].collections]
    slanted = [s for s in lines if len(s) < 3 and all((a != b).all() for a, b in s)]
    assert Counter(map(len, slanted)) == Counter({2: 41, 1: 19})
    said = words(shown("wrong"))
    assert {"never written (crossed out)", "by several threads (struck through)"} <= set(said)
    assert not any("crossed out" in word for word in words(shown("right")))


# --- matrix: what is painted


def test_how_often_the_grid_reads_each_element_is_said_and_painted():
    said = words(shown("small matrix"))
    assert {"5 × 4: 6×", "4 × 6: 5×", "5 × 6", "1 read", "6 reads"} <= set(said)
    heat = shown("small matrix").figure.axes[0].get_images()[3:6]
    (a, b, c) = ({tuple(color) for color in g.get_array().reshape(-1, 3)} for g in heat)
    assert len(a) == len(b) == len(c) == 1 and len(a | b | c) == 3  # 6 reads, 5, none


def test_the_thread_that_is_followed_can_be_chosen():
    trace = traces.gemm(5, 6, 4, tile=4)
    picture = render(scene(trace, ("C",), thread=(5, 2)), "matrix")
    assert "One thread, threadIdx (1, 2) of block (1, 0)" in words(picture)
    writes = legend(picture)["writes"]
    red = np.isclose(picture.figure.axes[0].get_images()[2].get_array(), writes).all(axis=2)
    assert np.argwhere(red).tolist() == [[2, 5]]
    outside = render(scene(trace, ("C",), thread=(7, 7)), "matrix").caption
    assert "This thread reads nothing; it writes 0 elements" in outside


def test_where_matrices_go():
    """A to the left of C and B above it; W of x · Wᵀ above x; a bias above; outputs in a column."""

    def places(result, /, **shapes):
        all = [
            Place(i, Array(name, GLOBAL, shape, 4, 0), np.zeros(shape, int))
            for i, (name, shape) in enumerate(shapes.items())
        ]
        lay_out(all, next(p for p in all if p.array.name == result))
        return {p.array.name: p for p in all}

    p = places("C", A=(40, 8), B=(8, 36), C=(40, 36))
    assert p["A"].y == p["C"].y and p["A"].x < p["C"].x
    assert p["B"].x == p["C"].x and p["B"].y < p["C"].y
    p = places("out", x=(40, 8), W=(36, 8), b=(36,), out=(40, 36))
    assert p["W"].x == p["x"].x and p["W"].y < p["x"].y
    assert p["b"].x == p["out"].x and p["b"].y < p["out"].y
    p = places("low", x=(6, 70), low=(6,), where=(6,))
    assert p["low"].upright and p["low"].x == p["where"].x and p["low"].y < p["where"].y
    assert p["x"].y == p["low"].y and p["x"].x < p["low"].x


# --- tiles: what is painted


def test_a_tile_is_said_to_be_of_one_block_and_its_phases_have_names():
    assert "what block (1, 0) touches" in shown("tiles").title
    said = set(words(shown("tiles")))
    assert {"phase 0", "phase 6", "32 × 32", "global → shared", "reads shared"} <= said
    other = render(scene(traces.gemm_tiled(5, 7, 8, T=4), ("C",), block=(0, 1)), "tiles")
    assert "what block (0, 1) touches" in other.title


def test_what_phases_do_is_said_in_full_and_in_a_column_of_each():
    """Of eight phases side by side."""

    def kernel(t):
        i = t.thread[0]
        for line in range(1, 5):
            t.load(line, "x", i)
            t.store(line, "all_share", i)
            yield
            t.load(line, "all_share", i ^ 1)
            t.store(line, "all_share", i)
            yield

    tensors, shared = {"x": (8, 16)}, [("all_share", 128)]
    picture = render(scene(simulate(kernel, (1,), (128,), tensors, shared)), "tiles")
    said = [text for text in picture.figure.axes[0].texts if "shared" in text.get_text()]
    assert {"global →", "reads, writes"} <= set(words(picture))
    assert not any("…" in word for word in words(picture))
    boxes = sorted((t.get_window_extent() for t in said), key=lambda box: (box.y0, box.x0))
    assert len(boxes) >= 8
    for box, after in itertools.pairwise(boxes):
        assert box.y0 != after.y0 or box.x1 < after.x0


def test_an_array_that_a_kernel_divides_up_is_of_bytes():
    assert shape_text(Array("memory", SHARED, (512,), 1, 0)) == "512 bytes"
    assert shape_text(Array("As", SHARED, (4, 8), 4, 0)) == "4 × 8"
    trace = simulate(touch_all, (1,), (32,), {"out": (2, 16)}, [("memory", 32)])
    arrays = [replace(a, element=1) if a.space == SHARED else a for a in trace.arrays]
    picture = render(scene(replace(trace, arrays=tuple(arrays))), "tiles")
    assert "32 bytes of memory once each" in picture.caption
    assert "32 bytes" in words(picture)


def touch_all(t):
    t.store(1, "memory", t.thread[0])
    yield
    t.load(2, "memory", t.thread[0])
    t.store(2, "out", t.thread[0])


def test_each_phase_shows_what_it_reads_and_writes_and_what_came_before():
    """Of 8 × 8 times 8 × 8 in tiles of 4: load, use, load, use, write; A, B, As, Bs, C below."""
    picture = render(scene(traces.gemm_tiled(8, 8, 8, T=4), ("C",)), "tiles")
    counts = [Counter(c for row in cells(picture, i) for c in row) for i in range(25)]
    names = ["A", "B", "C", "As", "Bs"]
    phases = {
        name: [{k: v for k, v in counts[5 * n + phase].items() if k} for phase in range(5)]
        for n, name in enumerate(names)
    }
    now, before, shared, written = (
        "read from global memory",
        "read in an earlier phase",
        "read from shared memory",
        "written",
    )
    assert [phase.get(now, 0) for phase in phases["A"]] == [16, 0, 16, 0, 0]
    assert [phase.get(before, 0) for phase in phases["B"]] == [0, 16, 16, 32, 32]
    assert [phase.get(written, 0) for phase in phases["As"]] == [16, 0, 16, 0, 0]
    assert [phase.get(shared, 0) for phase in phases["Bs"]] == [0, 16, 0, 16, 0]
    assert phases["C"] == [{}, {}, {}, {}, {written: 16}]


def test_what_a_tile_is_filled_with_beyond_the_edge_has_a_colour_of_its_own():
    picture = shown("tiles")  # K is 80: of the third tile, 32 wide, 16 columns lie beyond
    filled = "written without a read"
    painted = [Counter(c for row in cells(picture, i) for c in row)[filled] for i in range(35)]
    assert {i: n for i, n in enumerate(painted) if n} == {25: 512, 32: 512}  # phase 4, As and Bs
    assert "it writes 512 elements of As and 512 elements of Bs" in picture.caption


def test_an_array_of_few_elements_is_drawn_large_enough_to_be_seen():
    def kernel(t):
        t.load(1, "x", t.thread[0])
        t.store(2, "s", t.thread[0] // 32)
        yield
        t.store(3, "out", t.thread[0])

    tensors = {"x": (2, 256), "out": (2, 256)}
    picture = render(scene(simulate(kernel, (1,), (128,), tensors, [("s", 4)])), "tiles")
    for image in picture.figure.axes[0].get_images():
        left, right, bottom, top = image.get_extent()
        assert right - left > 0.3 and bottom - top >= 0.1 - 1e-9


# --- tree: what is painted


@pytest.mark.parametrize(
    "name, rows",
    [
        ("tree of eight", ["wwwwwwww", "wwwwrrrr", "wwrr....", "wr......", "r......."]),
        ("interleaved tree of eight", ["wwwwwwww", "wrwrwrwr", "w.r.w.r.", "w...r...", "r......."]),
    ],
)
def test_a_row_of_a_tree_shows_what_is_written_and_what_is_read(name, rows):
    short = {"written by warp 0": "w", "read": "r", "": "."}
    images = len(shown(name).figure.axes[0].get_images())
    assert [
        "".join(short[cell] for cell in cells(shown(name), i)[0]) for i in range(images)
    ] == rows


def test_where_nothing_is_taken_into_another_element_threads_are_counted():
    assert "64 threads read" in words(shown("no tree")) and beside(shown("no tree"), "phase 1")


def two_arrays():
    def kernel(t):
        t.store(1, "a", t.thread[0])
        t.store(2, "b", t.thread[0])
        yield
        if t.thread[0] == 0:
            t.load(3, "a", 1)
            t.store(3, "a", 0)

    return simulate(kernel, (1,), (2,), {"out": (1,)}, [("a", 2), ("b", 2)])


def test_the_shared_array_of_a_tree_can_be_chosen():
    assert "does with a, phase" in render(scene(two_arrays())).title
    assert "does with b, phase" in render(scene(two_arrays(), array="b"), "tree").title


# --- a wrong kernel gives another picture than the right one


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("naive", "coalesced"),
        ("unpadded", "padded"),
        ("wrong", "right"),
        ("interleaved tree", "tree"),
        ("small matrix", "small tiled matrix"),
        ("hazard, shared", "hazard, lanes"),
    ],
)
def test_a_wrong_kernels_picture_differs_in_words_and_in_paint(wrong, right):
    one, other = shown(wrong), shown(right)
    assert one.caption != other.caption
    grids = [[g.get_array() for g in p.figure.axes[0].get_images()] for p in (one, other)]
    same = len(grids[0]) == len(grids[1]) and all(map(np.array_equal, *grids))
    boxes = [Counter(b.get_facecolor() for b in p.figure.axes[0].patches) for p in (one, other)]
    assert not same or boxes[0] != boxes[1]
