"""Estimated beside measured times: the workbook's kernels, and some that nothing was fitted to.

    python benchmarks/estimates.py [kernel ...]

The figures were fitted to the kernels of results/calibration/ladder.json. Those of
tests/calibration/timed_kernels.cuh, timed by Nsight Compute (see calibrate.py), and all that
results/ holds show what that is worth.
"""

import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.course.exercise import At, Exercise
from utils.ground.paths import ROOT, workspace
from utils.timing import results
from utils.timing.estimate import Estimate, covers, estimate
from utils.timing.rows import id_of

CALIBRATION = workspace().results / "calibration"


@dataclass(frozen=True)
class Row:
    estimate: Estimate
    measured: float  # seconds

    @property
    def error(self) -> float:
        """0.1: the estimate is a tenth too long."""
        return self.estimate.seconds / self.measured - 1


def ladder(only: tuple[str, ...] = ()) -> Iterator[Row]:
    """The kernels of the workbook that were measured."""
    for id, ms in json.loads((CALIBRATION / "ladder.json").read_text())["milliseconds"].items():
        exercise = catalog.load(id)
        if not only or exercise.name in only:
            yield _row(catalog.solution_text(exercise), exercise, ms / 1e3)


def stored(only: tuple[str, ...] = ()) -> Iterator[Row]:
    """All kernels and sizes that results/ has figures of."""
    for card in results.stored("NVIDIA H200"):
        for key, entry in card.entries.items():
            exercise, ours = catalog.load(id_of(key)), entry.ours()
            if ours and (not only or exercise.name in only):
                text = catalog.solution_text(exercise)
                if covers(compile_answer(exercise, text, backend="emulator")):
                    yield _row(text, exercise, ours.median_ms / 1e3, **entry.sizes)


def held_out(only: tuple[str, ...] = ()) -> Iterator[Row]:
    """The kernels of timed_kernels.cuh."""
    source = (ROOT / "tests/calibration/timed_kernels.cuh").read_text()
    stored = json.loads((CALIBRATION / "NVIDIA_H200.json").read_text())["timed"]["timed"]
    for exercise, kernel in HELD_OUT.values():
        if not only or exercise.name in only:
            yield _row(source, exercise, stored[kernel]["nanoseconds"] / 1e9)


def _row(source: str, exercise: Exercise, measured: float, **sizes: int) -> Row:
    kernel = compile_answer(exercise, source, backend="emulator")
    return Row(estimate(kernel, **sizes), measured)


def _exercise(name: str, shapes: dict[str, str], flops, **bench: int) -> Exercise:
    return Exercise(
        name=name,
        title=name,
        shapes=shapes,
        outputs=("out",),
        reference=lambda **inputs: torch.zeros(()),
        at=At(check=(), bench=bench),
        flops=flops,
        inputs=lambda sizes, generator: {},
    )


_MAP = {"in": "n", "out": "n"}
_TURNED = {"in": "rows cols", "out": "cols rows"}
_LINEAR = {"x": "M K", "W": "N K", "out": "M N"}
_N = 1 << 27
_SIDE = {"rows": 8192, "cols": 8192}
_PRODUCT = {"M": 4096, "N": 4096, "K": 4096}
# By name: the kernel as the stored figures call it, too.
HELD_OUT: dict[str, tuple[Exercise, str]] = {}
for _name, _shapes, _flops, _bench, _kernel in (
    ("scale_by_fours", _MAP, lambda n: n, {"n": _N}, ""),
    ("every_eighth", {"in": "n 8", "out": "n"}, lambda n: 0, {"n": _N // 8}, ""),
    ("transpose_plain", _TURNED, lambda rows, cols: 0, _SIDE, ""),
    ("transpose_unpadded", _TURNED, lambda rows, cols: 0, _SIDE, "transpose_kernel<32>"),
    ("transpose_padded", _TURNED, lambda rows, cols: 0, _SIDE, "transpose_kernel<33>"),
    ("row_sums", {"in": "rows cols", "out": "rows"}, None, {"rows": 65536, "cols": 2048}, ""),
    ("column_sums", {"in": "rows cols", "out": "cols"}, None, {"rows": 2048, "cols": 65536}, ""),
    ("row_sums_by_warp", {"in": "rows cols", "out": "rows"}, None,
     {"rows": 65536, "cols": 2048}, ""),
    ("block_sums", _MAP, lambda n: n, {"n": _N}, ""),
    ("heat_step", {"in": "rows cols", "out": "rows cols"}, None, _SIDE, ""),
    ("linear_unpadded", _LINEAR, lambda M, N, K: 2 * M * N * K, _PRODUCT, ""),
    ("linear_by_fours", _LINEAR, lambda M, N, K: 2 * M * N * K, _PRODUCT, ""),
):  # fmt: skip
    _one = _exercise(_name, _shapes, _flops or (lambda rows, cols: rows * cols), **_bench)
    HELD_OUT[_name] = (_one, _kernel or f"{_name}_kernel")


def table(title: str, rows: list[Row]) -> None:
    print(f"\n{title}\n{'kernel':32}{'measured':>10}{'estimate':>10}{'error':>8}  bound by")
    for row in rows:
        measured, estimated = 1e3 * row.measured, 1e3 * row.estimate.seconds
        error = f"{100 * row.error:+.0f} %"
        name, bound = row.estimate.kernel, row.estimate.bound
        caveat = "  may be far off" if row.estimate.caveats else ""
        print(f"{name:32}{measured:10.4g}{estimated:10.4g}{error:>8}  {bound}{caveat}")
    errors = [abs(row.error) for row in rows]
    if errors:
        median, worst = 100 * statistics.median(errors), 100 * max(errors)
        sure = [abs(row.error) for row in rows if not row.estimate.caveats]
        of_sure = f", {100 * max(sure, default=0):.0f} % of those without a caveat"
        print(f"median error {median:.0f} %, largest {worst:.0f} %{of_sure}")


def main() -> None:
    only = tuple(sys.argv[1:])
    table("Fitted to, ms", list(ladder(only)))
    table("Held out, ms", list(held_out(only)))
    table("All of results/, ms", list(stored(only)))


if __name__ == "__main__":
    main()
