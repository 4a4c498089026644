"""A notebook is of a few evenings: its words, answers and sittings have bounds; a recap ends it.

Counted are the words of all Markdown with its hints, without code.
"""

import re

import pytest

from utils.course import catalog, selection
from utils.cuda import INCLUDE
from utils.ground.paths import workspace
from utils.notebooks import documents, sittings

WORDS, ANSWER, SITTING, HEADERS = 2600, 150, 90, 60
FOLD = re.compile(r"<details>.*?</details>", re.DOTALL)


def words(text: str) -> int:
    """How many words of prose: nothing of a block of code, of inline code, of a tag."""
    prose = re.sub(r"```.*?```|`[^`]*`|<[^>]*>", "", text, flags=re.DOTALL)
    return len(re.findall(r"[A-Za-z][A-Za-z'’-]*", prose))


def texts(notebook) -> list[str]:
    """Its Markdown, cell by cell."""
    cells = documents.read(notebook).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


each = pytest.mark.parametrize("notebook", selection.notebooks(), ids=lambda path: path.stem)


@each
def test_a_notebook_is_no_longer_than_it_may_be(notebook):
    assert sum(map(words, texts(notebook))) <= WORDS


@each
def test_no_answer_is_longer_than_it_may_be(notebook):
    folds = [fold for text in texts(notebook) for fold in FOLD.findall(text)]
    assert [fold for fold in folds if words(fold) > ANSWER] == []


@each
def test_a_sitting_is_no_longer_than_an_evening_and_ends_at_a_place_to_rest(notebook):
    cells = documents.read(notebook).cells
    minutes = sittings.minutes(cells[0].source)
    assert max(minutes) <= SITTING
    assert sittings.rests(cells) == len(minutes) - 1


@each
def test_few_lines_of_headers_are_read_before_a_learner_writes(notebook):
    known = {line for path in INCLUDE.glob("*.cuh") for line in path.read_text().splitlines()}
    printed = 0
    for cell in documents.read(workspace().solutions / notebook.name).cells:
        if (id := documents.cuda_id(cell)) and "/" in id and catalog.load(id).number:
            assert printed <= HEADERS, id
            printed = 0
        for output in cell.get("outputs", ()):
            printed += sum(line in known for line in output.get("text", "").splitlines() if line)


def test_every_chapter_ends_with_what_is_to_be_kept():
    every = selection.notebooks()
    recaps = {path.stem[:2] for path in every if "## Recap" in path.read_text()}
    assert recaps == {path.stem[:2] for path in every}


def test_the_notebooks_of_a_chapter_are_listed_in_their_order():
    assert catalog.notebooks() == sorted(catalog.notebooks())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Two words.", 2),
        ("`code here` and\n```cuda\nint x;\n```\n<summary>one</summary>", 2),
        ("2.73 ms, x · Wᵀ", 3),
    ],
)
def test_words_are_those_of_prose(text, count):
    assert words(text) == count


def test_minutes_are_read_of_the_head():
    head = "**Time.** Two sittings: about 90 minutes to the end of 1, and about 95 from there."
    assert sittings.minutes(head) == [90, 95]
    assert sittings.minutes("**Time.** About 150 minutes.") == [150]
    assert sittings.minutes("# 03 Register tiles") == []
