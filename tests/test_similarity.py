"""Answers that look alike, by the workbook's own exercises; nothing is built."""

import csv
import re
from itertools import combinations

import pytest

from utils.course import catalog
from utils.grading import similarity
from utils.grading.similarity import RENAMED, SAME, SOLUTION, report, write

WARP, SWISH = "03_register_tiles/gemm_warp", "00_start_here/swish"
NORM = "06_groupnorm/groupnorm_warp"


def solution(id: str) -> str:
    return catalog.solution_text(catalog.load(id))


def starter(id: str) -> str:
    return catalog.starter_text(catalog.load(id))


WAYS = {
    "mean": "float total = 0.0f; for (int k = lane; k < count; k += 32) { total += data[k]; }",
    "fold": "while (width > 1) { width /= 2; sum += __shfl_down_sync(~0u, sum, width); }",
    "leap": "do { acc -= *at * *at; at += 32; } while (at != last && !(acc > 7.0f));",
    "dual": "const float2 both = { left[3 * z], right[z] }; both.x ? (both.y = 1) : both.x--;",
    "pick": "switch (lane & 3) { case 0: sink[lane] = 4; break; case 2: *sink = *src; break; }",
    "jump": "if (row >= rows || lane % 2 == 1) return; else best = max(best, table[row][lane]);",
    "pack": "reinterpret_cast<float4 *>(out)[lane] = make_float4(a * s, b * s, c * s, d * s);",
    "tiny": "out[lane] -= in[lane] / both[lane];",
    "race": "__syncthreads(); at[lane ^ 1] |= (unsigned(lane) << 5) >> 2; __syncthreads();",
}


def own(*steps: str, id: str = NORM) -> str:
    """An answer that is nobody else's: these of WAYS, on top of the starter."""
    return starter(id) + "".join(f"\n{WAYS[step]}" for step in steps)


def disguised(text: str) -> str:
    """Other names, other layout, another number, other comments."""
    text = re.sub(r"//[^\n]*", "", text)
    for name in set(re.findall(r"\b[a-z]\w*\b", text)) - similarity._WORDS:
        text = re.sub(rf"\b{name}\b", f"my_{name}", text) if not name.startswith("__") else text
    return re.sub(r"[ \t]+", "  /* mine */ ", text).replace("32", "0x20")


def alike(answers: dict, threshold: float = 80) -> dict:
    return {(p.first, p.second): p for p in report(answers, threshold)}


def test_the_same_text_is_found():
    text = own("mean", "fold", "leap")
    pairs = alike(
        {"ada": {NORM: text}, "bob": {NORM: text}, "cyd": {NORM: own("pick", "jump", "pack")}}
    )
    assert list(pairs) == [("ada", "bob")]
    (one,) = pairs["ada", "bob"].exercises
    assert (one.exercise, one.percent, one.how) == (NORM, 100, SAME)


def test_a_copy_in_disguise_is_found():
    text = own("mean", "fold", "leap")
    pairs = alike({"ada": {NORM: text}, "bob": {NORM: disguised(text)}})
    assert pairs["ada", "bob"].exercises[0].how == RENAMED


def test_a_copy_with_something_else_around_it_is_found():
    text = own("mean", "fold", "leap", "dual")
    padded = disguised(own("pick", "mean", "fold", "leap", "dual", "jump", "pack"))
    pairs = alike({"ada": {NORM: text}, "bob": {NORM: padded}})
    assert 80 <= pairs["ada", "bob"].percent <= 100
    assert pairs["ada", "bob"].exercises[0].how == ""


def test_the_threshold_is_in_percent():
    answers = {
        "ada": {NORM: own("mean", "fold", "leap", "dual")},
        "bob": {NORM: own("mean", "fold", "pick", "jump")},
    }
    assert not alike(answers, 80) and 30 < alike(answers, 30)["ada", "bob"].percent < 70


def test_what_all_were_given_does_not_count():
    """Two that share the starter, and the worked kernel of the chapter, share nothing."""
    serial = catalog.starter_text(catalog.load("06_groupnorm/groupnorm_serial"))
    answers = {
        "ada": {NORM: own("mean", "fold", "leap", "race") + serial},
        "bob": {NORM: own("pick", "jump", "pack", "dual") + serial},
        "cyd": {NORM: starter(NORM)},
        "dan": {NORM: starter(NORM) + "// hello"},
    }
    assert not [pair for pair in alike(answers, 5) if SOLUTION not in pair]


def test_a_short_answer_says_too_little():
    text = solution(SWISH)
    assert alike({"ada": {SWISH: text}, "bob": {SWISH: text}}) == {}


def test_the_published_solution_is_recognised():
    pairs = alike({"ada": {WARP: disguised(solution(WARP))}, "bob": {WARP: solution(WARP)}})
    assert pairs[SOLUTION, "bob"].exercises[0].how == SAME
    assert pairs[SOLUTION, "ada"].exercises[0].how == RENAMED


def test_what_many_write_is_how_one_writes_it():
    more = [(a, b) for a, b in combinations(["dual", "pick", "jump", "pack", "race"], 2)]
    more += [(a, a, b) for a, b in more]
    answers = {" ".join(m): {NORM: own("mean", "fold", "leap", *m)} for m in more}
    apart = ("dual pick", "jump pack")  # have nothing in common beside what all have
    assert apart not in alike(answers, 30)
    assert apart in alike({name: answers[name] for name in apart}, 30)
    for more in (["tiny"], ["tiny", "race"]):  # of the first hardly anything is left
        answers[" ".join(more)] = {NORM: own("mean", "fold", "leap", *more)}
    assert ("tiny", "tiny race") not in alike(answers, 30)


def test_a_ring_costs_a_line_a_student_not_a_line_a_pair():
    text = own("mean", "fold", "leap")
    pairs = alike({f"student {i:02}": {NORM: text} for i in range(30)})
    assert len(pairs) == 29 and {first for first, _ in pairs} == {"student 00"}


def test_the_order_of_the_class_does_not_matter():
    answers = {
        "ada": {NORM: own("mean", "fold", "leap")},
        "bob": {NORM: own("mean", "fold", "leap"), WARP: solution(WARP)},
        "cyd": {WARP: solution(WARP) + "// c", NORM: disguised(own("mean", "fold", "leap"))},
    }
    assert report(answers, 50) == report(dict(reversed(answers.items())), 50) != []


def test_prints_do_not_hang_on_the_process():
    """hash() of a text does; a report would then say something else each time."""
    text = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    grams = similarity._grams(similarity._tokens(text))
    assert [int(gram) % 1000 for gram in grams[:3]] == [97, 696, 370]


@pytest.mark.parametrize("text", ["", "/*", "'", '"', "\\", "é" * 50, "1e+", "/" * 5000, "\ud800"])
def test_a_broken_text_breaks_nothing(text):
    whole = own("mean", "fold", "leap")
    answers = {"ada": {NORM: text}, "bob": {NORM: whole}, "cyd": {NORM: whole}}
    assert list(alike(answers)) == [("bob", "cyd")]


def test_the_report_is_written_as_csv_and_markdown(tmp_path):
    text, evil = own("mean", "fold", "leap"), "=x|`<b>\n\u202e"
    answers = {"ada": {NORM: text}, evil: {NORM: text}}
    pairs = report(answers, 80)
    path = write(pairs, tmp_path / "alike.csv", answers)
    head, row = csv.reader(path.open(encoding="utf-8", newline=""))
    assert head == ["first", "second", "exercise", "percent", "how"]
    assert row[2:] == [NORM, "100", SAME]
    assert "'=x|`<b>⟨U+000A⟩⟨U+202E⟩" in row
    table = (tmp_path / "alike.md").read_text()
    (line,) = [line for line in table.splitlines() if NORM in line]
    assert f"`{NORM}` 100 % ({SAME})" in line and r"\|\`\<b\>" in line


def test_a_class_without_copies_gets_a_report_that_says_so(tmp_path):
    assert "None were found." in write([], tmp_path / "a.csv", {}).with_suffix(".md").read_text()


def test_the_page_shows_answers_side_by_side_and_marks_what_both_have(tmp_path):
    text = own("mean", "fold", "leap")
    other = "// mine\nint unlike;\n" + text.replace("mean", "average")
    answers = {"ada": {NORM: text}, "<b>": {NORM: other}}
    path = write(report(answers, 80), tmp_path / "alike.csv", answers)
    html = path.with_suffix(".html").read_text()
    left, right = re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)
    assert "&lt;b&gt;" in html and "<b>" not in html
    marked = [re.findall(r"<mark>(.*?)</mark>", column) for column in (left, right)]
    assert len(marked[0]) == len(marked[1]) > 3
    assert not any("unlike" in line or "// mine" in line for line in marked[1])
