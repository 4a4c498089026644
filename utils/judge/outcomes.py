"""What becomes of a plain call. It is judged later, and holds all that is needed for that."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass

from torch import Tensor

from utils.course.cases import Case
from utils.ground.errors import CheckFailed
from utils.judge.oracle import Expected
from utils.process.arena import OutOfBoundsWrite


@dataclass(frozen=True)
class Returned:
    """A call that came to its end, and what it left behind."""

    case: Case
    after: Mapping[str, Tensor]  # all tensors, on the CPU
    out_of_bounds: list[OutOfBoundsWrite]
    unchanged: Mapping[str, Tensor]  # of each output, where it holds the bits it held before
    expected: Mapping[str, Expected]
    previous: Mapping[str, Tensor]  # the outputs of the call before this one, in the same buffers
    repeated: bool  # with the values of the call before this one
    live: int  # bytes of device memory that the process holds after it
    leaked: int = 0  # bytes that each call of this size has left there


@dataclass(frozen=True)
class Failed:
    """A call that crashed, hung or was refused."""

    failure: CheckFailed


@dataclass(frozen=True)
class Refused:
    """A launch that the emulator can do, and CUDA would refuse."""

    case: Case
    why: str


Outcome = Returned | Failed | Refused
Outcomes = Generator[Outcome, None, None]
