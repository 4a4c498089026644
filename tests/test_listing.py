"""`diagnose` numbers the lines of a kernel, with traffic and hazards beside them."""

import pytest

from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.course.case_calls import example
from utils.diagrams.listing import GAP, listing
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


def test_lines_are_numbered_with_their_traffic_and_their_hazards(racing):
    table, lines = listed(racing, "listed")
    numbered = {int(row[0]): row for row in table.rows if row[0] not in ("", GAP)}
    for line, row in numbered.items():
        assert row[1] == lines[line - 1], "with indents"
    at = {
        word: n
        for n, text in enumerate(lines, 1)
        for word in ("As[ty][tx]", "sum +=")
        if word in text
    }
    store, product = numbered[at["As[ty][tx]"]], numbered[at["sum +="]]
    assert store[2] == f"race between two threads, with line {at['sum +=']}"
    both = at["As[ty][tx]"], at["As[ty][tx]"] + 1  # and Bs
    assert product[2] == f"race between two threads, with lines {both[0]} and {both[1]}"
    assert {row[3] for row in table.rows} >= {"shared load", "shared store", "global load"}
    assert len(numbered) < len(table.rows), "a line may access memory in several ways"


def test_without_hazards_there_is_no_column_for_them(racing):
    text = catalog.solution_text(catalog.load("02_shared_memory_tiling/gemm_tiled"))
    table, _ = listed(text, "right")
    assert "hazard" not in table.head


def test_only_lines_with_something_beside_them_are_listed_and_gaps_are_marked(racing):
    table, lines = listed(racing, "listed")
    rows = [row for row in table.rows if row[0]]  # others go on with the line above
    assert all((row[0] == GAP) != any(row[2:]) for row in rows)
    for before, gap, after in zip(rows, rows[1:], rows[2:], strict=False):
        if gap[0] == GAP:
            between = lines[int(before[0]) : int(after[0]) - 1]
            assert any(text.strip(" {}();") and "//" not in text for text in between)
    numbers = [int(row[0]) for row in rows if row[0] != GAP]
    assert len(rows) > len(numbers) == len(set(numbers)) and numbers == sorted(numbers)
    assert GAP not in (rows[0][0], rows[-1][0])
