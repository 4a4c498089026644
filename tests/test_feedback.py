"""What a student reads of a grade: it helps, and nothing in it acts."""

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from support.jupyterlab import browser, needs_browser

from utils.course import catalog
from utils.grading import feedback, inert, points
from utils.grading.grades import Grade, Mark
from utils.grading.verdicts import Status
from utils.timing.speed import Speed

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="200" viewBox="0 0 900 200">'
    '<rect width="900" height="200" fill="#7aa6d8"/></svg>'
)
EVIL = (
    "swish.cu:3: ```\n```\n# owned\n<script>alert(1)</script> <img src=x onerror=alert(1)>\n"
    "![x](https://evil.example/x.png) [here](javascript:alert(1))\n| a | b |\n"
    "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe\u2066 \x00\x9b\u2028 `````` end\n`````````\n# owned"
)


def record(id: str, status: str, earned=(), **more) -> Mark:
    exercise = catalog.load(id)
    worth = points.shares(exercise)
    parts = {part: exercise.points * worth[part] * (part in earned) for part in worth}
    parts = parts if earned or status == "failed" else {}
    earned = {"points": sum(parts.values()), "status": Status(status), "parts": parts}
    return Mark.of_exercise(exercise, **earned, **more)


def grade(*marks: Mark, student: str = "ada", notes=()) -> Grade:
    return Grade(student, marks, notes=notes)


def passed() -> Mark:
    everything = points.SHARES
    return record("00_start_here/swish", "passed", everything, place="00_start_here.ipynb, cell 4")


def failed(**more) -> Mark:
    report = {
        "message": "wrong values at M=33\n  C[0, 1]: got 1, expected 2",
        "diagnosis": "a race",
    }
    report |= {"picture": SVG, "alt": "Threads [0] and [1] on one element", "place": "a.cu"} | more
    return record("02_shared_memory_tiling/gemm_tiled", "failed", ["works", "small"], **report)


def missing() -> Mark:
    return record("01_naive_gemm/gemm_naive", "not attempted")


def texts(folder) -> tuple[str, str]:
    return (folder / "feedback.md").read_text(), (folder / "feedback.html").read_text()


def section(text: str, name: str) -> str:
    return re.split(r"^## ", text, flags=re.MULTILINE)[name]


def test_feedback_has_the_total_a_table_and_a_section_an_exercise(tmp_path):
    text, html = texts(feedback.write(grade(passed(), failed(), missing()), tmp_path))
    assert "**10.25 of 30 points.**" in text
    assert "| 02.1 `gemm_tiled` | 5.25 of 15 | failed |" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## 00.1 `swish`: 5 of 5",
        "## 02.1 `gemm_tiled`: 5.25 of 15",
        "## 01.1 `gemm_naive`: 0 of 10",
    ]
    assert html.count("<h2>") == 3 and html.count("<tr>") == 4


def test_a_failed_answer_is_told_what_it_earned_what_failed_and_a_hint(tmp_path):
    text, _ = texts(feedback.write(grade(failed()), tmp_path))
    assert f"- {points.WORDS['small']}: 3.75 of 3.75" in text
    assert f"- {points.WORDS['clean']}: 0 of 3" in text
    assert "C[0, 1]: got 1, expected 2" in text and "a race" in text
    assert catalog.hints(catalog.load("02_shared_memory_tiling/gemm_tiled"))[0] in text
    expected = text.partition("### What was expected")[2].partition("###")[0]
    assert "M=1 N=1 K=1" in expected and "no race" in expected
    assert "compiles" not in expected, "it has earned that"


def test_no_line_contradicts_another(tmp_path):
    """A kernel that is wrong everywhere has no hazards, and yet earns nothing for that."""
    nothing = record("00_start_here/swish", "failed", diagnosis="swish with n=300: no hazards")
    text, _ = texts(feedback.write(grade(replace(nothing, message="wrong values")), tmp_path))
    lines = [line for line in text.splitlines() if "hazard" in line]
    assert lines == [
        "- right on small sizes, and no hazards: 0 of 1",
        "swish with n=300: no hazards",
    ]
    assert "a text that compiles" not in text


def test_what_the_starter_does_as_well_is_told(tmp_path):
    made = replace(record("04_reductions/sum_tree", "failed"), like_starter=True)
    assert Mark.from_json(made.to_json()).like_starter
    text, _ = texts(feedback.write(grade(made), tmp_path))
    assert f"- {points.WORDS['works']}: 0 of 1 (what you were given does as much)" in text
    assert "half are right, beyond what the starter does" in text


def test_what_passed_is_told_neither_hint_nor_complaint(tmp_path):
    text, _ = texts(feedback.write(grade(passed()), tmp_path))
    assert "### " not in text
    assert catalog.hints(catalog.load("00_start_here/swish"))[0] not in text


TIMED = Speed("NVIDIA H200", 3.5, seconds=2.5e-3, reference=1.25e-3)


@pytest.mark.parametrize(
    ("speed", "line"),
    [
        (None, "Nothing was timed: there was no GPU"),
        (TIMED, "NVIDIA H200: 2.5 ms a call, the solution 1.25 ms, 2.00 times"),
        (Speed("NVIDIA H200", message="short"), "Nothing was timed on one NVIDIA H200: `s"),
        (Speed("NVIDIA H200", 0.0, message="# late"), "No points for speed on one NVIDIA H200: `#"),
    ],
)
def test_how_fast_an_answer_was_is_told_or_why_nobody_knows(tmp_path, speed, line):
    text, _ = texts(feedback.write(grade(replace(passed(), speed=speed)), tmp_path))
    assert line in text


def test_points_for_speed_stand_beside_the_others(tmp_path):
    slow = replace(passed(), speed=TIMED)
    slow = replace(slow, parts={**slow.parts, "gates": 0.5, "speed": 0.175})
    text, _ = texts(feedback.write(grade(slow), tmp_path))
    assert f"- {points.WORDS['speed']}: 0.17 of 0.5" in text
    assert f"- {points.WORDS['gates']}: 0.5 of 0.5" in text


def test_the_picture_lies_beside_and_inside_of_the_page(tmp_path):
    folder = feedback.write(grade(failed()), tmp_path)
    text, html = texts(folder)
    assert (folder / "02.1_gemm_tiled.svg").read_text() == SVG
    assert "](02.1_gemm_tiled.svg)" in text
    assert 'src="data:image/svg+xml;base64,' in html
    assert 'alt="Threads [0] and [1] on one element"' in html


def test_a_picture_of_an_earlier_grade_goes(tmp_path):
    folder = feedback.write(grade(failed()), tmp_path)
    feedback.write(grade(passed()), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["feedback.html", "feedback.md"]


def test_a_control_character_in_a_picture_does_not_break_it(tmp_path):
    folder = feedback.write(
        grade(failed(picture=SVG.replace("/>", "/><text>\x1b[1m</text>"))), tmp_path
    )
    assert ElementTree.parse(folder / "02.1_gemm_tiled.svg").getroot().tag.endswith("svg")


def evil() -> Grade:
    record = failed(message=EVIL, diagnosis=EVIL, alt=EVIL, place=EVIL)
    return grade(record, student=EVIL.replace("\0", ""), notes=[EVIL])


def test_nothing_of_a_submission_is_markup(tmp_path):
    folder = feedback.write(evil(), tmp_path)
    assert folder.parent == tmp_path
    text, html = texts(folder)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    tokens += [inner for token in tokens for inner in token.children or ()]
    assert not [t for t in tokens if t.type in ("html_block", "html_inline", "link_open")]
    assert [t.attrGet("src") for t in tokens if t.type == "image"] == ["02.1_gemm_tiled.svg"]
    headings = [t for t in tokens if t.type == "heading_open"]
    assert len(headings) == 1 + 1 + 4 and len([t for t in tokens if t.type == "table_open"]) == 1
    assert not re.search(
        r"<script|<img src=.[^d]|<a |<[^>\"]+\son\w+=|(src|href)=.?(http|java)", html
    )
    assert html.count("<h1") == 1 and "default-src 'none'" in html


def test_what_cannot_be_seen_is_shown(tmp_path):
    for text in texts(feedback.write(evil(), tmp_path)):
        unseen = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"\n"}
        assert not unseen, [hex(ord(c)) for c in unseen]
        assert "⟨U+202E⟩gnp.exe" in text and "⟨U+001B⟩[31mred" in text


def test_an_endless_text_is_cut():
    text = inert.block("x" * 1_000_000)
    assert len(text) < 25_000 and "1,000,000 characters" in text


STRANGE = ["../../etc/passwd", "..", ".", "/", "", "a/b", "-rf", "a\nb", "x" * 300, "é" * 300]


@pytest.mark.parametrize("name", [*STRANGE, "\udcff"])
def test_a_name_stays_in_its_place(name, tmp_path):
    made = inert.file_name(name)
    assert re.fullmatch(r"\w[\w.-]*", made) and len(made.encode()) < 200
    assert (tmp_path / made).resolve().parent == tmp_path.resolve()


def test_names_never_meet():
    names = [*STRANGE, "a\\b", "a b", "a_b", "a?b", "x" * 60, "_", "Zoë", "Zoe"]
    made = [inert.file_name(name) for name in names]
    assert made[-3:] == ["_", "Zoë", "Zoe"]
    names = {*names, *made}  # some have the name that another one got
    assert len({inert.file_name(name) for name in names}) == len(names)


def test_a_spreadsheet_gets_no_formula():
    assert inert.cell('=HYPERLINK("x")').startswith("'=") and inert.cell("ada") == "ada"


@pytest.mark.browser
@needs_browser
def test_the_page_reads_on_a_phone_in_light_and_dark(tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    wide = failed(message="x" * 400)
    long = record("09_fused_linear/linear_bias_hardtanh_mish_gn", "not attempted")
    page_file = feedback.write(grade(passed(), wide, missing(), long), tmp_path) / "feedback.html"
    requests = []
    with browser() as chromium:
        for scheme in ("light", "dark"):
            page = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
            page.on("request", lambda request: requests.append(request.url))
            page.goto(page_file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert page.evaluate("document.images[0].naturalWidth") == 900
            assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
            violations = Axe().run(page).response["violations"]
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []
