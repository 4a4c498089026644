"""What a word on the command line means: `01`, `01_naive_gemm`, `01/gemm_naive`, `01.1`."""

from collections.abc import Sequence
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace


class NotFound(WorkbookError):
    """The word names nothing in the workbook; the message lists what there is."""


def _topic(word: str, known: Sequence[str]) -> str:
    stem = Path(word).stem if word.endswith(".ipynb") else word
    number = stem.zfill(2) if stem.isdigit() else stem
    for name in known:
        if number in (name, name.partition("_")[0]):
            return name
    raise NotFound(f"there is no '{word}'; there are {', '.join(known) or 'none at all'}")


def notebooks(words: Sequence[str] = ()) -> list[Path]:
    """The notebooks of the words, or all of them."""
    known = sorted(path.stem for path in workspace().notebooks.glob("[0-9][0-9]_*.ipynb"))
    chosen = [_topic(word, known) for word in words] or known
    return [workspace().notebooks / f"{name}.ipynb" for name in dict.fromkeys(chosen)]


def topics(words: Sequence[str] = ()) -> list[str]:
    """The topics of the words, or all that have a spec."""
    known = catalog.topics()
    return list(dict.fromkeys(_topic(word, known) for word in words)) or known


def kernels(word: str) -> list[Exercise]:
    """The kernels of a topic (`01`), or the one of a topic and a name or of a number (`01.1`)."""
    folder, slash, name = word.partition("/")
    if not slash and "." in word and not word.endswith(".ipynb"):
        for exercise in catalog.topic(_topic(word.partition(".")[0], catalog.topics())).values():
            if exercise.number == word:
                return [exercise]
        raise NotFound(f"there is no exercise {word}")
    topic = _topic(folder, catalog.topics())
    return [catalog.load(f"{topic}/{name}")] if slash else list(catalog.topic(topic).values())
