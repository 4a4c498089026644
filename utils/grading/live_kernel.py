"""A notebook's kernel: nobody waits for one that has died, nor for ever for one that goes on."""

import ast
import math
import time
from queue import Empty

from nbval.kernel import RunningKernel

POLL = 0.3  # seconds between two looks whether it lives
GRACE = 10.0  # seconds for a cell that was interrupted


class KernelDied(Exception):
    """The kernel's process is no more."""


class LiveKernel(RunningKernel):
    """nbval's kernel, watched while it is waited for."""

    reply: dict | None = None  # to what was executed last; None until it comes
    _end = math.inf  # of all waiting, once a cell was late

    def get_message(self, stream: str, timeout: float | None = None) -> dict:
        """The next message. Raises Empty after so many seconds, KernelDied where none can come."""
        end = min(self._end, time.monotonic() + (math.inf if timeout is None else timeout))
        while (left := end - time.monotonic()) > 0:
            alive = self.is_alive()  # asked first: what it said before it died is still read
            try:
                return super().get_message(stream, timeout=min(POLL, left))
            except Empty:
                if not alive:
                    raise KernelDied from None
        raise Empty

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Wait for the reply to a request and keep it. Raises Empty, KernelDied."""
        self.reply = None
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        while self.reply is None:
            try:
                message = self.get_message("shell", timeout=end - time.monotonic())
            except Empty:
                self._end = time.monotonic() + GRACE
                raise
            if message["parent_header"].get("msg_id") == msg_id:
                self.reply = message["content"]

    def ask(self, expression: str, timeout: float) -> str:
        """The value, a str, of an expression among the notebook's names.

        It comes in the reply itself: nothing that is printed, there or earlier, is taken for it.
        Raises ValueError with what the expression raised; Empty, KernelDied.
        """
        request = self.kc.execute(
            "", silent=True, allow_stdin=False, user_expressions={"asked": expression}
        )
        self.await_reply(request, timeout)
        answer = self.reply["user_expressions"].get("asked", {})
        if answer.get("status") != "ok":
            raise ValueError(f"{answer.get('ename')}: {answer.get('evalue')}")
        value = ast.literal_eval(answer["data"]["text/plain"])
        if not isinstance(value, str):
            raise ValueError(f"a text was asked for, and {type(value).__name__} came")
        return value
