"""Who is in a class: folders, zips, Canvas's files, Moodle's names; and what is no class."""

import pytest

from utils.grading import collect
from utils.ground.errors import WorkbookError


def touch(folder, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def names(folder, **more) -> list[str]:
    return [student.name for student in collect.students(folder, **more)[0]]


def test_a_folder_and_a_zip_are_a_student_each(tmp_path):
    touch(tmp_path, "ada/a.ipynb", "bob.zip", "cyd/c.cu", "cyd.zip", "notes.txt", "loose.ipynb")
    students, nobodys = collect.students(tmp_path)
    assert [student.name for student in students] == ["ada", "bob", "cyd"]
    assert len(students[2].places) == 2
    assert nobodys == ["loose.ipynb", "notes.txt"] and "notes.txt" in collect.nobodys(nobodys)


def test_the_files_of_canvas_are_their_students(tmp_path):
    touch(tmp_path, "lovelaceada_11_91_swish-1.cu", "lovelaceada_11_92_00_start_here.ipynb")
    touch(tmp_path, "bob_LATE_12_93_all.zip", "lovelaceada_13_94_swish.cu")
    ada, other, bob = sorted(collect.students(tmp_path)[0], key=lambda s: (-len(s.places), s.name))[
        :3
    ]
    assert ada.name == "lovelaceada_11" and len(ada.places) == 2
    assert {other.name, bob.name} == {"lovelaceada_13", "bob"}
    late = next(s for s in (other, bob) if s.name == "bob")
    assert late.notes == ("Canvas calls it late",)


def test_of_nbgraders_folders_the_assignments_counts(tmp_path):
    touch(tmp_path, "ada/hw1/a.ipynb", "ada/hw2/a.ipynb", "bob/b.ipynb")
    ada, bob = collect.students(tmp_path, assignment="hw1")[0]
    assert ada.places == (tmp_path / "ada" / "hw1",) and bob.places == (tmp_path / "bob",)


@pytest.mark.parametrize(
    "files",
    [
        ["00_start_here.ipynb", "pictures/a.png"],
        ["swish.cu"],
        ["kernels/a.cu", "notebooks/a.ipynb", "utils/a.py"],
    ],
)
def test_one_students_folder_is_no_class(tmp_path, files):
    touch(tmp_path, *files)
    with pytest.raises(WorkbookError, match="looks like one student's work"):
        collect.students(tmp_path)


PEOPLE = {
    "al1": {"first_name": "Ada", "last_name": "Lovelace"},
    "b2": {"first_name": "Bob", "last_name": "Bean"},
    "b3": {"first_name": "Bob", "last_name": "Bean"},
}


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("al1", "al1"),
        ("Ada Lovelace_123_assignsubmission_file", "al1"),
        ("lovelaceada", "al1"),
        ("b2_7_assignsubmission_file_", "b2"),
        ("Bob Bean_7_assignsubmission_file", "Bob Bean_7_assignsubmission_file"),
        ("eve", "eve"),
    ],
)
def test_a_name_is_that_of_the_roster(name, id):
    assert collect.ids([name], PEOPLE) == {name: id}


def test_no_two_have_one_id():
    made = collect.ids(["al1", "lovelaceada", "Ada Lovelace_1_assignsubmission_file"], PEOPLE)
    assert len(set(made.values())) == 3 and made["al1"] == "al1"
