"""What Nsight Compute counts of the course's kernels at their measured size, beside `profile`.

    python3 benchmarks/profile_beside_ncu.py --count results/profiles [--logs FOLDER]  # on a GPU

Builds a program of each solution that launches it once, profiles it with all of Nsight
Compute's sections, and writes FOLDER/<GPU>.json: counters of each launch, in order, those of each
source line, and what Nsight Compute says limits it. Takes five minutes. Its reports' pages, as
text, stay with the logs. Without a GPU, `--build sm_90a` says whether the programs compile.
"""

import argparse
import csv
import glob
import io
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import calibrate
from benchmarks.calibrate import Session
from benchmarks.launch_once import LaunchOnce
from utils.course import catalog
from utils.timing import counters, sass

KERNELS = (
    "00_start_here/swish",
    "01_naive_gemm/gemm_naive",
    "01_naive_gemm/gemm_coalesced",
    "02_shared_memory_tiling/gemm_tiled",
    "03_register_tiles/gemm_vectorized",
    "03_register_tiles/gemm_warp",
    "04_reductions/sum_grid",
    "06_groupnorm/groupnorm_vectorized",
    "07_pointwise_fusion/swish_multiply_swish",
    "08_fused_tails/gn_swish_multiply_swish",
    "09_fused_linear/linear_gn_swish_multiply_swish",
    "12_ship_it/groupnorm_dx",
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
    "sm_share": f"sm__throughput.avg.{SHARE}",
    "memory_share": f"gpu__compute_memory_throughput.avg.{SHARE}",
    "l1_share": f"l1tex__throughput.avg.{SHARE}",
    "issue_share": f"sm__inst_issued.avg.{SHARE}",
    "fma_share": f"sm__inst_executed_pipe_fma.avg.{SHARE}",
}
COUNTERS = {**calibrate.COUNTERS, **calibrate.RATES, **MORE}
LINES = {  # what is kept by line; all of it stays with the logs
    "instructions": "inst_executed",
    "global_sectors": "memory_l2_theoretical_sectors_global",
    "global_ideal_sectors": "memory_l2_theoretical_sectors_global_ideal",
    "global_requests": "memory_l1_tag_requests_global",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_ideal_wavefronts": "memory_l1_wavefronts_shared_ideal",
    "samples": "smsp__pcsamp_sample_count",
}
LIMIT = 150  # seconds that a kernel may take under Nsight Compute


def count(session: Session, launch: LaunchOnce, wanted: dict[str, str]) -> dict:
    """What Nsight Compute says of the launches of a program."""
    name, report = launch.exercise.name, session.logs / f"{launch.exercise.name}.ncu-rep"
    command = ["ncu", "--set", "full", "--import-source", "yes", "--clock-control", "none"]
    command += ["--metrics", ",".join(wanted.values()), "-f", "-o", str(report.with_suffix(""))]
    session.run(f"ncu {name}", [*command, *launch.command], LIMIT)
    pages = {page: print_page(session, report, page, *how) for page, how in PAGES.items()}
    table = list(rows(pages["raw"]))
    launches = [
        {
            "kernel": plain(row["Kernel Name"]),
            **{o: calibrate._number(row[t]) for o, t in COUNTERS.items() if row.get(t)},
        }
        for row in table[1:]  # the first holds the units
    ]
    lines = attempt(session, launch, report)
    return {
        "sizes": launch.sizes,
        "text": counters.digest(launch.text),
        "launches": launches,
        "limited": limits(pages["details"]),
        "lines": lines,
    }


PAGES = {  # of a report, and how to print them
    "raw": ("--print-units", "base"),
    "details": (),
    "source": ("--print-source", "cuda,sass"),
    "sass": ("--print-source", "sass"),
    "cuda": ("--print-source", "cuda"),
}


def attempt(session: Session, launch: LaunchOnce, report: Path) -> list[dict]:
    """Counts by line; a report that cannot be read costs only these."""
    name = launch.exercise.name
    try:
        launches = instructions(report)
        (session.logs / f"{name}.instructions.json").write_text(json.dumps(launches))
        code = sass.disassembled(launch.text, "sm_90")
        return [by_line(code.get(kernel, ()), seen) for kernel, seen in launches]
    except Exception as error:  # whatever a module that comes with the tool may raise
        print(f"no counts by line of {name}: {error!r}")
        return []


def print_page(session: Session, report: Path, page: str, *how: str) -> str:
    kind = page if page in ("raw", "details") else "source"
    command = ["ncu", "--import", str(report), "--csv", "--page", kind, *how]
    return session.run(f"{page} of {report.stem}", command, 60)


def rows(text: str) -> Iterator[dict[str, str]]:
    """A table of Nsight Compute's, whose lines begin with a quotation mark."""
    yield from csv.DictReader(io.StringIO(text[text.find('"') :]))


PLACES = (  # where Nsight Compute's module for Python may be
    "/opt/nvidia/nsight-compute/*/extras/python",
    "/usr/local/cuda*/nsight-compute*/extras/python",
    "/usr/local/NVIDIA-Nsight-Compute*/extras/python",
)


def instructions(report: Path) -> list[tuple[str, list[dict]]]:
    """Of each launch its kernel, by the name that the C++ ABI gives it, and its instructions with
    whatever was collected of them. None where Nsight Compute's module is not there.
    """
    for folder in itertools.chain.from_iterable(map(glob.glob, PLACES)):
        sys.path.append(folder)
    try:
        import ncu_report
    except ImportError as error:
        print(f"no counts by line: {error}")
        return []
    context = ncu_report.load_report(str(report))
    ranges = map(context.range_by_idx, range(context.num_ranges()))
    actions = [r.action_by_idx(i) for r in ranges for i in range(r.num_actions())]
    return [(action.name(action.NameBase_MANGLED), _instructions(action)) for action in actions]


def _instructions(action: Any) -> list[dict]:
    seen: dict[int, dict] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if not metric.num_instances() or not metric.has_correlation_ids():
            continue
        addresses = metric.correlation_ids()
        for i in range(metric.num_instances()):
            counts = seen.setdefault(addresses.as_uint64(i), {})
            if value := metric.as_double(i):
                counts[name] = value
    code = {address: action.sass_by_pc(address) for address in sorted(seen)}
    start = min((address for address, text in code.items() if text), default=0)
    return [
        {"offset": address - start, "sass": text, **seen[address]}
        for address, text in code.items()
        if text
    ]


def by_line(
    listing: Sequence[sass.Instruction], seen: Sequence[dict]
) -> dict[str, dict[str, dict[str, float]]]:
    """Counts by line and opcode, from those of instructions; lines are those of nvdisasm.

    Raises ValueError where the card had other code.
    """
    code = {instruction.offset: instruction for instruction in listing}
    sums: dict[str, dict[str, dict[str, float]]] = {}
    for counts in seen:
        instruction = code.get(counts["offset"])
        if instruction is None or instruction.opcode != sass.opcode(counts["sass"]):
            raise ValueError(f"{counts['sass']!r} is not {instruction}")
        if not counts.get(LINES["instructions"]):
            continue
        opcodes = sums.setdefault(str(instruction.line), {})
        total = opcodes.setdefault(instruction.opcode, {})
        for ours, theirs in LINES.items():
            if theirs in counts:
                total[ours] = total.get(ours, 0) + counts[theirs]
    return sums


def plain(kernel: str) -> str:
    """A kernel's name without its template's arguments, namespace or parameters."""
    return re.sub(r"^void |\w+::", "", re.split(r"[(<]", kernel)[0]).strip()


def limits(details: str) -> list[str]:
    """What Nsight Compute says of each launch's bottleneck."""
    return [
        row["Rule Description"]
        for row in rows(details)
        if row.get("Rule Name") == "SOLBottleneck" and row.get("Rule Description")
    ]


def counted(options: argparse.Namespace) -> int:
    session = Session(options.logs.resolve(), options.deadline)
    exercises = [catalog.load(id) for id in options.only or KERNELS]
    launches = [
        LaunchOnce(e, catalog.solution_text(e), e.at.bench, session.logs / "programs")
        for e in exercises
    ]
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda p: p.build(session, options.build or "native"), launches))
    if options.build or not all(built):
        return 0 if all(built) else 1
    results = calibrate.provenance()
    del results["sanitizer"]
    wanted = calibrate.known(session, COUNTERS)
    results["kernels"] = {}
    options.count.mkdir(parents=True, exist_ok=True)
    path = options.count / f"{'_'.join(results['gpu'].split()) or 'unknown'}.json"
    for launch in launches:
        results["kernels"][launch.exercise.id] = count(session, launch, wanted)
        path.write_text(calibrate.dump(results) + "\n")  # whatever becomes of the next
    print(path.read_text())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=Path, default=Path("results/profiles"), metavar="FOLDER")
    parser.add_argument("--logs", type=Path, default=Path("build/profiles"))
    parser.add_argument("--deadline", type=float, default=500, help="seconds for everything")
    parser.add_argument("--only", nargs="*", help="some kernels, such as 00_start_here/swish")
    parser.add_argument("--build", metavar="SM", help="only compile, for this architecture")
    return counted(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
