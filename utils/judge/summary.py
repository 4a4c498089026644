"""How a pass is told: a line that one sees across the room, and what was tried beneath it."""

from dataclasses import dataclass
from html import escape

from utils.course import progress
from utils.course.answers import Answer
from utils.ground.wording import show

# White on green, so that it is seen in a light theme and in a dark one; the contrast is 5.1 to 1.
_LINE = "background: #1a7f37; color: #fff; padding: 0.35em 0.7em; border-radius: 4px"
_LINE += "; font-size: 1.15em; font-weight: 600; line-height: 1.5; margin: 0.3em 0"


@dataclass(frozen=True)
class Passed:
    """What a kernel has passed: so many cases, what watching it showed, and the details."""

    cases: int
    watched: str  # "no hazards, gates passed"
    details: str


@dataclass(frozen=True)
class _Message:
    line: str
    details: str

    def __str__(self) -> str:
        return f"{self.line}\n{self.details}"

    def _repr_html_(self) -> str:
        return f'<div style="{_LINE}">{escape(self.line)}</div><div>{escape(self.details)}</div>'


def tell(kernel: Answer, passed: Passed) -> None:
    """Show that a kernel has passed; if it is the learner's, keep that, and say what is next."""
    words = [kernel.exercise.number, kernel.name, "passed"]
    watched = passed.watched.replace("gates passed", "gates")
    line = f"✓ {' '.join(filter(None, words))} ({passed.cases} cases, {watched})"
    if kernel.learners:
        progress.keep(kernel)
        if kernel.exercise.number:
            line += f" · {progress.standing(kernel.exercise)}"
    show(_Message(line, passed.details))
