"""Every error that a reader of the workbook can meet. Each says what, where and what to do."""

from enum import StrEnum


class WorkbookError(Exception):
    """Base of the workbook's own errors."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the message alone, since the cause is in the cell, not in utils."""
        return f"\x1b[31m{type(self).__name__}\x1b[0m: {self}".splitlines()


class ToolError(WorkbookError):
    """Something that must be installed is missing; the message says what."""


class ArgumentError(WorkbookError):
    """An argument that cannot be taken; the message names it."""


class ArgumentTypeError(ArgumentError, TypeError):
    """There are too many arguments or too few, or one is of another type."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument of the right type has a value that does not fit."""


class DeclarationError(WorkbookError):
    """The CUDA text has no launcher that can be called from Python."""


class CompileError(WorkbookError):
    """The compiler refused the text; the message is its own, with the cell's line numbers."""


class LaunchError(WorkbookError):
    """CUDA refused or abandoned a launch. `name` is CUDA's own, such as
    `cudaErrorInvalidConfiguration`."""

    def __init__(self, name: str, message: str):
        super().__init__(f"{name}: {message}")
        self.name = name


class KernelCrash(WorkbookError):
    """The process that ran the kernel died. The notebook's own process is unharmed."""


class OutOfMemory(WorkbookError):
    """The GPU has too little memory, or others have it."""


class KernelTimeout(WorkbookError):
    """The kernel did not end within its time limit and was stopped."""

    certain = False  # it would have come to no end, however long one had waited


class Reason(StrEnum):
    """What a check rejects a kernel for."""

    NOT_ATTEMPTED = "not attempted"
    FAULT_NOT_NAMED = "fault not named"
    WRONG_DIAGNOSIS = "wrong diagnosis"
    WRONG_VALUES = "wrong values"
    NOT_WRITTEN = "not written"
    NAN = "nan"
    OUT_OF_BOUNDS = "out of bounds"
    INPUT_MODIFIED = "input modified"
    STALE_OUTPUT = "stale output"
    LAUNCH_ERROR = "launch error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    RACE = "race"
    UNINITIALIZED = "uninitialized"
    MISALIGNED = "misaligned"
    DIVERGENT_BARRIER = "divergent barrier"
    INVALID_MASK = "invalid mask"
    HOST_FUNCTION = "host function"
    NO_KERNEL = "no kernel"
    UNSEEN = "unseen"
    LEAK = "leak"
    GATE = "gate"

    @classmethod
    def begins(cls, text: str) -> "Reason | None":
        """The reason with which the text of a CheckFailed begins, as it left a process."""
        return next((reason for reason in cls if text.startswith(f"{reason}: ")), None)


class CheckFailed(WorkbookError):
    """A kernel did not pass its check."""

    def __init__(self, reason: Reason, message: str):
        super().__init__(f"{reason}: {message}")
        self.reason = Reason(reason)


class CheckFirst(WorkbookError):
    """A kernel must pass `check` before it is timed."""
