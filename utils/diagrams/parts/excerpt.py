"""Lines of the kernel's source, some of them marked."""

from collections.abc import Mapping

from utils.diagrams.parts import canvas as cv
from utils.diagrams.parts.canvas import Canvas
from utils.diagrams.parts.scene import Scene

TALL = 0.2  # inches of a line
MOST = 9  # lines between the first mark and the last that are shown


def draw(page: Canvas, scene: Scene, notes: Mapping[int, str]) -> None:
    """The lines with notes, and those between them; moves y on. `notes`: line -> what it does."""
    lines = sorted(line for line in notes if scene.text_of(line))
    if not lines:
        return
    if lines[-1] - lines[0] < MOST:
        lines = list(range(lines[0], lines[-1] + 1))
    texts = {line: scene.raw_text_of(line) for line in lines}
    indent = min(len(t) - len(t.lstrip()) for t in texts.values() if t.strip())
    numbers = 0.12 + max(cv.text_width(str(line), cv.SMALL, cv.MONO) for line in lines)
    said = max(cv.text_width(note, cv.SMALL, bold=True) for note in notes.values())
    room = cv.INNER - numbers - said - 0.35
    for line, before in zip(lines, [lines[0] - 1, *lines], strict=False):
        if line > before + 1:
            page.text(cv.MARGIN + numbers, page.y, "…", color=cv.GREY)
            page.y += TALL
        if line in notes:
            page.box(cv.MARGIN - 0.05, page.y - TALL / 2, cv.INNER + 0.1, TALL, fill=MARKED)
            end = cv.WIDTH - cv.MARGIN
            page.text(end, page.y, notes[line], size=cv.SMALL, bold=True, ha="right")
        x, gray = cv.MARGIN + numbers - 0.12, cv.INK if line in notes else cv.GREY
        page.text(x, page.y, str(line), size=cv.SMALL, mono=True, color=cv.GREY, ha="right")
        text = cv.fit(texts[line][indent:].rstrip(), room, cv.SMALL, cv.MONO)
        page.text(cv.MARGIN + numbers, page.y, text, size=cv.SMALL, mono=True, color=gray)
        page.y += TALL
    page.y += 0.04


MARKED = cv.tint(cv.RED, 0.16)
