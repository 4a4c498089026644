"""What `check` and `bench` report: lines of JSON in the file that WORKBOOK_LOG names."""

import json
from typing import Protocol

from utils.ground import settings


class Numbered(Protocol):
    """What is known of an exercise here."""

    @property
    def id(self) -> str:
        """NN_topic/name."""

    @property
    def number(self) -> str | None:
        """Such as 01.1."""


def log(event: str, exercise: Numbered, **fields: object) -> None:
    """Append a line to the file that WORKBOOK_LOG names, if it does."""
    if path := settings.log():
        line = {"event": event, "id": exercise.id, "number": exercise.number, **fields}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
