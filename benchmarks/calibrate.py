"""What NVIDIA's own tools say about the calibration programs, on the GPU of this machine.

    python3 benchmarks/calibrate.py results/calibration [--logs FOLDER]

Builds tests/calibration/*.cu with nvcc, runs them under Nsight Compute and compute-sanitizer, and
writes FOLDER/<GPU>.json. tests/test_calibration.py holds the emulator to these figures.
Needs nothing but Python, nvcc, ncu and compute-sanitizer; takes about three minutes.
"""

import argparse
import csv
import io
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/calibration"

# Program and arguments; each launches its kernels once, in order.
COUNTED = ("global_access", "shared_access", "atomics", "control_flow", "algorithms", "ladder 64")
TIMED = ("ladder", "timed")
# compute-sanitizer's tools. A program that takes a kernel's name runs once for each.
SANITIZED = {
    "racecheck": ("races", "shared_access", "atomics", "control_flow", "algorithms", "ladder 64"),
    "memcheck": ("out_of_bounds",),
    "initcheck": ("out_of_bounds",),
    "synccheck": ("barriers", "shared_access", "algorithms"),
}

_ACCESSES = {"load": "ld", "store": "st", "atomic": "atom"}


def _each(name: str, metric: str) -> dict[str, str]:
    return {name.format(ours): metric.format(theirs) for ours, theirs in _ACCESSES.items()}


COUNTERS = {  # our name: Nsight Compute's
    **_each("global_{}_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
    **_each("global_{}_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
    "global_reduction_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "global_reduction_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    **_each("shared_{}_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
    **_each("shared_{}_bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"),
    "shared_load_requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_store_requests": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared_atomic_requests": "smsp__inst_executed_op_shared_atom.sum",
    "global_load_instructions": "smsp__sass_inst_executed_op_global_ld.sum",
    "global_store_instructions": "smsp__sass_inst_executed_op_global_st.sum",
    "instructions": "smsp__inst_executed.sum",
    "l1_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "cycles": "sm__cycles_elapsed.max",
    "nanoseconds": "gpu__time_duration.sum",
    "registers": "launch__registers_per_thread",
}  # fmt: skip
RATES = {  # where the time of a large launch goes
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_load_sectors": "lts__t_sectors_op_read.sum",
    "l1_requests": "l1tex__lsuin_requests.sum",
    "l1_hit_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "issue_active_share": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1_throughput_share": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l1_data_share": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "lsu_input_share": "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "tag_requests": "l1tex__t_requests_pipe_lsu.sum",
    "tag_output_wavefronts": "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum",
    "writeback_active_share": "l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed",
    "l2_share": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_share": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_clock": "sm__cycles_elapsed.avg.per_second",
    "warps_active": "sm__warps_active.avg.per_cycle_active",
    "lsu_instructions": "sm__inst_executed_pipe_lsu.sum",
    "fma_instructions": "sm__inst_executed_pipe_fma.sum",
    "alu_instructions": "sm__inst_executed_pipe_alu.sum",
    "xu_instructions": "sm__inst_executed_pipe_xu.sum",
    **{
        f"stall_{name}": f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio"
        for name in (
            *("lg_throttle", "mio_throttle", "long_scoreboard", "short_scoreboard", "barrier"),
            *("wait", "not_selected", "math_pipe_throttle", "no_instruction", "dispatch_stall"),
        )
    },
}  # fmt: skip


class Session:
    """Runs commands with a time limit each and one for all, and keeps their output."""

    def __init__(self, logs: Path, deadline: float):
        self.logs, self.end = logs, time.monotonic() + deadline
        logs.mkdir(parents=True, exist_ok=True)

    def run(self, name: str, command: list[str], limit: float, **kw) -> str:
        """Output and errors of a command; empty where it did not finish in time."""
        limit = min(limit, self.end - time.monotonic())
        if limit <= 0:
            print(f"{name}: skipped, no time left", flush=True)
            return ""
        start = time.monotonic()
        path = self.logs / f"{re.sub('[^a-z0-9_]+', '-', name)}.log"
        # Into a file: a pipe would wait for whatever a killed profiler leaves behind.
        with path.open("w") as log:
            command = ["timeout", "-k", "2", f"{limit:.0f}", *command]
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, **kw)
        text = path.read_text(errors="replace")
        took = time.monotonic() - start
        print(f"{name}: status {done.returncode}, {took:.1f} s", flush=True)
        return "" if done.returncode in (124, 137) else text


def build(session: Session, folder: Path) -> None:
    """Executables of all programs, those that compile."""

    def one(source: Path) -> None:
        command = ["nvcc", "-std=c++17", "-O3", "-lineinfo", "-arch=native", source.name]
        session.run(
            f"nvcc {source.stem}", [*command, "-o", str(folder / source.stem)], 90, cwd=PROGRAMS
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, sorted(PROGRAMS.glob("*.cu"))))


def known(session: Session, counters: dict[str, str]) -> dict[str, str]:
    """Those counters that this Nsight Compute has for this GPU; all where it does not say."""
    text = session.run("ncu metrics", ["ncu", "--query-metrics"], 60)
    names = set(re.findall(r"^(\w+__\w+)", text, re.MULTILINE))
    if len(names) < 100:
        return counters
    launch = {n: m for n, m in counters.items() if m.startswith("launch__")}
    have = {n: m for n, m in counters.items() if m.partition(".")[0] in names} | launch
    for name in counters.keys() - have.keys():
        print(f"no counter {counters[name]}")
    return have


def count(session: Session, folder: Path, program: str, counters: dict[str, str], limit=60) -> dict:
    """The counters of every kernel of a program, by its name."""
    name, *args = program.split()
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(counters.values()), str(folder / name), *args]
    text = session.run(f"ncu {program}", command, limit)
    table = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(table))))
    kernels = {}
    for row in rows[1:]:  # the first holds the units
        kernel = re.sub(r"^void |\w+::", "", row["Kernel Name"].partition("(")[0])
        kernels[kernel] = {
            ours: _number(row[theirs]) for ours, theirs in counters.items() if row.get(theirs)
        }
    return kernels


def _number(text: str) -> float | int | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def cases(program: str) -> list[str]:
    """The names that a program takes as its argument; none if it runs all of its kernels."""
    source = (PROGRAMS / f"{program.split()[0]}.cu").read_text()
    return re.findall(r'\bis\("(\w+)"\)', source)


def sanitize(session: Session, folder: Path, tool: str, program: str) -> list[dict]:
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000"]
    name, *args = program.split()
    text = session.run(f"{tool} {program}", [*command, str(folder / name), *args], 40)
    return findings(text)


_PLACE = r"(?:void )?(?:\w+::)*(\w+)(?:<[^>]*>)?\(.*?\)\+0x[0-9a-f]+(?: in \S*?:(\d+))?"
_ACCESS = rf"(\w+) access at {_PLACE}(?: \[(\d+) hazards\])?"
_OTHERS = "Invalid|Uninitialized|Barrier error"


def findings(text: str) -> list[dict]:
    """What compute-sanitizer says, each finding once, with its lines and how often it was made."""
    reports: dict[tuple, dict] = {}

    def add(count: int, **what) -> None:
        reports.setdefault(tuple(what.values()), {**what, "count": 0})["count"] += count

    for part in re.sub("^=========", "", text, flags=re.MULTILINE).split("\n \n"):
        sides = re.findall(rf"(?:between|and) {_ACCESS}", part)
        for access, _, line, count in sides[1:]:
            kind, kernel, first = "race", sides[0][1], int(sides[0][2] or 0)
            add(int(count), kind=kind, kernel=kernel, access=sides[0][0], line=first,
                other_access=access, other_line=int(line or 0))  # fmt: skip
        if not sides and (said := re.search(rf"((?:{_OTHERS})[^\n]*)\n +at {_PLACE}", part)):
            # Where it was in a function of CUDA's, the frame around it is the kernel's.
            caller = re.search(rf"Device Frame: {_PLACE}", part)
            kernel, line = (caller or said).groups()[-2:]
            why = re.search(r"Access to 0x\w+ (is \w[\w ]*)", part)
            kind = said[1].strip() + (f", which {why[1]}" if why else "")
            add(1, kind=kind, kernel=kernel, line=int(line or 0))
    return list(reports.values())


def provenance() -> dict[str, str]:
    def ask(*command: str) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
            return done.stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""

    query = ["nvidia-smi", "--format=csv,noheader"]
    version = re.compile(r"[Vv]ersion ([\d.]+)")
    return {
        "gpu": ask(*query, "--query-gpu=name").partition("\n")[0],
        "driver": ask(*query, "--query-gpu=driver_version").partition("\n")[0],
        "cuda": (re.findall(r"release ([\d.]+)", ask("nvcc", "--version")) or [""])[0],
        "ncu": (version.findall(ask("ncu", "--version")) or [""])[0],
        "sanitizer": (version.findall(ask("compute-sanitizer", "--version")) or [""])[0],
        "date": date.today().isoformat(),
    }


def dump(results: dict) -> str:
    """JSON with one line for each kernel and each finding."""
    text = json.dumps(results, indent=1)
    return re.sub(r"\{[^{}]*\}", lambda inner: re.sub(r"\s+", " ", inner[0]), text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write <GPU>.json")
    parser.add_argument("--logs", type=Path, default=Path("build/calibration"))
    parser.add_argument("--deadline", type=float, default=240, help="seconds for everything")
    options = parser.parse_args()
    session = Session(options.logs.resolve(), options.deadline)
    folder = session.logs / "programs"
    folder.mkdir(exist_ok=True)
    results = provenance()
    build(session, folder)
    with ThreadPoolExecutor(4) as pool:
        runs = [
            (tool, program, f"{program} {case}".strip())
            for tool, programs in SANITIZED.items()
            for program in programs
            for case in cases(program) or [""]
        ]
        results["findings"] = {tool: {} for tool in SANITIZED}
        answers = pool.map(lambda run: sanitize(session, folder, run[0], run[2]), runs)
        for (tool, _, case), answer in zip(runs, answers, strict=True):
            results["findings"][tool][case] = answer
    counters, rates = known(session, COUNTERS), known(session, RATES)
    results["kernels"] = {p: count(session, folder, p, counters) for p in COUNTED}
    results["timed"] = {p: count(session, folder, p, counters | rates, 100) for p in TIMED}
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"{'_'.join(results['gpu'].split()) or 'unknown'}.json"
    path.write_text(dump(results) + "\n")
    print(f"{path}: {sum(map(len, results['kernels'].values()))} kernels counted")
    return 0 if all(results["kernels"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
