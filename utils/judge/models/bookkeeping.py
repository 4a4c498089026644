"""Is it like Model in what is not computed: initial values, states, and the PyTorch around it?"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from utils.judge.models import requests
from utils.judge.models.calls import about, bytes_of, tensor_of
from utils.judge.models.plan import Made
from utils.judge.models.tasks import Task
from utils.judge.models.verdict import Rejected, Why
from utils.process.box import Session

LEAST = 2.0**-140  # a number that has no leading digit


def same_values(named: Sequence[tuple[str, nn.Parameter]], values: Sequence[bytes]) -> None:
    """Raises Rejected where a fresh model's parameters are not those that the seed gives."""
    if len(values) != len(named):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    if other := [n for (n, p), v in zip(named, values, strict=True) if not about(p, v)]:
        raise Rejected(
            Why.INITIAL, f"the same seed gives Model and ModelNew another {', '.join(other)}"
        )


def loads_a_state(session: Session, made: Made, generator: torch.Generator) -> None:
    """Raises Rejected where nn.Module's load_state_dict and state_dict do not change and show the
    parameters."""
    named = list(made.reference.named_parameters())
    state = [bytes_of(torch.randn(p.shape, generator=generator)) for _, p in named]
    reply, values = requests.reply_to(session, "state", made=made.number, blobs=state)
    if list(values) != [*state, *state]:
        names = [n for (n, _), was, now in zip(named, state, values, strict=False) if was != now]
        said = ", ".join(names) or "what state_dict shows"
        raise Rejected(Why.STATE, f"after load_state_dict another state is there: {said}")
    if reply.get("unexpected"):
        raise Rejected(Why.STATE, "load_state_dict does not know Model's own parameters")


def same_elsewhere(session: Session, task: Task, generator: torch.Generator) -> None:
    """Raises Rejected where Model does not give in the file's process what it gives here."""
    size, seed = task.small[0], int(torch.randint(1 << 30, (), generator=generator))
    if len(size.shapes) != 1:
        return
    x, least = torch.randn(size.shapes[0], generator=generator), torch.full((8,), LEAST)
    call = {"text": task.text, "arguments": size.arguments, "seed": seed, "shape": size.shapes[0]}
    _, values = requests.reply_to(
        session, "reference", blobs=[bytes_of(x), bytes_of(least)], **call
    )
    leaf = x.clone().requires_grad_()
    output = task.make(size, seed)(leaf)
    (grad,) = torch.autograd.grad(output.sum(), leaf)
    expected = [least * 0.5, output.detach(), grad, output.detach(), grad]
    names = ["a denormal number", *["Model's output", "Model's gradient"] * 2]
    if len(values) != len(expected):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    for name, value, blob in zip(names, expected, values, strict=True):
        if len(blob) != 4 * value.numel() or not _alike(tensor_of(blob, value.shape), value):
            raise Rejected(Why.PATCHED, f"{name} is another one in its process")


def _alike(got: Tensor, value: Tensor) -> bool:
    """But for a last digit, which hangs on where memory lies."""
    return bool(torch.allclose(got, value, rtol=1e-5, atol=1e-5 * float(value.abs().max())))
