"""What became of a cell, from the kernel's reply to it, in words for a report."""

import re
from enum import StrEnum

from utils.errors import Reason
from utils.grading.inert import plain
from utils.paths import ROOT

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
    MISSING = "missing"
    FAULT = "fault"  # of the machine that was to judge it


_OF_REASONS = {
    Reason.NOT_ATTEMPTED: Status.NOT_ATTEMPTED,
    Reason.TIMEOUT: Status.TIMEOUT,
    Reason.CRASHED: Status.CRASHED,
}
_TOLD = ("CheckFailed", "CompileError")  # whose message says it all
_OF_ERRORS = {"KernelCrash": Status.CRASHED, "KernelTimeout": Status.TIMEOUT}
_OF_ERRORS |= {"ToolError": Status.FAULT}


class Trouble(Exception):
    """A cell did not pass; the message is the report's."""

    def __init__(self, status: Status, message: str, details: str = ""):
        super().__init__(message)
        self.status, self.message, self.details = status, message, details


def trouble(reply: dict) -> Trouble:
    """What an execute_reply with an error says."""
    kind, value = str(reply.get("ename")), plain(str(reply.get("evalue")))
    status = _OF_ERRORS.get(kind, Status.FAILED)
    if kind == "CheckFailed":
        status = _OF_REASONS.get(value.partition(":")[0], Status.FAILED)
    message = value if kind in _TOLD else f"{kind}: {value}"
    return Trouble(status, message, _frames(reply.get("traceback") or []))


def _frames(traceback: list[str]) -> str:
    """IPython's traceback as far as it is about the notebook."""
    parts = [plain(part) for part in traceback]
    return "\n".join(part for part in parts if not _UTILS.match(part))
