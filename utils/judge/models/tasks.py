"""What a model file is held against: our own reference, never anything of the file's.

A reference is a file in KernelBench's format: `Model`, `get_inputs()`, `get_init_inputs()`. Its
`SIZES`, if it has some, are the small ones that a model is tried at, and `may_draw(arguments,
shapes)` says which others may be; else smaller ones are looked for. kernels/models/ has references:
of the five tasks by number, of others by name.
"""

import re
from pathlib import Path

from utils.ground.errors import ArgumentValueError, WorkbookError
from utils.ground.paths import workspace
from utils.judge.models import small
from utils.judge.models.reference_text import ReferenceText
from utils.judge.models.task import NotJudged, Size, Task


def read(path: Path) -> Task:
    """The task of a reference file, which is run: it must be one that you trust.

    Raises WorkbookError; NotJudged where it can be read, and not judged.
    """
    try:
        text = path.read_text()
        source = ReferenceText(text, path.stem)
        module = source.module({})
        model, arguments = module.Model, tuple(module.get_init_inputs())
        sizes, may_draw = getattr(module, "SIZES", ()), getattr(module, "may_draw", None)
        named = [Size(tuple(arguments), tuple(map(tuple, shapes))) for arguments, shapes in sizes]
    except OSError as error:
        raise WorkbookError(f"there is no reference {path}: {error.strerror}") from None
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise WorkbookError(f"{path.name} is no reference: {message}") from error
    try:
        return small.task(
            Task(
                path.stem,
                source.text,
                model,
                Size(arguments, ()),
                named,
                source=source,
                may_draw=may_draw,
            )
        )
    except NotJudged as error:
        raise NotJudged(f"{path.name} cannot be judged here: {error}") from None
    except Exception as error:  # what a reference does is not known before
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise NotJudged(f"{path.name} cannot be judged here: {message}") from error


def find(path: Path, task: int | None = None, reference: Path | None = None) -> Task:
    """The task that is asked for, or else the one that a file's name begins with or tells of.

    Raises WorkbookError.
    """
    if reference:
        return read(reference)
    known = {int(p.stem.partition("_")[0]): p for p in references()}
    if task is None:
        stem = path.stem.lower()
        if (other := _folder() / f"{stem}.py").is_file() and other not in known.values():
            return read(other)
        number = re.search(r"(?<!\d)\d+(?!\d)", stem)
        named = [n for n, p in known.items() if p.stem.partition("_")[2].lower() in stem]
        task = named[0] if named else int(number[0]) if number else None
    if task not in known:
        several = ", ".join(map(str, sorted(known)))
        raise ArgumentValueError(
            f"{path.name} tells of no task; say which: --task {several}, or --reference FILE"
        )
    return read(known[task])


def references() -> list[Path]:
    """The files of the five tasks."""
    return sorted(_folder().glob("[0-9]*_*.py"))


def _folder() -> Path:
    return workspace().kernels / "models"
