"""`diagnose` numbers the lines of a kernel, with traffic and hazards beside them."""

import pytest

from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.course.case_calls import example
from utils.diagrams import listing as module
from utils.diagrams.listing import listing
from utils.watch.diagnosis import diagnose_call


def listed(text: str, name: str):
    exercise = catalog.load("02_shared_memory_tiling/gemm_tiled")
    kernel = compile_wrong(exercise, text, name)
    call = example(kernel, {"M": 33, "N": 31, "K": 65})
    return listing(kernel, diagnose_call(kernel, call.arguments), "M=33"), text.splitlines()


@pytest.fixture(scope="module")
def racing():
    text = catalog.solution_text(catalog.load("02_shared_memory_tiling/gemm_tiled"))
    lines = text.splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if "__syncthreads" in line)
    return "".join([*lines[:last], "\n", *lines[last + 1 :]])


def test_every_line_is_numbered_with_its_traffic_and_its_hazards(racing):
    table, lines = listed(racing, "listed")
    numbered = {int(row[0]): row for row in table.rows if row[0]}
    shown = [row[1].removesuffix("...") for row in numbered.values()]
    code = [text for text in lines if text.strip(" {}();") and not text.lstrip().startswith("//")]
    assert all(map(str.startswith, code, shown)) and len(shown) == len(code), "with indents"
    at = {
        word: n
        for n, text in enumerate(lines, 1)
        for word in ("As[ty][tx]", "sum +=")
        if word in text
    }
    store, product = numbered[at["As[ty][tx]"]], numbered[at["sum +="]]
    assert store[2] == f"race between two threads, with line {at['sum +=']}"
    both = at["As[ty][tx]"], at["As[ty][tx]"] + 1  # and Bs
    assert product[2] == f"race between two threads, with line {both[0]} and {both[1]}"
    assert {row[3] for row in table.rows} >= {"shared load", "shared store", "global load"}
    assert len(numbered) < len(table.rows), "a line may access memory in several ways"


def test_without_hazards_there_is_no_column_for_them(racing):
    text = catalog.solution_text(catalog.load("02_shared_memory_tiling/gemm_tiled"))
    table, _ = listed(text, "right")
    assert "hazard" not in table.head


def test_of_a_long_text_only_lines_with_something_beside_are_listed(racing, monkeypatch):
    monkeypatch.setattr(module, "WHOLE", 5)
    table, lines = listed(racing, "listed")
    assert len(table.rows) < len(lines) and all(row[2] or row[3] for row in table.rows)
