"""What an answer's text must not hold is refused by name and line, in whatever spelling."""

import re

import pytest

from utils.course import catalog
from utils.course.answers import compile_answer
from utils.emulator.translate import strict
from utils.ground.errors import CompileError
from utils.ground.paths import workspace

KERNEL = """__global__ void k(float* x) {
    x[threadIdx.x] = 1;
}
"""


def said(text: str) -> str:
    """The objection to a text, without its place, which is checked: it begins at line 2."""
    try:
        strict.judge(text, filename="k.cu", first_line=2, include=workspace().include)
    except CompileError as error:
        line, message = re.fullmatch(r"k\.cu:(\d+): error: ([^\n]+)", str(error)).groups()
        assert 2 <= int(line) < 2 + len(text.splitlines())
        return f"{line}: {message}"
    return ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # attributes
        ("__attribute__((no_sanitize_thread)) void f();", "2: __attribute__: an attribute of one"),
        ("\n__attribute((noinline)) void f();", "3: __attribute: an attribute of one compiler"),
        ("[[gnu::no_sanitize_thread]] void f();", "[[gnu::…]] is an attribute of one compiler"),
        ("[[using gnu: noinline]] void f();", "[[using …]] is an attribute of one compiler"),
        ("[ [__gnu__::cold]] void f();", "[[__gnu__::…]]"),
        ("[[maybe_unused, gnu::cold]] void f();", "[[gnu::…]]"),
        ("#define NO __attribute__((no_sanitize_thread))", "2: __attribute__"),
        ("#if 0\n#else\nvoid f() __attribute__((cold));\n#endif", "4: __attribute__"),
        ("#if 0 == 0\nvoid f() __attribute__((cold));\n#endif", "3: __attribute__"),
        ("#if 0 /* a */ + 1\nvoid f() __attribute__((cold));\n#endif", "3: __attribute__"),
        # assembly
        ('void f() { asm("nop"); }', "asm: inline assembly has no place in an answer"),
        ('void f() { __asm__ volatile("nop"); }', "__asm__: inline assembly"),
        ('void f() asm("emu_watch_end");', "asm: inline assembly"),
        # builtins and intrinsics
        ("void f(float* x) { __builtin_memcpy(x, x + 8, 4); }", "__builtin_memcpy.*; write memcpy"),
        ("void f(int* x) { __sync_lock_release(x); }", "__sync_lock_release"),
        ("void f(int* x) { __atomic_store_n(x, 1, 0); }", "__atomic_store_n"),
        ("void f(float* x) { _mm_stream_si32(x, 1); }", "_mm_stream_si32"),
        ("void f() { __builtin_ia32_pause(); }", "__builtin_ia32_pause"),
        ("void f(float* x) { (memcpy)(x, x + 1, 4); }", "memcpy can be called, but not passed on"),
        ("auto copy = &memcpy;", "memcpy can be called"),
        ("void f(float* x) { auto c = memset; c(x, 0, 4); }", "memset can be called"),
        # those who watch
        ('extern "C" void __tsan_write4(void*) {}', "__tsan_write4"),
        ('extern "C" void emu_watch_end();', "emu_watch_end: names that begin so belong"),
        ("void f() { emu::core(); }", "emu: names that begin so"),
        ("EMU_SHARED(x)", "EMU_SHARED: names that begin so"),
        ("#ifdef EMU_INSTRUMENTED\n#endif", "2: EMU_INSTRUMENTED"),
        ("#ifdef WORKBOOK_EMULATOR\n#endif", "WORKBOOK_EMULATOR"),
        ("#ifdef __SANITIZE_THREAD__\n#endif", "__SANITIZE_THREAD__"),
        ('extern "C" int workbook_run(const unsigned long long*);', "workbook_run"),
        ("void f() { stdout->_fileno = 5; }", "_fileno"),
        # the preprocessor
        ("#pragma GCC optimize(\"O3\")", '#pragma GCC optimize("O3") has no place'),
        ("#pragma weak f = g", "#pragma weak f = g has no place"),
        ("#pragma redefine_extname f g", "#pragma redefine_extname"),
        ('_Pragma("GCC poison x")', "_Pragma: a pragma"),
        ('#include "../../solutions/00_start_here/swish.cu"', "none of the headers that an answer"),
        ('#include "/proc/self/environ"', "none of the headers"),
        ("#include <unistd.h>", "unistd.h is none of the headers"),
        ("#include <dlfcn.h>", "dlfcn.h is none of the headers"),
        ("#include <immintrin.h>", "immintrin.h is none of the headers"),
        ("#include <thread>", "thread is none of the headers"),
        ("#include HEADER", "#include needs a header's name"),
        ('#include_next "reduce.cuh"', "#include_next has no place"),
        ("#import <cmath>", "#import has no place"),
        ('#line 1 "reduce.cuh"', "#line has no place"),
        ('# 1 "reduce.cuh" 3', "has no place in an answer"),
        ('#if __has_include("x")\n#endif', "__has_include"),
        ("#define memcpy(a, b, c) a", "memcpy has a meaning in CUDA"),
        ("#undef memcpy", "memcpy has a meaning in CUDA"),
        ("#define __syncthreads() 0", "__syncthreads has a meaning in CUDA"),
        ("#define __global__ static", "__global__ has a meaning in CUDA"),
        # other spellings
        ("void f() { a\\\nsm(); }", "2: a line may be continued"),
        ("#define A a\\\nsm", "a name is broken by"),
        ("void f() { \\u0061sm(); }", "a \\ stands outside of a string"),
        ("%:define A 1", "%: is another way to write"),
        ("void f() <% %>", "<% is another way to write"),
        ("int x<:3];", "<: is another way to write"),
        ('const char* s = R"(asm)";', "a raw string has no use"),
        ("int x;\x00", "a control character, number 0"),
        ("#define J(a, b) a##b\nJ(as, m)(\"nop\");", "2: ## makes a name: asm: inline assembly"),
        ("#define J(a, b) a##b\nJ(em, u_watch_end)();", "## makes a name: emu_watch_end"),
        ("#define J(a, b) a##b\nJ(_, _tsan_read4)();", "_tsan_read4"),
        ("#define J(a, b) a##b\n#define A at\n#define I(a, b) J(a, b)\nI(_, J(_, y))", "__y"),
        ("#define J(a, b) a##b\n#if 1\n#define P as\n#else\n#define P x\n#endif", "P is defined"),
        ("#define J(a, b) a##b\n#undef J\n#define J(a, b) a b\n", "J is defined twice"),
    ],
)  # fmt: skip
def test_what_could_switch_the_diagnosis_off_is_refused(text, message):
    assert re.search(message if ".*" in message else re.escape(message), said(text)), said(text)
    after = said(KERNEL + text)
    assert after, "also behind a kernel"


@pytest.mark.parametrize(
    "text",
    [
        "#pragma unroll 4\n#pragma GCC unroll 8\n#pragma nv_diag_suppress 177\n#pragma once",
        "#include <vector>\n#include <cooperative_groups/reduce.h>\n#include <cuda_fp16.h>",
        '#include "reduce.cuh"  // a comment\n#include /* too */ <cmath>',
        "#define KERNEL(name, e) __global__ void name##_k(float* x) { x[0] = e; }\nKERNEL(a, 1)",
        "#define MAX(a, b) \\\n    ((a) > (b) ? (a) : (b))\n",
        "#define X 4\n#undef X\n#define X 5\n#define max(a, b) a\n#undef max",
        "[[nodiscard]] [[maybe_unused]] int f(); alignas(16) float x[4];",
        "int a[3] = {[](int i) { return i; }(1)}; int b = a[a[0]];",
        'const char* s = "asm __attribute__ emu_ \\" \\n";  // asm, __builtin_memcpy\n/* emu:: */',
        "char c = '\\'', d = '\"'; int n = 1'000'000;",
        'const char *r = "R", *row = "Row %d", *u = u8"Row"; char c = \'R\';',
        'const char* s = "Row";\r\n#define MAX(a, b) \\\r\n    ((a) > (b) ? (a) : (b))\r\n',
        "template <class T> struct A { A<::std::pair<T, T>>* next; };",
        "int x = 5 %3; bool y = x<0 ? true : false; float emulated, workbooks, asmany, _mine;",
        "__global__ void __launch_bounds__(256, 2) k(const float* __restrict__ x) { __ldg(x); }",
        "__device__ __noinline__ float f(half h) { return __half2float(h) + __fmaf_rn(1, 2, 3); }",
        "void f() { if (__builtin_expect(cudaGetLastError() != 0, 0)) printf(__func__); }",
        "#if __CUDA_ARCH__ >= 800 || defined(__CUDACC__)\n#endif\n#ifndef NDEBUG\n#endif",
        "void f(float* x) { memcpy(x, x + 1, 4); std::memset(x, 0, 4); }",
        "\ufeffint é; // Latin-1 and others\r\nint b;\r\n",
    ],
)
def test_what_is_only_unusual_passes(text):
    assert said(text) == "" and said(KERNEL + text.removeprefix("\ufeff")) == ""


def test_starters_and_solutions_pass():
    for exercise in catalog.exercises():
        assert said(catalog.solution_text(exercise)) == said(catalog.starter_text(exercise)) == ""


AXPY = """
__global__ void swish_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (1 + expf(-x[i]));
}
%s
void swish(const float* x, float* out, int n) {
    %s;
    swish_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}
"""


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ('extern "C" int fork();', "fork()", "swish.cu:7: error: fork is called, which an answer"),
        ('extern "C" long syscall(long, ...);', "syscall(57)", "syscall is called"),
        ("namespace std { class thread { public: void detach(); }; }", "std::thread t; t.detach()",
         "std::thread is called"),
        ('extern "C" void free(void*) noexcept {}', "", "free is defined here"),
        ("struct A { A() { getenv(\"HOME\"); } } a;", "", "swish.cu:7: error: getenv is called"),
    ],
)  # fmt: skip
def test_what_is_called_behind_the_texts_back_is_seen_in_the_library(before, call, message):
    with pytest.raises(CompileError, match=re.escape(message)):
        compile_answer(catalog.load("00_start_here/swish"), AXPY % (before, call))


def test_a_launcher_may_use_containers_printf_and_exit():
    text = "#include <algorithm>\n#include <string>\n#include <vector>\n#include <map>\n" + AXPY % (
        "struct Table { std::map<int, std::string> names; } table;",
        'std::vector<int> v(3, n); std::sort(v.begin(), v.end()); table.names[n] = "n";\n'
        '    if (v[0] < 0) { fprintf(stderr, "%s", table.names[n].c_str()); exit(int(sqrtf(n))); }',
    )
    compile_answer(catalog.load("00_start_here/swish"), text)
