"""An exercise is added to a spec's text, whose other lines stay as they are."""

import pytest

from utils.course.spec_text import extended
from utils.ground.errors import WorkbookError


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("EXERCISES = (\n", "line 1: '\\(' was never closed"),
        ("OTHERS = ()\n", "has no 'EXERCISES = "),
        ("EXERCISES = []\n", "EXERCISES is no tuple in parentheses"),
        ("EXERCISES = 1, 2\n", "EXERCISES is no tuple in parentheses"),
        ("EXERCISES = (\n    1,\n    2  # a, b\n)\n", "no comma behind its last entry"),
    ],
)
def test_a_spec_that_cannot_be_extended_is_named(tmp_path, spec, words):
    path = tmp_path / "spec.py"
    path.write_text(spec)
    with pytest.raises(WorkbookError, match=words):
        extended(path, "    3,\n")


IMPORTS = "from utils.course import At, Exercise\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("()", "(\n    3,\n)"),
        ("(1,)", "(1,\n    3,\n)"),
        ("(\n    1,\n    2,\n)", "(\n    1,\n    2,\n    3,\n)"),
        ('(\n    "é",  # é\n)', '(\n    "é",  # é\n    3,\n)'),
    ],
)
def test_an_entry_is_added_at_the_end_of_the_tuple(tmp_path, before, after):
    path = tmp_path / "spec.py"
    path.write_text(f"{IMPORTS}# é\nEXERCISES = {before}\nREST = 1\n")
    text = extended(path, "    3,\n")
    names: dict = {}
    exec(text, names)
    assert names["EXERCISES"][-1] == 3 and names["REST"] == 1
    assert text == f"{IMPORTS}# é\nEXERCISES = {after}\nREST = 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""Title."""\n\n', '"""Title."""\n\n' + IMPORTS),
        (IMPORTS, IMPORTS),
        ("from utils.course import Gate\n", "from utils.course import At, Exercise, Gate\n"),
        (
            "import os\n\nfrom utils.course import (\n    MODELS,\n    Exercise as E,\n)\n",
            "import os\n\nfrom utils.course import MODELS, At, Exercise, Exercise as E\n",
        ),
        (
            "from utils.course.models import EPS\n",
            IMPORTS + "from utils.course.models import EPS\n",
        ),
    ],
)
def test_what_the_entry_needs_is_imported(tmp_path, before, after):
    path = tmp_path / "spec.py"
    path.write_text(f"{before}EXERCISES = ()\n")
    assert extended(path, "    3,\n") == f"{after}EXERCISES = (\n    3,\n)\n"
