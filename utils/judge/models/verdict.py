"""What the judge of models says: a verdict, with a reason where it is a rejection."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum

from utils.ground.wording import one_line


class Why(StrEnum):
    """What a model is rejected for."""

    BUILD = "does not build"
    LOAD = "does not load"
    NO_MODEL = "no ModelNew"
    PARAMETERS = "other parameters"
    INITIAL = "other initial values"
    RAISED = "raises"
    ENDED = "ended"
    TIMEOUT = "timeout"
    PROTOCOL = "answered out of turn"
    NOT_A_TENSOR = "not a plain tensor"
    SHAPE = "wrong shape"
    DTYPE = "wrong dtype"
    LAUNCH = "launch error"
    INPUT = "input modified"
    PARAMETER = "parameter modified"
    CHANGED = "output changed afterwards"
    STALE = "stale output"
    NOT_WRITTEN = "not written"
    NAN = "nan"
    VALUES = "wrong values"
    IMPRECISE = "too imprecise"
    NO_TRAINING = "does not train"
    GRADIENT = "wrong gradient"
    PATCHED = "changes its surroundings"
    LEFT = "left behind"
    NO_KERNEL = "no kernel"
    HAZARD = "hazard"
    HOST = "host code"
    STATE = "other state"
    TOO_FAST = "faster than possible"
    LIBRARY = "library"
    NOT_HERE = "cannot be judged here"


class Rejected(Exception):
    """A model is not what it should be: `why`, and a message, which is one line whatever a file has
    put into it."""

    def __init__(self, why: Why, message: str):
        self.why, self.message = why, one_line(message)
        super().__init__(f"{why}: {self.message}")


@dataclass(frozen=True)
class Runtime:
    """Milliseconds of a call, medians of some rounds, in each of which all took their turns."""

    gpu: str
    milliseconds: float
    eager: float
    compiled: float | None  # by torch.compile; None where that failed
    calls: int  # of a run
    overhead: float  # milliseconds of a run that are no call's, and that no time above has in it
    rounds: list[dict[str, float]]  # milliseconds of a call, by whose they are
    kernels: list[str] = field(default_factory=list)  # of a call, as its process tells of them

    def __str__(self) -> str:
        def beside(whose: str, time: float | None) -> str:
            if time is None:
                return f"{whose}, which failed"
            return f"{whose} {time:.3f} ms ({time / self.milliseconds:.2f}x)"

        others = beside("eager", self.eager), beside("torch.compile", self.compiled)
        return f"Runtime: {self.milliseconds:.3f} ms beside {' and '.join(others)}, {self.gpu}"


@dataclass(frozen=True)
class Verdict:
    """What the judge says of a file. `notes` are on what was not judged."""

    task: str
    passed: bool
    seed: int
    reason: str = ""
    message: str = ""
    calls: int = 0
    runtime: Runtime | None = None  # None where nothing was timed
    notes: list[str] = field(default_factory=list)
    gradients: bool = True  # whether they were judged, too

    def as_json(self) -> dict[str, object]:
        """For other programs."""
        return {"evaluation": self.evaluation, **asdict(self)}

    @property
    def evaluation(self) -> str:
        """passed, failed, or not judged where the fault is not the file's."""
        if self.passed:
            return "passed"
        return "not judged" if self.reason == Why.NOT_HERE else "failed"

    def __str__(self) -> str:
        lines = [f"Evaluation: {self.evaluation}"]
        if not self.passed:
            lines += [f"Reason: {self.reason}: {self.message}", f"Seed: {self.seed}"]
        else:
            too = ", gradients too" if self.gradients else ""
            lines += [f"Task: {self.task}, {self.calls} calls beside float64{too}"]
        timed = [str(self.runtime)] if self.runtime else []
        return "\n".join(map(one_line, [*lines, *timed, *self.notes]))
