"""`workbook doctor`: what this machine has, and what to install."""

import importlib.metadata
import shutil
import subprocess
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from utils.errors import WorkbookError


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `found` is "" where it is missing; `advice` says what to do then."""

    what: str
    found: str
    needed: bool = False
    advice: str = ""


def _first_line(*command: str) -> str:
    """The first line a program prints; "" where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else ""


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpu() -> Finding:
    query = "--query-gpu=name,driver_version,compute_cap"
    found = _first_line("nvidia-smi", query, "--format=csv,noheader")
    if not found:
        return Finding("GPU", "", advice="none: kernels run on the CPU, timings are stored ones")
    name, driver, capability = (part.strip() for part in found.split(","))
    return Finding("GPU", f"{name}, driver {driver}, sm_{capability.replace('.', '')}")


def _torch() -> Finding:
    try:
        import torch
    except ImportError as error:
        return Finding("torch", "", True, f"pip install torch ({error})")
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU"
    return Finding("torch", f"{torch.__version__}, {build}")


def _backend() -> Finding:
    from utils import compiling

    try:
        return Finding("backend", compiling.default_backend())
    except WorkbookError as error:
        return Finding("backend", "", True, str(error))


def examine() -> list[Finding]:
    """Look at everything that the workbook uses."""
    python = ".".join(map(str, sys.version_info[:3]))
    compiler = _first_line("g++", "--version") or _first_line("clang++", "--version")
    gpu = _gpu()
    nvcc = _nvcc()
    return [
        Finding("Python", python if sys.version_info >= (3, 11) else "", True, "3.11 or newer"),
        _torch(),
        Finding("C++ compiler", compiler, True, "apt install g++, dnf install gcc-c++"),
        Finding("ninja", _package("ninja"), True, "pip install ninja"),
        Finding("JupyterLab", _package("jupyterlab"), advice="pip install jupyterlab"),
        Finding("nbconvert", _package("nbconvert"), advice="pip install nbconvert, for HTML pages"),
        gpu,
        Finding(
            "nvcc",
            nvcc,
            needed=bool(gpu.found),
            advice="pip install -e .[cuda]" if gpu.found else "not needed without a GPU",
        ),
        _backend(),
    ]


def _nvcc() -> str:
    """The version line of the nvcc that builds would use."""
    from torch.utils import cpp_extension

    home = cpp_extension.CUDA_HOME
    path = shutil.which("nvcc", path=f"{home}/bin") if home else shutil.which("nvcc")
    if not path:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    releases = [line for line in done.stdout.splitlines() if "release" in line]
    return f"{releases[0].split('release')[1].split(',')[0].strip()} ({path})" if releases else ""


def report(console: Console) -> bool:
    """Print the findings; whether everything needed is there."""
    findings = examine()
    table = Table("", "", "", box=None, show_header=False, pad_edge=False)
    for finding in findings:
        mark = "[green]✓[/]" if finding.found else "[red]✗[/]" if finding.needed else "[dim]–[/]"
        detail = finding.found or f"[dim]{finding.advice}[/]"
        table.add_row(mark, finding.what, detail)
    console.print(table)
    missing = [finding for finding in findings if finding.needed and not finding.found]
    for finding in missing:
        console.print(f"\nMissing: {finding.what}. {finding.advice}", highlight=False)
    return not missing
