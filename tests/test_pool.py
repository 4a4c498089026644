"""A class is graded: several at once, here or by Dask's workers; interrupted, taken up again."""

import time

import pytest

from utils.errors import ToolError, WorkbookError
from utils.grading import grade as grading
from utils.grading import pool

TOPICS = ("00_start_here",)


@pytest.fixture
def graded(monkeypatch):
    """Names of the folders that were graded; the grade is made up."""
    seen = []

    def grade(folder, terms):
        seen.append(folder.name)
        time.sleep(0.02 * (len(folder.name) % 3))
        if folder.name == "cursed":
            raise OSError("no space left")
        return {"student": folder.name, "points": len(folder.name), "seed": terms.seed}

    monkeypatch.setattr(grading, "grade", grade)
    return seen


@pytest.fixture
def folders(tmp_path):
    names = ["ada", "bobby", "cursed", "dorothea", "e"]
    for name in names:
        (tmp_path / "class" / name).mkdir(parents=True)
    return grading.students(tmp_path / "class")


def test_each_is_graded_once_and_a_fault_of_ours_stops_nobody_else(graded, folders, tmp_path):
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    made = {g["student"]: g for g in pool.graded(folders, terms, jobs=2)}
    assert sorted(graded) == sorted(made) == [folder.name for folder in folders]
    assert made["cursed"] == {"student": "cursed", "fault": "OSError: no space left"}
    assert made["dorothea"]["points"] == 8


def test_interrupted_half_way_it_goes_on_where_it_was(graded, folders, tmp_path):
    store = tmp_path / "store"
    list(pool.graded(folders[:2], pool.terms(TOPICS, store, False)))
    again = pool.terms(TOPICS, store, resume=True)
    whole = {g["student"]: g for g in pool.graded(folders, again, resume=True)}
    assert graded.count("ada") == graded.count("bobby") == 1
    assert len(whole) == 5 and whole["e"]["seed"] == whole["ada"]["seed"], "the same secret"

    (folders[0] / "swish.cu").write_text("void swish() {}\n")
    list(pool.graded(folders, again, resume=True))
    assert graded.count("ada") == 2, "what was handed in has changed"
    assert graded.count("bobby") == 1


def test_without_resume_another_secret_is_drawn(tmp_path):
    first = pool.terms(TOPICS, tmp_path, resume=False)
    assert pool.terms(TOPICS, tmp_path, resume=True) == first
    assert pool.terms(TOPICS, tmp_path, resume=False).seed != first.seed
    assert tmp_path.stat().st_mode & 0o077 == 0, "nobody else reads it"


def test_workers_of_dask_make_the_same_grades(graded, folders, tmp_path):
    distributed = pytest.importorskip("distributed")
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    here = {g["student"]: g for g in pool.graded(folders[::-1], terms)}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        there = {g["student"]: g for g in pool.graded(folders, terms, cluster=address)}
    for made in (*here.values(), *there.values()):
        made.pop("seconds", None)
    assert there == here


def test_a_cluster_without_dask_is_told(monkeypatch, folders, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    with pytest.raises(ToolError, match="pip install distributed"):
        next(pool.graded(folders, terms, cluster="tcp://127.0.0.1:1"))


def test_a_folder_without_students_is_told(tmp_path):
    with pytest.raises(WorkbookError, match="has no folders"):
        grading.students(tmp_path)
    with pytest.raises(WorkbookError, match="cannot be read: No such file"):
        grading.students(tmp_path / "nowhere")
