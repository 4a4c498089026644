"""What a judge asks of a file's process, besides calls; what goes wrong there is a rejection."""

from collections.abc import Callable
from typing import TypeVar

from utils.judge.models.verdict import Rejected, Why
from utils.process.box import Session
from utils.process.child import Gone

LOADING = 120.0  # seconds to load a file, builds not counted
CALLING = 30.0  # seconds for the calls of a size

T = TypeVar("T")


def safely(action: Callable[..., T], *arguments: object) -> T:
    """What the action gives. Raises Rejected where the process has not come to its end."""
    try:
        return action(*arguments)
    except Gone as gone:
        if gone.late:
            raise Rejected(Why.TIMEOUT, f"the model {gone}") from None
        out_of_turn = gone.why == str(Why.PROTOCOL)
        why = Why.PROTOCOL if out_of_turn else Why.ENDED
        raise Rejected(why, f"its process {gone}") from None


def load(session: Session, text: str, mode: str = "plain") -> None:
    """Load a file into a fresh process. Raises Rejected."""
    told, _ = session.ask(LOADING, "load", text=text, mode=mode)
    if "error" in told:
        said = str(told.get("text", ""))
        why = Why.BUILD if said.startswith("Error building extension") else Why.LOAD
        raise Rejected(why, f"{told['error']}: {said}")
    if told.get("new") is not True:
        raise Rejected(Why.NO_MODEL, "the file defines no class ModelNew")
    if mode == "plain":
        surroundings(session)


def surroundings(session: Session) -> None:
    """What a file has changed or left behind. Raises Rejected where it has."""
    told, _ = session.ask(CALLING, "after")
    if session.processes():
        raise Rejected(Why.LEFT, "a process that it has started still runs")
    left, changed = told.get("left"), told.get("changed")
    if not (isinstance(left, list) and isinstance(changed, list)):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    if left:
        raise Rejected(Why.LEFT, f"threads still run: {', '.join(map(str, left))}"[:500])
    if changed:
        raise Rejected(Why.PATCHED, f"it changes {', '.join(map(str, changed))}"[:500])
