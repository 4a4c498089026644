"""How a picture of each view looks, kept in tests/golden/ for a person to look at.

`make golden` draws them anew; look at each that git then lists as changed before you commit it.
What a picture must say is tested beside this file: a new look alone fails nothing but this.
"""

import base64
import io
import re
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from PIL import Image
from support.gallery import shown

from utils.diagrams.picture import Picture
from utils.ground.paths import ROOT

GOLDEN, NEW = ROOT / "tests/golden", ROOT / "build/golden"
LOOKS = {
    "threads": "axpy",
    "threads_wrong": "wrong",
    "sectors": "naive",
    "matrix": "matrix",
    "tiles": "tiles",
    "tree": "tree of two warps",
    "banks": "unpadded",
    "race": "hazard, shared",
    "race_of_blocks": "hazard, neighbours",
    "out_of_bounds": "hazard, no guard",
    "unwritten": "hazard, half a tile",
    "waits": "hazard, and left",
}


def pinned(package: str) -> str:
    """The version that constraints.txt names."""
    match = re.search(rf"^{package}==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return match[1]


def golden(picture: Picture) -> str:
    """Its SVG with words as words: smaller, and a change of them can be read in a diff."""
    return replace(picture, text="none").svg()


def pixels(match: re.Match) -> str:
    """An image within an SVG without what compressed it: zlib's releases differ in bytes."""
    image = Image.open(io.BytesIO(base64.b64decode(match[1])))
    return str((image.size, image.mode, np.asarray(image).tolist()))


def normal(svg: str) -> str:
    """What two drawings of one picture have in common, whatever compressed the images in it."""
    return re.sub(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)", pixels, svg)


@pytest.fixture(scope="module", autouse=True)
def the_pinned_matplotlib():
    here, wanted = version("matplotlib"), pinned("matplotlib")
    if here != wanted:
        pytest.skip(f"looks are those of matplotlib {wanted} (constraints.txt); here is {here}")


@pytest.mark.parametrize("name", LOOKS)
def test_a_picture_looks_as_it_did(name, pytestconfig):
    path, drawn = GOLDEN / f"{name}.svg", golden(shown(LOOKS[name]))
    if pytestconfig.getoption("renew"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn)
    if path.is_file() and normal(path.read_text()) == normal(drawn):
        return
    NEW.mkdir(parents=True, exist_ok=True)
    (NEW / path.name).write_text(drawn)
    pytest.fail(
        f"tests/golden/{path.name} looks otherwise now: compare it with build/golden/{path.name}; "
        "where the new one is right, run `make golden` and commit what it changed",
        pytrace=False,
    )
