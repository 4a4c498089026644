"""The rubric: what each part of each exercise is worth, from the specs, as tables of Markdown.

`python -m utils.grading.rubric` brings the instructors' page in step.
"""

from pathlib import Path

from utils.course import catalog
from utils.grading import points
from utils.ground import files

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- rubric -->\n", "<!-- /rubric -->"


def tables() -> str:
    """A table for each chapter; a part that no exercise of it has is left out."""
    return "\n".join(filter(None, map(_chapter, catalog.topics())))


def _chapter(topic: str) -> str:
    exercises = [e for e in catalog.topic(topic).values() if e.number and e.points]
    worth = {e.id: points.shares(e) for e in exercises}
    parts = [part for part in points.WORDS if any(part in shares for shares in worth.values())]
    rows = [["exercise", "points", *(points.WORDS[part] for part in parts)]]
    rows.append(["---"] * len(rows[0]))
    for e in exercises:
        shares = [_points(e.points * worth[e.id].get(part, 0)) for part in parts]
        rows.append([f"{e.number} `{e.name}`", str(e.points), *shares])
    total = sum(e.points for e in exercises)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"### `{topic}`: {total} points", "", *lines, ""]) if exercises else ""


def _points(number: float) -> str:
    return f"{number:g}" if number else ""


def updated(page: str) -> str:
    """The text of the page with the tables as they are now."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}{tables()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    files.write_text(PAGE, updated(PAGE.read_text(encoding="utf-8")))
