"""Pictures of hazards: of traces written by hand, and of kernels that the emulator ran."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import traces
from support.faulty import diagnosed, faulty_scene
from support.traces import simulate

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.diagrams import explain
from utils.diagrams.draw import draw, render
from utils.diagrams.parts import canvas
from utils.diagrams.parts.conflicts import racing, read_unwritten
from utils.diagrams.parts.scene import Scene
from utils.diagrams.parts.story import ALSO, FINE, HERE
from utils.diagrams.parts.timeline import Event, labels, some, together
from utils.diagrams.views import masks, waits
from utils.diagrams.views.hazards import can_draw
from utils.emulator import reports
from utils.emulator.reports import Report
from utils.errors import WorkbookError
from utils.watch.trace import ACCESSES, ATOMIC, GLOBAL, LOAD, STORE, Array, Trace

ORIGIN = (0, 0, 0)


def report(kind="race", **parts) -> Report:
    place = {"block": ORIGIN, "thread": ORIGIN, "line": 1, "array": "s", "index": 0}
    place |= {"kernel": "kernel", "space": "shared", "access": "load"}
    return Report(kind, "", **{**place, **parts})


def race(first: tuple, second: tuple, index: int, **more) -> Report:
    """Of threads (x, access, line); the second one ran later and is the one that is reported."""
    (x, access, line), (other, other_access, other_line) = second, first
    parts = {"thread": (x, 0, 0), "access": access, "line": line, "index": index}
    parts |= {"other_thread": (other, 0, 0), "other_access": other_access}
    parts |= {"other_block": ORIGIN, "other_line": other_line}
    return report(**{**parts, **more})


def picture(trace: Trace, *hazards: Report, number=1, source=""):
    scene = Scene("kernel", trace, source, hazards=hazards, hazard=number)
    return render(scene, "hazards")


def texts(picture) -> list[str]:
    return [text.get_text() for text in picture.figure.axes[0].texts]


def place(picture, word: str, nth: int = 0) -> tuple[float, float]:
    """Where a text stands."""
    found = [text for text in picture.figure.axes[0].texts if text.get_text() == word]
    return found[nth].get_position()


def painted(picture, x: float, y: float) -> np.ndarray:
    """The colour of the grid of cells at a point."""
    for image in picture.figure.axes[0].get_images():
        left, right, bottom, top = image.get_extent()
        if left <= x < right and top <= y < bottom:
            cells = image.get_array()
            rows, columns = cells.shape[:2]
            row, column = (y - top) / (bottom - top) * rows, (x - left) / (right - left) * columns
            return np.asarray(cells[int(row), int(column)])
    raise AssertionError(f"no cells at {x}, {y}")


def grid(picture) -> np.ndarray:
    """The colours of the first grid of cells, from left to right and top to bottom."""
    return np.asarray(picture.figure.axes[0].get_images()[0].get_array()).reshape(-1, 3)


def boxes(picture, x: float, y: float) -> list:
    """The rectangles around a point, the one drawn last at the end."""
    patches = picture.figure.axes[0].patches
    return [
        p
        for p in patches
        if p.get_bbox().x0 <= x <= p.get_bbox().x1 and p.get_bbox().y0 <= y <= p.get_bbox().y1
    ]


def face(box) -> np.ndarray:
    return np.asarray(box.get_facecolor()[:3])


def edge(box) -> np.ndarray:
    return np.asarray(box.get_edgecolor()[:3])


def alike(colors, *wanted) -> bool:
    """Whether colours are these, one by one."""
    return np.allclose(np.asarray(colors), [canvas.rgb(color) for color in wanted], atol=1e-3)


# --- hand-made traces


def reverse():
    """8 threads write s[t], and without a barrier read s[7 - t]; then all meet and read s[0]."""

    def kernel(t):
        t.store(3, "s", t.thread[0])
        t.load(4, "s", 7 - t.thread[0])
        yield
        t.load(6, "s", 0)

    return simulate(kernel, (2,), (8,), {"out": (8,)}, [("s", 10)])


REVERSED = race((0, "load", 4), (7, "store", 3), 7)


def test_a_race_is_told_with_its_element_threads_and_lines():
    shown = picture(
        reverse(), REVERSED, source="__shared__ float s[10];\n\n  s[t] = 1;\n  s[7 - t];"
    )
    assert shown.title == "kernel: two threads race for s[7]"
    words = texts(shown)
    assert "nothing orders these two" in words and "Accesses to s[7]" in words
    assert {"thread 0", "thread 7", "warp 0", "s[t] = 1;", "s[7 - t];"} <= set(words)
    assert {"thread 0 reads", "thread 7 writes", "line 3", "line 4"} <= set(words)
    assert "8 of the 10 elements of s are touched by two threads without a barrier" in shown.caption
    assert "In this run the read came first and saw the old value of s[7]" in shown.caption
    assert "both threads are in warp 0 orders nothing" in shown.caption
    assert "7 more elements with a race" in words and "2 not touched" in words


def test_the_cells_of_an_array_say_which_of_them_race():
    shown = picture(reverse(), REVERSED)
    assert alike(grid(shown), *[ALSO] * 7, HERE, *[canvas.PALE] * 2)
    x, y = place(shown, "s[7]")  # it is named above its cell, and framed
    assert alike([painted(shown, x, y + 0.2)], HERE)
    assert any(alike([edge(box)], canvas.INK) for box in boxes(shown, x, y + 0.2))


def test_the_lines_of_an_array_are_numbered():
    def kernel(t):
        t.store(1, "s", 130)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 500)])
    shown = picture(trace, race((0, "store", 1), (1, "store", 1), 130))
    below = place(shown, "128")[1]  # 32 in a line, so 130 is the third of the fifth
    x, y = place(shown, "s[130]")
    assert alike([painted(shown, x, below)], HERE)
    assert {"0", "256"} <= set(texts(shown)) and "64" not in texts(shown)


def test_a_tall_matrix_of_one_column_is_drawn_in_lines():
    def kernel(t):
        t.store(1, "out", 20)

    trace = simulate(kernel, (1,), (2,), {"out": (100, 1)})
    hazard = race((0, "store", 1), (1, "store", 1), 20, space="global", array="out")
    shown = picture(trace, hazard)
    assert len(grid(shown)) == 7 * 16 and {"0", "16", "96"} <= set(texts(shown))


def test_of_a_large_matrix_the_part_around_the_element_is_drawn():
    def kernel(t):
        t.store(1, "out", 700 * 500 + 123)

    trace = simulate(kernel, (1,), (2,), {"out": (900, 500)})
    hazard = race((0, "store", 1), (1, "store", 1), 350123, space="global", array="out")
    shown = picture(trace, hazard)
    colors = grid(shown).reshape(64, 64, 3)
    assert alike([colors[700 - 664, 123 - 88]], HERE)
    assert "664" in texts(shown)  # the first row that is drawn


def test_a_time_line_has_a_row_for_each_thread():
    shown = picture(reverse(), REVERSED)
    (x0, y0), (x1, y1) = place(shown, "R"), place(shown, "W")
    above, below = place(shown, "thread 0")[1], place(shown, "thread 7")[1]
    assert x0 < x1 and abs(y0 - above) < 0.1 and abs(y1 - below) < 0.1
    for x, y in ((x0, y0), (x1, y1)):  # both are what the race is about
        assert alike([edge(boxes(shown, x, y)[-1])], canvas.RED)
    joint = [line for line in lines(shown) if alike([line[0][:3]], canvas.RED)]
    assert len(joint) == 1 and {x0, x1} <= {x for x, _ in joint[0][1]}


def test_a_time_line_is_of_one_element():
    def kernel(t):
        for index in (3, 4, 5) if t.thread[0] == 0 else (4,):
            t.store(index, "s", index)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 8)])
    words = texts(picture(trace, race((0, "store", 4), (1, "store", 4), 4)))
    assert words.count("W") == 2 and "line 3" not in words and "line 5" not in words


def test_only_the_accesses_of_the_hazard_are_marked():
    again = race((0, "store", 3), (7, "load", 4), 0)
    shown = picture(reverse(), again)
    letters = [text for text in shown.figure.axes[0].texts if text.get_text() in ("R", "W")]
    marked = [alike([edge(boxes(shown, *t.get_position())[-1])], canvas.RED) for t in letters]
    assert marked.count(True) == 2 and marked.count(False) > 0


def test_of_many_accesses_the_last_before_the_other_one_is_marked():
    def kernel(t):
        if t.thread[0] == 0:
            for line in (4, 5, 4):
                t.load(line, "s", 1)
        else:
            t.store(3, "s", 1)
        yield
        if t.thread[0] == 0:
            t.load(4, "s", 1)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 2)])
    shown = picture(trace, race((0, "load", 4), (1, "store", 3), 1))
    letters = [text for text in shown.figure.axes[0].texts if text.get_text() in ("R", "W")]
    letters.sort(key=lambda text: text.get_position()[0])
    marked = [alike([edge(boxes(shown, *t.get_position())[-1])], canvas.RED) for t in letters]
    assert [text.get_text() for text in letters] == list("RRRWR")
    assert marked == [False, False, True, True, False]


def test_lines_of_the_source_are_marked_where_they_do_something():
    source = "__shared__ float s[10];\n\n  s[t] = 1;\n  s[7 - t];\n  more();\n  s[0];"
    shown = picture(reverse(), race((0, "store", 3), (7, "load", 6), 0), source=source)
    for text, marked in (("s[t] = 1;", True), ("more();", False), ("s[0];", True)):
        assert bool(boxes(shown, *place(shown, text))) == marked
    far = "\n\n  s[t] = 1;" + "\n" * 20 + "  s[0];"
    trace = reverse()
    late = trace.launches[0].accesses.copy()
    late["line"][late["line"] == 6] = 23
    launch = replace(trace.launches[0], accesses=late)
    trace = replace(trace, launches=(launch,))
    words = texts(picture(trace, race((0, "store", 3), (7, "load", 23), 0), source=far))
    assert "…" in words and {"s[t] = 1;", "s[0];"} <= set(words)


def test_a_barrier_stands_between_phases():
    again = race((0, "store", 3), (7, "load", 4), 0)  # s[0] is read once more after the barrier
    words = texts(picture(reverse(), again))
    assert {"phase 0", "phase 1", "6 other threads", "line 6"} <= set(words)
    assert "barrier: a phase of the block ends" in words
    assert "phase 0" not in texts(picture(reverse(), REVERSED))  # nothing after the barrier


def test_which_of_the_accesses_race():
    """Of a thread's many reads, the one before the write that is reported."""
    _, seen = diagnosed("shared")
    scene = faulty_scene("shared")
    words = texts(render(scene, "hazards"))
    assert seen.hazards[0].index == 32 and "thread 31 reads" in words
    assert "thread 32 writes" in words and "63 more elements with a race" in words


def test_a_race_in_a_header_is_found_without_its_lines():
    shown = picture(reverse(), replace(REVERSED, line=98, other_line=99))
    assert "8 of the 10 elements of s" in shown.caption and "beyond" not in shown.caption
    assert {"line 3", "line 4"} <= set(texts(shown))


def test_an_atomic_update_reads_what_was_there():
    def kernel(t):
        t.atomic(1, "s", 0)
        t.store(2, "s", 1)
        t.load(3, "s", 2)

    trace = simulate(kernel, (1,), (1,), {"out": (1,)}, [("s", 4)])
    found = read_unwritten(trace.launches[0].accesses, trace.arrays[1])
    assert found.tolist() == [True, False, True, False]


def test_a_race_within_a_warp_that_meets_is_not_counted():
    """Whether a __syncwarp() stands between two lanes is not in the trace."""
    one = picture(reverse(), REVERSED, source="__syncwarp();")
    assert "1 of the 10 elements of s is touched by two threads" in one.caption


def blocks():
    def kernel(t):
        t.load(2, "out", 5)
        t.store(3, "out", 5)
        t.store(4, "out", t.block[0])

    return simulate(kernel, (3,), (1,), {"out": (8,)})


def test_a_race_between_blocks_has_no_barriers():
    parts = {"block": (1, 0, 0), "space": "global", "array": "out"}
    both = race((0, "store", 3), (0, "load", 2), 5, **parts)
    shown = picture(blocks(), both)
    words = texts(shown)
    assert {"block 0", "block 1", "1 other thread", "of block 2"} <= set(words)
    assert not any(word.startswith("phase") for word in words)
    assert "Blocks run in any order" in " ".join(words)
    assert "1 of the 8 elements of out is touched by two threads in two blocks" in shown.caption
    lost = picture(blocks(), replace(both, line=3, other_line=3, access="store"))
    assert "The later write stays in out[5]" in lost.caption


def test_a_change_that_is_lost():
    def kernel(t):
        t.load(2, "out", 0)
        t.store(2, "out", 0)

    trace = simulate(kernel, (1,), (4,), {"out": (1,)})
    shown = picture(
        trace, race((0, "store", 2), (1, "load", 2), 0, space="global", array="out", count=6)
    )
    assert "out[0] is touched by two threads" in shown.caption
    assert "one of the two changes is lost. The line raced with itself 6 times" in shown.caption
    assert "thread 0 writes, thread 1 reads" not in texts(shown)  # no source, no lines


def test_a_race_that_was_not_recorded_is_drawn_from_its_report():
    trace = replace(reverse(), truncated=True)
    launch = replace(trace.launches[0], accesses=trace.launches[0].accesses[:0])
    shown = picture(replace(trace, launches=(launch,)), REVERSED)
    assert "The race lies beyond the accesses that were recorded" in shown.caption
    assert {"nothing orders these two", "thread 0", "thread 7"} <= set(texts(shown))


def test_one_access_of_many_elements_meets_one_of_one():
    def kernel(t):
        if t.thread[0] == 0:
            t.store(1, "s", 4, width=4)
        else:
            t.store(2, "s", 6)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 16)])
    shown = picture(trace, race((0, "store", 1), (1, "store", 2), 6))
    assert shown.title.endswith("race for s[6]")
    shown = picture(trace, replace(race((0, "store", 1), (1, "store", 2), 6), index=6))
    assert "3 touched without a race" in texts(shown)


def test_the_array_of_a_large_matrix_is_drawn_in_part():
    def kernel(t):
        t.store(1, "out", 700 * 500 + 123)

    trace = simulate(kernel, (1,), (2,), {"out": (900, 500)})
    words = texts(
        picture(trace, race((0, "store", 1), (1, "store", 1), 350123, space="global", array="out"))
    )
    assert "out[700][123]" in words and "a part of 900 × 500" in words


def test_an_unwritten_element():
    def kernel(t):
        if t.thread[0] < 6:
            t.store(3, "s", t.thread[0])
        yield
        t.load(5, "s", t.thread[0])
        yield
        if t.thread[0] == 0:
            t.store(8, "s", 6)

    trace = simulate(kernel, (1,), (8,), {"out": (8,)}, [("s", 10)])
    shown = picture(trace, report("uninitialized", thread=(6, 0, 0), line=5, index=6))
    assert shown.title == "kernel: thread 6 reads s[6], which nobody has written"
    assert "6 of the 10 elements of s are written, and this one is not" in shown.caption
    assert "written later, at line 8" in shown.caption
    words = texts(shown)
    assert {"nobody has written it yet", "thread 0", "6 written by then"} <= set(words)
    assert "1 more read before it is written" in words  # s[7]
    assert alike(grid(shown), *[FINE] * 6, HERE, ALSO, *[canvas.PALE] * 2)
    never = picture(trace, report("uninitialized", thread=(7, 0, 0), line=5, index=7))
    assert "nobody ever writes it" in texts(never)
    assert "Nobody writes it afterwards, either" in never.caption


def test_what_an_earlier_launch_wrote_counts_as_written():
    arrays = [Array("out", GLOBAL, (8,), 4, 0)]

    def first(t):
        t.store(1, "out", t.thread[0])

    def second(t):
        t.load(5, "out", 7)

    launches = tuple(
        traces.launch(kernel, (1,), (n,), arrays, name)
        for kernel, n, name in ((first, 3, "first"), (second, 1, "second"))
    )
    hazard = report("uninitialized", kernel="second", line=5, index=7, space="global", array="out")
    shown = picture(Trace(tuple(arrays), launches, False), hazard)
    assert "3 of the 8 elements of out are written" in shown.caption


def grid_of(picture, row: str) -> np.ndarray:
    """The colours of the cells beside a text."""
    _, y = place(picture, row)
    for image in picture.figure.axes[0].get_images():
        _, _, bottom, top = image.get_extent()
        if top <= y < bottom:
            cells = np.asarray(image.get_array())
            return cells[int((y - top) / (bottom - top) * len(cells))]
    raise AssertionError(f"no cells beside {row}")


def test_a_stray_far_away_has_cells_of_its_own():
    trace = strays()
    far = report("out-of-bounds", block=(1, 0, 0), thread=(4, 0, 0), line=2, index=999)
    words = texts(picture(trace, replace(far, array="out", space="global", access="store")))
    assert {"11", "12", "998", "999", "1,000"} <= set(words) and "19" not in words


def test_the_threads_of_another_block_are_not_those_of_this_one():
    launch = strays().launches[0]
    a = launch.accesses
    few = replace(launch, accesses=a[(a["block"] == 0) | (a["thread"] == 4)])
    beyond = report("out-of-bounds", block=(1, 0, 0), thread=(4, 0, 0), line=2, index=12)
    beyond = replace(beyond, array="out", space="global", access="store")
    shown = picture(replace(strays(), launches=(few,)), beyond)
    pale = [canvas.PALE]
    assert alike(grid_of(shown, "warp 0")[:8], *pale * 4, HERE, *pale * 3)
    assert "7 touch nothing here" in texts(shown)


def test_what_nobody_touches_beside_a_stray_is_pale():
    launch = strays().launches[0]
    alone = launch.accesses[launch.accesses["block"] == 1]
    trace = replace(strays(), launches=(replace(launch, accesses=alone),))
    beyond = report("out-of-bounds", block=(1, 0, 0), thread=(4, 0, 0), line=2, index=12)
    shown = picture(trace, replace(beyond, array="out", space="global", access="store"))
    for number, color in (("6", canvas.PALE), ("8", FINE)):
        x, y = place(shown, number)
        assert alike([face(boxes(shown, x, y - 0.26)[-1])], color)
    inks = {text.get_text(): text.get_color() for text in shown.figure.axes[0].texts}
    assert (inks["11"], inks["12"], inks["13"]) == (canvas.GREY, canvas.RED, canvas.RED)
    assert "thread of block 1 that comes here" in " ".join(texts(shown))
    assert "blank" not in " ".join(texts(shown))


def test_a_wide_access_over_the_end_is_drawn_whole():
    trace = simulate(lambda t: t.store(2, "out", 10, width=4), (1,), (1,), {"out": (16,)})
    trace = replace(trace, arrays=(replace(trace.arrays[0], shape=(12,)),))
    over = report("out-of-bounds", line=2, index=10, array="out", space="global", access="store")
    shown = picture(trace, over)
    for number in range(9, 15):
        x, y = place(shown, str(number))
        assert alike([face(boxes(shown, x, y - 0.26)[-1])], HERE) == (10 <= number < 14)


def strays() -> Trace:
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


def test_a_stray_lies_beside_the_end():
    beyond = report("out-of-bounds", block=(1, 0, 0), thread=(4, 0, 0), line=2, index=12)
    beyond = replace(beyond, array="out", space="global", access="store")
    shown = picture(strays(), beyond)
    assert shown.title == "kernel: thread 4 of block 1 writes outside of out"
    assert "out has 12 elements, the last of them out[11]" in shown.caption
    assert "is 1 element after the last. 4 threads of the grid stray at this line" in shown.caption
    words = texts(shown)
    assert {"out ends here", "3 more threads of the block outside", "4 inside"} <= set(words)
    assert (
        "12 elements; in a cell, the thread of block 1 that comes here (blank: another block's)"
        in words
    )
    for number in range(7, 16):  # the thread's own, others outside, inside, another block's
        x, y = place(shown, str(number))
        color = HERE if number == 12 else ALSO if number > 12 else FINE
        assert alike([face(boxes(shown, x, y - 0.26)[-1])], color)
    assert place(shown, "0", 0)[0] == place(shown, "8")[0]  # thread 0 of block 1 comes to out[8]
    wall = [p for c, p in lines(shown) if alike([c[:3]], canvas.INK) and p[0][0] == p[1][0]]
    assert place(shown, "11")[0] < wall[0][0][0] < place(shown, "12")[0]
    threads = grid_of(shown, "warp 0")[:8]
    assert alike(threads, *[FINE] * 4, HERE, *[ALSO] * 3)
    x, y = place(shown, "4", -1)[0], place(shown, "warp 0")[1]  # lane 4 is framed
    assert any(alike([edge(box)], canvas.INK) for box in boxes(shown, x, y))
    before = replace(beyond, index=-3)
    shown = picture(strays(), before)
    assert place(shown, "-3")[0] < place(shown, "0")[0]
    assert alike([grid_of(shown, "warp 0")[4]], HERE)
    assert "3 elements before the first" in shown.caption and "out begins here" in texts(shown)


def test_threads_that_do_not_meet():
    runs = ((3, 4, "__syncthreads"), (4, 9, "__syncthreads"), (1, 0, ""))
    apart = report("divergent-barrier", waits=runs)
    shown = picture(reverse(), apart)
    assert "Of the 8 threads of block 0, 3 wait at line 4 and 4 wait at line 9" in shown.caption
    assert "1 has left the kernel" in shown.caption
    words = texts(shown)
    assert (words.count("A"), words.count("B")) == (3, 4)
    first, second = waits.COLORS[:2]
    assert alike(grid_of(shown, "warp 0")[:8], *[first] * 3, *[second] * 4, waits.LEFT)
    assert alike([painted(shown, *place(shown, "A", 2))], first)
    assert alike([painted(shown, *place(shown, "B", 0))], second)
    assert "threads 0 … 7" in words
    wide = simulate(lambda t: t.store(1, "out", 0), (1,), (40,), {"out": (1,)})
    many = replace(apart, waits=((39, 4, "__syncthreads"), (1, 9, "__syncthreads")))
    assert {"threads 0 … 31", "threads 32 … 39"} <= set(texts(picture(wide, many)))
    assert "A: 3 threads wait at line 4" in words
    lost = report("deadlock", waits=((7, 4, "__syncthreads"), (1, 9, "__shfl_sync")))
    assert "The warp function at line 9 waits for every lane" in picture(reverse(), lost).caption


def test_a_lane_that_the_mask_names_and_that_is_gone():
    waits = ((4, 9, "__shfl_sync"), (4, 0, ""))
    gone = report("invalid-mask", line=9, other_thread=(5, 0, 0), other_block=ORIGIN, waits=waits)
    shown = picture(reverse(), gone)
    assert shown.title == "kernel: lane 5 is named by the mask, and does not come"
    assert "Of the 8 lanes of warp 0, 4 make the call at line 9." in shown.caption
    words = texts(shown)
    assert words.count("A") == 4 and "A: 4 lanes make the call" in words
    assert {"lane 5, named, is gone", "3 more do not make it"} <= set(words)
    absent = masks.ABSENT
    colors = [masks.CALLS] * 4 + [absent, masks.MISSING, absent, absent]
    assert alike(grid_of(shown, "warp 0")[:8], *colors)
    assert "other warps" not in words
    wide = simulate(lambda t: t.store(1, "out", 0), (1,), (72,), {"out": (1,)})
    waits_ = ((32, 0, ""), (8, 9, "__shfl_sync"), (32, 0, ""))
    parts = {"thread": (32, 0, 0), "other_thread": (44, 0, 0), "waits": waits_}
    shown = picture(wide, replace(gone, **parts))
    assert shown.title == "kernel: lane 12 is named by the mask, and does not come"
    assert "Of the 32 lanes of warp 1, 8 make the call" in shown.caption
    assert "other warps" in texts(shown)
    assert alike(grid_of(shown, "warp 0"), *[masks.OTHERS] * 32)
    assert alike([grid_of(shown, "warp 1")[12]], masks.MISSING)
    x, y = place(shown, "12")[0], place(shown, "warp 1")[1]
    assert any(alike([edge(box)], canvas.INK) for box in boxes(shown, x, y))
    assert not can_draw(replace(gone, message="lanes disagree"))
    assert not can_draw(replace(gone, waits=()))


# --- parts


def pairs_that_race(accesses: np.ndarray, across: bool) -> set[int]:
    """Elements that race, from the definition."""
    found = set()
    for i, a in enumerate(accesses):
        for b in accesses[:i]:
            apart = a["block"] != b["block"]
            if across != apart or (not apart and a["thread"] == b["thread"]):
                continue
            kinds = {int(a["kind"]), int(b["kind"])}
            harmless = kinds in ({LOAD}, {ATOMIC})
            if a["index"] == b["index"] and not harmless and (across or a["phase"] == b["phase"]):
                found.add(int(a["index"]))
    return found


ACCESS = st.tuples(*(st.integers(0, n) for n in (2, 1, 2, 1, 2)))


@given(st.lists(ACCESS, max_size=14), st.booleans())
@settings(max_examples=200, deadline=None)
def test_racing_elements_are_those_of_the_definition(given, across):
    accesses = np.zeros(len(given), ACCESSES)
    for one, (index, block, thread, phase, kind) in zip(accesses, given, strict=True):
        values = {"index": index, "byte": 4 * index, "size": 4, "block": block}
        values |= {"thread": thread, "phase": phase, "kind": (LOAD, STORE, ATOMIC)[kind]}
        for name, value in values.items():
            one[name] = value
    mask = racing(accesses, Array("x", GLOBAL, (3,), 4, 0), 3, across, warps=False)
    assert set(np.flatnonzero(mask)) == pairs_that_race(accesses, across)


def lines(picture) -> list[tuple]:
    """(colour, points) of what was drawn as lines."""
    found = []
    for collection in picture.figure.axes[0].collections:
        points = [tuple(point) for segment in collection.get_segments() for point in segment]
        found.append((collection.get_colors()[0], points))
    return found


def test_like_events_are_one():
    read, write = Event(0, LOAD, 3, 0), Event(1, STORE, 4, 0)
    marked = replace(read, mark=True)
    merged = together([read, read, marked, write, read, replace(read, phase=1)])
    assert merged == [
        replace(marked, count=3),
        write,
        read,
        replace(read, phase=1),
    ]


def test_events_around_the_hazard_are_shown():
    many = [Event(i % 2, LOAD, i, 0, count=10, mark=i in (20, 22)) for i in range(40)]
    shown = some(many)
    assert shown[0] == 180 and shown[-1] == 160  # accesses that are left out
    assert [event.line for event in shown[1:-1]] == [18, 19, 20, 21, 22, 23]
    apart = [Event(i % 2, LOAD, i, 0, mark=i in (1, 30)) for i in range(40)]
    lines = [e.line if isinstance(e, Event) else f"{e} more" for e in some(apart)]
    assert lines == [0, 1, 2, "26 more", 29, 30, 31, "8 more"]


def test_lines_are_named_once_where_there_is_little_room():
    assert labels([(0.0, 16), (3.0, 16)]) == [(0.0, "line 16"), (3.0, "line 16")]
    assert labels([(0.0, 16), (0.3, 16)]) == [(0.15, "line 16")]
    assert labels([(0.0, 16), (0.3, 17), (3.0, 5)]) == [(0.0, "16"), (0.3, "17"), (3.0, "5")]
    assert labels([]) == []


def test_waits_are_read_with_the_hazard_that_follows():
    waits = '{"event":"waits","waits":[{"threads":40,"line":7,"for":"__syncthreads"}]}'
    hazard = '{"event":"hazard","number":%d,"kind":"divergent-barrier","line":7,"file":"a.cu"}'
    one, two = reports.read("\n".join([waits, hazard % 1, hazard % 2]))
    assert one.waits == ((40, 7, "__syncthreads"),) and two.waits == ()


# --- kernels that the emulator ran


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
        ("no guard", "14 threads of the grid stray at this line, in block 1"),
        ("before", "1 element before the first. 1 thread of the grid strays"),
        ("far", "999,969 elements after the last. 32 threads of the grid stray"),
        ("over the end", "begins at out[4] and reaches beyond the end"),
        ("shared row", "Element 64 would be row 8, column 0"),
        ("dynamic too small", "32 threads of the grid stray"),
        ("sum not set", "An atomic update builds on the value that is there"),
        ("half a tile", "40 of the 64 elements of s are written, and this one is not"),
        ("written later", "It is written later, at line 5"),
        ("in a branch", "40 wait at line 4 and 24 wait at line 7"),
        ("and left", "60 wait at line 5 and 30 wait at line 7; 10 have left the kernel"),
        ("deadlock", "16 wait at line 5 and 48 wait at line 6. The warp function at line 5"),
    ],
)
def test_real_kernels(name, said):
    shown = render(faulty_scene(name), "hazards")
    assert said in shown.caption and shown.alt.endswith(".")


def starter(id):
    exercise = catalog.load(id)
    text = catalog.starter_text(exercise)
    return compile_answer(exercise, text, backend="emulator")


def test_the_workbook_s_own_race(capsys, monkeypatch):
    kernel, shown = starter("02_shared_memory_tiling/gemm_tiled_race"), []
    monkeypatch.setattr(explain, "display", shown.append)
    explain.diagnose(kernel)
    assert "race between two threads" in capsys.readouterr().out
    first, table = shown
    assert first.title == "gemm_tiled_race: two threads race for As[0][1]"
    assert "1,024 of the 1,024 elements of As" in first.caption
    assert "what each line asks of memory" in table.caption
    second = draw(kernel, "hazards", hazard=2)
    assert "race for Bs[1][0]" in second.title and "Hazard 2 of 2." in " ".join(texts(second))
    with pytest.raises(WorkbookError, match="there is no hazard 3: gemm_tiled_race has 2 hazards"):
        explain.diagnose(kernel, hazard=3)


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
    shown = draw(starter(f"05_debugging/{name}"), "hazards")
    assert said in shown.caption and shown.title.startswith(f"{name}: ")


def test_a_kernel_without_hazards_has_no_picture_of_them():
    exercise = catalog.load("00_start_here/axpy")
    text = catalog.solution_text(exercise)
    kernel = compile_answer(exercise, text, backend="emulator")
    with pytest.raises(WorkbookError, match="axpy has no hazards at n = .*: nothing to draw"):
        draw(kernel, "hazards")


def test_hazards_without_a_picture_are_told_in_words():
    odd = report("misaligned", line=3)
    assert not can_draw(odd) and can_draw(REVERSED)
    with pytest.raises(WorkbookError, match="hazard 1 has no picture; in words:\n.*misaligned"):
        picture(reverse(), odd)
    for number in (0, 2):
        with pytest.raises(WorkbookError, match=f"no hazard {number}: kernel has one hazard"):
            picture(reverse(), REVERSED, number=number)
    with pytest.raises(WorkbookError, match="hazard 1 has no picture"):
        picture(reverse(), replace(REVERSED, kernel="another"))
