"""CUDA text in, a Python callable out, which runs in a process apart. Knows no exercise."""

import importlib

_HOMES = {"compile_cuda": "utils.cuda.compiler", "Kernel": "utils.cuda.kernel"}
__all__ = [*_HOMES, "INCLUDE"]


def __getattr__(name: str) -> object:
    if name == "INCLUDE":  # the folder of headers that every cell may include
        return importlib.import_module("utils.ground.paths").workspace().include
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'utils.cuda' has no attribute '{name}'")
