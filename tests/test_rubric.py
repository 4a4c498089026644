"""The rubric on the instructors' page is the specs'."""

import re

from utils.course import catalog
from utils.grading import rubric


def test_the_page_is_in_step():
    page = rubric.PAGE.read_text(encoding="utf-8")
    assert rubric.updated(page) == page, "run python -m utils.grading.rubric"


def test_a_page_that_is_not_is_fixed():
    page = rubric.PAGE.read_text(encoding="utf-8")
    stale = page.replace("### `02_shared_memory_tiling`: 50", "### `02_shared_memory_tiling`: 51")
    assert stale != page and rubric.updated(stale) == page


def test_the_parts_of_an_exercise_add_up():
    rows = [line.strip("|").split("|") for line in rubric.tables().splitlines()]
    rows = [row for row in rows if re.match(r" \d\d\.\d+ `", row[0])]
    assert len(rows) == len([e for e in catalog.exercises() if e.number and e.points])
    for name, points, *parts in rows:
        assert round(sum(float(p) for p in parts if p.strip()), 6) == float(points), name
