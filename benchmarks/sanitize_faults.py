"""What compute-sanitizer's four tools say of chapter 05's twelve broken kernels, on this GPU.

    python3 benchmarks/sanitize_faults.py results/sanitizers.json [--logs FOLDER]

Builds each kernel as it is handed out with nvcc, in a program of its own that allocates every array
with its exact size and launches once, and runs it alone and under each tool. Takes two minutes.
Without a GPU, `--build sm_90a` says whether the programs compile.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Generator, Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import calibrate
from utils.course import cases, catalog
from utils.course.exercise import Exercise, dimensions
from utils.cuda.compiler import NVCC_FLAGS
from utils.cuda.signature import Parameter, parse_launcher
from utils.judge.oracle import evaluate

TOOLS = "memcheck", "racecheck", "initcheck", "synccheck"
CASE = 3  # which sizes of `check`: all kernels whose values are wrong are wrong there,
VALUES = {"group_variance": "shifted"}  # with the usual values or these
PRINT = ["--print-limit", "100000"]  # every thread may have something to say

# It follows the kernel's own text, whose lines so keep their numbers.
PROGRAM = """
// A launch of {name}: argv[1] holds its inputs, argv[2] gets its output.
#include <cstdio>
#include <cstdlib>

static void must(cudaError_t error) {{
    if (error == cudaSuccess) return;
    printf("%s: %s\\n", cudaGetErrorName(error), cudaGetErrorString(error));
    exit(1);
}}

static float* array(size_t bytes, FILE* from) {{
    float* there;
    must(cudaMalloc(&there, bytes));
    if (!from) return there;
    void* here = malloc(bytes);
    if (fread(here, 1, bytes, from) != bytes) exit(2);
    must(cudaMemcpy(there, here, bytes, cudaMemcpyHostToDevice));
    free(here);
    return there;
}}

static void store(const float* there, size_t bytes, FILE* to) {{
    void* here = malloc(bytes);
    must(cudaMemcpy(here, there, bytes, cudaMemcpyDeviceToHost));
    if (fwrite(here, 1, bytes, to) != bytes) exit(2);
    free(here);
}}

int main(int, char** argv) {{
    FILE *from = fopen(argv[1], "rb"), *to = fopen(argv[2], "wb");
{arrays}
    {name}({arguments});
    must(cudaGetLastError());
    must(cudaDeviceSynchronize());
{stores}
    fclose(to);
    cudaDeviceReset();
}}
"""


def program(exercise: Exercise, parameters: Sequence[Parameter], sizes: dict[str, int]) -> str:
    """What makes a program of a kernel: it launches once, on arrays of exactly their size."""
    arrays, stores = [], []
    for name in (p.name for p in parameters if p.dtype is not None):
        count = 4 * torch.Size(dimensions(exercise.shapes[name], sizes)).numel()
        from_file = "nullptr" if name in exercise.outputs else "from"
        arrays.append(f"    float* {name} = array({count}, {from_file});")
        if name in exercise.outputs:
            stores.append(f"    store({name}, {count}, to);")
    arguments = ", ".join(p.name if p.dtype is not None else str(sizes[p.name]) for p in parameters)
    return PROGRAM.format(
        name=exercise.name,
        arrays="\n".join(arrays),
        stores="\n".join(stores),
        arguments=arguments,
    )


class Fault:
    """A broken kernel, its program, and the values that it gets."""

    def __init__(self, exercise: Exercise, folder: Path):
        self.exercise, self.folder = exercise, folder / exercise.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sizes = dict(exercise.at.check[CASE])
        text = catalog.starter_text(exercise)
        self.parameters = parse_launcher(text, exercise.name)
        self.source = self.folder / f"{exercise.name}.cu"
        self.source.write_text(text + program(exercise, self.parameters, self.sizes))
        kind = VALUES.get(exercise.name) or cases.usual(exercise)
        self.case = cases.sample(exercise, self.sizes, kind, Generator().manual_seed(0))
        inputs = [self.case.tensors[p.name] for p in self.parameters if p.name in self.case.tensors]
        (self.folder / "inputs").write_bytes(b"".join(t.numpy().tobytes() for t in inputs))

    @property
    def program(self) -> Path:
        return self.folder / "program"

    @property
    def command(self) -> list[str]:
        return [str(self.program), str(self.folder / "inputs"), str(self.folder / "outputs")]

    def build(self, session: calibrate.Session, architecture: str) -> bool:
        """Whether nvcc makes a program of it."""
        command = ["nvcc", *NVCC_FLAGS, f"-arch={architecture}", self.source.name, "-o", "program"]
        session.run(f"nvcc {self.exercise.name}", command, 120, cwd=self.folder)
        return self.program.is_file()

    def wrong(self, session: calibrate.Session) -> str:
        """What becomes of it without a tool."""
        text = session.run(f"alone {self.exercise.name}", self.command, 30)
        path = self.folder / "outputs"
        data = path.read_bytes() if path.is_file() else b""
        (expected,) = evaluate(self.exercise, self.case, torch.float64, "cpu").values()
        if len(data) != 4 * expected.numel():
            return text.strip() or "does not end"
        got = torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(expected.shape)
        return f"{count_wrong(got, expected)} of {got.numel()} values wrong"

    def said(self, session: calibrate.Session, tool: str) -> list[dict]:
        """What a tool finds."""
        command = ["compute-sanitizer", "--tool", tool, *PRINT, *self.command]
        text = session.run(f"{tool} {self.exercise.name}", command, 60)
        return findings(text)


def count_wrong(got: Tensor, expected: Tensor) -> int:
    close = torch.isclose(got.double(), expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    return int((~close).sum())


def findings(text: str) -> list[dict]:
    """calibrate.findings, held to the tool's own count: what it cannot read is not lost."""
    matches = calibrate.findings(text)
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) [^\n]*", text)
    if not summary:
        return [{"kind": "no summary", "said": text.strip()[-300:], "count": 0}]
    if (int(summary[1]) == 0) != (not matches):
        return [{"kind": "not understood", "said": text.strip()[:600], "count": int(summary[1])}]
    return matches


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path, help="the JSON to write")
    parser.add_argument("--logs", type=Path, default=Path("build/sanitizers"))
    parser.add_argument("--deadline", type=float, default=300, help="seconds for everything")
    parser.add_argument("--build", metavar="SM", help="only compile, for this architecture")
    options = parser.parse_args()
    session = calibrate.Session(options.logs.resolve(), options.deadline)
    broken = [e for e in catalog.topic("05_debugging").values() if e.faulty]
    faults = [Fault(exercise, session.logs) for exercise in broken]
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda f: f.build(session, options.build or "native"), faults))
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
            "alone": fault.wrong(session),
            **{tool: next(answers) for tool in TOOLS},
        }
        for fault in faults
    }
    options.path.write_text(calibrate.dump(results) + "\n")
    print(options.path.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
