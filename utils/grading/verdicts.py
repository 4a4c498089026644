"""What became of a cell, from the kernel's reply to it, in words for a report."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from utils.grading.inert import plain
from utils.ground.errors import (
    CheckFailed,
    CompileError,
    KernelCrash,
    KernelTimeout,
    Reason,
    ToolError,
    WorkbookError,
)
from utils.ground.paths import ROOT

_UTILS = re.compile(rf"File \S*/{re.escape(ROOT.name)}/utils/")  # "~" may stand for its beginning


class Status(StrEnum):
    """What became of an exercise; of other cells, those that fit them."""

    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    COMPILE_ERROR = "compile error"
    NOT_ATTEMPTED = "not attempted"
    NOT_RUN = "not run"
    NOT_REACHED = "not reached"  # in the time for a submission
    MISSING = "missing"
    FAULT = "fault"  # of the machine that was to judge it


_OF_REASONS = {
    Reason.NOT_ATTEMPTED: Status.NOT_ATTEMPTED,
    Reason.TIMEOUT: Status.TIMEOUT,
    Reason.CRASHED: Status.CRASHED,
}
_OF_ERRORS: Mapping[type[WorkbookError] | None, Status] = {
    KernelCrash: Status.CRASHED,
    KernelTimeout: Status.TIMEOUT,
    ToolError: Status.FAULT,
}
# An error comes out of a kernel as the name of its type and its text.
_TYPES = {e.__name__: e for e in (CheckFailed, CompileError, KernelCrash, KernelTimeout, ToolError)}


class Trouble(Exception):
    """A cell did not pass; the message is the report's."""

    def __init__(self, status: Status, message: str, details: str = "", fault: str | None = None):
        super().__init__(message)
        self.status, self.message, self.details = status, message, details
        self.fault = fault  # what failed on the machine that was to judge it


def trouble(reply: Mapping[str, Any]) -> Trouble:
    """What an execute_reply with an error says."""
    name, text = str(reply.get("ename")), plain(str(reply.get("evalue")))
    kind = _TYPES.get(name)
    status = _OF_ERRORS.get(kind, Status.FAILED)
    if kind is CheckFailed and (reason := Reason.begins(text)):
        status = _OF_REASONS.get(reason, Status.FAILED)
    message = text if kind in (CheckFailed, CompileError) else f"{name}: {text}"
    fault = text if kind is ToolError else None
    return Trouble(status, message, _frames(reply.get("traceback") or []), fault)


def _frames(traceback: Sequence[str]) -> str:
    """IPython's traceback as far as it is about the notebook."""
    parts = [plain(part) for part in traceback]
    return "\n".join(part for part in parts if not _UTILS.match(part))
