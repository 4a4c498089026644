"""What an exercise lacks is said, each thing for itself."""

import pytest
from support import pairs

from utils.course import catalog
from utils.judge import review

SPEC, HINTS = "kernels/01_pairs/spec.py", "kernels/01_pairs/twice.md"
SOLUTION, STARTER = "solutions/01_pairs/twice.cu", "kernels/01_pairs/twice.cu"
MUTANTS = "tests/mutants/01_pairs/twice.diff"
LAST = "\n==" + pairs.MUTANTS.rpartition("\n==")[2]  # of the mutants


@pytest.fixture
def complete(root):
    pairs.complete(root)
    return root


def missing(name: str = "twice") -> list[str]:
    return review.missing(catalog.load(f"01_pairs/{name}"))


def test_of_a_complete_exercise_nothing_is_missing(complete):
    assert missing() == []


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (SPEC, '({"n": 1}, ', "(", "at.check: no size is 1 in every direction"),
        (SPEC, '{"n": 5}, {"n": 70}),\n', "),\n", "at.check: all sizes are multiples of a warp"),
        (SPEC, 'draw={"n": 5}', "draw={}", "at.draw: no size is given"),
        (SPEC, 'drawn=({"n": (300, 400)},)', "drawn=()", "at.drawn: every size is known"),
        (SPEC, 'gates={"n": 64}', "gates={}", "at.gates: no size is given"),
        (SPEC, '"01.1"', '"02.1"', "number: '02.1' is of another chapter"),
        (SPEC, "points=5", "points=0", "points: nothing is said"),
        (SPEC, '"1 line"', '""', "effort: nothing is said"),
        (SPEC, 'library="it"', 'library="that"', "library: it is none of the peers"),
        (HINTS, "## Hint 2", "Hint 2", "hints: 1, not 2 to 3"),
        (HINTS, "Or multiply.", "", "hint 2: nothing is said"),
        (MUTANTS, LAST, "", "mutants: 7 of at least 8"),
        (SOLUTION, "// BEGIN SOLUTION", "", "solution: no part stands between"),
        (SOLUTION, "    if (i < n) y[i] = 2 * x[i];\n", "", "solution: nothing stands between"),
        (STARTER, "// your code here", "", "starter: it is not the solution's; run"),
        (SOLUTION, "// x, y: (n)", "// x, y", "solution: no comment on shapes"),
        (
            SOLUTION,
            "// One thread owns",
            "// It is",
            "solution: no comment that begins with",
        ),
        (SOLUTION, "// END", "__syncthreads();\n// END", "solution: a barrier does not say what"),
        (SOLUTION, "// END", "\n" * 40 + "// END", "solution: a function has over 40 lines"),
        (
            SOLUTION,
            "// END",
            "\n" * 9 + "// END",
            "solution: the launcher, last, has",
        ),
    ],
)
def test_what_is_missing_is_said(complete, path, old, new, said):
    text = (complete / path).read_text()
    assert old in text
    (complete / path).write_text(text.replace(old, new))
    assert any(line.startswith(said) for line in missing())


def test_a_mutant_that_fits_no_longer_is_named(complete):
    path = complete / MUTANTS
    path.write_text(path.read_text().replace("-    if (i < n)", "-    if (i > n)", 1))
    assert any("the solution has no line" in line for line in missing())


def test_a_file_that_is_not_there_is_named(complete):
    (complete / SOLUTION).unlink()
    assert any(line.endswith("twice.cu does not exist") for line in missing())


def test_a_worked_kernel_needs_less(complete):
    assert missing("copy") == [
        "solution: no comment on shapes, such as '// x, out: (n)'",
        "solution: no comment that begins with '// One thread owns'",
    ]
