"""A program that launches a course's kernel once, for tools that look at programs from outside.

compute-sanitizer and Nsight Compute watch a whole process: this one allocates every array with its
exact size, fills the inputs, calls the launcher and stores the first output. It is the kernel's own
text with a main behind it, so that lines keep their numbers.
"""

from pathlib import Path

import torch
from torch import Generator

from utils.course import cases
from utils.course.exercise import Exercise, Sizes, dimensions
from utils.cuda.compiler import NVCC_FLAGS
from utils.cuda.signature import Parameter, parse_launcher
from utils.ground.paths import workspace
from utils.judge.oracle import evaluate

MAIN = """
// A launch of {name}: argv[1] holds its inputs, argv[2] gets its first output.
#include <cstdio>
#include <cstdlib>

namespace launch_once {{
static void must(cudaError_t error) {{
    if (error == cudaSuccess) return;
    printf("%s: %s\\n", cudaGetErrorName(error), cudaGetErrorString(error));
    exit(1);
}}

template <class T> static T* array(size_t bytes, FILE* from) {{
    T* there;
    must(cudaMalloc(&there, bytes));
    if (!from) return there;
    void* here = malloc(bytes);
    if (fread(here, 1, bytes, from) != bytes) exit(2);
    must(cudaMemcpy(there, here, bytes, cudaMemcpyHostToDevice));
    free(here);
    return there;
}}

static void store(const void* there, size_t bytes, FILE* to) {{
    void* here = malloc(bytes);
    must(cudaMemcpy(here, there, bytes, cudaMemcpyDeviceToHost));
    if (fwrite(here, 1, bytes, to) != bytes) exit(2);
    free(here);
}}
}}  // namespace launch_once

int main(int, char** argv) {{
    FILE *in_file = fopen(argv[1], "rb"), *out_file = fopen(argv[2], "wb");
{arrays}
    {name}({arguments});
    launch_once::must(cudaGetLastError());
    launch_once::must(cudaDeviceSynchronize());
    launch_once::store({output}, {size}, out_file);
    fclose(out_file);
    cudaDeviceReset();
}}
"""


class LaunchOnce:
    """Such a program: its folder, its text, the values that it gets."""

    def __init__(self, exercise: Exercise, text: str, sizes: Sizes, folder: Path, kind: str = ""):
        """Writes the program's source and inputs. `kind`: of values; else the usual ones."""
        self.exercise, self.text, self.sizes = exercise, text, dict(sizes)
        self.folder = folder / exercise.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.parameters = parse_launcher(text, exercise.name)
        self.dtypes = {p.name: p.dtype for p in self.parameters if p.dtype is not None}
        generator = Generator().manual_seed(0)
        kind = kind or cases.usual(exercise)
        self.case = cases.sample(exercise, self.sizes, kind, generator, self.dtypes)
        self.source = self.folder / f"{exercise.name}.cu"
        self.source.write_text(text + self._main())
        with (self.folder / "inputs").open("wb") as file:
            for parameter in self.parameters:
                if parameter.name in self.case.tensors:
                    file.write(self.case.tensors[parameter.name].contiguous().numpy().data)

    @property
    def program(self) -> Path:
        """The executable, once it is built."""
        return self.folder / "program"

    @property
    def command(self) -> list[str]:
        """Runs it."""
        return [str(self.program), str(self.folder / "inputs"), str(self.folder / "outputs")]

    def build_command(self, architecture: str) -> list[str]:
        """Builds it, in its folder."""
        command = ["nvcc", *NVCC_FLAGS, f"-arch={architecture}", f"-I{workspace().include}"]
        return [*command, self.source.name, "-o", self.program.name]

    def wrong(self) -> tuple[int, int]:
        """How many values of the output that it stored are wrong, of how many."""
        expected = next(iter(evaluate(self.exercise, self.case, torch.float64, "cpu").values()))
        path = self.folder / "outputs"
        data = bytearray(path.read_bytes() if path.is_file() else b"")
        if not data:  # it did not come that far
            return expected.numel(), expected.numel()
        stored = torch.frombuffer(data, dtype=self.dtypes[self.exercise.outputs[0]])
        close = torch.isclose(
            stored.double(), expected.flatten().double(), rtol=1e-4, atol=1e-5, equal_nan=True
        )
        return int((~close).sum()), stored.numel()

    def _main(self) -> str:
        tensors = [p for p in self.parameters if p.dtype is not None]
        output = self.exercise.outputs[0]
        return MAIN.format(
            name=self.exercise.name,
            arrays="\n".join(map(self._array, tensors)),
            arguments=", ".join(map(self._argument, self.parameters)),
            output=output,
            size=self._bytes(self._of(output)),
        )

    def _of(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    def _array(self, parameter: Parameter) -> str:
        element = parameter.ctype.replace("const", "").replace("*", "").strip()
        source = "in_file" if parameter.name in self.case.tensors else "nullptr"
        name, size = parameter.name, self._bytes(parameter)
        return f"    {element}* {name} = launch_once::array<{element}>({size}, {source});"

    def _bytes(self, parameter: Parameter) -> int:
        shape = dimensions(self.exercise.shapes[parameter.name], self.sizes)
        return torch.Size(shape).numel() * self.dtypes[parameter.name].itemsize

    def _argument(self, parameter: Parameter) -> str:
        if parameter.dtype is not None:
            return parameter.name
        if parameter.is_stream:
            return "0"
        return f"({parameter.ctype}){self.case.values[parameter.name]!r}"
