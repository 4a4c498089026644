"""The views "sectors" and "banks": what a warp's requests cost, with numbers counted by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support import traces
from support.gallery import NAIVE, scene, shown
from support.reading import words
from support.traces import simulate

from utils.diagrams.draw import render
from utils.diagrams.parts.canvas import BAD, GOOD
from utils.diagrams.parts.scene import instructions
from utils.watch.trace import GLOBAL, SHARED


def warp(kernel, view: str, tensors=None, shared=(), **more):
    """The picture of one warp that runs a kernel."""
    trace = simulate(kernel, (1,), (32,), tensors or {"out": (128,)}, shared)
    return render(scene(trace, **more), view)


def costs(picture) -> dict[str, bool]:
    """What each line costs -> whether it is painted as good."""
    heads = [t for t in picture.figure.axes[0].texts if " of " in t.get_text()]
    return {t.get_text(): t.get_color() == GOOD for t in heads if t.get_color() in (GOOD, BAD)}


# --- captions: numbers counted by hand


@pytest.mark.parametrize(
    "name, said",
    [
        (
            "naive",
            "Line 9, load of A: one request of warp 0 of block 0 touches 32 sectors; 4 would",
        ),
        ("naive", "moves 1024 bytes for 128 that are wanted"),
        # Of 40 rows of 36 columns, the warps of the second block are 4 lanes wide: one sector of B.
        ("ragged", "2.8 for the store of C (80 requests)"),
        ("ragged", "No request here touches more sectors than it must."),
        ("unpadded", "Line 20, load of Ws: 32-way conflict"),
        ("unpadded", "wants 32 different words of bank 0 and takes 32 wavefronts; 1 would do"),
    ],
)
def test_the_most_wasteful_request_is_told(name, said):
    assert said in shown(name).caption


@pytest.mark.parametrize(
    "name, all",
    [
        ("coalesced", "No request here touches more sectors than it must."),
        ("padded", "No request here has a bank conflict."),
        ("broadcasts of quads", "No request here has a bank conflict."),
    ],
)
def test_where_nothing_is_wasted_nothing_more_is_said(name, all):
    assert shown(name).caption == all


def test_most_wasteful_is_not_who_moves_most():
    def kernel(t):
        t.load(1, "x", 4 * t.thread[0], 4)  # 16 sectors, all of them wanted
        t.load(2, "x", 2 * t.thread[0])  # 8 sectors, half of each wanted

    text = warp(kernel, "sectors", {"x": (128,)}).caption
    assert "Line 2, load of x: one request of warp 0 of block 0 touches 8 sectors" in text


def test_conflicts_are_shown_at_their_worst():
    def kernel(t):  # strides 1, 2, 4, 8: the last is worst
        for step in range(4):
            t.load(1, "s", t.thread[0] << step)

    text = warp(kernel, "banks", shared=[("s", 256)]).caption
    assert "8-way conflict" in text and "takes 8 wavefronts; 1 would do" in text


# --- what stands beside each line


def test_each_line_says_what_it_costs_and_how_its_lanes_lie():
    said = words(shown("naive"))
    assert "sum += A[row * K + k] * B[k * N + col];" in said
    assert "neighbouring lanes are 32 bytes apart" in said
    assert "all 32 lanes want the same element" in said
    assert costs(shown("naive")) == {
        "load of A: 32 sectors per request, ideal 4": False,
        "load of B: 1 sector per request, ideal 1": True,
        "store of C: 32 sectors per request, ideal 4": False,
    }
    assert all("load of A" not in cost for cost in costs(only(11)))


def only(line: int):
    return render(scene(traces.gemm(32, 32, 8, "row"), ("C",), NAIVE, line=line), "sectors")


def test_a_line_that_is_unrolled_is_drawn_once_where_it_looks_alike():
    def kernel(t):
        for column in range(6):
            t.load(1, "s", t.thread[0] + 32 * column, column=column)
        t.load(1, "s", 2 * t.thread[0], column=6)

    picture = warp(kernel, "banks", shared=[("s", 192)])
    verdicts = [word for word in words(picture) if word.startswith("load of s: ")]
    assert len(verdicts) == 2 and sum("no conflict" in verdict for verdict in verdicts) == 1
    assert "not shown" not in picture.caption


def test_wide_accesses_are_no_conflict():
    picture = warp(lambda t: t.load(1, "s", 4 * t.thread[0], 4), "banks", shared=[("s", 128)])
    assert costs(picture) == {"load of s: no conflict, 4 wavefronts per request, ideal 4": True}
    assert "16 bytes a lane: served by quarter warps" in words(picture)


def test_wide_accesses_that_neighbours_share_are_served_by_larger_parts():
    picture = warp(lambda t: t.load(1, "s", t.thread[0] // 16 * 4, 4), "banks", shared=[("s", 8)])
    assert costs(picture) == {"load of s: no conflict, 2 wavefronts per request, ideal 2": True}
    assert any("16 bytes a lane: served by half warps" in said for said in words(picture))


def test_a_conflict_is_painted_as_bad():
    costly = costs(shown("unpadded"))
    assert costly["load of Ws: 32-way conflict, 32 wavefronts per request, ideal 1"] is False
    assert Counter(costly.values()) == Counter({True: 3, False: 1})
    assert all(costs(shown("padded")).values())


def test_lines_of_a_cell_are_counted_as_the_cell_does():
    late = replace(scene(traces.axpy(40), source="//\n//\n//\n//\nout[i] = ..."), first_line=2)
    assert "out[i] = ..." in words(render(late, "sectors"))


# --- what is painted


def test_a_lane_s_line_ends_in_the_cell_that_it_wants():
    """It has the line's colour; every second cell is brought for nobody."""
    picture = warp(lambda t: t.load(1, "x", 2 * t.thread[0]), "sectors", {"x": (64,)})
    axes = picture.figure.axes[0]
    (links,) = (c for c in axes.collections if len(c.get_segments()) == 32)
    for (_, (x, _)), color in zip(links.get_segments(), links.get_colors(), strict=True):
        grid = next(g for g in axes.get_images() if g.get_extent()[0] <= x < g.get_extent()[1])
        left, right = grid.get_extent()[:2]
        cell = int((x - left) / (right - left) * 8)
        assert np.allclose(grid.get_array()[0, cell], color[:3])


def frames(picture) -> list[tuple]:
    """(bank, words) of each column that is framed as crowded."""
    boxes = [b for b in picture.figure.axes[0].patches if b.get_linewidth() == 2.2]
    return [(round((b.get_x() - 0.25) / 0.2), b.get_height()) for b in boxes]


def test_a_bank_that_is_asked_for_several_words_is_framed():
    assert [bank for bank, _ in frames(shown("unpadded"))] == [0]
    assert frames(shown("padded")) == []
    picture = warp(lambda t: t.load(1, "s", 2 * t.thread[0]), "banks", shared=[("s", 64)])
    assert [bank for bank, _ in frames(picture)] == [*range(0, 32, 2)]


def test_the_array_beside_it_shows_the_bank_that_the_caption_names():
    said = words(shown("unpadded"))
    assert "Ws, 32 × 32" in said and "orange: bank 0" in said
    assert "32 different words in bank 0" in said


# --- what is left out


def test_an_instruction_that_was_compiled_twice_is_shown_once():
    def kernel(t):
        t.load(1, "out", t.thread[0])
        t.load(1, "out", t.thread[0], column=1)  # the same addresses
        t.load(1, "out", t.thread[0] + 1, column=2)  # x[i + 1]

    trace = simulate(kernel, (1,), (32,), {"out": (33,)})
    assert len(instructions(scene(trace), GLOBAL)) == 2
    assert instructions(scene(trace), SHARED) == []


def test_of_several_launches_the_lines_of_all_are_shown():
    said = set(words(render(scene(traces.two_launches()), "sectors")))
    assert {"line 1", "line 2", "line 5", "line 6"} <= said
