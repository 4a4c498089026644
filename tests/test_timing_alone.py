"""What `workbook run` prints is read back, to be compared."""

import io

from rich.console import Console

from benchmarks import timing_alone
from utils.ground.paths import ROOT
from utils.notebooks import summary


class Run:
    """As of a notebook, with what its benches said."""

    errors = ()
    seconds = 1.0
    path = ROOT / "03_of_three.ipynb"

    def __init__(self, exercises, rows):
        self._exercises, self._rows = exercises, rows

    def exercises(self):
        return self._exercises

    def verdict(self, exercise):
        return "passed"

    def event(self, kind, exercise):
        row = self._rows.get(exercise.name)
        return {"id": exercise.id, "gpu": "a card", "date": "2026-11-25", **row} if row else {}


class Exercise:
    def __init__(self, number, name):
        self.number, self.name, self.id = number, name, f"topic/{name}"


def timed(name, ms, measured=True):
    return {name: {"measured": measured, "rows": [{"label": name, "median_ms": ms}]}}


def test_the_times_that_were_measured_are_read():
    exercises = [Exercise("03.4", "gemm_warp"), Exercise("11.10", "long"), Exercise("03.2", "old")]
    exercises.append(Exercise("03.1", "untimed"))
    rows = timed("gemm_warp", 2.789) | timed("long", 0.0123) | timed("old", 3.0, measured=False)
    printed = io.StringIO()
    summary.print_runs([Run(exercises, rows)], Console(file=printed, width=200))
    assert timing_alone.read(printed.getvalue()) == {"03.4 gemm_warp": 2.79, "11.10 long": 0.0123}


def test_a_notebook_without_exercises_has_none_that_failed():
    printed = io.StringIO()
    summary.print_runs([Run([], {})], Console(file=printed, width=200))
    assert printed.getvalue() == "03_of_three: no exercises, 1.0 s\n"


def test_a_difference_is_in_percent_of_the_time_alone():
    together = {"03.4 a": 5.5, "11.2 b": 0.0101, "11.10 c": 1.0}
    lines, off = timing_alone.table(together, {"03.4 a": 5.0, "11.2 b": 0.0095, "04.1 d": 2.0})
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "03.4 a",
        "04.1 d",
        "11.2 b",
        "11.10 c",
    ]
    assert "+10.0 %" in lines[2] and lines[3].endswith("| – | 2 | – |")
    assert [round(percent, 6) for percent in off] == [10, 0]  # half a microsecond is none
