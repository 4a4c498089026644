"""Small faulty kernels of every kind that has a picture, and what their runs report."""

import functools
from dataclasses import dataclass, field

import torch

from utils.cuda.compiler import compile_cuda
from utils.diagrams.parts.scene import Scene
from utils.watch.diagnosis import Diagnosis, diagnose_call
from utils.watch.trace import MOST


@dataclass(frozen=True)
class Faulty:
    """The launcher `run` of a text, called with tensors of these sizes and no other arguments."""

    body: str  # of the kernel; the outputs are `float* out`, the inputs `const float* in`
    launch: str  # what stands between <<< and >>>
    inputs: int = 1
    outputs: int = 1
    more: dict = field(default_factory=dict)

    @property
    def source(self) -> str:
        declared = "float* in, float* out"
        head = self.more.get("head", "")
        return (
            f"{head}__global__ void kernel({declared}) {{\n"
            f"    int t = threadIdx.x;\n{self.body}\n}}\n"
            f"void run({declared}) {{\n    kernel<<<{self.launch}>>>(in, out);\n}}\n"
        )


FAULTY = {
    "shared": Faulty(
        "    __shared__ float s[64];\n    s[t] = in[t];\n    out[t] = s[63 - t];", "1, 64", 64, 64
    ),
    "lanes": Faulty(
        "    __shared__ float s[32];\n    s[t] = in[t];\n    __syncthreads();\n"
        "    s[t] = s[(t + 1) % 32];\n    __syncthreads();\n    out[t] = s[t];",
        "1, 32",
        32,
        32,
    ),
    "sum": Faulty("    *out += in[blockIdx.x * 32 + t];", "3, 32", 96, 1, {"written": True}),
    "atomic": Faulty(
        "    atomicAdd(out, 1.0f);\n    in[t] = *out;", "1, 64", 64, 1, {"written": 1}
    ),
    "neighbours": Faulty(
        "    int i = blockIdx.x * 32 + t;\n    float next = in[i + 1];\n    __syncthreads();\n"
        "    in[i] = next;",
        "2, 32",
        65,
        1,
    ),
    "one writes": Faulty("    *out = t;", "1, 3", 1, 1),
    "far blocks": Faulty(
        "    if (blockIdx.x == 0) out[5] = 1;\n    if (blockIdx.x == 199) out[5] = 2;",
        "200, 1",
        1,
        9,
    ),
    "tree": Faulty(
        "    __shared__ float s[256];\n    s[t] = in[t];\n    __syncthreads();\n"
        "    for (int n = 128; n > 0; n /= 2)\n        if (t < n) s[t] += s[t + n];\n"
        "    __syncthreads();\n    if (t == 0) *out = s[0];",
        "1, 256",
        256,
    ),
    "wide": Faulty(
        "    if (t < 8) ((float4*)out)[t] = make_float4(1, 1, 1, 1);\n"
        "    else if (t < 16) out[t + 1] = 2;",
        "1, 32",
        1,
        64,
    ),
    "dynamic": Faulty(
        "    extern __shared__ float part[];\n    part[t] = in[t];\n    out[t] = part[t ^ 33];",
        "1, 64, 256",
        64,
        64,
    ),
    "device variable": Faulty(
        "    ++counter;", "1, 64", more={"head": "__device__ int counter;\n"}
    ),
    "cube": Faulty(
        "    t += 4 * threadIdx.y + 8 * threadIdx.z;\n    __shared__ float s[16];\n"
        "    s[t] = in[t];\n    out[t] = s[15 - t];",
        "dim3(1, 2, 1), dim3(4, 2, 2)",
        16,
        16,
    ),
    "no guard": Faulty("    out[blockIdx.x * 32 + t] = 1;", "2, 32", 1, 50),
    "before": Faulty("    out[t] = in[t - 1];", "1, 32", 32, 32),
    "far": Faulty("    out[1000000 + t] = 1;", "1, 32", 1, 32),
    "over the end": Faulty("    ((float4*)out)[t] = make_float4(1, 2, 3, 4);", "1, 2", 1, 6),
    "shared row": Faulty(
        "    __shared__ float tile[8][8];\n    tile[7][t] = 1;\n    __syncthreads();\n"
        "    out[t] = tile[7][t % 8];",
        "1, 9",
        1,
        9,
    ),
    "dynamic too small": Faulty(
        "    extern __shared__ float part[];\n    part[t] = 1;\n    __syncthreads();\n"
        "    out[t] = part[t % 32];",
        "1, 64, 128",
        1,
        64,
    ),
    "one element": Faulty("    out[t] = 1;", "1, 2", 1, 1),
    "sum not set": Faulty("    atomicAdd(out, in[blockIdx.x * 32 + t]);", "2, 32", 64, 1),
    "half a tile": Faulty(
        "    __shared__ float s[64];\n    if (t < 40) s[t] = in[t];\n    __syncthreads();\n"
        "    out[t] = s[t];",
        "2, 64",
        64,
        64,
    ),
    "written later": Faulty(
        "    if (t == 0) in[0] = out[7];\n    __syncthreads();\n    out[t] = t;", "1, 32", 1, 32
    ),
    "in a branch": Faulty(
        "    if (t < 40) {\n        __syncthreads();\n    }\n    out[t] = 1;\n    __syncthreads();",
        "1, 64",
        1,
        64,
    ),
    "and left": Faulty(
        "    if (t >= 90) return;\n    if (t % 3)\n        __syncthreads();\n    else\n"
        "        __syncthreads();\n    out[t] = 1;",
        "1, 100",
        1,
        100,
    ),
    "deadlock": Faulty(
        "    t += 16 * threadIdx.y;\n    float v = t;\n"
        "    if (t < 16) v += __shfl_down_sync(0xffffffff, v, 8);\n"
        "    __syncthreads();\n    out[t] = v;",
        "1, dim3(16, 4)",
        1,
        64,
    ),
}


@functools.cache
def diagnosed(name: str) -> tuple[Faulty, Diagnosis]:
    case = FAULTY[name]
    kernel = compile_cuda(case.source, "run", backend="emulator")
    tensors = {"in": torch.ones(case.inputs), "out": torch.zeros(case.outputs)}
    unwritten = () if case.more.get("written") else ("out",)
    return case, diagnose_call(kernel, tensors, unwritten=unwritten, most=MOST)


def faulty_scene(name: str, number: int = 1) -> Scene:
    case, seen = diagnosed(name)
    trace, hazards = seen.trace, seen.hazards
    return Scene("run", trace, case.source, outputs=("out",), hazards=hazards, hazard=number)
