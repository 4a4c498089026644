"""JupyterLab in a browser: CUDA colours in `%%cuda` cells and .cu files, and no pop-up."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from utils.notebooks import documents
from utils.paths import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CELL = """%%cuda scale
__global__ void scale_kernel(float4* x) {
    // threadIdx in a comment
    __shared__ float tile[32];
    const char* text = "__device__";
    tile[threadIdx.x] = x[threadIdx.x].x;
    __syncthreads();
}
void scale(float* x, int n) { scale_kernel<<<1, dim3(32)>>>((float4*)x); }"""
EXPECTED = {
    "magic": {"%%cuda scale"},
    "qualifier": {"__global__", "__shared__", "<<<", ">>>"},
    "builtin": {"threadIdx", "__syncthreads"},
    "type": {"float4", "dim3"},
}
EXTENSION = ROOT / "utils" / "notebooks" / "labextension" / "workbook-cuda"


def test_jupyterlab_finds_the_files_it_is_told_to_load():
    build = json.loads((EXTENSION / "package.json").read_text())["jupyterlab"]["_build"]
    script = (EXTENSION / build["load"]).read_text()
    assert 'window._JUPYTERLAB["workbook-cuda"] = ' in script


@pytest.fixture
def url(tmp_path):
    """The address of a JupyterLab on a folder with a notebook and a .cu file."""
    notebook = new_notebook(cells=[new_code_cell("threadIdx = 1"), new_code_cell(CELL)])
    text = documents.to_text(documents.canonical(notebook))
    (tmp_path / "a.ipynb").write_text(text)
    (tmp_path / "a.cu").write_text("__global__ void k() { float4 v; }\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token="]
    command = [sys.executable, "-m", "utils.cli", "lab", "--", *options]
    with open(tmp_path / "lab.log", "w") as log:
        server = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={tmp_path}"], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api")
                break
            except urllib.error.URLError:
                time.sleep(0.25)
        yield f"http://127.0.0.1:{port}/lab/tree"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_cuda_has_its_colours(url, tmp_path):
    from playwright import sync_api as playwright

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{url}/a.ipynb")
        page.wait_for_selector(".cm-cuda-qualifier", timeout=90_000)
        for kind, words in EXPECTED.items():
            assert set(page.locator(f".cm-cuda-{kind}").all_inner_texts()) == words
        qualifier = page.locator(".cm-cuda-qualifier").first
        plain = page.locator(".cm-line", has_text="tile[").first
        colour = "element => getComputedStyle(element).color"
        assert qualifier.evaluate(colour) != plain.evaluate(colour)
        numbers = page.locator(".jp-CodeCell .cm-lineNumbers")
        assert numbers.count() == 2, "messages name lines"
        assert page.locator(".Toastify__toast").count() == 0, "no pop-up asks about news"

        page.locator(".cm-content").nth(1).click()
        page.keyboard.press("Control+Home")
        page.keyboard.press("#")
        page.wait_for_selector(".cm-cuda-qualifier", state="detached")  # it is Python again

        page.goto(f"{url}/a.cu")
        page.wait_for_selector(".jp-FileEditor .cm-cuda-type", timeout=30_000)
        browser.close()
