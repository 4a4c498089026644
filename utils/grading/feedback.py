"""What a student reads: points and their parts, what the check said, the report and the picture of
`diagnose`, a hint. As Markdown, and as a page of HTML made of it that needs no other file.

Messages and reports quote what the student wrote. They stand as code, of which nothing is markup.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from markdown_it import MarkdownIt

from utils.course import catalog
from utils.course.exercise import Exercise, Gate
from utils.grading import inert, pages, points, tables
from utils.grading.grades import Grade, Mark
from utils.grading.verdicts import Status
from utils.ground import files
from utils.timing.speed import Speed

NAME = "feedback"  # of both files, without their endings
PICTURE = 4 << 20  # characters of an SVG


def write(grade: Grade, folder: str | Path, row: Mapping[str, str] | None = None) -> Path:
    """Write a student's feedback; `row` is that of the table, which has the final score.

    feedback.md, feedback.html and the pictures go into a folder of the student's own in `folder`,
    which is returned. Pictures of an earlier grade are removed.
    """
    own = Path(folder) / safe_name(grade.student)
    own.mkdir(parents=True, exist_ok=True)
    for earlier in own.glob("*.svg"):
        earlier.unlink()
    pictures = {}
    for mark in grade.exercises:
        if mark.picture is not None:
            name = _picture(mark)
            pictures[name] = inert.visible(mark.picture, most=PICTURE)
            files.write_text(own / name, pictures[name])
    text = markdown(grade, row)
    files.write_text(own / f"{NAME}.md", text)
    files.write_text(
        own / f"{NAME}.html",
        page(text, f"Feedback for {inert.visible(grade.student, lines=False)}", pictures),
    )
    return own


def safe_name(student: str) -> str:
    """What a student's folder or file is called: in one place, and no other student's."""
    return inert.file_name(student)


def markdown(grade: Grade, row: Mapping[str, str] | None = None) -> str:
    """The feedback as Markdown; its pictures are files beside it."""
    rows = [f"| {_name(m)} | {_of(m.points, m.of)} | {m.status} |" for m in grade.exercises]
    parts = [f"# Feedback for {inert.code(grade.student)}"]
    parts += [f"**{_of(grade.points, grade.of)} points.**"] if row is None else _score(grade, row)
    parts.append("\n".join(f"- {inert.code(note)}" for note in grade.notes))
    parts.append("\n".join(["| exercise | points | status |", "| --- | --- | --- |", *rows]))
    for mark in grade.exercises:
        parts += _exercise(mark, catalog.load(mark.exercise))
    return "\n\n".join(filter(None, parts)) + "\n"


def _score(grade: Grade, row: Mapping[str, str]) -> Iterator[str]:
    """The final score, and how it came about, where it is not the sum of the points alone."""
    late = float(row.get("late_submission_penalty") or 0)
    manual = tables.as_number(row.get("manual", ""), "manual", Path())
    yield f"**{_of(float(row['score'] or 0), grade.of)} points.**"
    lines = [f"- your answers: {_of(grade.points, grade.of)}"]
    if row.get("timestamp"):
        by = f" (by {inert.code(grade.clock)})" if grade.clock else " (by the newest file)"
        due = f", due {_when(row['duedate'])}" if row.get("duedate") else ""
        lines.append(f"- handed in {_when(row['timestamp'])}{by}{due}")
    if late or "late" in row.get("status", ""):
        days = re.search(r"(\d+ days? late)", row.get("status", ""))
        lines.append(f"- {days[1] if days else 'late'}: {-late:g}")
    if manual:
        lines.append(f"- your instructor has changed it by {manual:+g}")
    if manual + grade.points - late < 0:
        lines.append("- less than nothing is 0")
    yield "\n".join(lines)
    if comment := row.get("comment", "").strip():
        yield f"Your instructor's comment: {inert.escaped(comment)}"


def _when(iso: str) -> str:
    """A time of the table, in local time."""
    return f"{datetime.fromisoformat(iso).astimezone():%Y-%m-%d %H:%M:%S %Z}"


def _name(mark: Mark) -> str:
    return f"{mark.number} `{mark.name}`"


def _of(points: float, of: float) -> str:
    return f"{round(points, 2):g} of {round(of, 2):g}"


def _picture(mark: Mark) -> str:
    return f"{mark.number}_{mark.name}.svg"


def _exercise(mark: Mark, exercise: Exercise) -> Iterator[str]:
    """The paragraphs about an exercise."""
    yield f"## {_name(mark)}: {_of(mark.points, mark.of)}"
    outputs = ", ".join(f"{inert.code(name)}" for name in exercise.outputs)
    yield f"Task: {inert.escaped(exercise.title)}, in {outputs}. Status: {mark.status}."
    if mark.place:
        yield f"Your answer: {inert.code(mark.place)}"
    if mark.published:
        yield "It equals the workbook's published solution, comments and spaces aside."
    yield "\n".join(_parts(mark, exercise))
    if mark.status is Status.PASSED:
        return
    if mark.message:
        yield "### What the check said"
        yield inert.block(mark.message)
    if lost := list(_expected(mark, exercise)):
        yield "### What was expected"
        yield "\n".join(lost)
    if mark.diagnosis:
        yield "### What `diagnose` shows"
        yield inert.block(mark.diagnosis)
    if mark.picture is not None:
        yield f"![{inert.escaped(mark.alt or '')}]({_picture(mark)})"
    for hint in catalog.hints(exercise)[:1]:
        yield "### A hint"
        yield hint


def _parts(mark: Mark, exercise: Exercise) -> Iterator[str]:
    worth = points.shares(exercise, timed="speed" in mark.parts)
    for part, earned in mark.parts.items():
        note = " (what you were given does as much)" * (part == "works" and mark.like_starter)
        yield f"- {points.WORDS[part]}: {_of(earned, exercise.points * worth[part])}{note}"
    if mark.parts and not exercise.faulty:
        yield f"- {_speed(mark.speed)}"


def _speed(speed: Speed | None) -> str:
    """How fast it was, or why nobody knows."""
    if speed is None:
        return "Nothing was timed: there was no GPU. Points for speed go to the technique"
    where = f" on one {inert.escaped(speed.gpu)}" if speed.gpu else ""
    if speed.tenths is None:
        return f"Nothing was timed{where}: {inert.code(speed.message)}"
    if speed.message:
        return f"No points for speed{where}: {inert.code(speed.message)}"
    times = f"{_seconds(speed.seconds)} a call, the solution {_seconds(speed.reference)}"
    return f"Timed{where}: {times}, {speed.ratio:.2f} times as long"


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def _expected(mark: Mark, exercise: Exercise) -> Iterator[str]:
    """What the parts that earned nothing ask for. Of sizes, only those of the public spec."""
    if mark.status in (Status.NOT_ATTEMPTED, Status.NOT_REACHED):
        return
    lost = {part for part, earned in mark.parts.items() if not earned}
    if not mark.parts:
        yield "- a text that compiles"
    if "works" in lost:
        more = ", beyond what the starter does" * mark.like_starter
        yield f"- kernels that run to their end, and write outputs of which half are right{more}"
    if "named" in lost:
        yield "- the line `// fault: NAME, line N` with the fault and a line that has it"
    if lost & {"small", "all", "fixed"}:
        sizes = (" ".join(f"{n}={v}" for n, v in size.items()) for size in exercise.at.check)
        tried = "; ".join(map(inert.code, sizes))
        yield f"- the values that PyTorch reaches, at every size. The notebook tries {tried}"
    if lost & {"clean", "fixed"}:
        yield (
            "- right values with no race, no access outside an array, and nothing read before it "
            "is written"
        )
    if "gates" in lost:
        bounds = (f"{inert.code(gate.metric)} {_bound(gate)}" for gate in exercise.gates)
        yield f"- right values by the technique, which is counted: {'; '.join(bounds)}"


def _bound(gate: Gate) -> str:
    return f"{'at least' if gate.at_least else 'at most'} {gate.times:g} × the ideal"


# --- the page


def page(markdown: str, title: str, pictures: Mapping[str, str]) -> str:
    """A whole HTML document of the Markdown, with these SVG texts by name inside of it."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    for token in (inner for outer in tokens for inner in (outer, *(outer.children or ()))):
        source = token.attrGet("src") if token.type == "image" else None
        if source is not None:
            svg = base64.b64encode(pictures.get(str(source), "").encode()).decode()
            token.attrSet("src", f"data:image/svg+xml;base64,{svg}")
    body = parser.renderer.render(tokens, parser.options, {})
    return pages.page(title, body)
