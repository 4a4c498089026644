"""Any picture: it can be read, is told to those who cannot see it, and is the same every time."""

import base64
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from support import traces
from support.gallery import NAIVE, PICTURES, scene, shown
from support.reading import words
from support.traces import simulate

from utils.diagrams.draw import VIEWS, render
from utils.diagrams.parts.canvas import SMALL, fit, text_width
from utils.diagrams.parts.scene import coordinate_text, element, listing
from utils.ground.errors import WorkbookError
from utils.watch.trace import GLOBAL, Array

# --- every picture


@pytest.mark.parametrize("name", PICTURES)
def test_every_word_can_be_read(name):
    canvas = FigureCanvasAgg(shown(name).figure)
    renderer = canvas.get_renderer()
    width, height = canvas.get_width_height()
    assert width == 900
    texts = [t for t in shown(name).figure.axes[0].texts if t.get_text().strip()]
    boxes = [t.get_window_extent(renderer) for t in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert text.get_fontsize() >= SMALL, text.get_text()
        inside = 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height
        assert inside, f"'{text.get_text()}' reaches out of the page"
    x0, y0, x1, y1 = np.array([box.extents for box in boxes]).T[:, :, None]
    across = np.minimum(x1, x1.T) - np.maximum(x0, x0.T)
    down = np.minimum(y1, y1.T) - np.maximum(y0, y0.T)
    # Boxes have some air above and below the letters; beside them, two words need three pixels.
    for i, k in np.argwhere(np.triu((across > -3) & (down > 4), 1)):
        pytest.fail(f"'{texts[i].get_text()}' runs into '{texts[k].get_text()}'")


THINGS = (
    "block|element|instruction|lane|phase|read|request|sector|slot|thread|time|wavefront|warp|word"
)


def test_every_picture_has_a_title_a_caption_and_words_for_those_who_cannot_see_it():
    for name in PICTURES:
        picture = shown(name)
        said = words(picture)
        assert said[0] == picture.title and ": " in picture.title, name
        assert picture.caption.endswith(".") and picture.alt.endswith("."), name
        assert " ".join(said).endswith(picture.caption), name  # below the picture, in lines
        assert len(picture.alt) > 50 and picture.alt not in picture.caption, name
        assert picture.description == f"{picture.title}. {picture.alt} {picture.caption}"


def test_one_is_no_plural():
    def kernel(t):
        for line in range(1, 10):
            t.load(line, "out", t.thread[0] * line)
            t.load(line, "s", t.thread[0] * line)
            yield
        t.store(10, "s", 0)

    trace = simulate(kernel, (1,), (1,), {"out": (40,)}, [("s", 40)])
    small = [render(scene(trace), view) for view in VIEWS if view != "hazards"]
    for picture in small:
        for said in (picture.caption, picture.alt, *words(picture)):
            assert not re.search(rf"\b1 (more )?({THINGS})s\b", said), said
    left = {"sectors": "1 more instruction is", "banks": "2 more instructions are"}
    for view, said in left.items():
        assert f"{said} not shown; draw one with line=..." in render(scene(trace), view).caption


# --- bytes

VIEW_EACH = ["axpy", "naive", "small matrix", "tree", "padded", "hazard, shared", "hazard, before"]


@pytest.mark.parametrize("name", VIEW_EACH)
def test_the_same_trace_gives_the_same_bytes_whatever_the_readers_settings(name):
    one = shown(name)
    own = {"svg.fonttype": "none", "path.sketch": (1, 100, 2), "patch.antialiased": False}
    with matplotlib.rc_context(own):
        two = render(*PICTURES[name]())
        assert (one.svg(), one.png()) == (two.svg(), two.png())
    assert one.svg() == one.svg()
    assert not re.search(r"20\d\d-\d\d-\d\d|[Mm]atplotlib", one.svg())


def test_a_picture_is_small_enough_for_a_notebook():
    for name in ("axpy", "naive", "unpadded", "tiles"):
        assert len(shown(name).svg()) < 300_000 and len(shown(name).png()) < 100_000


def test_those_who_cannot_see_it_are_told():
    picture = shown("naive")
    data, metadata = picture._repr_mimebundle_()
    root = ElementTree.fromstring(data["image/svg+xml"])
    spoken = {child.tag.rpartition("}")[2]: child.text for child in root[:2]}
    assert spoken == {"title": picture.title, "desc": picture.description}
    assert root.get("role") == "img" and root.get("aria-label") == picture.description
    image = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert image.width == 900 and image.info["Description"] == picture.description
    assert metadata["image/png"]["alt"] == metadata["image/svg+xml"]["alt"] == picture.description
    assert picture.caption in data["text/plain"]
    assert "load of A: 32 sectors per request" in picture.alt


def test_pictures_are_saved(tmp_path):
    picture = shown("one element")
    picture.save(tmp_path / "a.svg")
    picture.save(str(tmp_path / "a.png"))
    assert (tmp_path / "a.svg").read_text() == picture.svg()
    assert (tmp_path / "a.png").read_bytes() == picture.png()
    with pytest.raises(ValueError, match=r"'a\.jpg' must end in \.svg or \.png"):
        picture.save(tmp_path / "a.jpg")


# --- words


@pytest.mark.parametrize(
    "items, said", [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c")]
)
def test_lists_are_written_out(items, said):
    assert listing([*items]) == said


def test_elements_and_threads_have_the_names_of_cuda():
    assert element(Array("A", GLOBAL, (3, 4), 4, 0), 7) == "A[1][3]"
    assert element(Array("out", GLOBAL, (), 4, 0), 0) == "out"
    assert coordinate_text(5, (8, 1, 1)) == "5"
    assert coordinate_text(11, (4, 4, 1)) == "(3, 2)"
    assert coordinate_text(23, (2, 3, 4)) == "(1, 2, 3)"


def test_long_text_is_cut_short():
    text = "sum += A[row * K + k] * B[k * N + col];"
    assert fit(text, 100) == text
    short = fit(text, 2)
    assert short.endswith("…") and text_width(short) <= 2 and text.startswith(short[:-1])


# --- limits


def still(trace, accesses):
    return replace(trace, launches=(replace(trace.launches[0], accesses=accesses),))


def idle(t):
    return None


def one(t):
    t.store(1, "out", 0)


@pytest.mark.parametrize(
    "trace, view, message",
    [
        (replace(traces.axpy(3), launches=()), None, "starts no kernel at n = 5.*does the launche"),
        (simulate(idle, (1,), (4,), {"out": (4,)}), None, "touches none of its arrays"),
        (traces.axpy(3), "banks", "uses no shared memory"),
        (traces.axpy(3), "tree", "uses no shared memory, so there is no tree to draw"),
    ],
)
def test_where_there_is_nothing_to_draw_the_reason_is_said(trace, view, message):
    with pytest.raises(WorkbookError, match=message):
        render(scene(trace), view)


@pytest.mark.parametrize(
    "shape, view, what",
    [
        ((9000,), "threads", "out has 9,000 elements"),
        ((300, 2), "threads", "out has 600 elements"),
        ((600, 2), "matrix", "out is 600 × 2"),
        ((600, 2), "tiles", "out is 600 × 2"),
    ],
)
def test_what_is_too_large_is_refused_with_a_size_to_try(shape, view, what):
    said = f"{what}, too much for a picture; draw it at a smaller size, such as n=300"
    with pytest.raises(WorkbookError, match=said):
        render(scene(simulate(one, (1,), (1,), {"out": shape})), view)


@pytest.mark.parametrize(
    "view, options, message",
    [
        ("threads", {"array": "z"}, "no array 'z'; it has x, y, out"),
        ("matrix", {"thread": 512}, "there is no thread 512: there are 512 × 1 × 1"),
        ("matrix", {"thread": (0, 1)}, r"there is no thread \(0, 1\)"),
        ("tree", {"array": "x"}, "uses no shared array 'x'"),
        ("tiles", {"block": -1}, "there is no block -1"),
        ("sectors", {"line": 99}, "line 99 makes no access to global memory"),
    ],
)
def test_what_is_not_there_is_named(view, options, message):
    with pytest.raises(WorkbookError, match=message):
        render(scene(traces.axpy(300), **options), view)


def test_a_kernel_that_writes_nothing_is_drawn():
    trace = simulate(lambda t: t.load(1, "x", t.thread[0]), (1,), (4,), {"x": (40,), "out": (40,)})
    assert "40 of the 40 elements are never written" in render(scene(trace), "threads").caption
    assert "it writes 0 elements of out" in render(scene(trace), "matrix").caption


def test_accesses_outside_of_every_array_are_counted():
    accesses = traces.axpy(64).launches[0].accesses.copy()
    accesses["array"][:10] = -1
    trace = still(traces.axpy(64), accesses)
    for view in ("threads", "sectors", "tiles", "matrix"):
        assert "10 accesses are in none of the arrays" in render(scene(trace), view).caption
    assert "none of the arrays" not in shown("axpy").caption


def test_of_a_truncated_trace_only_what_is_whole_is_drawn():
    cut = replace(traces.gemm_tiled(8, 8, 8, T=4), truncated=True)
    for view in ("threads", "matrix"):
        with pytest.raises(WorkbookError, match="draw it at a smaller size, such as n=300"):
            render(scene(cut, ("C",)), view)
    # The last recorded block may be cut short; the others are whole.
    assert "what block (0, 1)" in render(scene(cut, ("C",)), "tiles").title
    with pytest.raises(WorkbookError, match=r"block \(1, 1\) of kernel was not recorded"):
        render(scene(cut, ("C",), block=(1, 1)), "tiles")
    # What is said of one warp holds; an average over some of the warps would not.
    part = replace(traces.gemm(40, 36, 8), truncated=True)
    assert "on average" in shown("ragged").caption
    assert "on average" not in render(scene(part, ("C",), NAIVE), "sectors").caption
    assert render(scene(cut, ("C",)), "banks").caption


def test_what_is_too_much_for_one_picture_is_left_out():
    def kernel(t):
        for line in range(1, 11):
            t.load(line, "out", t.thread[0] * line)
            t.load(line, "s", t.thread[0] * line)
            yield

    trace = simulate(kernel, (1,), (4,), {"out": (40,)}, [("s", 40)])
    for view in ("sectors", "banks"):
        picture = render(scene(trace), view)
        assert "2 more instructions are not shown; draw one with line=..." in picture.caption
        assert "line 8" in words(picture) and "line 9" not in words(picture)
