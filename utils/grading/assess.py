"""What a notebook's kernel says of an answer after its check, asked by the plugin of nbval.

The kernel is ours; the student's text is compiled and run in boxes. What comes back goes through
Jupyter's own protocol, not through anything that a kernel can print to.
"""

import hashlib
import json
from dataclasses import replace

from utils.course.answers import Answer
from utils.grading.grades import Assessment
from utils.ground import settings
from utils.ground.errors import WorkbookError
from utils.judge import credit
from utils.timing.speed import Speed


def assess(kernel: object, passed: bool) -> str:
    """JSON of a grades.Assessment; of an empty one for a cell that has not compiled. `passed` is
    what its check said."""
    if not isinstance(kernel, Answer):
        return json.dumps(Assessment().to_json())
    secret = f"{settings.seed()} {kernel.exercise.id} hidden".encode()
    seed = int.from_bytes(hashlib.sha256(secret).digest()[:4])
    earned = (credit.of_passed if passed else credit.of_failed)(kernel, seed)
    made = Assessment(earned, _timed(kernel, passed and not earned.unknown))
    if not passed and not kernel.untouched:
        made = _examined(made, kernel)
    return json.dumps(made.to_json())


def _timed(kernel: Answer, right: bool) -> Speed | None:
    """None where there is nothing to time: no GPU, no kernel to write. What is not `right` is not
    timed, and gets no points for speed."""
    if kernel.backend != "cuda" or kernel.exercise.faulty:
        return None
    from utils.timing import measure, speed

    if right:
        return speed.beside_the_solution(kernel)
    return speed.Speed(measure.gpu(), 0.0, message="only what is right on all sizes is timed")


def _examined(made: Assessment, kernel: Answer) -> Assessment:
    """With the report and the picture of `diagnose`, at its usual size with its usual values."""
    from utils.diagrams.explain import examine

    try:
        report, picture = examine(kernel)
    except WorkbookError as error:
        return replace(made, diagnosis=str(error))
    if picture is None:
        return replace(made, diagnosis=report)
    return replace(made, diagnosis=report, picture=picture.svg(), alt=picture.description)
