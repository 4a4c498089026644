"""Is it like Model in what is not computed: initial values, states, and the PyTorch around it?"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from utils.judge.models import requests
from utils.judge.models.accuracy import named
from utils.judge.models.calls import FLOATS, about, bytes_of, tensor_of
from utils.judge.models.plan import Made
from utils.judge.models.requests import encoded
from utils.judge.models.task import Task, as_given
from utils.judge.models.verdict import Rejected, Why
from utils.process.box import Session

LEAST = 2.0**-140  # a number that has no leading digit


def same_values(ours: Sequence[tuple[str, nn.Parameter]], values: Sequence[bytes]) -> None:
    """Raises Rejected where a fresh model's parameters are not those that the seed gives."""
    if len(values) != len(ours):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    if other := [n for (n, p), v in zip(ours, values, strict=True) if not about(p, v)]:
        raise Rejected(
            Why.INITIAL, f"the same seed gives Model and ModelNew another {', '.join(other)}"
        )


def loads_a_state(session: Session, made: Made, generator: torch.Generator) -> None:
    """Raises Rejected where nn.Module's load_state_dict and state_dict do not change and show the
    parameters."""
    ours = list(made.reference.named_parameters())
    state = [bytes_of(torch.randn(p.shape, generator=generator).to(p.dtype)) for _, p in ours]
    reply, values = requests.reply_to(session, "state", made=made.number, blobs=state)
    if list(values) != [*state, *state]:
        names = [n for (n, _), was, now in zip(ours, state, values, strict=False) if was != now]
        said = ", ".join(names) or "what state_dict shows"
        raise Rejected(Why.STATE, f"after load_state_dict another state is there: {said}")
    if reply.get("unexpected"):
        raise Rejected(Why.STATE, "load_state_dict does not know Model's own parameters")


def same_elsewhere(session: Session, task: Task, generator: torch.Generator) -> None:
    """Raises Rejected where Model does not give in the file's process what it gives here."""
    size, seed = task.small[0], int(torch.randint(1 << 30, (), generator=generator))
    least = torch.full((8,), LEAST)
    if task.source:
        inputs = task.drawn(size, seed)
    else:
        inputs = [torch.randn(shape, generator=generator) for shape in size.shapes]
    call = {"text": task.text, "arguments": encoded(size.arguments), "seed": seed}
    call |= {"shapes": [list(x.shape) for x in inputs], "types": list(task.dtypes)}
    call |= {"mode": task.modes[0], "trains": task.trains}
    blobs = [*map(bytes_of, inputs), bytes_of(least)]
    _, values = requests.reply_to(session, "reference", blobs=blobs, **call)
    expected = {"a denormal number": least * 0.5}
    kinds = [t in FLOATS for t in task.dtypes]
    leaves = [
        x.clone().requires_grad_(task.trains and f) for x, f in zip(inputs, kinds, strict=True)
    ]
    with torch.set_grad_enabled(task.trains):
        made = task.make(size, seed).train(task.modes[0])(*as_given(leaves, task.types))
    outputs = list(made) if isinstance(made, tuple | list) else [made]
    expected |= {f"Model's {named(i)}": output.detach() for i, output in enumerate(outputs)}
    graded = [output for output in outputs if output.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if graded and wanted:
        grads = torch.autograd.grad(graded[0].sum(), wanted, allow_unused=True)
        expected |= {f"Model's gradient {i}": g for i, g in enumerate(grads) if g is not None}
    first, *once = expected.items()
    if len(values) not in (len(expected), len(expected) + len(once)):
        raise Rejected(Why.PROTOCOL, "its answer does not fit the question")
    for (name, value), blob in zip([first, *once, *once], values, strict=False):
        wrong = len(blob) != value.nbytes
        if wrong or not _alike(tensor_of(blob, value.shape, value.dtype), value):
            raise Rejected(Why.PATCHED, f"{name} is another one in its process")


def _alike(got: Tensor, value: Tensor) -> bool:
    """But for a last digit, which hangs on where memory lies."""
    if not value.is_floating_point():
        return torch.equal(got, value)
    slack = 1e-5 if value.element_size() > 2 else 1e-2
    finite = value.isfinite()
    most = float(value[finite].abs().max()) if finite.any() else 0.0
    return bool(torch.allclose(got, value, rtol=slack, atol=slack * most, equal_nan=True))
