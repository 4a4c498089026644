"""`solutions/models/`: models as files that stand alone, made of the course's kernels.

What they share is in `kernels/models/new/`. Of the five tasks, what belongs to one is a `ModelFile`
here; their kernels are the solutions of chapters 08, 11 and 12 with the headers that these include.
The sixth is made by `attention_file`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.course import attention_file
from utils.course.flat_cuda import Flat, on_the_current_stream, substituted
from utils.course.model_text import part, parts, whole
from utils.course.models import MODELS, Model
from utils.ground.paths import workspace


@dataclass(frozen=True)
class ModelFile:
    """What of a file belongs to its task. Names of `.cu` files are of `kernels/models/new/`."""

    task: int
    backward_reads: str  # what the backward of chapter 12 takes in front of the gradients
    backward_call: str = "backward_call.cu"  # who calls that
    hopper_call: str = "whole_hopper.cu"  # who calls the kernel of chapter 11
    hopper_kernel: str | None = None  # None: it is named for the model
    hopper_launchers: tuple[str, ...] = ()  # functions of chapter 11 that only its launcher calls
    result_shape: str = "M, N"  # of M rows and N channels
    parameter_is_added_to_y: bool = False

    @property
    def model(self) -> Model:
        """The task's model."""
        return next(model for model in MODELS.values() if model.task == self.task)

    @property
    def tail(self) -> str:
        """The name of what follows the linear layer, and of the kernels."""
        return self.model.tail.__name__

    @property
    def whole_kernel(self) -> str:
        """The kernel of the whole forward on Hopper."""
        return self.hopper_kernel or f"linear_{self.tail}_kernel"


FILES = (
    ModelFile(37, backward_reads="y, weight, parameter"),
    ModelFile(62, backward_reads="y, weight, bias"),
    ModelFile(
        75,
        backward_reads="y, weight, argmin.data",
        backward_call="argmin_backward_call.cu",
        hopper_call="row_min_hopper.cu",
        hopper_kernel="row_min_kernel",
        hopper_launchers=("find_keys",),
        result_shape="1, N, M, 1",
    ),
    ModelFile(88, backward_reads="y, weight, bias, parameter"),
    ModelFile(94, backward_reads="y, weight, parameter", parameter_is_added_to_y=True),
)


def texts() -> Iterator[tuple[Path, str]]:
    """Each file of `solutions/models/`, and what should be in it; of the models that are there."""
    yield from of_tasks()
    if attention_file.reference().exists():
        yield attention_file.path(), attention_file.text()


def of_tasks() -> Iterator[tuple[Path, str]]:
    """Those of the five tasks."""
    for file in FILES:
        name = f"models/{file.task}_{file.model.name}.py"
        if (workspace().kernels / name).exists():
            yield workspace().solutions / name, _text(file)


def _text(file: ModelFile) -> str:
    names = f"{file.task}.py", "operator.py", "layers.py", "operators.py", "cards.py", "build.py"
    python = [_settings(file), *map(part, names)]
    return whole(_head(file), _contents(file), python, _sources(file))


def _settings(file: ModelFile) -> str:
    return f'''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NAME = "task_{file.task}"
PARAMETER_IS_ADDED_TO_Y = {file.parameter_is_added_to_y}  # as b is: their gradients are the same


def result_shape(M, N):
    """Of the result, for M rows and N channels."""
    return {file.result_shape}
'''


def _sources(file: ModelFile) -> dict[str, str]:
    """The C++ and CUDA texts, by the names that the file gives them."""
    solutions = workspace().solutions
    flat = Flat((parts(), workspace().include))
    words = _words(file)

    def cuda(name: str) -> str:
        return substituted(flat.file(parts() / name), words)

    kernels = flat.header("scratch.cuh")
    kernels += flat.namespace("forwards", solutions / f"08_fused_tails/{file.tail}.cu")
    kernels += flat.namespace("backwards", solutions / f"12_ship_it/{file.tail}_backward.cu")
    kernels += cuda("calls.cu") + cuda(file.backward_call)
    launcher = f"linear_{file.tail}_hopper"
    on_hopper = flat.header("hopper_epilogue.cuh", without=["linear_bias"])
    on_hopper += flat.namespace(
        "hopper", solutions / f"11_hopper/{launcher}.cu", (*file.hopper_launchers, launcher)
    )
    on_hopper += flat.header("linear_backward.cuh")
    on_hopper += cuda(file.hopper_call) + cuda("products_hopper.cu")
    return {
        "HOST": cuda("tensors.cpp") + cuda("host.cpp"),
        "HOST_HOPPER": cuda("hopper.cpp"),
        "KERNELS": on_the_current_stream(kernels),
        "KERNELS_HOPPER": on_the_current_stream(on_hopper),
    }


def _words(file: ModelFile) -> dict[str, str]:
    """What the names in capitals stand for in the parts that all tasks share."""
    extra = bool(file.model.extra)
    return {
        "TAIL": file.tail,
        "TAIL_READS": "y, weight, bias" + ", parameter" * extra,
        "BACKWARD": f"{file.tail}_backward",
        "BACKWARD_READS": file.backward_reads,
        "BACKWARD_WRITES": "dy, dweight, dbias" + ", dparameter" * extra,
        "WHOLE_KERNEL": file.whole_kernel,
        "RESULT_SHAPE": f"{{{file.result_shape}}}",
    }


def _contents(file: ModelFile) -> dict[str, str]:
    """What a reader may look for: a regular expression of its line, and what is there."""
    return {
        r"class (ModelNew)\(": "the model; `by_layers` is PyTorch's version",
        r"def (call)\(": "its forward: chooses what computes it",
        r"def (run)\(": "forward, as an operator of PyTorch's",
        r"def (run_backward)\(": "backward",
        rf".*\b({file.tail}_kernel)\(const": "forward of what follows the linear layer",
        rf".*\b({file.tail}_backward_kernel)\(const": "backward of it",
        r".*\b(column_sums_kernel)\(const": "gradient of the linear layer's bias",
        rf".*\b({file.whole_kernel})\(const": "forward of the whole, on Hopper",
        r".*\b(product_kernel)\(const": "backward of the linear layer, on Hopper",
        "(HOST) =": "C++: checks tensors, calls the kernels",
        r"def (build)\(": "compiles them for the cards at hand",
    }


def _head(file: ModelFile) -> str:
    tail = file.tail
    title = f"Task {file.task} of KernelBench: a `ModelNew` that trains, by this course's kernels."
    return f'''"""{title}

Made by `workbook sync` of kernels/models/new, of kernels/include and, in solutions/, of
08_fused_tails/{tail}.cu, 12_ship_it/{tail}_backward.cu and
11_hopper/linear_{tail}_hopper.cu. Change those: what is changed here is lost.

On Hopper the linear layer is split into halves and multiplied by tensor cores, as exact as fp32,
and all that follows happens in registers. A row of x or W with outliers, more than 2^15 times what
is usual in it, is multiplied in floats: as exact, and far slower. On other cards, and for groups of
other sizes, PyTorch multiplies. The model takes and returns float32, also under autocast, and has
first derivatives only. Layers that have hooks, or that have been replaced, are called, not fused.
'''
