"""What small random changes do to what a reference gives: of its inputs, and of what each of its
operations gives."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from utils.cuda.arguments import Arguments
from utils.judge.torch_calls import Args, Function, Options, TorchCalls

Tensors = Mapping[str, Tensor]
FEW = 32 * 32  # elements, which are as soon drawn as found
MOST = 1 << 18  # elements of a tensor whose changes are not drawn for it alone
STEP = 1e-7  # their relative size, in float64
LEAST = 2.0**-126  # float32 loses digits below, and a kernel may take it for 0


def changes(
    run: Callable[[Arguments], Tensors],
    wide: Arguments,
    values: Tensors,
    names: Sequence[str],
    step: float,
    underflow: bool = False,
) -> Iterator[dict[str, Tensor]]:
    """What random relative changes of this size, of all that `run` computes from `wide`, do to
    its outputs, over the size. They are `values` without; each time the changes are others.

    With `underflow`, what is computed also changes by as much as a float32 may lose near 0.
    """
    draw = _Draw(values[names[0]].device, step, LEAST if underflow else 0.0)
    while True:
        changed = {
            name: draw.changed(value)
            for name, value in wide.items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }
        with _Rounding(draw):
            nudged = run({**wide, **changed})
        yield {name: (nudged[name] - values[name]).nan_to_num(0, 0, 0) / step for name in names}


class _Draw:
    """Random factors near 1, always the same ones in the same order."""

    def __init__(self, device: torch.device, step: float, least: float):
        self.step, self.least = step, least
        self.generator = Generator(device).manual_seed(0)
        # To ask a GPU for one number is to wait for all that it was asked before.
        self.places = self.generator if device.type == "cpu" else Generator().manual_seed(0)

    def changed(self, value: Tensor) -> Tensor:
        """The value, each element changed a little: by a piece of what was drawn once."""
        count = value.numel()
        if self.step != STEP or not FEW < count <= MOST:
            return _factors(value.shape, value.dtype, self.generator, self.step).mul_(value)
        drawn = _drawn(value.dtype, value.device)
        start = int(torch.randint(len(drawn) - count + 1, (), generator=self.places))
        return drawn[start : start + count].view(value.shape) * value

    def computed(self, value: Tensor) -> Tensor:
        """The same for what an operation gave. What is 0 is so in a kernel, too."""
        changed = self.changed(value)
        if not self.least:
            return changed
        lost = torch.empty_like(value).uniform_(-self.least, self.least, generator=self.generator)
        return changed + lost * value.sign()


def _factors(
    shape: torch.Size | int, dtype: torch.dtype, generator: Generator, step: float
) -> Tensor:
    most = 3**0.5 * step  # evenly spread up to there: then it is the root of the mean square
    factors = torch.empty(shape, dtype=dtype, device=generator.device)
    return factors.uniform_(1 - most, 1 + most, generator=generator)


@functools.cache
def _drawn(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Factors enough for most tensors. To draw one takes ten times as long as to use it."""
    return _factors(2 * MOST, dtype, Generator(device).manual_seed(1), STEP)


class _Rounding(TorchCalls):
    """PyTorch's operations, each with its result changed a little at random, as rounding would.

    A view of what was rounded already is left as it is. (A TorchDispatchMode would do, and import
    torch._dynamo, at three seconds.)
    """

    def __init__(self, draw: _Draw):
        super().__init__()
        self.draw = draw

    def call(self, function: Function, args: Args, options: Options) -> Any:
        result = function(*args, **options)
        if isinstance(result, tuple):
            return type(result)([self._rounded(part) for part in result])  # `.min(dim=1)` has names
        return self._rounded(result)

    def _rounded(self, result: Any) -> Any:
        fresh = isinstance(result, Tensor) and result.is_floating_point() and not result._is_view()
        return self.draw.computed(result) if fresh else result
