"""12: the tails of chapter 08 backwards: what makes an operator train."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from utils.course import MODELS, At, Exercise, Gate
from utils.course.case_values import WIDE, in_turn, sometimes_nan, spread, whole_number
from utils.course.common_gates import ALL_LANES, COALESCED_LOADS, COALESCED_STORES, NO_CONFLICTS
from utils.course.models import (
    EPS,
    bias_hardtanh_mish,
    leaky_relu_double,
    swish_bias,
    swish_multiply_swish,
)

PART = 16  # rows whose gradients of parameters a thread adds up
OPERATORS = "12_ship_it_2_operators"  # the second notebook


def backward(
    forward: Callable[..., Tensor], grad_out: Tensor, *inputs: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of `inputs`, by PyTorch, where `grad_out` is that of forward(*inputs)."""
    with torch.enable_grad():
        again = any(
            x.requires_grad for x in (grad_out, *inputs)
        )  # somebody differentiates them, too
        leaves = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        out = forward(*leaves)
        return torch.autograd.grad(out, leaves, grad_out.reshape(out.shape), create_graph=again)


# --- inputs and sizes


def size(rows, channels, groups):
    return {"rows": rows, "channels": channels, "groups": groups}


SIZES = (
    size(1, 1, 1),
    size(3, 7, 7),  # one channel a group: its variance is zero
    size(2, 12, 3),  # one quad a group
    size(5, 64, 4),
    size(19, 96, 3),  # two parts, the second of three rows
    size(2, 66, 2),  # one more than a warp
    size(6, 192, 16),  # quads, but 3 of them a group
    size(33, 48, 3),
    size(2, 1040, 2),  # groups larger than a block, and no multiple of a warp
)
CARD_SIZES = (
    size(1024, 8192, 256),
    size(37, 4096, 64),
    size(131, 8000, 80),
    size(9, 8192, 1),
    size(1021, 2048, 128),
)
AT = At(
    check=SIZES,
    card=CARD_SIZES,
    bench=size(1024, 8192, 256),
    draw=size(2, 64, 4),
    gates=size(16, 1024, 32),
    drawn=(
        {"rows": (4, 5), "channels": (17_000, 19_000), "groups": (3, 9)},
        {"rows": (300, 400), "channels": (100, 200), "groups": (2, 5)},
        # groups of 2, 16 and 32 quads: a kernel of its own for each number of lanes
        {"rows": (3, 9), "channels": (24, 24), "groups": (3, 3)},
        {"rows": (3, 9), "channels": (128, 128), "groups": (2, 2)},
        {"rows": (3, 9), "channels": (256, 256), "groups": (2, 2)},
    ),
)


def kinds_of_rows(sizes, generator, nan=True):
    """Each row of a kind of its own: normal, smaller or very small, far from zero beside its
    spread, large; in the larger sizes one value may be NaN, unless nobody wants it."""
    rows, channels = sizes["rows"], sizes["channels"]

    def draw(*shape):
        return torch.randn(shape, generator=generator, device=generator.device)

    kinds = in_turn(rows, 5, generator)
    y = spread(draw(rows, channels), kinds, generator)
    y = sometimes_nan(y, generator) if nan and channels >= 96 else y
    drawn = {name: draw(channels) for name in ("weight", "bias", "shift")}
    grad_out = draw(rows, channels)
    grad_out *= torch.where(kinds == WIDE, 300.0, 1.0)[:, None]
    return {"y": y, **drawn, "grad_out": grad_out}


def groups_of_x(sizes, generator):
    """The same for GroupNorm alone, whose kernels call the values x."""
    drawn = kinds_of_rows(sizes, generator)
    return {"x": drawn["y"], "weight": drawn["weight"], "grad_out": drawn["grad_out"]}


def with_scale(sizes, generator):
    """The same where the parameter is a factor: one of four brings values which e^x does not
    hold."""
    drawn = kinds_of_rows(sizes, generator)
    scale = drawn.pop("shift")
    scale *= torch.where(in_turn(len(scale), 4, generator) == 3, 300, 1)
    return {**drawn, "scale": scale}


def away_from(kink: Tensor, grad_out: Tensor) -> Tensor:
    """`grad_out`, but 0 where the derivative jumps so near that rounding decides which it is."""
    return torch.where(kink.abs() < 1e-3, 0.0, grad_out)


def away_from_zero(sizes, generator):
    """For LeakyReLU, whose derivative jumps at 0: what it is at 0 itself, a row of zeros asks,
    which any formula normalises to zeros."""
    drawn = kinds_of_rows(sizes, generator)
    drawn.pop("shift")
    y, bias = drawn["y"], drawn["bias"]
    if len(y) > 1:
        y[whole_number(0, len(y), generator)] = 0.0
    bias[whole_number(0, 4, generator) :: 4] = 0.0
    z = torch.group_norm(y.double(), sizes["groups"], drawn["weight"].double(), bias.double(), EPS)
    at_zero = (y == 0).all(dim=1)[:, None] & (bias == 0)
    grad_out = drawn["grad_out"]
    return {**drawn, "grad_out": grad_out.where(at_zero, away_from(z, grad_out))}


def around_zero(sizes, generator, nan=True):
    """Where the activation comes first. No group is far from zero: a group of equal values has no
    digits."""
    drawn = kinds_of_rows(sizes, generator, nan)
    drawn.pop("bias")
    channels, groups = sizes["channels"], sizes["groups"]
    group = torch.arange(channels, device=generator.device) * groups // channels
    kind_of_group = in_turn(groups, 2, generator)
    drawn["shift"] *= torch.where(kind_of_group[group] == 0, 0.5, 1e-3)
    if channels == groups:  # a lone value is its mean, but for a rounding, 316 times it
        drawn["weight"] *= 0.05
    return drawn


def away_from_one(sizes, generator):
    """For hardtanh, whose derivative jumps at -1 and 1: values so near that rounding decides on
    which side they are become smaller. No NaN: PyTorch takes its derivative for 0 or 1, as it
    happens."""
    drawn = around_zero(sizes, generator, nan=False)
    near = ((drawn["y"] + drawn["shift"]).abs() - 1).abs() < 1e-3
    drawn["y"] = torch.where(near, drawn["y"] * 0.9 - 0.005 * drawn["shift"].sign(), drawn["y"])
    return drawn


def minima(sizes, generator):
    """Minima where the forward found them: of GroupNorm with a bias, which no gradient needs.
    No NaN: autograd multiplies those of a group by 0, and spreads them."""
    drawn = kinds_of_rows(sizes, generator, nan=False)
    drawn.pop("shift")
    bias = drawn.pop("bias")
    z = torch.group_norm(drawn["y"], sizes["groups"], drawn["weight"], bias, EPS)
    return {
        **drawn,
        "argmin": z.min(dim=1).indices.int(),
        "grad_out": drawn["grad_out"].T.contiguous(),
    }


def places(sizes, generator):
    """Where the minima of rows are: several rows share a channel, and many channels have none. One
    time of four all rows share one."""
    channels, on = sizes["channels"], generator.device
    some = torch.randint(channels, (max(1, sizes["rows"] // 3),), generator=generator, device=on)
    picked = torch.randint(len(some), (sizes["rows"],), generator=generator, device=on)
    if not whole_number(0, 4, generator):
        picked = picked[:1].expand(picked.shape)
    return {"argmin": some[picked].int()}


# --- gates

NO_ATOMICS = Gate(
    "atomic operations",
    1.0,
    "let each thread store a sum of its own, and a second launch add these: atomic additions come "
    "in another order each time, and so do the last bits of a float",
    ideal=lambda **sizes: 0,
)


def loads(floats, times, advice, a_warp=128):
    """`floats` for each element of the matrix, and so many of them a request."""
    return Gate(
        "load requests to global memory",
        times,
        advice,
        ideal=lambda rows, channels, **more: floats * rows * channels / a_warp,
    )


def stores(floats, times, advice, a_warp=128):
    """The same for what is written."""
    return Gate(
        "store requests to global memory",
        times,
        advice,
        ideal=lambda rows, channels, **more: floats * rows * channels / a_warp,
    )


def two_launches(most):
    return Gate(
        "launches",
        1.0,
        "what needs its own rows alone fits into one launch; sums over all rows need another",
        ideal=lambda **sizes: most,
    )


ONCE = "read y and grad_out once, four values at a time, and keep them in registers"


def fused(parameters, gradients):
    """Gates of a kernel that reads two matrices and so many parameters, and writes one matrix and
    the parts of so many gradients, which are read again, a float each."""
    read = 2 + parameters / PART + 4 * gradients / PART
    written = 1 + gradients / PART + 4 * gradients / PART
    return (
        NO_ATOMICS,
        two_launches(1 + 2 * gradients),
        loads(read, 1.25, ONCE),
        stores(written, 1.25, "store quads, and the sums of a part once"),
        COALESCED_LOADS,
        COALESCED_STORES,
        ALL_LANES,
    )


# --- references


def column_sums(x: Tensor) -> Tensor:
    return x.sum(dim=0)


def group_norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
    return torch.group_norm(x, groups, weight, bias, EPS)


def groupnorm_gradients(x, weight, grad_out, groups):
    bias = torch.zeros_like(weight)
    return backward(lambda *leaves: group_norm(*leaves, groups), grad_out, x, weight, bias)


def groupnorm_dx(x, weight, grad_out, groups):
    return groupnorm_gradients(x, weight, grad_out, groups)[0]


def gradients_in_operations(x, weight, grad_out, groups):
    """The same in PyTorch's operations, so that the check sees what each of them rounds. Of a lone
    channel the gradient is 0, and u - mean(u) in a kernel need not be: a product that is rounded
    in one place and fused in another leaves 1e-7 u, times an rstd of 316."""
    v = x.reshape(len(x), groups, -1)
    v = v - v.mean(dim=2, keepdim=True)
    rstd = (v.square().mean(dim=2, keepdim=True) + EPS).rsqrt()
    n, u = v * rstd, (grad_out * weight).reshape(v.shape)
    along = (u * n).mean(dim=2, keepdim=True)
    dx = (u - u.mean(dim=2, keepdim=True) - n * along) * rstd
    dweight = (grad_out * n.reshape(x.shape)).sum(dim=0)
    return dx.reshape(x.shape), dweight, grad_out.sum(dim=0)


def dx_in_operations(x, weight, grad_out, groups):
    return gradients_in_operations(x, weight, grad_out, groups)[0]


def behind_group_norm(rest, grad_out, y, weight, bias, groups, *more):
    """The gradients of all that rest(group_norm(y, ...), *more) is made of."""
    z = group_norm(y, weight, bias, groups)
    d, *others = backward(rest, grad_out, z, *more)
    return *gradients_in_operations(y, weight, d, groups), *others


def before_group_norm(activation, grad_out, y, weight, shift, groups):
    """Those of group_norm(activation(y, shift), ...); its bias comes last, so that no gradient
    depends on it."""
    d, dweight, dbias = gradients_in_operations(activation(y, shift), weight, grad_out, groups)
    dy, dshift = backward(activation, d, y, shift)
    return dy, dweight, dbias, dshift


def of_minima(y, weight, argmin, grad_out, groups):
    """min(dim=1) gives all of its gradient to the element whose index it returned, and so does
    this; amin(dim=1) would share it among equals."""

    def forward(y, weight, bias, shift):
        return _minima(group_norm(y, weight, bias, groups), shift, argmin)

    zeros = torch.zeros_like(weight), torch.zeros_like(weight)
    return backward(forward, grad_out, y, weight, *zeros)


def of_minima_in_operations(y, weight, argmin, grad_out, groups):
    zero = torch.zeros_like(weight)

    def rest(z, shift):
        return _minima(z, shift, argmin)

    return behind_group_norm(rest, grad_out, y, weight, zero, groups, zero)


def _minima(z, shift, argmin):
    return z.gather(1, argmin.long()[:, None]) + shift.reshape(1, -1, 1, 1)


def gathered(argmin, d, normal, channels):
    """dweight and dbias of rows that have one channel each."""
    zeros, at = d.new_zeros(channels), argmin.long()
    return zeros.index_add(0, at, d * normal), zeros.index_add(0, at, d)


def tail_gradients(name, groups, grad_out, *inputs):
    """Those of a model's tail, by its own PyTorch."""
    return backward(lambda *leaves: MODELS[name].tail(*leaves, groups), grad_out, *inputs)


def leaky_relu_gradients(y, weight, bias, grad_out, groups):
    return tail_gradients("gn_leaky_relu_double", groups, grad_out, y, weight, bias)


def leaky_relu_in_operations(y, weight, bias, grad_out, groups):
    return behind_group_norm(leaky_relu_double, grad_out, y, weight, bias, groups)


def swish_multiply_swish_gradients(y, weight, bias, scale, grad_out, groups):
    return tail_gradients("gn_swish_multiply_swish", groups, grad_out, y, weight, bias, scale)


def swish_multiply_swish_in_operations(y, weight, bias, scale, grad_out, groups):
    return behind_group_norm(swish_multiply_swish, grad_out, y, weight, bias, groups, scale)


def hardtanh_mish_gradients(y, weight, shift, grad_out, groups):
    bias = torch.zeros_like(weight)  # added last, so no gradient depends on it
    return tail_gradients("bias_hardtanh_mish_gn", groups, grad_out, y, weight, bias, shift)


def hardtanh_mish_in_operations(y, weight, shift, grad_out, groups):
    return before_group_norm(bias_hardtanh_mish, grad_out, y, weight, shift, groups)


def swish_bias_gradients(y, weight, shift, grad_out, groups):
    bias = torch.zeros_like(weight)
    return tail_gradients("swish_bias_gn", groups, grad_out, y, weight, bias, shift)


def swish_bias_in_operations(y, weight, shift, grad_out, groups):
    return before_group_norm(swish_bias, grad_out, y, weight, shift, groups)


# --- exercises

BOTH_WAYS = "PyTorch, forward and backward"  # autograd has no backward without its forward
NORM = dict(
    follows={"groups": "channels"},
    eps=True,
    at=AT,
    library=BOTH_WAYS,
)


def shapes(parameters, gradients, matrix="y"):
    """Of a backward kernel: what it reads by channel, and what it writes by channel."""
    return {
        matrix: "rows channels",
        **dict.fromkeys(parameters, "channels"),
        "grad_out": "rows channels",
        f"d{matrix}": "rows channels",
        **dict.fromkeys(gradients, "channels"),
    }


def tail(name, reference, in_operations, parameters, gradients, operations, **more):
    """The exercise that takes a model's tail backwards: what it reads and what it writes by
    channel, and the operations for each element beside GroupNorm's."""
    usual = dict(
        shapes=shapes(parameters, gradients),
        outputs=("dy", *gradients),
        reference=reference,
        in_operations=in_operations,
        peers={BOTH_WAYS: reference},
        at=replace(AT, bench=MODELS[name].sizes),
        flops=lambda rows, channels, groups: (18 + operations) * rows * channels,
        gates=fused(len(parameters), len(gradients)),
    )
    return Exercise(name=f"{name}_backward", **{**NORM, **usual, **more})


COLUMNS = dict(
    shapes={"x": "rows channels", "out": "channels"},
    outputs=("out",),
    reference=column_sums,
    magnitudes=(1e-30, 1e33),
    ladder="column_sums",
    listed=False,
    flops=lambda rows, channels: rows * channels,
    peers={"PyTorch": column_sums},
    library="PyTorch",
    at=At(
        check=(
            {"rows": 1, "channels": 1},
            {"rows": 5, "channels": 3},
            {"rows": 128, "channels": 32},
            {"rows": 129, "channels": 65},  # one more than a part, and than two blocks
            {"rows": 300, "channels": 7},
            {"rows": 2, "channels": 1000},
            {"rows": 1030, "channels": 33},
            {"rows": 16_500, "channels": 1},  # more parts than a part has rows
        ),
        card=({"rows": 100_003, "channels": 130}, {"rows": 33, "channels": 100_003}),
        bench={"rows": 32768, "channels": 4096},
        draw={"rows": 16, "channels": 32},
        gates={"rows": 1024, "channels": 64},
        both=True,
        drawn=(
            {"rows": (2000, 3000), "channels": (40, 60)},
            {"rows": (20, 30), "channels": (4000, 5000)},
            {"rows": (16_500, 20_000), "channels": (2, 6)},  # more parts than a part has rows
        ),
    ),
)

EXERCISES = (
    Exercise(
        name="column_sums_atomic",
        title="the sum of each column, every thread adds its element to one place",
        **COLUMNS,
    ),
    Exercise(
        number="12.1",
        name="column_sums",
        title="the sum of each column, in parts, the same bits every time",
        gates=(
            NO_ATOMICS,
            loads(1, 1.25, "read each value once, by whole warps", a_warp=32),
            COALESCED_LOADS,
            COALESCED_STORES,
            Gate(
                "blocks",
                0.25,
                "cut the rows into parts: one block for all rows leaves most of the card idle",
                ideal=lambda rows, channels: rows * channels / 32 / 128,
                at_least=True,
            ),
            NO_CONFLICTS,
        ),
        points=10,
        effort="about 12 lines",
        **COLUMNS,
    ),
    Exercise(
        name="groupnorm_backward_serial",
        title="GroupNorm backwards, one thread for each group",
        shapes=shapes(("weight",), ("dweight", "dbias"), "x"),
        outputs=("dx", "dweight", "dbias"),
        reference=gradients_in_operations,
        ladder="groupnorm_backward",
        flops=lambda rows, channels, groups: 18 * rows * channels,
        peers={BOTH_WAYS: groupnorm_gradients},
        inputs=groups_of_x,
        **NORM,
    ),
    Exercise(
        number="12.2",
        name="groupnorm_dx",
        title="GroupNorm backwards to its input: two sums for each group",
        shapes=shapes(("weight",), (), "x"),
        outputs=("dx",),
        reference=dx_in_operations,
        flops=lambda rows, channels, groups: 15 * rows * channels,
        peers={BOTH_WAYS: groupnorm_dx},
        inputs=groups_of_x,
        gates=(
            two_launches(1),
            loads(3, 1.125, ONCE),
            stores(1, 1.125, "store quads"),
            COALESCED_LOADS,
            COALESCED_STORES,
            ALL_LANES,
        ),
        points=15,
        effort="about 10 lines",
        **NORM,
    ),
    Exercise(
        number="12.3",
        listed=False,
        name="groupnorm_backward",
        title="GroupNorm backwards, all three gradients, 16 rows a thread",
        shapes=shapes(("weight",), ("dweight", "dbias"), "x"),
        outputs=("dx", "dweight", "dbias"),
        reference=gradients_in_operations,
        ladder="groupnorm_backward",
        flops=lambda rows, channels, groups: 18 * rows * channels,
        peers={BOTH_WAYS: groupnorm_gradients},
        inputs=groups_of_x,
        gates=fused(1, 2),
        points=20,
        effort="about 14 lines",
        **NORM,
    ),
    tail(
        "gn_leaky_relu_double",
        leaky_relu_gradients,
        leaky_relu_in_operations,
        ("weight", "bias"),
        ("dweight", "dbias"),
        4,
        number="12.4",
        title="Task 62 backwards: x + x, LeakyReLU, GroupNorm",
        inputs=away_from_zero,
        points=15,
        effort="about 12 lines",
    ),
    tail(
        "gn_swish_multiply_swish",
        swish_multiply_swish_gradients,
        swish_multiply_swish_in_operations,
        ("weight", "bias", "scale"),
        ("dweight", "dbias", "dscale"),
        23,
        number="12.5",
        title="Task 88 backwards: swish, scale, swish, GroupNorm",
        inputs=with_scale,
        points=20,
        effort="about 16 lines",
    ),
    tail(
        "bias_hardtanh_mish_gn",
        hardtanh_mish_gradients,
        hardtanh_mish_in_operations,
        ("weight", "shift"),
        ("dweight", "dbias", "dshift"),
        25,
        number="12.6",
        notebook=OPERATORS,
        title="Task 94 backwards: GroupNorm, mish, hardtanh, shift",
        inputs=away_from_one,
        drops_nan=True,
        points=20,
        effort="about 16 lines",
    ),
    tail(
        "swish_bias_gn",
        swish_bias_gradients,
        swish_bias_in_operations,
        ("weight", "shift"),
        ("dweight", "dbias", "dshift"),
        12,
        number="12.7",
        notebook=OPERATORS,
        title="Task 37 backwards: GroupNorm, shift, swish",
        inputs=around_zero,
        points=15,
        effort="about 14 lines",
    ),
    Exercise(
        number="12.8",
        notebook=OPERATORS,
        name="gather_gradients",
        title="Task 75 backwards: weight and bias, where a row adds to one channel",
        shapes={
            **dict.fromkeys(("argmin", "d", "normal"), "rows"),
            **dict.fromkeys(("dweight", "dbias"), "channels"),
        },
        outputs=("dweight", "dbias"),
        reference=gathered,
        inputs=places,
        at=At(
            check=tuple(
                {"rows": rows, "channels": channels}
                # More rows than warps come first: there a hint can say which of them count.
                for rows, channels in ((1, 1), (9, 300), (3, 40), (5, 3), (70, 32), (300, 65))
            ),
            card=({"rows": 1024, "channels": 8192}, {"rows": 37, "channels": 4099}),
            bench={"rows": 1024, "channels": 8192},
            draw={"rows": 16, "channels": 32},
            gates={"rows": 64, "channels": 512},
            drawn=(
                {"rows": (66_000, 80_000), "channels": (30, 70)},
                {"rows": (20, 40), "channels": (66_000, 70_000)},
            ),
        ),
        flops=lambda rows, channels: 3 * rows,
        peers={"PyTorch": gathered},
        library="PyTorch",
        gates=(
            NO_ATOMICS,
            # argmin once for 32 channels; d and normal where a row counts, d perhaps twice
            Gate(
                "load requests to global memory",
                1.25,
                "let 32 lanes own 32 channels: they read an argmin together",
                ideal=lambda rows, channels: rows * channels / 32 + 3 * rows,
            ),
            COALESCED_STORES,
            NO_CONFLICTS,
            Gate(
                "blocks",
                0.25,
                "cut the channels into parts: one block leaves most of the card idle",
                ideal=lambda rows, channels: channels / 32,
                at_least=True,
            ),
        ),
        listed=False,
        points=10,
        effort="about 14 lines",
    ),
    Exercise(
        number="12.9",
        notebook=OPERATORS,
        name="gn_min_bias_backward",
        title="Task 75 backwards: one element of a row, and one group",
        shapes={
            "y": "rows channels",
            "weight": "channels",
            "argmin": "rows",
            "grad_out": "channels rows",
            "dy": "rows channels",
            **dict.fromkeys(("dweight", "dbias", "dshift"), "channels"),
        },
        outputs=("dy", "dweight", "dbias", "dshift"),
        reference=of_minima,
        in_operations=of_minima_in_operations,
        inputs=minima,
        drops_nan=True,
        must_read={"y": 0.0, "weight": 0.0},  # one group of each row, one channel of each
        # grad_out, and dy; one group of y for each row
        traffic=lambda rows, channels, groups: (
            4 * (2 * rows * channels + rows * channels // groups + 3 * channels)
        ),
        flops=lambda rows, channels, groups: rows * (2 * channels + 15 * channels // groups),
        peers={BOTH_WAYS: of_minima},
        gates=(
            NO_ATOMICS,
            # grad_out for minima and for shifts, argmin for each channel; a group of each row
            Gate(
                "load requests to global memory",
                1.25,
                "read one group of y for each row: the gradients of all others are 0",
                ideal=lambda rows, channels, groups: 3 * rows * channels / 32 + 20 * rows,
            ),
            Gate(
                "store requests to global memory",
                1.25,
                "let all lanes write dy",
                ideal=lambda rows, channels, groups: rows * channels / 32 + 3 * rows + channels,
            ),
            COALESCED_STORES,
        ),
        points=20,
        effort="about 13 lines",
        **{
            **NORM,
            "at": replace(AT, bench=MODELS["gn_min_bias"].sizes, gates=size(64, 512, 16)),
        },
    ),
)
