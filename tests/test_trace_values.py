"""`trace(kernel)` shows what one thread reads and stores, line by line, in the order of its run."""

import pytest
import torch

from utils import trace
from utils.course import catalog
from utils.course.answers import compile_answer
from utils.cuda.compiler import compile_cuda
from utils.emulator.translate import telling
from utils.ground.errors import WorkbookError
from utils.watch.values import values

TEXT = """struct Pair { float value; int column; };
__device__ float half_of(float x) { return x / 2; }
__global__ void k_kernel(const float* x, float* out, int n) {
    __shared__ float s[2][32];
    int t = threadIdx.x, row = 1;
    const float* from = x + 32 * blockIdx.x;
    s[row][t] = from[t];
    float sum = 0.0f, more[2] = {1.0f, 2.0f};
    for (int i = 0; i < 2; i++) sum += s[row][t] * more[i];
    if (t < n) sum = half_of(sum); else sum = -1;
    Pair pair;
    pair.value = sum;
    float4 four = make_float4(1, 2, 3, sum);
    bool odd = t % 2 == 1;
    float& mine = out[32 * blockIdx.x + t];
    mine = odd ? pair.value : four.x;
}
void k(const float* x, float* out, int n) {
    int blocks = 2;
    k_kernel<<<blocks, 32>>>(x, out, n);
}
"""


@pytest.fixture(scope="module")
def lines():
    """What thread 3 of block 1 tells."""
    kernel = compile_cuda(TEXT, "k", backend="emulator", first_line=2)
    arguments = {"x": torch.arange(64.0), "out": torch.zeros(64), "n": 5}
    return values(kernel, arguments, (1, 0, 0), (3, 0, 0))


def test_values_come_with_their_lines_in_the_order_of_the_run(lines):
    assert [(value.line, value.name, value.value) for value in lines] == [
        (6, "t", "3"), (6, "row", "1"),
        (8, "from[3]", "35"), (8, "s[1][3]", "35"),
        (9, "sum", "0"),
        (10, "i", "0"), (10, "s[1][3]", "35"), (10, "more[0]", "1"), (10, "sum", "35"),
        (10, "i", "1"), (10, "s[1][3]", "35"), (10, "more[1]", "2"), (10, "sum", "105"),
        (10, "i", "2"),
        (3, "returned", "52.5"), (11, "sum", "52.5"),
        (13, "pair.value", "52.5"),
        (14, "four", "(1, 2, 3, 52.5)"),
        (15, "odd", "true"),
        (17, "mine", "52.5"),
    ]  # fmt: skip


def test_a_text_keeps_its_lines_and_its_host_functions():
    text = telling.tell(TEXT, 2, (0, 0, 0), (0, 0, 0))
    body = text[text.index("struct Pair") :]
    assert body.count("\n") == TEXT.count("\n")
    assert body[body.index("void k(const") :] == TEXT[TEXT.index("void k(const") :]


@pytest.mark.parametrize(
    "statement",
    ["int a[2] = {1, 2};", "float& r = x[0];", "static int c = 3;", "if (x[0] == 1) return;",
     "if (n <= 2 || n >= 3 || n != 4) {}", "++x[n++];"],
)  # fmt: skip
def test_what_cannot_be_wrapped_is_left_as_it_is(statement):
    line = f"__global__ void k(float* x, int n) {{ {statement} }}\n"
    assert telling.tell(line, 1, (0, 0, 0), (0, 0, 0)).endswith(line)


def test_a_table_shows_a_thread_of_an_exercise():
    exercise = catalog.load("01_naive_gemm/gemm_naive")
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
    table = trace(kernel, thread=(1, 0), block=0, M=2, N=2, K=3)
    first, *_, last = table.rows
    assert first[0] == "5" and first[2] == "row = 1" and "threadIdx.x" in first[1]
    assert last[2].startswith("C[2] = ") and "thread (1, 0) of block 0" in table.caption
    with pytest.raises(WorkbookError, match="thread 0 of block 9 .* stores no value"):
        trace(kernel, block=9)


def test_a_long_run_is_cut_in_the_middle():
    exercise = catalog.load("01_naive_gemm/gemm_naive")
    kernel = compile_answer(exercise, catalog.solution_text(exercise), backend="emulator")
    rows = trace(kernel, K=100).rows
    assert rows[40][2].endswith("lines left out") and rows[-1][2].startswith("C[0] = ")


def test_a_starter_is_not_traced(capsys):
    exercise = catalog.load("01_naive_gemm/gemm_naive")
    kernel = compile_answer(exercise, catalog.starter_text(exercise), backend="emulator")
    assert trace(kernel) is None and "not attempted" in capsys.readouterr().out


@pytest.mark.parametrize("captured", ["[=]", "[=, &n]", "[half = n / 2]", "[&, m = n]"])
def test_what_a_lambda_captures_is_no_assignment(captured):
    text = (
        "__global__ void k(int n, int* y) {\n  auto f = " + captured + "(int i) { y[i] = 1; };\n}"
    )
    assert captured in telling.tell(text, 1, (0, 0, 0), (0, 0, 0))


def test_a_statement_without_its_end_is_left_to_the_compiler():
    text = "__global__ void k(int n) { return n }"
    assert "return" in telling.tell(text, 1, (0, 0, 0), (0, 0, 0))
