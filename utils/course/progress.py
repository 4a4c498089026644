"""What a learner has passed: build/passed/NN_topic/NAME/ holds the text of each kernel that did.

A file is named for what passed, by digest: the text and all that it was compiled with, and the
topic's spec. So after a restart `bench` knows a kernel again, and no other.

What `workbook run --solutions` passes is noted elsewhere, and forgotten: see WORKBOOK_PASSED.
These are the learner's own notes, never in git. They prove nothing: anybody can write a file. So no
grader reads them, and `check` and `workbook check` always check.
"""

import hashlib
from pathlib import Path

from utils.course import catalog
from utils.course.answers import Answer
from utils.course.exercise import Exercise
from utils.ground import files, settings
from utils.ground.paths import workspace


def keep(kernel: Answer) -> None:
    """Note that a kernel of the learner's has passed its check just now."""
    files.write_text(_path(kernel), kernel.source)


def holds(kernel: Answer) -> bool:
    """Whether this very kernel has passed before, in this process or another."""
    return _path(kernel).is_file()


def texts(exercise: Exercise) -> list[str]:
    """All that has passed for an exercise, in no order."""
    return [path.read_text(encoding="utf-8") for path in _folder(exercise).glob("*.cu")]


def done(exercise: Exercise) -> bool:
    """Whether the learner has ever passed it."""
    return any(_folder(exercise).glob("*.cu"))


def exercises(topic: str) -> list[Exercise]:
    """What there is to pass in a topic, in order: worked kernels are not counted."""
    return [exercise for exercise in catalog.topic(topic).values() if exercise.number]


def next_after(exercise: Exercise | None = None) -> Exercise | None:
    """The first exercise behind this one that is not done; else the first of all, or None."""
    known = [candidate for topic in catalog.topics() for candidate in exercises(topic)]
    ids = [candidate.id for candidate in known]
    start = ids.index(exercise.id) + 1 if exercise and exercise.id in ids else 0
    return next(
        (candidate for candidate in known[start:] + known[:start] if not done(candidate)), None
    )


def standing(exercise: Exercise) -> str:
    """ "00: 1 of 2 · next: 00.2": how far the learner is in its topic, and what follows."""
    counted = exercises(exercise.topic)
    passed = sum(map(done, counted))
    further = next_after(exercise)
    words = "that was the last one: all are done"
    if further:
        between = [f"notebook {number}" for number in _without_exercises(exercise, further)]
        words = f"next: {', then '.join([*between, str(further.number)])}"
    return f"{exercise.topic.partition('_')[0]}: {passed} of {len(counted)} · {words}"


def _without_exercises(one: Exercise, other: Exercise) -> list[str]:
    """The chapters between two exercises that have a notebook and no exercise, such as "13"."""
    stems = {path.stem for path in workspace().notebooks.glob("[0-9][0-9]_*.ipynb")}
    chapters = {stem[:2] for stem in stems} - {topic[:2] for topic in catalog.topics()}
    return sorted(number for number in chapters if one.topic[:2] < number < other.topic[:2])


def _folder(exercise: Exercise) -> Path:
    passed = settings.passed() or workspace().build / "passed"
    return passed / exercise.topic / exercise.name


def _path(kernel: Answer) -> Path:
    """Where the note on this very kernel is, or would be."""
    spec = (workspace().kernels / kernel.exercise.topic / "spec.py").read_bytes()
    digest = hashlib.sha256(f"{kernel.backend} {kernel.digest} ".encode() + spec)
    return _folder(kernel.exercise) / f"{digest.hexdigest()[:16]}.cu"
