"""Which loads the instrumented build does not see: utils/watch/by_value.py."""

import platform

import pytest

from utils.cuda import compile_cuda
from utils.cuda.instrumented import instrumented
from utils.watch import by_value

TEXT = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct One { float value, more[3]; };
enum class Way { UP, DOWN };
__device__ float value_of(One one) { return one.value; }
__device__ float half_of(One one) { return 0.5f * one.value; }
__device__ float of_itself(One one, int times) {
    return times < 1 ? one.value : of_itself(one, times - 2) + half_of(one);
}
__device__ float of_a_reference(const One& one, const One* more, int times) {
    return times < 1 ? more->value : of_a_reference(one, more, times - 1) * one.value;
}
__device__ float of_an_enum(const One* x, int times, Way way) {
    return times < 1 ? x->value : of_an_enum(x, times - 1, way) + (way == Way::UP);
}
__device__ float of_a_group(cg::thread_block_tile<32> tile, float value, int times) {
    return times < 1 ? tile.shfl(value, 0) : of_a_group(tile, value, times - 1) + 1;
}
__device__ void report(One one) { printf("%g", one.value); __trap(); }
__device__ float or_ends(const One& one) { if (isnan(one.value)) report(one); return one.value; }
struct Base { __device__ virtual float of(One one) const = 0; };
struct Twice : Base { __device__ float of(One one) const override { return 2 * one.value; } };
template <float (*F)(One)> __device__ float by_template(const One& one) { return F(one); }

template <int N>
__global__ void run_kernel(One parameter, const One* x, float* out, const Base* base) {
    int i = threadIdx.x;
    float (*f)(One) = x[i].value > 1 ? half_of : value_of;
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    out[i] = parameter.value + EXPRESSION + N;
}
One shown(One one) { return one; }
struct Plan { virtual One of(One one) const { return one; } };
static One (*const made[])(One) = {shown};
void (*const kernels[])(One, const One*, float*, const Base*) = {run_kernel<0>, run_kernel<1>};
void run(const float* x, float* out, int n) {
    static Twice twice;
    static Plan plan;
    One one = n > 7 ? made[n - 8](One{}) : plan.of(One{});
    LAUNCH
}
"""
BY_NAME = "run_kernel<0><<<1, 32>>>(one, (const One*)x, out, &twice);"
BY_POINTER = "kernels[n % 2]<<<1, 32>>>(one, (const One*)x, out, &twice);"
FOLLOWED = platform.machine() in ("x86_64", "AMD64")


def unseen(expression: str, launch: str = BY_NAME) -> tuple[str, ...]:
    text = TEXT.replace("EXPRESSION", expression).replace("LAUNCH", launch)
    kernel = compile_cuda(text, "run", backend="emulator")
    return by_value.unseen(instrumented(kernel).library, kernel.source)


@pytest.mark.parametrize("launch", [BY_NAME, BY_POINTER], ids=["by name", "by a pointer"])
@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("value_of(x[i])", ()),
        ("by_template<half_of>(x[i])", ()),
        ("of_a_reference(x[i], x, i)", ()),
        ("of_an_enum(x, i, Way(i % 2))", ()),
        ("of_a_group(tile, x[i].value, i)", ()),
        ("or_ends(x[i])", ()),
        ("of_itself(x[i], i)", ("of_itself(One, int)",)),
    ],
)
def test_a_struct_by_value_is_seen_where_the_function_is_inlined(expression, names, launch):
    assert unseen(expression, launch) == names


@pytest.mark.skipif(not FOLLOWED, reason="calls by a pointer are not followed here")
@pytest.mark.parametrize("launch", [BY_NAME, BY_POINTER], ids=["by name", "by a pointer"])
def test_what_is_called_by_a_pointer_is_not_inlined(launch):
    assert {"half_of(One)", "value_of(One)"} <= {*unseen("f(x[i])", launch)}


@pytest.mark.skipif(not FOLLOWED, reason="calls by a pointer are not followed here")
def test_a_member_that_a_table_holds_is_called_by_a_pointer():
    assert "Twice::of(One) const" in unseen("base->of(x[i])")


@pytest.mark.parametrize(
    ("name", "base", "kinds"),
    [
        ("run(int, unsigned long, float*)", "run", []),
        ("run(float4)", "run", ["float4"]),
        ("float run<One, 3>(One, float (*)(One))", "run", ["One"]),
        ("Op::operator()(std::pair<int, One>, int) const", "", ["std::pair<int, One>"]),
        ("void n::run<(n::Way)2>(One const&, One&&, One const*, char, bool)", "run", []),
        ("run(decltype(nullptr), float (One::*)(int))", "run", []),
        ("_init", "", []),
    ],
)
def test_a_parameter_is_a_struct_or_none(name, base, kinds):
    assert by_value._base(name) == base
    assert [kind for kind in by_value._parameters(name) if by_value._is_class(kind)] == kinds
