"""What compute-sanitizer's four tools say of chapter 05's twelve broken kernels, on this GPU.

    python3 benchmarks/sanitize_faults.py results/sanitizers [--logs FOLDER]

Writes <GPU>.json. Builds each kernel as it is handed out with nvcc, in a program of its own that
allocates every array with its exact size and launches once, and runs it alone and under each tool.
Takes two minutes. Without a GPU, `--build sm_90a` says whether the programs compile.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import calibrate
from utils.course import catalog
from utils.course.exercise import Exercise
from utils.timing.launch_once import LaunchOnce

TOOLS = "memcheck", "racecheck", "initcheck", "synccheck"
CASE = 3  # which sizes of `check`: all kernels whose values are wrong are wrong there,
VALUES = {"group_variance": "shifted"}  # with the usual values or these
PRINT = ["--print-limit", "100000"]  # every thread may have something to say


class Fault(LaunchOnce):
    """A broken kernel in a program of its own."""

    def __init__(self, exercise: Exercise, folder: Path):
        text, sizes = catalog.starter_text(exercise), exercise.at.check[CASE]
        super().__init__(exercise, text, sizes, folder, VALUES.get(exercise.name, ""))

    def alone(self, session: calibrate.Session) -> str:
        """What becomes of it without a tool."""
        session.run(f"alone {self.exercise.name}", self.command, 30)
        wrong, of = self.wrong()
        return f"{wrong} of {of} values wrong"

    def said(self, session: calibrate.Session, tool: str) -> list[dict]:
        """What a tool finds."""
        command = ["compute-sanitizer", "--tool", tool, *PRINT, *self.command]
        text = session.run(f"{tool} {self.exercise.name}", command, 60)
        return findings(text)


def findings(text: str) -> list[dict]:
    """calibrate.findings, held to the tool's own count: what it cannot read is not lost."""
    matches = calibrate.findings(text)
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) [^\n]*", text)
    if not summary:
        return [{"kind": "no summary", "said": text.strip()[-300:], "count": 0}]
    if (int(summary[1]) == 0) != (not matches):
        return [{"kind": "not understood", "said": text.strip()[:600], "count": int(summary[1])}]
    return matches


def emulated(fault: Fault) -> list[tuple[str, int]]:
    """What the emulator says of the same program: each kind of hazard, with its line."""
    from utils.emulator.hazards import HAZARDS
    from utils.emulator.programs import Watch, build_program, diagnose_program

    watch = Watch(json=fault.folder / "diagnosis.json")
    program = build_program(fault.source, watch=watch)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        diagnose_program(program, watch, fault.command[1:], 30)
    assert watch.json
    hazards = json.loads(watch.json.read_text())["hazards"]
    return [(HAZARDS[hazard["kind"]].words, hazard["line"]) for hazard in hazards]


def table(stored: dict, folder: Path) -> str:
    """Markdown: a row for each fault with its values, what each tool says and what the emulator
    does. Lines are those of the cell, whose first is `%%cuda`."""
    tools = [tool.replace("check", "<wbr>check") for tool in TOOLS]  # for narrow windows
    rows = [["", "wrong values", *tools, "diag<wbr>nose"], ["---"] * (len(TOOLS) + 3)]
    for name, seen in stored["faults"].items():
        said = [
            [(short(f["kind"]), f[line]) for f in seen[tool] for line in LINES if line in f]
            for tool in TOOLS
        ]
        said.append(emulated(Fault(catalog.topic("05_debugging")[name], folder)))
        wrong = seen["alone"].removesuffix(" values wrong")
        rows.append([seen["number"], wrong, *map(_cell, said)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def caption(stored: dict) -> str:
    """Of the table: what was measured, where and when."""
    return (
        f"compute-sanitizer {stored['sanitizer']} on an {stored['gpu']}, {stored['date']}. Each "
        "kernel was launched once, as it is handed out, at a small size such as 2 × 100. Lines are "
        "those of the cell."
    )


LINES = "line", "other_line"  # of a finding


def _cell(said: list[tuple[str, int]]) -> str:
    """Each thing once, with its lines."""
    lines: dict[str, set[int]] = {}
    for what, line in said:
        lines.setdefault(what, set()).add(line + 1)
    return "; ".join(f"{what}, {_lines(sorted(numbers))}" for what, numbers in lines.items()) or "–"


def _lines(numbers: list[int]) -> str:
    return f"line{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"


SHORT = {  # compute-sanitizer's words, and those of the table
    r"Invalid __(\w+)__ (\w+) .*out of bounds": r"\2 out of bounds",
    r"Uninitialized __(\w+)__ memory read.*": r"read of \1 memory that nobody has written",
    r"Barrier error detected\. Divergent thread\(s\) in (\w+)\.?": r"threads diverge in \1",
}


def short(kind: str) -> str:
    """What a tool says, in fewer words."""
    for pattern, words in SHORT.items():
        if match := re.fullmatch(pattern, kind):
            return match.expand(words)
    return kind


def build(session: calibrate.Session, program: LaunchOnce, architecture: str | None) -> bool:
    """Whether nvcc makes one of its text."""
    command = program.build_command(architecture or "native")
    session.run(f"nvcc {program.exercise.name}", command, 120, cwd=program.folder)
    return program.program.is_file()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write <GPU>.json")
    parser.add_argument("--table", action="store_true", help="print the newest file as a table")
    parser.add_argument("--logs", type=Path, default=Path("build/sanitizers"))
    parser.add_argument("--deadline", type=float, default=300, help="seconds for everything")
    parser.add_argument("--build", metavar="SM", help="only compile, for this architecture")
    options = parser.parse_args()
    session = calibrate.Session(options.logs.resolve(), options.deadline)
    if options.table:
        files = map(json.loads, map(Path.read_text, options.folder.glob("*.json")))
        print(table(max(files, key=lambda file: file["date"]), session.logs))
        return 0
    broken = [e for e in catalog.topic("05_debugging").values() if e.faulty]
    faults = [Fault(exercise, session.logs) for exercise in broken]
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda fault: build(session, fault, options.build), faults))
        if options.build or not all(built):
            return 0 if all(built) else 1
        results = calibrate.provenance()
        del results["ncu"]
        runs = [(fault, tool) for fault in faults for tool in TOOLS]
        answers = iter(list(pool.map(lambda run: run[0].said(session, run[1]), runs)))
    results["faults"] = {
        fault.exercise.name: {
            "number": fault.exercise.number,
            "sizes": fault.sizes,
            "alone": fault.alone(session),
            **{tool: next(answers) for tool in TOOLS},
        }
        for fault in faults
    }
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"{'_'.join(results['gpu'].split()) or 'unknown'}.json"
    path.write_text(calibrate.dump(results) + "\n")
    print(path.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
