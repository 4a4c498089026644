"""Pictures of kernels written in Python, whose traffic is known, and of the workbook's own."""

import base64
import functools
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
import toys
import traces
from fakes import FakeKernel
from faulty import FAULTY, faulty_scene
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from traces import simulate

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.diagrams.draw import draw, render
from utils.diagrams.parts.canvas import PALE, SMALL, fit, rgb, text_width
from utils.diagrams.parts.places import Place, lay_out
from utils.diagrams.parts.scene import Scene, coordinate_text, element, instructions, listing
from utils.diagrams.views.tree import READ
from utils.errors import LaunchError, WorkbookError
from utils.watch.trace import GLOBAL, SHARED, Array, Launch, Trace


def source_of(id):
    return catalog.solution_text(catalog.load(id))


def scene(trace, outputs=("out",), source="", **more):
    sizes = {"n": 5} if "sizes" not in more else more.pop("sizes")
    return Scene("kernel", trace, source, 1, outputs, sizes, "n=300", **more)


NAIVE = source_of("01_naive_gemm/gemm_naive")
COALESCED = source_of("01_naive_gemm/gemm_coalesced")
TILED = source_of("02_shared_memory_tiling/gemm_tiled")
PADDED = source_of("02_shared_memory_tiling/linear_tiled")
UNPADDED = PADDED.replace("[BK + 1]", "[BK]")


def caption(view, *args, **more):
    return render(scene(*args, **more), view).caption


# --- captions: numbers counted by hand


def test_sectors_of_a_naive_product():
    text = caption("sectors", traces.gemm(32, 32, 8, "row"), ("C",), NAIVE)
    assert "Line 9, load of A: one request of warp 0 of block 0 touches 32 sectors" in text
    assert "4 would do" in text and "moves 1024 bytes for 128 that are wanted" in text


def test_sectors_of_a_coalesced_product():
    text = caption("sectors", traces.gemm(32, 32, 8, "col"), ("C",), COALESCED)
    assert text == "No request here touches more sectors than it must."
    # Of 40 rows of 36 columns, the warps of the second block are 4 lanes wide: one sector of B.
    text = caption("sectors", traces.gemm(40, 36, 8, "col"), ("C",), COALESCED)
    assert "2.8 for the store of C (80 requests)" in text


def test_the_caption_is_about_the_most_wasteful_request():
    def kernel(t):
        t.load(1, "x", 4 * t.thread[0], 4)  # 16 sectors, all of them wanted
        t.load(2, "x", 2 * t.thread[0])  # 8 sectors, half of each wanted

    text = caption("sectors", simulate(kernel, (1,), (32,), {"x": (128,)}))
    assert "Line 2, load of x: one request of warp 0 of block 0 touches 8 sectors" in text


def test_sectors_say_which_line_they_are_of():
    picture = render(scene(traces.gemm(32, 32, 8, "row"), ("C",), NAIVE), "sectors")
    words = texts(picture)
    assert "sum += A[row * K + k] * B[k * N + col];" in words
    assert "load of A: 32 sectors per request, ideal 4" in words
    assert "load of B: 1 sector per request, ideal 1" in words
    assert "neighbouring lanes are 32 bytes apart" in words
    assert "all 32 lanes want the same element" in words
    only = render(scene(traces.gemm(32, 32, 8, "row"), ("C",), NAIVE, line=11), "sectors")
    assert "load of A: 32 sectors per request, ideal 4" not in texts(only)


def test_sectors_of_a_cell_count_lines_as_the_cell_does():
    late = replace(scene(traces.axpy(40), source="//\n//\n//\n//\nout[i] = ..."), first_line=2)
    assert "out[i] = ..." in texts(render(late, "sectors"))


def test_bank_conflicts_with_and_without_padding():
    text = caption("banks", traces.linear_tiled(32, 32, 32), source=UNPADDED)
    assert "Line 20, load of Ws: 32-way conflict" in text
    assert "wants 32 different words of bank 0 and takes 32 turns; 1 would do" in text
    text = caption("banks", traces.linear_tiled(32, 32, 32, pad=1), source=PADDED)
    assert text == "No request here has a bank conflict."


def test_bank_conflicts_are_shown_at_their_worst():
    def kernel(t):  # strides 1, 2, 4, 8: the last is worst
        for step in range(4):
            t.load(1, "s", t.thread[0] << step)

    text = caption("banks", simulate(kernel, (1,), (32,), {"out": (1,)}, [("s", 256)]))
    assert "8-way conflict" in text and "takes 8 turns; 1 would do" in text


def test_wide_accesses_are_no_conflict():
    def kernel(t):
        t.load(1, "s", 4 * t.thread[0], 4)

    picture = render(scene(simulate(kernel, (1,), (32,), {"out": (1,)}, [("s", 128)])), "banks")
    assert picture.caption == "No request here has a bank conflict."
    assert "load of s: no conflict, 4 turns per request, ideal 4" in texts(picture)


def test_who_reads_what():
    text = caption("matrix", traces.gemm(5, 6, 4), ("C",))
    assert "This thread reads 4 times from A and 4 times from B; it writes 1 element of C" in text
    assert "reads the 20 elements of A 120 times, 6 times each" in text
    assert "reads the 24 elements of B 120 times, 5 times each" in text
    tiled = caption("matrix", traces.gemm_tiled(4, 6, 4, T=2), ("C",))
    assert "reads the 16 elements of A 48 times, 3 times each" in tiled


def test_which_thread_is_followed():
    trace = traces.gemm(5, 6, 4, tile=4)
    words = texts(render(scene(trace, ("C",), thread=(5, 2)), "matrix"))
    assert "One thread, threadIdx (1, 2) of block (1, 0)" in words
    text = caption("matrix", trace, ("C",), thread=(7, 7))  # outside of C
    assert "This thread reads nothing; it writes 0 elements" in text


def test_owners():
    text = caption("threads", traces.axpy(300))
    assert "300 of 512 threads write out; 212 write no element" in text
    assert "Each of the 300 elements is written by exactly one thread" in text
    assert "212 threads write no element" in texts(render(scene(traces.axpy(300)), "threads"))


def test_four_elements_at_once_are_one_turn():
    def quads(t):
        for half in range(2):
            t.store(1 + half, "out", 8 * t.thread[0] + 4 * half, 4)

    text = caption("threads", simulate(quads, (1,), (4,), {"out": (32,)}))
    assert "A thread writes up to 8 elements, in 2 turns." in text

    def quad(t):
        t.store(1, "out", 4 * t.thread[0], 4)

    text = caption("threads", simulate(quad, (1,), (4,), {"out": (16,)}))
    assert "A thread writes up to 4 elements, in 1 turn." in text


def test_owners_in_a_grid_stride_loop():
    picture = render(scene(traces.grid_stride(1100, 2)), "threads")
    assert "A thread writes up to 3 elements, one after the other." in picture.caption
    assert {"block 0, pass 1", "block 1, pass 2", "block 0, pass 3"} <= set(texts(picture))


def test_elements_written_twice_or_never():
    def kernel(t):
        i = t.thread[0]
        t.store(1, "out", 5 if i == 3 else i)

    text = caption("threads", simulate(kernel, (1,), (9,), {"out": (10,)}))
    assert "2 of the 10 elements are never written" in text  # 3 and 9
    assert (
        "1 of the 10 elements is written by more than one thread, the first of them out[5]" in text
    )


def test_sums_kept_in_global_memory_are_noticed():
    def kernel(t):
        for _ in range(8):
            t.load(1, "out", t.thread[0])
            t.store(1, "out", t.thread[0])

    text = caption("threads", simulate(kernel, (1,), (4,), {"out": (4,)}))
    assert "An element is written 8.0 times on average; once, at the end, would do" in text


def test_a_reduction_shows_who_reads():
    assert "500 of 512 threads read x; 12 read no element" in caption("threads", traces.tree(500))


def test_a_tree_says_who_is_at_work():
    text = caption("tree", traces.tree(500))
    assert "In phases 1 to 7 block 2 has 64, 32, 16, 8, 4, 2, 1 threads at work" in text
    assert "in 2, 1, 1, 1, 1, 1, 1 warps" in text
    assert "Together 8 turns of a warp, and no fewer would do" in text
    text = caption("tree", traces.interleaved(500))
    assert "64, 32, 16, 8, 4, 2, 1 threads at work, in 4, 4, 4, 4, 4, 2, 1 warps" in text
    assert "Together 23 turns of a warp; 8 would do for as many threads." in text


def test_the_rows_of_a_tree_show_what_is_written_and_what_is_read():
    rows = {}
    for name, trace in (("halves", traces.tree(8, 8)), ("neighbours", traces.interleaved(8, 8))):
        images = render(scene(trace), "tree").figure.axes[0].images
        rows[name] = [
            "".join("." if np.allclose(c, rgb(PALE)) else "r" if np.allclose(c, READ) else "w")
            for image in images
            for c in [*image.get_array()[0]]
        ]
        rows[name] = ["".join(rows[name][i : i + 8]) for i in range(0, len(rows[name]), 8)]
    assert rows["halves"] == ["wwwwwwww", "wwwwrrrr", "wwrr....", "wr......", "r......."]
    assert rows["neighbours"] == ["wwwwwwww", "wrwrwrwr", "w.r.w.r.", "w...r...", "r......."]


def _passes_on(t):
    t.store(1, "s", t.thread[0])
    yield
    t.load(2, "s", 63 - t.thread[0])
    t.store(2, "out", t.thread[0])


def test_an_array_that_only_passes_values_on_is_no_tree():
    trace = simulate(_passes_on, (1,), (64,), {"out": (64,)}, [("s", 64)])
    picture = render(scene(trace), "tree")
    assert picture.caption == "Block 0 takes no element of s into another one."
    assert "64 threads read" in texts(picture)


def test_the_shared_array_of_a_tree_can_be_chosen():
    def kernel(t):
        t.store(1, "a", t.thread[0])
        t.store(2, "b", t.thread[0])
        yield
        if t.thread[0] == 0:
            t.load(3, "a", 1)
            t.store(3, "a", 0)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("a", 2), ("b", 2)])
    assert "does with a, phase" in render(scene(trace)).title
    assert "does with b, phase" in render(scene(trace, array="b"), "tree").title


def test_tiles_walk_along_k():
    trace = traces.gemm_tiled(40, 70, 80)
    picture = render(scene(trace, ("C",), TILED), "tiles")
    assert "what block (1, 0) touches" in picture.title
    assert "1,024 elements of A once each and 1,024 elements of B once each" in picture.caption
    assert "1,024 elements of As 32 times each" in picture.caption
    assert "It passes 6 barriers" in picture.caption
    words = texts(picture)
    assert {"phase 0", "phase 6", "32 × 32", "global → shared", "reads shared"} <= set(words)
    assert "what block (0, 1)" in render(scene(trace, ("C",), block=(0, 1)), "tiles").title


def test_tiles_of_a_tree():
    text = caption("tiles", traces.tree(500))
    assert "128 elements of x once each" in text and "It passes 8 barriers" in text


# --- form

PICTURES = {
    "axpy threads": lambda: (scene(traces.axpy(300)), "threads"),
    "one element": lambda: (scene(traces.axpy(1)), "threads"),
    "one element's sectors": lambda: (scene(traces.axpy(1)), "sectors"),
    "one element's product": lambda: (scene(traces.gemm(1, 1, 1), ("C",)), "matrix"),
    "one element's tiles": lambda: (scene(traces.gemm_tiled(1, 1, 1), ("C",), TILED), "tiles"),
    "passes": lambda: (scene(traces.grid_stride(1100, 2)), "threads"),
    "threads of a matrix": lambda: (scene(traces.gemm(40, 36, 8, "row"), ("C",)), "threads"),
    "naive": lambda: (scene(traces.gemm(40, 36, 8, "row"), ("C",), NAIVE), "sectors"),
    "coalesced": lambda: (scene(traces.gemm(40, 36, 8), ("C",), COALESCED), "sectors"),
    "linear": lambda: (scene(traces.linear_tiled(40, 36, 40), source=UNPADDED), "sectors"),
    "matrix": lambda: (scene(traces.gemm(40, 36, 8), ("C",)), "matrix"),
    "matrix of linear": lambda: (scene(traces.linear_tiled(40, 36, 8)), "matrix"),
    "matrix of a flat product": lambda: (scene(traces.gemm(3, 150, 40), ("C",)), "matrix"),
    "matrix of a tall product": lambda: (scene(traces.gemm(150, 3, 40), ("C",)), "matrix"),
    "rows": lambda: (scene(rows()), "matrix"),
    "two outputs": lambda: (scene(two_outputs(), ("low", "where")), "matrix"),
    "volume": lambda: (scene(volume()), "threads"),
    "volume's matrix": lambda: (scene(volume()), "matrix"),
    "tiles": lambda: (scene(traces.gemm_tiled(40, 70, 80), ("C",), TILED), "tiles"),
    "many tiles": lambda: (scene(traces.gemm_tiled(5, 7, 60, T=4), ("C",)), "tiles"),
    "tree": lambda: (scene(traces.tree(500)), "tree"),
    "interleaved tree": lambda: (scene(traces.interleaved(500, 256)), "tree"),
    "tree of a thousand": lambda: (scene(traces.tree(5, 1024)), "tree"),
    "tree's phases": lambda: (scene(traces.tree(500)), "tiles"),
    "tree's banks": lambda: (scene(traces.tree(500)), "banks"),
    "banks": lambda: (scene(traces.linear_tiled(32, 32, 32), source=UNPADDED), "banks"),
    "padded": lambda: (scene(traces.linear_tiled(32, 32, 32, 1), source=PADDED), "banks"),
    "broadcasts of quads": lambda: (scene(broadcast_quads()), "banks"),
    "wrong": lambda: (scene(wrong(), ("C",)), "threads"),
    "long lines": lambda: (scene(traces.axpy(40), source="x = " + "y + " * 99), "sectors"),
    **{f"hazard, {n}": lambda n=n: (faulty_scene(n), "hazards") for n in FAULTY},
}


def rows():
    def kernel(t):
        for i in range(t.thread[0], 100, 32):
            t.load(3, "x", t.block[0] * 100 + i)
        if t.thread[0] == 0:
            t.store(6, "out", t.block[0])

    return simulate(kernel, (7,), (32,), {"x": (7, 100), "out": (7,)})


def two_outputs():
    def kernel(t):
        t.load(1, "x", t.block[0] * 32 + t.thread[0])
        if t.thread[0] == 0:
            t.store(2, "low", t.block[0])
            t.store(3, "where", t.block[0])

    return simulate(kernel, (6,), (32,), {"x": (6, 32), "low": (6,), "where": (6,)})


def volume():
    def kernel(t):
        x, y, z = (t.block[i] * d + t.thread[i] for i, d in enumerate((4, 4, 2)))
        if x < 6 and y < 5 and z < 3:
            t.load(2, "x", (z * 5 + y) * 6 + x)
            t.store(2, "out", (z * 5 + y) * 6 + x)

    return simulate(kernel, (2, 2, 2), (4, 4, 2), {"x": (3, 5, 6), "out": (3, 5, 6)})


def broadcast_quads():
    """Half a warp wants one quad, the other half its neighbour, of an array with several rows."""

    def kernel(t):
        t.load(1, "s", t.thread[0] // 16 * 4, 4)
        t.load(2, "s", t.thread[0] // 16 * 132, 4)

    return simulate(kernel, (1,), (32,), {"out": (1,)}, [("s", 264)])


def wrong():
    def kernel(t):
        row, col = t.block[1] * 8 + t.thread[1], t.block[0] * 8 + t.thread[0]
        if row < 19 and col < 22:
            t.store(2, "C", row * 22 + min(col, 20))

    return simulate(kernel, (3, 3), (8, 8), {"C": (20, 22)})


def texts(picture):
    return [text.get_text() for text in picture.figure.axes[0].texts]


@pytest.mark.parametrize("name", PICTURES)
def test_every_word_can_be_read(name):
    picture = render(*PICTURES[name]())
    canvas = FigureCanvasAgg(picture.figure)
    canvas.draw()
    words = [t for t in picture.figure.axes[0].texts if t.get_text().strip()]
    boxes = [t.get_window_extent(canvas.get_renderer()) for t in words]
    width, height = canvas.get_width_height()
    assert width == 900
    for word, box in zip(words, boxes, strict=True):
        assert word.get_fontsize() >= SMALL, word.get_text()
        inside = 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height
        assert inside, f"'{word.get_text()}' reaches out of the page"
    x0, y0, x1, y1 = np.array([box.extents for box in boxes]).T[:, :, None]
    across = np.minimum(x1, x1.T) - np.maximum(x0, x0.T)
    down = np.minimum(y1, y1.T) - np.maximum(y0, y0.T)
    # Boxes have some air above and below the letters.
    for i, k in np.argwhere(np.triu((across > 1) & (down > 4), 1)):
        pytest.fail(f"'{words[i].get_text()}' lies on '{words[k].get_text()}'")


NAMES = ["axpy threads", "naive", "matrix", "tree", "padded", "hazard, shared", "hazard, no guard"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_trace_gives_the_same_bytes(name):
    one = render(*PICTURES[name]())
    own = {"svg.fonttype": "none", "path.sketch": (1, 100, 2), "patch.antialiased": False}
    with matplotlib.rc_context(own):
        two = render(*PICTURES[name]())
        assert (one.svg(), one.png()) == (two.svg(), two.png())
    assert one.svg() == one.svg()
    assert not re.search(r"20\d\d-\d\d-\d\d|[Mm]atplotlib", one.svg())


def test_those_who_cannot_see_it_are_told():
    picture = render(scene(traces.gemm(32, 32, 8, "row"), ("C",), NAIVE), "sectors")
    data, metadata = picture._repr_mimebundle_()
    root = ElementTree.fromstring(data["image/svg+xml"])
    spoken = {child.tag.rpartition("}")[2]: child.text for child in root[:2]}
    assert spoken["title"] == picture.title
    assert picture.alt in spoken["desc"] and picture.caption in spoken["desc"]
    assert root.get("role") == "img" and root.get("aria-label") == picture.description
    image = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert image.width == 900 and image.info["Description"] == picture.description
    assert metadata["image/png"]["alt"] == metadata["image/svg+xml"]["alt"] == picture.description
    assert picture.caption in data["text/plain"]
    assert "load of A: 32 sectors per request" in picture.alt


def test_an_svg_is_small_enough_for_a_notebook():
    for name in ("axpy threads", "naive", "banks", "tiles"):
        picture = render(*PICTURES[name]())
        assert len(picture.svg()) < 300_000 and len(picture.png()) < 100_000


def test_pictures_are_saved(tmp_path):
    picture = render(scene(traces.axpy(3)))
    picture.save(tmp_path / "a.svg")
    picture.save(str(tmp_path / "a.png"))
    assert (tmp_path / "a.svg").read_text() == picture.svg()
    assert (tmp_path / "a.png").read_bytes() == picture.png()
    with pytest.raises(ValueError, match=r"'a\.jpg' must end in \.svg or \.png"):
        picture.save(tmp_path / "a.jpg")


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


# --- choices


def test_the_view_that_suits_a_kernel():
    assert "does with part, phase by phase" in render(scene(traces.tree(500))).title
    passed_on = simulate(_passes_on, (1,), (64,), {"out": (64,)}, [("s", 64)])
    assert "touches, phase by phase" in render(scene(passed_on)).title
    assert "touches, phase by phase" in render(scene(traces.gemm_tiled(5, 7, 8, T=4), ("C",))).title
    assert "who reads what" in render(scene(traces.gemm(5, 6, 4), ("C",))).title
    assert "which thread writes" in render(scene(traces.axpy(40))).title


def test_an_instruction_that_was_compiled_twice_is_shown_once():
    def kernel(t):
        t.load(1, "out", t.thread[0])
        t.load(1, "out", t.thread[0], column=1)  # the same addresses
        t.load(1, "out", t.thread[0] + 1, column=2)  # x[i + 1]

    trace = simulate(kernel, (1,), (32,), {"out": (33,)})
    assert len(instructions(scene(trace), GLOBAL)) == 2
    assert instructions(scene(trace), SHARED) == []


def test_what_is_too_much_for_one_picture_is_left_out():
    def kernel(t):
        for line in range(1, 11):
            t.load(line, "out", t.thread[0] * line)
            t.load(line, "s", t.thread[0] * line)
            yield

    trace = simulate(kernel, (1,), (4,), {"out": (40,)}, [("s", 40)])
    for view in ("sectors", "banks"):
        picture = render(scene(trace), view)
        assert "2 more instructions are not shown; draw one with line=..." in picture.caption
        assert "line 8" in texts(picture) and "line 9" not in texts(picture)
    many = traces.gemm_tiled(5, 7, 60, T=4)  # 15 phases that load, 15 that use, one that stores
    assert "23 of the phases are left out" in caption("tiles", many, ("C",))


def test_one_is_no_plural():
    def kernel(t):
        for line in range(1, 10):
            t.load(line, "out", t.thread[0] * line)
            t.load(line, "s", t.thread[0] * line)
            yield
        t.store(10, "s", 0)

    trace = simulate(kernel, (1,), (1,), {"out": (40,)}, [("s", 40)])
    left = {"sectors": "1 more instruction is", "banks": "2 more instructions are"}
    for view, words in left.items():
        said = render(scene(trace), view).caption
        assert f"{words} not shown; draw one with line=..." in said
    things = "block|element|instruction|lane|phase|read|request|sector|thread|time|turn|warp"
    for view in ("threads", "sectors", "banks", "matrix", "tiles", "tree"):
        picture = render(scene(trace), view)
        for said in (picture.caption, picture.alt, *texts(picture)):
            assert not re.search(rf"\b1 (more )?({things})s\b", said), said


def test_names():
    assert [listing(list(items)) for items in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert element(Array("A", GLOBAL, (3, 4), 4, 0), 7) == "A[1][3]"
    assert element(Array("out", GLOBAL, (), 4, 0), 0) == "out"
    assert coordinate_text(5, (8, 1, 1)) == "5"
    assert coordinate_text(11, (4, 4, 1)) == "(3, 2)"
    assert coordinate_text(23, (2, 3, 4)) == "(1, 2, 3)"


def test_long_text_is_cut_short():
    text = "sum += A[row * K + k] * B[k * N + col];"
    assert fit(text, 100) == text
    short = fit(text, 2)
    assert short.endswith("…") and text_width(short) <= 2 and text.startswith(short[:-1])


# --- hostile


def test_nothing_to_draw():
    none = replace(traces.axpy(3), launches=())
    with pytest.raises(WorkbookError, match="starts no kernel at n = 5.*does the launcher start"):
        render(scene(none))
    idle = simulate(lambda t: None, (1,), (4,), {"out": (4,)})
    with pytest.raises(WorkbookError, match="touches none of its arrays"):
        render(scene(idle))
    with pytest.raises(WorkbookError, match="uses no shared memory"):
        render(scene(traces.axpy(3)), "banks")


def test_a_kernel_that_writes_nothing_is_drawn():
    def kernel(t):
        t.load(1, "x", t.thread[0])

    trace = simulate(kernel, (1,), (4,), {"x": (40,), "out": (40,)})
    assert "40 of the 40 elements are never written" in caption("threads", trace)
    assert "it writes 0 elements of out" in caption("matrix", trace)


def test_accesses_outside_of_every_array_are_left_out():
    trace = traces.axpy(64)
    accesses = trace.launches[0].accesses.copy()
    accesses["array"][:10] = -1
    trace = replace(trace, launches=(replace(trace.launches[0], accesses=accesses),))
    for view in ("threads", "sectors", "tiles", "matrix"):
        assert "10 accesses are in none of the arrays" in render(scene(trace), view).caption
    assert "none of the arrays" not in caption("threads", traces.axpy(64))


def test_a_truncated_trace():
    cut = replace(traces.gemm_tiled(8, 8, 8, T=4), truncated=True)
    for view in ("threads", "matrix"):
        with pytest.raises(WorkbookError, match="draw it at a smaller size, such as n=300"):
            render(scene(cut, ("C",)), view)
    # The last recorded block may be cut short; the others are whole.
    assert "what block (0, 1)" in render(scene(cut, ("C",)), "tiles").title
    with pytest.raises(WorkbookError, match=r"block \(1, 1\) of kernel was not recorded"):
        render(scene(cut, ("C",), block=(1, 1)), "tiles")
    # What is said of one warp holds; an average over some of the warps would not.
    part = replace(traces.gemm(40, 36, 8), truncated=True)
    assert "on average" in caption("sectors", traces.gemm(40, 36, 8), ("C",))
    assert "on average" not in caption("sectors", part, ("C",))
    render(scene(cut, ("C",)), "banks")


def test_too_large():
    def kernel(t):
        t.store(1, "out", 0)

    for shape, view in {(9000,): "threads", (300, 2): "threads", (600, 2): "matrix"}.items():
        trace = simulate(kernel, (1,), (1,), {"out": shape})
        with pytest.raises(WorkbookError, match="too much for a picture; draw it at a small"):
            render(scene(trace), view)
    trace = simulate(kernel, (1,), (1,), {"out": (600, 2)})
    with pytest.raises(WorkbookError, match="out is 600 × 2, too much for a picture"):
        render(scene(trace), "tiles")


@pytest.mark.parametrize(
    "view, options, message",
    [
        ("threads", {"array": "z"}, "no array 'z'; it has x, y, out"),
        ("matrix", {"thread": 512}, "there is no thread 512: there are 512 × 1 × 1"),
        ("matrix", {"thread": (0, 1)}, r"there is no thread \(0, 1\)"),
        ("tree", {}, "uses no shared memory, so there is no tree to draw"),
        ("tree", {"array": "x"}, "uses no shared array 'x'"),
        ("tiles", {"block": -1}, "there is no block -1"),
        ("sectors", {"line": 99}, "line 99 makes no access to global memory"),
    ],
)
def test_what_is_not_there_is_named(view, options, message):
    with pytest.raises(WorkbookError, match=message):
        render(scene(traces.axpy(300), **options), view)


# --- draw


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


def test_draw_runs_the_kernel_at_a_small_size(traced):
    exercise = toys.drawn_at(toys.MISH, n=300)
    assert "300 of 512 threads" in draw(stub(exercise)).caption
    assert "31 of 256 threads" in draw(stub(exercise), n=31).caption
    assert [set(call) for call in traced] == [{"x", "out", "n"}] * 2
    assert traced[0]["x"].shape == (300,) and traced[0]["out"].isnan().all()
    draw(stub(exercise))
    assert torch.equal(traced[0]["x"], traced[2]["x"])  # the same picture every time


def test_draw_without_a_size_of_its_own_takes_the_last(traced):
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
        (
            stub(toys.drawn_at(toys.MISH, n=300)),
            {"n": 9000},
            "smaller size, such as n=300",
        ),
    ],
)
def test_draw_says_what_is_wrong(traced, kernel, options, message):
    with pytest.raises(WorkbookError, match=message):
        draw(kernel, **options)


def test_a_run_that_fails_fails_as_itself(monkeypatch):
    def trace(kernel, arguments):
        raise LaunchError("cudaErrorInvalidValue", "mish: no such grid")

    monkeypatch.setattr("utils.diagrams.draw.trace", trace)
    with pytest.raises(LaunchError, match="cudaErrorInvalidValue: mish: no such grid"):
        draw(stub())


def test_several_launches():
    """The one that writes the output is drawn; "sectors" shows the lines of all."""
    arrays = [Array(n, GLOBAL, (64,), 4, 0) for n in ("x", "part", "out")]

    def first(t):
        t.load(1, "x", t.thread[0])
        t.store(2, "part", t.thread[0])

    def second(t):
        t.load(5, "part", t.thread[0])
        t.store(6, "out", t.thread[0])

    launches = tuple(traces.launch(k, (1,), (n,), arrays) for k, n in ((first, 64), (second, 32)))
    trace = Trace(tuple(arrays), launches, False)
    assert isinstance(launches[0], Launch) and np.all(launches[1].accesses["line"] >= 5)
    assert "32 of 32 threads write out" in caption("threads", trace)
    words = texts(render(scene(trace), "sectors"))
    assert {"line 1", "line 2", "line 5", "line 6"} <= set(words)


# --- kernels of the workbook, as the emulator runs them


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
    assert said in draw(compiled(id), view).caption


def test_a_tile_without_padding():
    text = source_of("02_shared_memory_tiling/linear_tiled").replace("[BK + 1]", "[BK]")
    picture = draw(compiled("02_shared_memory_tiling/linear_tiled", text), "banks", line=20)
    assert "Line 20, load of Ws: 32-way conflict" in picture.caption
    assert "Ws, 32 × 32" in texts(picture)


def test_a_simulated_kernel_is_traced_like_the_real_one():
    """What the tests above rest on."""
    real = draw(compiled("01_naive_gemm/gemm_naive"), "sectors").caption
    assert real == caption("sectors", traces.gemm(40, 36, 8, "row"), ("C",), NAIVE)


def test_a_launch_that_is_refused():
    text = source_of("00_start_here/axpy").replace("threads = 256", "threads = 2048")
    with pytest.raises(LaunchError, match="cudaErrorInvalidValue"):
        draw(compiled("00_start_here/axpy", text))


@functools.cache
def compiled(id, text=None):
    exercise = catalog.load(id)
    text = text or catalog.solution_text(exercise)
    return compile_answer(exercise, text, backend="emulator")
