"""Every error that a reader of the workbook can meet. Each says what, where and what to do."""


class WorkbookError(Exception):
    """Base of the workbook's own errors."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the message alone, since the cause is in the cell, not in utils."""
        return f"\x1b[31m{type(self).__name__}\x1b[0m: {self}".splitlines()


class ToolError(WorkbookError):
    """Something that must be installed is missing; the message says what."""


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


class KernelTimeout(WorkbookError):
    """The kernel did not end within its time limit and was stopped."""


class CheckFailed(WorkbookError):
    """A kernel did not pass its check. `reason` is one of REASONS."""

    REASONS = (
        "not attempted",
        "fault not named",
        "wrong diagnosis",
        "wrong values",
        "not written",
        "nan",
        "out of bounds",
        "input modified",
        "stale output",
        "launch error",
        "crashed",
        "timeout",
        "race",
        "uninitialized",
        "misaligned",
        "divergent barrier",
        "invalid mask",
        "host function",
        "gate",
    )

    def __init__(self, reason: str, message: str):
        assert reason in self.REASONS, reason
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class CheckFirst(WorkbookError):
    """A kernel must pass `check` before it is timed."""
