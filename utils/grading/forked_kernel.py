"""A notebook's kernel as a fork, where forks are to be had: see forks."""

import os
import pathlib
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from utils.process import forkserver

NAME = "workbook-fork"


class ForkedKernel(LocalProvisioner):
    """Jupyter's provisioner of local kernels; one that is a fork has done its imports."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Begin the kernel that `cmd` names: [python, "-m", module, ...]."""
        if cmd[1] != "-m":
            return await super().launch_kernel(cmd, **kwargs)
        self.cwd = kwargs.get("cwd") or pathlib.Path.cwd()
        env = kwargs.get("env") or os.environ
        fork = forkserver.inherited(cmd[2:], env=env, cwd=str(self.cwd))
        if fork is None:
            raise RuntimeError("only a fork of the grader's begins kernels so")
        self.process = fork  # type: ignore[assignment]  # it has what Jupyter uses of a Popen
        self.pid = self.pgid = fork.pid
        return self.connection_info


def use() -> None:
    """Let Jupyter begin kernels so, in a fork that may ask for others."""
    if forkserver.VARIABLE in os.environ:
        place = f"{__name__}:{ForkedKernel.__name__}"
        group = KernelProvisionerFactory.GROUP_NAME
        KernelProvisionerFactory.provisioners[NAME] = EntryPoint(NAME, place, group)
        KernelProvisionerFactory.instance().default_provisioner_name = NAME
