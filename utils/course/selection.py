"""What a word on the command line means: `01`, `01_naive_gemm`, `01/gemm_naive`, `01.1`."""

from collections.abc import Sequence
from pathlib import Path

from utils.course import catalog
from utils.course.exercise import Exercise
from utils.ground.errors import WorkbookError
from utils.ground.paths import workspace


class NotFound(WorkbookError):
    """The word names nothing in the workbook; the message lists what there is."""


def _named(word: str, known: Sequence[str]) -> list[str]:
    """The one of this name, or all of this number: a chapter may have two notebooks."""
    stem = Path(word).stem if word.endswith(".ipynb") else word
    number = stem.zfill(2) if stem.isdigit() else stem
    names = [name for name in known if name == stem]
    names = names or [name for name in known if name.partition("_")[0] == number]
    if not names:
        raise NotFound(f"there is no '{word}'; there are {', '.join(known) or 'none at all'}")
    return names


def _topic(word: str) -> str:
    return _named(word, catalog.topics())[0]


def notebooks(words: Sequence[str] = ()) -> list[Path]:
    """The notebooks of the words, or all of them."""
    known = sorted(path.stem for path in workspace().notebooks.glob("[0-9][0-9]_*.ipynb"))
    chosen = [name for word in words for name in _named(word, known)] or known
    return [workspace().notebooks / f"{name}.ipynb" for name in dict.fromkeys(chosen)]


def topics(words: Sequence[str] = ()) -> list[str]:
    """The topics of the words, or all that have a spec."""
    return list(dict.fromkeys(map(_topic, words))) or catalog.topics()


def kernels(word: str) -> list[Exercise]:
    """The kernels of a topic (`01`), or the one of a topic and a name or of a number (`01.1`)."""
    folder, slash, name = word.partition("/")
    if not slash and "." in word and not word.endswith(".ipynb"):
        for exercise in catalog.topic(_topic(word.partition(".")[0])).values():
            if exercise.number == word:
                return [exercise]
        raise NotFound(f"there is no exercise {word}")
    topic = _topic(folder)
    return [catalog.load(f"{topic}/{name}")] if slash else list(catalog.topic(topic).values())
