"""Differences from a solution become wrong kernels; one that fits no longer says so, and where."""

import pytest

from utils.course import catalog, mutants
from utils.ground.errors import Reason, WorkbookError
from utils.ground.paths import workspace

GUARDED = "    if (i < n) y[i] = 2 * x[i];"  # a line of the solution in support/pairs.py
FILE = "tests/mutants/01_pairs/twice.diff"


@pytest.fixture
def twice(root):
    (root / FILE).parent.mkdir(parents=True)
    return catalog.load("01_pairs/twice")


@pytest.fixture
def read(root, twice):
    """What a text in the exercise's file is read as."""

    def read(text: str) -> list[mutants.Mutant]:
        (root / FILE).write_text(text)
        return mutants.mutants(twice)

    return read


def complaint(read, text: str) -> str:
    with pytest.raises(WorkbookError) as failure:
        read(text)
    return str(failure.value)


def test_a_mutant_is_the_solution_with_some_lines_replaced(read, twice):
    (mutant,) = read(f"== no_guard: out of bounds\n-{GUARDED}\n+    y[i] = 2 * x[i];\n")
    solution = catalog.solution_text(twice)
    assert mutant.text == solution.replace("if (i < n) y[i]", "y[i]") != solution
    assert (mutant.name, mutant.reason, mutant.fault) == ("no_guard", "out of bounds", "")


def test_lines_are_added_and_removed_beside_those_with_a_space(read, twice):
    (added,) = read(f"== again: wrong values\n {GUARDED}\n+    if (i < n) y[i]++;\n")
    assert f"{GUARDED}\n    if (i < n) y[i]++;\n}}\n" in added.text
    (removed,) = read(f"== none: not written\n-{GUARDED}\n }}\n")
    assert removed.text == catalog.solution_text(twice).replace(GUARDED + "\n", "")


def test_the_last_line_can_be_replaced(read, twice):
    last = catalog.solution_text(twice).splitlines()[-1]
    (mutant,) = read(f"== no_launch: not written\n-{last}\n+void twice() {{}}\n")
    assert mutant.text.endswith("}\nvoid twice() {}\n")


def test_a_mutant_has_several_hunks_and_a_file_several_mutants(read):
    first, second = read(
        "# of 01.1\n\n"
        "== other_index: race\n# all threads of all blocks,\n# in one place\n"
        "-// x, y: (n)\n+// y: (n)\n...\n"
        f"-{GUARDED}\n+    y[0] = 2 * x[i];\n"
        "\n"
        f"== thrice: wrong values\n-{GUARDED}\n+    if (i < n) y[i] = 3 * x[i];\n"
    )
    assert first.fault == "all threads of all blocks, in one place"
    assert first.text.startswith("// y: (n)\n__global__") and "y[0] = 2" in first.text
    assert second.text.startswith("// x, y: (n)\n") and "3 * x[i]" in second.text
    assert (first.place, second.place) == (f"{FILE}, line 3", f"{FILE}, line 12")


def test_an_exercise_without_a_file_has_no_mutants(twice):
    assert mutants.mutants(twice) == []


HEAD = "== some: race\n"


@pytest.mark.parametrize(
    ("difference", "line", "words"),
    [
        ("-    y[i] = 7;\n+    y[i] = 8;\n", 2, "the solution has no line '    y[i] = 7;'; copy"),
        (f"-{GUARDED.strip()}\n", 2, "no line 'if (i < n)"),
        ("-    // BEGIN SOLUTION\n", 2, "without a marker"),
        (f"-// x, y: (n)\n...\n-{GUARDED}\n-// x, y: (n)\n", 4, "part it by '...'"),
        ("# why\n+// x\n", 3, "add a line of the solution's"),
        (f"-{GUARDED}\n+{GUARDED}\n", 2, "it changes nothing"),
        (f"-{GUARDED}\n...\n-// x, y: (n)\n", 4, "swap or join"),
        (f" // x, y: (n)\n {GUARDED}", 2, "do not follow each other"),
    ],
)
def test_a_hunk_that_does_not_fit_the_solution_is_named(read, difference, line, words):
    message = complaint(read, HEAD + difference)
    assert message.startswith(f"{FILE}, line 1: some: race: the hunk at line {line}: ")
    assert words in message


def test_a_hunk_that_fits_twice_needs_another_line(root, read):
    path = root / "solutions/01_pairs/twice.cu"
    path.write_text(path.read_text().replace("    // END", f"{GUARDED}\n    // END"))
    message = complaint(read, f"{HEAD}-{GUARDED}\n")
    assert "stand 2 times in the solution; add one, with a space in front" in message
    (mutant,) = read(f"{HEAD}-{GUARDED}\n }}\n")
    assert mutant.text.count(GUARDED) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("== some: bad luck\n", "line 1: some: bad luck: no check gives this reason; it may be"),
        ("== some: not attempted\n", "no check gives this reason"),
        ("\n== some\n", "line 2: some: a mutant begins with '== name: reason'"),
        ("==some: race\n", "a mutant begins with '== name: reason'"),
        ("== some: race\n# why\n", "nothing is changed"),
        ("== some: race\nif (i < n)\n", "line 2 should begin with ' ', '-', '+' or '#'"),
        ("-a\n", "line 1: no '== name: reason' stands above this"),
    ],
)
def test_a_mutant_that_is_not_well_formed_is_named(read, text, words):
    message = complaint(read, text)
    assert message.startswith(f"{FILE}, line ") and words in message


def test_two_mutants_of_one_name_are_refused(read):
    once = f"== some: race\n-{GUARDED}\n"
    message = complaint(read, once + "\n" + once)
    assert message == f"{FILE}, line 4: some: race: there is another 'some', at {FILE}, line 1"


def test_every_reason_of_a_check_but_not_attempted_can_be_given(read):
    for reason in set(Reason) - {Reason.NOT_ATTEMPTED}:
        assert read(f"== some: {reason}\n-{GUARDED}\n")[0].reason is reason


@pytest.mark.parametrize("name", ["01_pairs/thrice.diff", "02_trios/twice.diff"])
def test_a_file_of_no_exercise_is_named(twice, name):
    with pytest.raises(WorkbookError, match=f"^tests/mutants/{name} is of no exercise: .*"):
        mutants.exercise_of(workspace().mutants / name)
    assert mutants.exercise_of(workspace().mutants / "01_pairs/twice.diff") is twice
