"""How a picture of each view looks, kept in tests/golden/ for a person to look at.

`make golden` draws them anew; look at each that git then lists as changed before you commit it.
What a picture must say is tested beside this file: a new look alone fails nothing but this.
"""

import base64
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from support.gallery import shown

from utils.diagrams.picture import Picture
from utils.ground.paths import ROOT

GOLDEN, NEW = ROOT / "tests/golden", ROOT / "build/golden"
NEAR = 0.01  # points between two places that look the same
NUMBER = r"(?<![#\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?!\w)"  # no colour's
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


def pixels(data: str) -> np.ndarray:
    """An image within an SVG without what compressed it: zlib's releases differ in bytes."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))


def same_value(name: str, old: str, new: str) -> bool:
    """Whether an attribute says the same: coordinates as good as equal, all else to the letter."""
    if name.endswith("href") and old.startswith("data:"):
        return np.array_equal(pixels(old), pixels(new))
    if re.sub(NUMBER, "#", " ".join(old.split())) != re.sub(NUMBER, "#", " ".join(new.split())):
        return False
    numbers = (list(map(float, re.findall(NUMBER, text))) for text in (old, new))
    return np.allclose(*numbers, rtol=0, atol=NEAR)


def differences(old: ElementTree.Element, new: ElementTree.Element, place: str) -> Iterator[str]:
    """Where the elements of two pictures differ, and in what."""
    if old.tag != new.tag:
        yield f"{place}: <{new.tag}>, not <{old.tag}>"
        return
    if (old.text or "").split() != (new.text or "").split():
        yield f"{place}: says {new.text!r}, not {old.text!r}"
    for name in sorted((old.attrib.keys() | new.attrib.keys()) - {"id"}):  # ids are hashes
        before, now = old.get(name, ""), new.get(name, "")
        if not same_value(name, before, now):
            yield f"{place}: {name} is {now[:80]!r}, not {before[:80]!r}"
    if len(old) != len(new):
        yield f"{place}: {len(new)} elements, not {len(old)}"
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        yield from differences(one, other, f"{place}/{number} {one.tag.rpartition('}')[2]}")


def compared(old: str, new: str) -> list[str]:
    """How the picture of one SVG differs from another's."""
    return list(differences(*map(ElementTree.fromstring, (old, new)), "svg"))


SVG = """<svg xmlns="http://www.w3.org/2000/svg">
<g id="a1"><path d="M 0 1.5\nL 2.25 3" style="{style}"/>
<text x="4">{words}</text></g></svg>"""
DRAWN = SVG.format(style="fill: #ffffff", words="block 0")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (DRAWN.replace("2.25", "2.250004").replace("\n", " ").replace("a1", "b2"), ""),
        (DRAWN.replace("2.25", "2.35"), "svg/0 g/0 path: d is 'M 0 1.5 L 2.35 3'"),
        (DRAWN.replace("#ffffff", "#fffffe"), "svg/0 g/0 path: style"),
        (DRAWN.replace("L 2.25", "C 2.25"), "svg/0 g/0 path: d"),
        (DRAWN.replace("block 0", "block 1"), "svg/0 g/1 text: says 'block 1', not 'block 0'"),
        (re.sub("<text.*text>", "", DRAWN), "svg/0 g: 1 elements, not 2"),
    ],
)
def test_pictures_are_compared_by_what_is_in_them(other, said):
    differences = compared(DRAWN, other)
    assert differences[0].startswith(said) if said else not differences


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
    differs = compared(path.read_text(), drawn) if path.is_file() else ["there is none yet"]
    if not differs:
        return
    NEW.mkdir(parents=True, exist_ok=True)
    (NEW / path.name).write_text(drawn)
    pytest.fail(
        f"tests/golden/{path.name} looks otherwise now ({len(differs)} differences: "
        f"{'; '.join(differs[:3])}): compare it with build/golden/{path.name}; "
        "where the new one is right, run `make golden` and commit what it changed",
        pytrace=False,
    )
