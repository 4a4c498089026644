"""`workbook doctor`: what this machine has, and what to install."""

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from utils.ground.errors import WorkbookError
from utils.process import sandbox


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `found` is "" where it is missing; `advice` says what to do then."""

    what: str
    detail: str
    needed: bool = False
    advice: str = ""


def _output(*command: str) -> str:
    """What a program prints; "" where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpu() -> Finding:
    query = "--query-gpu=name,driver_version,compute_cap"
    card = _output("nvidia-smi", query, "--format=csv,noheader").partition("\n")[0]
    if not card:
        return Finding("GPU", "", advice="none: kernels run on the CPU, timings are stored ones")
    name, driver, capability = (part.strip() for part in card.split(","))
    return Finding("GPU", f"{name}, driver {driver}, sm_{capability.replace('.', '')}")


def _box() -> Finding:
    """What `workbook grade` and `workbook judge` run strangers' code in."""
    try:
        sandbox.require()
    except WorkbookError as error:
        return Finding("bubblewrap", "", advice=f"to grade or judge: {error}")
    return Finding("bubblewrap", "there is a box for what others have written")


def _torch() -> Finding:
    try:
        import torch
    except ImportError as error:
        return Finding("torch", "", True, f"pip install torch ({error})")
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU"
    return Finding("torch", f"{torch.__version__}, {build}")


def _tool(what: str, path: Callable[[], str]) -> Finding:
    """A tool that the toolchain looks for; its error says what to install."""
    try:
        return Finding(what, path())
    except WorkbookError as error:
        return Finding(what, "", True, str(error))


def _build_tools(gpu: bool) -> list[Finding]:
    """What builds would use, as the toolchain finds it."""
    from utils.cuda import toolchain  # imports torch, which may be what is missing
    from utils.ground import settings

    def cxx() -> str:
        path = toolchain.cxx()
        return f"{_output(path, '--version').partition(chr(10))[0]}, {path}"

    def nvcc() -> str:
        path = toolchain.cuda_home() / "bin" / "nvcc"
        release = re.search(r"release ([\d.]+)", _output(str(path), "--version"))
        return f"{release[1]}, {path}" if release else ""

    findings = [_tool("C++ compiler", cxx), _tool("ninja", toolchain.ninja)]
    if gpu:
        findings.append(_tool("nvcc", nvcc))
    return [*findings, _tool("backend", settings.backend)]


def _locks() -> Finding:
    """Builds of `load_inline` that were killed, or are under way: the next one waits for their lock
    without a word."""
    from torch.utils import cpp_extension  # imports setuptools

    root = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root())
    locks = sorted([*root.glob("*/lock"), *root.glob("*/*/lock")])
    if not locks:
        return Finding("load_inline", "no build of PyTorch's is locked")
    advice = "if nothing builds now, a build was killed, and the next waits forever: remove "
    return Finding("load_inline", "", advice=advice + ", ".join(map(str, locks)))


def examine() -> list[Finding]:
    """Look at everything that the workbook uses."""
    python = ".".join(map(str, sys.version_info[:3]))
    torch, gpu = _torch(), _gpu()
    return [
        Finding("Python", python if sys.version_info >= (3, 11) else "", True, "3.11 or newer"),
        torch,
        Finding("JupyterLab", _package("jupyterlab"), advice="pip install jupyterlab"),
        Finding("nbconvert", _package("nbconvert"), advice="pip install nbconvert, for HTML pages"),
        gpu,
        _box(),
        *([*_build_tools(bool(gpu.detail)), _locks()] if torch.detail else ()),
    ]


def report(console: Console) -> bool:
    """Print the findings; whether everything needed is there."""
    findings = examine()
    table = Table("", "", box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")  # a path must not be cut
    for finding in findings:
        mark = "[green]✓[/]" if finding.detail else "[red]✗[/]" if finding.needed else "[dim]–[/]"
        detail = escape(finding.detail) or f"[dim]{escape(finding.advice)}[/]"
        table.add_row(mark, finding.what, detail)
    console.print(table)
    missing = [finding for finding in findings if finding.needed and not finding.detail]
    for finding in missing:
        console.print(f"\nMissing: {finding.what}. {escape(finding.advice)}", highlight=False)
    return not missing
