"""What `profile` says of a kernel: its lines, what limits it, what it occupies."""

import re
from dataclasses import replace

import pytest
from support.command import workbook
from support.jupyterlab import browser, needs_browser

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.grading import pages
from utils.ground.errors import WorkbookError
from utils.timing import profile as profiles
from utils.timing import sass
from utils.timing.estimate import known_gpu, launch_parts, places
from utils.timing.profile import Line, profile, profiled
from utils.timing.scaling import Work

H200 = "NVIDIA H200"
STRIDED = """
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, rows = (n + 1023) / 1024;
    for (int k = i % rows * 1024 + i / rows; k < n && i < rows * 1024; k = n) {
        float v = x[k];
        out[k] = v / (1.0f + expf(-v));
    }
}

void swish(const float* x, float* out, int n) {
    swish_kernel<<<((n + 1023) / 1024 * 1024 + 255) / 256, 256>>>(x, out, n);
}
"""


def answer(id, text=None, **more):
    exercise = catalog.load(id)
    source = catalog.solution_text(exercise) if text is None else text
    return compile_answer(exercise, source, backend="emulator", **more)


def of(id, text=None):
    kernel = answer(id, text)
    return profiled(kernel, kernel.exercise.at.bench, H200)


@pytest.fixture(scope="module")
def tiled():
    return of("02_shared_memory_tiling/gemm_tiled")


def test_lines_are_those_of_the_source(tiled):
    assert tiled.lines
    for line in tiled.lines:
        name = line.access.rpartition(" ")[2]
        assert name in tiled.source[line.number], f"{line} is at: {tiled.source[line.number]}"


def test_what_a_tile_saves_is_counted(tiled):
    n, (loads, others) = 4096, ([], [])
    for line in tiled.lines:
        (loads if line.access.startswith("global load") else others).append(line)
    assert [line.bytes for line in loads] == [4 * n**3 / 32] * 2  # each element, once a tile
    assert all(line.pieces == line.ideal == 4 * line.requests for line in loads)
    assert [line.dram for line in loads] == [4 * n**2] * 2
    assert tiled.units["FMA: float sums and products"] == n**3 / 32


def test_indices_of_loops_that_nvcc_unrolls_are_no_instructions():
    units = of("09_fused_linear/linear_bias_act").units
    assert units["ALU: integers, comparisons, jumps"] < units["FMA: float sums and products"] / 10


def test_a_line_that_wastes_sectors_is_named():
    seen = of("00_start_here/swish", STRIDED)
    (load,) = (line for line in seen.lines if line.access == "global load of x")
    assert load.waste > 6 and load.requests * 32 == seen.estimate.sizes["n"]
    said = re.search(r"in line (\d+) takes (\S+) times the sectors", seen.verdict())
    assert said and "[k]" in seen.source[int(said[1])] and float(said[2]) > 6
    good = of("00_start_here/swish")
    assert "sectors" not in good.verdict() and all(line.waste == 1 for line in good.lines)


def test_every_part_that_may_decide_has_its_advice(tiled):
    parts = set(launch_parts(known_gpu(H200), Work("k", 1, 32, 0, 0, {}))) | {"launch"}
    said = set()
    for part in parts:
        estimate = replace(tiled.estimate, bound=part, parts=dict.fromkeys(parts, 1e-3))
        verdict = replace(tiled, estimate=estimate).verdict()
        assert verdict.startswith(f"Limited by {part}: 1 of about ")
        said.add(replace(tiled, estimate=estimate)._advice())
    assert len(said) == len(parts) - 1  # L1 and L2 want the same


def test_local_memory_is_told_where_there_is_some(tiled):
    assert "local memory" not in replace(tiled, local=0).verdict()
    assert "A thread has 512 bytes of local memory" in replace(tiled, local=512).verdict()


@pytest.mark.nvcc
def test_an_index_that_no_compiler_knows_puts_sums_into_local_memory():
    text = catalog.solution_text(catalog.load("09_fused_linear/linear_bias_act"))
    looked_up = text.replace(
        "next_row(y, sums);", "for (int j = 0; j < TN; j++) y[j] = sums[i][j];"
    )
    assert looked_up != text
    if not (made := of("09_fused_linear/linear_bias_act", looked_up)).code:
        pytest.skip("there is no nvcc here, or no nvdisasm")
    assert made.local == 512 and "512 bytes of local memory a thread" in made.launches[0][1]


def test_bytes_that_move_in_vain_are_told(tiled):
    estimate = replace(tiled.estimate, bound="DRAM", parts={"DRAM": 1e-3})
    assert "fewer bytes" in replace(tiled, estimate=estimate).verdict()
    more = Line(1, "global load of A", 1, 4, 1, 1, 2.0 * tiled.bytes)
    seen = replace(tiled, estimate=estimate, lines=[*tiled.lines, more])
    assert "It moves 3 times the bytes" in seen.verdict()


@pytest.mark.parametrize(
    ("threads", "shared", "used", "reason"),
    [
        (1024, 0, 32, "threads"),
        (256, 0, 128, "registers"),
        (64, 48 << 10, 16, "shared memory"),
        (32, 0, 16, "blocks"),
    ],
)
def test_what_keeps_more_blocks_from_fitting(threads, shared, used, reason):
    limits = places(known_gpu(H200), Work("k", 1000, threads, shared, 0, {}), used)
    assert min(limits, key=limits.__getitem__) == reason


def test_what_the_model_does_not_cover_is_said():
    kernel = answer("10_tensor_cores/linear_split")
    with pytest.raises(WorkbookError, match="linear_split has no profile: what tensor cores"):
        profile(kernel)


@pytest.mark.parametrize(
    ("here", "on", "note"),
    [("", H200, ""), ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", ""),
     ("NVIDIA L4", H200, "knows no figures of an NVIDIA L4")],
)  # fmt: skip
def test_whose_figures_they_are(monkeypatch, here, on, note):
    monkeypatch.setattr("utils.timing.measure.gpu", lambda: here)
    seen = profile(answer("00_start_here/swish"))
    assert seen.estimate.gpu == on and note in seen.note and bool(seen.note) == bool(note)
    assert seen.note in str(seen) and seen.note.replace("'", "&#x27;") in seen._repr_html_()


def test_an_h100_has_an_h200s_multiprocessors_and_its_own_memory():
    h100, h200 = known_gpu("NVIDIA H100 80GB HBM3"), known_gpu(H200)
    assert h100.clock == h200.clock and h100.bytes_per_second < h200.bytes_per_second


def test_a_size_that_the_exercise_lacks_is_said():
    with pytest.raises(WorkbookError, match="swish has no size 'm'; it has n"):
        profile(answer("00_start_here/swish"), m=3)


def test_a_starter_is_not_run(capsys):
    exercise = catalog.load("01_naive_gemm/gemm_coalesced")
    assert profile(answer(exercise.id, catalog.starter_text(exercise))) is None
    assert "not attempted yet" in capsys.readouterr().out


def test_source_is_escaped_and_the_picture_has_words(tiled):
    page = replace(tiled, source={n: "a < b && c" for n in tiled.source})._repr_html_()
    assert "a &lt; b &amp;&amp; c" in page and "a < b" not in page
    picture = tiled.picture()
    assert picture.caption == tiled.verdict() and tiled.estimate.bound in picture.alt
    assert profiles.profile_plot.picture(tiled.estimate, tiled.limits, 4, 0, "").alt  # no point


CODE = {
    9: [sass.Instruction(16 * i, f"FFMA R{i}, R1, R2, R{i}", 8) for i in range(100)],
    0: [sass.Instruction(2000, "EXIT", 0)],
}


def test_machine_code_is_folded_under_its_line(tiled):
    profile = replace(tiled, code=CODE)
    page = profile._repr_html_()
    (folded,) = re.findall(r"<details>.*?</details>", page.replace("\n", " "))[1:]
    line = tiled.source[9]
    assert line and line in folded.partition("</summary>")[0].replace("&lt;", "<")
    assert "R47, R1" in folded and "R48, R1" not in folded and "… 52 more" in folded
    assert "R99, R1" in profile.machine_code() and "100 FFMA" in str(profile)
    assert "(no line of the text)" in profile.machine_code()


def test_without_a_compiler_there_is_a_sentence_in_place_of_machine_code(tiled):
    profile = replace(tiled, code={})
    assert "needs nvcc and nvdisasm" in profile.machine_code()
    assert "Machine code" not in profile._repr_html_()


@pytest.mark.nvcc
def test_machine_code_is_that_of_the_kernel_that_is_launched():
    """Of a template's six, lines are as a cell counts them: `%%cuda` is line 1."""
    seen = of("06_groupnorm/groupnorm_vectorized")
    if not seen.code:
        pytest.skip("there is no nvcc here, or no nvdisasm")
    (line,) = (n for n, text in seen.source.items() if "warp_sum<LANES>(v.x + v.y" in text)
    shuffles = [i for i in seen.code[line] if i.opcode == "SHFL"]
    assert len(shuffles) == 3  # 32 channels of a group are 8 lanes


def test_the_command_prints_it_and_draws_it(tmp_path):
    path, page = tmp_path / "swish.svg", tmp_path / "swish.html"
    options = "--solutions", "--sass", "--picture", str(path), "--page", str(page)
    code, output = workbook("profile", "00/swish", *options)
    assert code == 0 and "Limited by" in output and "global load of x" in output
    assert "<svg" in path.read_text()
    assert "LDG.E" in output or "machine code needs" in output
    text = page.read_text()
    assert text.index("<img alt=") < text.index("global load of x") and "Limited by" in text
    code, output = workbook("profile", "00")
    assert code == 2 and "say which" in output


@pytest.mark.browser
@needs_browser
def test_the_page_reads_on_a_phone_in_light_and_dark(tmp_path, tiled):
    from axe_playwright_python.sync_playwright import Axe

    file = tmp_path / "profile.html"
    file.write_text(pages.page("Profile", replace(tiled, code=CODE).body()))
    with browser() as chromium:
        for scheme in ("light", "dark"):
            page = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
            page.goto(file.as_uri())
            assert page.evaluate("document.images[0].naturalWidth") > 500
            page.click("summary >> nth=-1")
            violations = Axe().run(page).response["violations"]
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []
