"""A class is graded: several at once, here or by Dask's workers; interrupted, taken up again."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from utils.course import catalog
from utils.grading import collect, pool, submission
from utils.grading import grade as grading
from utils.grading.grade import Terms
from utils.grading.grades import Grade, Ungraded
from utils.grading.records import Record
from utils.grading.verdicts import Status
from utils.ground.errors import ToolError, WorkbookError

TOPICS = ("00_start_here",)


@pytest.fixture
def graded(monkeypatch):
    """Names of the folders that were graded; the grade is made up."""
    seen = []

    def grade(folder, terms, handed_in, again=()):
        seen.append(folder.name)
        time.sleep(0.02 * (len(folder.name) % 3))
        if folder.name == "cursed":
            raise OSError("no space left")
        return Grade(folder.name, (), latest=len(folder.name), notes=(terms.seed,))

    monkeypatch.setattr(grading, "grade", grade)
    return seen


@pytest.fixture
def folders(tmp_path):
    names = ["ada", "bobby", "cursed", "dorothea", "e"]
    for name in names:
        (tmp_path / "class" / name).mkdir(parents=True)
    return collect.students(tmp_path / "class")[0]


def test_each_is_graded_once_and_a_fault_of_ours_stops_nobody_else(graded, folders, tmp_path):
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    made = {g.student: g for g in pool.graded(folders, terms, jobs=2)}
    assert sorted(graded) == sorted(made) == [folder.name for folder in folders]
    assert made["cursed"] == Ungraded("cursed", "OSError: no space left")
    assert made["dorothea"].latest == 8


def answers() -> list:
    swish, stride = (e for e in catalog.topic(TOPICS[0]).values() if e.number)
    return [(swish, "one"), (stride, "other")]


def judged(status: Status, **more):
    """In place of a run under nbval: each answer gets this record."""

    def nbval(answers, terms, budget):
        return {e.id: Record.of_exercise(e, status, **more) for e, _ in answers}

    return nbval


@pytest.mark.parametrize(
    "nbval",
    [
        judged(Status.FAULT, fault="nothing can be compiled here: ninja: error: no space"),
        judged(Status.PASSED, fault="nothing can be compiled here: no space"),
    ],
)
def test_a_fault_of_the_tools_is_no_students(nbval, folders, tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "_nbval", nbval)
    (folders[0].places[0] / "swish.cu").write_text("void swish() {}\n")
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False, boxed=False)
    made = pool.one(pool.Job(folders[0], terms, False))
    assert made.fault.startswith("ToolError: 00_start_here/swish: nothing can be compiled here:")
    assert not list((tmp_path / "store").glob("verdicts/*")), "the next run judges it"


def test_what_the_time_was_not_enough_for_is_told_and_is_judged_with_more(
    folders, tmp_path, monkeypatch
):
    monkeypatch.setattr(grading, "_nbval", judged(Status.PASSED))
    (folders[0].places[0] / "swish.cu").write_text("void swish() {}\n")
    store = tmp_path / "store"
    short = pool.terms(TOPICS, store, resume=False, boxed=False, budget=0.0)
    mark, untouched = pool.one(pool.Job(folders[0], short, True)).exercises
    assert (mark.status, untouched.status) == (Status.NOT_REACHED, Status.NOT_ATTEMPTED)
    assert "the 0 s for this submission were over" in mark.message
    more = pool.terms(TOPICS, store, resume=True, boxed=False, budget=60.0)
    assert pool.one(pool.Job(folders[0], more, True)).exercises[0].status is Status.PASSED


def test_what_a_run_did_not_reach_is_not_run_again_when_the_time_is_over(tmp_path, monkeypatch):
    """The first answer takes all of it."""

    def nbval(answers, terms, budget):
        time.sleep(budget)
        statuses = [Status.TIMEOUT] + [Status.NOT_RUN] * (len(answers) - 1)
        pairs = zip(answers, statuses, strict=True)
        return {e.id: Record.of_exercise(e, status) for (e, _), status in pairs}

    monkeypatch.setattr(grading, "_nbval", nbval)
    records = grading._run(answers(), Terms(TOPICS, "", str(tmp_path), budget=0.1))
    assert [record.status for record in records.values()] == ["timeout", "not reached"]


def test_a_submission_is_read_once(graded, folders, tmp_path, monkeypatch):
    read, times = submission.read, []

    def counted(*places, clock):
        times.append(places)
        return read(*places)

    monkeypatch.setattr(submission, "read", counted)
    pool.one(pool.Job(folders[0], pool.terms(TOPICS, tmp_path / "store", resume=False), False))
    assert times == [folders[0].places]


def test_interrupted_half_way_it_goes_on_where_it_was(graded, folders, tmp_path):
    store = tmp_path / "store"
    list(pool.graded(folders[:2], pool.terms(TOPICS, store, False)))
    again = pool.terms(TOPICS, store, resume=True)
    whole = {g.student: g for g in pool.graded(folders, again, resume=True)}
    assert graded.count("ada") == graded.count("bobby") == 1
    assert len(whole) == 5 and whole["e"].notes == whole["ada"].notes, "the same secret"

    (folders[0].places[0] / "swish.cu").write_text("void swish() {}\n")
    list(pool.graded(folders, again, resume=True))
    assert graded.count("ada") == 2, "what was handed in has changed"
    assert graded.count("bobby") == 1


def test_builds_of_others_are_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "ABANDONED", -1.0)
    (tmp_path / "builds/swish-1").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "builds")
    pool._prune(tmp_path / "link")
    assert (tmp_path / "builds/swish-1").exists()
    pool._prune(tmp_path / "builds")
    assert not (tmp_path / "builds/swish-1").exists()


def test_an_interrupt_ends_what_is_judged_and_what_was_about_to_be(folders, tmp_path, monkeypatch):
    begun = []

    class Fork:
        def __init__(self):
            self.killed = threading.Event()
            self.kill = self.killed.set

        def wait(self, seconds):
            begun.append(seconds)
            self.killed.wait(20)

    class Forks:
        def run(self, *_, **__):
            return Fork()

    def interrupted(*_, **__):
        while not begun:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(grading, "_forks", Forks)
    monkeypatch.setattr(pool, "wait", interrupted)
    for folder in folders:
        (folder.places[0] / "swish.cu").write_text("void swish() {}\n")
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False, boxed=False)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(pool.graded(folders, terms, jobs=1))
    assert time.monotonic() - start < 15 and len(begun) == 1
    assert not list((tmp_path / "store").glob("*/*.json")), "no verdict is made of it"


def test_an_interrupt_comes_while_the_fork_server_starts(folders, tmp_path, monkeypatch):
    class Fork:
        kill = staticmethod(lambda: None)

        def wait(self, seconds):
            pytest.fail("nobody waits for it")

    class Forks:
        def run(self, *_, **__):
            grading.stop()
            return Fork()

    monkeypatch.setattr(grading, "_forks", Forks)
    (folders[0].places[0] / "swish.cu").write_text("void swish() {}\n")
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False, boxed=False)
    grading.begin()
    made = pool.one(pool.Job(folders[0], terms, False))
    grading.begin()
    assert made.fault == "WorkbookError: the run was interrupted"


def test_without_resume_another_secret_is_drawn(tmp_path):
    store = tmp_path / "store"
    first = pool.terms(TOPICS, store, resume=False)
    assert pool.terms(TOPICS, store, resume=True) == first
    assert pool.terms(TOPICS, store, resume=False).seed != first.seed
    assert store.stat().st_mode & 0o077 == 0, "nobody else reads it"


def test_of_many_that_begin_at_once_all_have_one_secret(tmp_path, monkeypatch):
    """As the tasks of an array do, each with a folder of its own."""
    drawn = itertools.count()
    both = threading.Barrier(2)

    def slowly(_):
        number = next(drawn)
        time.sleep(0.2 + 0.2 * number)
        return f"secret {number}"

    def begin():
        both.wait()
        return pool.terms(TOPICS, tmp_path, resume=True).seed

    monkeypatch.setattr(pool.secrets, "token_hex", slowly)
    with ThreadPoolExecutor(2) as tasks:
        seeds = {task.result() for task in [tasks.submit(begin) for _ in range(2)]}
    assert seeds == {"secret 0"}


def test_workers_of_dask_make_the_same_grades(graded, folders, tmp_path):
    distributed = pytest.importorskip("distributed")
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    here = {g.student: g for g in pool.graded(folders[::-1], terms)}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        there = {g.student: g for g in pool.graded(folders, terms, cluster=address)}
    assert there.keys() == here.keys() and there["cursed"] == here["cursed"]
    graded = [folder.name for folder in folders if folder.name != "cursed"]
    assert all(replace(there[n], seconds=here[n].seconds) == here[n] for n in graded)


def test_a_cluster_without_dask_is_told(monkeypatch, folders, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    terms = pool.terms(TOPICS, tmp_path / "store", resume=False)
    with pytest.raises(ToolError, match="pip install distributed"):
        next(pool.graded(folders, terms, cluster="tcp://127.0.0.1:1"))


def test_a_folder_without_students_is_told(tmp_path):
    with pytest.raises(WorkbookError, match="has no folders"):
        collect.students(tmp_path)
    with pytest.raises(WorkbookError, match="cannot be read: No such file"):
        collect.students(tmp_path / "nowhere")
