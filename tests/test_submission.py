"""What is found in a student's folder, zip or files, and what is said of the rest."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from support import classroom

from utils.course import catalog
from utils.grading import handed_files, submission
from utils.ground.paths import ROOT
from utils.notebooks import documents

SWISH = catalog.load("00_start_here/swish")
TEXT = "// mine\n" + catalog.solution_text(SWISH)


def notebook(path: Path, *sources: str) -> Path:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    return path


def notes(read: submission.Submission) -> str:
    return "\n".join(read.notes)


# --- a clone of the workbook


def clone(folder: Path, swish: str = "") -> Path:
    """What of a clone could be taken for answers, with some of ours beside it."""
    for name in ("kernels", "solutions"):
        shutil.copytree(ROOT / name / SWISH.topic, folder / name / SWISH.topic)
    shutil.copy(ROOT / "solutions" / f"{SWISH.topic}.ipynb", folder / "solutions")
    for name in ("utils/cli.py", "tests/swish.cu", "build/kept/swish.cu", "pyproject.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TEXT)
    (folder / "notebooks").mkdir()
    texts = {SWISH.id: swish} if swish else {}
    (folder / "notebooks" / f"{SWISH.topic}.ipynb").write_text(
        classroom.notebook(SWISH.topic, texts)
    )
    return folder


def zipped(folder: Path) -> Path:
    path = Path(shutil.make_archive(str(folder.parent / "clone"), "zip", folder.parent, "ada"))
    shutil.rmtree(folder)
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_an_untouched_clone_answers_nothing(tmp_path, packed):
    folder = clone(tmp_path / "ada")
    read = submission.read(zipped(folder) if packed else folder)
    assert set(read.answers) == {SWISH.id, "00_start_here/swish_grid_stride"}
    for id, answer in read.answers.items():
        assert catalog.is_starter(catalog.load(id), answer.text) and "notebooks/" in answer.place
    assert "a whole clone of the workbook" in notes(read)
    assert "not run" not in notes(read) and "not read" not in notes(read)


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_of_a_clone_the_notebooks_count(tmp_path, packed):
    folder = clone(tmp_path / "ada", swish=TEXT)
    read = submission.read(zipped(folder) if packed else folder)
    assert read.answers[SWISH.id].text.strip() == TEXT.strip()


def test_published_texts_without_their_clone_do_not_count_either(tmp_path):
    shutil.copytree(ROOT / "solutions" / SWISH.topic, tmp_path / "solutions" / SWISH.topic)
    read = submission.read(tmp_path)
    assert not read.answers and "solutions/ holds texts of the workbook's own" in notes(read)


def test_a_folder_of_the_students_own_may_be_called_solutions(tmp_path):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "swish.cu").write_text(TEXT)
    assert submission.read(tmp_path).answers[SWISH.id].text == TEXT


def test_an_answer_that_is_published_is_known_as_one():
    assert catalog.is_solution(SWISH, TEXT.replace("    ", "\t"))
    assert not catalog.is_solution(SWISH, TEXT.replace("expf", "__expf"))


# --- cells


@pytest.mark.parametrize(
    "source",
    [
        "\n\n%%cuda {id}\n{text}",
        "# my answer\n\n%%cuda {id}\n{text}",
        "%%time\n%%cuda {id}\n{text}",
        "%%capture out\n\n%%cuda  {id} \n{text}",
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_magic_below_something_is_one(tmp_path, source, ends):
    source = source.format(id=SWISH.id, text=TEXT).replace("\n", ends)
    read = submission.read(notebook(tmp_path / "a.ipynb", source))
    assert read.answers[SWISH.id].text == TEXT and not read.notes


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("%%cuda 00_start/swish\n" + TEXT, "begins with '%%cuda 00_start/swish', and no exercise"),
        ("%%cuda swish\n" + TEXT, "cell 0 begins with '%%cuda swish'"),
        ("%% cuda 00_start_here/swish\n" + TEXT, "holds a kernel, but begins with '%% cuda"),
        (TEXT, "holds a kernel, but begins with '// mine'"),
    ],
)
def test_a_cell_that_is_no_answer_and_looks_like_one_is_told(tmp_path, source, words):
    read = submission.read(notebook(tmp_path / "a.ipynb", source))
    assert not read.answers and words in notes(read)


def test_the_workbooks_own_notebooks_draw_no_note():
    read = submission.read(*sorted(documents.notebook_of("").parent.glob("*.ipynb")))
    assert len(read.answers) > 70 and not read.notes


# --- files


@pytest.mark.parametrize(
    "name", ["swish (1).cu", "Swish.cu", "swish - Copy.cu", "swish-2.cu", "swish copy 2.cu"]
)
def test_a_copys_name_is_the_exercises(tmp_path, name):
    (tmp_path / name).write_text(TEXT)
    read = submission.read(tmp_path)
    assert read.answers[SWISH.id].place == name and not read.notes


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_a_source_of_windows_is_read(tmp_path, encoding):
    (tmp_path / "swish.cu").write_bytes(("// für\n" + TEXT).replace("\n", "\r\n").encode(encoding))
    answer = submission.read(tmp_path).answers[SWISH.id].text
    assert answer.endswith(TEXT) and "\r" not in answer


def test_what_is_not_read_is_named(tmp_path):
    for name in ("report.pdf", "all.rar", "norm.cu", ".DS_Store", "timestamp.txt"):
        (tmp_path / name).write_text("2026-11-30 12:00:00.5 UTC")
    said = notes(submission.read(tmp_path))
    assert "all.rar, report.pdf: not read" in said and "norm.cu: no exercise" in said
    assert "DS_Store" not in said and "timestamp" not in said


def test_a_zip_is_read_and_no_member_leaves_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "work.zip", "w") as archive:
        archive.writestr("homework/swish.cu", TEXT)
        archive.writestr("../gemm_naive.cu", TEXT)
        archive.writestr("__MACOSX/._swish.cu", "x")
        archive.writestr("notes.txt", "x")
    read = submission.read(tmp_path)
    assert read.answers[SWISH.id].place == "work.zip/homework/swish.cu"
    assert "work.zip/notes.txt: not read" in notes(read) and "MACOSX" not in notes(read)
    assert read.latest == (tmp_path / "work.zip").stat().st_mtime


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("swish.cu", b" " * (handed_files.SOURCE + 1))


def crowd(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(handed_files.MEMBERS + 1):
            archive.writestr(f"{number}", b"")


def broken(path: Path) -> None:
    path.write_bytes(b"PK\3\4 no zip")


@pytest.mark.parametrize(
    ("make", "words"),
    [(bomb, "has 1,048,577 bytes"), (crowd, "more than 5,000 members"), (broken, "cannot be read")],
)
def test_a_zip_that_is_none_or_too_much_costs_the_rest_nothing(tmp_path, make, words):
    make(tmp_path / "a.zip")
    (tmp_path / "swish.cu").write_text(TEXT)
    read = submission.read(tmp_path)
    assert read.answers[SWISH.id].place == "swish.cu" and words in notes(read)
