"""What splitting, and copying tiles to shared memory, cost the product of 11.6: on Hopper.

    python benchmarks/split_costs.py [--save results/split_costs.md]

x is (1024, 8192), standard normal, W (8192, 8192), uniform on [-1, 1). Each row is
`linear_split_beside`, with something left out:

- whole: as it is
- halves kept: the first call alone splits x and W; the warpgroup that splits has nothing to do
- kept, 11.5: `linear_split_wgmma`, which has no such warpgroup and 24 registers more for consumers
- kept, no tiles: the first STAGES rounds of each tile alone are copied; products of what lies there

Sustained, the card keeps to its power limit: what is left out may be energy as well as time.
"""

import sys
from datetime import date
from pathlib import Path
from typing import Annotated

import both_ways
import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from utils.course import catalog
from utils.course.flat_cuda import Flat
from utils.cuda.compiler import compile_cuda
from utils.cuda.kernel import Kernel
from utils.ground.paths import workspace

M, N, K = 1024, 8192, 8192
BESIDE, BEFORE = "11_hopper/linear_split_beside", "11_hopper/linear_split_wgmma"
Change = tuple[str, str]  # a text that stands there once, and what replaces it
KEPT: tuple[Change, ...] = (
    (
        "struct Planes {",
        """template <class T>
T* kept(int rows, size_t count) {  // x has other rows than W
    static T* at[2] = {};
    T*& data = at[rows > 4096];
    if (!data) cudaMalloc(&data, count * sizeof(T));
    return data;
}
struct Planes {""",
    ),
    ("    Scratch<__half> halves;\n", "    struct { __half* data; } halves;\n"),
    ("    Scratch<float> scales;\n", "    struct { float* data; } scales;\n"),
    (
        "halves(size_t(2) * rows * padded),",
        "halves{kept<__half>(rows, size_t(2) * rows * padded)},",
    ),
    ("scales((rows + 3) / 4 * 4) {}", "scales{kept<float>(rows, (rows + 3) / 4 * 4)} {}"),
    (
        "    void split(const float* matrix, int cols, int rows) const {\n",
        """    void split(const float* matrix, int cols, int rows) const {
        static bool done[2] = {};
        if (done[this->rows > 4096]) return;
        done[this->rows > 4096] = true;
""",
    ),
)
ALL_BEFORE: Change = (
    "        int together = min((M + BM - 1) / BM, BAND);",
    "        return N;\n        int together = min((M + BM - 1) / BM, BAND);",
)
NO_TILES: Change = (
    "        barrier_arrive_expect(full, sizeof(Stage<TileConfig>));\n",
    """        if (k >= TileConfig::STAGES * TileConfig::BK) {
            barrier_arrive(full);
            next();
            return;
        }
        barrier_arrive_expect(full, sizeof(Stage<TileConfig>));
""",
)
WAYS: dict[str, tuple[str, tuple[Change, ...]]] = {
    "whole": (BESIDE, ()),
    "halves kept": (BESIDE, (*KEPT, ALL_BEFORE)),
    "kept, 11.5": (BEFORE, KEPT),
    "kept, no tiles": (BESIDE, (*KEPT, ALL_BEFORE, NO_TILES)),
}


def text_of(id: str, changes: tuple[Change, ...]) -> str:
    """A solution with all of its headers, changed. Raises ValueError unless each text that is
    replaced stands there exactly once."""
    text = Flat((workspace().include,)).file(catalog.solution_path(catalog.load(id)))
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{id}: not once in its text: {old.strip()}")
        text = text.replace(old, new)
    return text


def compiled(id: str, changes: tuple[Change, ...]) -> Kernel:
    """Ready to be called in turns with others."""
    kernel = compile_cuda(text_of(id, changes), id.rpartition("/")[2], backend="cuda")
    kernel.trusted = True  # called in this process
    return kernel


def rows() -> list[str]:
    """The lines of the table."""
    draw = torch.Generator("cuda").manual_seed(1)
    x = torch.randn(M, K, device="cuda", generator=draw)
    W = torch.rand(N, K, device="cuda", generator=draw) * 2 - 1
    out = torch.empty(M, N, device="cuda")
    true = x.double() @ W.double().T
    halves = x.half(), W.half()

    def three() -> None:
        for _ in range(3):
            torch.mm(halves[0], halves[1].T)

    calls, errors = {}, {}
    for name, (id, changes) in WAYS.items():
        kernel = compiled(id, changes)
        calls[name] = lambda kernel=kernel: kernel(x, W, out, M, N, K)
        calls[name]()
        if "no tiles" not in name:
            errors[name] = f"{float((out.double() - true).norm() / true.norm()):.1e}"
    calls["cuBLAS, three products of halves, not split"] = three
    calls["cuBLAS fp32"] = lambda: torch.mm(x, W.T, out=out)
    calls["cuBLAS fp32"]()
    errors["cuBLAS fp32"] = f"{float((out.double() - true).norm() / true.norm()):.1e}"
    del true
    times = both_ways.times(calls)
    fp32 = times["cuBLAS fp32"]
    return [
        " | ".join([f"| {name}", *time.cells(), fp32.over(time), f"{errors.get(name, '–')} |"])
        for name, time in times.items()
    ]


def main(save: Annotated[Path | None, typer.Option(help="a file for the table")] = None) -> None:
    """Measure and print; needs a Hopper card and nvcc."""
    head = ("way", *both_ways.HEAD, "cuBLAS fp32 over it", "error")
    lines = [
        "# What splitting and bringing tiles cost, beside three products of halves",
        "",
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {date.today().isoformat()};",
        "`python benchmarks/split_costs.py`, which says what the rows are.",
        "Rested: medians of rounds in which all take turns, the L2 flushed before each. Sustained: "
        "each back to back for 0.3 s. Ratios: rested / sustained.",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *rows(),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if save:
        save.write_text(text)


if __name__ == "__main__":
    typer.run(main)
