"""The files of the project, as git knows them."""

import subprocess

import pytest

from utils.ground.paths import ROOT


def committed(*patterns: str) -> list[str]:
    """Files in git, and new ones that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [path for path in done.stdout.splitlines() if (ROOT / path).is_file()]
