"""What is wrong with an output, in words: how many values, which first, and what it looks like."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from utils.judge.oracle import Expected
from utils.judge.pattern import region

SHOWN = 4  # mismatches in a message
LOST = "a NaN was lost: every comparison with NaN is false, and fminf and fmaxf drop it"
ZERO = (
    "what comes out is 0: is what is computed stored, and not overwritten later? does the loop run "
    "at all at this size?"
)
NOBODY = (
    "no thread stores a value: is the kernel launched, and is the condition in front of the store "
    "ever true?"
)
NOWHERE = "is what belongs there not read, not kept, or written to another place?"
NEAR = "the values are nearly right: is a sum or a product less precise than float"
NEAR_EPS = ", do two numbers nearly cancel, or is eps another?"
NEAR_ELSE = ", do two numbers nearly cancel, or are two steps in another order?"


def bits(tensor: Tensor) -> Tensor:
    """The same elements as integers, so that NaN compares equal to itself."""
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(integer[tensor.dtype.itemsize])


def wrong(got: Tensor, expected: Expected) -> Tensor:
    """Which elements are off by more than the bound, element by element.

    NaN must be where NaN is expected and nowhere else, unless either is right. Infinities must
    agree, and so must values that the output's type rounds to infinity. `got` may be on any device,
    with `expected` on it.
    """
    rounded = expected.value.to(got.dtype)
    same = (got == rounded) | (rounded.isnan() & got.isnan())
    if expected.either is not None:
        same |= expected.either & (rounded.isnan() | got.isnan())
    far = (got.double() - expected.value.double()).abs()
    for bound in expected.bounds:
        bad = ~((far <= bound()) | same)
        if not bad.any():  # nor would it be by the bounds that follow, which are larger
            break
    return bad


def index(name: str, flat: int, shape: torch.Size) -> str:
    """`C[1, 4]`; a single value is `out`."""
    return f"{name}[{', '.join(map(str, unravel(flat, shape)))}]" if shape else name


def unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    """The place of an element by its number."""
    return tuple(map(int, torch.unravel_index(torch.tensor(flat), shape))) if shape else ()


def explain(
    name: str,
    got: Tensor,
    expected: Expected,
    bad: Tensor,
    eps: bool = False,
    beside: Callable[[tuple[int, ...], float, float], str] | None = None,
    because: str = "",
) -> str:
    """The mismatches of one output: a count, the first few, a hint where there is a pattern.

    `eps`: whether the exercise has one, which may be another than the kernel's. `beside` tells more
    of an element by its place, the value and what was expected; `because` is a hint that is known.
    """
    count, total = int(bad.sum()), bad.numel()
    lines = [f"{count} of {total} values of {name} {'is' if count == 1 else 'are'} wrong"]
    if got.is_floating_point():
        nan, inf = int(got[bad].isnan().sum()), int(got[bad].isinf().sum())
        lines[0] += f" ({nan} NaN, {inf} infinite)" if nan or inf else ""
    values, bounds = expected.value.reshape(-1), expected.bound.reshape(-1)
    for flat in bad.reshape(-1).nonzero().reshape(-1)[:SHOWN].tolist():
        place = index(name, flat, got.shape)
        value, want, bound = got.reshape(-1)[flat].item(), values[flat].item(), bounds[flat].item()
        bounded = math.isfinite(want) and bound > 0
        allowed = f" (allowed: ± {bound:.1e})" if bounded else ""
        more = beside(unravel(flat, got.shape), value, want) if beside else ""
        lines.append(f"  {place}: got {value:.8g}, expected {want:.8g}{allowed}{more}")
    if count > SHOWN:
        lines.append("  ...")
    advice = because or hint(got, expected, bad, eps)
    return "\n".join([*lines, f"hint: {advice}"] if advice else lines)


def missing(name: str, unwritten: Tensor) -> str:
    """Which elements of an output nobody wrote."""
    count, total = int(unwritten.sum()), unwritten.numel()
    first = index(name, int(unwritten.reshape(-1).nonzero()[0]), unwritten.shape)
    how_many = "none" if count == total else f"{total - count} of {total}"
    where = NOBODY if count == total else region(unwritten, "missing")
    text = f"{how_many} of the values of {name} {'was' if total - count <= 1 else 'were'} written"
    return f"{text}; {first} is the first that was not" + (f"\nhint: {where}" if where else "")


def hint(got: Tensor, expected: Expected, bad: Tensor, eps: bool = False) -> str:
    """What a familiar mistake would look like, if this is one; else an empty string."""
    want = expected.value
    if got.is_floating_point() and bool((got == 0).all()):
        return ZERO
    lost = bad & want.isnan() & ~got.isnan()
    if 2 * int(lost.sum()) > int(bad.sum()):
        return LOST
    if same := _same(got, want, bad):
        return " ".join(filter(None, (same, f"({where})" if (where := region(bad)) else "")))
    if not got.is_floating_point():
        return region(bad)
    finite = want.isfinite() & got.isfinite()
    said = _sign(want, bad)
    # Where all that is right is 0 anyhow, as gradients of what was not chosen are, no place tells.
    where = region(bad) if bool(want[~bad].any()) else ""
    if not said and (where or not finite[bad].all()):
        return where
    wrongly = _factor(got[bad].double(), want[bad].double()) if finite[bad].all() else ""
    if said or wrongly:
        return "; ".join(filter(None, (said, wrongly)))
    return _offset(got[finite].double(), want[finite].double(), eps)


def turned(got: Tensor, expected: Expected) -> str:
    """Where a matrix lies there by columns, not by rows."""
    if got.ndim != 2 or wrong(got.reshape(got.shape[::-1]).T, expected).any():
        return ""
    return "this is the transpose of what was expected: row and column are swapped"


FEW = 3  # values, of which a thing may be said by chance
MANY = 64  # times: beyond that, a whole number is one by chance, but for
THREADS = 128, 256, 512, 1024  # of a block, all of which may do what one should


def _sign(want: Tensor, bad: Tensor) -> str:
    """Where the values that are wrong are those of one sign."""
    for sign, words in ((want < 0, "below"), (want > 0, "above")):
        if min(int(sign.sum()), int((~sign).sum())) > FEW and bool((bad == sign).all()):
            return f"all values {words} 0 are wrong, and all others are right"
    return ""


def _same(got: Tensor, want: Tensor, bad: Tensor) -> str:
    """Where all that is wrong is one and the same, and what was expected is not."""
    values = got[bad]
    if len(values) < FEW or bool((values != values[0]).any()) or len(want[bad].unique()) < FEW:
        return ""
    if values[0] == 0:
        return f"all that is wrong is 0: {NOWHERE}"
    value = f"{values[0].item():.8g}"
    return (
        f"all that is wrong is {value}: an initial value that nothing replaces? Is a condition the "
        "wrong way round, or a result not kept?"
    )


def _factor(got: Tensor, want: Tensor) -> str:
    """Where all values that are wrong are so by the same factor."""
    if bool((want == 0).any()):
        return ""
    ratio = got / want
    if len(want) > 1 and ((got * want - 1).abs() < 1e-4).all():
        return "what comes out is 1 over what was expected"
    if len(want) == 1:  # any ratio may come by chance, but hardly a small whole number
        times = float(ratio.round())
        whole = (2 <= times <= MANY or times in THREADS) and abs(
            float(ratio) - times
        ) < 1e-5 * times
        return f"what comes out is {times:g} times what was expected" if whole else ""
    factor = ratio.median()
    power = ratio.abs().log2().round()
    if len(want) >= FEW and len(power.unique()) > 1 and (ratio / 2**power - 1).abs().max() < 1e-4:
        return "each value is a power of two times what was expected: is a scale left out?"
    same = factor != 0 and bool(((ratio / factor - 1).abs() < 1e-4).all())
    if not same or (factor - 1).abs() < 1e-3:
        return ""
    return f"what is wrong is {float(factor):.5g} times what was expected"


def _offset(got: Tensor, want: Tensor, eps: bool) -> str:
    """How finite values differ from what was expected: by a constant, or a little."""
    some = want != 0
    if int(some.sum()) < 2:
        return ""
    difference = got - want
    offset = difference.median()
    if (difference - offset).abs().max() < 1e-3 * offset.abs():
        return f"every value is off by the same {float(offset):.5g}"
    if (difference.abs() / (want.abs() + want[some].abs().median())).max() < 3e-2:
        return NEAR + (NEAR_EPS if eps else NEAR_ELSE)
    return ""
