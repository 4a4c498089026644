"""Did the kernels do it? What each of them read and wrote, held against the tensors of the call.

Right values prove nothing of who computed them: a launcher can copy everything to the host, or read
the inputs where no counter looks.
"""

from utils.course.exercise import Exercise, inputs_of
from utils.cuda.isolation import Covered
from utils.ground.errors import Reason
from utils.watch.diagnosis import Diagnosis

Violation = tuple[Reason, str]

SCATTERED = 16  # copies of a few values each: more than any bookkeeping needs


def violation(exercise: Exercise, seen: Diagnosis) -> Violation | None:
    """Why a watched call is not the kernels' own work; None where it is."""
    if not seen.launches:
        return Reason.NO_KERNEL, "the launcher launched no kernel"
    if seen.unseen:
        return Reason.UNSEEN, (
            f"{seen.unseen[0]} takes a struct by value, and is called by a pointer or by itself: "
            "what a call copies from memory is not seen here\n"
            "hint: let it take the struct by reference, as `const float4&`"
        )
    if seen.detour:
        return Reason.NO_KERNEL, (
            "the launcher brings values to the host and goes on from there: let kernels compute, "
            "and keep on the device what they hand on"
        )
    if seen.scattered > SCATTERED:
        return Reason.NO_KERNEL, (
            f"the launcher makes {seen.scattered} copies of a few values at a time: let kernels "
            "bring values where they belong"
        )
    inputs = inputs_of(exercise)
    for name, covered in seen.covered.items():
        if name in inputs and (problem := _input(exercise, name, covered)):
            return problem
        if name in exercise.outputs and covered.written < covered.bytes:
            return Reason.NO_KERNEL, _short(name, covered.written, covered.bytes, "written")
    return None


def _input(exercise: Exercise, name: str, covered: Covered) -> Violation | None:
    """What is wrong with what was done to an input."""
    if name not in exercise.outputs and (covered.by_kernels or covered.by_launcher):
        who = "a kernel" if covered.by_kernels else "the launcher"
        return Reason.INPUT_MODIFIED, f"{name} is an input, but {who} wrote to it"
    if covered.read < exercise.must_read.get(name, 1.0) * covered.bytes:
        return Reason.NO_KERNEL, _short(name, covered.read, covered.bytes, "read")
    return None


def _short(name: str, done: int, of: int, what: str) -> str:
    some = f"{done} of the {of} bytes" if done else f"none of the {of} bytes"
    verb = "was" if done == 0 else "were"
    reads = "each kernel should get its inputs from the launcher's arguments"
    how = {
        "read": f"which round, block or thread should read the rest? And {reads}"
        if done
        else reads,
        "written": "what a launcher copies or sets is not a kernel's work",
    }
    return f"{some} of {name} {verb} {what} by kernels\nhint: {how[what]}"
