"""Whether this machine can put a process into a box."""

import pytest

from utils.ground.errors import ToolError
from utils.process import sandbox


def _why_none() -> str:
    try:
        sandbox.require()
    except ToolError as error:
        return str(error)
    return ""


needs_box = pytest.mark.skipif(bool(_why_none()), reason=f"no box: {_why_none()}")
