"""Points for speed, tried: the solution beside itself, a slower kernel, and kernels that cheat.

    python benchmarks/speed_points.py [--no-box] [--json FILE]

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
from support.hijacked import ON_A_GPU, hijacked

from utils import settings
from utils.course import catalog
from utils.course.answers import Answer
from utils.course.exercise import Exercise
from utils.cuda import sandbox, signature
from utils.cuda.compiler import compile_cuda
from utils.errors import ToolError
from utils.timing import speed
from utils.timing.speed import Speed

# A long product, much memory, little memory; with sizes for the emulator.
EXERCISES = {
    "01_naive_gemm/gemm_coalesced": {"M": 33, "N": 40, "K": 24},
    "07_pointwise_fusion/bias_hardtanh_mish": {"rows": 33, "channels": 70},
    "08_fused_tails/bias_hardtanh_mish_gn": {"rows": 9, "channels": 64, "groups": 4},
}
CHEATED = "07_pointwise_fusion/bias_hardtanh_mish"  # by those below
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

    def clocked(kernel: Answer, *given, **named) -> float:
        if kernel is not answer:
            return genuine(kernel, *given, **named)
        with hijacked(cheat):
            return genuine(kernel, *given, **named)

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
            found = make()
        except Exception as error:
            traceback.print_exc()
            found = Speed("", message=f"{type(error).__name__}: {error}")
        took = time.perf_counter() - start
        if ratios is None:
            expected, good = "0 tenths", found.tenths == 0
        else:
            expected = f"{ratios[0]:g} to {ratios[1]:g}"
            good = bool(found.ratio) and (not self.timed or ratios[0] < found.ratio < ratios[1])
        points = "-" if found.tenths is None else f"{found.tenths:.2f}"
        print(
            f"{id.partition('/')[2]:<24}{kernel:<26}{1e3 * found.seconds:>9.4f}"
            f"{1e3 * found.reference:>9.4f}{found.calls:>6}"
            f"{1e3 * (found.reference * found.calls + found.overhead):>9.3f}"
            f"{1e3 * found.overhead:>8.3f}{found.ratio:>7.3f}{points:>7}  "
            f"{expected:<11}{took:>5.1f}s {'' if good else '*** NOT AS EXPECTED *** '}"
            f"{found.message}",
            flush=True,
        )
        told = {"exercise": id, "kernel": kernel, "expected": expected, "good": good, "took": took}
        self.rows.append(told | dataclasses.asdict(found) | {"ratio": found.ratio})


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
    box(no_box)
    table = Table(timed=not emulator)
    for id, small in EXERCISES.items():
        exercise = catalog.load(id)
        sizes = small if emulator else exercise.at.bench
        own = speed.solution(exercise, settings.backend())
        table.add(id, "the solution", (0.9, 1.1), partial(speed.beside_the_solution, own, sizes))
        slow = variant(exercise, LAUNCHERS[SLOW])
        table.add(id, SLOW, (2.4, 3.2), partial(speed.beside_the_solution, slow, sizes))
    exercise = catalog.load(CHEATED)
    sizes = EXERCISES[CHEATED] if emulator else exercise.at.bench
    for name in [name for name in LAUNCHERS if name != SLOW]:
        cheat = variant(exercise, LAUNCHERS[name])
        table.add(CHEATED, name, None, partial(speed.beside_the_solution, cheat, sizes))
    own = speed.solution(exercise, settings.backend())
    for name, cheat in ON_A_GPU.items():
        if emulator and name == "says done without a wait":
            continue  # a launch is waited for there anyway
        table.add(CHEATED, name, None, partial(against_itself, own, sizes, cheat))
    if out:
        out.write_text(json.dumps(table.rows, indent=1) + "\n")
    wrong = sum(not row["good"] for row in table.rows)
    print(f"{len(table.rows) - wrong} of {len(table.rows)} as expected")
    raise typer.Exit(1 if wrong else 0)


def box(no_box: bool) -> None:
    """Put the workers into boxes, or say that they are in none."""
    try:
        if not no_box:
            sandbox.require()
            os.environ["WORKBOOK_BOX"] = "1"
            print("the kernels run in a box")
            return
        why = "--no-box"
    except ToolError as error:
        why = str(error)
    print(f"*** NO BOX: the kernels run as you do. {why} ***")


if __name__ == "__main__":
    typer.run(main)
