"""A notebook's kernel: nobody waits for one that has died, or forever for one that goes on."""

import ast
import math
import time
from queue import Empty

from nbval.kernel import RunningKernel

from utils.grading.records import JSON

POLL = 0.3  # seconds between two looks whether it lives
GRACE = 10.0  # seconds for a cell that was interrupted


class KernelDied(Exception):
    """The kernel's process is no more."""


class Raised(Exception):
    """What was asked for raised an error, in the kernel: its type's name, and what it says."""

    def __init__(self, name: str, text: str):
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


class LiveKernel(RunningKernel):  # type: ignore[misc]  # nbval has no types
    """nbval's kernel, watched while it is waited for."""

    reply: JSON  # to what was executed last; empty until it comes
    _end = math.inf  # of all waiting, once a cell was late

    def get_message(self, stream: str, timeout: float | None = None) -> JSON:
        """The next message. Raises Empty after so many seconds, KernelDied where none can come."""
        end = min(self._end, time.monotonic() + (math.inf if timeout is None else timeout))
        while (left := end - time.monotonic()) > 0:
            alive = self.is_alive()  # asked first: what it said before it died is still read
            try:
                message: JSON = super().get_message(stream, timeout=min(POLL, left))
                return message
            except Empty:
                if not alive:
                    raise KernelDied from None
        raise Empty

    def await_reply(self, msg_id: str, timeout: float | None = None) -> JSON:
        """Wait for the reply to a request, and keep it, too. Raises Empty, KernelDied."""
        self.reply = {}
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        while not self.reply:
            try:
                message = self.get_message("shell", timeout=end - time.monotonic())
            except Empty:
                self._end = time.monotonic() + GRACE
                raise
            if message["parent_header"].get("msg_id") == msg_id:
                self.reply = message["content"]
        return self.reply

    def ask(self, expression: str, timeout: float) -> str:
        """The value, a str, of an expression among the notebook's names.

        It comes in the reply itself: nothing that is printed, there or earlier, is taken for it.
        Raises Raised; ValueError where the value is no str; Empty, KernelDied.
        """
        request = self.kc.execute(
            "", silent=True, allow_stdin=False, user_expressions={"value": expression}
        )
        answer = self.await_reply(request, timeout)["user_expressions"].get("value", {})
        if answer.get("status") != "ok":
            raise Raised(str(answer.get("ename")), str(answer.get("evalue")))
        value = ast.literal_eval(answer["data"]["text/plain"])
        if not isinstance(value, str):
            raise ValueError(f"a text was asked for, and {type(value).__name__} came")
        return value
