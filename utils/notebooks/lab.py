"""`workbook lab`: JupyterLab on the notebooks, set up for the workbook."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from utils.ground.paths import ROOT, environment, workspace

FIRST = "notebooks/00_start_here.ipynb"
FILES = "utils.notebooks.contents"
EXTENSION = ROOT / "utils/notebooks/labextension"
STATIC = EXTENSION / "workbook-cuda/static"  # what pages take of it, too
# Without a grammar of addresses in all scripts that jsonschema would read, which halves the start.
_JUPYTERLAB = """
import sys
sys.modules["rfc3987_syntax"] = None
from jupyterlab.labapp import main
sys.exit(main())
"""
# What the first CUDA cell needs, made while JupyterLab starts and its reader reads.
_WARM = """
import os
os.nice(10)
if hasattr(os, "SCHED_IDLE"):  # JupyterLab, the browser and the first kernel first
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
from utils.cuda import warmup
for thread in warmup.start():
    thread.join()
"""


def command(options: Sequence[str] = ()) -> list[str]:
    """How JupyterLab is started; `options` are the caller's own and win."""
    shell = shutil.which(os.environ.get("SHELL") or "bash") or "sh"
    flags = [
        f"--LabApp.default_url=/lab/tree/{FIRST}",
        f"--LabApp.extra_labextensions_path={EXTENSION}",
        f"--ServerApp.contents_manager_class={FILES}.WorkbookFiles",
        # No login shell: its profile would put a PATH of its own before ours.
        f"--ServerApp.terminado_settings=shell_command=['{shell}']",
        "--ServerApp.log_level=WARN",
        "--LabApp.extension_manager=readonly",  # the other one asks a package index for news
    ]
    if os.geteuid() == 0:
        flags.append("--allow-root")
    return [sys.executable, "-c", _JUPYTERLAB, *flags, *options]


def variables() -> dict[str, str]:
    """The environment of JupyterLab, its kernels and its terminals, where `workbook` is found."""
    configuration = [str(EXTENSION), os.environ.get("JUPYTER_CONFIG_PATH")]
    search = [os.path.dirname(sys.executable), os.environ.get("PATH")]
    data = [str(EXTENSION), os.environ.get("JUPYTER_PATH")]  # with our kernel, see beginnings.py
    return environment(
        JUPYTER_PATH=os.pathsep.join(filter(None, data)),
        JUPYTER_CONFIG_PATH=os.pathsep.join(filter(None, configuration)),
        PATH=os.pathsep.join(filter(None, search)),
    )


def start(options: Sequence[str] = ()) -> None:
    """Become JupyterLab; it does not return."""
    os.chdir(workspace().root)
    warming, nowhere = [sys.executable, "-c", _WARM], subprocess.DEVNULL
    subprocess.Popen(warming, env=variables(), stdout=nowhere, stderr=nowhere)
    os.execve(sys.executable, command(options), variables())
