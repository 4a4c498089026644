"""The rewriter changes launches and shared memory, and nothing else, and moves no line."""

import re
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from utils.emulator.build import include_dir
from utils.emulator.translate.rewriter import rewrite
from utils.emulator.translate.tokens import tokenize
from utils.ground.errors import CompileError


def body(source: str, **options) -> str:
    """The rewritten text without the two lines that go in front of it."""
    return rewrite(source, filename="cell.cu", **options).text.split("\n", 2)[2]


def launch(config: str, label: str, kernel: str, *arguments: str) -> str:
    call = f"[&](auto&&... emu_args) {{ {kernel}(emu_args...); }}"
    return f'::emu::launch(::emu::Config({config}), "{label}", {", ".join((call, *arguments))})'


LITERALS = [
    '"k<<<1, 2>>>(x)"', '"\\"<<<"', 'R"(k<<<1>>>(x); __shared__)"', 'LR"a(")" <<<)a"', "'<'",
    "'\\''", "u8\"'\"", "// k<<<1, 2>>>(x)\n", "/* __shared__ float x;\n <<< */", "1'000'000",
    "0x1p-3", "1e+5f",
]  # fmt: skip
PIECES = [
    *LITERALS, "a", "float", "operator", "__global__", "__launch_bounds__(256)", "<", ">", "<<",
    ">>", "(", ")", "[", "]", "{", "}", ";", ",", "::", "->", ">=", "<=", "#", "\n#pragma unroll\n",
    "\\\n", "\n#if N < 3\n", "\n#else\n", "\n#endif\n", "\n#define F(x) (x << 1)\n", "\n", "é", "'",
    '"', "\r\n",
]  # fmt: skip
soup = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join)


@given(soup)
def test_text_without_launches_is_unchanged(text):
    code = [t.text for t in tokenize(text) if t.kind == "punct"]
    assume("<<<" not in "".join(code) and "\n#if 0" not in text)
    assert body(text) == text


@given(st.text(alphabet="ab<>(){}[];,.'\"\\#/* \n\t0R_é=&:-", max_size=60))
def test_tokens_joined_are_the_text(text):
    assert "".join(token.text for token in tokenize(text)) == text


names = st.sampled_from(["k", "ns::k", "::ns::k", "Tiled<float>::run", "object.k", "pointer->k"])
simple = st.sampled_from(
    ["n", "3", "n >> 2", "f(1, 2)", "(a > b)", "x[i]", "p->q", '">>>("', "'>'"]
)
types = st.recursive(
    st.sampled_from(["int", "float4", "4", "(7 >> 1)"]),
    lambda inner: st.lists(inner, min_size=1, max_size=2).map(lambda a: f"V<{', '.join(a)}>"),
    max_leaves=4,
)
template_arguments = st.lists(types, max_size=2).map(lambda a: f"<{', '.join(a)}>" if a else "")
values = simple | types.map(lambda t: f"{t}::value" if t.startswith("V") else t)
configs = st.lists(values, min_size=2, max_size=4).map(", ".join)


@given(
    names,
    template_arguments,
    configs,
    st.lists(values, max_size=3),
    st.sampled_from(["", " ", "\n"]),
)
def test_a_launch_keeps_its_parts(name, template, config, arguments, gap):
    source = f"if (n > 1) {name}{template}{gap}<<<{config}>>>{gap}({', '.join(arguments)}); int y;"
    label, kernel = name.replace("\n", " "), name + template
    expected = f"if (n > 1) {launch(config, label, kernel, *arguments)}; int y;"
    assert body(source).replace("\n", "").replace(" ", "") == expected.replace(" ", "")


@given(soup, names, configs, soup)
def test_lines_stay_where_they_are(before, name, config, after):
    """A marker behind any mixture of text and launches is on the line that it was on."""
    source = f"{before}\n;{name}\n<<<\n{config}\n>>> // why\n(1,\n2); MARK {after}"
    try:
        text = body(source)
    except CompileError:
        return
    assert text.count("\n") == source.count("\n")
    assert text.split("MARK")[0].count("\n") == source.split("MARK")[0].count("\n")


@given(st.sampled_from(LITERALS), st.sampled_from(LITERALS))
def test_literals_are_untouched_beside_launches(first, second):
    text = body(f"f({first}); k<<<1, {second}\n>>>({first}\n); g({second}\n);")
    assert text.count(first) >= 2 and text.count(second) >= 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("k<<<1, 2>>>();", launch("1, 2", "k", "k") + ";"),
        (
            "k<<<dim3(n >> 2), a<b>::value>>>(x);",
            launch("dim3(n >> 2), a<b>::value", "k", "k", "x") + ";",
        ),
        ("kernel<vec<int>><<<g, b>>>(x);", launch("g, b", "kernel", "kernel<vec<int>>", "x") + ";"),
        ("k<<<1, N<4>>>>(x);", launch("1, N<4>", "k", "k", "x") + ";"),
        ("k<<<1, A<B<C<1>>>(2).n>>>(x);", launch("1, A<B<C<1>>>(2).n", "k", "k", "x") + ";"),
        ("k<<<1, A<B<C<1>>>::n>>>(x);", launch("1, A<B<C<1>>>::n", "k", "k", "x") + ";"),
        ("k<<<a < b ? 1 : 2, 3>>>(x);", launch("a < b ? 1 : 2, 3", "k", "k", "x") + ";"),
        ("(*k)<<<1, 2>>>(NULL, x);", launch("1, 2", "(*k)", "(*k)", "nullptr", "x") + ";"),
        ("return ::k<<<1, 2>>>(x);", "return " + launch("1, 2", "::k", "::k", "x") + ";"),
        ("k<<<1'0, 2'0>>>(x);", launch("1'0, 2'0", "k", "k", "x") + ";"),
        ("else k<<<1, 2>>>(x);", "else " + launch("1, 2", "k", "k", "x") + ";"),
        ("if (f(x)) (k)<<<1, 2>>>(x);", "if (f(x)) " + launch("1, 2", "(k)", "(k)", "x") + ";"),
        (
            "A<T>::template run<3><<<1, 2>>>(x);",
            launch("1, 2", "A<T>::template run", "A<T>::template run<3>", "x") + ";",
        ),
        (
            "k<<<1, [&] { j<<<1, 1>>>(); return 2; }()>>>(x);",
            launch(f"1, [&] {{ {launch('1, 1', 'j', 'j')}; return 2; }}()", "k", "k", "x") + ";",
        ),
        ("std::ostream& operator<<<>(int);", "std::ostream& operator<<<>(int);"),
        ("#if 0\nk<<<1\n#else\nint x;\n#endif", "#if 0\nk<<<1\n#else\nint x;\n#endif"),
        ("if (x) return; else y();", "if (x) { emu::returns(); return; } else y();"),
        ("#define LEAVE(c) if (c) return\n", "#define LEAVE(c) if (c) return emu::returns()\n"),
        ("return 1;", "return 1;"),
        ("__noinline__ int f();", "EMU_NOINLINE int f();"),
        ("__attribute__((__noinline__)) f();", "__attribute__((__noinline__)) f();"),
    ],
)
def test_rewritten_text(source, expected):
    assert body(source) == expected


@pytest.mark.parametrize(
    ("declaration", "label"),
    [
        ("auto f = k;", "k"),
        ("auto* f = &g; auto f = space::k<int, 2>;", "space::k"),
        ("auto* const f = k;", "f"),
        ("auto f = b ? k : other;", "f"),
        ("auto f = pick(3);", "f"),
        ("void (*f)(int*) = k;", "f"),
        ("", "f"),
    ],
)
def test_a_launch_of_a_variable_is_called_by_the_kernel_that_it_holds(declaration, label):
    assert f', "{label}", [&]' in body(f"void l() {{ {declaration} f<<<1, 2>>>(x); }}")


def test_an_expression_that_yields_the_kernel_is_evaluated_once():
    assert "[&, emu_kernel = table[i++]](auto&&" in body("table[i++]<<<1, 2>>>(x);")
    assert "[&, emu_kernel = pick<3>(i++)](auto&&" in body("pick<3>(i++)<<<1, 2>>>(x);")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\n\nk<<<1, 2;", 3),
        ("int x;\nk<<<1, 2>>>;", 2),
        ("<<<<<<< HEAD", 1),
        ("\n#define L(k) \\\n k<<<1, 2", 3),
        ("\n__shared__ int x = 3;", 2),
        ("\n__shared__ int y,\nx[2] = {3, 4};", 3),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(source, line):
    with pytest.raises(CompileError, match=rf"^cell\.cu:{line + 9}: error: "):
        body(source, first_line=10)


@pytest.mark.parametrize(
    ("declaration", "macros"),
    [
        ("__shared__ float x[16][N], y;", "EMU_SHARED(x); EMU_SHARED(y);"),
        ("volatile __shared__ T* x;", "EMU_SHARED(x);"),
        ("static __shared__ typename P<T, int>::Q (*x)[3];", "EMU_SHARED(x);"),
        ("float __shared__ x[N];", "EMU_SHARED(x);"),
        ("__shared__ R<T, (3 > 2)> x, *y;", "EMU_SHARED(x); EMU_SHARED(y);"),
        ("__shared__ int (*(*x)[3])(int), y[2 * (N + 1)];", "EMU_SHARED(x); EMU_SHARED(y);"),
        ("__shared__ union { float f; int i[2]; } x;", "EMU_SHARED(x);"),
        ("__shared__ __align__(32) char x[\n3];", "EMU_SHARED(x);"),
        ("alignas(double) alignas(N) __shared__ char x[3];", "EMU_SHARED(x);"),
        ("[[maybe_unused]] __shared__ char x __attribute__((aligned(8)));", "EMU_SHARED(x);"),
        ("extern __shared__ __align__(16) T x[];", "EMU_DYNAMIC_SHARED(x);"),
        ("extern __shared__ T x[], y[][4];", "EMU_DYNAMIC_SHARED(x); EMU_DYNAMIC_SHARED(y);"),
    ],
)
def test_shared_declarations(declaration, macros):
    source = f"template <class T, int N> __global__ void k() {{ {declaration} }}"
    text = body(source)
    assert text.count("\n") == source.count("\n")
    assert text.endswith(f"{macros} }}")
    check = """
template <class A, class B> struct P { using Q = B; };
template <class A, int N> struct R {};
#define __global__
#define EMU_SHARED(name) emu_t_##name& name = *(emu_t_##name*)arena(alignof(emu_t_##name))
#define EMU_DYNAMIC_SHARED(name) EMU_SHARED(name)
char* arena(int);
"""
    use = "\ntemplate void k<float, 16>();"
    compiler = ["g++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    run = subprocess.run(compiler, input=check + text + use, text=True, capture_output=True)
    assert run.returncode == 0, run.stderr + text


def unlimited(text: str) -> str:
    """Without what holds `__constant__` arrays against their limit."""
    return re.sub(r" static_assert\(sizeof.*?\);", "", text)


def test_a_constant_that_is_only_declared_has_no_section_yet():
    code = "extern __constant__ int a[4];\n__constant__ extern int b;\n__constant__ int c;\n"
    assert (
        unlimited(body(code))
        == "extern EMU_ELSEWHERE int a[4];\nEMU_ELSEWHERE extern int b;\n__constant__ int c;\n"
    )


@pytest.mark.parametrize(
    ("declaration", "alignment"),
    [
        ("__shared__ __align__(32) char x[3];", 32),
        ("alignas(double) __shared__ char x[3];", 8),
        ("alignas(2 * N) __shared__ alignas(4) int x, y;", 32),
        ("__align__(32) __shared__ struct { T t; } x;", 32),
        ("__shared__ char x[8] __attribute__((aligned(16)));", 16),
    ],
)
def test_shared_variables_keep_their_alignment(declaration, alignment):
    source = f"constexpr int N = 16; using T = float; void k() {{ {declaration} }}"
    checks = f'static_assert(alignof(emu_t_##name) == {alignment}, "")'
    macros = f"#define EMU_SHARED(name) {checks}\n#define EMU_DYNAMIC_SHARED(name) {checks}\n"
    compiler = ["g++", "-std=c++17", "-fsyntax-only", "-DEMU_HOST=", "-x", "c++", "-"]
    run = subprocess.run(compiler, input=macros + body(source), text=True, capture_output=True)
    assert run.returncode == 0, run.stderr


def test_shared_outside_of_functions_is_told_apart():
    text = body(
        'namespace a { extern "C" { extern __shared__ int x[]; } struct S { void f() {\n'
        "__shared__ int y; } }; __shared__ int z; } void f(__shared__ int* p);"
    )
    assert re.findall(r"EMU\w+\(\w\)", text) == [
        "EMU_DYNAMIC_SHARED_GLOBAL(x)", "EMU_SHARED(y)", "EMU_SHARED_GLOBAL(z)",
    ]  # fmt: skip


def test_the_branches_of_an_if_may_each_open_the_function():
    text = body(
        "#if N\nvoid f() {\n#else\nvoid g() {\n#endif\n__shared__ int x; }\n__shared__ int y;"
    )
    assert "EMU_SHARED(x);" in text and "EMU_SHARED_GLOBAL(y);" in text


def test_macros_with_launches():
    text = body(
        "#define L(k, ...) \\\n  run_##k<float><<<1, \\\n  2>>>(__VA_ARGS__) // why\nL(a, 1);"
    )
    assert text.count("\\\n") == 2 and '"run_" #k' in text
    assert text.endswith("}(__VA_ARGS__) // why\nL(a, 1);")


def test_macros_with_shared_memory():
    text = body("#define TILE(T, name) __shared__ T name[3]")
    assert text == "#define TILE(T, name) typedef  T emu_t_##name[3]; EMU_SHARED(name)"


def test_headers_are_rewritten_once_and_found_under_their_keys(tmp_path):
    """Two headers of one name, a cycle, a path with `..`, and one in an include folder."""
    (tmp_path / "src").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "src/common.h").write_text('#pragma once\n#include "../lib/common.h"\nint a();\n')
    (tmp_path / "lib/common.h").write_text(
        '#pragma once\n#include "../src/common.h"\n#include "deep.cuh"\n'
        "void r() { k<<<1, 2>>>(); }\n"
    )
    (tmp_path / "lib/deep.cuh").write_text("__global__ void k();\n")
    unit = rewrite(
        '#include "common.h"\n#include <deep.cuh>\n#include <vector>\n#include "absent.h"\n',
        filename="main.cu",
        base_dir=tmp_path / "src",
        include_dirs=[tmp_path / "lib"],
    )
    files = [tmp_path / name for name in ("src/common.h", "lib/common.h", "lib/deep.cuh")]
    assert "#include <vector>" in unit.text and '#include "absent.h"' in unit.text
    included = re.findall(r"#include <(\w{12}/[\w.]+)>", unit.text + "".join(unit.headers.values()))
    assert set(included) == set(unit.headers) and len(unit.headers) == 3
    for path, (key, text) in zip(files, unit.headers.items(), strict=True):
        assert key.endswith(f"/{path.name}") and text.startswith(f'#line 1 "{path}"\n')
    assert "::emu::launch" in list(unit.headers.values())[1]


def test_a_linked_header_finds_what_is_beside_the_link(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store/1234.cuh").write_text('#include "beside.cuh"\n')
    (tmp_path / "linked.cuh").symlink_to("store/1234.cuh")
    (tmp_path / "beside.cuh").write_text("int x;\n")
    unit = rewrite('#include "linked.cuh"\n', filename="main.cu", base_dir=tmp_path)
    first_lines = [text.splitlines()[0] for text in unit.headers.values()]
    assert first_lines == [f'#line 1 "{tmp_path / name}"' for name in ("linked.cuh", "beside.cuh")]


def test_the_emulators_own_headers_are_left_alone(tmp_path):
    own = sorted(path.name for path in include_dir().glob("*.h"))
    assert own
    (tmp_path / own[0]).write_text("#error NVIDIA's own\n")
    unit = rewrite(f"#include <{own[0]}>\n", filename="main.cu", include_dirs=[tmp_path])
    assert not unit.headers


def test_a_lambda_does_not_copy_shared_variables():
    kernel = body(
        "void k() { __shared__ int a[4], n; auto f = [=] { return a[n]; };\n"
        " { __shared__ int b; auto g = [=, &a] { return b; }; x[0] = 1; }\n"
        " extern __shared__ int d[]; auto h = [=, this] { return d[0]; }; }"
    )
    assert "f = [=, &a, &n] {" in kernel
    assert "g = [=, &n, &b, &a] {" in kernel
    assert "h = [=, &a, &n, this] {" in kernel


BOUNDED = "%s__global__ void __launch_bounds__(%s, 2) k(int* x) {}\nvoid l() { k<<<1, 2>>>(x); }\n"


@pytest.mark.parametrize(
    ("before", "bound", "within"),
    [
        ("", "128", ".within(128)"),
        ("constexpr int T = 64;\n", "2 * T", ".within(2 * T)"),
        ("template <int T> ", "T", ""),  # not known where it is launched
        ("namespace a { constexpr int T = 64; }\nusing namespace a;\n", "T", ""),
        ("namespace a { }\n", "256", ".within(256)"),
    ],
)
def test_a_launch_is_held_against_the_bounds_of_its_kernel(before, bound, within):
    assert f"::emu::Config(1, 2){within}, " in body(BOUNDED % (before, bound))


def test_the_clusters_of_a_kernel_are_told_of_in_its_line():
    kernels = (
        "template <class T>\n"
        "__global__ void __cluster_dims__(2, 1) __launch_bounds__(64) k(T* x) {\n"
        "}\n__cluster_dims__(N) __global__ void later(int* x);\n"
    )
    rewritten = body(kernels)
    assert re.findall(r"DeclaredCluster \w+(\(.*\));", rewritten) == [
        '("k", {2, 1})',
        '("later", {N})',
    ]
    assert rewritten.count("\n") == kernels.count("\n")
    with pytest.raises(CompileError, match=r"wants a cluster's size as a number"):
        body("template <int N>\n__global__ void __cluster_dims__(N) k(int* x) {}\n")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("__constant__ float a[4], b;", ["a", "b"]),
        ("static __constant__ int t[2][3] = {{1, 2, 3}, {4, 5, 6}};", ["t"]),
        ("__device__ __constant__ float2 c;", ["c"]),
        ("extern __constant__ float a[2];", []),
        ("__constant__ extern struct Later a;", []),
        ("__constant__ int t[] = {1, 2};", []),
        ("#define C __constant__ int t[2];", []),
    ],
)
def test_constant_memory_has_a_limit(text, sizes):
    rewritten = body(text + "\n")
    assert re.findall(r"static_assert\(sizeof\((\w+)\) <= 65536", rewritten) == sizes
    assert rewritten.count("\n") == 1


def test_only_a_plain_0_takes_code_away():
    for condition in ("0", "0 // off", "0 /* off */"):
        text = f"#if {condition}\nk<<<1, 2>>>(x);\n#endif\n"
        assert body(text) == text
    for condition in ("0 == 0", "0 || 1", "0 /* a */ + 1", "0 ? 0 : 1"):
        assert "::emu::launch" in body(f"#if {condition}\nvoid f() {{ k<<<1, 2>>>(x); }}\n#endif\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # A kernel's clock counts cycles; who declares a clock of their own, or calls a member, is
        # left alone.
        ("t = clock();", "t = emu_clock();"),
        ("return clock() - t;", "return emu_clock() - t;"),
        ("timer.clock(); std::clock(); long clock(); long clock() const {", None),
        # What compares the architecture is the device's, what asks for it alone the host's.
        ("\n#if __CUDA_ARCH__ >= 700\n", "\n#if 800 >= 700\n"),
        ("\n#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600\n", "\n#if !1 || 800 >= 600\n"),
        ("\n#ifdef __CUDA_ARCH__\n#if defined(__CUDA_ARCH__)\n#endif\n#endif\n", None),
        ('printf("%d", __CUDA_ARCH__);', 'printf("%d", 800);'),
        # A kernel by pointer keeps its type.
        (
            "cudaLaunchKernel((void*)k, 1, 2, a);",
            'cudaLaunchKernel(::emu::named("k", k), 1, 2, a);',
        ),
        (
            "cudaLaunchCooperativeKernel((const void *)&ns::k<int, 3>, g, b, a);",
            'cudaLaunchCooperativeKernel(::emu::named("ns::k<int, 3>", ns::k<int, 3>), g, b, a);',
        ),
        (
            "cudaLaunchKernel(reinterpret_cast<void*>(k), 1, 2, a);",
            'cudaLaunchKernel(::emu::named("k", k), 1, 2, a);',
        ),
        # One store of 16 bytes.
        ("p[i] = float4{a, f(b)};", "p[i] = ::emu::whole(float4{a, f(b)});"),
        ("; p[i] = {a, f(b)};", "; ::emu::assign(p[i] , {a, f(b)});"),
        (
            "__device__ void f() { if (c) quad(p + i) = {a}; }",
            "__device__ void f() { if (c) ::emu::assign(quad(p + i) , {a}); }",
        ),
        ("} *cast<float4*>(p) = {a};", "} ::emu::assign(*cast<float4*>(p) , {a});"),
        ("else s->of[1].p[i] = {a};", "else ::emu::assign(s->of[1].p[i] , {a});"),
        ("float a[2] = {1, 2}; float4 *b[2] = {p, q}, c[1] = {r};", None),
        ("struct S { int k; } s[2] = {{1}, {2}}; decltype(x) d[1] = {1};", None),
        ("int n; void (*table[])(int*) = {f, g}; float (*rows)[4] = {p}; int k(int) = {};", None),
        ("alignas(16) float a[2] = {1, 2}; f(x) = {1} + y; std::array<int, 2> b[1] = {};", None),
        ("constexpr float4 v = float4{1, 2, 3, 4}; x = Pair{1, 2};", None),
    ],
)
def test_what_means_another_thing_on_a_gpu(source, expected):
    assert body(source) == (source if expected is None else expected)


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        ("void f(int n) { g(n); }", "EMU_HOST void f(int n) { g(n); }"),
        ("template <class T> T f(T x) { return x; }", "template <class T> EMU_HOST T f("),
        ('extern "C" int f() { return 1; }', 'extern "C" EMU_HOST int f()'),
        ("struct A { int f() const { return 1; } };", "{ EMU_HOST int f()"),
    ],
)
def test_what_is_for_the_host_alone_is_marked(source, marked):
    assert marked in body(source)


def test_what_may_run_on_the_device_is_not_marked_as_the_hosts():
    for how in ("__global__", "__device__", "__host__ __device__", "constexpr", "UNKNOWN"):
        assert "EMU_HOST" not in body(f"{how} void f(float* x) {{ x[0] = 1; }}")
    assert "EMU_HOST" not in body("void f(int n);\nauto g = [](int n) { return n; };")


def test_a_device_function_that_calls_itself_tells_how_deep_it_is():
    noted = '{ emu_note_recursion("f", __builtin_frame_address(0)); '
    for head in ("__device__", "static __device__", "template <int N> __host__ __device__"):
        text = body(f"{head} int f(int n) {{ return n ? f(n - 1) : 0; }}")
        assert text.startswith(f"{head} EMU_RECURSIVE int f(int n) {noted}")
    for other in (
        "__device__ int f(int n) { return n; }",
        "__device__ constexpr int f(int n) { return n ? f(n - 1) : 0; }",
        "__device__ int f(int n);\n__device__ int g(int n) { return f(n); }",
        "__device__ int f(int n) { return n; }\n__device__ int f(int2 n) { return f(n.x); }",
        "__device__ int2 max(int2 a, int2 b) { return {max(a.x, b.x), max(a.y, b.y)}; }",
        "struct A { __device__ int f(int n) { return b.f(n) + c->f(n) + ns::f(n); } };",
        "template <class... T> __device__ int f(int n, T... more) { return n + f(more...); }",
    ):
        assert body(other) == other


GATHERED = "{ emu::Products emu_products; "
LOOP = "for (int j = 0; j < 8; j++)"
REFERENCE = "float (&d)[4] = reinterpret_cast<float (&)[4]>(sums[i][4 * j]);"


@pytest.mark.parametrize(
    "loop",
    [
        f"{LOOP} mma_f16(d[j], a, b[j]);",
        f"{LOOP} {{ {LOOP} {{ mma_tf32(d[i][j], a[i], {{b[j][0], b[j][1]}}); }} }}",
        f"{LOOP} {{ {REFERENCE} mma_f16(d, a[i], b); mma_bf16(e, a[i], b); }}",
    ],
)
def test_the_products_of_a_loop_with_nothing_else_are_gathered(loop):
    source = f"__device__ void f() {{ x(); {loop} y(); }}"
    assert f"x(); {GATHERED}{loop} }} y();" in body(source)


@pytest.mark.parametrize(
    "loop",
    [
        f"{LOOP} {{ mma_f16(d[j], a, b[j]); y += d[j][0]; }}",
        f"{LOOP} {{ load_matrices(a, row); mma_f16(d[j], a, b[j]); }}",
        f"{LOOP} if (d[0][0] > 1) mma_f16(d[j], a, b[j]);",
        f"{LOOP} mma_tf32(d[j], a, {{d[0][0], d[0][1]}});",
        f"{LOOP} mma_f16(d[j], a, b[int(d[0][0])]);",
        f"{LOOP} mma_f16(d[j], a, b[d[0][0] > 1]);",
        f"{LOOP} mma_f16(d[d[0][0] > 1], a, b);",
        f"{LOOP} mma_f16(d[j], a, get(j));",
        "for (int j = 0; j < most(d); j++) mma_f16(d[j], a, b[j]);",
        "for (int j = 0; j < n[j]; j++) mma_f16(d[j], a, b[j]);",
        f"{LOOP} y = x[j];",
        f"\n#pragma GCC unroll 8\n{LOOP} mma_f16(d[j], a, b[j]);",
    ],
)
def test_no_others_are(loop):
    assert "emu::Products" not in body(f"__device__ void f() {{ {loop} }}")


def test_a_constant_is_its_files_own_where_that_is_asked_for():
    source = "__constant__ float a[2], b; static __constant__ int c; extern __constant__ int d;"
    rewritten = rewrite(source, filename="cell.cu", own_constants=True).text.split("\n", 2)[2]
    assert unlimited(rewritten) == source.replace(
        "__constant__ float", "__constant__ static float"
    ).replace("extern __constant__", "extern EMU_ELSEWHERE")
    assert body(source).startswith("__constant__ float")
