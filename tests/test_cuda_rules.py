"""What nvcc refuses and g++ would take is refused; what nvcc takes is not. nvcc 13.0 was asked."""

import re

import pytest

from utils.emulator.translate.rewriter import rewrite
from utils.ground.errors import CompileError


def said(text: str, tmp_path=None) -> str:
    try:
        rewrite(text, filename="k.cu", include_dirs=[tmp_path] if tmp_path else [])
    except CompileError as error:
        return str(error)
    return ""


HOST = "'f' has no __device__, so it is a host function"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # host functions
        ("float f(float x) { return x; }\n__global__ void k(float* o) { *o = f(1); }",
         "k.cu:2.*" + HOST),
        ("__global__ void k(float* o);\nvoid k2(float*);\nfloat f(float x);\n"
         "__global__ void k(float* o) {\n  *o = f(1); }", "k.cu:5.*" + HOST),
        ("template <class T> T f(T x) { return x; }\n__global__ void k(float* o) { *o = f(1); }",
         HOST),
        ("template <class T> T f(T x) { return x; }\n__global__ void k(int* o) { *o = f<int>(1); }",
         HOST),
        ("inline float f() { return 1; }\n__device__ float g() { return f(); }", HOST),
        ("namespace a { float f() { return 1; } __global__ void k(float* o) { *o = f(); } }", HOST),
        ("#define DEVICE\nDEVICE float f() { return 1; }\n"
         "__global__ void k(float* o) { *o = f(); }",
         HOST),
        ("struct S { float f() { return 1; } };\n__global__ void k(S s, float* o) { *o = s.f(); }",
         HOST),
        ("float f() { return 1; }\n__global__ void k(float* o) { auto g = [&] { return f(); }; }",
         HOST),
        # the host's library
        ("#include <vector>\n__global__ void k(float* o) { std::vector<float> v(3); }",
         "std::vector is for"),
        ("#include <algorithm>\n__global__ void k(float* o) { std::sort(o, o + 9); }",
         "std::sort is for"),
        ("#include <algorithm>\nusing namespace std;\n"
         "__global__ void k(float* o) { sort(o, o + 9); }",
         "std::sort is for the host: it has no place in a kernel"),
        ("__device__ void g(float* a) { std::copy(a, a + 3, a + 5); }",
         "std::copy is for the host"),
        ("__global__ void k(float* o) { o[0] = rand(); }",
         "rand is a function of the host's library"),
        ("__global__ void k() { exit(0); }", "exit is a function of the host's library"),
        ('__global__ void k() { fprintf(stderr, "x"); }', "fprintf is a function of the host's"),
        ("__global__ void k(char* o) { strcpy(o, \"x\"); }", "strcpy is a function of the host's"),
        ("__global__ void k() { throw 1; }", "there are no exceptions on the device"),
        # host variables
        ("float scale = 3;\n__global__ void k(float* o) { *o = scale; }",
         "'scale' is a variable of the host"),
        ("static int n, m[4];\n__global__ void k(int* o) { *o = 2 * m[1]; }",
         "'m' is a variable of"),
        ("namespace { float* kept = nullptr; }\n__global__ void k(float* o) { kept[0] = *o; }",
         "'kept' is"),
        ("const char* text = \"x\";\n__global__ void k() { printf(text); }",
         "'text' is a variable of"),
        # launches
        ("void f(float* o) { *o = 1; }\nvoid l(float* o) { f<<<1, 1>>>(o); }",
         "k.cu:2: error: 'f' is launched, but it is no kernel: it has no __global__"),
        ("template <int N> void f(int* o) { *o = N; }\nvoid l(int* o) { f<3><<<1, 1>>>(o); }",
         "'f' is launched, but it is no kernel"),
        ("__device__ void f(float* o) { *o = 1; }\nvoid l(float* o) { f<<<1, 1>>>(o); }",
         "'f' is launched"),
        ("__global__ void f(float* o) { *o = 1; }\nvoid l(float* o) { f(o); }",
         "'f' is a kernel: it is"),
        ("__device__ float f() { return 1; }\nfloat l() { return f(); }",
         "'f' is a __device__ function"),
        # kernels
        ("__global__ int k(float* o) { return 1; }",
         "'k' is a __global__ function and must return void"),
        ("__global__ void k(float& o) { o = 1; }", "'k' takes 'float& o' by reference"),
        ("__global__ void k(int n, const float (&o)[3]) { }", ""),
    ],
)  # fmt: skip
def test_what_nvcc_refuses_is_refused(text, message):
    assert re.search(message.replace("(", r"\("), said(text), re.DOTALL), said(text)


@pytest.mark.parametrize(
    "text",
    [
        "__host__ __device__ float f() { return 1; }\n__global__ void k(float* o) { *o = f(); }\n"
        "float h() { return f(); }",
        "#define HD __host__ __device__ __forceinline__\nHD float f() { return 1; }\n"
        "__global__ void k(float* o) { *o = f(); }\nfloat h() { return f(); }",
        "float f(float x);\n__device__ float f(int x) { return x; }\n"
        "__global__ void k(float* o) { *o = f(1); }",
        "constexpr int f(int x) { return x; }\n__global__ void k(int* o) { *o = f(3); "
        "int a[f(3)]; }",
        "int n = 3, x = 4;\n__global__ void k(int* o, int n) { int x = 4; o[0] = n + x; }",
        "float v[4];\n__global__ void k(float* o) { float v[4]; v[0] = 1; "
        "auto [a, b] = float2{1, 2}; }",
        "const float scale = 3, eps = 1e-5f; constexpr float a[2] = {1, 2}; const int N = 3;\n"
        "__global__ void k(float* o) { o[N] = scale + eps; }",
        "__device__ float d; __constant__ float c[4]; __managed__ int m;\n"
        "__global__ void k(float* o) { *o = d + c[1] + m; }",
        "struct S { float x; __device__ float f() const { return x; } S() = default; };\n"
        "__global__ void k(S s, float* o) { *o = s.f(); o[1] = S().x; }",
        "struct A { float f(); };\nstruct B { __device__ float f(); };\n"
        "__global__ void k(B b, float* o) { *o = b.f(); }",
        "struct T { int size() { return 1; } };\n__global__ void k(int* o) { auto t = "
        "cooperative_groups::this_thread_block(); *o = t.size(); t.sync(); }",
        "template <class F> __global__ void k(F f, float* o) { *o = f(1.0f); }\n"
        "void l(float* o) { auto f = [] __device__(float x) { return x; }; k<<<1, 1>>>(f, o); }",
        "float f(float x) { return x; }\n"
        "template <float (*f)(float)> __global__ void k(float* o);\n"
        "__global__ void k2(float* o) { auto f = [](float x) { return x; }; *o = f(1); }",
        "__global__ void k(float* o) { float* p = new float[2]; delete[] p; free(malloc(4)); }",
        "__global__ void k(float* o) { *o = std::sqrt(std::fmax(o[1], 2.f)) + std::abs(o[2]); "
        "memcpy(o, o + 1, 4); }",
        "void l(void (*f)(float*), float* o) { f<<<1, 1>>>(o); }\nvoid f(float*);",
        "__global__ void f(float*); void l(float* o) { auto g = f; g<<<1, 1>>>(o); "
        "void* p = (void*)f; }",
        "UNKNOWN float f() { return 1; }\n__global__ void k(float* o) { *o = f(); }",
        'extern "C" { __global__ void k(int* o) { *o = 1; } }\nvoid l(int* o) { k<<<1, 1>>>(o); }',
        "static __global__ __launch_bounds__(256) void k(float* o) { *o = 1; }\n"
        "void l(float* o) { k<<<1, 1>>>(o); }",
        "__global__ auto k(float* o) -> void { *o = 1; }\nvoid l(float* o) { k<<<1, 1>>>(o); }",
        "template <class T> struct R { static __device__ T copy(T x) { return x; } };\n"
        "__global__ void k(int* o) { *o = R<int>::copy(1); }",
        "int time(int); void sleep(); __device__ int sleep(int);\n"
        "__global__ void k(int* o) { *o = sleep(1); }",
        "enum E { A, B }; int x[] = {1, 2};\nusing F = float;\n__global__ void k(F* o) { *o = A; }",
        "int count;\n__host__ __device__ int f() {\n#ifdef __CUDA_ARCH__\n return 1;\n#else\n"
        " return count;\n#endif\n}",
        "class C { public: C() : x{1}, y{2} { } int x, y; void run() { } };\nC c;\n"
        "__global__ void k(C d) { d.x = 1; }",
        "__global__ void k(float* __restrict__ x, float (*r)[16], int n = 3) { r[0][1] = x[n]; }",
        "template <class... A> __global__ void k(A... a) { }\nvoid l() { k<<<1, 1>>>(1, 2); }",
        "#define KERNEL(name, e) __global__ void name(float* o) { *o = e; }\nKERNEL(k, 1)\n"
        "void l(float* o) { k<<<1, 1>>>(o); }",
    ],
)
def test_what_nvcc_takes_is_taken(text):
    assert said(text) == ""


def test_what_a_header_declares_counts(tmp_path):
    (tmp_path / "own.cuh").write_text(
        "__device__ float f() { return 1; }\nfloat g() { return 1; }\n"
    )
    text = '#include "own.cuh"\n__global__ void k(float* o) { *o = %s(); }'
    assert said(text % "f", tmp_path) == ""
    assert "'g' has no __device__" in said(text % "g", tmp_path)


CONSTEXPR = "constexpr int f(int v) { return v; }\n"
KERNEL = "__global__ void k(float* x) { %s }"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONSTEXPR + KERNEL % "x[f(2)] = 1;", "'f' has no __device__.*though constexpr"),
        (CONSTEXPR + KERNEL % "constexpr int m = f(2); x[m] = 1;", "though constexpr"),
        (KERNEL % "x[0] = std::max(x[1], 2.0f);", "std::max is for the host, though constexpr"),
        (KERNEL % "x[0] = std::min<float>(x[1], 2);", "std::min is for the host"),
        (KERNEL % "x[0] = std::numeric_limits<float>::infinity();", "std::numeric_limits is for"),
    ],
)
def test_a_constexpr_function_of_the_host_needs_a_flag(text, message):
    with pytest.raises(CompileError, match=message):
        rewrite(text, filename="k.cu", relaxed=False)
    assert said(text) == ""  # with --expt-relaxed-constexpr


@pytest.mark.parametrize(
    "text",
    [
        "__device__ " + CONSTEXPR + KERNEL % "x[f(2)] = 1;",
        CONSTEXPR + KERNEL % "x[sizeof(f(2))] = 1;",
        CONSTEXPR + "constexpr int m = f(2);\n" + KERNEL % "x[m] = std::fmax(x[1], 1.0f);",
        KERNEL % "constexpr auto square = [](int v) { return v * v; }; x[square(2)] = 1;",
        KERNEL % "x[std::numeric_limits<float>::digits] = max(x[0], x[1]);",
        CONSTEXPR + "void g(float* x) { x[f(2)] = std::max(x[0], x[1]); }",
    ],
)
def test_what_needs_no_flag_is_taken(text):
    rewrite(text, filename="k.cu", relaxed=False)
