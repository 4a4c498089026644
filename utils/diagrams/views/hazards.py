"""The view "hazards": what went wrong, on which element, between which threads."""

from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import Scene
from utils.diagrams.views import masks, out_of_bounds, races, unwritten, waits
from utils.emulator.hazards import Picture
from utils.emulator.reports import Report
from utils.ground.errors import WorkbookError

PICTURES = {
    Picture.RACE: races.draw,
    Picture.UNWRITTEN: unwritten.draw,
    Picture.OUT_OF_BOUNDS: out_of_bounds.draw,
    Picture.WAITS: waits.draw,
    Picture.MASK: masks.draw,
}


def draw(scene: Scene) -> tuple[Canvas, str, str, str]:
    """(page, title, caption, description)"""
    number, count = scene.hazard, len(scene.hazards)
    if not count:
        raise WorkbookError(f"{scene.name} has no hazards at {scene.size_text}: nothing to draw")
    if not 1 <= number <= count:
        only = "one hazard" if count == 1 else f"{count} hazards"
        raise WorkbookError(f"there is no hazard {number}: {scene.name} has {only}")
    report = scene.hazards[number - 1]
    ran = {launch.kernel for launch in scene.trace.launches}
    if not can_draw(report) or (report.kernel or "")[:63] not in ran:
        raise WorkbookError(f"hazard {number} has no picture; in words:\n{report}")
    return PICTURES[report.row.picture](scene, report)


def steps(scene: Scene) -> dict[str, object] | None:
    """Of a race, what a page lets its reader go through."""
    report = scene.hazards[scene.hazard - 1]
    return races.steps(scene, report) if report.kind == "race" else None


def can_draw(report: Report) -> bool:
    """Whether there is a picture for a hazard of this kind, and its parts are known."""
    picture = report.row.picture
    if picture in (Picture.WAITS, Picture.MASK):
        return bool(report.waits)
    known = report.thread is not None and report.index is not None
    return picture is not Picture.NONE and known
