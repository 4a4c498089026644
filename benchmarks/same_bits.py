"""Do the kernels of chapters 10 and 11 give the same bits on a GPU and on the emulator?

    python benchmarks/same_bits.py --write FILE               # on a machine with a Hopper GPU
    python benchmarks/same_bits.py --beside FILE [--save results/same_bits.md]    # anywhere
        [--digests tests/calibration/products.json]    # of what is the same, for the tests

The solutions and worked kernels meet the sizes of their checks, with normal and heavy-tailed
values. FILE holds what the card was given, since exp() of the host differs between processors, and
what it gave. Distances are in ulp: floats that lie between.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Generator, Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import case_calls, case_values, cases, catalog
from utils.course.answers import compile_answer
from utils.course.exercise import Exercise

CHAPTERS = "10", "11"
WHY = """Products of tensor cores, splitting and promotion give the same bits. Whole models do not.
nvcc may make one instruction of a product and a sum, and rsqrtf, __expf and __fdividef are rougher
on a card: which of these it is, element by element, was not taken apart."""
KINDS = case_values.NORMAL, "heavy-tailed"


def exercises() -> list[Exercise]:
    of_chapters = (e for e in catalog.exercises() if e.topic.startswith(CHAPTERS))
    return [e for e in of_chapters if e.flops(**e.at.bench)]  # copies have no bits of their own


def samples(
    exercise: Exercise, dtypes: dict[str, torch.dtype], kinds: Sequence[str]
) -> Iterator[cases.Case]:
    """Values for each size and kind, kind after kind."""
    for kind in kinds:
        for number, sizes in enumerate(exercise.at.check):
            yield cases.sample(exercise, sizes, kind, Generator().manual_seed(number), dtypes)


def results(
    exercise: Exercise,
    backend: str,
    kinds: Sequence[str] = KINDS,
    there: list[dict] | None = None,
) -> list[dict]:
    """Of each call of the kernel, with fresh values or those of `given`: all tensors by name."""
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend=backend)
    device = "cuda" if backend == "cuda" else "cpu"
    rows = []
    for number, case in enumerate(samples(exercise, kernel.dtypes, kinds)):
        if there:
            same = {name: there[number][name] for name in case.tensors}
            case = cases.Case(case.sizes, case.family, same, case.scalars)
        values = case_calls.arguments(kernel, case, device)
        kernel(**values)
        rows.append({name: values[name].cpu() for name in exercise.shapes})
    return rows


def digest(tensors: Iterable[Tensor]) -> str:
    """Of their bits."""
    hash = hashlib.sha256()
    for tensor in tensors:
        hash.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return hash.hexdigest()[:16]


def digests(exercise: Exercise, calls: list[dict]) -> list[list[str]]:
    """Of what each call was given, and of what it gave."""
    taken = [name for name in exercise.shapes if name not in exercise.outputs]
    return [[digest(c[n] for n in names) for names in (taken, exercise.outputs)] for c in calls]


def ulps(a: Tensor, b: Tensor) -> Tensor:
    """How many numbers of their type lie between, +1; of floats and halves."""
    integer, sign = (torch.int32, 1 << 31) if a.dtype == torch.float32 else (torch.int16, 1 << 15)
    a, b = (x.view(integer).long() for x in (a, b))
    a, b = (torch.where(x < 0, -sign - x, x) for x in (a, b))
    return (a - b).abs()


def distances(exercise: Exercise, there: list[dict]) -> Tensor:
    """In ulp, of all elements that a card gave and that the emulator gives."""
    here = results(exercise, "emulator", given=there)
    pairs = zip(there, here, strict=True)
    return torch.cat([ulps(a[n], b[n]).ravel() for a, b in pairs for n in exercise.outputs])


def row(exercise: Exercise, apart: Tensor) -> str:
    others = int((apart > 0).sum())
    name = f"{exercise.number or 'worked'} `{exercise.name}`"
    share = others / len(apart)
    return f"| {name} | {len(apart):,} | {others:,} | {share:.2%} | {int(apart.max())} |"


def main(
    write: Annotated[Path | None, typer.Option(help="run on the GPU, and keep it here")] = None,
    beside: Annotated[Path | None, typer.Option(help="run on the emulator, and compare")] = None,
    save: Annotated[Path | None, typer.Option(help="write the table to this file")] = None,
    kept_digests: Annotated[Path | None, typer.Option("--digests", help="write them here")] = None,
) -> None:
    if write:
        card = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today()}"
        torch.save({"card": card, **{e.name: results(e, "cuda") for e in exercises()}}, write)
        return
    if not beside:
        raise typer.BadParameter("name a file to --write, or one to hold the emulator --beside")
    kept = torch.load(beside)
    report = ["# The same bits, on a GPU and on the emulator?", ""]
    report += [f"{kept['card']}; `python benchmarks/same_bits.py`, which says how.", ""]
    report += ["| kernel | elements | other bits | share | furthest, ulp |", "| --- " * 5 + "|"]
    apart = [(e, distances(e, kept[e.name])) for e in exercises()]
    report += [row(e, far) for e, far in apart]
    report += ["", WHY]
    print("\n".join(report))
    if save:
        save.write_text("\n".join(report) + "\n")
    if kept_digests:
        same = [e for e, far in apart if not far.any()]
        there = {e.id: digests(e, kept[e.name][: len(e.at.check)]) for e in same}  # normal values
        kept_digests.write_text(json.dumps({"card": kept["card"], **there}, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
