"""Elements that are not there, and elements that nobody has written: where, whose, how many."""

from collections import Counter
from dataclasses import replace

import pytest
from support import traces
from support.hazards import GLOBAL_OUT, picture, report
from support.reading import beside, cells, edge, framed, order_of, wall, words
from support.traces import simulate

from utils.diagrams.parts.conflicts import read_unwritten
from utils.watch.trace import GLOBAL, Array, Trace

# --- outside of an array


def beyond_the_end() -> Trace:
    """Threads 0 to 7 of two blocks write out[i], which has 12 elements."""

    def kernel(t):
        t.store(2, "out", t.block[0] * 8 + t.thread[0])

    trace = simulate(kernel, (2,), (8,), {"out": (16,)})
    accesses = trace.launches[0].accesses.copy()
    outside = accesses["index"] >= 12
    accesses["array"][outside] = -1
    accesses["byte"][outside] += 4096
    launch = replace(trace.launches[0], accesses=accesses)
    return Trace((replace(trace.arrays[0], shape=(12,), address=4096),), (launch,), False)


def only(trace: Trace, keep) -> Trace:
    """The trace without the accesses that are not to be kept."""
    launch = trace.launches[0]
    return replace(trace, launches=(replace(launch, accesses=launch.accesses[keep]),))


BEYOND = report("out-of-bounds", block=(1, 0, 0), thread=(4, 0, 0), line=2, index=12)
BEYOND = replace(BEYOND, access="store", **GLOBAL_OUT)
OWN, MORE = "thread 4, the first out of bounds", "3 more threads of the block outside"


@pytest.fixture(scope="module")
def beyond():
    return picture(beyond_the_end(), BEYOND)


def test_who_strays_and_how_far_is_said(beyond):
    assert beyond.title == "kernel: thread 4 of block 1 writes outside of out"
    assert "Thread 4 of block 1 writes out[12] at line 2, and there is no such" in " ".join(
        words(beyond)
    )
    assert "out has 12 elements, the last of them out[11]" in beyond.caption
    assert (
        "is 1 element after the last. 4 threads of the grid reach out of bounds at this line"
        in beyond.caption
    )
    assert "The end of out in memory" in beyond.alt


def test_each_cell_beside_the_end_names_the_thread_that_comes_there(beyond):
    shown = edge(beyond)
    assert [*shown] == [str(number) for number in range(6, 20)]
    assert {n: c.thread for n, c in shown.items() if c.thread} == {
        str(8 + thread): str(thread) for thread in range(8)
    }
    assert any("in a cell, the thread of block 1 that comes here" in word for word in words(beyond))
    assert any("(blank: another block's)" in word for word in words(beyond))


def test_the_cells_on_either_side_of_the_wall_are_inside_and_outside(beyond):
    shown = edge(beyond)
    assert wall(beyond) == ("11", "12") and "out ends here" in words(beyond)
    assert [n for n, cell in shown.items() if cell.inside] == ["6", "7", "8", "9", "10", "11"]
    meant = {number: cell.meaning for number, cell in shown.items()}
    assert {meant[n] for n in ("7", "8", "11")} == {"4 inside"} and meant["12"] == OWN
    assert {meant[n] for n in ("13", "14", "15")} == {MORE} and meant["16"] == ""


def test_the_threads_of_the_block_are_as_many_as_the_legend_says(beyond):
    row = beside(beyond, "warp 0")[:8]
    assert row == ["4 inside"] * 4 + [OWN] + [MORE] * 3
    assert framed(beyond) == [(0, 4, OWN)]


def test_a_stray_before_the_first_element():
    shown = picture(beyond_the_end(), replace(BEYOND, index=-3))
    assert "3 elements before the first" in shown.caption and "out begins here" in words(shown)
    assert wall(shown) == ("-1", "0") and edge(shown)["-3"].meaning == OWN
    assert beside(shown, "warp 0")[4] == OWN


def test_a_stray_far_away_has_cells_of_its_own():
    shown = picture(beyond_the_end(), replace(BEYOND, index=999))
    assert [*edge(shown)][-6:] == ["12", "13", "14", "998", "999", "1,000"]
    assert edge(shown)["999"].meaning == OWN and wall(shown) == ("11", "12")


def test_the_threads_of_another_block_are_not_those_of_this_one():
    accesses = beyond_the_end().launches[0].accesses
    few = only(beyond_the_end(), (accesses["block"] == 0) | (accesses["thread"] == 4))
    shown = picture(few, BEYOND)
    none = "7 touch nothing here"
    assert beside(shown, "warp 0")[:8] == [none] * 4 + [OWN] + [none] * 3


def test_what_nobody_touches_is_told_apart_from_what_another_block_does():
    shown = picture(
        only(beyond_the_end(), beyond_the_end().launches[0].accesses["block"] == 1), BEYOND
    )
    assert edge(shown)["8"].meaning == "4 inside" and edge(shown)["6"].meaning == ""
    said = " ".join(words(shown))
    assert "thread of block 1 that comes here" in said and "blank" not in said


def test_a_wide_access_over_the_end_is_drawn_whole():
    trace = simulate(lambda t: t.store(2, "out", 10, width=4), (1,), (1,), {"out": (16,)})
    trace = replace(trace, arrays=(replace(trace.arrays[0], shape=(12,)),))
    over = report("out-of-bounds", line=2, index=10, **{**GLOBAL_OUT, "access": "store"})
    shown = picture(trace, over)
    own = "thread 0, the first out of bounds"
    assert [n for n, c in edge(shown).items() if c.meaning == own] == ["10", "11", "12", "13"]
    assert "4 elements from out[10] on" in " ".join(words(shown))


# --- unwritten


def unwritten() -> Trace:
    """s[0] to s[5] are written, then s[0] to s[7] read, then s[6] written."""

    def kernel(t):
        if t.thread[0] < 6:
            t.store(3, "s", t.thread[0])
        yield
        t.load(5, "s", t.thread[0])
        yield
        if t.thread[0] == 0:
            t.store(8, "s", 6)

    return simulate(kernel, (1,), (8,), {"out": (8,)}, [("s", 10)])


def read_of(index: int):
    hazard = report("uninitialized", thread=(index, 0, 0), line=5, index=index)
    return picture(unwritten(), hazard)


def test_an_element_that_is_written_too_late():
    shown = read_of(6)
    assert shown.title == "kernel: thread 6 reads s[6], which nobody has written"
    assert "Thread 6 of block 0 reads s[6] at line 5. What it finds" in " ".join(words(shown))
    assert "6 of the 10 elements of s are written, and this one is not" in shown.caption
    assert "written later, at line 8" in shown.caption
    verdict = "nobody has written it yet"
    assert order_of(shown, verdict) == ["thread 6 R!", "thread 0 W"] and verdict in shown.alt


def test_the_cells_say_what_was_written_by_then():
    shown = read_of(6)
    done, more, none = (
        "6 written by then",
        "1 more read before it is written",
        "2 not written by then",
    )
    assert cells(shown) == [[done] * 6 + ["read here, unwritten", more] + [none] * 2]
    assert framed(shown) == [(0, 6, "read here, unwritten")]


def test_an_element_that_nobody_ever_writes():
    shown = read_of(7)
    assert order_of(shown, "nobody ever writes it") == ["thread 7 R!"]
    assert "Nobody writes it afterwards, either" in shown.caption
    assert "later" not in shown.caption


def test_what_an_earlier_launch_wrote_counts_as_written():
    arrays = [Array("out", GLOBAL, (8,), 4, 0)]
    first = traces.launch(lambda t: t.store(1, "out", t.thread[0]), (1,), (3,), arrays, "first")
    second = traces.launch(lambda t: t.load(5, "out", 7), (1,), (1,), arrays, "second")
    hazard = report("uninitialized", kernel="second", line=5, index=7, **GLOBAL_OUT)
    shown = picture(Trace(tuple(arrays), (first, second), False), hazard)
    assert "3 of the 8 elements of out are written" in shown.caption
    assert Counter(cells(shown)[0])["3 written by then"] == 3


def test_an_atomic_update_reads_what_was_there():
    def kernel(t):
        t.atomic(1, "s", 0)
        t.store(2, "s", 1)
        t.load(3, "s", 2)

    trace = simulate(kernel, (1,), (1,), {"out": (1,)}, [("s", 4)])
    got = read_unwritten(trace.launches[0].accesses, trace.arrays[1])
    assert got.tolist() == [True, False, True, False]
