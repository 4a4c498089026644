"""The five models as PyTorch computes them: shapes, and each against loops over its definition."""

import math

import pytest
import torch

from utils.course.models import EPS, MODELS, SLOPE

ROWS, CHANNELS, GROUPS = 3, 12, 4


def normalised(y, weight, bias):
    """GroupNorm by its definition, number by number."""
    out, size = torch.empty_like(y), CHANNELS // GROUPS
    for r in range(ROWS):
        for start in range(0, CHANNELS, size):
            values = y[r, start : start + size].tolist()
            mean = sum(values) / size
            variance = sum((value - mean) ** 2 for value in values) / size
            for i, value in enumerate(values):
                c = start + i
                out[r, c] = (value - mean) / math.sqrt(variance + EPS) * weight[c] + bias[c]
    return out


def each(function, *tensors):
    """A function of numbers on every element; parameters of shape (channels,) go by column."""
    first = tensors[0]
    columns = [t.expand_as(first).reshape(-1).tolist() for t in tensors]
    return torch.tensor(
        [function(*values) for values in zip(*columns, strict=True)], dtype=first.dtype
    ).reshape(first.shape)


def swish(x):
    return x / (1 + math.exp(-x))


def mish(x):
    return x * math.tanh(math.log(1 + math.exp(x)))


def by_definition(name, y, weight, bias, extra):
    if name == "gn_leaky_relu_double":
        return each(lambda x: 2 * (x if x > 0 else SLOPE * x), normalised(y, weight, bias))
    if name == "gn_swish_multiply_swish":
        return each(lambda x, s: swish(swish(x) * s), normalised(y, weight, bias), extra)
    if name == "bias_hardtanh_mish_gn":
        clipped = each(lambda x, s: mish(max(-1.0, min(1.0, x + s))), y, extra)
        return normalised(clipped, weight, bias)
    if name == "swish_bias_gn":
        return normalised(each(lambda x, s: swish(x) + s, y, extra), weight, bias)
    least = normalised(y, weight, bias).amin(dim=1)
    out = torch.empty(1, CHANNELS, ROWS, 1, dtype=y.dtype)
    for c in range(CHANNELS):
        for r in range(ROWS):
            out[0, c, r, 0] = least[r] + extra[c]
    return out


@pytest.mark.parametrize("name", MODELS)
def test_a_tail_is_what_its_definition_says(name):
    model = MODELS[name]
    y = 2 * torch.randn(ROWS, CHANNELS, dtype=torch.float64)
    weight, bias, extra = torch.randn(3, CHANNELS, dtype=torch.float64)
    parameters = {parameter: extra for parameter in model.extra}
    out = model.tail(y, weight, bias, groups=GROUPS, **parameters)
    sizes = {"rows": ROWS, "channels": CHANNELS, "1": 1}
    assert out.shape == tuple(sizes[word] for word in model.output.split())
    torch.testing.assert_close(out, by_definition(name, y, weight, bias, extra))


def test_no_statistic_needs_more_channels_than_a_tile_has():
    assert {m.channels // m.groups for m in MODELS.values()} == {16, 32, 64}
    assert {m.task for m in MODELS.values()} == {37, 62, 75, 88, 94}
