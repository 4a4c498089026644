"""What each warp asks for in each line, as data: a page lets its reader choose among them.

static/requests.js of the JupyterLab extension draws it, in JupyterLab and on the pages of the site;
wherever nothing does, the picture beside it stands.
"""

import numpy as np

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.scene import Instruction, Scene, coordinate_text, instructions
from utils.ground.wording import many
from utils.watch.access_patterns import (
    WARP,
    bank_conflicts,
    ideal_sectors,
    lanes,
    sectors_per_request,
    service_phases,
)
from utils.watch.trace import KINDS, SHARED

MIME = "application/vnd.cuda-workbook.requests+json"
MOST, WARPS = 8, 32  # instructions, and warps of each, to choose among


def requests(scene: Scene, space: int) -> dict[str, object] | None:
    """The first time that each warp runs each instruction on global or shared memory."""
    chosen = instructions(scene, space)[:MOST]
    if not chosen:
        return None
    return {
        "memory": "banks" if space == SHARED else "sectors",
        "colors": " ".join(cv.hexadecimal(cv.lane_color(lane)) for lane in range(WARP)),
        "instructions": [_instruction(scene, one) for one in chosen],
    }


def _instruction(scene: Scene, one: Instruction) -> dict[str, object]:
    what = f"line {one.line}: {KINDS[one.kind]} of {scene.arrays[one.array].name}"
    warps = one.accesses["thread"] // WARP
    each = np.unique(np.stack([one.accesses["block"], warps], axis=1), axis=0)[:WARPS]
    return {"what": what, "warps": [_request(one, *pair) for pair in each.tolist()]}


def _request(one: Instruction, block: int, warp: int) -> dict[str, object]:
    mine = (one.accesses["block"] == block) & (one.accesses["thread"] // WARP == warp)
    request = one.execution(block, warp, int(one.accesses["nth"][mine].min()))
    seen: dict[str, object] = {
        "name": f"warp {warp} of block {coordinate_text(block, one.launch.grid)}",
        "lanes": _numbers(lanes(request)),
        "bytes": _numbers(request["byte"]),
        "size": int(request["size"][0]),
    }
    if (request["space"] == SHARED).all():
        banks = bank_conflicts(request)
        seen["phases"] = _numbers(service_phases(request))
        wavefronts, ideal = int(banks.wavefronts[0]), int(banks.ideal[0])
        return seen | {"cost": f"{many(wavefronts, 'wavefront')}, ideal {ideal}"}
    sectors, ideal = int(sectors_per_request(request)[0]), int(ideal_sectors(request)[0])
    return seen | {"cost": f"{many(sectors, 'sector')}, ideal {ideal}"}


def _numbers(values: np.ndarray) -> str:
    """As one word each, since a notebook's file gives every number of a list a line of its own."""
    return " ".join(map(str, values.tolist()))
