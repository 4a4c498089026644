"""What a notebook's kernel says of an answer after its check, asked by the plugin of nbval.

The kernel is ours; the student's text is compiled and run in boxes. What comes back goes through
Jupyter's own protocol, not through anything that a kernel can print to.
"""

import hashlib
import json
from dataclasses import asdict

from utils import settings
from utils.course.answers import Answer
from utils.errors import WorkbookError
from utils.judge import credit


def assess(kernel: object, passed: bool) -> str:
    """JSON of a judge.credit.Credit, of a timing.speed.Speed where there is a GPU, and of what
    `diagnose` shows; `{}` of a cell that has not compiled. `passed` is what its check said."""
    if not isinstance(kernel, Answer):
        return "{}"
    secret = f"{settings.seed()} {kernel.exercise.id} hidden".encode()
    seed = int.from_bytes(hashlib.sha256(secret).digest()[:4])
    found = (credit.of_passed if passed else credit.of_failed)(kernel, seed)
    told = {"credit": asdict(found)} | _timed(kernel, passed and not found.unknown)
    if not passed and not kernel.untouched:
        told |= _examined(kernel)
    return json.dumps(told)


def _timed(kernel: Answer, right: bool) -> dict:
    """A timing.speed.Speed and its ratio; nothing where there is nothing to time: no GPU, no kernel
    to write. What is not `right` is not timed, and gets no points for speed."""
    if kernel.backend != "cuda" or kernel.exercise.faulty:
        return {}
    from utils.timing import measure, speed

    wrong = speed.Speed(measure.gpu(), 0.0, message="only what is right on all sizes is timed")
    found = speed.beside_the_solution(kernel) if right else wrong
    return {"speed": asdict(found) | {"ratio": found.ratio}}


def _examined(kernel: Answer) -> dict:
    """The report and the picture of `diagnose`, at its usual size with its usual values."""
    from utils.diagrams.explain import examine

    try:
        report, picture = examine(kernel)
    except WorkbookError as error:
        return {"diagnosis": str(error)}
    told = {"diagnosis": report}
    return told | ({"picture": picture.svg(), "alt": picture.description} if picture else {})
