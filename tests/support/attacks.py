"""Kernels that pretend, and right ones of an unusual kind: texts, and what `check` must say.

`tests/attacks/CLASS/` and `tests/unusual/NN_topic/` hold two kinds of files:

* `EXERCISE.diff`: differences from the exercise's solution, as in `tests/mutants`
  (utils/course/mutants.py says how they are written):

      == on_the_cpu: no kernel
      # copies x to the host and computes there
      # says: the launcher
      -    swish_kernel<<<...>>>(x, out, n);
      +    ...

* `NAME.cu`: a whole text. Its first comment lines are the head:

      // swish: no kernel
      // copies x to the host and computes there
      // says: the launcher

An outcome is a reason of `check`, or one of OTHERS; there may be several: `race/wrong values`.
Words behind `says:` must stand in the message. Those behind `hint:` may stand in its hint, which
says what is so, but not what is wrong.
"""

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

from utils.course import catalog, mutants
from utils.course.answers import Answer, compile_wrong
from utils.course.exercise import Exercise
from utils.ground import files
from utils.ground.errors import CheckFailed, CompileError, DeclarationError, Reason
from utils.ground.paths import ROOT
from utils.judge.check import check

PASSED = "passed"
# What a text may meet beside a reason of check: refused before it runs, or accepted.
OTHERS = {"compile error": CompileError, "declaration": DeclarationError, PASSED: None}


class _Outcomes(list):
    """The known ones; several with strokes between them are one, too."""

    def __contains__(self, text: str) -> bool:
        return all(list.__contains__(self, one) for one in text.split("/"))


OUTCOMES = _Outcomes([*Reason, *OTHERS])

_HEAD = re.compile(r"// (\w+): ([\w /]+)")
_WORDS = re.compile(r"(says|hint): (.+?)(?=(?:says|hint):|$)")


@dataclass(frozen=True)
class Attempt:
    """A text, and what it must meet."""

    id: str  # "state/swish__twelve_calls"
    exercise: Exercise
    text: str
    outcomes: tuple[str, ...]
    says: tuple[str, ...]  # words of the message
    hints: tuple[str, ...]  # and what else its hint may say
    place: str

    def compiled(self) -> Answer:
        """Raises what compile_wrong raises."""
        return compile_wrong(self.exercise, self.text, re.sub(r"\W+", "_", self.id))

    def judge(self, seed: int | None = None) -> tuple[str, str]:
        """What it meets, and the message."""
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                check(self.compiled(), seed=seed)
        except CheckFailed as failure:
            return str(failure.reason), str(failure)
        except (CompileError, DeclarationError) as error:
            return next(k for k, kind in OTHERS.items() if kind and isinstance(error, kind)), str(
                error
            )
        return PASSED, printed.getvalue()


def attempts(folder: Path) -> list[Attempt]:
    """All texts below a folder, in order."""
    attacks = []
    for path in sorted(folder.rglob("*.*")):
        if path.suffix == ".diff":
            attacks += _differences(path)
        elif path.suffix == ".cu":
            attacks.append(_whole(path))
    return attacks


def exercise_named(name: str) -> Exercise:
    """The exercise of a launcher's name, which no two of them share."""
    (exercise,) = (e for e in catalog.exercises() if e.name == name)
    return exercise


def _differences(path: Path) -> list[Attempt]:
    exercise = exercise_named(path.stem)
    return [
        Attempt(
            f"{path.parent.name}/{path.stem}__{m.name}",
            exercise,
            m.text,
            tuple(m.reason.split("/")),
            *_words(m.fault),
            m.place,
        )
        for m in mutants.read(path, exercise, OUTCOMES)
    ]


def _whole(path: Path) -> Attempt:
    text = files.read_source(path)
    first, *lines = text.splitlines()
    head = _HEAD.fullmatch(first.strip())
    assert head, f"{path}: the first line should be '// exercise: outcome'"
    outcomes = tuple(head[2].split("/"))
    assert set(outcomes) <= set(OUTCOMES), f"{path}: the outcome is none of {OUTCOMES}"
    said = []
    for line in lines:
        if not line.startswith("//"):
            break
        said.append(line.removeprefix("//").strip())
    place = str(path.relative_to(ROOT))
    id = f"{path.parent.name}/{path.stem}"
    words = _words(" ".join(said))
    return Attempt(id, exercise_named(head[1]), text, outcomes, *words, place)


def _words(head: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What its message must say, and what its hint may."""
    pairs = [(key, words.strip()) for key, words in _WORDS.findall(head)]
    says, hints = (tuple(w for k, w in pairs if k == key) for key in ("says", "hint"))
    return says, hints
