"""`solutions/models/attention.py`: self-attention as a file that stands alone, by worked kernels.

The linear layers are those of the other files, by themselves; attention is chapter 14's.
"""

from pathlib import Path

from utils.course.flat_cuda import Flat, on_the_current_stream
from utils.course.model_text import part, parts, whole
from utils.ground.paths import workspace

NAMES = "model.py", "operator.py", "layers.py", "operators.py", "cards.py", "build.py"


def reference() -> Path:
    """The file that has its Model."""
    return workspace().kernels / "models/attention.py"


def path() -> Path:
    """Where the file is."""
    return workspace().solutions / "models/attention.py"


def text() -> str:
    """What should be in it."""
    shared = "layers.py", "cards.py"
    names = [name if name in shared else f"attention/{name}" for name in NAMES]
    return whole(_HEAD, _CONTENTS, [_IMPORTS + _model(), *map(part, names)], _sources())


def _model() -> str:
    """Model, and what goes into it, without what only a judge asks for."""
    _, start, rest = reference().read_text().partition("class Model(")
    return start + rest.partition("\n\n\n# Other sizes")[0] + "\n"


def _sources() -> dict[str, str]:
    """The C++ and CUDA texts. Attention comes first: its names are hidden from nobody then."""
    folder = workspace().kernels / "14_attention"
    flat = Flat((parts(), workspace().include))
    kernels = flat.header("scratch.cuh")
    kernels += flat.namespace("forwards", folder / "flash_attention_forward.cu")
    kernels += flat.namespace("backwards", folder / "flash_attention_backward.cu")
    kernels += flat.header("hopper_epilogue.cuh", without=["linear_bias"])
    kernels += flat.header("linear_backward.cuh")
    kernels += flat.header("column_sums.cuh")
    kernels += flat.file(parts() / "attention/calls.cu")
    kernels += flat.file(parts() / "products_hopper.cu")
    host = flat.file(parts() / "tensors.cpp") + flat.file(parts() / "attention/host.cpp")
    return {
        "HOST": host,
        "KERNELS": on_the_current_stream(kernels),
    }


_IMPORTS = """
import warnings

import torch
from torch import Tensor, nn
from torch.utils.cpp_extension import load_inline

NAME = "self_attention"


"""
# What a reader may look for.
_CONTENTS = {
    r"class (Model)\(": "self-attention by PyTorch",
    r"class (ModelNew)\(": "the same by the kernels",
    r"def (run_linear)\(": "forward of a projection, as an operator of PyTorch's",
    r"def (run_linear_backward)\(": "backward of it",
    r"def (run_attention)\(": "forward of attention, as an operator of PyTorch's",
    r"def (run_attention_backward)\(": "backward of it",
    "(HOST) =": "C++: checks tensors, calls the kernels",
    r".*\b(attention_forward_kernel)\(const": "attention, forward",
    r".*\b(attention_backward_kernel)\(const": "attention, backward: one of dq, dk and dv",
    r".*\b(linear_bias_kernel)\(const": "a projection, forward",
    r".*\b(product_kernel)\(const": "a projection, backward: dx or dW",
    r".*\b(column_sums_kernel)\(const": "a projection, backward: the gradient of its bias",
    r"def (build)\(": "compiles them for Hopper",
}
_HEAD = '''"""Self-attention in KernelBench's format: `ModelNew` trains, by kernels of this course.

Made by `workbook sync` of kernels/models/attention.py, of kernels/models/new, of kernels/include
and, in kernels/14_attention/, of flash_attention_forward.cu and flash_attention_backward.cu.
Change those: what is changed here is lost.

Every product is three products of halves on Hopper's tensor cores, as exact as fp32: those of both
projections, forward and backward, and those of attention, whose scores never reach memory. A row of
x or of a projection's weight with outliers, more than 2^15 times what is usual in it, is multiplied
in floats. Attention has no such way: where a row of q, k or v has that range, what needs it is NaN.

Heads have up to 128 columns; 64 and 128 cost nothing extra, others are filled with zeros. Wider
heads are PyTorch's, as is everything where other cards than Hopper are, or none; a warning says
so. The model takes and returns float32, also under autocast, and has first derivatives only.
Layers that have hooks, or that have been replaced, are called, and attention is still ours.
'''
