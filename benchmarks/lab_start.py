"""How long a learner waits for JupyterLab, for the first cell, and for the first cold %%cuda.

    python benchmarks/lab_start.py [--times 3]

A copy of the workbook and an empty cache each time, opened in Chromium as `workbook lab` opens it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import jupyterlab

IDLE = "#jp-main-statusbar >> text=| Idle"
CELLS = "%load_ext utils", "%%cuda 00_start_here/axpy"
SHOWN = "tensors live on", "axpy: compiled"


def once(chromium, folder: Path) -> list[float]:
    """Seconds to the page with a kernel, to the first cell's output, and of the first %%cuda."""
    os.environ["WORKBOOK_CACHE"] = str(folder / "cache")
    start = time.perf_counter()
    with jupyterlab.serve(jupyterlab.copy_of_the_workbook(folder)) as address:
        page = chromium.new_page()
        page.set_default_timeout(jupyterlab.SLOW)
        page.goto(address)
        page.wait_for_selector(IDLE)
        seconds = [time.perf_counter() - start]
        for text, shown in zip(CELLS, SHOWN, strict=True):
            cell = page.locator(".jp-CodeCell", has_text=text).first
            cell.locator(".cm-content").click()
            if seconds[1:]:
                start = time.perf_counter()  # the reader has read
            page.keyboard.press("Control+Enter")
            cell.locator(".jp-OutputArea-output", has_text=shown).wait_for()
            seconds.append(time.perf_counter() - start)
        page.close()
    return seconds


def main(times: Annotated[int, typer.Option(help="how often")] = 3) -> None:
    with jupyterlab.browser() as chromium:
        for _ in range(times):
            with tempfile.TemporaryDirectory() as folder:
                page, usable, compiled = once(chromium, Path(folder))
            print(
                f"page with a kernel {page:.1f} s, first cell done {usable:.1f} s, "
                f"first %%cuda {compiled:.1f} s (load {os.getloadavg()[0]:.1f})"
            )


if __name__ == "__main__":
    typer.run(main)
