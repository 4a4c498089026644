"""What nbval's plugin says of a notebook: a record for each exercise, and cells in trouble.

It goes through pytest's reports and xdist's workers into the file of --workbook-json, and into a
grade.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from utils.course.exercise import Exercise
from utils.grading.verdicts import Status

JSON = dict[str, Any]


def present(values: Mapping[str, object]) -> JSON:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Record:
    """What became of an exercise. Its points here are all or nothing: whether it passed."""

    exercise: str  # its id
    number: str
    points: int
    of: int
    status: Status
    message: str = ""
    assessed: JSON | None = None  # that of a grades.Assessment, of an exercise that was assessed
    not_assessed: str | None = None  # why it was not
    fault: str | None = None  # what failed on the machine that was to judge it

    @classmethod
    def of_exercise(
        cls, exercise: Exercise, status: Status, message: str = "", **more: object
    ) -> Self:
        """With the exercise's points where it has passed. `more` may hold None."""
        points = exercise.points if status is Status.PASSED else 0
        data = {"exercise": exercise.id, "number": exercise.number, "points": points}
        data |= {"of": exercise.points, "status": status, "message": message}
        return cls.from_json(data | more)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what to_json gave."""
        return cls(**{**data, "status": Status(data["status"])})

    def to_json(self) -> JSON:
        """As JSON has it."""
        return present(vars(self))

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """From those of a report of pytest's, among others."""
        known = {f.name: properties[f.name] for f in fields(cls) if f.name in properties}
        extra = {name: json.loads(known[name]) for name in _EXTRA if name in known}
        return cls.from_json(known | extra)

    def properties(self) -> list[tuple[str, object]]:
        """For a report of pytest's, and for JUnit's testcase, which hold no nested values."""
        fields = self.to_json()
        fields |= {name: json.dumps(fields[name]) for name in _EXTRA if name in fields}
        return [("status", str(fields.pop("status"))), *fields.items()]


_EXTRA = ("assessed", "not_assessed", "fault")


@dataclass(frozen=True)
class CellTrouble:
    """A cell that failed and belongs to no exercise."""

    cell: int
    name: str
    status: Status
    message: str


@dataclass(frozen=True)
class Score:
    """The exercises of a notebook, and the cells beside them."""

    notebook: str
    exercises: Sequence[Record]
    troubles: Sequence[CellTrouble] = ()

    @property
    def points(self) -> int:
        """What was earned."""
        return sum(record.points for record in self.exercises)

    @property
    def of(self) -> int:
        """What could have been."""
        return sum(record.of for record in self.exercises)

    def to_json(self) -> JSON:
        """As the file of --workbook-json has it."""
        return {
            "points": self.points,
            "of": self.of,
            "notebook": self.notebook,
            "exercises": [record.to_json() for record in self.exercises],
            "troubles": [vars(trouble) for trouble in self.troubles],
        }
