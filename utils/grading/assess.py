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
    """JSON of a judge.credit.Credit and of what `diagnose` shows; `{}` of a cell that has not
    compiled. `passed` is what its check said."""
    if not isinstance(kernel, Answer):
        return "{}"
    secret = f"{settings.seed()} {kernel.exercise.id} hidden".encode()
    seed = int.from_bytes(hashlib.sha256(secret).digest()[:4])
    found = (credit.of_passed if passed else credit.of_failed)(kernel, seed)
    told = {"credit": asdict(found)}
    if not passed and not kernel.untouched:
        told |= _examined(kernel)
    return json.dumps(told)


def timed(kernel: object, right: bool) -> str:
    """JSON of a timing.speed.Speed and its ratio; `{}` where there is nothing to time: no GPU, no
    exercise in writing a kernel. `right` is what was found of its values; no other is timed."""
    if not isinstance(kernel, Answer) or kernel.backend != "cuda":
        return "{}"
    from utils.timing import measure, speed

    if kernel.exercise.faulty or not kernel.exercise.at.bench:
        return "{}"
    wrong = speed.Speed(measure.gpu(), 0.0, message="only what is right on all sizes is timed")
    found = speed.beside_the_solution(kernel) if right else wrong
    return json.dumps({"speed": asdict(found) | {"ratio": found.ratio}})


def _examined(kernel: Answer) -> dict:
    """The report and the picture of `diagnose`, at its usual size with its usual values."""
    from utils.diagrams.explain import examine

    try:
        report, picture = examine(kernel)
    except WorkbookError as error:
        return {"diagnosis": str(error)}
    told = {"diagnosis": report}
    return told | ({"picture": picture.svg(), "alt": picture.description} if picture else {})
