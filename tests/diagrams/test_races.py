"""A picture of a race names both threads, tells them apart, and says what may come of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.faulty import diagnosed, faulty_scene
from support.hazards import GLOBAL_OUT, picture, race
from support.reading import accesses, cells, excerpt, framed, joined, numbered, order_of, words
from support.traces import simulate

from utils.diagrams.draw import render
from utils.diagrams.parts.conflicts import racing
from utils.diagrams.parts.timeline import Event, labels, some, together
from utils.watch.trace import ACCESSES, ATOMIC, GLOBAL, LOAD, STORE, Array

VERDICT = "nothing orders these two"
SOURCE = "__shared__ float s[10];\n\n  s[t] = 1;\n  s[7 - t];\n  more();\n  s[0];"


def reverse():
    """8 threads write s[t], and without a barrier read s[7 - t]; then all meet and read s[0]."""

    def kernel(t):
        t.store(3, "s", t.thread[0])
        t.load(4, "s", 7 - t.thread[0])
        yield
        t.load(6, "s", 0)

    return simulate(kernel, (2,), (8,), {"out": (8,)}, [("s", 10)])


REVERSED = race((0, "load", 4), (7, "store", 3), 7)
AGAIN = race((0, "store", 3), (7, "load", 4), 0)  # s[0] is read once more after the barrier


@pytest.fixture(scope="module")
def shown():
    return picture(reverse(), REVERSED, source=SOURCE)


def written(index: int, **tensors):
    """Two threads that write one element at line 1."""
    shared = [] if tensors else [("s", 500)]
    array = "out" if tensors else "s"
    kernel = simulate(
        lambda t: t.store(1, array, index), (1,), (2,), tensors or {"out": (1,)}, shared
    )
    more = GLOBAL_OUT if tensors else {}
    return picture(kernel, race((0, "store", 1), (1, "store", 1), index, **more))


# --- who, where, and in which order


def test_the_title_and_the_sentence_below_name_the_element_the_threads_and_the_lines(shown):
    assert shown.title == "kernel: two threads race for s[7]"
    said = " ".join(words(shown))
    assert "Thread 0 reads s[7] at line 4; thread 7 writes s[7] at line 3." in said
    assert "Both are in block 0, and no barrier stands between: either may come first." in said
    assert "s[7] marked among the cells of its array" in shown.alt and VERDICT in shown.alt


def test_each_of_the_two_has_a_row_of_its_own_in_the_order_of_the_run(shown):
    assert order_of(shown, VERDICT) == ["thread 0 R!", "thread 7 W!"]
    assert {a.detail for a in accesses(shown, VERDICT)} == {"warp 0"}
    assert joined(shown, VERDICT) == ["thread 0", "thread 7"]
    assert {"Accesses to s[7]", "line 3", "line 4", "R: reads", "W: writes"} <= set(words(shown))
    turned = picture(reverse(), race((0, "store", 3), (7, "load", 4), 0))
    assert [a for a in order_of(turned, VERDICT) if "!" in a] == ["thread 0 W!", "thread 7 R!"]


def test_the_lines_that_race_are_marked_in_the_source_and_say_who_is_there(shown):
    first, second = excerpt(shown)
    assert (first.number, first.source, first.note) == ("3", "s[t] = 1;", "thread 7 writes")
    assert (second.number, second.source, second.note) == ("4", "s[7 - t];", "thread 0 reads")
    late = picture(reverse(), race((0, "store", 3), (7, "load", 6), 0), source=SOURCE)
    assert [line.number for line in excerpt(late) if line.marked] == ["3", "6"]
    assert [line.source for line in excerpt(late)][2] == "more();"  # between them


def test_lines_far_apart_are_shown_without_what_is_between():
    trace, far = reverse(), "\n\n  s[t] = 1;" + "\n" * 20 + "  s[0];"
    late = trace.launches[0].accesses.copy()
    late["line"][late["line"] == 6] = 23
    trace = replace(trace, launches=(replace(trace.launches[0], accesses=late),))
    shown = picture(trace, race((0, "store", 3), (7, "load", 23), 0), source=far)
    assert [line.number for line in excerpt(shown)] == ["3", "23"] and "…" in words(shown)


def test_without_the_source_no_lines_are_shown():
    assert excerpt(picture(reverse(), REVERSED)) == []


# --- what is said and what is painted agree


def test_the_cells_of_the_array_are_as_many_as_the_legend_and_the_caption_say(shown):
    (row,) = cells(shown)
    assert row == ["7 more elements with a race"] * 7 + ["this race"] + ["2 not touched"] * 2
    assert "8 of the 10 elements of s are touched by two threads without a barrier" in shown.caption


def test_the_element_of_the_race_is_framed_and_named(shown):
    assert framed(shown) == [(0, 7, "this race")] and "s[7]" in words(shown)
    assert "in shared memory of block 0" in words(shown)


@pytest.mark.parametrize(
    "index, shape, name, cell, rows",
    [
        (130, None, "s[130]", (4, 2), {0: "0", 4: "128", 8: "256"}),  # 32 in a line
        (20, (100, 1), "out[20][0]", (1, 4), {0: "0", 1: "16", 6: "96"}),  # one column: in lines
        (350123, (900, 500), "out[700][123]", (36, 35), {0: "664"}),  # the part around it
    ],
)
def test_lines_of_a_large_array_are_numbered_and_of_a_very_large_one_a_part_is_drawn(
    index, shape, name, cell, rows
):
    shown = written(index, **({"out": shape} if shape else {}))
    assert name in words(shown) and framed(shown) == [(*cell, "this race")]
    assert rows.items() <= numbered(shown).items()
    assert ("a part of 900 × 500" in words(shown)) == (shape == (900, 500))


def test_only_what_touches_that_element_is_in_its_time_line():
    def kernel(t):
        for index in (3, 4, 5) if t.thread[0] == 0 else (4,):
            t.store(index, "s", index)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 8)])
    shown = picture(trace, race((0, "store", 4), (1, "store", 4), 4))
    assert order_of(shown, VERDICT) == ["thread 0 W!", "thread 1 W!"]
    assert not {"line 3", "line 5"} & set(words(shown))


def test_of_many_accesses_those_of_the_race_alone_are_marked():
    shown = picture(reverse(), AGAIN)
    assert [a for a in order_of(shown, VERDICT) if "!" in a] == ["thread 0 W!", "thread 7 R!"]
    assert joined(shown, VERDICT) == ["thread 0", "thread 7"] and len(order_of(shown, VERDICT)) > 2


def test_of_one_threads_accesses_the_last_before_the_other_one_is_marked():
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
    one, other = "thread 0 R", "thread 1 W!"
    assert order_of(shown, VERDICT) == [one, one, f"{one}!", other, one]


def test_repeated_accesses_are_counted():
    def kernel(t):
        for _ in range(12 if t.thread[0] == 0 else 1):
            t.store(1, "s", 0)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 1)])
    shown = picture(trace, race((0, "store", 1), (1, "store", 1), 0))
    assert [a.count for a in accesses(shown, VERDICT)] == ["12×", ""]


def test_barriers_stand_between_the_phases_where_there_are_several():
    said = words(picture(reverse(), AGAIN))
    assert {"phase 0", "phase 1", "6 other threads", "line 6"} <= set(said)
    assert "barrier: a phase of the block ends" in said
    assert "phase 0" not in words(picture(reverse(), REVERSED))  # nothing after the barrier


# --- what may come of it


def blocks():
    def kernel(t):
        t.load(2, "out", 5)
        t.store(3, "out", 5)
        t.store(4, "out", t.block[0])

    return simulate(kernel, (3,), (1,), {"out": (8,)})


ACROSS = race((0, "store", 3), (0, "load", 2), 5, block=(1, 0, 0), **GLOBAL_OUT)


def test_of_two_blocks_the_blocks_are_named_and_no_barriers():
    shown = picture(blocks(), ACROSS)
    said = words(shown)
    assert [a for a in order_of(shown, VERDICT) if "!" in a] == ["block 0 W!", "block 1 R!"]
    assert {"block 0", "block 1", "1 other thread", "of block 2"} <= set(said)
    assert not any(word.startswith("phase") for word in said)
    assert "thread 0 reads out[5] at line 2" not in " ".join(said)  # of block 1, it says
    assert "thread 0 of block 1 reads out[5] at line 2. Blocks run in any order" in " ".join(said)
    assert "1 of the 8 elements of out is touched by two threads in two blocks" in shown.caption
    assert "warp" not in shown.caption


READ_FIRST = "the read came first and saw the old value of s[7]"
WROTE_FIRST = "the write came first and the read saw the new value of s[0]"


@pytest.mark.parametrize(
    "trace, hazard, said",
    [
        (reverse, REVERSED, READ_FIRST),
        (reverse, AGAIN, WROTE_FIRST),
        (reverse, REVERSED, "That both threads are in warp 0 orders nothing"),
        (blocks, replace(ACROSS, line=3, access="store"), "The later write stays in out[5]"),
        (blocks, replace(ACROSS, line=3, access="atomic"), "plain write to out[5] may come betwee"),
    ],
)
def test_the_caption_says_what_may_come_of_it(trace, hazard, said):
    assert said in picture(trace(), hazard).caption


def test_a_change_that_is_lost_and_how_often_the_line_raced():
    def kernel(t):
        t.load(2, "out", 0)
        t.store(2, "out", 0)

    trace = simulate(kernel, (1,), (4,), {"out": (1,)})
    hazard = race((0, "store", 2), (1, "load", 2), 0, count=6, **GLOBAL_OUT)
    caption = picture(trace, hazard).caption
    assert "out[0] is touched by two threads" in caption
    assert "one of the two changes is lost. The line raced with itself 6 times" in caption
    shown = picture(trace, hazard, source="\n  out[0] += 1;")
    assert [line.note for line in excerpt(shown)] == ["thread 0 writes, thread 1 reads"]


# --- what the trace does not hold


def test_a_race_that_was_not_recorded_is_drawn_from_its_report():
    trace = reverse()
    launch = replace(trace.launches[0], accesses=trace.launches[0].accesses[:0])
    shown = picture(replace(trace, truncated=True, launches=(launch,)), REVERSED)
    assert "The race lies beyond the accesses that were recorded" in shown.caption
    assert order_of(shown, VERDICT) == ["thread 0 R!", "thread 7 W!"]


def test_a_race_in_a_header_is_found_without_its_lines():
    shown = picture(reverse(), replace(REVERSED, line=98, other_line=99))
    assert "8 of the 10 elements of s" in shown.caption and "beyond" not in shown.caption
    assert {"line 3", "line 4"} <= set(words(shown))


def test_a_race_within_a_warp_that_meets_is_not_counted():
    """Whether a __syncwarp() stands between two lanes is not in the trace."""
    one = picture(reverse(), REVERSED, source="__syncwarp();")
    assert "1 of the 10 elements of s is touched by two threads" in one.caption


def test_one_access_of_many_elements_meets_one_of_one():
    def kernel(t):
        if t.thread[0] == 0:
            t.store(1, "s", 4, width=4)
        else:
            t.store(2, "s", 6)

    trace = simulate(kernel, (1,), (2,), {"out": (1,)}, [("s", 16)])
    shown = picture(trace, race((0, "store", 1), (1, "store", 2), 6))
    assert shown.title.endswith("race for s[6]")
    fine, none = "3 touched without a race", "12 not touched"
    assert cells(shown) == [[none] * 4 + [fine] * 2 + ["this race", fine] + [none] * 8]


def test_of_a_threads_many_reads_the_one_before_the_reported_write_is_shown():
    _, seen = diagnosed("shared")
    shown = render(faulty_scene("shared"), "hazards")
    assert seen.hazards[0].index == 32 and "63 more elements with a race" in words(shown)
    assert [a for a in order_of(shown, VERDICT) if "!" in a] == ["thread 31 R!", "thread 32 W!"]


# --- parts


def pairs_that_race(accesses: np.ndarray, across: bool) -> set[int]:
    """Elements that race, from the definition."""
    pairs = set()
    for i, a in enumerate(accesses):
        for b in accesses[:i]:
            apart = a["block"] != b["block"]
            if across != apart or (not apart and a["thread"] == b["thread"]):
                continue
            kinds = {int(a["kind"]), int(b["kind"])}
            harmless = kinds in ({LOAD}, {ATOMIC})
            if a["index"] == b["index"] and not harmless and (across or a["phase"] == b["phase"]):
                pairs.add(int(a["index"]))
    return pairs


ACCESS = st.tuples(*(st.integers(0, n) for n in (2, 1, 2, 1, 2)))


@given(st.lists(ACCESS, max_size=14), st.booleans())
@settings(max_examples=200, deadline=None)
def test_racing_elements_are_those_of_the_definition(drawn, across):
    accesses = np.zeros(len(drawn), ACCESSES)
    for one, (index, block, thread, phase, kind) in zip(accesses, drawn, strict=True):
        values = {"index": index, "byte": 4 * index, "size": 4, "block": block}
        values |= {"thread": thread, "phase": phase, "kind": (LOAD, STORE, ATOMIC)[kind]}
        for name, value in values.items():
            one[name] = value
    mask = racing(accesses, Array("x", GLOBAL, (3,), 4, 0), 3, across, warps=False)
    assert set(np.flatnonzero(mask)) == pairs_that_race(accesses, across)


def test_like_events_are_one():
    read, write = Event(0, LOAD, 3, 0), Event(1, STORE, 4, 0)
    marked, later = replace(read, mark=True), replace(read, phase=1)
    merged = together([read, read, marked, write, read, later])
    assert merged == [replace(marked, count=3), write, read, later]


def test_events_around_the_hazard_are_shown_and_the_others_counted():
    many = [Event(i % 2, LOAD, i, 0, count=10, mark=i in (20, 22)) for i in range(40)]
    shown = some(many)
    assert shown[0] == 180 and shown[-1] == 160  # accesses that are left out
    assert [event.line for event in shown[1:-1]] == [18, 19, 20, 21, 22, 23]
    apart = [Event(i % 2, LOAD, i, 0, mark=i in (1, 30)) for i in range(40)]
    lines = [e.line if isinstance(e, Event) else f"{e} more" for e in some(apart)]
    assert lines == [0, 1, 2, "26 more", 29, 30, 31, "8 more"]


@pytest.mark.parametrize(
    "places, named",
    [
        ([], []),
        ([(0.0, 16), (3.0, 16)], [(0.0, "line 16"), (3.0, "line 16")]),
        ([(0.0, 16), (0.3, 16)], [(0.15, "line 16")]),
        ([(0.0, 16), (0.3, 17), (3.0, 5)], [(0.0, "16"), (0.3, "17"), (3.0, "5")]),
    ],
)
def test_lines_are_named_once_where_there_is_little_room(places, named):
    assert labels(places) == named
