"""Processes for model files, whose builds this machine's compilers make on this side."""

from pathlib import Path

from utils.cuda import model_build, model_nvcc
from utils.process.box import Box, Unboxed, Wanted


def boxed(backend: str = "emulator", capability: tuple[int, int] = (8, 0)) -> Box:
    """A box for a stranger's files. Close it. Raises ToolError where there is none."""
    return Box(_build, _device, backend, capability)


def capability_for(text: str) -> tuple[int, int]:
    """That of the card which a file is judged on where there is none: Hopper's, if it names it."""
    return (9, 0) if "sm_90a" in text else (8, 0)


def unboxed(backend: str = "emulator") -> Unboxed:
    """The same for a text of the workbook's own, such as a peer's."""
    return Unboxed(_build, _device, backend)


def _device(backend: str) -> Path | None:
    """Raises ToolError."""
    return model_build.device() if backend == "emulator" else None


def _build(backend: str, wanted: Wanted) -> Path:
    """Raises CompileError, KernelTimeout and ToolError."""
    texts = wanted.cpp, wanted.cuda, wanted.functions, wanted.module
    if backend == "emulator":
        return model_build.library(*texts, *wanted.flags)
    return model_nvcc.library(*texts, wanted.bare, *wanted.flags)
