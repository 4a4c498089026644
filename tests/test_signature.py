"""Launchers are found in CUDA text, and what Python cannot call is refused by name."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from utils.cuda.signature import POINTERS, SCALARS, parse_launcher
from utils.ground.errors import DeclarationError

GEMM = """
// void gemm(int wrong);
#include <cstdio>
#define LAUNCH(n) void gemm(float n) {
__global__ void gemm_kernel(const float* A, float* C, int n) { if (n) { C[0] = A[0]; } }
/* void gemm(double* x) {} */
const char* text = "void gemm(bool b) {";

void gemm(const float* __restrict__ A,
          float* const B, int M,  // rows
          std::size_t N, cudaStream_t stream)
{
    gemm_kernel<<<1, 32, 0, stream>>>(A, B, M);
}
"""


def test_a_launcher_is_found_among_kernels_comments_strings_and_macros():
    A, B, M, N, stream = parse_launcher(GEMM, "gemm")
    assert (A.name, A.ctype, A.is_tensor, A.is_const) == ("A", "const float*", True, True)
    assert (B.name, B.ctype, B.is_const, B.dtype) == ("B", "float*", False, torch.float32)
    assert (M.ctype, M.is_tensor, M.code) == ("int", False, "i")
    assert (N.ctype, N.code) == ("size_t", "Q")
    assert stream.is_stream and not M.is_stream


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" void f(float* x) {}',
        'extern "C" { void f(float* x) {} }',
        "static inline void f(float* x) noexcept {}",
        "namespace { void helper() {} void f(float* x) {} }",
        "__host__ void\nf\n(\nfloat\n*\nx\n)\n{ }",
        "void f(float* x);\nint g() { return 1; }\nvoid f(float* y_is_x) {}",
        "struct S { void f(int a) {} };\nvoid f(float* x) {}",
        "[[maybe_unused]] void f(float *x) {}",
        'const char* s = R"(void f(int) {)";\nvoid f(float* x) { auto g = [](int a) {}; }',
        "float table[] = {1, 2};\nint y = int(3);\nvoid f(float* x) {}",
        "auto f(float* x) -> void {}",
        "void f(float* x) noexcept(true) {}",
        "void f(float* x) __attribute__((noinline));",
        "DECLARE(g)\nvoid f(float* x) {}",
        "#if 0\nvoid f(int a) {}\n#endif\nvoid f(float* x) {}",
        "#ifdef A\nvoid g() {\n#else\nvoid g(int a) {\n#endif\n}\nvoid f(float* x) {}",
        "// goes on \\\nvoid f(int a) {}\nvoid f(float* x) {}",
        "int a = 1'000; char b = '{';\nvoid f(float* x) {}",
        "#define A /*\nvoid f(int a) { */ 1\nvoid f(float* x) {}",
        "void S::f(int a) {}\nvoid f(float* x) {}",
    ],
)
def test_a_launcher_may_be_written_in_many_ways(text):
    (x,) = parse_launcher(text, "f")
    assert x.ctype == "float*"


@pytest.mark.parametrize("element", POINTERS)
@pytest.mark.parametrize("form", ["const {}* x", "{} const *__restrict__ x", "const {}\n*\nx"])
def test_every_pointer_type_is_read_with_its_dtype(element, form):
    (x,) = parse_launcher(f"void f({form.format(element)}) {{}}", "f")
    assert x.is_const and x.dtype is POINTERS[element] and x.ctype == f"const {element}*"


@pytest.mark.parametrize("value", SCALARS)
def test_every_value_type_is_read(value):
    (x,) = parse_launcher(f"void f(const {value} x) {{}}", "f")
    assert not x.is_tensor and x.code == SCALARS[value]


@pytest.mark.parametrize(
    ("spelled", "means"),
    [
        ("unsigned int", "unsigned"),
        ("long long int", "long long"),
        ("unsigned long long int", "unsigned long long"),
        ("long unsigned", "unsigned long"),
        ("signed int", "int"),
        ("std::int64_t", "int64_t"),
        ("::std::size_t", "size_t"),
    ],
)
def test_other_spellings_of_a_type_are_the_same_type(spelled, means):
    (x,) = parse_launcher(f"void f({spelled} x) {{}}", "f")
    assert x.ctype == means


@pytest.mark.parametrize(
    ("parameter", "complaint"),
    [
        ("int n = 4", "default argument"),
        ("float** rows", "not supported"),
        ("float& x", "not supported"),
        ("std::vector<float> x", "not supported"),
        ("Table<(2 > 1), 3> x", "not supported"),
        ("float x[]", "not supported"),
        ("float4* x", "cannot pass"),
        ("void* x", "cannot pass"),
        ("torch::Tensor x", "cannot pass"),
        ("dim3 grid", "cannot pass"),
        ("float*", "has no name"),
        ("int", "has no name"),
        ("unsigned int", "has no name"),
    ],
)
def test_a_parameter_that_python_cannot_pass_is_named(parameter, complaint):
    with pytest.raises(DeclarationError, match=complaint) as error:
        parse_launcher(f"void f(float* out, {parameter}) {{}}", "f")
    assert f"parameter 2 `{parameter}`" in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("void g(int n) {} void h() {}", "host functions found: g, h"),
        ("__global__ void f(float* x) {}", "host functions found: none"),
        ("__device__ __forceinline__ void f(float* x) {}", "found: none"),
        ("__global__ void __launch_bounds__(256) f(float* x) {}", "found: none"),
        ("", "there is no launcher `void f"),
        ("int f(float* x) { return 0; }", "must return void, not int"),
        ("auto f(float* x) -> Rows<int> {}", "must return void, not Rows<int>"),
        ("template <typename T> void f(T* x) {}", "must not be a template"),
        ("void f(float* x) {} void f(double* x) {}", "several functions"),
        ("void f(float* x, int x) {}", "same name"),
        ("void f(cudaStream_t s, float* x) {}", "must be the last"),
        ("struct S { void f(float* x) {} };", "there is no launcher"),
        ("namespace mine { void f(float* x) {} }", "there is no launcher"),
    ],
)
def test_a_text_without_a_callable_launcher_is_refused(text, complaint):
    with pytest.raises(DeclarationError, match=complaint):
        parse_launcher(text, "f")


def test_a_launcher_may_take_nothing():
    assert parse_launcher("void f() {}", "f") == parse_launcher("void f(void) {}", "f") == ()


@given(st.text(alphabet="{}();\"'/*\n\\ #<>abR=,", max_size=60))
def test_no_text_breaks_the_reader(text):
    try:
        parse_launcher(text, "a")
    except DeclarationError:
        pass


def test_a_text_that_is_compiled_twice_is_read_once():
    source = "void f(const float* x, int n) {}"
    assert parse_launcher(source, "f") is parse_launcher(source, "f")
    assert parse_launcher(source.replace("int n", "long n"), "f")[1].ctype == "long"
