"""The order of 11.4's tiles: bands of 1 to 64 rows of tiles beside each other, on Hopper.

    python benchmarks/bands.py [--size 8192]

x and W are (size, size). Each kernel is the solution of 11.4 with another BAND, and bands of 1 are
plain row-major order. Times, rested and sustained, are of one run in which all take turns; all
kernels must give the same bits.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import typer
from both_ways import HEAD, WAYS, times

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.answers import compile_answer

NAME = "linear_persistent"
BANDS = 1, 4, 8, 16, 32, 64
LINE = "constexpr int BAND = 8; "


def with_band(band: int) -> Callable:
    """The solution with bands of so many rows of tiles."""
    exercise = catalog.load(f"11_hopper/{NAME}")
    text = catalog.solution_text(exercise)
    assert text.count(LINE) == 1
    text = text.replace(LINE, LINE.replace("8", str(band)))
    kernel = compile_answer(exercise, text, backend="cuda")
    kernel.trusted = True  # called in this process, and not on copies in another one
    return kernel


def main(size: int = 8192) -> None:
    draw = torch.Generator("cuda").manual_seed(1)
    x, W = (torch.randn(size, size, device="cuda", generator=draw) for _ in range(2))
    outs = {f"BAND {band}": torch.full((size, size), torch.nan, device="cuda") for band in BANDS}
    kernels = dict(zip(outs, map(with_band, BANDS), strict=True))

    def call(name: str) -> Callable[[], None]:
        return lambda: kernels[name](x, W, outs[name], size, size, size)

    timed = times({name: call(name) for name in outs})
    first, *others = outs.values()
    print(f"{NAME}, {size}³, {torch.cuda.get_device_name()}. {WAYS}")
    print("|".join(("", "", *HEAD, "BAND 8 over it")))
    for name, time in timed.items():
        print("|".join(("", name, *time.cells(), timed["BAND 8"].over(time, 3))))
    print("same bits:", all(torch.equal(first, other) for other in others))


if __name__ == "__main__":
    typer.run(main)
