"""Threads that do not meet: how many wait where, who has left, whom a mask names in vain."""

from collections import Counter
from dataclasses import replace

import pytest
from support.hazards import ORIGIN, picture, report
from support.reading import at, beside, excerpt, framed, legend, place, words
from support.traces import simulate

from utils.diagrams.views.hazards import can_draw
from utils.emulator import reports
from utils.ground.errors import WorkbookError

SOURCE = "\n\n\n  __syncthreads();\n  more();\n\n\n\n  __syncthreads();"


def block_of(threads: int):
    return simulate(lambda t: t.store(1, "out", 0), (1,), (threads,), {"out": (1,)})


# --- barriers

APART = report(
    "divergent-barrier", waits=((3, 4, "__syncthreads"), (4, 9, "__syncthreads"), (1, 0, ""))
)
LEGEND = ["A: 3 threads wait at line 4", "B: 4 threads wait at line 9", "1 thread has left"]


@pytest.fixture(scope="module")
def apart():
    return picture(block_of(8), APART, source=SOURCE)


def test_how_many_wait_where_is_said(apart):
    assert apart.title == "kernel: the threads of block 0 wait at different barriers"
    assert "Of the 8 threads of block 0, 3 wait at line 4 and 4 wait at line 9" in apart.caption
    assert "1 has left the kernel" in apart.caption and "coloured by where" in apart.alt


def test_the_cells_are_as_many_as_the_legend_says(apart):
    first, second, left = (next(w for w in legend(apart) if w.startswith(x)) for x in LEGEND)
    assert beside(apart, "warp 0")[:8] == [first] * 3 + [second] * 4 + [left]


def test_the_letters_stand_in_cells_of_their_colour(apart):
    assert Counter(words(apart)) >= Counter(A=3, B=4)
    assert [at(apart, "A", n) for n in range(3)] == [LEGEND[0]] * 3
    assert [at(apart, "B", n) for n in range(4)] == [LEGEND[1]] * 4


def test_the_lines_where_they_wait_are_marked(apart):
    marked = {line.number: line.note for line in excerpt(apart) if line.marked}
    assert marked == {"4": "A: 3 threads wait", "9": "B: 4 threads wait"}
    assert "more();" in words(apart)


def test_rows_are_warps_and_say_which_threads_they_hold(apart):
    assert "threads 0 … 7" in words(apart)
    many = replace(APART, waits=((39, 4, "__syncthreads"), (1, 9, "__syncthreads")))
    said = set(words(picture(block_of(40), many)))
    assert {"warp 0", "warp 1", "threads 0 … 31", "threads 32 … 39"} <= said


def test_a_warp_function_that_waits_for_ever():
    lost = report("deadlock", waits=((7, 4, "__syncthreads"), (1, 9, "__shfl_sync")))
    shown = picture(block_of(8), lost)
    assert "wait for each other forever" in shown.title
    assert "The warp function at line 9 waits for every lane" in shown.caption


def test_waits_are_read_with_the_hazard_that_follows():
    waits = '{"event":"waits","waits":[{"threads":40,"line":7,"for":"__syncthreads"}]}'
    hazard = '{"event":"hazard","number":%d,"kind":"divergent-barrier","line":7,"file":"a.cu"}'
    one, two = reports.read("\n".join([waits, hazard % 1, hazard % 2]))
    assert one.waits == ((40, 7, "__syncthreads"),) and two.waits == ()


# --- masks

GONE = report(
    "invalid-mask",
    variant="exited-lane",
    line=9,
    other_thread=(5, 0, 0),
    other_block=ORIGIN,
    waits=((4, 9, "__shfl_sync"), (4, 0, "")),
)


@pytest.fixture(scope="module")
def gone():
    return picture(block_of(8), GONE)


def test_the_lane_that_is_gone_is_named(gone):
    assert gone.title == "kernel: lane 5 is named by the mask, and does not come"
    assert "Of the 8 lanes of warp 0, 4 make the call at line 9." in gone.caption
    assert "names lane 5 as well" in gone.caption


def test_who_calls_and_who_does_not_is_painted_as_the_legend_says(gone):
    calls, missing, more = "A: 4 lanes make the call", "lane 5, named, is gone", "3 more do not m"
    more = next(w for w in legend(gone) if w.startswith(more))
    assert beside(gone, "warp 0")[:8] == [calls] * 4 + [more, missing, more, more]
    assert Counter(words(gone))["A"] == 4 and framed(gone) == [(0, 5, missing)]
    assert "other warps" not in words(gone)


def test_lanes_are_counted_in_their_warp_and_other_warps_told_apart():
    waits = ((32, 0, ""), (8, 9, "__shfl_sync"), (32, 0, ""))
    parts = {"thread": (32, 0, 0), "other_thread": (44, 0, 0), "waits": waits}
    shown = picture(block_of(72), replace(GONE, **parts))
    assert shown.title == "kernel: lane 12 is named by the mask, and does not come"
    assert "Of the 32 lanes of warp 1, 8 make the call" in shown.caption
    assert beside(shown, "warp 0") == ["other warps"] * 32
    assert framed(shown) == [(1, 12, "lane 12, named, is gone")]
    assert place(shown, "lane")[1] < place(shown, "warp 0")[1] < place(shown, "warp 1")[1]


# --- what has no picture


@pytest.mark.parametrize(
    "odd",
    [
        report("misaligned", line=3),
        replace(GONE, variant=""),
        replace(GONE, waits=()),
        replace(APART, waits=()),
        report("out-of-bounds", variant="host-memory"),
        report("race", index=None),
    ],
)
def test_hazards_of_which_too_little_is_known_are_told_in_words(odd):
    assert not can_draw(odd) and can_draw(GONE) and can_draw(APART)
    with pytest.raises(WorkbookError, match="hazard 1 has no picture; in words:\n") as error:
        picture(block_of(8), odd)
    assert str(odd) in str(error.value)


def test_hazards_that_there_are_not():
    with pytest.raises(WorkbookError, match="kernel has no hazards at .*: nothing to draw"):
        picture(block_of(8))
    for number in (0, 2):
        with pytest.raises(WorkbookError, match=f"no hazard {number}: kernel has one hazard"):
            picture(block_of(8), APART, number=number)
    with pytest.raises(WorkbookError, match="hazard 1 has no picture"):
        picture(block_of(8), replace(APART, kernel="another", thread=ORIGIN))
