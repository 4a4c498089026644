"""`hint(swish)` and `reset(swish)`: what a learner may ask for in a notebook.

What reads notebooks is imported when it is called for: that alone takes two seconds, and every
first cell would wait for it.
"""

from dataclasses import dataclass

from utils.course import catalog, selection
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace
from utils.ground.wording import show

RESET = "application/vnd.cuda-workbook.reset+json"  # what our extension of JupyterLab acts on

_shown: dict[str, int] = {}  # hints of each exercise that this process has shown


def hint(kernel: object) -> None:
    """Show the next hint of an exercise: the first one first, and after the last one all again.

    `kernel` is what the cell has bound, or a text such as "swish" or "00.1". Raises WorkbookError.
    """
    exercise = _exercise(kernel)
    known = catalog.hints(exercise)
    if not known:
        raise WorkbookError(f"{exercise.name} has no hints")
    place = _shown.get(exercise.id, 0) % len(known)
    _shown[exercise.id] = place + 1
    left = len(known) - place - 1
    more = f"hint({exercise.name}) again shows the next" if left else "That was the last one"
    show(_Hint(f"Hint {place + 1} of {len(known)}", known[place], f"{more}."))


@dataclass(frozen=True)
class _Hint:
    head: str
    text: str  # Markdown
    foot: str

    def __str__(self) -> str:
        return f"{self.head}: {self.text}\n{self.foot}"

    def _repr_markdown_(self) -> str:
        return f"**{self.head}.** {self.text}\n\n{self.foot}"


def reset(kernel: object) -> None:
    """Put the starter back into an exercise's cell of the open notebook; Undo works there.

    `kernel` as for hint(). What it replaces is kept, as it was last run and as it was last saved.
    Our extension of JupyterLab changes the cell, see labextension/. Raises WorkbookError.
    """
    from utils.notebooks import documents, sync

    exercise = _exercise(kernel)
    texts: list[str] = [documents.answer(exercise), _source(kernel)]
    distinct = dict.fromkeys(text.strip("\n") for text in texts)
    own = [text for text in distinct if text and not catalog.is_starter(exercise, text)]
    kept = [sync.keep(f"{text}\n", exercise.name).relative_to(workspace().root) for text in own]
    show(_Reset(exercise, " and ".join(map(str, kept))))


@dataclass(frozen=True)
class _Reset:
    exercise: Exercise
    kept: str

    def __str__(self) -> str:
        text = f"{self.exercise.name} is the starter again; run its cell."
        if self.kept:
            text += f" Your text is kept in {self.kept}."
        word = self.exercise.number or self.exercise.id
        return f"{text}\nIf the cell has not changed: `workbook reset {word}` in a terminal."

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]:
        from utils.notebooks import sync

        starter = {"id": self.exercise.id, "source": sync.cell_source(self.exercise)}
        return {RESET: starter, "text/plain": str(self)}


def _source(kernel: object) -> str:
    """The text of the cell that has bound a kernel; also where it did not compile."""
    text = getattr(kernel, "_source", None)
    return str(getattr(kernel, "source", "") if text is None else text)


def _exercise(kernel: object) -> Exercise:
    """The exercise of a kernel, or of a text that names one."""
    if isinstance(line := getattr(kernel, "_exercise_id", None), str):  # it did not compile
        kernel = line
    if isinstance(answered := getattr(kernel, "exercise", None), Exercise):
        return answered
    word = kernel if isinstance(kernel, str) else getattr(kernel, "name", "")
    named = [exercise for exercise in catalog.exercises() if word and exercise.name == word]
    if len(named) != 1 and isinstance(kernel, str):
        named = selection.kernels(kernel)
    if len(named) != 1:
        raise WorkbookError(f"{kernel!r} is no exercise; say which: hint(swish) or hint('00.1')")
    return named[0]
