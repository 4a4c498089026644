"""A small class with many kinds of hostile work in it: graded to the point, and nobody harmed.

`benchmarks/grade_class.py` does the same with sixty submissions, and with all kinds.
"""

from pathlib import Path

import pytest
from support import classroom
from support.box import needs_box
from support.classroom import Fate, Student
from support.hostility import FOLDERS, TEXTS

from utils.course import catalog
from utils.grading.grade import STATUSES, Terms, grade
from utils.grading.verdicts import Status
from utils.ground import paths
from utils.ground.errors import ToolError
from utils.ground.paths import ROOT
from utils.process import sandbox

TOPICS = ("04_reductions",)  # a kernel is started for each
# What tests/attacks does not try as well. None that a time limit has to end: that takes long.
TRIED = (
    *("fork_bomb", "kills_the_parent", "starts_a_program", "fills_the_disk", "asks_for_the_seed"),
    *("includes_another_submission", "template_without_end", "nbval_markers"),
    *("python_in_the_answer", "initialiser_takes_over", "exits", "forged_report"),
    *("escapes_in_output", "throws"),
)
# See support/classroom.py.
RIGHT = "sum_tree", "row_argmin"
PARTLY = {
    "sum_atomic": "no_memset",
    "sum_sequential": "thread_0_adds",
    "sum_warp": "step_16_missing",
}
EXERCISES = {exercise.name: exercise for exercise in classroom.exercises(TOPICS)}


def partly_right() -> Student:
    student = Student("partly", "partial")
    for name in RIGHT:
        student.give(EXERCISES[name], catalog.solution_text(EXERCISES[name]))
    for name, mutant in PARTLY.items():
        exercise, share = EXERCISES[name], classroom.MUTANTS[name][mutant]
        student.give(exercise, classroom.mutants_of(exercise)[mutant], "failed", share)
    return student


def by_files(number: int) -> Student:
    """Whose answers are right: what is hostile comes beside them."""
    student = Student(f"files-{number}", "hostile")
    for name in RIGHT:
        student.give(EXERCISES[name], catalog.solution_text(EXERCISES[name]))
    return student


def workbook() -> dict[Path, tuple[int, int]]:
    """When each file of the workbook was written, and how long it is."""
    parts = [ROOT / part for part in ("kernels", "solutions", "notebooks", "utils")]
    paths = [path for part in parts for path in part.rglob("*") if path.suffix != ".pyc"]
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in paths if p.is_file()}


def processes(folder: Path) -> list[bytes]:
    """The command lines in which a folder is named."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:  # it has ended
            continue
    return [line for line in lines if bytes(folder) in line]


class Class:
    """A class in a folder, and its grades by student."""

    def __init__(self, folder: Path):
        self.folder, outside = folder, classroom.canary(folder)
        self.workbook = workbook()
        texts = [attack for attack in TEXTS if attack.name in TRIED]
        assert len(texts) == len(TRIED)
        attackers = classroom.attackers(2, texts, list(EXERCISES.values()), outside)
        tricksters = [by_files(number) for number in range(9)]
        self.students = [partly_right(), *attackers, *tricksters]
        for student in self.students:
            classroom.write(folder / "class", student, TOPICS)
        classroom.attack_folders(tricksters, FOLDERS, folder / "class", outside, "partly")
        (folder / "store").mkdir()
        (folder / "store" / "builds").symlink_to(paths.cache())  # where the emulator is built
        self.terms = Terms(TOPICS, "a secret", str(folder / "store"))
        self.grades = {s.name: grade(folder / "class" / s.name, self.terms) for s in self.students}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBOOK_BACKEND", "emulator")
        yield Class(tmp_path_factory.mktemp("grading"))


@needs_box
def test_every_point_is_as_it_must_be_and_each_attack_is_told(graded):
    made = {name: grade.to_json() for name, grade in graded.grades.items()}
    mismatches = [line for s in graded.students for line in s.mismatches(made[s.name])]
    assert not mismatches, "\n".join(mismatches)


@needs_box
def test_every_status_is_seen_but_those_of_time(graded):
    statuses = {m.status for grade in graded.grades.values() for m in grade.exercises}
    assert statuses == set(STATUSES) - {Status.TIMEOUT, Status.NOT_REACHED}


@needs_box
def test_nothing_outside_is_touched_and_nothing_goes_on(graded):
    assert not classroom.touched(graded.folder)
    assert workbook() == graded.workbook
    assert not processes(graded.folder)


@needs_box
def test_identical_answers_are_judged_once(graded, monkeypatch):
    monkeypatch.setattr("utils.grading.grade._nbval", None)  # and so nothing is run
    again = graded.students[-1].name
    assert grade(graded.folder / "class" / again, graded.terms) == graded.grades[again]


def test_without_a_box_nothing_is_graded(tmp_path, monkeypatch):
    sandbox._prefix.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ToolError, match="there is no bubblewrap"):
        grade(tmp_path, Terms(TOPICS, "", str(tmp_path)))
    sandbox._prefix.cache_clear()


def test_a_grade_that_is_off_is_told():
    """Of the class itself: what it compares would be worth nothing else."""
    exercise, student = EXERCISES["sum_tree"], Student("one", "partial")
    student.give(exercise, "", "failed", 0.8)
    record = {"exercise": exercise.id, "number": "04.2", "name": "sum_tree"}
    record |= {"status": "failed", "points": 8.0, "message": "so"}
    grades = {"exercises": [record], "points": 8.0, "notes": []}
    assert student.mismatches(grades) == []
    for change in ({"points": 10.0}, {"status": "passed"}, {"message": "\x1b[2J"}):
        assert student.mismatches(grades | {"exercises": [record | change]})
    student.fates[exercise.id] = Fate(("failed",), 8.0, "words")
    student.notes.append("a note")
    assert len(student.mismatches(grades)) == 2
