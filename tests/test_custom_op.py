"""Two checked kernels as an operator of PyTorch: results, gradients, and what it refuses."""

import pytest
import torch

from utils.cuda.compiler import compile_cuda
from utils.cuda.custom_op import operator
from utils.ground.errors import WorkbookError

# out = x * weight, and rows of `parts` parts: a number that no shape tells
SHAPES = {name: "rows channels" for name in ("x", "dx", "out", "twice", "grad_out", "grad_twice")}
SHAPES |= dict.fromkeys(("weight", "dweight", "gain", "dgain"), "channels")
FORWARD = """
__global__ void scale_kernel(const float* x, const float* weight, float* out, int n, int channels) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = x[i] * weight[i % channels];
}
void scale(const float* x, const float* weight, float* out, int rows, int channels, int parts) {
    int n = rows * channels;
    scale_kernel<<<(n + 63) / 64, 64>>>(x, weight, out, n, channels);
}
"""
BACKWARD = """
__global__ void scale_backward_kernel(const float* x, const float* weight, const float* grad_out,
                                      float* dx, float* dweight, int rows, int channels) {
    int c = threadIdx.x;
    float sum = 0.0f;
    for (int i = c; i < rows * channels; i += channels) {
        dx[i] = grad_out[i] * weight[c];
        sum += grad_out[i] * x[i];
    }
    dweight[c] = sum;
}
void scale_backward(const float* x, const float* weight, const float* grad_out, float* dx,
                    float* dweight, int rows, int channels) {
    scale_backward_kernel<<<1, channels>>>(x, weight, grad_out, dx, dweight, rows, channels);
}
"""


# and what is twice that
TWO_RESULTS = FORWARD.replace("float* out, int", "float* out, float* twice, int")
TWO_RESULTS = TWO_RESULTS.replace("weight, out, n", "weight, out, twice, n").replace(
    "weight[i % channels];", "weight[i % channels], twice[i] = 2 * out[i];"
)
OF_BOTH = BACKWARD.replace("float* grad_out,", "float* grad_out, const float* grad_twice,")
OF_BOTH = OF_BOTH.replace("weight, grad_out, dx", "weight, grad_out, grad_twice, dx")
OF_BOTH = OF_BOTH.replace("grad_out[i]", "(grad_out[i] + 2 * grad_twice[i])")


def compiled(text, name, trusted=True):
    kernel = compile_cuda(text, name, shapes=SHAPES, backend="emulator")
    kernel.trusted = trusted
    return kernel


@pytest.fixture(scope="module")
def scale():
    forward, backward = compiled(FORWARD, "scale"), compiled(BACKWARD, "scale_backward")
    return operator(forward, backward, parts={"parts": "channels"})


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return [torch.randn(3, 8, requires_grad=True), torch.randn(8, requires_grad=True)]


def gradients(function, tensors):
    return torch.autograd.grad(function(*tensors).square().sum(), tensors)


def test_result_and_gradients_are_those_of_pytorch(scale, inputs):
    assert torch.equal(scale(*inputs, 2), inputs[0] * inputs[1])
    got = gradients(lambda x, weight: scale(x, weight, 2), inputs)
    wanted = gradients(lambda x, weight: x * weight, inputs)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_opcheck_and_a_full_graph_take_it(scale, inputs):
    assert set(torch.library.opcheck(scale, (*inputs, 2)).values()) == {"SUCCESS"}
    traced = torch.compile(lambda *t: scale(*t, 2), fullgraph=True, backend="aot_eager")
    for a, b in zip(
        gradients(traced, inputs), gradients(lambda *t: scale(*t, 2), inputs), strict=True
    ):
        assert torch.equal(a, b)


def test_a_gradient_that_is_differentiated_again_is_refused(scale, inputs):
    """Without a word it would be a constant, and what depends on it would lack a part."""
    x, weight = inputs
    (dx,) = torch.autograd.grad(scale(x, weight, 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="scale is differentiable once"):
        (dx.sum() + x.sum()).backward()


class _NoGradient(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x.clone())
    backward = staticmethod(lambda ctx, grad: None)


def test_a_result_of_which_no_gradient_comes_back_passes_none_on(scale, inputs):
    x, weight = inputs
    (_NoGradient.apply(scale(x, weight, 2)) + x).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
    assert weight.grad is None


def test_a_tensor_that_is_not_contiguous_and_one_of_autocast_are_converted(scale, inputs):
    x, weight = (t.detach() for t in inputs)
    assert torch.equal(scale(x.T.contiguous().T, weight, 2), x * weight)
    with torch.autocast("cpu", torch.bfloat16):
        assert scale(x.bfloat16(), weight, 2).dtype == torch.float32


ALIGNED = """
__global__ void {name}_kernel(const float* {x}, float* {out}, int n) {{
    bool aligned = reinterpret_cast<size_t>({x}) % 16 == 0;  // else a card cannot read a float4
    int i = threadIdx.x;
    if (i < n) {out}[i] = aligned ? 2 * {x}[i] : NAN;
}}
void {name}(const float* {x}, float* {out}, int rows, int channels) {{
    {name}_kernel<<<1, 64>>>({x}, {out}, rows * channels);
}}
"""


def test_kernels_get_tensors_from_a_multiple_of_16_bytes_on():
    forward = compiled(ALIGNED.format(name="doubled", x="x", out="out"), "doubled")
    text = ALIGNED.format(name="doubled_backward", x="grad_out", out="dx")
    doubled = operator(forward, compiled(text, "doubled_backward"))
    x, grad_output = (torch.randn(25)[1:].view(3, 8) for _ in range(2))
    assert x.is_contiguous() and x.data_ptr() % 16
    out = doubled(x.requires_grad_())
    assert torch.equal(out, 2 * x)
    assert torch.equal(torch.autograd.grad(out, x, grad_output)[0], 2 * grad_output)


@pytest.mark.parametrize(
    ("change", "parts", "message"),
    [
        (lambda x: x.double(), 2, "x has dtype torch.float64"),
        (lambda x: x[:, :4], 2, "weight has 8 channels, and another tensor 4"),
        (lambda x: x[0], 2, "x has 1 dimensions and should have 2"),
        (lambda x: x, 3, "8 channels are not 3 parts of one size"),
        (lambda x: x, 0, "8 channels are not 0 parts of one size"),
    ],
)
def test_what_it_cannot_take_is_named(scale, inputs, change, parts, message):
    x, weight = (t.detach() for t in inputs)
    with pytest.raises(WorkbookError, match=message):
        scale(change(x), weight, parts)


def test_kernels_that_are_not_checked_or_do_not_belong_together_make_no_operator():
    forward, backward = compiled(FORWARD, "scale"), compiled(BACKWARD, "scale_backward")
    with pytest.raises(WorkbookError, match="scale has not passed its check"):
        operator(compiled(FORWARD, "scale", trusted=False), backward)
    with pytest.raises(WorkbookError, match="scale writes out, and scale reads nothing"):
        operator(forward, forward)
    other = compiled(BACKWARD.replace("weight", "gain"), "scale_backward")
    with pytest.raises(WorkbookError, match="scale_backward reads gain, and scale neither"):
        operator(forward, other)


def test_a_result_whose_gradient_nobody_reads_takes_none(inputs):
    """Such as what a forward saves for its backward: a gradient of 0 would be wrong."""
    function = operator(compiled(TWO_RESULTS, "scale"), compiled(BACKWARD, "scale_backward"))
    out, twice = function(*inputs, 2)
    assert out.requires_grad and not twice.requires_grad
    torch.testing.assert_close(
        torch.autograd.grad(out.sum(), inputs)[0], inputs[1].detach().expand(3, 8)
    )


def test_a_gradient_that_is_lacking_beside_another_is_zero(inputs):
    function = operator(compiled(TWO_RESULTS, "scale"), compiled(OF_BOTH, "scale_backward"))
    x, weight = inputs
    for wanted, results in ((1, slice(0, 1)), (2, slice(1, 2)), (3, slice(0, 2))):
        total = sum(result.sum() for result in function(x, weight, 2)[results])
        (dx,) = torch.autograd.grad(total, x)
        torch.testing.assert_close(dx, wanted * weight.detach().expand(3, 8))


def test_an_operator_of_a_name_that_is_taken_replaces_it(scale, inputs):
    doubled = FORWARD.replace("x[i] * weight[i", "2 * x[i] * weight[i").replace(", int parts", "")
    again = operator(compiled(doubled, "scale"), compiled(BACKWARD, "scale_backward"))
    assert torch.equal(again(*inputs), 2 * inputs[0] * inputs[1])
    assert torch.ops.workbook.scale.default is again
