"""The runtime's JSON lines become sentences with a file and a line."""

import dataclasses
import json
import shutil
import subprocess

import pytest

from utils.emulator import symbols
from utils.emulator.build import include_dir
from utils.emulator.reports import cause, messages, read, refused
from utils.ground.paths import workspace

EVENT = {
    "event": "error",
    "kind": "deadlock",
    "kernel": "tree",
    "block": [2, 0, 0],
    "thread": [3, 0, 0],
    "file": "tree.cu",
    "line": 14,
    "message": "31 threads wait at line 14",
}


def text(**changes) -> str:
    event = {key: value for key, value in (EVENT | changes).items() if value is not None}
    return str(read(json.dumps(event))[0])


def test_a_report_says_where_what_who_and_what_to_do():
    place, who, advice = text().splitlines()
    assert place == "tree.cu:14: the threads wait for each other forever in kernel 'tree'"
    assert who == "  block (2, 0, 0), thread (3, 0, 0): 31 threads wait at line 14"
    assert advice.startswith("  Every thread of the block must reach")


def test_a_kind_that_is_new_is_reported_all_the_same():
    assert text(kind="cosmic-ray").startswith("tree.cu:14: cosmic ray in kernel 'tree'\n")


def test_host_code_has_no_block_and_no_kernel():
    report = text(kind="crash", kernel=None, block=None, thread=None, message="access to 0x10")
    assert report.startswith("tree.cu:14: the host code crashed\n  access to 0x10\n")


def test_an_unknown_address_is_given_as_it_is():
    report = text(file=None, line=None, module="/nowhere/lib.so", offset="0x1f30")
    assert "in kernel 'tree' at address 0x1f30 in lib.so\n" in report


def test_a_mask_that_names_a_lane_that_is_gone():
    hazard = {
        "event": "hazard", "number": 1, "kind": "invalid-mask", "kernel": "tree",
        "variant": "exited-lane",
        "block": [0, 0, 0], "thread": [3, 0, 0], "file": "tree.cu", "line": 14,
        "other_block": [0, 0, 0], "other_thread": [16, 0, 0],
    }  # fmt: skip
    story = str(read(json.dumps(hazard))[0]).splitlines()[1]
    assert story.endswith(
        "the mask names thread (16, 0, 0), which comes to the kernel's end without this call"
    )


def test_a_race_names_both_parties():
    hazard = {
        "event": "hazard", "kind": "race", "space": "shared", "kernel": "tree",
        "block": [0, 0, 0], "thread": [3, 0, 0], "file": "tree.cu", "line": 14,
        "access": "store", "array": "sums", "index": 5, "count": 24,
        "other_block": [0, 0, 0], "other_thread": [5, 0, 0], "other_file": "tree.cu",
        "other_line": 12, "other_access": "load",
    }  # fmt: skip
    place, story, advice = str(read(json.dumps(hazard))[0]).splitlines()
    assert place == "tree.cu:14: race between two threads in kernel 'tree', 24 times"
    assert story == (
        "  block (0, 0, 0), thread (3, 0, 0): writes sums[5]; thread (5, 0, 0) reads it at line 12"
    )
    assert "__syncthreads()" in advice
    hazard |= {"other_block": [1, 0, 0], "other_file": "x.cuh", "space": "global"}
    story = str(read(json.dumps(hazard))[0]).splitlines()[1]
    assert story.endswith("thread (5, 0, 0) of block (1, 0, 0) reads it at line 12 of x.cuh")


def test_an_access_out_of_bounds_names_the_element():
    report = text(kind="out-of-bounds", message=None, access="load", array="x", index=-1)
    assert "tree.cu:14: access outside of an array in kernel 'tree'\n" in report
    assert "thread (3, 0, 0): reads x[-1]\n" in report


OUT_OF_BOUNDS = {
    "kind": "out-of-bounds",
    "message": None,
    "access": "load",
    "array": "x",
    "index": 4,
}


def test_a_wide_access_out_of_bounds_names_all_its_elements_and_the_size_of_the_array():
    assert "reads x[4] to x[7]; x has 6 elements\n" in text(**OUT_OF_BOUNDS, last=7, length=6)
    assert "reads x[4]; x has 1 element\n" in text(**OUT_OF_BOUNDS, last=4, length=1)
    assert "reads x[4]\n" in text(**OUT_OF_BOUNDS | {"kind": "uninitialized"}, last=7, length=6)
    assert "the whole matrix" in text(**OUT_OF_BOUNDS, space="shared", variant="shared")
    assert "the whole matrix" not in text(**OUT_OF_BOUNDS, space="global")


@pytest.mark.parametrize(("shape", "length"), [((3, 5), "In 3 rows of 5 elements"), ((1, 1), "")])
def test_the_length_of_a_row_is_asked_about_where_there_are_rows(shape, length):
    event = {**EVENT, **OUT_OF_BOUNDS}
    report = dataclasses.replace(read(json.dumps(event))[0], shape=shape)
    assert length in str(report) and ("rows of" in str(report)) == bool(length)


def test_a_division_by_zero_is_no_fault_of_the_host():
    said = text(kind="crash", message="integer division by zero")
    assert "a whole number divided by 0 in kernel 'tree'" in said and "host" not in said


def test_an_element_of_a_shared_array_is_written_as_in_the_code():
    shared = {"kind": "race", "message": None, "access": "store", "array": "As", "space": "shared"}
    assert "writes As[1][0]\n" in text(**shared, index=32, extents=[32, 32])
    assert "writes As[1][2][3]\n" in text(**shared, index=51, extents=[2, 4, 8])
    assert "writes As[7]\n" in text(**shared, index=7, extents=[32])
    beyond = text(**OUT_OF_BOUNDS | {"index": 1024}, last=1024, length=1024, extents=[32, 32])
    assert "reads x[32][0]; x has 1,024 elements, 32 x 32\n" in beyond


def test_headers_of_the_workbook_go_by_their_names():
    ours = str(workspace().include / "quads.cuh")
    assert text(file=ours, line=7).startswith("quads.cuh:7: ")
    assert text(file="/srv/tree.cu").startswith("/srv/tree.cu:14: ")
    other = {"other_file": ours, "other_line": 9, "other_thread": [1, 0, 0]}
    sides = {"kind": "race", "message": None, "access": "store", "other_access": "load"}
    assert "at line 9 of quads.cuh" in text(**sides, **other, other_block=[2, 0, 0])


def test_a_kernel_that_is_a_parameter_of_its_launcher_has_no_name():
    assert "kernel" not in text(kernel="kernel").splitlines()[0]


def test_reports_of_one_cause_are_one():
    sides = {"kind": "race", "array": "As", "line": 15, "other_file": "tree.cu", "other_line": 18}
    turned = sides | {"line": 18, "other_line": 15}
    another = sides | {"array": "Bs"}
    events = [
        EVENT | changes for changes in (sides, sides | {"thread": [9, 0, 0]}, turned, another)
    ]
    first, again, reverse, other = read("\n".join(map(json.dumps, events)))
    assert cause(first) == cause(again) == cause(reverse) != cause(other)


def test_what_to_do_about_memory_that_nobody_has_written_depends_on_where_it_is():
    unwritten = OUT_OF_BOUNDS | {"kind": "uninitialized"}
    assert "index right on both sides" in text(**unwritten, variant="global")
    assert "cudaMemset" not in text(**unwritten, variant="global")
    assert "cudaMemset" not in text(**unwritten)
    assert "tile's edges" in text(**unwritten)


def race(**changes) -> str:
    parties = {"other_block": [2, 0, 0], "other_thread": [5, 0, 0], "other_file": "tree.cu"}
    accesses = {"access": "load", "other_access": "store", "other_line": 14, "space": "shared"}
    race = {"kind": "race", "message": None, "array": "s", "index": 1}
    return text(**race | parties | accesses | changes)


def test_what_to_do_about_a_race_depends_on_its_two_sides():
    assert "behind this line, in the loop" in race()
    assert "this round and the next" in race(other_line=12)
    assert "two threads write the same element" in race(variant="stores")
    assert "two blocks write the same element" in race(variant="stores-of-blocks")
    assert "Blocks run in any order" in race(variant="blocks")
    first_value = race(variant="atomic")
    assert "before the launch" in first_value and "__syncthreads" not in first_value
    assert "__syncthreads" in race(access="load", other_access="atomic")
    mild = race(access="store", variant="same-value")
    assert "writes it at line 14, with the same value\n" in mild and "harmless" in mild


def test_events_that_are_no_faults_are_passed_over():
    launch = {"event": "launch", "kernel": "tree", "grid": [1, 1, 1], "instructions": []}
    assert read(json.dumps(launch)) == []


def test_lines_that_broke_off_are_passed_over():
    whole = json.dumps(EVENT)
    assert len(read(f'{whole}\n{whole[:40]}\n[1]\n"a"\n\n{whole}\n')) == 2


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library whose function inlines another, and the offsets of its instructions."""
    return build(tmp_path_factory.mktemp("library"))


def build(folder, line=7):
    source = folder / "outer.cpp"
    source.write_text(
        f'#line {line} "inner.h"\n'
        "static inline __attribute__((always_inline)) int inner(int* p) { return *p * 3; }\n"
        '#line 20 "outer.cu"\n'
        'extern "C" int outer(int* p) {\n'
        "    return inner(p + 5);\n"
        "}\n"
    )
    made = folder / "libouter.so"
    command = ["g++", "-O2", "-g1", "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    listed = subprocess.run(["nm", str(made)], capture_output=True, text=True, check=True).stdout
    start = next(int(line.split()[0], 16) for line in listed.splitlines() if "outer" in line)
    return str(made), [hex(start + k) for k in range(8)]


def test_an_offset_becomes_a_source_line(library):
    module, offsets = library
    places = symbols.places((module, offset) for offset in offsets)
    lines = {(file.rpartition("/")[2], line) for file, line in filter(None, places.values())}
    assert ("inner.h", 7) in lines
    assert lines <= {("inner.h", 7)} | {("outer.cu", line) for line in (20, 21, 22)}


def test_a_line_of_the_emulator_is_no_place_in_a_source(monkeypatch):
    mine, theirs, system = ("./k.cu", 3), (f"{include_dir()}/emulator/launch.h", 45), ("/usr/m", 1)
    seen = {(theirs, mine): [("k.cu", 3)], (theirs, system): [system], (theirs,): []}
    for frames, lines in seen.items():
        monkeypatch.setattr(symbols, "_frames", lambda module, offsets, f=frames: [f])
        assert symbols.chains([("m.so", "0x10")]) == {("m.so", "0x10"): lines}
        assert symbols.places([("m.so", "0x10")]) == {("m.so", "0x10"): (lines or [None])[0]}


def test_where_a_thread_has_hardly_begun_the_line_is_the_one_that_comes_next(monkeypatch):
    mine, theirs = ("./k.cu", 3), (f"{include_dir()}/emulator/launch.h", 45)
    narrow = (f"{include_dir()}/emulator/narrow.h", 7)
    for first, then, place in (
        ((theirs,), (mine, theirs), ("k.cu", 3)),
        ((theirs,), (mine,), None),  # another function
        ((narrow,), (mine, theirs), None),
    ):
        code = {**dict.fromkeys(range(16, 24), first), **dict.fromkeys(range(24, 99), then)}
        monkeypatch.setattr(symbols, "_frames", lambda _, offsets, c=code: [c[o] for o in offsets])
        assert symbols.places([("m.so", "0x10")]) == {("m.so", "0x10"): place}


def test_many_offsets_become_lines_of_one_file(library):
    module, offsets = library
    numbers = [int(offset, 16) for offset in offsets]
    inner, outer = (symbols.resolve_lines(module, numbers, f) for f in ("inner.h", "outer.cu"))
    assert set(inner) == {0, 7} and len(inner) == len(offsets)
    assert 21 in outer and set(outer) <= {0, 20, 21, 22}  # 0: behind the function's end
    assert symbols.resolve_lines(module, [*numbers[:1], 1 << 40], "nner.h") == [0, 0]


def first_inlined(library) -> tuple[tuple[str, str], str]:
    """A code address of the inlined function, and the path of its file."""
    places = symbols.places((library[0], offset) for offset in library[1])
    codes = (code for code, place in places.items() if place and place[0].endswith("inner.h"))
    code = next(codes)
    return code, places[code][0]


@pytest.fixture
def lookups(monkeypatch):
    """The offsets that addr2line is asked for, a list for each of its runs; nothing is known."""
    runs, run = [], subprocess.run

    def count(command, input=None, **options):
        runs.extend([input.split("\n")] if input else [])
        return run(command, input=input, **options)

    monkeypatch.setattr(subprocess, "run", count)
    monkeypatch.setattr(symbols, "_known", {})
    return runs


def test_addr2line_is_asked_once_for_each_offset(library, lookups):
    module, offsets = library
    first = symbols.places((module, offset) for offset in offsets[:4])
    again = symbols.places((module, offset) for offset in offsets)
    assert lookups == [offsets[:4], offsets[4:]]
    assert first.items() <= again.items() and any(first.values())


def test_no_more_lines_are_remembered_than_that(library, lookups, monkeypatch):
    monkeypatch.setattr(symbols, "KEPT", 3)
    codes = [(library[0], offset) for offset in library[1]]
    assert symbols.places(codes) == symbols.places(codes)
    assert len(symbols._known) == 3
    assert lookups[1] == library[1][:-3]  # those that were asked for last are still known


def test_a_library_that_is_built_anew_has_lines_of_its_own(tmp_path, lookups):
    module, offsets = build(tmp_path)
    numbers = [int(offset, 16) for offset in offsets]
    assert 7 in symbols.resolve_lines(module, numbers, "inner.h")
    assert build(tmp_path, line=9) == (module, offsets)
    assert set(symbols.resolve_lines(module, numbers, "inner.h")) == {0, 9}


def test_the_emulators_own_lines_give_way_to_the_callers(library, monkeypatch):
    code, header = first_inlined(library)
    monkeypatch.setattr(symbols, "include_dir", lambda: header)
    file, line = symbols.places([code])[code]
    assert (file.rpartition("/")[2], line) == ("outer.cu", 21)
    monkeypatch.undo()


def sources(tmp_path):
    """Texts of a kernel's file, which the outermost line is in, and of a header's."""
    known = {"outer.cu": {21: "    return inner(p + 5);"}, "inner.h": {7: "int inner();"}}

    def text(file: str, line: int) -> str:
        return known.get(file.rpartition("/")[2], {}).get(line, "")

    return text


def test_what_a_header_does_is_told_at_the_line_of_the_kernel_that_called_it(library, tmp_path):
    (module, inner), _ = first_inlined(library)
    event = {key: value for key, value in EVENT.items() if key not in ("file", "line")}
    event |= {"module": module, "offset": inner}
    (report,) = read(json.dumps(event), sources(tmp_path))
    assert report.place.endswith("outer.cu:21") and report.within[0][1] == 7
    head, own, header, *_ = str(report).splitlines()
    assert head.endswith("outer.cu:21: the threads wait for each other forever in kernel 'tree'")
    assert own == "    21 | return inner(p + 5);" and header == "  inner.h:7 | int inner();"
    assert "by way of" not in str(report), "the quotes say it"
    unknown = {"outer.cu": "x", "inner.h": ""}
    (report,) = read(json.dumps(event), lambda file, _: unknown[file.rpartition("/")[2]])
    assert "\n  by way of inner.h:7\n" in str(report)
    (hazard,) = read(json.dumps(event | {"file": "inner.h", "line": 7}), sources(tmp_path))
    assert hazard.line == 21 and hazard.within[0][1] == 7


def test_a_launch_is_no_caller(library, tmp_path):
    (module, inner), _ = first_inlined(library)
    event = {key: value for key, value in EVENT.items() if key not in ("file", "line")}
    event |= {"module": module, "offset": inner}
    for launch in ("kernel<<<1, 1>>>(p);", ""):
        (report,) = read(json.dumps(event), lambda file, line, text=launch: text)
        assert report.place.endswith("inner.h:7") and not report.within


def test_advice_is_given_once_for_several_of_a_kind():
    one, other = read(f"{json.dumps(EVENT)}\n{json.dumps(EVENT | {'line': 20})}")
    first, second = messages([one, other])
    assert first == str(one) and "Every thread of the block must reach" not in second


def test_without_addr2line_the_address_remains(library, monkeypatch):
    module, offsets = library
    monkeypatch.setattr(shutil, "which", lambda name: None)
    event = EVENT | {"module": module, "offset": offsets[0]}
    del event["file"], event["line"]
    assert f"at address {offsets[0]} in libouter.so" in str(read(json.dumps(event))[0])


@pytest.mark.parametrize(
    ("line", "adds"),
    [("x[i] += a;", True), ("x[i]++;", True), ("y[i] = x[i];", False), ("sum += x[i];", False)],
)
def test_who_adds_to_nothing_is_told_of_the_first_value(line, adds):
    event = EVENT | OUT_OF_BOUNDS | {"kind": "uninitialized", "variant": "global", "message": ""}
    (report,) = read(json.dumps(event), lambda file, number: line)
    assert ("float sum = 0" in str(report)) == adds


def test_equal_values_from_many_threads_of_several_blocks_are_asked_for_their_index():
    accesses = {
        "access": "store",
        "other_access": "store",
        "variant": "same-value",
        "space": "global",
    }
    assert "blockIdx.x" not in race(**accesses)
    many = race(**accesses, other_block=[0, 0, 0], count=765)
    assert "blockIdx.x * blockDim.x" in many and "If all mean this one, it is harmless" in many


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"block": [2048, 1, 1]}, "the block is 2,048 along x, where 1,024 is the most"),
        ({"block": [64, 32, 1]}, "a block has 2,048 threads, where 1,024 is the most"),
        ({"grid": [1, 0, 1]}, "the grid is 0 along y (is a division rounded down?)"),
        ({"grid": [1, 70_000, 1]}, "the grid is 70,000 along y, where 65,535 is the most"),
        ({"shared": 50_000}, "asks for 50,000 bytes of dynamic shared memory, where 49,152"),
    ],
)
def test_a_launch_that_cuda_refuses_is_told_with_its_numbers(parts, why):
    usual = {"grid": [4, 1, 1], "block": [32, 1, 1], "shared": 0, "shared_limit": 49_152}
    event = {"event": "refused", "kernel": "add", **usual, **parts}
    said = refused("half a line\n" + json.dumps(event))
    assert said.startswith("add<<<dim3(") and why in said
    assert refused("") == ""
