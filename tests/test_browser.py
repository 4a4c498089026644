"""JupyterLab in a browser, as a learner meets it.

One JupyterLab serves all tests, on a copy of the workbook; the first walks through notebook 00.
"""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from support.gallery import shown
from support.jupyterlab import SLOW, browser, changed, copy_of_the_workbook, needs_browser, serve
from support.pages import WIDTHS, choose_the_next_line, cut, serious, status

from utils.course import catalog
from utils.notebooks import documents

pytestmark = [pytest.mark.browser, needs_browser]
NOTEBOOK = "lab/tree/notebooks/00_start_here.ipynb"
ALONE = "?reset"  # not beside what was open before
SWISH = "%%cuda 00_start_here/swish\n"
# As the menu does.
CHOOSE = """theme => fetch("/lab/api/settings/@jupyterlab/apputils-extension:themes", {
    method: "PUT",
    headers: {"X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1]},
    body: JSON.stringify({raw: JSON.stringify({theme})}),
})"""
OUTPUT = ".jp-OutputArea-output"
SHOWN = "bench(gemm_tiled)", "diagnose(gemm_tiled_race)", "profile(", "check(gemm_tiled)"


@pytest.fixture(scope="module")
def chromium():
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def workbook(tmp_path_factory):
    """A copy of the workbook; its address as JupyterLab serves it is in `address`."""
    folder = copy_of_the_workbook(tmp_path_factory.mktemp("workbook"))
    notebook = new_notebook(cells=[new_code_cell("threadIdx = 1"), new_code_cell(CELL)])
    (folder / "build").mkdir()  # which git ignores
    text = documents.to_text(documents.canonical(notebook))
    (folder / "build/own.ipynb").write_text(text)
    picture = new_notebook(cells=[new_code_cell(PICTURE)])
    text = documents.to_text(documents.canonical(picture))
    (folder / "build/picture.ipynb").write_text(text)
    solved = documents.read(folder / "solutions/01_naive_gemm.ipynb")
    drawn = next(c for c in solved.cells if 'draw(gemm_naive, view="sectors"' in c.source)
    cells = [drawn, *(new_code_cell(name, outputs=[output_of(name)]) for name in ("tiles", "tree"))]
    text = documents.to_text(documents.canonical(new_notebook(cells=cells), outputs=True))
    (folder / "build/drawn.ipynb").write_text(text)
    solved = documents.read(folder / "solutions/02_shared_memory_tiling.ipynb")
    cells = [c for c in solved.cells if c.source.startswith(SHOWN)]
    text = documents.to_text(documents.canonical(new_notebook(cells=cells), outputs=True))
    (folder / "build/shown.ipynb").write_text(text)
    early = new_notebook(cells=[new_code_cell("a = 1"), new_code_cell('print(a, "then", a + 1)')])
    text = documents.to_text(documents.canonical(early))
    (folder / "build/early.ipynb").write_text(text)
    (folder / "build/own.cu").write_text("__global__ void k() { float4 v; }\n")
    with serve(folder) as address:
        yield Workbook(folder, address)


def output_of(name: str):
    """The output of a cell that has shown a picture of the gallery."""
    data, metadata = shown(name)._repr_mimebundle_()
    return new_output("display_data", data=data, metadata=metadata)


CELL = """%%cuda scale
__global__ void scale_kernel(float4* x) {
    // threadIdx in a comment
    __shared__ float tile[32];
    const char* text = "__device__";
    tile[threadIdx.x] = x[threadIdx.x].x;
    __syncthreads();
}
void scale(float* x, int n) { scale_kernel<<<1, dim3(32)>>>((float4*)x); }"""
PICTURE = 'from utils.timing import timelines\n\ntimelines.show("swish_bias_gn")'
EXPECTED = {
    "magic": {"%%cuda scale"},
    "qualifier": {"__global__", "__shared__", "<<<", ">>>"},
    "builtin": {"threadIdx", "__syncthreads"},
    "type": {"void", "float", "float4", "char", "int", "dim3"},
}
# That what a selector finds has these texts and no others.
SHOWS = """([selector, texts]) => {
    const shown = new Set([...document.querySelectorAll(selector)].map(one => one.innerText));
    return texts.length === shown.size && texts.every(text => shown.has(text));
}"""


class Workbook:
    def __init__(self, folder, address):
        self.folder, self.address = folder, address


KERNEL = "#jp-main-statusbar >> text=| Idle"  # it is there, and would run a cell


class Page:
    """A page with notebook 00, and what its console says."""

    def __init__(self, chromium, address: str, ready: str = KERNEL, **options):
        self.said: list[str] = []
        self.page = chromium.new_page(**options)
        self.page.set_default_timeout(SLOW)
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("response", lambda r: self.said.append(r.url) if r.status >= 400 else None)
        self.page.goto(address)
        self.page.wait_for_selector(".jp-CodeCell")
        self.page.wait_for_selector(ready)

    def cell(self, text: str):
        return self.page.locator(".jp-CodeCell", has_text=text).first

    def run(self, text: str, expected: str) -> str:
        """Run the cell with a text; what stands below it once that has what is expected."""
        cell = self.cell(text)
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Control+Enter")
        cell.locator(OUTPUT, has_text=expected).first.wait_for()
        return "\n".join(cell.locator(OUTPUT).all_inner_texts())

    def write(self, text: str, instead: str) -> None:
        """Put another text into a cell, as somebody who pastes it."""
        self.cell(text).locator(".cm-content").first.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(instead)

    def choose(self, theme: str) -> None:
        """Take the theme of this name, Light or Dark, and load the page anew."""
        self.page.evaluate(CHOOSE, f"JupyterLab {theme}")
        self.page.reload()
        body = f"body[data-jp-theme-light={str(theme == 'Light').lower()}]"
        self.page.wait_for_selector(body, state="attached")

    def save(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.page.wait_for_selector(".jp-mod-current:not(.jp-mod-dirty)")
        self.page.wait_for_timeout(1000)


def test_a_learner_fails_three_ways_mends_it_and_sees_it(chromium, workbook, tmp_path):
    lab = Page(chromium, workbook.address, viewport={"width": 1440, "height": 900})
    assert NOTEBOOK in lab.page.url, "what make lab opens"
    lab.run("%load_ext utils", "tensors live on: cpu")
    lab.run("%%cuda 00_start_here/axpy", "axpy: compiled")
    lab.run("check(axpy)", "✓ axpy passed")

    swish = catalog.load("00_start_here/swish")
    solution = catalog.solution_text(swish)
    lab.run(SWISH.strip(), "swish: compiled")
    assert "not attempted" in lab.run("check(swish)", "CheckFailed")
    lab.write(SWISH.strip(), SWISH + solution.replace(";", "", 1))
    shown = lab.run(SWISH.strip(), "CompileError")
    assert "swish.cu:" in shown and "-std=c++" not in shown
    lab.write(SWISH.strip(), SWISH + solution.replace("if (i < n) ", ""))
    lab.run(SWISH.strip(), "swish: compiled")
    assert "out of bounds" in lab.run("check(swish)", "out of bounds")
    lab.write(SWISH.strip(), SWISH + solution)
    lab.run(SWISH.strip(), "swish: compiled")
    line = lab.run("check(swish)", "✓ 00.1 swish passed")
    assert "00: 1 of 2 · next: 00.2" in line
    lab.save()
    assert changed(workbook.folder) == ["notebooks/00_start_here.ipynb"], "the learner's own cell"

    lab.write("bench(swish)", "hint(swish)")
    lab.run("hint(swish)", "Hint 1 of")
    lab.write("hint(swish)", "reset(swish)")
    lab.run("reset(swish)", "is the starter again")
    assert "// your code here" in lab.cell(SWISH.strip()).locator(".cm-content").inner_text()
    lab.write("reset(swish)", "bench(swish)")
    lab.save()
    assert changed(workbook.folder) == [], "what was opened, run and saved is as it was given"

    lab.page.reload()
    lab.page.wait_for_selector(f"{OUTPUT} >> text=✓ axpy passed")
    assert lab.said == []
    lab.page.close()


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_pass_is_seen_at_every_width_in_both_themes(chromium, workbook, theme):
    """After the walk above, whose outputs have been saved."""
    passed = f"{OUTPUT} >> text=✓ axpy passed"
    narrow = {"width": WIDTHS[0], "height": 900}
    lab = Page(chromium, f"{workbook.address}/{NOTEBOOK}{ALONE}", passed, viewport=narrow)
    lab.choose(theme)
    line = lab.page.locator(passed).first
    line.wait_for()
    for width in WIDTHS:
        lab.page.set_viewport_size({"width": width, "height": 900})
        lab.page.wait_for_timeout(500)
        line.scroll_into_view_if_needed()
        box = line.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert serious(lab.page, OUTPUT) == []
    assert lab.said == []
    lab.page.close()


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_nothing_is_cut_at_any_width_in_either_theme(chromium, workbook, theme):
    """Tables, pictures and reports of chapter 02; at 900 pixels beside the list of files."""
    address = f"{workbook.address}/lab/tree/build/shown.ipynb{ALONE}"
    lab = Page(chromium, address, viewport={"width": WIDTHS[0], "height": 900})
    lab.choose(theme)
    lab.page.wait_for_selector(".workbook-table")
    for width in WIDTHS:
        lab.page.set_viewport_size({"width": width, "height": 900})
        if width == 900:
            lab.page.click('.lm-TabBar-tab[data-id="filebrowser"]')
            lab.page.wait_for_selector("#filebrowser:visible")
        lab.page.wait_for_timeout(500)
        for cell in lab.page.locator(".jp-CodeCell").all():
            cell.scroll_into_view_if_needed()
            cell.locator(OUTPUT).first.wait_for()
            assert cut(lab.page, OUTPUT) == [], width
        assert serious(lab.page, OUTPUT) == [], width
    assert lab.said == []
    lab.page.close()


def test_cuda_has_its_colours(chromium, workbook):
    page = chromium.new_page()
    page.set_default_timeout(SLOW)
    page.goto(f"{workbook.address}/lab/tree/build/own.ipynb{ALONE}")
    page.wait_for_selector(".cm-cuda-qualifier")
    for kind, words in EXPECTED.items():  # on a busy machine a string is one a moment later
        page.wait_for_function(SHOWS, arg=[f".cm-cuda-{kind}", sorted(words)])
    qualifier = page.locator(".cm-cuda-qualifier").first
    plain = page.locator(".cm-line", has_text="tile[").first
    colour = "element => getComputedStyle(element).color"
    assert qualifier.evaluate(colour) != plain.evaluate(colour)
    assert page.locator(".Toastify__toast").count() == 0, "no pop-up asks about news"

    page.locator(".cm-content").nth(1).click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("#")
    page.wait_for_selector(".cm-cuda-qualifier", state="detached")  # it is Python again

    page.goto(f"{workbook.address}/lab/tree/build/own.cu{ALONE}")
    page.wait_for_selector(".jp-FileEditor .cm-cuda-type")
    page.close()


def test_a_picture_has_words_shrinks_with_the_page_and_is_enlarged_by_a_key(chromium, workbook):
    address = f"{workbook.address}/lab/tree/build/picture.ipynb{ALONE}"
    lab = Page(chromium, address, viewport={"width": 1440, "height": 900})
    lab.cell("timelines").locator(".cm-content").click()
    lab.page.keyboard.press("Control+Enter")
    picture = lab.page.locator(".jp-RenderedSVG img")
    picture.wait_for()
    assert "task 37 eager: linear" in picture.get_attribute("alt")
    for width in WIDTHS:
        lab.page.set_viewport_size({"width": width, "height": 900})
        lab.page.wait_for_timeout(500)
        around = lab.page.locator(".jp-RenderedSVG").bounding_box()
        assert around["x"] + around["width"] <= width
        assert picture.bounding_box()["width"] <= around["width"]
        assert serious(lab.page, OUTPUT) == []
    lab.page.set_viewport_size({"width": 900, "height": 900})
    lab.page.locator(".jp-RenderedSVG").focus()
    lab.page.keyboard.press("Enter")
    assert picture.bounding_box()["width"] >= 640, "its words can be read"
    lab.page.keyboard.press("Enter")
    assert cut(lab.page, OUTPUT) == []
    assert lab.said == []
    lab.page.close()


def test_phases_are_gone_through_one_at_a_time_with_keys_or_buttons(chromium, workbook):
    address = f"{workbook.address}/lab/tree/build/drawn.ipynb{ALONE}"
    ready = ".workbook-choice button"
    lab = Page(chromium, address, ready, viewport={"width": 390, "height": 900})
    tiles, tree = lab.page.locator(".workbook-choice", has=lab.page.locator("button")).all()
    assert status(tiles).startswith("phase 0, 1 of 7: The block reads 1,024 elements of A once")
    assert "As[ty][tx] =" in tiles.locator("pre").inner_text(), "the lines that run in it"
    tiles.get_by_role("button", name="previous phase").focus()
    lab.page.keyboard.press("Enter")
    assert status(tiles).startswith("phase 0"), "there is none before the first"
    tiles.get_by_role("button", name="next phase").focus()
    lab.page.keyboard.press("Enter")
    assert "from shared memory. Then all its threads wait at a barrier." in status(tiles)
    lab.page.keyboard.press("Space")
    assert status(tiles).startswith("phase 2, 3 of 7")
    tree.locator("select").focus()
    lab.page.keyboard.press("End")
    assert status(tree).endswith("Then the block is done.")
    for choice in (tiles, tree):
        assert choice.locator("svg[role=img]").get_attribute("aria-label") == status(choice)
        box = choice.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert serious(lab.page, ".workbook-choice") == []
    assert lab.page.locator(".workbook-picture img").count() == 3, "the pictures stand above"
    lab.page.emulate_media(media="print")
    assert not tiles.is_visible()
    assert lab.said == []
    lab.page.close()


def test_a_warp_and_a_line_are_chosen_in_a_notebook_that_is_not_trusted(chromium, workbook):
    address = f"{workbook.address}/lab/tree/build/drawn.ipynb{ALONE}"
    lab = Page(chromium, address, ".workbook-choice", viewport={"width": 900, "height": 900})
    before, after = choose_the_next_line(lab.page)
    assert before == "line 10: load of A, warp 0 of block 0: 32 sectors, ideal 4"
    assert after == "line 10: load of B, warp 0 of block 0: 1 sector, ideal 1"
    assert lab.page.locator(".workbook-picture img").first.get_attribute("alt")
    assert serious(lab.page, ".workbook-choice") == []
    lab.page.close()


def test_a_cell_that_is_run_before_there_is_a_kernel_is_run_when_there_is(chromium, workbook):
    page = chromium.new_page()
    page.set_default_timeout(SLOW)
    held, slow = [], True

    def hold(route) -> None:
        starts = route.request.method == "POST"
        held.append(route) if starts and slow else route.continue_()

    page.route("**/api/sessions?*", hold)
    page.goto(f"{workbook.address}/lab/tree/build/early.ipynb{ALONE}")
    page.wait_for_selector(".jp-CodeCell")
    while not held:  # it has asked for its kernel
        page.wait_for_timeout(100)
    for cell in page.locator(".jp-CodeCell").all():
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
    page.wait_for_timeout(500)
    slow = False
    for route in held:
        route.continue_()
    page.wait_for_selector(f"{OUTPUT} >> text=1 then 2")
    page.close()


def test_tab_indents_cuda_and_completes_python(chromium, workbook):
    lab = Page(chromium, f"{workbook.address}/{NOTEBOOK}{ALONE}")
    cuda = lab.cell("%%cuda 00_start_here/axpy").locator(".cm-content")
    cuda.click()
    lab.page.keyboard.press("Control+End")
    lab.page.keyboard.press("Enter")
    lab.page.keyboard.type("ab")
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.type("c")
    assert cuda.inner_text().endswith("ab  c")
    lab.page.keyboard.type(" {")
    assert cuda.inner_text().endswith("ab  c {}"), "brackets close"
    lab.page.keyboard.type(" bloc")
    for word in ("blockIdx.x", "blockDim.x"):
        lab.page.keyboard.press("Tab")
        assert cuda.inner_text().endswith("{ " + word + "}")
    assert lab.page.locator(".jp-Completer:visible").count() == 0
    lab.page.close()


def test_a_link_to_a_place_in_a_notebook_leads_there_the_first_time(chromium, workbook):
    lab = Page(chromium, f"{workbook.address}/{NOTEBOOK}{ALONE}")
    link = lab.page.locator("a[href*='cpp.ipynb'][href*='#Numbers-with-a-point']").first
    link.scroll_into_view_if_needed()
    link.click()
    heading = lab.page.locator(".jp-Notebook:visible h2, .jp-Notebook:visible h3").filter(
        has_text="Numbers with a point"
    )
    heading.first.wait_for()
    lab.page.wait_for_timeout(6000)
    box = heading.first.bounding_box()
    assert box and 0 <= box["y"] <= lab.page.viewport_size["height"]
    lab.page.close()
