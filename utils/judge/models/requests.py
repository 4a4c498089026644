"""What a judge asks of a file's process, besides calls; what goes wrong there is a rejection."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import torch
from torch import nn

from utils.judge.models.absent import absent
from utils.judge.models.calls import Answer, Call, answers_of
from utils.judge.models.task import NotJudged, Size
from utils.judge.models.verdict import Rejected, Why
from utils.judge.models.work import Work
from utils.process.box import Session
from utils.process.child import Gone
from utils.process.guest.framing import Header, Message

LOADING = 120.0  # seconds to load a file, builds not counted
ANSWERING = 60.0  # seconds for a command that is no call
# Seconds for all calls of a process, of a core's time: honest attention needs 32 on two busy cores.
CALLING = 180.0
HOST_REACHED = 86  # the exit status that the emulator ends with; see runtime/faults.h

T = TypeVar("T")


def safely(action: Callable[..., T], *arguments: object) -> T:
    """What the action gives. Raises Rejected where the process has not come to its end."""
    try:
        return action(*arguments)
    except Gone as gone:
        if gone.late:
            raise Rejected(Why.TIMEOUT, f"the model {gone}") from None
        if gone.status == HOST_REACHED:
            said = "its host code reads or writes the card's memory, where a card would end it"
            raise Rejected(Why.HOST, said) from None
        out_of_turn = gone.why == str(Why.PROTOCOL)
        why = Why.PROTOCOL if out_of_turn else Why.ENDED
        raise Rejected(why, f"its process {gone}") from None


def load(session: Session, text: str, mode: str = "plain", work: Work | None = None) -> None:
    """Load a file into a fresh process, in which PyTorch does no `work` that is the task's own.
    Raises Rejected."""
    reply, _ = session.ask(LOADING, "load", text=text, mode=mode, work=asdict(work or Work()))
    if "error" in reply:
        said = str(reply.get("text", ""))
        why = Why.BUILD if said.startswith("Error building extension") else Why.LOAD
        if reply["error"] == "PermissionError":
            said += " (a file can write nothing here; load_inline needs no build_directory)"
        raise raised(session, f"{reply['error']}: {said}", why)
    if reply.get("new") is not True:
        raise Rejected(Why.NO_MODEL, "the file defines no class ModelNew")
    if mode == "plain":
        surroundings(session)


def surroundings(session: Session) -> None:
    """What a file has changed or left behind. Raises Rejected where it has."""
    reply, _ = session.ask(ANSWERING, "after")
    if session.processes():
        raise Rejected(Why.LEFT, "a process that it has started still runs")
    left, changed = reply.get("left"), reply.get("changed")
    if not (isinstance(left, list) and isinstance(changed, list)):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    if left:
        raise Rejected(Why.LEFT, f"threads still run: {', '.join(map(str, left))}"[:500])
    if changed:
        raise Rejected(Why.PATCHED, f"it changes {', '.join(map(str, changed))}"[:500])


def reply_to(session: Session, do: str, **command: Any) -> Message:
    """The answer to a command that no honest model fails. Raises Rejected."""
    answer, values = session.ask(ANSWERING, do, most=1 << 28, **command)
    if "error" in answer:
        raise raised(session, f"{do}: {answer['error']}: {answer.get('text', '')}")
    return answer, values


def made(session: Session, size: Size, seed: int, reference: nn.Module) -> Message:
    """A ModelNew of a size: what is told of its parameters, and their values, or an error."""
    most = 8 * sum(p.numel() for p in reference.parameters()) + 4096
    return session.ask(ANSWERING, "make", arguments=encoded(size.arguments), seed=seed, most=most)


def encoded(value: Any) -> Any:
    """Arguments as JSON has them, from which the process makes the same again. Raises NotJudged."""
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encoded(part) for part in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encoded(part) for key, part in value.items()}}
    if isinstance(value, torch.dtype | torch.device):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise NotJudged(
        f"get_init_inputs() gives a {type(value).__name__}, which cannot be handed over"
    )


def copied(session: Session, number: int) -> str:
    """Why there is no deep copy of a model: it may have what has none, such as a library."""
    answer, _ = session.ask(ANSWERING, "copy", made=number)
    return f"{answer['error']}: {answer.get('text')}"[:300] if "error" in answer else ""


def call(session: Session, calls: Sequence[Call]) -> tuple[Header, list[Answer]]:
    """What is told of calls, and the answers. Raises Rejected."""
    blobs = [blob for call in calls for blob in call.blobs()]
    most = 16 * sum(map(len, blobs)) + (1 << 20)
    headers = [call.header() for call in calls]
    answer, values = session.ask(CALLING, "calls", calls=headers, blobs=blobs, most=most)
    if "error" in answer:
        raise raised(session, f"{answer['error']}: {answer.get('text', '')}")
    answers = answers_of(answer, values, calls)
    for one in answers:
        if missing := absent_here(session, one.raised):
            raise Rejected(Why.NOT_HERE, missing)
    return answer, answers


def raised(session: Session, said: str, why: Why = Why.RAISED) -> Rejected:
    """The rejection for an exception; where it is about what the emulator lacks, another one."""
    if missing := absent_here(session, said):
        return Rejected(Why.NOT_HERE, f"{missing} ({said[:300]})")
    return Rejected(why, said)


def absent_here(session: Session, said: str) -> str:
    """What of CUDA is missed, where that is the emulator's fault."""
    return absent(said) if session.backend == "emulator" else ""
