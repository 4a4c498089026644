"""Task 88 of KernelBench: a `ModelNew` that trains, by this course's kernels.

Made by `workbook sync` of kernels/models/new, of kernels/include and, in solutions/, of
08_fused_tails/gn_swish_multiply_swish.cu, 12_ship_it/gn_swish_multiply_swish_backward.cu and
11_hopper/linear_gn_swish_multiply_swish_hopper.cu. Change those: what is changed here is lost.

On Hopper the linear layer is split into halves and multiplied by tensor cores, as exact as fp32,
and all that follows happens in registers. A row of x or W with outliers, more than 2^15 times what
is usual in it, is multiplied in floats: as exact, and far slower. On other cards, and for groups of
other sizes, PyTorch multiplies. The model takes and returns float32, also under autocast, and has
first derivatives only. Layers that have hooks, or that have been replaced, are called, not fused.

What is where:

    line   41  ModelNew                                 the model; `by_layers` is PyTorch's version
    line   63  call                                     its forward: chooses what computes it
    line   94  run                                      forward, as an operator of PyTorch's
    line  123  run_backward                             backward
    line  275  HOST                                     C++: checks tensors, calls the kernels
    line  734  gn_swish_multiply_swish_kernel           forward of what follows the linear layer
    line  771  column_sums_kernel                       gradient of the linear layer's bias
    line  992  gn_swish_multiply_swish_backward_kernel  backward of it
    line 2496  linear_gn_swish_multiply_swish_kernel    forward of the whole, on Hopper
    line 2612  product_kernel                           backward of the linear layer, on Hopper
    line 2674  build                                    compiles them for the cards at hand
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

NAME = "task_88"
PARAMETER_IS_ADDED_TO_Y = False  # as b is: their gradients are the same


def result_shape(M, N):
    """Of the result, for M rows and N channels."""
    return M, N


class ModelNew(nn.Module):
    """swish(swish(GroupNorm(linear(x))) * multiply_weight). x: (batch, in_features)"""

    portable = False  # True: without tensor cores, on every card

    def __init__(self, in_features, out_features, num_groups, multiply_weight_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.multiply_weight = nn.Parameter(torch.randn(multiply_weight_shape))

    def forward(self, x):
        """x: (batch, features), float32, on a CUDA card."""
        return call(self, x, self.gemm, self.group_norm, self.multiply_weight)

    def by_layers(self, x):
        """The same by PyTorch alone, where hooks want the layers called."""
        y = self.group_norm(self.gemm(x))
        y = y * y.sigmoid() * self.multiply_weight
        return y * y.sigmoid()


def call(model, x, linear, norm, parameter):
    """What `model` gives for x. A layer that does more than its weights say is called itself."""
    if all_are_hooked() or not untouched(norm, nn.GroupNorm) or norm.eps != 1e-5:
        return model.by_layers(x)
    of_norm = norm.weight, norm.bias
    if of_norm[0] is None or of_norm[1] is None:
        return model.by_layers(x)
    if not untouched(linear, nn.Linear) or linear.bias is None:
        return tail(linear(x), *of_norm, parameter, norm.num_groups)
    tensors = x, linear.weight, linear.bias, *of_norm, parameter
    keep = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
    if not keep and not torch.compiler.is_compiling() and type(x) is torch.Tensor:
        # Most of a call's time on the host is PyTorch's, which need not see this one.
        if on_tensor_cores(tensors[1].shape[0], norm.num_groups, model.portable):
            result = kernels.infer(*tensors, norm.num_groups)
            if result is not None:
                return result
    return forward(*tensors, norm.num_groups, keep, model.portable)[0]


def on_tensor_cores(N: int, groups: int, portable: bool) -> bool:
    """Whether the kernels for Hopper take it: they normalise groups of these sizes in registers."""
    return HOPPER and not portable and N // groups in (16, 32, 64)


def empty_results(x, W, b, weight, bias, parameter, groups, keep, portable):
    """What a forward gives, with nothing in it: all that torch.compile asks of a call."""
    M, N = x.shape[0], W.shape[0]
    return x.new_empty(result_shape(M, N)), x.new_empty((M, N) if keep else (0,))


def run(x, W, b, weight, bias, parameter, groups, keep, portable):
    """The result, and y = x W^T + b where it is to be kept for a backward."""
    x, W, b, weight, bias, *rest = kernels.arguments(x, W, b, weight, bias, parameter, groups)
    parameter = rest[0] if rest else None
    result, y = empty_results(x, W, b, weight, bias, parameter, groups, keep, portable)
    if result.numel() == 0:
        return result, y
    if on_tensor_cores(W.shape[0], groups, portable):
        kernels.whole(x, W, b, weight, bias, parameter, y, result, groups)
        return result, y
    linear = torch.addmm(b, x, W.t())
    kernels.tail(linear, weight, bias, parameter, result, groups)
    return result, linear if keep else y


def empty_linear_gradients(x, W, b, want_x, want_W):
    """Gradients of a linear layer, with nothing in them; none of x or W where none is wanted."""
    dx, dW = x.new_empty(x.shape if want_x else (0,)), W.new_empty(W.shape if want_W else (0,))
    return dx, dW, b.new_empty(b.shape)


def empty_gradients(
    grad_output, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable
):
    """All that a backward gives, with nothing in it."""
    of_linear = empty_linear_gradients(x, W, b, want_x, want_W)
    return *of_linear, *empty_tail_gradients(grad_output, y, weight, bias, parameter, groups)[1:]


def run_backward(
    grad_output, x, W, b, weight, bias, parameter, y, groups, want_x, want_W, portable
):
    """Gradients of x, W, b, weight, bias and parameter; none of x or W where none is wanted."""
    dy, *small = run_tail_backward(grad_output, y, weight, bias, parameter, groups)
    x, W, *_ = kernels.arguments(x, W, b, weight, bias, parameter, groups)
    dx, dW, db = empty_linear_gradients(x, W, b, want_x, want_W)
    if x.shape[0] == 0:
        return dx, dW.zero_(), db.zero_(), *small
    if PARAMETER_IS_ADDED_TO_Y:
        db.copy_(small[-1].view_as(db))
    else:
        kernels.column_sums(dy, db)
    if on_tensor_cores(W.shape[0], groups, portable):
        kernels.products(dy, x, W, dx, dW)
    else:
        dx = dy @ W if want_x else dx
        dW = dy.t() @ x if want_W else dW
    return dx, dW, db, *small


def empty_tail(y, weight, bias, parameter, groups):
    """What follows the linear layer's result y, with nothing in it."""
    return y.new_empty(result_shape(*y.shape))


def run_tail(y, weight, bias, parameter, groups):
    """What follows the linear layer's result y."""
    y, weight, bias, *rest = kernels.tail_arguments(y, weight, bias, parameter, groups)
    result = empty_tail(y, weight, bias, parameter, groups)
    if result.numel():
        kernels.tail(y, weight, bias, rest[0] if rest else None, result, groups)
    return result


def empty_tail_gradients(grad_output, y, weight, bias, parameter, groups):
    """What its backward gives, with nothing in it."""
    tensors = y, weight, bias
    none = y.new_empty((0,) if parameter is None else parameter.shape)
    return *(tensor.new_empty(tensor.shape) for tensor in tensors), none


def run_tail_backward(grad_output, y, weight, bias, parameter, groups):
    """Gradients of y, weight, bias and parameter."""
    grads = empty_tail_gradients(grad_output, y, weight, bias, parameter, groups)
    y, weight, bias, *rest = kernels.tail_arguments(y, weight, bias, parameter, groups)
    if y.shape[0] == 0:
        return tuple(gradient.zero_() for gradient in grads)
    parameter, dparameter = (rest[0], grads[3]) if rest else (None, None)
    kernels.tail_backward(y, weight, bias, parameter, grad_output, *grads[:3], dparameter, groups)
    return grads


def remember(ctx, inputs, output):
    """What the backward needs. y is no result to be differentiated."""
    x, W, b, weight, bias, parameter, groups, _, portable = inputs
    ctx.save_for_backward(x, W, b, weight, bias, parameter, output[1])
    ctx.settings = groups, portable
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def gradients(ctx, grad_output, _):
    """Of all arguments of a forward."""
    if grad_output is None:  # the result took no part
        return (None,) * 9
    groups, portable = ctx.settings
    wanted = ctx.needs_input_grad
    grads = backward(grad_output, *ctx.saved_tensors, groups, wanted[0], wanted[1], portable)
    return (
        *(g if want else None for g, want in zip(grads, wanted[:6], strict=True)),
        None,
        None,
        None,
    )


def remember_tail(ctx, inputs, output):
    """What its backward needs."""
    ctx.save_for_backward(*inputs[:4])
    ctx.groups = inputs[4]


def tail_gradients(ctx, grad_output):
    """Of all arguments of a tail."""
    grads = tail_backward(grad_output, *ctx.saved_tensors, ctx.groups)
    wanted = ctx.needs_input_grad[:4]
    return (*(g if want else None for g, want in zip(grads, wanted, strict=True)), None)


def untouched(module, kind):
    """Whether a call of this layer is a call of `kind`, and nothing else: it has no hooks, and no
    forward of its own."""
    return (
        type(module).forward is kind.forward
        and type(module).__call__ is nn.Module.__call__
        and "forward" not in module.__dict__
        and not (module._forward_hooks or module._forward_pre_hooks)
        and not (module._backward_hooks or module._backward_pre_hooks)
    )


def all_are_hooked():
    """Whether there are hooks of all modules."""
    hooks = nn.modules.module
    return bool(
        hooks._global_forward_hooks
        or hooks._global_forward_pre_hooks
        or hooks._global_backward_hooks
        or hooks._global_backward_pre_hooks
    )


def operator(name, run, empty, schema):
    """A custom operator, which computes in float32 under autocast, too, and in a backward there."""
    made = torch.library.custom_op(f"{NAME}::{name}", run, mutates_args=(), schema=schema)
    made.register_fake(empty)
    made.register_autocast("cuda", torch.float32)
    return made


# The backwards have no gradients themselves: second derivatives are refused.
CHANNELS = "Tensor weight, Tensor bias, Tensor? parameter"
TENSORS = f"Tensor x, Tensor W, Tensor b, {CHANNELS}"
FOUR, SIX = (f"({', '.join(['Tensor'] * count)})" for count in (4, 6))
forward = operator(
    "forward",
    run,
    empty_results,
    f"({TENSORS}, SymInt groups, bool keep, bool portable) -> (Tensor, Tensor)",
)
backward = operator(
    "backward",
    run_backward,
    empty_gradients,
    f"(Tensor grad_output, {TENSORS}, Tensor y, SymInt groups, bool want_x, bool want_W, bool portable) "
    f"-> {SIX}",
)
tail = operator("tail", run_tail, empty_tail, f"(Tensor y, {CHANNELS}, SymInt groups) -> Tensor")
tail_backward = operator(
    "tail_backward",
    run_tail_backward,
    empty_tail_gradients,
    f"(Tensor grad_output, Tensor y, {CHANNELS}, SymInt groups) -> {FOUR}",
)
forward.register_autograd(gradients, setup_context=remember)
tail.register_autograd(tail_gradients, setup_context=remember_tail)


CARDS = sorted({torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())})
HOPPER = CARDS == [(9, 0)]  # tensor cores as these kernels use them: of no other card

HOST = r"""
// Tensors in, launches out.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using at::Tensor;
using Maybe = std::optional<Tensor>;

// --- What the kernels' text asks for

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream(); }
void* take_memory(size_t bytes, void** address) {
    auto options = at::TensorOptions().device(at::kCUDA).dtype(at::kByte);
    auto* tensor = new Tensor(at::empty({int64_t(bytes)}, options));
    *address = tensor->data_ptr();
    return tensor;
}
void give_back(void* taken) { delete static_cast<Tensor*>(taken); }

// --- Checks

// The tensor as kernels want it: a copy where it is not contiguous, or does not begin at a multiple
// of 16 bytes, as quads must.
Tensor prepared(const Tensor& tensor) {
    Tensor dense = tensor.contiguous();
    return reinterpret_cast<size_t>(dense.data_ptr()) % 16 ? dense.clone() : dense;
}

// A number in words of PyTorch's, whose stream must not print it: a compiler that links a C++
// library of its own into this one crashes there.
std::string text(int64_t number) { return std::to_string(number); }

void check_kind(const Tensor& tensor, const char* name, const Tensor& x) {
    TORCH_CHECK(tensor.is_cuda(), name, " is on ", tensor.device(), " and must be on a CUDA card");
    TORCH_CHECK(tensor.device() == x.device(), name, " is on ", tensor.device(), ", and x on ",
                x.device());
    TORCH_CHECK(tensor.scalar_type() == at::kFloat, name, " is ", tensor.scalar_type(),
                " and must be float32");
}

void check_size(int64_t most) {  // kernels count in int, and some beyond
    TORCH_CHECK(most < (int64_t(1) << 31) - (1 << 20),
                "x is too large: no matrix may have 2^31 elements");
}

const float* in(const Tensor& tensor) { return tensor.data_ptr<float>(); }
const float* in(const Maybe& tensor) { return tensor ? tensor->data_ptr<float>() : nullptr; }
float* out(const Tensor& tensor) { return tensor.numel() ? tensor.data_ptr<float>() : nullptr; }
float* out(const Maybe& tensor) { return tensor ? tensor->data_ptr<float>() : nullptr; }

// --- The calls' own. Names of sizes: x (M, K), W (N, K), y = x * W^T + b (M, N).

// The tensors of N channels as kernels want them. Raises where they do not fit.
std::vector<Tensor> of_channels(Tensor weight, Tensor bias, Maybe parameter, const Tensor& x,
                                int64_t N, int64_t groups) {
    TORCH_CHECK(groups > 0 && N % groups == 0, text(N), " channels are not ", text(groups),
                " groups of one size");
    std::vector<Tensor> all;
    auto add = [&](const Tensor& tensor, const char* name) {
        check_kind(tensor, name, x);
        TORCH_CHECK(tensor.numel() == N, name, " has ", text(tensor.numel()), " elements, not ",
                    text(N));
        all.push_back(prepared(tensor));
    };
    add(weight, "GroupNorm's weight");
    add(bias, "GroupNorm's bias");
    if (parameter) add(*parameter, "the parameter");
    return all;
}

// The arguments of a forward as kernels want them. Raises where they do not fit.
std::vector<Tensor> arguments(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias,
                              Maybe parameter, int64_t groups) {
    check_kind(x, "x", x);
    TORCH_CHECK(x.dim() == 2, "x has ", text(x.dim()),
                " dimensions and must have 2: (batch, features)");
    check_kind(W, "the linear layer's weight", x);
    TORCH_CHECK(W.dim() == 2, "the linear layer's weight has ", text(W.dim()),
                " dimensions and must have 2: (channels, features)");
    TORCH_CHECK(W.size(1) == x.size(1), "x has ", text(x.size(1)),
                " features, and the linear layer's weight takes ", text(W.size(1)));
    int64_t N = W.size(0);
    check_size(std::max({x.size(0) * N, x.numel(), W.numel()}));
    check_kind(b, "the linear layer's bias", x);
    TORCH_CHECK(b.numel() == N, "the linear layer's bias has ", text(b.numel()), " elements, not ",
                text(N));
    std::vector<Tensor> all = {prepared(x), prepared(W), prepared(b)};
    for (Tensor& tensor : of_channels(weight, bias, parameter, x, N, groups)) all.push_back(tensor);
    return all;
}

// The same of what follows the linear layer, whose result is y.
std::vector<Tensor> tail_arguments(Tensor y, Tensor weight, Tensor bias, Maybe parameter,
                                   int64_t groups) {
    check_kind(y, "the linear layer's result", y);
    TORCH_CHECK(y.dim() == 2, "the linear layer's result has ", text(y.dim()),
                " dimensions and must have 2: (batch, channels)");
    check_size(y.numel());
    std::vector<Tensor> all = {prepared(y)};
    for (Tensor& tensor : of_channels(weight, bias, parameter, y, y.size(1), groups)) {
        all.push_back(tensor);
    }
    return all;
}

// --- Calls. Tensors are as arguments() gives them; there is at least one row.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups);
void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* grad_out, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups);
void start_column_sums(const float* x, float* out, int rows, int channels);

void tail(Tensor y, Tensor weight, Tensor bias, Maybe parameter, Tensor result, int64_t groups) {
    c10::cuda::CUDAGuard guard(y.device());
    start_tail(in(y), in(weight), in(bias), in(parameter), out(result), y.size(0), y.size(1),
               groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// dy, dweight, dbias and dparameter are written.
void tail_backward(Tensor y, Tensor weight, Tensor bias, Maybe parameter, Tensor grad_out,
                   Tensor dy, Tensor dweight, Tensor dbias, Maybe dparameter, int64_t groups) {
    c10::cuda::CUDAGuard guard(y.device());
    Tensor contiguous = prepared(grad_out);
    start_tail_backward(in(y), in(weight), in(bias), in(parameter), in(contiguous), out(dy),
                        out(dweight), out(dbias), out(dparameter), y.size(0), y.size(1), groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void column_sums(Tensor x, Tensor sums) {
    c10::cuda::CUDAGuard guard(x.device());
    start_column_sums(in(x), out(sums), x.size(0), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

HOST_HOPPER = r"""
// --- The same on Hopper's tensor cores
#include <c10/core/impl/LocalDispatchKeySet.h>

void start_whole(const float* x, const float* W, const float* b, const float* weight,
                 const float* bias, const float* parameter, float* y, float* out, int M, int N,
                 int K, int groups);
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K);
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K);

// The linear layer and all that follows. y is written where it has elements.
void whole(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias, Maybe parameter, Tensor y,
           Tensor result, int64_t groups) {
    c10::cuda::CUDAGuard guard(x.device());
    start_whole(in(x), in(W), in(b), in(weight), in(bias), in(parameter), out(y), out(result),
                x.size(0), W.size(0), x.size(1), groups);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Whether PyTorch would take an operation on these to the card at once, x being the first: nobody
// casts, traces, transforms or watches it, and none of them is a tensor of another kind.
bool unobserved(const std::vector<Maybe>& tensors) {
    auto local = c10::impl::tls_local_dispatch_key_set();
    c10::DispatchKeySet keys = local.included_;
    for (const Maybe& tensor : tensors) {
        if (tensor) keys = keys | tensor->key_set();
    }
    keys = keys - local.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView -
           c10::DispatchKeySet(c10::DispatchKey::BackendSelect);
    auto first = c10::toFunctionalityKey(keys.highestPriorityTypeId());
    return tensors[0]->is_cuda() && first == c10::DispatchKey::Dense;
}

// The result of a forward of which nothing is kept; none where it must be seen.
Maybe infer(Tensor x, Tensor W, Tensor b, Tensor weight, Tensor bias, Maybe parameter,
            int64_t groups) {
    if (!unobserved({x, W, b, weight, bias, parameter})) return {};
    std::vector<Tensor> all = arguments(x, W, b, weight, bias, parameter, groups);
    int64_t M = x.size(0), N = W.size(0);
    Tensor result = at::empty({M, N}, x.options());
    if (!result.numel()) return result;
    if (parameter) parameter = all[5];
    whole(all[0], all[1], all[2], all[3], all[4], parameter, Tensor(), result, groups);
    return result;
}

// The linear layer backwards: those of dx and dW that have elements are written.
void products(Tensor dy, Tensor x, Tensor W, Tensor dx, Tensor dW) {
    c10::cuda::CUDAGuard guard(x.device());
    int M = x.size(0), N = W.size(0), K = x.size(1);
    if (dx.numel()) start_dx(in(dy), in(W), out(dx), M, N, K);
    if (dW.numel()) start_dW(in(dy), in(x), out(dW), M, N, K);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

KERNELS = r"""
// Memory for the time of a call: PyTorch's, on the stream that the caller works on.

cudaStream_t current_stream();                    // of the current device
void* take_memory(size_t bytes, void** address);  // returns what gives it back
void give_back(void* taken);

// `count` elements; none: nothing. PyTorch hands them on in the order of the stream, so that the
// kernels between have them for themselves; in a CUDA graph they are the graph's.
template <class T>
struct Scratch {
    T* data = nullptr;

    explicit Scratch(size_t count) {
        if (count) taken = take_memory(count * sizeof(T), reinterpret_cast<void**>(&data));
    }
    ~Scratch() {
        if (taken) give_back(taken);
    }
    Scratch(const Scratch&) = delete;

   private:
    void* taken = nullptr;
};
// What the tails of chapter 08 are made of, and a minimum for groups that quads do not fill.

// What GroupNorm adds to a variance, from chapter 08 on: PyTorch's own.

constexpr float EPS = 1e-5f;
// Groups of channels across lanes: GroupNorm in registers. From exercise 06.5.

// Groups of every size: those that fill a part of a warp with quads, and all others.
// From exercises 06.4 and 06.5.

#include <type_traits>

// Reductions: many values become one. From exercises 04.4 and 04.6.

// The sum over aligned groups of WIDTH lanes, a power of two. Every lane gets its group's sum.
// All 32 lanes of the warp must call it.
template <int WIDTH = 32>
__device__ inline float warp_sum(float value) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}

// The smaller of two; NaN if either is NaN, as in PyTorch. fminf() would drop the NaN.
__device__ inline float smaller(float a, float b) { return a < b || isnan(a) ? a : b; }

// The smallest over aligned groups of WIDTH lanes; NaN wins. Every lane gets its group's.
// All 32 lanes of the warp must call it.
template <int WIDTH = 32>
__device__ inline float warp_min(float value) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        value = smaller(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

// The sum over a block of THREADS threads in a row, a multiple of 32. Every thread gets it.
// All threads of the block must call it.
template <int THREADS>
__device__ inline float block_sum(float value) {
    __shared__ float partials[THREADS / 32];  // one value of each warp
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    value = warp_sum(value);
    if (lane == 0) partials[warp] = value;
    __syncthreads();  // the value of every warp is there before anyone reads it
    value = warp_sum(lane < THREADS / 32 ? partials[lane] : 0.0f);
    __syncthreads();  // everyone has read them before the next call overwrites them
    return value;
}

template <int LANES>
using Lanes = std::integral_constant<int, LANES>;

// Where quads of a group of `size` channels fill 1, 2, 4, 8, 16 or 32 lanes: calls launch(lanes),
// of which lanes() is that number, as a constant, and returns true. Returns false for other sizes.
template <class Launch>
bool dispatch(int size, Launch launch) {
    switch (size) {
        case 4: launch(Lanes<1>()); return true;
        case 8: launch(Lanes<2>()); return true;
        case 16: launch(Lanes<4>()); return true;
        case 32: launch(Lanes<8>()); return true;
        case 64: launch(Lanes<16>()); return true;
        case 128: launch(Lanes<32>()); return true;
        default: return false;
    }
}

// (x - mean) * rstd for the values x of one group.
struct Statistics {
    float mean, rstd;
};

// The statistics of value(0) to value(size - 1). One lane owns every 32nd of them, one warp all.
// All 32 lanes of the warp must call it.
// __fsub_rn: value(i) is rounded first. Were it a product, a fused multiply-add would take the mean
// off the exact one, and leave what the mean's rounding lost, 316 times as large behind a rstd of
// 1 / sqrt(eps): a group of one value would not be 0.
template <class Value>
__device__ Statistics statistics(int size, float eps, Value value) {
    int lane = threadIdx.x % 32;
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) sum += value(i);
    float mean = warp_sum(sum) / size;
    for (int i = lane; i < size; i += 32) {
        float off = __fsub_rn(value(i), mean);
        squares += off * off;
    }
    return {mean, rsqrtf(warp_sum(squares) / size + eps)};
}

// What may stand before or after GroupNorm: nothing, a function of the value, or of the value and
// its channel's parameter.
__device__ inline float identity(float value) { return value; }
__device__ inline float applied(float (*f)(float), float value, const float*, int) {
    return f(value);
}
__device__ inline float applied(float (*f)(float, float), float value, const float* parameter,
                                int channel) {
    return f(value, parameter[channel]);
}

// y, out: (rows, channels), weight, bias: (channels), parameter: (channels) or null.
// out = AFTER(GroupNorm(BEFORE(y)))
// One thread owns every 32nd value of a group, one warp the group.
template <auto BEFORE, auto AFTER>
__global__ void groupnorm_any_size_kernel(const float* y, const float* weight, const float* bias,
                                          const float* parameter, float* out, int rows,
                                          int channels, int groups, float eps) {
    int group = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= rows * groups) return;  // the whole warp leaves
    int size = channels / groups, first = group * size, channel = first % channels;
    auto before = [=](int i) { return applied(BEFORE, y[first + i], parameter, channel + i); };
    auto [mean, rstd] = statistics(size, eps, before);
    for (int i = lane; i < size; i += 32) {
        float x = __fsub_rn(before(i), mean) * rstd * weight[channel + i] + bias[channel + i];
        out[first + i] = applied(AFTER, x, parameter, channel + i);
    }
}

// The launcher of that, for groups of any size. One block owns 8 groups.
template <auto BEFORE, auto AFTER>
void groupnorm_any_size(const float* y, const float* weight, const float* bias,
                        const float* parameter, float* out, int rows, int channels, int groups,
                        float eps) {
    int blocks = (rows * groups + 7) / 8;
    groupnorm_any_size_kernel<BEFORE, AFTER>
        <<<blocks, 8 * 32, 0, current_stream()>>>(y, weight, bias, parameter, out, rows, channels, groups, eps);
}

// The least value of a row of GroupNorm that this lane met; INFINITY where it met none.
// row, weight, bias: (channels). One warp owns every WARPSth group, from number `warp` on.
// All 32 lanes of the warp must call it.
__device__ inline float least_of_lane(const float* row, const float* weight, const float* bias,
                                      int channels, int groups, float eps) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = channels / groups;
    float least = INFINITY;
    for (int group = warp; group < groups; group += blockDim.x / 32) {
        int channel = group * size;
        auto [mean, rstd] = statistics(size, eps, [=](int i) { return row[channel + i]; });
        for (int c = channel + lane; c < channel + size; c += 32) {
            least = smaller(least, (row[c] - mean) * rstd * weight[c] + bias[c]);
        }
    }
    return least;
}

// (v - mean) / sqrt(variance + eps), over the 4 * LANES values of an aligned group of LANES lanes.
// LANES is a power of two. All 32 lanes of the warp must call it.
template <int LANES>
__device__ inline float4 normalised(float4 v, float eps) {
    float mean = warp_sum<LANES>((v.x + v.y) + (v.z + v.w)) / (4 * LANES);
    v = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
    float squares = warp_sum<LANES>((v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w));
    float rstd = rsqrtf(squares / (4 * LANES) + eps);
    return {v.x * rstd, v.y * rstd, v.z * rstd, v.w * rstd};
}
// Quads: four neighbouring floats that are read or written at once. From exercise 03.3.

// The four floats at p as one value. p must lie at a multiple of 16 bytes.
__device__ inline float4& quad(float* p) { return *reinterpret_cast<float4*>(p); }
__device__ inline const float4& quad(const float* p) { return *reinterpret_cast<const float4*>(p); }

// Whether four floats at p may be read or written at once.
__device__ inline bool aligned(const float* p) { return reinterpret_cast<size_t>(p) % 16 == 0; }

// Memory -> registers: elements (row, col) to (row, col + 3) of a matrix; 0 for those outside of
// it. Where `whole`, the caller vouches that all four are inside, at a multiple of 16 bytes.
__device__ inline float4 load4(const float* matrix, int rows, int cols, int row, int col,
                               bool whole) {
    const float* from = matrix + row * cols + col;
    if (whole) return quad(from);
    float4 values = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row < rows && col + 0 < cols) values.x = from[0];
    if (row < rows && col + 1 < cols) values.y = from[1];
    if (row < rows && col + 2 < cols) values.z = from[2];
    if (row < rows && col + 3 < cols) values.w = from[3];
    return values;
}

// The same for writing: elements outside of the matrix are left out.
__device__ inline void store4(float* matrix, int rows, int cols, int row, int col, float4 values,
                              bool whole) {
    float* to = matrix + row * cols + col;
    if (whole) {
        quad(to) = values;
        return;
    }
    if (row < rows && col + 0 < cols) to[0] = values.x;
    if (row < rows && col + 1 < cols) to[1] = values.y;
    if (row < rows && col + 2 < cols) to[2] = values.z;
    if (row < rows && col + 3 < cols) to[3] = values.w;
}

// y: (rows, channels), weight, bias, shift: (channels), out: (channels, rows)
// out[c, b] = min over row b of GroupNorm(y) + shift[c], for groups of any size.
// One thread owns every 32nd value of a group, one warp a group. One block owns ROWS rows of y.
template <int THREADS, int ROWS, auto BLOCK_MIN, auto SPREAD>
__global__ void __launch_bounds__(THREADS)
    min_of_any_size_kernel(const float* y, const float* weight, const float* bias,
                           const float* shift, float* out, int rows, int channels, int groups) {
    __shared__ alignas(16) float least[ROWS];
    int row0 = blockIdx.x * ROWS;
    float mine[ROWS];
    for (int r = 0; r < ROWS; r++) {
        const float* row = &y[(row0 + r) * channels];
        bool inside = row0 + r < rows;
        mine[r] = inside ? least_of_lane(row, weight, bias, channels, groups, EPS) : INFINITY;
    }
    BLOCK_MIN(mine, least);
    SPREAD(least, shift, out, rows, channels, row0);
}

// --- solutions/08_fused_tails/gn_swish_multiply_swish.cu

namespace forwards {
constexpr int THREADS = 256;

// swish(swish(x) * scale)
__device__ float activate(float x, float scale) {
    x = __fdividef(x, 1.0f + expf(-x)) * scale;
    return __fdividef(x, 1.0f + expf(-x));
}

// y, out: (rows, channels), weight, bias, scale: (channels), for groups of 4 * LANES channels
// out = swish(swish(GroupNorm(y)) * scale), with swish(x) = x / (1 + e^-x)
// One thread owns a quad, LANES neighbouring lanes a group. One block owns 256 quads in a row.
template <int LANES>
__global__ void gn_swish_multiply_swish_kernel(const float* y, const float* weight,
                                               const float* bias, const float* scale, float* out,
                                               int rows, int channels) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * 4;  // the quad, counted through all rows
    bool inside = first < rows * channels;
    int channel = first % channels;
    float4 w = quad(&weight[channel]), b = quad(&bias[channel]);
    float4 s = quad(&scale[channel]);
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (inside) v = quad(&y[first]);
    v = normalised<LANES>(v, EPS);
    v = {v.x * w.x + b.x, v.y * w.y + b.y, v.z * w.z + b.z, v.w * w.w + b.w};
    v = {activate(v.x, s.x), activate(v.y, s.y), activate(v.z, s.z), activate(v.w, s.w)};
    if (inside) quad(&out[first]) = v;
}

void gn_swish_multiply_swish(const float* y, const float* weight, const float* bias,
                             const float* scale, float* out, int rows, int channels, int groups) {
    int blocks = (rows * channels / 4 + THREADS - 1) / THREADS;
    auto launch = [=](auto lanes) {
        gn_swish_multiply_swish_kernel<lanes()>
            <<<blocks, THREADS, 0, current_stream()>>>(y, weight, bias, scale, out, rows, channels);
    };
    if (dispatch(channels / groups, launch)) return;
    groupnorm_any_size<identity, activate>(y, weight, bias, scale, out, rows, channels, groups,
                                           EPS);
}
}

// GroupNorm backwards, in registers. From exercises 12.2 and 12.3.

// Sums of columns, the same bits every time. From exercise 12.1.


// x: (rows, channels), out: (parts, channels). out[p][c] = the sum of x[r][c] over the rows from
// p * each on, `each` of them. One thread owns every 8th value of a column.
// One block of (32, 8) threads owns 32 columns of a part.
static __global__ void column_sums_kernel(const float* x, float* out, int rows, int channels,
                                          int each) {
    __shared__ float sums[8][32];
    int channel = blockIdx.x * 32 + threadIdx.x;
    int first = blockIdx.y * each, end = min(first + each, rows);
    float sum = 0.0f;
    for (int row = first + threadIdx.y; row < end && channel < channels; row += 8) {
        sum += x[size_t(row) * channels + channel];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();  // the sums of all 8 warps are there before the first warp adds them
    if (threadIdx.y > 0 || channel >= channels) return;
    for (int i = 1; i < 8; i++) sum += sums[i][threadIdx.x];
    out[size_t(blockIdx.y) * channels + channel] = sum;
}

// out[c] = the sum of column c. x: (rows, channels), out: (channels)
inline void add_columns(const float* x, float* out, int rows, int channels) {
    constexpr int EACH = 128;  // rows of a block
    int parts = (rows + EACH - 1) / EACH;
    dim3 block(32, 8), grid((channels + 31) / 32, parts);
    Scratch<float> partials(parts > 1 ? size_t(parts) * channels : 0);
    if (parts > 1) {
        column_sums_kernel<<<grid, block, 0, current_stream()>>>(x, partials.data, rows, channels, EACH);
        x = partials.data;
        rows = parts;
    }
    column_sums_kernel<<<grid.x, block, 0, current_stream()>>>(x, out, rows, channels, rows);
}
// Arithmetic on quads, member by member. From exercise 12.2.


__device__ inline float4 operator+(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline float4 operator-(float4 a, float4 b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}
__device__ inline float4 operator*(float4 a, float4 b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
__device__ inline float4 operator-(float4 a, float b) {
    return {a.x - b, a.y - b, a.z - b, a.w - b};
}
__device__ inline float4 operator*(float4 a, float b) {
    return {a.x * b, a.y * b, a.z * b, a.w * b};
}

// The sum of the four.
__device__ inline float total(float4 a) { return (a.x + a.y) + (a.z + a.w); }

// A lane's four values of a group, normalised, and 1 / sqrt(variance + eps) of the group.
struct Normalised {
    float4 x;
    float rstd;
};

// v: a lane's values; LANES aligned neighbouring lanes have the group. All 32 lanes must call it.
template <int LANES>
__device__ inline Normalised normalise(float4 v) {
    v = v - warp_sum<LANES>(total(v)) / (4 * LANES);
    float rstd = rsqrtf(warp_sum<LANES>(total(v * v)) / (4 * LANES) + EPS);
    return {v * rstd, rstd};
}

// Backwards: from u, the gradient of n.x, the gradient of v. All 32 lanes must call it.
template <int LANES>
__device__ inline float4 through(Normalised n, float4 u) {
    float mean = warp_sum<LANES>(total(u)) / (4 * LANES);
    float along = warp_sum<LANES>(total(u * n.x)) / (4 * LANES);
    return (u - mean - n.x * along) * n.rstd;
}

// What one thread owns: four channels, in ROWS rows. Neighbouring threads own neighbouring quads;
// where a row ends, the next thread begins the next ROWS rows, which are the next part.
constexpr int ROWS = 16;
struct Stretch {
    int channel, part, row;  // the first of its channels, its part, and the first row of that

    __device__ explicit Stretch(int channels) {
        int thread = blockIdx.x * blockDim.x + threadIdx.x, quads = channels / 4;
        channel = thread % quads * 4;
        part = thread / quads;
        row = part * ROWS;
    }
    // sums: (parts, channels). The sums of this thread's channels, over its rows.
    __device__ void store(float* sums, float4 value, int rows, int channels) const {
        if (row < rows) quad(&sums[size_t(part) * channels + channel]) = value;
    }
};

// What stands before and after GroupNorm, backwards: here nothing. In a chain of its own an
// exercise has other functions of these names. p is the channel's parameter, dp its gradient, to
// which they add.
struct Nothing {
    // The value that is normalised.
    __device__ static float before(float y, float p) { return y; }
    // d, the gradient of that -> the gradient of y
    __device__ static float before_backward(float y, float p, float d, float& dp) { return d; }
    // g, the gradient of the result -> that of z, which GroupNorm gave
    __device__ static float after_backward(float z, float p, float g, float& dp) { return g; }
};

// The functions of a chain for a quad, member by member.
template <class Chain>
__device__ inline float4 before(float4 y, float4 p) {
    return {Chain::before(y.x, p.x), Chain::before(y.y, p.y), Chain::before(y.z, p.z),
            Chain::before(y.w, p.w)};
}
template <class Chain>
__device__ inline float4 before_backward(float4 y, float4 p, float4 d, float4& dp) {
    return {
        Chain::before_backward(y.x, p.x, d.x, dp.x), Chain::before_backward(y.y, p.y, d.y, dp.y),
        Chain::before_backward(y.z, p.z, d.z, dp.z), Chain::before_backward(y.w, p.w, d.w, dp.w)};
}
template <class Chain>
__device__ inline float4 after_backward(float4 z, float4 p, float4 g, float4& dp) {
    return {Chain::after_backward(z.x, p.x, g.x, dp.x), Chain::after_backward(z.y, p.y, g.y, dp.y),
            Chain::after_backward(z.z, p.z, g.z, dp.z), Chain::after_backward(z.w, p.w, g.w, dp.w)};
}

// Tensors of a call. parameter may be null, and bias, where the chain does not need z.
struct Inputs {
    const float *y, *weight, *bias, *parameter, *grad_out;
    int rows, channels, groups;
};

// dy: (rows, channels), as are the others: what each row adds to the gradients of weight, bias and
// parameter. For groups of any size.
// One thread owns every 32nd value of a group, one warp the group. One block owns 8.
template <class Chain>
__global__ void backward_any_size_kernel(Inputs in, float* dy, float* dweight, float* dbias,
                                         float* dparameter) {
    int group = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (group >= in.rows * in.groups) return;  // the whole warp leaves
    int size = in.channels / in.groups, first = group * size, c = first % in.channels;
    auto p = [=](int i) { return in.parameter ? in.parameter[c + i] : 0.0f; };
    auto value = [=](int i) { return Chain::before(in.y[first + i], p(i)); };
    auto [mean, rstd] = statistics(size, EPS, value);
    float sum = 0.0f, along = 0.0f;
    for (int i = lane; i < size; i += 32) {
        float x = __fsub_rn(value(i), mean) * rstd, dp = 0.0f;
        float z = x * in.weight[c + i] + (in.bias ? in.bias[c + i] : 0.0f);
        float g = Chain::after_backward(z, p(i), in.grad_out[first + i], dp);
        if (dweight) dweight[first + i] = g * x;
        if (dbias) dbias[first + i] = g;
        if (dparameter) dparameter[first + i] = dp;
        dy[first + i] = g * in.weight[c + i];
        sum += dy[first + i];
        along += dy[first + i] * x;
    }
    sum = warp_sum(sum) / size;
    along = warp_sum(along) / size;
    for (int i = lane; i < size; i += 32) {
        float dp = 0.0f, x = __fsub_rn(value(i), mean) * rstd,
              d = (dy[first + i] - sum - x * along) * rstd;
        dy[first + i] = Chain::before_backward(in.y[first + i], p(i), d, dp);
        if (dparameter) dparameter[first + i] += dp;
    }
}

// The sums of a call: what the parts of the rows add to each gradient of a parameter, (parts,
// channels), and in the end all of them. For groups of other sizes each row is a part.
template <class Chain, int COUNT>
class Gradients {
    int parts, channels;
    Scratch<float> memory;

   public:
    Gradients(int rows, int channels, int groups)
        : parts(dispatch(channels / groups, [](auto) {}) ? (rows + ROWS - 1) / ROWS : rows),
          channels(channels),
          memory(size_t(COUNT) * parts * channels) {}

    // Those of gradient number i; null where the call wants fewer.
    float* part(int i) const { return i < COUNT ? memory.data + size_t(i) * parts * channels : 0; }

    // Blocks of so many threads, of which each owns a Stretch.
    int blocks(int threads) const { return (channels / 4 * parts + threads - 1) / threads; }

    // Starts launch(lanes) where lanes() lanes fill a group, or the slow path.
    template <class Launch>
    void launch(Launch launch, Inputs in, float* dy) const {
        if (dispatch(in.channels / in.groups, launch)) return;
        int blocks = (in.rows * in.groups + 7) / 8;
        backward_any_size_kernel<Chain><<<blocks, 256, 0, current_stream()>>>(in, dy, part(0), part(1), part(2));
    }

    // The gradients themselves, (channels) each: in the order of their numbers.
    template <class... Outputs>
    void add_up(Outputs... outputs) const {
        int i = 0;
        (add_columns(part(i++), outputs, parts, channels), ...);
    }
};

// --- solutions/12_ship_it/gn_swish_multiply_swish_backward.cu

namespace backwards {
constexpr int THREADS = 256;

// The derivative of swish(x) = x / (1 + e^-x)
__device__ float swish_derivative(float x) {
    float sigmoid = 1.0f / (1.0f + expf(-x));
    return sigmoid * (1.0f + x * (1.0f - sigmoid));
}

struct Chain : Nothing {
    // g, the gradient of swish(swish(z) * scale) -> that of z; that of scale is added to dscale
    __device__ static float after_backward(float z, float scale, float g, float& dscale) {
        float s = z / (1.0f + expf(-z));
        g *= swish_derivative(s * scale);
        dscale += g * s;
        return g * scale * swish_derivative(z);
    }
};

// y, grad_out, dy: (rows, channels), weight, bias, scale: (channels), groups of 4 * LANES channels
// weights, biases, scales: (parts, channels), what each part adds to dweight, dbias and dscale
// One thread owns a quad of channels in ROWS rows, LANES neighbouring lanes a group of each.
template <int LANES>
__global__ void gn_swish_multiply_swish_backward_kernel(const float* y, const float* weight,
                                                        const float* bias, const float* scale,
                                                        const float* grad_out, float* dy,
                                                        float* weights, float* biases,
                                                        float* scales, int rows, int channels) {
    Stretch own(channels);
    float4 w = quad(&weight[own.channel]), b = quad(&bias[own.channel]);
    float4 s = quad(&scale[own.channel]), dw = {}, db = {}, ds = {};
    for (int row = own.row; row < own.row + ROWS; row++) {
        int at = row * channels + own.channel;
        bool inside = row < rows;
        float4 v = {}, g = {};
        if (inside) {
            v = quad(&y[at]);
            g = quad(&grad_out[at]);
        }
        Normalised n = normalise<LANES>(v);
        g = after_backward<Chain>(n.x * w + b, s, g, ds);
        dw = dw + g * n.x;
        db = db + g;
        float4 d = through<LANES>(n, g * w);
        if (inside) quad(&dy[at]) = d;
    }
    own.store(weights, dw, rows, channels);
    own.store(biases, db, rows, channels);
    own.store(scales, ds, rows, channels);
}

void gn_swish_multiply_swish_backward(const float* y, const float* weight, const float* bias,
                                      const float* scale, const float* grad_out, float* dy,
                                      float* dweight, float* dbias, float* dscale, int rows,
                                      int channels, int groups) {
    Gradients<Chain, 3> sums(rows, channels, groups);
    auto launch = [&](auto lanes) {
        gn_swish_multiply_swish_backward_kernel<lanes()>
            <<<sums.blocks(THREADS), THREADS, 0, current_stream()>>>(y, weight, bias, scale, grad_out, dy, sums.part(0),
                                                sums.part(1), sums.part(2), rows, channels);
    };
    sums.launch(launch, {y, weight, bias, scale, grad_out, rows, channels, groups}, dy);
    sums.add_up(dweight, dbias, dscale);
}
}

// The calls of `host.cpp`, by the kernels of the two exercises.

void start_tail(const float* y, const float* weight, const float* bias, const float* parameter,
                float* out, int rows, int channels, int groups) {
    forwards::gn_swish_multiply_swish(y, weight, bias, parameter, out, rows, channels, groups);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
void start_tail_backward(const float* y, const float* weight, const float* bias,
                         const float* parameter, const float* grad_out, float* dy, float* dweight,
                         float* dbias, float* dparameter, int rows, int channels, int groups) {
    backwards::gn_swish_multiply_swish_backward(y, weight, bias, parameter, grad_out, dy, dweight, dbias, dparameter, rows, channels, groups);
}
"""

KERNELS_HOPPER = r"""
// What follows a product of warpgroups in its registers: groups of channels. From exercise 11.7.

// A warpgroup that splits rows of W while others multiply. From exercise 11.6.

// Tiles of x * W^T on Hopper: who brings them, in which order, and where they wait. From exercises
// 11.2 to 11.4, for floats as they lie and for halves, high and low.

// Matrices as the copy engine wants them: each row begins at a multiple of 16 bytes.


// copy: (rows, padded), of a matrix (rows, cols). One thread owns every so many-th element of it.
template <class T>
static __global__ void copy_padded_kernel(const T* matrix, T* copy, int rows, int cols,
                                          int padded) {
    size_t threads = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size_t(rows) * padded;
         i += threads) {
        int row = i / padded, col = i % padded;
        copy[i] = col < cols ? matrix[size_t(row) * cols + col] : T(0.0f);
    }
}

// A matrix (rows, cols): itself where it fits, or is null, else a copy whose rows are longer, with
// zeros behind each.
template <class T>
struct AlignedRows {
    static constexpr int EACH = 16 / sizeof(T);  // elements of 16 bytes

    int rows, cols;
    Scratch<T> copy;
    const T* data;

    AlignedRows(const T* matrix, int rows, int cols)
        : rows(rows),
          cols((cols + EACH - 1) / EACH * EACH),
          copy(fits(matrix, cols) ? 0 : size_t(rows) * this->cols),
          data(copy.data ? copy.data : matrix) {
        if (!copy.data) return;
        int blocks = min(1024, (rows * this->cols + 255) / 256);
        copy_padded_kernel<<<blocks, 256, 0, current_stream()>>>(matrix, copy.data, rows, cols, this->cols);
    }

   private:
    static bool fits(const T* matrix, int cols) {
        return !matrix || (reinterpret_cast<size_t>(matrix) % 16 == 0 && cols % EACH == 0);
    }
};
// What Hopper adds (sm_90a): copies of whole tiles, barriers in shared memory that count arrivals
// and bytes, products that four warps give at once. One function for each instruction.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef EMU_INLINE
#    include "emulator/hopper.h"  // the same functions, without a GPU
#else

using Barrier = unsigned long long;  // an mbarrier: in shared memory

__device__ inline unsigned address_in_shared(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// --- Barriers ------------------------------------------------------------------------------------
// A phase of a barrier ends when all arrivals came, and all bytes that were announced. Phases have
// parities 0, 1, 0, 1 ...

// One thread calls it, then fence_barriers(); then __syncthreads() or cluster_sync().
__device__ inline void barrier_init(Barrier* barrier, int arrivals) {
    // PTX: mbarrier.init.shared::cta.b64 [barrier], arrivals;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address_in_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// What was initialised is seen by the copy engine and by the other blocks of the cluster.
__device__ inline void fence_barriers() {
    // PTX: fence.mbarrier_init.release.cluster;
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

// Before it says that a tile may be overwritten, use what you have read of it: a load that is under
// way does not hold an arrival back, and copies do not wait for it.
__device__ inline void barrier_arrive(Barrier* barrier) {
    // PTX: mbarrier.arrive.shared::cta.b64 _, [barrier];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address_in_shared(barrier))
                 : "memory");
}

// One arrival, and so many bytes that copies will bring before the phase may end.
__device__ inline void barrier_arrive_expect(Barrier* barrier, int bytes) {
    // PTX: mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(
                     address_in_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Arrives at the same barrier of the block `rank` of the cluster. It says that reads are done, and
// hands no writes over, so the default .release.cta will do: with .release.cluster a warp waits for
// all of its memory each time.
__device__ inline void barrier_arrive_at(Barrier* barrier, int rank) {
    // PTX: mapa.shared::cluster.u32 there, barrier, rank;
    //      mbarrier.arrive.shared::cluster.b64 _, [there];
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(address_in_shared(barrier)),
        "r"(rank)
        : "memory");
}

// Waits until the phase of this parity has ended.
__device__ inline void barrier_wait(Barrier* barrier, int parity) {
    // PTX: again: mbarrier.try_wait.parity.shared::cta.b64 done, [barrier], parity;
    //      @!done bra again;
    asm volatile(
        "{\n.reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}\n" ::"r"(address_in_shared(barrier)),
        "r"(parity)
        : "memory");
}

// --- The copy engine -----------------------------------------------------------------------------

// A tile of a matrix, global -> shared memory. `map` says matrix, tile and swizzle; `col` and `row`
// are the tile's first element. Its bytes count at `barrier`. What lies outside becomes 0. One
// thread calls it.
__device__ inline void load_tile(void* tile, const CUtensorMap* map, int col, int row,
                                 Barrier* barrier) {
    // PTX: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    //      [tile], [map, {col, row}], [barrier];
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];\n" ::"r"(address_in_shared(tile)),
        "l"(map), "r"(col), "r"(row), "r"(address_in_shared(barrier))
        : "memory");
}

// The same for all blocks of the cluster whose bit of `blocks` is set: the same place in each one's
// shared memory, and its bytes count at the same barrier in each.
__device__ inline void load_tile_multicast(void* tile, const CUtensorMap* map, int col, int row,
                                           Barrier* barrier, unsigned short blocks) {
    // PTX: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    //      .multicast::cluster [tile], [map, {col, row}], [barrier], blocks;
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" ::"r"(address_in_shared(tile)),
        "l"(map), "r"(col), "r"(row), "r"(address_in_shared(barrier)), "h"(blocks)
        : "memory");
}

// `bytes` that lie in a row, global -> shared memory: a multiple of 16, as both addresses are. They
// count at `barrier`. One thread calls it.
__device__ inline void load_bytes(void* to, const void* from, int bytes, Barrier* barrier) {
    // PTX: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
    //      [to], [from], bytes, [barrier];
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];\n" ::"r"(address_in_shared(to)),
        "l"(from), "r"(bytes), "r"(address_in_shared(barrier))
        : "memory");
}

// A tile, shared -> global memory; what lies outside of the matrix is left out. After
// fence_async() by all who wrote the tile, and a barrier. One thread calls it.
__device__ inline void store_tile_async(const CUtensorMap* map, const void* tile, int col,
                                        int row) {
    // PTX: cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {col, row}], [tile];
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n" ::"l"(map),
        "r"(col), "r"(row), "r"(address_in_shared(tile))
        : "memory");
}

__device__ inline void commit_stores() {
    // PTX: cp.async.bulk.commit_group;
    asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

// Waits until at most MOST groups of stores still read shared memory.
template <int MOST>
__device__ inline void wait_for_stores() {
    // PTX: cp.async.bulk.wait_group.read MOST;
    asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(MOST) : "memory");
}

// What this thread wrote to shared memory is seen by the copy engine and by the tensor cores.
__device__ inline void fence_async() {
    // PTX: fence.proxy.async.shared::cta;
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// The same of global memory: what this thread wrote there, or has learned that others did.
__device__ inline void fence_async_global() {
    // PTX: fence.proxy.async.global;
    asm volatile("fence.proxy.async.global;\n" ::: "memory");
}

// Ahead of its first use: the map itself is fetched.
__device__ inline void prefetch(const CUtensorMap* map) {
    // PTX: prefetch.tensormap [map];
    asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// --- Products of four warps ----------------------------------------------------------------------

// Where a tile lies, for a product: rows of 128 bytes along K, swizzled by 128 bytes, as
// load_tile() leaves them. The tile begins at a multiple of 1,024 bytes; `tile` may lie 32, 64 or
// 96 behind it.
__device__ inline unsigned long long make_descriptor(const void* tile) {
    // bits 0-13: address / 16, 16-29: not used here, 32-45: bytes from 8 rows to the next / 16,
    // 62-63: 1, a swizzle of 128 bytes
    unsigned long long address = (address_in_shared(tile) & 0x3ffff) >> 4;
    return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// The same for wgmma_f16_mn: rows of 128 bytes along N, 8 of them in 1,024 bytes, 16 of them at
// once. `chunk`: the bytes from 64 columns to the next 64.
__device__ inline unsigned long long make_descriptor_mn(const void* tile, int chunk) {
    // bits 16-29: bytes from 64 columns to the next / 16, 32-45: bytes from 8 rows to the next / 16
    unsigned long long address = (address_in_shared(tile) & 0x3ffff) >> 4;
    return address | (unsigned long long)(chunk >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

// Before the first product, and after registers that a product reads or adds to were written.
__device__ inline void wgmma_fence() {
    // PTX: wgmma.fence.sync.aligned;
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ inline void wgmma_commit() {
    // PTX: wgmma.commit_group.sync.aligned;
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

// Waits until at most MOST groups of products are under way: before their sums or tiles are
// touched.
template <int MOST>
__device__ inline void wgmma_wait() {
    // PTX: wgmma.wait_group.sync.aligned MOST;
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(MOST) : "memory");
}

// The lists of 32, 64 and 128 registers, in the text of the instruction and as its operands.
#    define TEN(t)                                                                             \
        "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t \
        "8, %" #t "9, "
#    define NAMES_32 TEN() TEN(1) TEN(2) "%30, %31"
#    define NAMES_64 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60, %61, %62, %63"
#    define NAMES_100 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)
#    define NAMES_128 NAMES_100 TEN(10) TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127"
#    define FLOATS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#    define FLOATS_16(d, i) \
        FLOATS_4(d, i), FLOATS_4(d, i + 4), FLOATS_4(d, i + 8), FLOATS_4(d, i + 12)
#    define FLOATS_32(d, i) FLOATS_16(d, i), FLOATS_16(d, i + 16)
#    define FLOATS_64(d, i) FLOATS_32(d, i), FLOATS_32(d, i + 32)
#    define FLOATS_128(d, i) FLOATS_64(d, i), FLOATS_64(d, i + 64)

// d = a * b + (add ? d : 0), begun and not waited for. a: 64 rows, b: N rows, each of 32 bytes
// along K; make_descriptor() says where. With warp = threadIdx.x / 32 % 4, thread t owns
// d[4 * j + 2 * h + e] of row 16 * warp + 8 * h + lane / 4, column 8 * j + lane % 4 * 2 + e.
// All 128 threads must call it; the first of their warps has a number that 4 divides.
// PTX: wgmma.mma_async.sync.aligned.m64nNkK.f32.T.T d, a, b, add, 1, 1 [, 0, 0];
//      1, 1: neither is negated; 0, 0, of 16 bits alone: both lie along K
#    define WGMMA(name, n, k, type, registers, last, a_at, b_at, add_at)                           \
        __device__ inline void name(float (&d)[registers], unsigned long long a,                   \
                                    unsigned long long b, int add) {                               \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                              \
                         ", 0;\n"                                                                  \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k" #k ".f32." #type "." #type     \
                         " {" NAMES_##registers "}, %" #a_at ", %" #b_at ", p, 1, 1" last ";\n}\n" \
                         : FLOATS_##registers(d, 0)                                                \
                         : "l"(a), "l"(b), "r"(add));                                              \
        }
WGMMA(wgmma_f16, 64, 16, f16, 32, ", 0, 0", 32, 33, 34)
WGMMA(wgmma_f16, 128, 16, f16, 64, ", 0, 0", 64, 65, 66)
WGMMA(wgmma_f16, 256, 16, f16, 128, ", 0, 0", 128, 129, 130)
WGMMA(wgmma_bf16, 64, 16, bf16, 32, ", 0, 0", 32, 33, 34)
WGMMA(wgmma_bf16, 128, 16, bf16, 64, ", 0, 0", 64, 65, 66)
WGMMA(wgmma_bf16, 256, 16, bf16, 128, ", 0, 0", 128, 129, 130)
WGMMA(wgmma_tf32, 64, 8, tf32, 32, "", 32, 33, 34)
WGMMA(wgmma_tf32, 128, 8, tf32, 64, "", 64, 65, 66)
WGMMA(wgmma_tf32, 256, 8, tf32, 128, "", 128, 129, 130)
#    undef WGMMA
// The same where a is in registers: 64 rows of 16 halves. With warp and lane as above, a[0] holds
// row 16 * warp + lane / 4, columns lane % 4 * 2 and the next; a[1] row + 8; a[2] and a[3] the same
// rows, 8 columns on. They must not be used, either, before the product has been waited for.
// wgmma_f16_mn takes a tile whose rows lie along N ("MN-major"); make_descriptor_mn() says where.
// PTX: wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T d, a, b, add, 1, 1, mn;
//      mn: 0 where b lies along K, 1 where it lies along N
#    define WGMMA(name, type, mn, n, registers, a0, a1, a2, a3, b_at, add_at)              \
        __device__ inline void name(float (&d)[registers], const unsigned (&a)[4],         \
                                    unsigned long long b, int add) {                       \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                      \
                         ", 0;\n"                                                          \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type \
                         " {" NAMES_##registers "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3  \
                                                "}, %" #b_at ", p, 1, 1, " #mn ";\n}\n"    \
                         : FLOATS_##registers(d, 0)                                        \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));  \
        }
#    define WGMMAS(name, type, mn)                             \
        WGMMA(name, type, mn, 64, 32, 32, 33, 34, 35, 36, 37)  \
        WGMMA(name, type, mn, 128, 64, 64, 65, 66, 67, 68, 69) \
        WGMMA(name, type, mn, 256, 128, 128, 129, 130, 131, 132, 133)
WGMMAS(wgmma_f16, f16, 0)
WGMMAS(wgmma_bf16, bf16, 0)
WGMMAS(wgmma_f16_mn, f16, 1)
#    undef WGMMAS
#    undef WGMMA
#    undef TEN
#    undef NAMES_32
#    undef NAMES_64
#    undef NAMES_100
#    undef NAMES_128
#    undef FLOATS_4
#    undef FLOATS_16
#    undef FLOATS_32
#    undef FLOATS_64
#    undef FLOATS_128

// --- Warps with tasks of their own, blocks in clusters -------------------------------------------

// Gives registers back, or takes more: N of them for each thread from here on, a multiple of 8 from
// 24 to 256. All warps of the warpgroup must call it.
template <int N>
__device__ inline void fewer_registers() {
    // PTX: setmaxnreg.dec.sync.aligned.u32 N;
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}
template <int N>
__device__ inline void more_registers() {
    // PTX: setmaxnreg.inc.sync.aligned.u32 N;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

// A barrier of `threads` threads of the block, a multiple of 32. `name` is 1 to 15; 0 is that of
// __syncthreads().
__device__ inline void sync_some(int name, int threads) {
    // PTX: barrier.sync name, threads;
    asm volatile("barrier.sync %0, %1;\n" ::"r"(name), "r"(threads) : "memory");
}

// The number of this block within its cluster.
__device__ inline int cluster_rank() {
    // PTX: mov.u32 rank, %cluster_ctarank;
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster.
__device__ inline void cluster_sync() {
    // PTX: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;\n" ::
            : "memory");
}

#endif

// --- Host ----------------------------------------------------------------------------------------

// Floats are rounded to TF32 on the way, to the nearest. As ..._FLOAT32 they would come as they
// are, and the tensor core would cut them.
template <class T>
constexpr CUtensorMapDataType type_in_map();
template <>
constexpr CUtensorMapDataType type_in_map<float>() {
    return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
}
template <>
constexpr CUtensorMapDataType type_in_map<__half>() {
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}
template <>
constexpr CUtensorMapDataType type_in_map<__nv_bfloat16>() {
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

// The driver's function that makes maps, asked for once; null where there is none.
inline auto map_encoder() {
    static void* encode = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult result;
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &result);
        return function;
    }();
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode);
}

// Of a matrix (rows, cols), row-major, for tiles of `tile_rows` rows, at most 256, by 128 bytes,
// swizzled by 128 bytes. The matrix begins at a multiple of 16 bytes, and so does each row. `type`
// says what the copy engine makes of the elements.
// A map of all zeros where CUDA refuses: then copies by it fail.
template <class T>
CUtensorMap make_map(const T* matrix, int rows, int cols, int tile_rows,
                     CUtensorMapDataType type = type_in_map<T>()) {
    CUtensorMap map = {};
    if (!map_encoder()) return map;
    cuuint64_t shape[] = {cuuint64_t(cols), cuuint64_t(rows)};
    cuuint64_t stride[] = {cols * sizeof(T)};
    cuuint32_t tile[] = {128 / sizeof(T), cuuint32_t(tile_rows)}, step[] = {1, 1};
    map_encoder()(&map, type, 2, const_cast<T*>(matrix), shape, stride, tile, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}
// A matrix of floats as two of halves and a power of two for each row. From exercise 10.3.

#include <cuda_fp16.h>


constexpr int SPLITTERS = 256;  // threads of a block that splits

// Four floats as halves, in two registers each: the nearest halves, and what these leave.
struct Halves {
    uint2 high, low;
};
__device__ inline Halves halves(float4 v) {
    __half2 a = __floats2half2_rn(v.x, v.y), b = __floats2half2_rn(v.z, v.w);
    float2 left = __half22float2(a), right = __half22float2(b);
    __half2 c = __floats2half2_rn(v.x - left.x, v.y - left.y);
    __half2 d = __floats2half2_rn(v.z - right.x, v.w - right.y);
    return {{reinterpret_cast<unsigned&>(a), reinterpret_cast<unsigned&>(b)},
            {reinterpret_cast<unsigned&>(c), reinterpret_cast<unsigned&>(d)}};
}

// What the largest magnitude of a row is divided by, so that it lies from 2^14 to 2^15: 2^exponent.
// Beyond 2^100 and below 2^-100 it does not; some go in floats.
__device__ inline int exponent_of(float most) {
    return most > 0.0f ? max(-100, min(100, ilogbf(most))) - 14 : 0;
}

// Whether halves hold v, scaled, with fewer than 19 bits: the low half ends at 2^-24. They hold 0.
__device__ inline bool imprecise(float v) { return v != 0.0f && fabsf(v) < 0.015625f; }
__device__ inline int imprecise(float4 v) {  // how many of four
    return imprecise(v.x) + imprecise(v.y) + imprecise(v.z) + imprecise(v.w);
}

// How many elements of a row may be imprecise, of `cols`: so many lie below 2^-6 where most lie
// around 1, and the largest is 2^15 times as large. An outlier above that leaves too few bits.
__device__ inline bool too_wide(int imprecise, int cols) { return imprecise > cols / 32; }

// What the halves of a row are multiplied by. NaN where the row's range is too wide for them: then
// no result is finite, and each is added up in floats.
__device__ inline float scale_of(int exponent, int imprecise, int cols) {
    return too_wide(imprecise, cols) ? NAN : ldexpf(1.0f, exponent);
}

// The largest magnitude of four; a NaN is left out.
__device__ inline float largest(float4 v) {
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// The largest of a warp's values; a NaN is left out. All 32 lanes of the warp must call it.
__device__ inline float warp_max(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    return value;
}

// The largest of the values of THREADS threads. All of them must call it.
template <int THREADS>
__device__ inline float block_max(float value) {
    __shared__ float most[THREADS / 32];
    value = warp_max(value);
    if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = value;
    __syncthreads();  // the value of every warp is there
    for (int i = 0; i < THREADS / 32; i++) value = fmaxf(value, most[i]);
    return value;
}

// The sum of the counts of THREADS threads. All of them must call it.
template <int THREADS>
__device__ inline int block_count(int count) {
    __shared__ int counts[THREADS / 32];
    count = __reduce_add_sync(0xffffffffu, count);
    if (threadIdx.x % 32 == 0) counts[threadIdx.x / 32] = count;
    __syncthreads();  // the count of every warp is there
    count = 0;
    for (int i = 0; i < THREADS / 32; i++) count += counts[i];
    return count;
}

// A matrix of floats: element (r, k) is at data[r * row + k * along].
struct Floats {
    const float* data;
    size_t row, along;

    // Whether four elements along k may be read at once, of rows of length K.
    __device__ bool in_quads(int K) const {
        return along == 1 && row % 4 == 0 && K % 4 == 0 && aligned(data);
    }
    // Elements (r, k) to (r, k + 3); 0 for those from K on.
    template <bool QUADS>
    __device__ float4 load(int r, int k, int K) const {
        const float* from = data + r * row + k * along;
        if (QUADS) return quad(from);
        return {from[0], k + 1 < K ? from[along] : 0.0f, k + 2 < K ? from[2 * along] : 0.0f,
                k + 3 < K ? from[3 * along] : 0.0f};
    }
};

// sums[r][c] += a[r][k] * b[c][k] over every 32nd quad of K, in floats, for 4 rows of a, from row0
// on, and 8 of b, from col0 on: as many as a thread has registers to load at once. Bit r of `rows`
// and bit c of `cols` say which of them are read.
template <bool QUADS>
__device__ inline void add_dots(float (&sums)[4][8], Floats a, int row0, unsigned rows, Floats b,
                                int col0, unsigned cols, int K) {
    for (int k = threadIdx.x % 32 * 4; k < K; k += 128) {
        float4 of_a[4], of_b[8];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            of_a[r] = rows >> r & 1 ? a.load<QUADS>(row0 + r, k, K) : float4{};
        }
#pragma unroll
        for (int c = 0; c < 8; c++) {
            of_b[c] = cols >> c & 1 ? b.load<QUADS>(col0 + c, k, K) : float4{};
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
                sums[r][c] += of_a[r].x * of_b[c].x + of_a[r].y * of_b[c].y;
                sums[r][c] += of_a[r].z * of_b[c].z + of_a[r].w * of_b[c].w;
            }
        }
    }
}

// y: of a tile of 8 x 8 elements of a * b^T, from (row0, col0) on, row lane / 4, columns
// lane % 4 * 2 and the next, as products of tensor cores leave them. Those that are not finite are
// added up again in floats, by the whole warp.
// a: (rows, K), b: (cols, K). All 32 lanes of the warp must call it.
__device__ inline float2 add_in_floats(float2 y, Floats a, int row0, int rows, Floats b, int col0,
                                       int cols, int K) {
    constexpr unsigned ALL = 0xffffffff;
    int lane = threadIdx.x % 32, row = row0 + lane / 4, col = col0 + lane % 4 * 2;
    bool needs_x = row < rows && col < cols && !isfinite(y.x);
    bool needs_y = row < rows && col + 1 < cols && !isfinite(y.y);
    unsigned mine = needs_x | needs_y << 1;
    if (!__any_sync(ALL, mine)) return y;
    unsigned of_row = __reduce_or_sync(ALL, mine ? 1u << lane / 4 : 0);
    unsigned of_col = __reduce_or_sync(ALL, mine << lane % 4 * 2);
    bool quads = a.in_quads(K) && b.in_quads(K);
    for (int half = 0; half < 8; half += 4) {  // of the rows
        unsigned some = of_row >> half & 15;
        if (!some) continue;
        float sums[4][8] = {};
        if (quads) add_dots<true>(sums, a, row0 + half, some, b, col0, of_col, K);
        else add_dots<false>(sums, a, row0 + half, some, b, col0, of_col, K);
#pragma unroll
        for (int r = 0; r < 4; r++) {
#pragma unroll
            for (int c = 0; c < 8; c++) {
                float sum = sums[r][c];
                for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
                if (lane != (half + r) * 4 + c / 2) continue;
                if (c % 2 == 0 && needs_x) y.x = sum;
                if (c % 2 == 1 && needs_y) y.y = sum;
            }
        }
    }
    return y;
}

// x: (rows, cols), high, low: (rows, padded), scale: (rows). x = (high + low) * scale, nearly.
// One thread owns EACH quads of a row, every 256th: they stay in registers between the two passes.
// One block owns a row of 1024 * EACH columns.
template <int EACH>
__global__ void __launch_bounds__(SPLITTERS)
    split_kernel(const float* x, __half* high, __half* low, float* scale, int rows, int cols,
                 int padded) {
    const float* row = x + size_t(blockIdx.x) * cols;
    uint2* highs = reinterpret_cast<uint2*>(high + size_t(blockIdx.x) * padded);
    uint2* lows = reinterpret_cast<uint2*>(low + size_t(blockIdx.x) * padded);
    float4 kept[EACH];
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        kept[i] = quad(&row[(threadIdx.x + i * SPLITTERS) * 4]);
        most = fmaxf(most, largest(kept[i]));
    }
    int exponent = exponent_of(block_max<SPLITTERS>(most));
    float up = ldexpf(1.0f, -exponent);
    int few = 0;  // elements for which halves have too few bits
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float4 v = {kept[i].x * up, kept[i].y * up, kept[i].z * up, kept[i].w * up};
        few += imprecise(v);
        Halves h = halves(v);
        highs[threadIdx.x + i * SPLITTERS] = h.high;
        lows[threadIdx.x + i * SPLITTERS] = h.low;
    }
    few = block_count<SPLITTERS>(few);
    if (threadIdx.x == 0) scale[blockIdx.x] = scale_of(exponent, few, cols);
}

// The same for rows of any length. One warp owns a row, a block eight of them.
static __global__ void split_any_kernel(const float* x, __half* high, __half* low, float* scale,
                                        int rows, int cols, int padded) {
    int r = blockIdx.x * (SPLITTERS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= rows) return;  // the whole warp leaves
    const float* row = x + size_t(r) * cols;
    uint2* highs = reinterpret_cast<uint2*>(high + size_t(r) * padded);
    uint2* lows = reinterpret_cast<uint2*>(low + size_t(r) * padded);
    float most = 0.0f;
    for (int i = lane; i < cols; i += 32) most = fmaxf(most, fabsf(row[i]));
    int exponent = exponent_of(warp_max(most));
    float up = ldexpf(1.0f, -exponent);
    int few = 0;  // elements for which halves have too few bits
    for (int q = lane; q < padded / 4; q += 32) {
        float4 v = load4(row, 1, cols, 0, 4 * q, false);
        v = {v.x * up, v.y * up, v.z * up, v.w * up};
        few += imprecise(v);
        Halves h = halves(v);
        highs[q] = h.high;
        lows[q] = h.low;
    }
    few = __reduce_add_sync(0xffffffffu, few);
    if (lane == 0) scale[r] = scale_of(exponent, few, cols);
}

// A matrix (rows, cols) as planes of halves (rows, padded), in memory of its own.
struct Planes {
    int rows, padded;
    Scratch<__half> halves;
    Scratch<float> scales;

    Planes(int rows, int cols)
        : rows(rows),
          padded((cols + 63) / 64 * 64),
          halves(size_t(2) * rows * padded),
          scales((rows + 3) / 4 * 4) {}
    __half* high() const { return halves.data; }
    __half* low() const { return halves.data + size_t(rows) * padded; }
    float* scale() const { return scales.data; }

    void split(const float* matrix, int cols) const { split(matrix, cols, rows); }

    // The first `rows` of it alone.
    void split(const float* matrix, int cols, int rows) const {
        bool quads = reinterpret_cast<size_t>(matrix) % 16 == 0;
        if (quads && cols == 8192) {
            split_kernel<8>
                <<<rows, SPLITTERS, 0, current_stream()>>>(matrix, high(), low(), scale(), rows, cols, padded);
        } else if (quads && cols == 1024) {
            split_kernel<1>
                <<<rows, SPLITTERS, 0, current_stream()>>>(matrix, high(), low(), scale(), rows, cols, padded);
        } else {
            int blocks = (rows + SPLITTERS / 32 - 1) / (SPLITTERS / 32);
            split_any_kernel<<<blocks, SPLITTERS, 0, current_stream()>>>(matrix, high(), low(), scale(), rows, cols,
                                                    padded);
        }
    }
};
// What a thread owns of a product of its warpgroup. From exercise 11.1.

// 64 rows of a matrix (M, N), from row0 on, and as many columns as the product has, from col0 on:
// sums[i] is of row(i) and col(i).
struct Patch {
    int first_row, col0, left;

    __device__ Patch(int row0, int col0) : col0(col0) {
        int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
        first_row = row0 + 16 * warp + lane / 4;
        left = lane % 4 * 2;
    }
    // The part that begins with sums[i]: 8 divides i.
    __device__ Patch from(int i) const {
        Patch part = *this;
        part.col0 += 2 * i;
        return part;
    }
    __device__ int row(int i) const { return first_row + 8 * (i / 2 % 2); }
    __device__ int at(int i) const { return left + 8 * (i / 4) + i % 2; }  // of the tile's columns
    __device__ int col(int i) const { return col0 + at(i); }
};

// The same as store(), where all columns are inside and quads may be written at once. Of each 16
// columns a lane has a pair in the first 8 and one in the second. It trades one of them with its
// neighbour, and has a quad: half as many writes, which bring more bytes to each row.
template <int SUMS>
__device__ inline void store_quads(float* out, int M, int N, const Patch& patch,
                                   const float (&sums)[SUMS]) {
    bool odd = threadIdx.x % 2;
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        float* to = out + size_t(patch.row(first)) * N + patch.col(0) + (odd ? 6 : 0);
#pragma unroll
        for (int i = first; i < SUMS; i += 8, to += 16) {
            float2 near = {sums[i], sums[i + 1]}, far = {sums[i + 4], sums[i + 5]};
            float x = __shfl_xor_sync(0xffffffffu, odd ? near.x : far.x, 1);
            float y = __shfl_xor_sync(0xffffffffu, odd ? near.y : far.y, 1);
            float4 quad = odd ? float4{x, y, far.x, far.y} : float4{near.x, near.y, x, y};
            if (patch.row(first) < M) __stcs(reinterpret_cast<float4*>(to), quad);
        }
    }
}

// out[row(i)][col(i)] = sums[i], as far as that is inside. out: (M, N). Nobody reads it again soon.
// All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void store(float* out, int M, int N, const Patch& patch,
                             const float (&sums)[SUMS]) {
    bool quads = N % 4 == 0 && reinterpret_cast<size_t>(out) % 16 == 0;
    if (quads && patch.col0 + 2 * SUMS <= N) return store_quads(out, M, N, patch, sums);
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        int row = patch.row(i), col = patch.col(i);
        if (row < M && col < N) out[size_t(row) * N + col] = sums[i];
    }
}

constexpr int BM = 128;       // rows of a tile
constexpr int CONSUMERS = 2;  // warpgroups that multiply, 64 rows of BM each
constexpr int BAND = 8;       // rows of tiles that run along the columns together

// How x * W^T is made: of floats, which copies round to 10 bits of fraction; or of halves,
// high and low, as exact as fp32, split before or, most of W, by a warpgroup beside the products.
struct Tf32 {
    using Element = float;
    static constexpr bool BESIDE = false, KEEPS = false;
    static constexpr int PLANES = 1, BN = 256, BK = 32, STAGES = 4, SETS = 2;
    static constexpr int THREADS = 128 * (CONSUMERS + 1), REGISTERS = 232;
};
struct Exact {
    using Element = __half;
    static constexpr bool BESIDE = false, KEEPS = false;
    static constexpr int PLANES = 2, BN = 128, BK = 64, STAGES = 3, SETS = 1;
    static constexpr int THREADS = 128 * (CONSUMERS + 1), REGISTERS = 232;
};
struct Beside : Exact {
    static constexpr bool BESIDE = true;
    static constexpr int THREADS = 128 * (CONSUMERS + 2), REGISTERS = 208;
};
struct Training : Beside {  // and keeps x * W^T + b, which a backward needs
    static constexpr bool KEEPS = true;
};

// W: (N, K) floats, and its planes, (N, padded), of which rows from `first` on are split in the
// same launch that needs them. ready: for each BN rows of W, how many threads are done with one.
struct Splitting {
    const float* W;
    __half *high, *low;
    float* scale;
    int* ready;
    int first, N, K, padded;
};

// x: (M, K), W: (N, K), by the maps of their planes. K is that of the planes, padded.
struct Operands {
    CUtensorMap x[2], W[2];  // high and low; of floats the first alone
    int M, N, K;
    const float* x_scale;       // what rows of halves were divided by: (M)
    Floats x_floats, W_floats;  // before they were split; their K is `floats`
    int floats;
    Splitting split;  // where W is split beside
    float* linear;    // (M, N): where x * W^T + b is kept, in training
    // Of each column of out, each (N) or null: b, weight, bias, one more, and W_scale; as far as
    // `wide`, a multiple of 4.
    const float* of_columns[5];
    int wide;
};

// The tiles of a matrix (M, N) that this block owns: every nth, in bands of BAND rows of
// tiles, along the columns of each. Blocks that work at one time share tiles of x, and of W.
template <int BN>
struct Tiles {
    int rows, cols, number = blockIdx.x;

    __device__ Tiles(int M, int N) : rows((M + BM - 1) / BM), cols((N + BN - 1) / BN) {}
    __device__ bool more() const { return number < rows * cols; }
    __device__ void next() { number += gridDim.x; }
    __device__ int band() const { return number / (BAND * cols); }
    __device__ int within() const { return number % (BAND * cols); }
    __device__ int height() const { return min(BAND, rows - band() * BAND); }  // of the last less
    __device__ int row() const { return (band() * BAND + within() % height()) * BM; }
    __device__ int col() const { return within() / height() * BN; }
};

// Tiles of one round: rows of 128 bytes along K.
template <class TileConfig>
struct Stage {
    typename TileConfig::Element x[TileConfig::PLANES][BM][TileConfig::BK],
        W[TileConfig::PLANES][TileConfig::BN][TileConfig::BK];
};

// What an epilogue needs of the columns of a tile: brought with it, since two warps a scheduler are
// too few to hide the way to global memory.
template <int BN>
struct Columns {
    float b[BN], weight[BN], bias[BN], extra[BN], W_scale[BN];
};

// What the four warps that split a row of W have found in it, each in its part.
struct RowOfW {
    float most[4];     // the largest magnitude
    int imprecise[4];  // for how many elements halves have too few bits
};

// Stages that go round from the producer to the consumers and back.
template <class TileConfig>
struct Ring {
    struct alignas(16) Shared {
        Stage<TileConfig> stages[TileConfig::STAGES];
        Columns<TileConfig::BN> columns[TileConfig::SETS];
        RowOfW rows[2];  // that are being split
        Barrier full[TileConfig::STAGES], empty[TileConfig::STAGES];
        Barrier there[TileConfig::SETS], used[TileConfig::SETS];  // of columns
    };
    static constexpr int BYTES = sizeof(Shared);

    Shared& shared;
    int stage = 0, parity = 0;
    int before = -1;  // the stage of the round before, where this consumer still has it
    int tiles = 0;    // so far

    // All threads of the block must call it. memory: BYTES, from a multiple of 1,024 on
    __device__ explicit Ring(void* memory) : shared(*static_cast<Shared*>(memory)) {
        if (threadIdx.x == 0) {
            for (int s = 0; s < TileConfig::STAGES; s++) {
                barrier_init(&shared.full[s], 1);
                barrier_init(&shared.empty[s], CONSUMERS);
            }
            for (int s = 0; s < TileConfig::SETS; s++) {
                barrier_init(&shared.there[s], 1);
                barrier_init(&shared.used[s], 128 * CONSUMERS);
            }
            fence_barriers();
        }
        __syncthreads();  // the barriers are there before anyone waits at them
    }
    __device__ void next() {
        if (++stage == TileConfig::STAGES) stage = 0, parity ^= 1;
    }

    // The producer's thread: brings the tiles of one round, once its readers let go of the stage.
    __device__ void bring(const Operands& in, int row0, int col0, int k) {
        Stage<TileConfig>& to = shared.stages[stage];
        Barrier* full = &shared.full[stage];
        barrier_wait(&shared.empty[stage], parity ^ 1);
        barrier_arrive_expect(full, sizeof(Stage<TileConfig>));
#pragma unroll
        for (int p = 0; p < TileConfig::PLANES; p++) {
            load_tile(to.x[p], &in.x[p], k, row0, full);
            load_tile(to.W[p], &in.W[p], k, col0, full);
        }
        next();
    }

    // The same for what the epilogue needs of the tile's columns.
    __device__ void bring_columns(const Operands& in, int col0) {
        int set = tiles % TileConfig::SETS, bytes = min(TileConfig::BN, in.wide - col0) * 4,
            all = 0;
        auto& of = shared.columns[set];
        float* to[] = {of.b, of.weight, of.bias, of.extra, of.W_scale};  // as in of_columns
        barrier_wait(&shared.used[set], tiles++ / TileConfig::SETS % 2 ^ 1);
#pragma unroll
        for (int p = 0; p < 5; p++) all += in.of_columns[p] ? bytes : 0;
        barrier_arrive_expect(&shared.there[set], all);
#pragma unroll
        for (int p = 0; p < 5; p++) {
            const float* from = in.of_columns[p];
            if (from) load_bytes(to[p], from + col0, bytes, &shared.there[set]);
        }
    }

    // Consumers: waits until the tiles of a round are there.
    __device__ Stage<TileConfig>& filled() {
        barrier_wait(&shared.full[stage], parity);
        return shared.stages[stage];
    }
    // The products of the round before are done: its stage goes back.
    __device__ void release() {
        if (before >= 0 && threadIdx.x % 128 == 0) barrier_arrive(&shared.empty[before]);
        before = -1;
    }
    // The products of this round are under way, and those before are done.
    __device__ void release_before() {
        release();
        before = stage;
        next();
    }
    // Waits until what the epilogue needs of the tile's columns is there; and gives it back, after
    // the last result was stored: an arrival does not wait for loads that are under way, and the
    // next tile's columns would overtake them.
    __device__ const Columns<TileConfig::BN>& columns() {
        int set = tiles % TileConfig::SETS;
        barrier_wait(&shared.there[set], tiles / TileConfig::SETS % 2);
        return shared.columns[set];
    }
    __device__ void release_columns() { barrier_arrive(&shared.used[tiles++ % TileConfig::SETS]); }
};

// Waits until the rows of W from `row` on that a tile needs are split.
__device__ inline void wait_for_rows(const Splitting& split, int row) {
    if (row < split.first) return;
    int all = 128 * min(Beside::BN, split.N - row);  // each row is told of by the 128 that split it
    while (atomicAdd(&split.ready[row / Beside::BN], 0) < all) __nanosleep(64);
    __threadfence();       // what they wrote is seen by this thread,
    fence_async_global();  // and by the copies that it begins
}

// The producer: brings all tiles that the block needs. One of its threads does.
template <class TileConfig>
__device__ inline void bring_all(Ring<TileConfig>& ring, const Operands& in) {
    fewer_registers<40>();
    if (threadIdx.x % 128 > 0) return;
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        if (TileConfig::BESIDE) wait_for_rows(in.split, tile.col());
        int behind = min(TileConfig::STAGES * TileConfig::BK, in.K) -
                     1;  // the first tiles, which are urgent
        for (int k = 0; k < in.K; k += TileConfig::BK) {
            ring.bring(in, tile.row(), tile.col(), k);
            if (k <= behind && behind < k + TileConfig::BK) ring.bring_columns(in, tile.col());
        }
    }
}

// What this thread's two rows of halves were divided by.
__device__ inline float2 scales_of_rows(const Operands& in, const Patch& patch) {
    int above = patch.row(0), below = patch.row(2);
    return {above < in.M ? in.x_scale[above] : 1.0f, below < in.M ? in.x_scale[below] : 1.0f};
}

// Of y, what is not finite is added up again in floats: two elements of a lane at once, which lie
// side by side, in a tile of 8 x 8. All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void add_again(float (&y)[SUMS], const Operands& in, Patch patch) {
    Floats x = in.x_floats, W = in.W_floats;
    int M = in.M, N = in.N, K = in.floats, lane = threadIdx.x % 32;
    for (int i = 0; i < SUMS; i += 2) {
        int row0 = patch.row(i) - lane / 4, col0 = patch.col(i) - lane % 4 * 2;
        float2 sum = add_in_floats({y[i], y[i + 1]}, x, row0, M, W, col0, N, K);
        y[i] = sum.x, y[i + 1] = sum.y;
    }
}

// y *= the scales of its row and column. Not finite are then what has an infinity among its halves,
// which leaves inf - inf, and all of a row whose range is too wide for halves: it has a scale of
// NaN. All 32 lanes of the warp must call it.
template <int SUMS>
__device__ inline void scale(float (&y)[SUMS], float2 x_scale, const float* W_scale,
                             const Operands& in, const Patch& patch) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        float of_col = patch.col(i) < in.N ? W_scale[patch.at(i)] : 0.0f;
        y[i] = y[i] * (i / 2 % 2 ? x_scale.y : x_scale.x) * of_col;
        finite &= isfinite(y[i]);
    }
    if (__all_sync(0xffffffffu, finite)) return;
    float again[SUMS];  // in memory, where it has an index
#pragma unroll
    for (int i = 0; i < SUMS; i++) again[i] = y[i];
    add_again(again, in, patch);
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = again[i];
}

// --- Host

// x and W as the copy engine wants them, in memory of their own where they do not lie so.
template <class TileConfig>
struct Prepared;
template <>
struct Prepared<Tf32> {
    AlignedRows<float> x, W;

    Prepared(const float* x, const float* W, int M, int N, int K) : x(x, M, K), W(W, N, K) {}
    Operands operands() const {
        Operands in = {};
        in.x[0] = make_map(x.data, x.rows, x.cols, BM);
        in.W[0] = make_map(W.data, W.rows, W.cols, Tf32::BN);
        in.M = x.rows, in.N = W.rows, in.K = x.cols;
        return in;
    }
    bool waits() const { return false; }             // whether blocks wait for each other
    int bytes() const { return Ring<Tf32>::BYTES; }  // of shared memory that a block needs
};
template <>
struct Prepared<Exact> {
    Planes x, W;
    Floats x_floats, W_floats;
    int floats;
    float* linear = nullptr;  // see Operands

    Prepared(const float* x, const float* W, int M, int N, int K) : Prepared(x, W, M, N, K, N) {}
    // The caller splits both.
    Prepared(Floats x, Floats W, int M, int N, int K)
        : x(M, K), W(N, K), x_floats(x), W_floats(W), floats(K) {
        if (N % 4) cudaMemsetAsync(this->W.scale(), 0, (N + 3) / 4 * 4 * sizeof(float), current_stream());
    }
    Operands operands() const {
        Operands in = {};
        in.M = x.rows, in.N = W.rows, in.K = x.padded;
        in.x[0] = make_map(x.high(), in.M, in.K, BM);
        in.x[1] = make_map(x.low(), in.M, in.K, BM);
        in.W[0] = make_map(W.high(), in.N, in.K, Exact::BN);
        in.W[1] = make_map(W.low(), in.N, in.K, Exact::BN);
        in.x_scale = x.scale(), in.of_columns[4] = W.scale();
        in.x_floats = x_floats, in.W_floats = W_floats, in.floats = floats;
        in.linear = linear;
        return in;
    }
    bool waits() const { return false; }
    int bytes() const { return Ring<Exact>::BYTES; }

   protected:
    Prepared(const float* x, const float* W, int M, int N, int K, int first)  // rows of W
        : Prepared(Floats{x, size_t(K), 1}, Floats{W, size_t(K), 1}, M, N, K) {
        this->x.split(x, K);
        this->W.split(W, K, first);
    }
};

// Blocks of a launch: at most one for each multiprocessor, and no more than have it done as soon.
// An H200 is faster with 128 blocks of two tiles than with 132, of which eight own one.
template <class TileConfig>
int blocks_for(int M, int N) {
    int device, most, tiles = ((M + BM - 1) / BM) * ((N + TileConfig::BN - 1) / TileConfig::BN);
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, device);
    int each = max(1, (tiles + most - 1) / most);  // tiles of a block
    return (tiles + each - 1) / each;
}

// Of W only those rows are split before that the first tile of each block needs; all of them where
// the others cannot be copied in quads, or one of them has no room in shared memory.
template <>
struct Prepared<Beside> : Prepared<Exact> {
    static constexpr int MOST = 227 * 1024;  // bytes of shared memory that a block may have
    Scratch<int> ready;
    int first;

    Prepared(const float* x, const float* W, int M, int N, int K)
        : Prepared<Exact>(x, W, M, N, K, first_rows(W, M, N, K)), ready(N), first(0) {
        first = first_rows(W, M, N, K);
        cudaMemsetAsync(ready.data, 0, N * sizeof(int), current_stream());
    }
    Operands operands() const {
        Operands in = Prepared<Exact>::operands();
        in.split = {W_floats.data, W.high(), W.low(), W.scale(), ready.data,
                    first,         in.N,     floats,  in.K};
        return in;
    }
    bool waits() const { return first < W.rows; }
    int bytes() const { return Ring<Beside>::BYTES + (waits() ? W.padded * 4 : 0); }

   private:
    static int first_rows(const float* W, int M, int N, int K) {
        bool quads = K % 4 == 0 && reinterpret_cast<size_t>(W) % 16 == 0;
        if (!quads || Ring<Beside>::BYTES + (K + 63) / 64 * 64 * 4 > MOST) return N;
        int together = min((M + BM - 1) / BM, BAND);  // tiles of the same rows of W, at first
        return min(N, (blocks_for<Beside>(M, N) + together - 1) / together * Beside::BN);
    }
};

template <>
struct Prepared<Training> : Prepared<Beside> {
    Prepared(const float* x, const float* W, int M, int N, int K, float* kept)
        : Prepared<Beside>(x, W, M, N, K) {
        linear = kept;
    }
};

// What there is of each column of out, (N) each, or null.
struct Channels {
    const float *b = nullptr, *weight = nullptr, *bias = nullptr, *extra = nullptr;
};

// Starts kernel(operands, more ...). Blocks that wait for rows which others split run all at once,
// or not at all: the launch is cooperative.
template <class TileConfig, class... More, class... Rest>
void start(void (*kernel)(Operands, More...), const Prepared<TileConfig>& prepared,
           const Channels& channels, Rest... more) {
    Operands in = prepared.operands();
    AlignedRows b(channels.b, 1, in.N), weight(channels.weight, 1, in.N);
    AlignedRows bias(channels.bias, 1, in.N), extra(channels.extra, 1, in.N);
    in.of_columns[0] = b.data, in.of_columns[1] = weight.data;
    in.of_columns[2] = bias.data, in.of_columns[3] = extra.data;
    in.wide = b.cols;
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = prepared.waits();
    cudaLaunchConfig_t config = {};
    config.stream = current_stream();
    config.gridDim = dim3(blocks_for<TileConfig>(in.M, in.N));
    config.blockDim = dim3(TileConfig::THREADS);
    config.dynamicSmemBytes = prepared.bytes();
    config.attrs = &together;
    config.numAttrs = 1;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         int(config.dynamicSmemBytes));
    cudaLaunchKernelEx(&config, kernel, in, more...);
}
// The instructions around a tensor core that a warp gives, sm_80 and newer: one function each.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef EMU_INLINE
#    include "emulator/tensor_cores.h"  // the same functions, without a GPU
#else

// The address of shared memory that PTX asks for: its own kind, 32 bits wide.
__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Four matrices of 8 x 8 halves, shared memory -> registers. Lane i brings the address of row i % 8
// of matrix i / 8: 16 bytes, aligned. Of each matrix, lane i gets row i / 4, columns i % 4 * 2 and
// the next one. All 32 lanes of the warp must call it.
__device__ inline void load_matrices(unsigned (&matrices)[4], const void* row) {
    // PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0, d1, d2, d3}, [row];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// The same, each matrix turned around: lane i gets column i / 4, rows i % 4 * 2 and the next one.
__device__ inline void load_transposed(unsigned (&matrices)[4], const void* row) {
    // PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {d0, d1, d2, d3}, [row];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// d += a * b, for a of 16 x 16 halves, b of 16 x 8 and d of 16 x 8 floats. With row = lane / 4 and
// pair = lane % 4 * 2, a lane owns
//   a[0]: (row, pair), a[1]: (row + 8, pair), a[2]: (row, pair + 8), a[3]: (row + 8, pair + 8),
//         each and its right neighbour,
//   b[0]: (pair, row), b[1]: (pair + 8, row), each and the one below it,
//   d[0]: (row, pair), d[1]: (row, pair + 1), d[2] and d[3]: the same of row + 8.
// All 32 lanes of the warp must call it.
__device__ inline void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same for bfloat16.
__device__ inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// d += a * b, for a of 16 x 8 floats, b of 8 x 8 and d of 16 x 8, of which the product sees the
// first 10 bits of the fraction. With row = lane / 4 and col = lane % 4, a lane owns
//   a[0]: (row, col), a[1]: (row + 8, col), a[2]: (row, col + 4), a[3]: (row + 8, col + 4),
//   b[0]: (col, row), b[1]: (col + 4, row), and of d what mma_f16() says.
// All 32 lanes of the warp must call it.
__device__ inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    // PTX: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d, a, b, d;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Begins to copy 16 bytes, global -> shared memory, both aligned. Of the source only the first
// `bytes` are read; zeros take the place of the others.
__device__ inline void copy_async(void* to, const void* from, int bytes = 16) {
    // PTX: cp.async.cg.shared.global [to], [from], 16, bytes;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
}

// The copies that this thread began since its last commit are one group.
__device__ inline void commit_copies() {
    // PTX: cp.async.commit_group;
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most the MOST youngest groups of this thread are under way. What others copied
// is there after they waited, and a __syncthreads().
template <int MOST>
__device__ inline void wait_for_copies() {
    // PTX: cp.async.wait_group MOST;
    asm volatile("cp.async.wait_group %0;\n" ::"n"(MOST) : "memory");
}

#endif

// The warpgroup that splits: every nth row of W from in.first on. One thread owns every
// 128th quad of each: it copies them to shared memory, and nobody else reads them there.
// quads: (padded / 4) of shared memory, rows: what its warps find in a row; the next row has
// another place. All 128 threads must call it.
__device__ inline void split_rows(const Splitting& in, float4* quads, RowOfW (&rows)[2]) {
    int me = threadIdx.x % 128, turn = 0;
    auto copy = [&](int r) {
        for (int i = me; r < in.N && i < in.padded / 4; i += 128) {
            const float* from = in.W + size_t(r) * in.K;
            copy_async(&quads[i], 4 * i < in.K ? from + 4 * i : from, 4 * i < in.K ? 16 : 0);
        }
        commit_copies();
    };
    copy(in.first + blockIdx.x);
    for (int r = in.first + blockIdx.x; r < in.N; r += gridDim.x, turn ^= 1) {
        RowOfW& row = rows[turn];
        wait_for_copies<0>();
        float most = 0.0f;
        for (int i = me; i < in.padded / 4; i += 128) most = fmaxf(most, largest(quads[i]));
        most = warp_max(most);
        if (me % 32 == 0) row.most[me / 32] = most;
        sync_some(1, 128);  // the largest of every warp is there
        for (int i = 0; i < 4; i++) most = fmaxf(most, row.most[i]);
        int exponent = exponent_of(most), few = 0;
        float up = ldexpf(1.0f, -exponent);
        for (int i = me; i < in.padded / 4; i += 128) {
            float4 v = quads[i];
            v = {v.x * up, v.y * up, v.z * up, v.w * up};
            few += imprecise(v);
            Halves h = halves(v);
            reinterpret_cast<uint2*>(in.high + size_t(r) * in.padded)[i] = h.high;
            reinterpret_cast<uint2*>(in.low + size_t(r) * in.padded)[i] = h.low;
        }
        copy(r + gridDim.x);  // its quads are read, and on their way while the rest is done
        few = __reduce_add_sync(0xffffffffu, few);
        if (me % 32 == 0) row.imprecise[me / 32] = few;
        sync_some(1, 128);  // the count of every warp is there
        few = row.imprecise[0] + row.imprecise[1] + row.imprecise[2] + row.imprecise[3];
        if (me == 0) in.scale[r] = scale_of(exponent, few, in.K);
        fence_async_global();  // what this thread wrote is seen by copies,
        __threadfence();       // and by those whom the next line tells
        atomicAdd(&in.ready[r / Beside::BN], 1);
    }
}

// What the warpgroups do that multiply nothing: bring tiles, or split W. ring is at `memory`.
template <class TileConfig>
__device__ inline void serve(Ring<TileConfig>& ring, char* memory, const Operands& in) {
    if (TileConfig::BESIDE && threadIdx.x / 128 > CONSUMERS) {
        fewer_registers<56>();
        float4* quads = reinterpret_cast<float4*>(memory + Ring<TileConfig>::BYTES);
        return split_rows(in.split, quads, ring.shared.rows);
    }
    bring_all(ring, in);
}
// x * W^T for a tile, in the registers of two warpgroups. From exercises 11.4 and 11.5.

#include <type_traits>


constexpr int PROMOTE = 4;  // rounds of BK, after which sums of halves go into totals: 256 of K

// y = x * W^T, of this thread's part of a tile. All threads of both consumers must call it.
template <int SUMS>
__device__ inline void multiply(float (&y)[SUMS], Ring<Tf32>& ring, const Operands& in,
                                const Patch&) {
    int top = threadIdx.x / 128 * 64;
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = 0.0f;
    for (int k0 = 0; k0 < in.K; k0 += Tf32::BK) {
        auto& tiles = ring.filled();
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < Tf32::BK; k += 8) {
            wgmma_tf32(y, make_descriptor(&tiles.x[0][top][k]), make_descriptor(&tiles.W[0][0][k]),
                       1);
        }
        wgmma_commit();
        wgmma_wait<1>();
        ring.release_before();
    }
    wgmma_wait<0>();
    ring.release();
}

// in.linear = y + b: what a backward needs of the forward. linear begins at a multiple of 8 bytes.
template <int SUMS>
__device__ inline void keep(const float (&y)[SUMS], const float* b, const Operands& in,
                            const Patch& patch) {
    bool pairs = in.N % 2 == 0;  // may be written at once
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        if (patch.row(first) >= in.M) continue;
        float* row = in.linear + size_t(patch.row(first)) * in.N + patch.col0;
#pragma unroll
        for (int i = first; i < SUMS; i += 4) {
            int at = patch.at(i);
            if (patch.col0 + at >= in.N) break;
            if (pairs) {
                __stcs(reinterpret_cast<float2*>(row + at), {y[i] + b[at], y[i + 1] + b[at + 1]});
            } else {
                row[at] = y[i] + b[at];
                if (patch.col0 + at + 1 < in.N) row[at + 1] = y[i + 1] + b[at + 1];
            }
        }
    }
}

// The same as exact as fp32: of halves, high and low, promoted every 256 of K, and scaled.
template <class TileConfig, int SUMS>
__device__ inline void multiply(float (&y)[SUMS], Ring<TileConfig>& ring, const Operands& in,
                                const Patch& patch) {
    int top = threadIdx.x / 128 * 64;
    float2 x_scale = scales_of_rows(in, patch);
#pragma unroll
    for (int i = 0; i < SUMS; i++) y[i] = 0.0f;
    for (int k0 = 0; k0 < in.K; k0 += PROMOTE * Exact::BK) {
        float sums[SUMS];
        for (int k = k0; k < min(in.K, k0 + PROMOTE * Exact::BK); k += Exact::BK) {
            auto& tiles = ring.filled();
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < Exact::BK; i += 16) {
                auto x_high = make_descriptor(&tiles.x[0][top][i]),
                     x_low = make_descriptor(&tiles.x[1][top][i]);
                auto W_high = make_descriptor(&tiles.W[0][0][i]),
                     W_low = make_descriptor(&tiles.W[1][0][i]);
                wgmma_f16(sums, x_high, W_low, k > k0 || i > 0);  // the first begins anew
                wgmma_f16(sums, x_low, W_high, 1);
                wgmma_f16(sums, x_high, W_high, 1);
            }
            wgmma_commit();
            wgmma_wait<1>();
            ring.release_before();
        }
        wgmma_wait<0>();
        ring.release();
#pragma unroll
        for (int i = 0; i < SUMS; i++) y[i] += sums[i];
    }
    scale(y, x_scale, ring.columns().W_scale, in, patch);
    if constexpr (TileConfig::KEEPS) keep(y, ring.columns().b, in, patch);
}

// --- Host

// Calls launch(way, size) for groups that an epilogue can normalise in registers, of 16, 32 or 64
// columns: with Tf32 for one product, else Beside, and the size as a constant. Returns whether it
// did.
template <class Launch>
bool choose(int terms, int size, Launch launch) {
    auto with = [=](auto constant) {
        terms == 1 ? launch(Tf32(), constant) : launch(Beside(), constant);
        return true;
    };
    if (size == 16) return with(std::integral_constant<int, 16>());
    if (size == 32) return with(std::integral_constant<int, 32>());
    if (size == 64) return with(std::integral_constant<int, 64>());
    return false;
}

// The sum over the four lanes that own the same row. All 32 lanes of the warp must call it.
__device__ inline float sum_along_row(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// GroupNorm of one group, without weight and bias: of two rows, in turns of two columns, as a lane
// has them. Four lanes have the group. All 32 lanes of the warp must call it.
template <int EACH>
__device__ inline void normalise(float (&y)[EACH]) {
    constexpr int SIZE = 2 * EACH;  // columns: half of EACH in each of four lanes
#pragma unroll
    for (int first = 0; first < 4; first += 2) {  // one row, then the other
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = first; i < EACH; i += 4) sum += y[i] + y[i + 1];
        float mean = sum_along_row(sum) / SIZE;
#pragma unroll
        for (int i = first; i < EACH; i += 4) {
            y[i] -= mean;
            y[i + 1] -= mean;
            squares += y[i] * y[i] + y[i + 1] * y[i + 1];
        }
        float rstd = rsqrtf(sum_along_row(squares) / SIZE + EPS);
#pragma unroll
        for (int i = first; i < EACH; i += 4) {
            y[i] *= rstd;
            y[i + 1] *= rstd;
        }
    }
}

// The elements of a group, of both rows, among those of a thread.
template <int SIZE, int SUMS>
__device__ inline float (&group_of(float (&sums)[SUMS], int first))
    [SIZE / 2] { return reinterpret_cast<float (&)[SIZE / 2]>(sums[first]); }

// --- Groups of other sizes: the linear layer alone

// in: x (M, K), W (N, K), b (N); out: (M, N). out = x * W^T + b
// One thread owns TileConfig::BN / 2 elements of each tile. One block owns many tiles.
template <class TileConfig>
__global__ void __launch_bounds__(TileConfig::THREADS, 1)
    linear_bias_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<TileConfig> ring(memory);
    int group = threadIdx.x / 128;
    if (group >= CONSUMERS) return serve(ring, memory, in);
    more_registers<TileConfig::REGISTERS>();
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float y[TileConfig::BN / 2];
        multiply(y, ring, in, patch);
        auto& of = ring.columns();
#pragma unroll
        for (int i = 0; i < TileConfig::BN / 2; i++)
            y[i] += patch.col(i) < in.N ? of.b[patch.at(i)] : 0.0f;
        store(out, in.M, in.N, patch, y);
        ring.release_columns();
    }
}


// --- solutions/11_hopper/linear_gn_swish_multiply_swish_hopper.cu

namespace hopper {
// swish(swish(x) * scale), with swish(x) = x / (1 + e^-x)
__device__ float activate(float x, float scale) {
    x = __fdividef(x, 1.0f + __expf(-x)) * scale;
    return __fdividef(x, 1.0f + __expf(-x));
}

// in: x (M, K), W (N, K), b, weight, bias, scale (N); out: (M, N)
// out = activate(GroupNorm(x * W^T + b), scale), for groups of SIZE columns
// One thread owns TileConfig::BN / 2 elements of each tile, if its warpgroup multiplies: two rows
// of its warp's 16, every fourth pair of columns. One block owns many tiles.
template <class TileConfig, int SIZE>
__global__ void __launch_bounds__(TileConfig::THREADS, 1)
    linear_gn_swish_multiply_swish_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<TileConfig> ring(memory);
    int group = threadIdx.x / 128;
    if (group >= CONSUMERS) return serve(ring, memory, in);
    more_registers<TileConfig::REGISTERS>();
    for (Tiles<TileConfig::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float sums[TileConfig::BN / 2];
        multiply(sums, ring, in, patch);
        auto& of = ring.columns();
#pragma unroll
        for (int first = 0; first < TileConfig::BN / 2; first += SIZE / 2) {  // group by group
            if (patch.col(first) >= in.N) break;
            auto& y = group_of<SIZE>(sums, first);
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++) y[i] += of.b[patch.at(first + i)];
            normalise(y);
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++) {
                int at = patch.at(first + i);
                y[i] = activate(y[i] * of.weight[at] + of.bias[at], of.extra[at]);
            }
            store(out, in.M, in.N, patch.from(first), y);  // while others still compute
        }
        ring.release_columns();
    }
}
}

// The two large products of a linear layer backwards, y = x * W^T + b, as exact as fp32, on Hopper.
// Both are products along rows, as the forward's is, of a matrix that was turned around while it
// was split. For solutions/models.

// A matrix of floats, turned around, as two of halves: for products along its columns. For
// solutions/models.


constexpr int TURN_ROWS = 64, TURN_COLS = 32;  // of a tile that is turned around

// x: (rows, cols). most[c] = the largest magnitude of column c as the bits of a float, which are in
// the order of the floats: 0 before. A NaN is left out.
// One thread owns every 8th row of 256 for a column. One block of (32, 8) threads owns 32 columns.
static __global__ void column_most_kernel(const float* x, unsigned* most, int rows, int cols) {
    __shared__ float largest[8][32];
    int col = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 256;
    float mine = 0.0f;
#pragma unroll 8
    for (int row = first + threadIdx.y; row < min(first + 256, rows); row += 8) {
        if (col < cols) mine = fmaxf(mine, fabsf(x[size_t(row) * cols + col]));
    }
    largest[threadIdx.y][threadIdx.x] = mine;
    __syncthreads();  // what all 8 warps found is there before the first warp reads it
    if (threadIdx.y > 0 || col >= cols) return;
    for (int i = 1; i < 8; i++) mine = fmaxf(mine, largest[i][threadIdx.x]);
    atomicMax(&most[col], __float_as_uint(mine));  // the same in any order
}

// x: (rows, cols), most: (cols), few: (cols), 0 before, high, low: (cols, padded), scale: (cols).
// x[r][c] = (high + low)[c][r] * scale[c], nearly; zeros behind `rows`. few[c] counts elements for
// which halves have too few bits: the warp that finds one too many writes a NaN to the column, so
// that no product of it is finite, and each is added up in floats.
// One thread owns a column of 8 rows to load, then 4 pairs of rows to store. One block of (32, 8)
// threads owns a tile.
static __global__ void split_transposed_kernel(const float* x, const unsigned* most, int* few,
                                               __half* high, __half* low, float* scale, int rows,
                                               int cols, int padded) {
    __shared__ float tile[TURN_COLS][TURN_ROWS + 1];  // one more: a column lies in 32 banks
    int row0 = blockIdx.y * TURN_ROWS, col0 = blockIdx.x * TURN_COLS;
#pragma unroll
    for (int r = threadIdx.y; r < TURN_ROWS; r += 8) {
        int row = row0 + r, col = col0 + threadIdx.x;
        bool inside = row < rows && col < cols;
        tile[threadIdx.x][r] = inside ? x[size_t(row) * cols + col] : 0.0f;
    }
    __syncthreads();  // the tile is there before it is read the other way
    int r = 2 * threadIdx.x;
#pragma unroll
    for (int c = threadIdx.y; c < TURN_COLS; c += 8) {
        int col = col0 + c;
        if (col >= cols) break;
        int exponent = exponent_of(__uint_as_float(most[col]));
        float up = ldexpf(1.0f, -exponent);
        if (row0 + r == 0) scale[col] = ldexpf(1.0f, exponent);
        float2 v = {tile[c][r] * up, tile[c][r + 1] * up};
        __half2 h = __floats2half2_rn(v.x, v.y);
        float2 left = __half22float2(h);
        size_t at = size_t(col) * padded + row0 + r;
        *reinterpret_cast<__half2*>(high + at) = h;
        *reinterpret_cast<__half2*>(low + at) = __floats2half2_rn(v.x - left.x, v.y - left.y);
        int mine = imprecise(v.x) + imprecise(v.y);
        if (!__any_sync(0xffffffffu, mine)) continue;
        int more = __reduce_add_sync(0xffffffffu, mine);
        if (threadIdx.x > 0) continue;
        int before = atomicAdd(&few[col], more);
        if (!too_wide(before, rows) && too_wide(before + more, rows)) high[at] = __float2half(NAN);
    }
}

// The launcher of both: to = the planes of matrix^T. matrix: (rows, to.rows)
inline void split_transposed(const float* matrix, int rows, const Planes& to) {
    int cols = to.rows;
    Scratch<unsigned> counts(size_t(2) * cols);  // most, and few
    unsigned* most = counts.data;
    int* few = reinterpret_cast<int*>(counts.data + cols);
    cudaMemsetAsync(most, 0, size_t(2) * cols * sizeof(unsigned), current_stream());
    dim3 block(32, 8), columns((cols + 31) / 32, (rows + 255) / 256);
    column_most_kernel<<<columns, block, 0, current_stream()>>>(matrix, most, rows, cols);
    dim3 tiles((cols + TURN_COLS - 1) / TURN_COLS, to.padded / TURN_ROWS);
    split_transposed_kernel<<<tiles, block, 0, current_stream()>>>(matrix, most, few, to.high(), to.low(), to.scale(),
                                              rows, cols, to.padded);
}

// in: A (M, K) and B (N, K) as halves, high and low; out: (M, N). out = A * B^T
// One thread owns 64 elements of each tile, if its warpgroup multiplies. One block owns many tiles.
static __global__ void __launch_bounds__(Exact::THREADS, 1)
    product_kernel(const __grid_constant__ Operands in, float* out) {
    extern __shared__ __align__(1024) char memory[];
    Ring<Exact> ring(memory);
    int group = threadIdx.x / 128;
    if (group == CONSUMERS) return bring_all(ring, in);
    more_registers<Exact::REGISTERS>();
    for (Tiles<Exact::BN> tile(in.M, in.N); tile.more(); tile.next()) {
        Patch patch(tile.row() + 64 * group, tile.col());
        float y[Exact::BN / 2];
        multiply(y, ring, in, patch);
        ring.release_columns();
        store(out, in.M, in.N, patch, y);
    }
}

// dx = dy * W. dy: (M, N), W: (N, K), dx: (M, K).
inline void linear_dx(const float* dy, const float* W, float* dx, int M, int N, int K) {
    Floats of_dy = {dy, size_t(N), 1}, of_W = {W, 1, size_t(K)};  // W^T
    Prepared<Exact> in(of_dy, of_W, M, K, N);
    in.x.split(dy, N);
    split_transposed(W, N, in.W);
    start(product_kernel, in, Channels(), dx);
}

// dW = dy^T * x. dy: (M, N), x: (M, K), dW: (N, K).
inline void linear_dW(const float* dy, const float* x, float* dW, int M, int N, int K) {
    Floats of_dy = {dy, 1, size_t(N)}, of_x = {x, 1, size_t(K)};  // dy^T, x^T
    Prepared<Exact> in(of_dy, of_x, N, K, M);
    split_transposed(dy, M, in.x);
    split_transposed(x, M, in.W);
    start(product_kernel, in, Channels(), dW);
}
// The calls of `hopper.cpp`: the fused model, of which y = x * W^T + b is kept where it is asked
// for, and the linear layer backwards.

void start_whole(const float* x, const float* W, const float* b, const float* weight,
                 const float* bias, const float* parameter, float* y, float* out, int M, int N,
                 int K, int groups) {
    Channels of = {b, weight, bias, parameter};
    auto launch = [=](auto size) {
        if (y) {
            auto kernel = hopper::linear_gn_swish_multiply_swish_kernel<Training, size()>;
            start(kernel, Prepared<Training>(x, W, M, N, K, y), of, out);
        } else {
            auto kernel = hopper::linear_gn_swish_multiply_swish_kernel<Beside, size()>;
            start(kernel, Prepared<Beside>(x, W, M, N, K), of, out);
        }
    };
    int size = N / groups;
    if (size == 16) launch(std::integral_constant<int, 16>());
    if (size == 32) launch(std::integral_constant<int, 32>());
    if (size == 64) launch(std::integral_constant<int, 64>());
}
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
}
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K) {
    linear_dW(dy, x, dW, M, N, K);
}
"""


def build():
    """The kernels, for the cards that are there."""
    if not CARDS:
        raise RuntimeError(f"{NAME} needs a CUDA card, and PyTorch sees none")
    names = [f"{a}{b}{'a' if HOPPER else ''}" for a, b in CARDS]
    functions = ["arguments", "tail_arguments", "tail", "tail_backward", "column_sums"]
    functions += ["whole", "infer", "products", "unobserved"] if HOPPER else []
    return load_inline(
        NAME,
        cpp_sources=[HOST, HOST_HOPPER] if HOPPER else [HOST],
        cuda_sources=[KERNELS, KERNELS_HOPPER] if HOPPER else [KERNELS],
        functions=functions,
        extra_cuda_cflags=[f"-gencode=arch=compute_{name},code=sm_{name}" for name in names],
        no_implicit_headers=True,
    )


kernels = build()
