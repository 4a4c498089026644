"""`workbook site`: pages whose links lead somewhere, that ask no other host for anything."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from support.jupyterlab import browser, needs_browser
from support.pages import WIDTHS, choose_the_next_line, cut, serious, status
from support.pairs import write_notebook

from utils.ground.errors import WorkbookError
from utils.notebooks import site


class Page(HTMLParser):
    """What a page points to, what it loads, and what its pictures are called."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.links, self.loads, self.ids, self.alts = path, [], [], set(), []
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, pairs):
        attributes = dict(pairs)
        self.ids.add(attributes.get("id"))
        self.links += [attributes["href"]] if tag == "a" and "href" in attributes else []
        self.loads += [attributes["href"]] if tag == "link" and "href" in attributes else []
        self.loads += [attributes["src"]] if "src" in attributes else []
        self.alts += [attributes.get("alt")] if tag == "img" else []


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """All pages, by name. They link to each other, so that two alone would not do."""
    index = site.build(out=tmp_path_factory.mktemp("site") / "site")
    return {path.name: Page(path) for path in index.parent.glob("*.html")}


def test_every_link_and_every_file_of_a_page_is_there(pages):
    for page in pages.values():
        assert page.links
        for address in [*page.links, *page.loads]:
            parts = urlparse(address)
            if parts.scheme:
                continue
            target = page.path.parent / unquote(parts.path) if parts.path else page.path
            assert target.exists(), f"{page.path.name}: {address}"
            if parts.fragment and target.name in pages:
                assert unquote(parts.fragment) in pages[target.name].ids, address


def test_nothing_is_fetched_from_another_host(pages):
    for page in pages.values():
        assert [address for address in page.loads if urlparse(address).netloc] == []
    folder = pages["index.html"].path.parent
    for sheet in folder.rglob("*.css"):
        links = re.findall(r"(?:url\(|@import)[^;)]*//[^;)]*", sheet.read_text())
        assert [text for text in links if "data:" not in text] == [], sheet.name


def test_chapters_are_joined(pages):
    first, second = pages["00_start_here.html"], pages["01_naive_gemm.html"]
    assert re.search(r'class="next-page" href="01_naive_gemm.html"', first.text)
    assert re.search(r'class="prev-page" href="00_start_here.html"', second.text)
    words = second.text.partition("<article")[2].partition("</article>")[0]
    assert 'href="00_start_here.html"' in words, "the notebook's own link to a notebook"
    assert not [address for address in second.links if address.endswith(".ipynb")]
    index = pages["index.html"]
    assert "00 Start here" in index.text and "Write your first two CUDA kernels" in index.text


def test_cells_are_coloured_and_pictures_have_words(pages):
    page = pages["00_start_here.html"]
    assert '<span class="cp">%%cuda 00_start_here/axpy' in page.text
    assert '<span class="kr">__global__</span>' in page.text
    assert '<span class="kn">import</span>' in page.text, "and Python as Python"
    assert len(page.alts) >= 3 and all(alt and len(alt) > 30 for alt in page.alts)
    assert 'name="viewport"' in page.text


@pytest.fixture(scope="module")
def chromium():
    with browser() as chromium:
        yield chromium


@pytest.mark.browser
@needs_browser
def test_no_page_is_wider_than_its_window(pages, chromium):
    tab = chromium.new_page()
    for page in pages.values():
        tab.goto(f"file://{page.path}")
        tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, page.path.name
            assert cut(tab, "article") == [], f"{page.path.name} at {width}"
        scrolls = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        assert tab.locator(".highlight pre").evaluate_all(scrolls) == 0, "on a wide screen"
    tab.close()


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_site_is_read_at_every_width(pages, chromium, theme):
    tab = chromium.new_page(color_scheme=theme)
    requests: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    index = pages["index.html"].path
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        for name in ("index.html", "02_shared_memory_tiling.html"):
            tab.goto(f"file://{index.with_name(name)}")
            assert serious(tab, "article") == []
        tiles = tab.locator(".workbook-choice", has=tab.locator("button")).first
        tiles.get_by_role("button", name="next phase").click()
        assert status(tiles).startswith("phase 1, 2 of ")
        assert choose_the_next_line(tab)[1].startswith("line 18: store of Ws, warp 0 of")
    assert [address for address in requests if not address.startswith(("file:", "data:"))] == []
    tab.close()


def test_the_index_has_the_minutes_of_both_sittings(root):
    time = "**Time.** Two sittings: about 10 minutes, then about 20."
    head = f"# 01 Pairs\n\n**Goal.** Twice.\n\n{time}"
    words = {"image/png": {"alt": "A"}}
    picture = new_output("display_data", {"image/png": "AAAA"}, metadata=words)
    path = write_notebook(root, new_markdown_cell(head), new_code_cell("1", outputs=[picture]))
    site.write_sources(root / "source", [path])
    index = (root / "source/index.md").read_text()
    assert "**[01 Pairs](01_pairs.ipynb)**, 10 + 20 minutes" in index and "Twice." in index
    assert 'alt=\\"A\\"' in (root / "source/01_pairs.ipynb").read_text()


def test_a_link_that_leads_nowhere_is_said(root):
    path = write_notebook(root, new_markdown_cell("# Pairs\n\nsee [none](none.ipynb)"))
    with pytest.raises(WorkbookError, match="none.ipynb"):
        site.build([path], root / "site")
