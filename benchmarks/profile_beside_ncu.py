"""What Nsight Compute counts of the course's kernels at their measured size, beside `profile`.

    python3 benchmarks/profile_beside_ncu.py --count results/profiles [--logs FOLDER]  # on a GPU
    python benchmarks/profile_beside_ncu.py --beside results/profiles/NVIDIA_H200.json  # anywhere

The first builds a program of each solution that launches it once, profiles it with Nsight
Compute, and writes FOLDER/<GPU>.json: counters of each launch, in order, those of each
source line, and what Nsight Compute says limits it. Takes two minutes. Its reports' pages, as
text, stay with the logs. Without a GPU, `--build sm_90a` says whether the programs compile.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import calibrate
from benchmarks.calibrate import Session
from benchmarks.sanitize_faults import build
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.timing import counters, ncu, sass
from utils.timing.launch_once import LaunchOnce

if TYPE_CHECKING:
    from utils.timing.profile import Profile

KERNELS = (
    "00_start_here/swish",
    "02_shared_memory_tiling/gemm_tiled",
    "03_register_tiles/gemm_vectorized",
    "03_register_tiles/gemm_warp",
    "04_reductions/sum_grid",
    "06_groupnorm/groupnorm_vectorized",
    "07_pointwise_fusion/swish_multiply_swish",
    "08_fused_tails/gn_swish_multiply_swish",
    "09_fused_linear/linear_gn_swish_multiply_swish",
    "12_ship_it/groupnorm_dx",
    "01_naive_gemm/gemm_coalesced",
    "01_naive_gemm/gemm_naive",  # the longest last
)
SHARE = "pct_of_peak_sustained_elapsed"
MORE = {  # our name: Nsight Compute's
    "registers_limit": "launch__occupancy_limit_registers",
    "shared_limit": "launch__occupancy_limit_shared_mem",
    "threads_limit": "launch__occupancy_limit_warps",
    "blocks_limit": "launch__occupancy_limit_blocks",
    "blocks": "launch__grid_size",
    "threads": "launch__block_size",
    "static_shared": "launch__shared_mem_per_block_static",
    "dynamic_shared": "launch__shared_mem_per_block_dynamic",
    "warps_at_most_share": "sm__maximum_warps_per_active_cycle_pct",
    "warps_active_share": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "local_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "fused": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "sums": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "products": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "tensor_instructions": "sm__inst_executed_pipe_tensor.sum",
    "fma_share": f"sm__inst_executed_pipe_fma.avg.{SHARE}",
}
RATES = {ours: its for ours, its in calibrate.RATES.items() if not ours.startswith("stall")}
COUNTERS = {**calibrate.COUNTERS, **RATES, **ncu.TOTALS, **MORE}
LIMIT = 150  # seconds that a kernel may take under Nsight Compute


def count(session: Session, launch: LaunchOnce, wanted: dict[str, str], folder: Path) -> dict:
    """What Nsight Compute says of the launches of a program."""
    name, report = launch.exercise.name, session.logs / f"{launch.exercise.name}.ncu-rep"
    command = ["ncu", "--clock-control", "none", "--metrics", ",".join(wanted.values())]
    command += ["--section", "SpeedOfLight", "--section", "SourceCounters"]
    command += ["-f", "-o", str(report.with_suffix(""))]
    said = session.run(f"ncu {name}", [*command, *launch.command], LIMIT)
    if not report.is_file():
        print(said[-500:])

    def page(*how: str) -> str:
        return session.run(f"{how[-1]} of {name}", ["ncu", "--import", str(report), *how], 60)

    with ThreadPoolExecutor() as pool:
        raw, details, source = pool.map(lambda how: page(*how), (ncu.RAW, ncu.DETAILS, ncu.SOURCE))
    launches = ncu.totals(raw, COUNTERS)
    return {
        "sizes": launch.sizes,
        "text": counters.digest(launch.text),
        "launches": launches,
        "limited": limits(details),
        "lines": attempt(launch, source, folder),
    }


def attempt(launch: LaunchOnce, page: str, folder: Path) -> list[dict]:
    """Counts by line; a page that cannot be read costs only these, and is kept."""
    try:
        code = sass.disassembled(launch.text, "sm_90")
        if not (seen := ncu.launches(page)):
            raise ValueError(page[-300:])
        return [ncu.by_line(one, code) for one in seen]
    except (ValueError, KeyError) as error:
        print(f"no counts by line of {launch.exercise.name}: {error}")
        (folder / f"{launch.exercise.name}.sass.csv").write_text(page)
        return []


def limits(details: str) -> list[str]:
    """What Nsight Compute says of each launch's bottleneck."""
    return [
        row["Rule Description"]
        for row in ncu.rows(details)
        if row.get("Rule Name") == "SOLBottleneck" and row.get("Rule Description")
    ]


def profile_of(id: str, gpu: str) -> "Profile":
    """Of a solution at its measured size."""
    from utils.timing.profile import profiled  # draws, with what a machine with a GPU may lack

    exercise = catalog.load(id)
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
    return profiled(kernel, exercise.at.bench, gpu)


def compared(seen: "Profile") -> dict[str, tuple[float | str, float | str]]:
    """By name, what a profile says of a kernel and what Nsight Compute counted of it."""
    assert seen.counted, f"{seen.estimate.kernel} has another text now, or another size"
    launches = seen.counted.launches
    rows: dict[str, tuple[float | str, float | str]] = {}
    for space, kind in counters.ACCESSES:
        lines = [line for line in seen.lines if line.kind == f"{space} {kind}"]
        both = [seen.counted.accesses(line, space, kind) for line in seen.counted.lines]
        unit = "wavefronts" if space == "shared" else "sectors"
        rows[f"{space} {kind} requests"] = sum(li.requests for li in lines), sum(r for r, _ in both)
        rows[f"{space} {kind} {unit}"] = sum(li.pieces for li in lines), sum(p for _, p in both)
    for unit, count in seen.units.items():
        if (short := unit.partition(":")[0].partition(" ")[0]) in counters.OPCODES:
            rows[f"{short} instructions"] = count, seen.counted.executed(short)
    loaded = sum(line.dram for line in seen.lines if line.kind == "global load")
    rows["bytes from DRAM"] = loaded, sum(launch["dram_read_bytes"] for launch in launches)
    rows["milliseconds"] = 1e3 * seen.estimate.seconds, seen.counted.nanoseconds / 1e6
    rows["limited by"] = seen.estimate.bound, seen.counted.limit
    return {name: row for name, row in rows.items() if any(row)}


def beside(path: Path) -> int:
    """Prints all of them."""
    file = json.loads(path.read_text())
    for id in file["kernels"]:
        print(f"\n{id}\n{'':28}{'profile':>24}{'Nsight Compute':>24}")
        for name, (ours, its) in compared(profile_of(id, file["gpu"])).items():
            print(f"{name:28}{_shown(ours):>24}{_shown(its):>24}")
    return 0


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}" if value < 99 else f"{value:,.0f}"


def counted(options: argparse.Namespace) -> int:
    session = Session(options.logs.resolve(), options.deadline)

    def prepared(id: str) -> tuple[LaunchOnce, bool]:
        exercise = catalog.load(id)
        text, sizes = catalog.solution_text(exercise), exercise.at.bench
        launch = LaunchOnce(exercise, text, sizes, session.logs / "programs")
        return launch, build(session, launch, options.build)

    with ThreadPoolExecutor(6) as beside:
        programs = beside.map(prepared, options.only or KERNELS)
        if options.build:
            return 0 if all(built for _, built in programs) else 1
        results = calibrate.provenance()
        del results["sanitizer"]
        wanted = calibrate.known(session, COUNTERS)
        results["kernels"] = {}
        options.count.mkdir(parents=True, exist_ok=True)
        path = options.count / f"{'_'.join(results['gpu'].split()) or 'unknown'}.json"
        for launch, _ in programs:
            results["kernels"][launch.exercise.id] = count(session, launch, wanted, options.count)
            path.write_text(calibrate.dump(results) + "\n")  # whatever becomes of the next
    print(path.read_text())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=Path, default=Path("results/profiles"), metavar="FOLDER")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="compare, and count nothing")
    parser.add_argument("--logs", type=Path, default=Path("build/profiles"))
    parser.add_argument("--deadline", type=float, default=500, help="seconds for everything")
    parser.add_argument("--only", nargs="*", help="some kernels, such as 00_start_here/swish")
    parser.add_argument("--build", metavar="SM", help="only compile, for this architecture")
    options = parser.parse_args(arguments)
    return beside(options.beside) if options.beside else counted(options)


if __name__ == "__main__":
    sys.exit(main())
