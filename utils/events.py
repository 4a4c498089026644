"""What `check` and `bench` tell whoever runs them: lines of JSON in the file of WORKBOOK_LOG."""

import json

from utils import settings


def log(event: str, exercise, **fields) -> None:
    """Append a line to the file that WORKBOOK_LOG names, if it does."""
    if path := settings.log():
        line = {"event": event, "id": exercise.id, "number": exercise.number, **fields}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
