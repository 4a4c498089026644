"""A table comes back from any spreadsheet as it was, or is an error: nothing is lost."""

import csv
import unicodedata

import pytest

from utils.course import catalog
from utils.grading import book, tables
from utils.grading.book import Rules
from utils.grading.grades import Grade, Mark, Ungraded
from utils.grading.verdicts import Status
from utils.ground.errors import WorkbookError

RULES = Rules("hw1", ("00_start_here",))
SWISH = catalog.load("00_start_here/swish")


def made(student: str, points: float = 5, **more) -> Grade:
    return Grade(student, (Mark.of_exercise(SWISH, points=points, status=Status.PASSED, **more),))


def rows(path) -> dict[str, dict]:
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_what_a_spreadsheet_has_saved_is_kept(tmp_path, separator, encoding, ends):
    path = tmp_path / "grades.csv"
    book.write(path, [made("Zoë"), made("bob")], RULES, {})
    table = rows(path)
    table["Zoë"] |= {"manual": "-1,5", "comment": 'sprach; "laut", drüben', "tutor": "Jörg"}
    table["bob"]["tutor"] = ""
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, table["Zoë"], delimiter=separator, lineterminator=ends)
        writer.writeheader()
        writer.writerows(table.values())
    saved = path.read_bytes()
    for _ in range(2):
        book.write(path, [made("Zoë"), made("bob")], RULES, {})
        zoe = rows(path)["Zoë"]
        assert (zoe["manual"], zoe["score"], zoe["tutor"]) == ("-1.5", "3.5", "Jörg")
        assert zoe["comment"] == 'sprach; "laut", drüben'
    kept = {backup.read_bytes() for backup in (tmp_path / "grades.backups").iterdir()}
    assert saved in kept, "the table as the instructor left it is there"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("student_id,manual\nada,two\n", "the manual points of 'ada' are 'two'"),
        ("student_id,manual\nada,inf\n", "the manual points of 'ada' are 'inf'"),
        ("student_id,manual\nada,1\nada,2\n", "line 3 is a second one of 'ada'"),
        ("student_id,manual\n,2\n", "line 2 has no student_id"),
        ("student,manual\nada,2\n", "no column student_id; it has student, manual"),
        ("student_id,manual\nada,1,5\n", "line 2 has 3 cells, and the header 2"),
        ('student_id,manual\nada,"1\n', "cannot be read"),
        ("student_id,manual,manual\nada,1,2\n", "two columns manual"),
    ],
)
def test_what_cannot_be_read_is_not_written_over(tmp_path, text, words):
    path = tmp_path / "grades.csv"
    path.write_text(text)
    for trying in (book.before, lambda path: book.write(path, [made("ada")], RULES, {})):
        with pytest.raises(WorkbookError, match=words):
            trying(path)
    assert path.read_text() == text and list(tmp_path.iterdir()) == [path]


def test_excels_own_first_line_and_short_rows_are_no_error(tmp_path):
    (tmp_path / "a.csv").write_text("sep=;\nstudent_id;manual;comment\nada;2\n\n")
    assert tables.read(tmp_path / "a.csv") == {
        "ada": {"student_id": "ada", "manual": "2", "comment": ""}
    }


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_is_one_name_in_either_form_of_unicode(tmp_path, form):
    people = tmp_path / "people.csv"
    people.write_text("student_id,email\n" + unicodedata.normalize(form, "müller") + ",m@b.c\n")
    folder = unicodedata.normalize({"NFC": "NFD", "NFD": "NFC"}[form], "müller")
    (row,) = book.write(tmp_path / "g.csv", [made(folder)], RULES, book.roster(people))
    assert (row["student_id"], row["email"], row["status"]) == ("müller", "m@b.c", "graded")


def exported(path) -> list[str]:
    with open(path, newline="") as file:
        return [line[-1] if "canvas" in path.name else line[-2] for line in csv.reader(file)]


def test_what_was_not_graded_is_no_zero_anywhere(tmp_path):
    late = made("bob", 0)
    late = Grade("bob", (Mark.of_exercise(SWISH, status=Status.NOT_REACHED),))
    book.write(tmp_path / "g.csv", [Ungraded("ada", "no disk"), late, made("cyd", 0)], RULES, {})
    table = rows(tmp_path / "g.csv")
    assert (table["ada"]["raw_score"], table["ada"]["score"]) == ("", "")
    assert exported(tmp_path / "g.moodle.csv")[1:] == ["", "", "0"]
    assert exported(tmp_path / "g.canvas.csv")[2:] == ["", "", "0"]


def test_an_answer_as_published_is_in_the_status(tmp_path):
    (row,) = book.write(tmp_path / "g.csv", [made("ada", published=True)], RULES, {})
    assert row["status"] == "graded, 1 as published"
