"""How exact three products of halves are where rows hold outliers, and what it costs: on Hopper.

    python benchmarks/split_domain.py [--save results/split_domain.md]

x is (1024, 8192), uniform on [0, 1), W (8192, 8192), uniform as nn.Linear begins with. One column
of x or of W, or one element, becomes 2^e times as large as a typical one; the other matrix has
zeros, or ones, in that column. Errors are against float64, Frobenius norm:

- fp32: PyTorch's product of floats, cuBLAS
- kernel: 11.6, `linear_split_beside`, which takes rows with too wide a range in floats; and its ms
- a row: three products of halves without that, a scale for each row, added up in float64: what
  splitting alone costs
- 1,024: the same with a scale for each 1,024 of K
"""

import sys
from datetime import date
from pathlib import Path
from typing import Annotated

import tensor_core_models
import torch
import typer
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

M, N, K = 1024, 8192, 8192
COLUMN, ROW = 77, 5
EXPONENTS = 0, 10, 14, 16, 20, 24, 30, 60
HEAD = "outlier", "in", "weight", "fp32", "kernel", "ms", "a row", "1,024"


def inputs(exponent: int, where: str, what: str, weight: float) -> tuple[Tensor, Tensor]:
    draw = torch.Generator("cuda").manual_seed(1)
    x = torch.rand(M, K, device="cuda", generator=draw)
    W = (torch.rand(N, K, device="cuda", generator=draw) * 2 - 1) / K**0.5
    outliers, other = (x, W) if where == "x" else (W, x)
    size = 2.0**exponent * float(outliers.abs().mean())
    rows = slice(None) if what == "column" else ROW
    outliers[rows, COLUMN] = size
    other[:, COLUMN] = weight
    return x, W


def split(x: Tensor, each: int) -> tuple[Tensor, Tensor]:
    """High and low, as doubles that halves hold, times their scales: one for `each` columns."""
    parts = x.view(len(x), -1, each)
    most = parts.abs().amax(dim=2, keepdim=True).clamp(min=1e-30)
    up = torch.exp2(14 - torch.floor(torch.log2(most)))
    high = (parts * up).half()
    low = (parts * up - high.float()).half()
    return tuple((half.double() / up).view_as(x) for half in (high, low))


def error(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected).norm() / expected.norm())


def of_splitting(x: Tensor, W: Tensor, expected: Tensor, each: int) -> float:
    (xh, xl), (Wh, Wl) = split(x, each), split(W, each)
    return error(xh @ Wh.T + (xh @ Wl.T + xl @ Wh.T), expected)


def main(
    save: Annotated[Path | None, typer.Option(help="write the table to this file")] = None,
) -> None:
    kernel = tensor_core_models.solution("linear_split_beside")
    out = torch.empty(M, N, device="cuda")
    lines = ["# Rows with outliers, in three products of halves\n"]
    lines.append(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()};")
    lines.append("`python benchmarks/split_domain.py`, which says what the columns are.\n")
    lines.append(f"| {' | '.join(HEAD)} |\n" + "| --- " * len(HEAD) + "|")
    cases = [(e, w, "column", 0.0) for e in EXPONENTS for w in ("x", "W")]
    cases += [(30, "x", "element", 0.0), (30, "W", "element", 0.0)]
    cases += [(20, "x", "column", 1.0), (20, "W", "column", 1.0)]
    for exponent, where, what, weight in cases:
        x, W = inputs(exponent, where, what, weight)
        expected = x.double() @ W.double().T

        def call(x: Tensor = x, W: Tensor = W) -> Tensor:
            kernel(x=x, W=W, out=out, M=M, N=N, K=K)
            return out

        errors = [error(x @ W.T, expected), error(call(), expected)]
        ms = tensor_core_models.times({"": call}, 5)[""].rested
        errors += [of_splitting(x, W, expected, each) for each in (K, 1024)]
        fp32, ours, row, part = (f"{value:.1e}" for value in errors)
        place = f"one {what} of {where}"
        line = f"2^{exponent}", place, f"{weight:.0f}", fp32, ours, f"{ms:.2f}", row, part
        lines.append(f"| {' | '.join(line)} |")
        print(lines[-1], flush=True)
    if save:
        save.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    typer.run(main)
