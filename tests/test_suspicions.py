"""What g++ warns of in a text that compiles is told in one plain sentence, with its line."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from utils import magics
from utils.course import catalog
from utils.course.answers import compile_wrong
from utils.cuda import instrumented, suspicions
from utils.cuda.compiler import compile_cuda
from utils.ground.errors import CheckFailed, CompileError
from utils.judge.check import check

TEXT = """__device__ float half_of(float x) {
    if (x > 0) { return x / 2; }
    return x;
}
__global__ void f_kernel(const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (i < n) out[i] = half_of(x[i]);
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, step);
    }
    __syncthreads();
    if (i < n && sum > 0.5f) {
        out[i] = sum;
        sum = fmaxf(sum, 1.0f);
    }
}
void f(const float* x, float* out, int n) { f_kernel<<<(n + 255) / 256, 256>>>(x, out, n, 3); }
"""
SUSPICIONS = [  # what stands there, what in its place, the line, what is said
    ("i < n)", "i = n)", 8, "`=` stores a value; `==` compares"),
    ("if (i < n) out", "if (i < n); out", 8, "is all that this `if` does"),
    ("step /= 2", "step / 2", 9, "the last part of this `for` changes nothing"),
    ("i < n)", "i < n, i < m)", 8, "only the second counts: conditions are joined by `&&`"),
    ("x[i]", "x[0, i]", 8, "element [row][col] of a matrix is `[row * columns + col]`"),
    ("__syncthreads()", "__syncthreads", 12, "__syncthreads is not called"),
    ("out[i] = sum", "out[i] == sum", 14, "`==` compares and stores nothing"),
    ("sum = fmaxf", "fmaxf", 15, "what this line computes is not kept"),
    ("out[i] = half_of(x[i])", "\n        half_of(x[i])", 9, "what half_of returns is not kept"),
    ("sum += __shfl", "__shfl", 10, "what the shuffle brings is not kept"),
    ("i < n &&", "0 < i < n &&", 13, "`a < b < c` compares c with the 0 or 1"),
    ("float sum =", "int sum =", 15, "a float is made a whole number"),
    ("    __sync", '    printf("%d", sum);\n    __sync', 12, "%d prints whole numbers"),
    ("    __sync", '    printf("%f", i);\n    __sync', 12, "%f prints floats"),
    ("(n + 255) / 256", "65536 * 65536 / 256", 18, "an int ends at 2,147,483,647"),
    ("    return x;\n", "", 3, "this function ends without a return"),
    ("0.5f", "1 / 2", 13, "`1 / 2` is 0, a whole number: write `1.0f / 2`"),
    (
        "    __sync", "    for (int k = 0; k < 3; k++);\n        sum += 1;\n    __sync",
        12, "is all that this loop does",
    ),
    (
        "if (i < n && sum > 0.5f) {\n        out[i] = sum;\n        sum = fmaxf(sum, 1.0f);\n    }",
        "if (i < n)\n        out[i] = sum;\n        sum = fmaxf(sum, 1.0f);",
        15, "the `if` of line 13 ends before this line",
    ),
    ("float sum = 0.0f;", "float sum;", 10, "sum is read here and may have no value by then"),
    (
        "    __sync", "    float own[2][4], other;\n    own[1][i] += sum;\n    __sync",
        13, "own is read here and may have no value by then",
    ),
    ("        out[i] = sum;", "        float sum = 1; out[i] = sum;", 14, "this is a second sum"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "mistaken", "line", "words"), SUSPICIONS)
def test_a_suspicion_is_one_plain_sentence_with_its_line(right, mistaken, line, words):
    assert right in TEXT
    said = warnings(TEXT.replace(right, mistaken, 1)).splitlines()[0]
    assert said.startswith(f"f.cu:{line}: warning: ") and words in said


def warnings(text: str) -> str:
    return compile_cuda(text, "f", backend="emulator").warnings


QUIET = [
    ("i < n &&", "(i < n && i > 2) || i == 7 &&"),
    ("    __sync", "    for (int k = 0; k < 3; k++)\n        sum += k;\n    __sync"),
    ("    __sync", "    if (i < n)\n        sum += 1;\n    else\n        sum += 2;\n    __sync"),
    ("    __sync", "    if (i < n)\n        sum =\n        sum + 1;\n    __sync"),
    ("    __sync", "    int whole = int(sum);\n    sum += whole;\n    __sync"),
    ("0.5f", "1.0f / 2"),
    ("0.5f", "4 / 2"),
    ("    __sync", "    // 1 / 2 of it\n    __sync"),
    ("    __sync", "    float own[4];\n    own[i] = 1;\n    own[i] += sum;\n    __sync"),
    ("    __sync", "    __shared__ float own[4];\n    own[i] += sum;\n    __sync"),
    ("    __sync", "    struct { float v; } s;\n    s.v += sum;\n    __sync"),
    (
        "    __sync",
        "    struct S {\n        float v;\n        void add() { v += 1; }\n    };\n    __sync",
    ),
    ("    __sync", "    float v;\n    if (i < n) v = x[i];\n    if (i < n) sum += v;\n    __sync"),
    ("    __sync", "    int k = 0;\n    for (; k < 3; k++);\n    sum += k;\n    __sync"),
]


@pytest.mark.parametrize(("text", "other"), [("", ""), *QUIET])
def test_what_is_meant_so_is_not_warned_of(text, other):
    assert text in TEXT
    assert warnings(TEXT.replace(text, other, 1)) == ""


@pytest.mark.parametrize("before", ["    ", "    __shared__ ", "    float a[4]; "])
def test_what_is_read_as_quads_begins_at_a_multiple_of_16_bytes(before):
    text = f"{before}float own[2][4] = {{}};\n    quad(&own[0][i]) = quad(&x[i]);\n"
    (said,) = suspicions.sentences("", "f.cu", text)
    assert said.startswith("f.cu:1: warning: own is read as quads, 16 bytes at once, and may begin")
    assert (
        suspicions.sentences("", "f.cu", text.replace("float own", "alignas(16) float own")) == ()
    )


def test_what_is_kept_of_a_build_has_its_warnings():
    text = TEXT.replace("i < n)", "i = n)", 1)
    assert warnings(text) == warnings(text) != ""


def test_the_first_few_are_told():
    text = TEXT.replace(
        "    __sync", "    i == 1;\n    i == 2;\n    i == 3;\n    i == 4;\n    __sync"
    )
    assert len(warnings(text).splitlines()) == suspicions.SHOWN


def test_an_error_is_told_without_warnings():
    text = TEXT.replace("i < n)", "i = n)", 1).replace("half_of(x[i])", "half_of(x[i)")
    with pytest.raises(CompileError) as failure:
        compile_cuda(text, "f", backend="emulator")
    assert "warning" not in str(failure.value) and "In instantiation" not in str(failure.value)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_of_a_kernel_that_nvcc_compiled_the_same_is_told(monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0a")
    text = TEXT.replace("i < n)", "i = n)", 1)
    kernel = compile_cuda(text, "f", backend="cuda", first_line=2)
    assert kernel.warnings == ""
    assert instrumented.warnings(kernel).startswith("f.cu:9: warning: `=` stores a value")


def test_a_cell_for_a_card_is_told_of_warnings_too(monkeypatch, capsys):
    shell, compiled = InteractiveShell(), []
    monkeypatch.setattr(magics.settings, "backend", lambda: "cuda")
    monkeypatch.setattr(magics.card, "cell", lambda begins: None)
    monkeypatch.setattr(magics.pool, "prestart", lambda: None)
    monkeypatch.setattr(magics.warmup, "start", lambda: None)
    on_card = compile_cuda(TEXT, "f", backend="emulator", first_line=2)

    def for_a_card(text, name, **how):
        """What nvcc makes of the text, of which it says nothing."""
        compiled.append(text)
        return replace(on_card, source=text, backend="cuda", library=Path("nowhere/f.so"))

    monkeypatch.setattr(magics, "compile_cuda", for_a_card)
    magics.load(shell)
    shell.run_cell_magic("cuda", "f", TEXT)
    assert compiled and "warning" not in capsys.readouterr().out
    shell.run_cell_magic("cuda", "f", TEXT.replace("i < n)", "i = n)", 1))
    assert "f.cu:9: warning: `=` stores a value; `==` compares" in capsys.readouterr().out


def test_a_failure_has_the_warning_in_front_of_what_it_shows():
    exercise = catalog.load("01_naive_gemm/gemm_naive")
    text = catalog.solution_text(exercise).replace("row < M && col < N", "row < M, col < N")
    with pytest.raises(CheckFailed) as failure:
        check(compile_wrong(exercise, text, "comma"), seed=1)
    lines = str(failure.value).splitlines()
    assert "warning: of two expressions with a comma between them" in lines[1]
    assert "access outside of an array" in lines[2]
