"""Points for speed, tried: the solution beside itself, a slower kernel, and kernels that cheat.

    python benchmarks/speed_points.py [--no-box] [--json FILE]

Each time is a call's, but of "run" and "idle": of the solution's whole run, and what of it is no
call's. In a box where there is bubblewrap; where something came out otherwise, once more without.

Needs a GPU; without one, `--emulator` tries the protocol alone, on small sizes, where no time is
worth anything. Exit status 0 where all came out as the column "expected" says.
"""

import dataclasses
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.hijacked import CHEATS, ON_A_GPU, hijacked

from utils.course import catalog
from utils.course.answers import Answer
from utils.course.exercise import Exercise
from utils.cuda import signature
from utils.cuda.compiler import compile_cuda
from utils.ground import settings
from utils.ground.errors import ToolError
from utils.process import sandbox
from utils.timing import speed
from utils.timing.speed import Speed

# A long product, much memory, little memory; with sizes for the emulator.
EXERCISES = {
    "01_naive_gemm/gemm_coalesced": {"M": 33, "N": 40, "K": 24},
    "07_pointwise_fusion/bias_hardtanh_mish": {"rows": 33, "channels": 70},
    "08_fused_tails/bias_hardtanh_mish_gn": {"rows": 9, "channels": 64, "groups": 4},
}
CHEATED = "07_pointwise_fusion/bias_hardtanh_mish"  # by those below
LONG = "01_naive_gemm/gemm_coalesced"  # and by who owns the process: longer than a GPU's time slice
HEADERS = "#include <chrono>\n#include <thread>\n#include <map>\n"

# Launchers around the solution's, which is called ONCE here: what they do is in their names.
SLOW = "three times the work"
LAUNCHERS = {
    SLOW: "ONCE; ONCE; ONCE;",
    "later, in a thread": (
        "std::thread([=] { std::this_thread::sleep_for(std::chrono::milliseconds(DELAY)); "
        "ONCE; cudaDeviceSynchronize(); }).detach();"
    ),
    "the first result again": (
        "static const float* kept = nullptr; "
        "if (kept) cudaMemcpy(OUT, kept, 4ull * COUNT, cudaMemcpyDeviceToDevice); "
        "else { ONCE; cudaDeviceSynchronize(); kept = OUT; }"
    ),
    "every second call": "static int call = 0; if (call++ % 2 == 0) { ONCE; }",
    "nothing": "",
}


def variant(exercise: Exercise, body: str) -> Answer:
    """The solution with another launcher around it."""
    text = catalog.solution_text(exercise)
    parameters = signature.parse_launcher(text, exercise.name)
    head, name, tail = text.rpartition(f"void {exercise.name}(")
    names = ", ".join(p.name for p in parameters)
    sizes = exercise.shapes[exercise.outputs[0]].split()
    for word, meaning in {
        "ONCE": f"{exercise.name}_once({names})",
        "OUT": exercise.outputs[0],
        "COUNT": " * ".join(sizes),
        "DELAY": "30",
    }.items():
        body = body.replace(word, meaning)
    declared = ", ".join(f"{p.ctype} {p.name}" for p in parameters)
    whole = f"{HEADERS}{head}void {exercise.name}_once({tail}\n{name}{declared}) {{ {body} }}\n"
    made = compile_cuda(whole, exercise.name, shapes=exercise.shapes)
    return Answer(**vars(made), exercise=exercise)


def against_itself(answer: Answer, sizes: dict, cheat: str) -> Speed:
    """As `speed.beside_the_solution`, but only the answer's process is another's."""
    genuine = speed.clocked

    def clocked(kernel: Answer, *arguments, **named) -> float:
        if kernel is not answer:
            return genuine(kernel, *arguments, **named)
        with hijacked(cheat):
            return genuine(kernel, *arguments, **named)

    speed.clocked = clocked
    try:
        return speed.beside_the_solution(answer, sizes)
    finally:
        speed.clocked = genuine


class Table:
    """Printed as it grows. Without a GPU (`timed` is False), no ratio is held against anything."""

    def __init__(self, timed: bool) -> None:
        self.timed, self.rows = timed, []
        print(
            f"{'exercise':<24}{'kernel':<26}{'ms':>9}{'solution':>9}{'calls':>6}{'run':>9}{'idle':>8}{'ratio':>7}"
            f"{'tenths':>7}  {'expected':<11}{'took':>6}"
        )

    def add(
        self, id: str, kernel: str, ratios: tuple[float, float] | None, make: Callable[[], Speed]
    ) -> None:
        """A row; a ratio between these is expected, or where there are none, no points."""
        start = time.perf_counter()
        try:
            row = make()
        except Exception as error:
            traceback.print_exc()
            row = Speed("", message=f"{type(error).__name__}: {error}")
        took = time.perf_counter() - start
        if ratios is None:
            expected, good = "0 tenths", row.tenths == 0
        else:
            expected = f"{ratios[0]:g} to {ratios[1]:g}"
            good = bool(row.ratio) and (not self.timed or ratios[0] < row.ratio < ratios[1])
        points = "-" if row.tenths is None else f"{row.tenths:.2f}"
        print(
            f"{id.partition('/')[2]:<24}{kernel:<26}{1e3 * row.seconds:>9.4f}"
            f"{1e3 * row.reference:>9.4f}{row.calls:>6}"
            f"{1e3 * (row.reference * row.calls + row.overhead):>9.3f}"
            f"{1e3 * row.overhead:>8.3f}{row.ratio:>7.3f}{points:>7}  "
            f"{expected:<11}{took:>5.1f}s {'' if good else '*** NOT AS EXPECTED *** '}"
            f"{row.message}",
            flush=True,
        )
        cells = {
            "boxed": settings.boxed(),
            "exercise": id,
            "kernel": kernel,
            "expected": expected,
            "good": good,
            "took": took,
        }
        self.rows.append(cells | dataclasses.asdict(row) | {"ratio": row.ratio})


def main(
    no_box: Annotated[bool, typer.Option(help="without bubblewrap")] = False,
    emulator: Annotated[bool, typer.Option(help="try the protocol without a GPU")] = False,
    out: Annotated[Path | None, typer.Option("--json", help="where the rows go")] = None,
) -> None:
    """Time the solution beside itself and beside others."""
    if emulator:
        os.environ["WORKBOOK_BACKEND"] = "emulator"
        speed.RUN, speed.ROUNDS = 0.02, 2
    if settings.backend() != ("emulator" if emulator else "cuda"):
        print("there is no GPU here; --emulator tries the protocol alone")
        raise typer.Exit(2)
    rows = []
    if boxed(no_box):
        rows = tried(emulator)
    if not all(row["good"] for row in rows) or not rows:  # is the box to blame?
        os.environ["WORKBOOK_BOX"] = ""
        print("*** NO BOX: the kernels run as you do ***")
        rows += tried(emulator)
    if out:
        out.write_text(json.dumps(rows, indent=1) + "\n")
    right = sum(row["good"] for row in rows)
    print(f"{right} of {len(rows)} as expected")
    raise typer.Exit(0 if right == len(rows) else 1)


def boxed(no_box: bool) -> bool:
    """Put compilers and kernels into boxes, where that can be had and is wanted."""
    if no_box:
        return False
    try:
        sandbox.require()
    except ToolError as error:
        print(error)
        return False
    os.environ["WORKBOOK_BOX"] = "1"
    print("the kernels run in a box")
    return True


def tried(emulator: bool) -> list[dict]:
    """The rows of a table, which is printed."""
    table = Table(timed=not emulator)

    def sizes(id: str) -> dict:
        return EXERCISES[id] if emulator else catalog.load(id).at.bench

    def itself(id: str, cheat: str = "") -> Speed:
        own = speed.solution(catalog.load(id), settings.backend())
        if cheat:
            return against_itself(own, sizes(id), cheat)
        return speed.beside_the_solution(own, sizes(id))

    def other(id: str, body: str) -> Speed:
        return speed.beside_the_solution(variant(catalog.load(id), body), sizes(id))

    for id in EXERCISES:
        table.add(id, "the solution", (0.9, 1.1), partial(itself, id))
        table.add(id, SLOW, (2.4, 3.2), partial(other, id, LAUNCHERS[SLOW]))
    for name in [name for name in LAUNCHERS if name != SLOW]:
        table.add(CHEATED, name, None, partial(other, CHEATED, LAUNCHERS[name]))
    early = "says done, then works"  # where a launch waits, it has to begin later to be too late
    for name, cheat in {early: CHEATS[early]}.items() if emulator else ON_A_GPU.items():
        table.add(LONG, name, None, partial(itself, LONG, cheat))
    return table.rows


if __name__ == "__main__":
    typer.run(main)
