"""Which loads the instrumented build does not see: utils/watch/by_value.py."""

import pytest

from utils.cuda import compile_cuda
from utils.cuda.instrumented import instrumented
from utils.watch import by_value

TEXT = """
struct One { float value, more[3]; };
__device__ float value_of(One one) { return one.value; }
__device__ float half_of(One one) { return 0.5f * one.value; }
__device__ float of_itself(One one, int times) {
    return times < 1 ? one.value : of_itself(one, times - 2) + half_of(one);
}
__device__ float of_a_reference(const One& one, const One* more, int times) {
    return times < 1 ? more->value : of_a_reference(one, more, times - 1) * one.value;
}
struct Base { __device__ virtual float of(One one) const = 0; };
struct Twice : Base { __device__ float of(One one) const override { return 2 * one.value; } };
template <float (*F)(One)> __device__ float by_template(const One& one) { return F(one); }

__global__ void run_kernel(One parameter, const One* x, float* out, const Base* base) {
    int i = threadIdx.x;
    float (*f)(One) = x[i].value > 1 ? half_of : value_of;
    out[i] = parameter.value + EXPRESSION;
}
One shown(One one) { return one; }
void run(const float* x, float* out) {
    static Twice twice;
    run_kernel<<<1, 32>>>(shown(One{}), (const One*)x, out, &twice);
}
"""


@pytest.mark.parametrize(
    ("expression", "unseen"),
    [
        ("value_of(x[i])", []),
        ("by_template<half_of>(x[i])", []),
        ("of_a_reference(x[i], x, i)", []),
        ("of_itself(x[i], i)", ["of_itself(One, int)"]),
        ("f(x[i])", ["half_of(One)", "value_of(One)"]),
    ],
)
def test_a_struct_by_value_is_seen_where_the_function_is_inlined(expression, unseen):
    text = TEXT.replace("EXPRESSION", expression).replace(", const Base* base", "")
    text = text.replace(", &twice", "")
    kernel = compile_cuda(text, "run", backend="emulator")
    assert by_value.unseen(instrumented(kernel).library) == tuple(unseen)


def test_a_member_that_a_table_holds_is_called_by_a_pointer():
    text = TEXT.replace("EXPRESSION", "base->of(x[i])")
    kernel = compile_cuda(text, "run", backend="emulator")
    assert by_value.unseen(instrumented(kernel).library) == ("Twice::of(One) const",)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("run(int, unsigned long, float*)", []),
        ("run(float4)", ["float4"]),
        ("float run<One, 3>(One, float (*)(One))", ["One"]),
        ("Op::operator()(std::pair<int, One>, int) const", ["std::pair<int, One>"]),
        ("run(One const&, One&&, One const*, char, bool)", []),
        ("_init", []),
    ],
)
def test_a_parameter_is_a_struct_or_none(name, kinds):
    assert [kind for kind in by_value._parameters(name) if by_value._is_class(kind)] == kinds
