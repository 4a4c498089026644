"""What a page lets its reader go through step by step, counted as pictures are."""

import numpy as np
import pytest
from support import traces
from support.gallery import TILED, scene, shown

from utils.diagrams.parts.stepping import MIME
from utils.diagrams.views import tiles, tree


def cells(step: dict, panel: int) -> np.ndarray:
    """The states of a panel's cells, written out."""
    runs = [run.split("*") for run in step["cells"][panel].split(" ")]
    return np.array([int(value) for value, *n in runs for _ in range(int((n or [1])[0]))])


def state(data: dict, meaning: str) -> int:
    return data["meanings"].index(meaning)


def test_a_block_of_the_tiled_product_loads_waits_computes_and_waits():
    trace = traces.gemm_tiled(40, 70, 80)
    data = tiles.steps(scene(trace, ("C",), TILED))
    names = [panel["name"] for panel in data["panels"]]
    load, compute = data["steps"][:2]
    assert (cells(load, names.index("A")) == state(data, "read from global memory")).sum() == 1024
    assert (cells(load, names.index("As")) == state(data, "written")).all()
    assert (cells(compute, names.index("As")) == state(data, "read from shared memory")).all()
    earlier = cells(compute, names.index("A")) == state(data, "read in an earlier phase")
    assert earlier.sum() == 1024
    assert compute["said"] == (
        "The block reads 1,024 elements of As 32 times each and 1,024 elements of Bs 32 times each "
        "from shared memory. Then all its threads wait at a barrier."
    )
    assert "sum += As" in compute["code"] and "As[ty][tx] =" in load["code"]
    last = data["steps"][-1]
    assert last["said"].endswith("of C. Then the block is done.")


def test_a_step_of_a_tree_leads_from_what_is_read_to_what_is_written():
    data = tree.steps(scene(traces.tree(500, 8)))
    fill, first = data["steps"][:2]
    assert fill["links"] == "" and (cells(fill, 1) == state(data, "written by warp 0")).all()
    links = {tuple(map(int, link.split(":"))) for link in first["links"].split(" ")}
    assert {(a, b) for a, b, _ in links} == {(t + d, t) for t in range(4) for d in (0, 4)}
    assert first["said"] == (
        "4 threads of 1 warp read 8 elements and write 4 elements of part. "
        "Thread 0 takes part[0] and part[4] into part[0]. Then all wait at a barrier."
    )


@pytest.mark.parametrize("name", ["tiles", "tree"])
def test_every_step_has_a_state_for_every_cell(name):
    data = shown(name)._repr_mimebundle_()[0][MIME]
    sizes = [panel["rows"] * panel["columns"] for panel in data["panels"]]
    for step in data["steps"]:
        assert [len(cells(step, i)) for i in range(len(sizes))] == sizes


def test_one_phase_is_nothing_to_go_through():
    trace = traces.gemm(8, 8, 8)
    assert tiles.steps(scene(trace, ("C",))) is None
    assert MIME not in shown("naive")._repr_mimebundle_()[0]


def test_what_is_too_much_for_a_page_stays_a_picture():
    assert tiles.steps(scene(traces.gemm_tiled(200, 200, 8, T=8), ("C",))) is None


def test_a_race_is_told_access_by_access_and_then_what_may_come_of_it():
    data = shown("hazard, lanes").more[MIME]
    said = [step["said"] for step in data["steps"]]
    assert said[:3] == [
        "Thread 1 writes s[1] at line 4.",
        "After a barrier, thread 0 reads s[1] at line 6.",
        "Thread 1 writes s[1] at line 6.",
    ]
    assert said[-1].startswith("Nothing orders the two accesses of this race. In this run the read")
    here, one = (state(data, f"{verb} s[1]") for verb in ("writes", "reads"))
    assert [int(cells(step, 0)[1]) for step in data["steps"]] == [here, one, here, one, one]
    assert data["letters"][here] + data["letters"][one] == "WR"
    assert "s[t] = s[(t + 1) % 32];" in data["steps"][-1]["code"]


def test_what_many_threads_do_is_told_of_them_together():
    said = [step["said"] for step in shown("hazard, sum").more[MIME]["steps"]]
    assert "30 other threads write out[0] at line 3." in said
    assert "58 more accesses, left out here." in said
