"""A grade: what each exercise of a submission earned, and why. Tables and feedback are made of it.

Its JSON is what `--json-dir` writes and what the store keeps for `--resume`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from utils.course.exercise import Exercise
from utils.grading import points
from utils.grading.records import JSON, present
from utils.grading.verdicts import Status
from utils.judge.credit import Credit
from utils.timing.speed import Speed


@dataclass(frozen=True)
class Assessment:
    """What a notebook's kernel says of an answer beyond its check."""

    credit: Credit | None = None  # None of a cell that has not compiled
    speed: Speed | None = None  # None where there is nothing to time
    diagnosis: str | None = None  # the report of `diagnose`
    picture: str | None = None  # its SVG
    alt: str | None = None  # what the picture shows, in words

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what to_json gave."""
        credit, speed = data.get("credit"), data.get("speed")
        return cls(
            Credit(**credit) if credit else None,
            Speed.from_json(speed) if speed else None,
            *(data.get(name) for name in ("diagnosis", "picture", "alt")),
        )

    def to_json(self) -> JSON:
        """As JSON has it."""
        credit, speed = self.credit and asdict(self.credit), self.speed and self.speed.to_json()
        return present({**vars(self), "credit": credit, "speed": speed})


@dataclass(frozen=True)
class Mark:
    """What an exercise earned, and why."""

    exercise: str  # its id
    number: str
    name: str
    of: int
    points: float = 0.0
    status: Status = Status.NOT_ATTEMPTED
    message: str = ""  # what the check said
    place: str = ""  # where in the submission the answer stood
    parts: Mapping[str, float] = field(default_factory=dict)  # points of each, if it compiled
    diagnosis: str | None = None
    picture: str | None = None
    alt: str | None = None
    speed: Speed | None = None
    published: bool = False  # the answer is the workbook's solution, comments and spaces aside
    like_starter: bool = False  # it does no more than its starter

    @classmethod
    def of_exercise(cls, exercise: Exercise, **more: Any) -> Self:
        """The exercise's, with what else a Mark has."""
        return cls(exercise.id, exercise.number or "", exercise.name, exercise.points, **more)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what to_json gave."""
        speed = Speed.from_json(data["speed"]) if data.get("speed") else None
        return cls(**{**data, "status": Status(data["status"]), "speed": speed})

    def to_json(self) -> JSON:
        """As JSON has it; `speed` is null where an answer compiled and was not timed."""
        flags = {name: getattr(self, name) or None for name in ("published", "like_starter")}
        own = {"parts": dict(self.parts), "speed": None, **flags}
        fields = present(vars(self) | own)
        return fields | ({"speed": self.speed and self.speed.to_json()} if self.parts else {})

    def without_picture(self) -> Self:
        """The same mark without its picture."""
        return replace(self, picture=None, alt=None)


@dataclass(frozen=True)
class Grade:
    """What a student has earned."""

    student: str
    exercises: Sequence[Mark]
    latest: float = 0.0  # when it was handed in, in seconds since 1970
    notes: Sequence[str] = ()  # how the answers were found
    answers: Mapping[str, str] = field(default_factory=dict)  # texts by exercise id
    digest: str = ""  # of all that the grade depends on
    seconds: float = 0.0  # that it took
    clock: str = ""  # what says when it was handed in; nothing: the newest file

    @property
    def points(self) -> float:
        """What was earned."""
        return round(sum(mark.points for mark in self.exercises), 2)

    @property
    def of(self) -> int:
        """What could have been."""
        return sum(mark.of for mark in self.exercises)

    @property
    def timed(self) -> str | None:
        """See timed()."""
        return timed(self.exercises)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what to_json gave; what follows from the exercises is computed anew."""
        return cls(
            data["student"],
            tuple(map(Mark.from_json, data["exercises"])),
            data["latest"],
            tuple(data["notes"]),
            data.get("answers", {}),
            data.get("digest", ""),
            data.get("seconds", 0.0),
            data.get("clock", ""),
        )

    def to_json(self) -> JSON:
        """As JSON has it."""
        return {
            "student": self.student,
            "latest": self.latest,
            "notes": list(self.notes),
            "answers": dict(self.answers),
            "points": self.points,
            "of": self.of,
            "exercises": [mark.to_json() for mark in self.exercises],
            "timed": self.timed,
            "digest": self.digest,
            "seconds": self.seconds,
            **({"clock": self.clock} if self.clock else {}),
        }

    def without_pictures(self) -> Self:
        """The same grade without the pictures and the answers, which are most of its size."""
        marks = tuple(mark.without_picture() for mark in self.exercises)
        return replace(self, exercises=marks, answers={})


@dataclass(frozen=True)
class Ungraded:
    """A submission that could not be graded, for a fault that is not the student's."""

    student: str
    fault: str

    def to_json(self) -> JSON:
        """As JSON has it."""
        return dict(vars(self))


Graded = Grade | Ungraded


def timed(marks: Iterable[Mark]) -> str | None:
    """On which GPU answers were timed: its name; "partly" too where some were not, of those that
    could have been. Empty where none was, None where none could have been."""
    could = [mark.speed for mark in marks if mark.parts.keys() & points.SHARES.keys()]
    if not could:
        return None
    names = {speed.gpu for speed in could if speed and speed.tenths is not None}
    every = all(speed and speed.tenths is not None for speed in could)
    return " and ".join(sorted(names)) + (", partly" if names and not every else "")
