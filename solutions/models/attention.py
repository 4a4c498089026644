"""Self-attention in KernelBench's format: `ModelNew` trains, by kernels of this course.

Made by `workbook sync` of kernels/models/attention.py, of kernels/models/new, of kernels/include
and, in kernels/14_attention/, of flash_attention_forward.cu and flash_attention_backward.cu.
Change those: what is changed here is lost.

Every product is three products of halves on Hopper's tensor cores, as exact as fp32: those of both
projections, forward and backward, and those of attention, whose scores never reach memory. A row of
x or of a projection's weight with outliers, more than 2^15 times what is usual in it, is multiplied
in floats. Attention has no such way: where a row of q, k or v has that range, what needs it is NaN.

Heads have up to 128 columns; 64 and 128 cost nothing extra, others are filled with zeros. Wider
heads are PyTorch's, as is everything where other cards than Hopper are, or none; a warning says
so. The model takes and returns float32, also under autocast, and has first derivatives only.
Layers that have hooks, or that have been replaced, are called, and attention is still ours.

What is where:

    line   43  Model                      self-attention by PyTorch
    line   83  ModelNew                   the same by the kernels
    line  107  run_linear                 forward of a projection, as an operator of PyTorch's
    line  120  run_linear_backward        backward of it
    line  132  run_attention              forward of attention, as an operator of PyTorch's
    line  146  run_attention_backward     backward of it
    line  268  HOST                       C++: checks tensors, calls the kernels
    line 1647  attention_forward_kernel   attention, forward
    line 1786  attention_backward_kernel  attention, backward: one of dq, dk and dv
    line 2748  linear_bias_kernel         a projection, forward
    line 2853  product_kernel             a projection, backward: dx or dW
    line 2891  column_sums_kernel         a projection, backward: the gradient of its bias
    line 2948  build                      compiles them for Hopper
"""

import warnings

import torch
from torch import Tensor, nn
from torch.utils.cpp_extension import load_inline

NAME = "self_attention"


class Model(nn.Module):
    """Projects x to q, k and v, attends head by head, projects back. x: (batch, S, width)

    causal: whether a position sees only itself and those in front of it."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.by_heads(self.qkv(x))
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(self.side_by_side(out))

    def by_heads(self, qkv: Tensor) -> Tensor:
        """(batch, S, 3 * width) -> (3, batch, heads, S, D)"""
        return qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def side_by_side(self, out: Tensor) -> Tensor:
        """(batch, heads, S, D) -> (batch, S, width)"""
        return out.transpose(1, 2).flatten(2)


batch_size = 4
positions = 2048
width = 2048
heads = 16
causal = True


def get_inputs() -> list[Tensor]:
    return [torch.randn(batch_size, positions, width)]


def get_init_inputs() -> list:
    return [width, heads, causal]


class ModelNew(Model):
    """The same by the kernels below, forward and backward, on Hopper."""

    def forward(self, x):
        """x: (batch, S, width), float32, on a CUDA card. Returns the same shape."""
        if not HOPPER or x.shape[-1] > WIDEST * self.heads:
            return super().forward(x)
        q, k, v = self.by_heads(project(x, self.qkv))
        out, _, _ = attention(q, k, v, self.causal)
        return project(self.side_by_side(out), self.out)


def project(x, layer):
    """What a linear layer gives for x. One that does more than its weights say is called itself."""
    if all_are_hooked() or not untouched(layer, nn.Linear) or layer.bias is None:
        return layer(x)
    return linear(x.flatten(0, 1), layer.weight, layer.bias).unflatten(0, x.shape[:2])


def empty_linear(x, W, b):
    """What the linear layer gives, with nothing in it."""
    return x.new_empty(x.shape[0], W.shape[0])


def run_linear(x, W, b):
    """x W^T + b. x: (rows, K), W: (N, K), b: (N)"""
    y = empty_linear(x, W, b)
    kernels.linear(x, W, b, y)
    return y


def empty_linear_gradients(dy, x, W, want_x, want_W):
    """Its gradients, with nothing in them; none of x or W where none is wanted."""
    dx, dW = x.new_empty(x.shape if want_x else (0,)), W.new_empty(W.shape if want_W else (0,))
    return dx, dW, W.new_empty(W.shape[0])


def run_linear_backward(dy, x, W, want_x, want_W):
    """Gradients of x, W and b, from that of the result."""
    grads = empty_linear_gradients(dy, x, W, want_x, want_W)
    kernels.linear_backward(dy, x, W, *grads)
    return grads


def empty_attention(q, k, v, causal):
    """What attention gives, with nothing in it."""
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1]), q.new_empty(q.shape[:-1])


def run_attention(q, k, v, causal):
    """The result, and of each query the largest score, as an exponent of 2, and the sum of
    2^(score - that), which a backward needs. q, k, v: (batch, heads, S, D)"""
    out, *saved = empty_attention(widened(q), k, v, causal)
    by = stretch(q)
    kernels.attend(widened(q, by), widened(k), widened(v), out, *saved, causal)
    return narrowed(out, q).contiguous(), *saved


def empty_attention_gradients(grad_output, q, k, v, out, row_max, row_sum, causal):
    """Its gradients, with nothing in them."""
    return tuple(one.new_empty(one.shape) for one in (q, k, v))


def run_attention_backward(grad_output, q, k, v, out, row_max, row_sum, causal):
    """Gradients of q, k and v, from what the forward has saved."""
    by = stretch(q)
    read = widened(q, by), widened(k), widened(v), widened(out), row_max, row_sum
    grads = empty_attention_gradients(grad_output, *read, causal)
    kernels.attend_backward(*read, widened(grad_output), *grads, causal)
    dq, dk, dv = (narrowed(grad, q).contiguous() for grad in grads)
    return dq if by == 1 else dq.mul_(by), dk, dv


WIDEST = 128  # columns of a head


def columns(D):
    """How many the kernels have for a head of D: 64 or 128."""
    return 64 if D <= 64 else WIDEST


def stretch(q):
    """The kernels divide scores by the root of their own number of columns: what q takes of it."""
    return (columns(q.shape[-1]) / q.shape[-1]) ** 0.5


def widened(x, by=1.0):
    """by * x, with zeros in the columns that only the kernels have: they change no product."""
    D = columns(x.shape[-1])
    if x.shape[-1] == D:
        return x
    wide = x.new_zeros(*x.shape[:-1], D)
    narrowed(wide, x).copy_(x)
    return wide if by == 1 else wide.mul_(by)


def narrowed(wide, like):
    """The columns that `like` has."""
    return wide[..., : like.shape[-1]]


def remember_linear(ctx, inputs, output):
    """What the backward needs."""
    ctx.save_for_backward(*inputs[:2])


def linear_gradients(ctx, grad_output):
    """Of x, W and b."""
    wanted = ctx.needs_input_grad
    grads = linear_backward(grad_output, *ctx.saved_tensors, *wanted[:2])
    return tuple(g if want else None for g, want in zip(grads, wanted, strict=True))


def remember_attention(ctx, inputs, output):
    """What the backward needs. row_max and row_sum are no results to be differentiated."""
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.causal = inputs[3]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def attention_gradients(ctx, grad_output, *_):
    """Of q, k, v and causal."""
    if grad_output is None:  # the result took no part
        return (None,) * 4
    return *attention_backward(grad_output, *ctx.saved_tensors, ctx.causal), None


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
QKV = "Tensor q, Tensor k, Tensor v"
THREE = "(Tensor, Tensor, Tensor)"
linear = operator("linear", run_linear, empty_linear, "(Tensor x, Tensor W, Tensor b) -> Tensor")
linear_backward = operator(
    "linear_backward",
    run_linear_backward,
    empty_linear_gradients,
    f"(Tensor dy, Tensor x, Tensor W, bool want_x, bool want_W) -> {THREE}",
)
attention = operator(
    "attention", run_attention, empty_attention, f"({QKV}, bool causal) -> {THREE}"
)
attention_backward = operator(
    "attention_backward",
    run_attention_backward,
    empty_attention_gradients,
    f"(Tensor grad_output, {QKV}, Tensor out, Tensor row_max, Tensor row_sum, bool causal) -> {THREE}",
)
linear.register_autograd(linear_gradients, setup_context=remember_linear)
attention.register_autograd(attention_gradients, setup_context=remember_attention)


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

// --- The linear layer. Names of sizes: x (M, K), W (N, K), y = x * W^T + b (M, N).

void start_linear(const float* x, const float* W, const float* b, float* y, int M, int N, int K);
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K);
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K);
void start_column_sums(const float* x, float* out, int rows, int channels);

// x and W as kernels want them. Raises where they do not fit.
std::pair<Tensor, Tensor> factors(const Tensor& x, const Tensor& W) {
    check_kind(x, "x", x);
    check_kind(W, "the linear layer's weight", x);
    TORCH_CHECK(x.dim() == 2 && W.dim() == 2 && W.size(1) == x.size(1), "x has ", text(x.size(-1)),
                " features, and the linear layer's weight takes ", text(W.size(-1)));
    check_size(std::max({x.size(0) * W.size(0), x.numel(), W.numel()}));
    return {prepared(x), prepared(W)};
}

// y is written.
void linear(Tensor x, Tensor W, Tensor b, Tensor y) {
    auto [rows, weight] = factors(x, W);
    check_kind(b, "the linear layer's bias", x);
    TORCH_CHECK(b.numel() == W.size(0), "the linear layer's bias has ", text(b.numel()),
                " elements, not ", text(W.size(0)));
    if (!y.numel()) return;
    c10::cuda::CUDAGuard guard(x.device());
    Tensor bias = prepared(b);
    start_linear(in(rows), in(weight), in(bias), out(y), x.size(0), W.size(0), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Those of dx and dW that have elements are written, and db.
void linear_backward(Tensor dy, Tensor x, Tensor W, Tensor dx, Tensor dW, Tensor db) {
    auto [rows, weight] = factors(x, W);
    check_kind(dy, "the linear layer's gradient", x);
    int M = x.size(0), N = W.size(0), K = x.size(1);
    if (!dy.numel()) {
        dW.zero_(), db.zero_();
        return;
    }
    c10::cuda::CUDAGuard guard(x.device());
    Tensor gradient = prepared(dy);
    if (dx.numel()) start_dx(in(gradient), in(weight), out(dx), M, N, K);
    if (dW.numel()) start_dW(in(gradient), in(rows), out(dW), M, N, K);
    start_column_sums(in(gradient), out(db), M, N);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// --- Attention. q, k, v, out: (batch, heads, S, D), D 64 or 128; row_max, row_sum: (batch, heads,
// S)

void start_attention(const float* q, const float* k, const float* v, float* out, float* row_max,
                     float* row_sum, int heads, int S, int D, int causal);
void start_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D, int causal);

// The tensors as kernels want them. Raises where they are not alike.
std::vector<Tensor> alike(std::initializer_list<Tensor> tensors) {
    const Tensor& q = *tensors.begin();
    std::vector<Tensor> all;
    for (const Tensor& tensor : tensors) {
        check_kind(tensor, "one of q, k and v", q);
        TORCH_CHECK(tensor.sizes() == q.sizes(), "q, k and v have unlike shapes");
        all.push_back(prepared(tensor));
    }
    TORCH_CHECK(q.dim() == 4 && (q.size(3) == 64 || q.size(3) == 128),
                "q must be (batch, heads, S, D), and D 64 or 128");
    check_size(q.numel());
    return all;
}

// out, row_max and row_sum are written.
void attend(Tensor q, Tensor k, Tensor v, Tensor result, Tensor row_max, Tensor row_sum,
            bool causal) {
    auto all = alike({q, k, v});
    if (!result.numel()) return;
    c10::cuda::CUDAGuard guard(q.device());
    start_attention(in(all[0]), in(all[1]), in(all[2]), out(result), out(row_max), out(row_sum),
                    q.size(0) * q.size(1), q.size(2), q.size(3), causal);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// dq, dk and dv are written.
void attend_backward(Tensor q, Tensor k, Tensor v, Tensor result, Tensor row_max, Tensor row_sum,
                     Tensor grad_out, Tensor dq, Tensor dk, Tensor dv, bool causal) {
    auto all = alike({q, k, v, result, grad_out});
    if (!q.numel()) return;
    c10::cuda::CUDAGuard guard(q.device());
    Tensor top = prepared(row_max), sum = prepared(row_sum);
    start_attention_backward(in(all[0]), in(all[1]), in(all[2]), in(all[3]), in(top), in(sum),
                             in(all[4]), out(dq), out(dk), out(dv), q.size(0) * q.size(1),
                             q.size(2), q.size(3), causal);
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
// Tiles of attention on Hopper, forwards and backwards: what a block owns and what it walks over,
// as two halves, and products of them. For the worked kernels
// `flash_attention_forward` and `flash_attention_backward`.

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
// The softmax of rows whose scores come tile by tile, as a tensor core leaves them: four lanes
// share a row, and a lane has a part of two rows. From the worked kernel `flash_attention_mma`.

// Powers of 2 by one instruction. From the worked kernel `flash_attention_bf16`.

// 2^x, to about 22 bits; 0 where that is below 2^-126. exp2f also returns the subnormal
// results, and takes three more instructions for each x, to scale it and the result.
__device__ inline float exp2_or_0(float x) {
#ifdef EMU_INLINE  // without a GPU
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
#else
    // PTX: ex2.approx.ftz.f32 y, x;
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

// The largest, or the sum, of what the four lanes have that share a row.
__device__ inline float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// The running maximum of both rows, and of their sums the part that this lane has seen.
struct Softmax {
    float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    // s, of row i / 2 % 2 each: exponents of 2 become weights. Returns what the sums of both rows
    // shrink by.
    template <int N>
    __device__ float2 weigh(float (&s)[N]) {
        float tops[2] = {-INFINITY, -INFINITY}, base[2], shrink[2];
#pragma unroll
        for (int i = 0; i < N; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], s[i]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = fmaxf(most[h], quad_max(tops[h]));
            base[h] = now == -INFINITY ? 0.0f : now;
            shrink[h] = most[h] == -INFINITY ? 0.0f : exp2_or_0(most[h] - now);
            most[h] = now;
            sum[h] *= shrink[h];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            s[i] = exp2_or_0(s[i] - base[i / 2 % 2]);
            sum[i / 2 % 2] += s[i];
        }
        return {shrink[0], shrink[1]};
    }
};
// A matrix of floats as two of halves and a power of two for each row. From exercise 10.3.

#include <cuda_fp16.h>

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

namespace attention {

constexpr int BM = 128, BN = 64;  // a block owns BM rows, and walks over tiles of BN others
constexpr int CONSUMERS = 2;      // warpgroups that multiply, 64 rows each
constexpr int THREADS = 128 * (CONSUMERS + 1);  // and one that brings tiles
constexpr int EACH = 4;                         // rows that a thread splits

// What a block computes rows of: out, the gradient of q, or those of k and v. Of the first two it
// owns rows of queries and walks over keys; of the last it owns rows of keys and walks over
// queries.
enum Result { OUT, DQ, DK_AND_DV };
__host__ __device__ constexpr bool owns_queries(Result of) { return of != DK_AND_DV; }

// Tiles as products read them: of q and grad_out, or of k and v; high halves, then low ones, in
// chunks of 64 columns.
template <int D>
struct alignas(1024) Shared {
    __half own[2][2][D / 64][BM][64], others[2][2][D / 64][BN][64];
    float2 scales[BN];   // of the others: of their two tensors
    float4 queries[BN];  // see Rows, where the others are queries
    Barrier own_full, full[2], empty[2];
};

// Halves of q and grad_out, or of k and v: (heads * padded, D), high and low.
struct Maps {
    CUtensorMap own[2][2], others[2][2];
};

// All (heads * padded). own, others: what the halves of a row of q and of grad_out, or of k and of
// v, are multiplied by. queries: row_max, 1 / row_sum, and the sum of grad_out * out, if queries
// are walked over. shifts: of queries, what the centre of k takes off all scores, as exponents
// of 2. centre: of v, (heads, D)
struct Rows {
    const float2 *own, *others;
    const float4* queries;
    const float *shifts, *centre;
};

// s = a * b^T of a tile: three products of halves, promoted to floats every 64 of D. Those of low
// halves come first: a tensor core cuts off what a sum cannot hold, and theirs are small.
template <int D>
__device__ inline void multiply(float (&s)[BN / 2], const __half (&a)[2][D / 64][BM][64],
                                const __half (&b)[2][D / 64][BN][64], int top) {
#pragma unroll
    for (int c = 0; c < D / 64; c++) {
        float part[BN / 2];
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 12; i++) {
            int low_a = i < 8 && i % 2, low_b = i < 8 && i % 2 == 0,
                d = i < 8 ? i / 2 * 16 : i % 4 * 16;
            wgmma_f16(part, make_descriptor(&a[low_a][c][top][d]),
                      make_descriptor(&b[low_b][c][0][d]), i > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < BN / 2; i++) s[i] = c ? s[i] + part[i] : part[i];
    }
}

// A tile of factors as halves, in the registers of the next product.
struct Factors {
    unsigned high[BN / 16][4], low[BN / 16][4];
};

// sum = sum * shrink + factors * b of a tile whose rows lie along N; promoted to floats every 64 of
// K, or every 32.
template <int D, int K = BN>
__device__ inline void add_rows(float (&sum)[D / 2], float2 shrink, const Factors& factors,
                                const __half (&b)[2][D / 64][BN][64]) {
    constexpr int STEPS = K / 16;
    float part[D / 2];
#pragma unroll
    for (int first = 0; first < BN / 16; first += STEPS) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 3 * STEPS; i++) {
            bool high = i >= 2 * STEPS;
            int low_f = !high && i % 2, low_b = !high && i % 2 == 0;
            int k = first + (high ? i % STEPS : i / 2);
            wgmma_f16_mn(part, low_f ? factors.low[k] : factors.high[k],
                         make_descriptor_mn(&b[low_b][0][16 * k][0], sizeof(b[0][0])), i > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < D / 2; i++) {
            float by = first ? 1.0f : i / 2 % 2 ? shrink.y : shrink.x;
            sum[i] = sum[i] * by + part[i];
        }
    }
}

// The running largest magnitude of the two rows that a thread has a part of: their sums are of
// factors that were divided by 2^exponent.
struct Range {
    float most[2] = {};

    // What the sums of both rows are to be multiplied by, and that by `by`.
    __device__ float2 scale(float2 by) const {
        return {ldexpf(by.x, exponent_of(most[0])), ldexpf(by.y, exponent_of(most[1]))};
    }
    // s becomes factors. Returns what the sums of both rows shrink by.
    __device__ float2 take(Factors& factors, const float (&s)[BN / 2]) {
        float tops[2] = {}, up[2], shrink[2];
#pragma unroll
        for (int i = 0; i < BN / 2; i++) tops[i / 2 % 2] = fmaxf(tops[i / 2 % 2], fabsf(s[i]));
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int before = exponent_of(most[h]);
            bool first = most[h] == 0.0f;
            most[h] = fmaxf(most[h], quad_max(tops[h]));
            int now = exponent_of(most[h]);
            up[h] = ldexpf(1.0f, -now);
            shrink[h] = first ? 1.0f : ldexpf(1.0f, before - now);
        }
#pragma unroll
        for (int i = 0; i < BN / 2; i += 2) {
            float by = up[i / 2 % 2];
            float2 v = {s[i] * by, s[i + 1] * by};
            __half2 high = __floats2half2_rn(v.x, v.y);
            float2 nearly = __half22float2(high);
            __half2 low = __floats2half2_rn(v.x - nearly.x, v.y - nearly.y);
            factors.high[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(high);
            factors.low[i / 8][i / 2 % 4] = reinterpret_cast<unsigned&>(low);
        }
        return {shrink[0], shrink[1]};
    }
};

// The tiles that a block walks over.
struct Walk {
    int first, end;

    // Of a block whose rows begin with row0; causal: queries see keys up to their own position.
    __device__ Walk(Result of, int row0, int S, int causal)
        : first(causal && !owns_queries(of) ? row0 / BN : 0),
          end(((causal && owns_queries(of) ? min(S, row0 + BM) : S) + BN - 1) / BN) {}
};

// A row's halves, BN or BM rows of them, of one tensor.
template <int D, int ROWS>
__device__ inline void load_halves(__half (&tile)[2][D / 64][ROWS][64],
                                   const CUtensorMap (&maps)[2], int row, Barrier* full) {
    for (int i = 0; i < 2 * (D / 64); i++) {
        int part = i / (D / 64), c = i % (D / 64);
        load_tile(tile[part][c], &maps[part], 64 * c, row, full);
    }
}

// Scores become exponents of 2; of keys from S on, or behind a query's position if causal, -inf.
// scale: of both own rows. others: the first row of the tile that is walked over
template <int D, Result OF>
__device__ inline void scale_scores(float (&s)[BN / 2], const Shared<D>& tiles, float2 scale,
                                    const Patch& mine, int others, int S, int causal) {
    float by[2] = {scale.x * 1.44269504f * rsqrtf(D), scale.y * 1.44269504f * rsqrtf(D)};
    int own = mine.row(0) / 64 * 64;  // the first row of the warpgroup
    int keys = owns_queries(OF) ? others : own, queries = owns_queries(OF) ? own : others;
    bool all = keys + 64 <= S && (!causal || keys + 63 <= queries);  // nothing is hidden: no tests
#pragma unroll
    for (int i = 0; i < BN / 2; i++) s[i] *= by[i / 2 % 2] * tiles.scales[mine.at(i)].x;
    if (all) return;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int row = mine.row(i), other = others + mine.at(i);
        int query = owns_queries(OF) ? row : other, key = owns_queries(OF) ? other : row;
        if (key >= S || (causal && key > query)) s[i] = -INFINITY;
    }
}

// Brings what the block owns once, then the others tile by tile. One thread calls it.
// start: the head's first row
template <int D, Result OF>
__device__ void bring(Shared<D>& tiles, const Maps& maps, Rows rows, int row0, int start,
                      Walk walk) {
    constexpr int OWN = OF == OUT ? 1 : 2;  // of q alone
    barrier_arrive_expect(&tiles.own_full, OWN * sizeof(tiles.own[0]));
    for (int which = 0; which < OWN; which++) {
        load_halves<D, BM>(tiles.own[which], maps.own[which], start + row0, &tiles.own_full);
    }
    constexpr int OF_ROWS = sizeof(tiles.scales) + (owns_queries(OF) ? 0 : sizeof(tiles.queries));
    for (int j = walk.first; j < walk.end; j++) {
        int parity = (j - walk.first) % 2, row = start + j * BN;
        for (int which = 0; which < 2; which++) {
            Barrier* full = &tiles.full[which];
            barrier_wait(&tiles.empty[which], parity ^ 1);
            barrier_arrive_expect(full, sizeof(tiles.others[0]) + (which == 0 ? OF_ROWS : 0));
            load_halves<D, BN>(tiles.others[which], maps.others[which], row, full);
            if (which == 1) continue;
            load_bytes(tiles.scales, rows.others + row, sizeof(tiles.scales), full);
            if (owns_queries(OF)) continue;
            load_bytes(tiles.queries, rows.queries + row, sizeof(tiles.queries), full);
        }
    }
}

// All threads of the block must call it.
template <int D>
__device__ void prepare(Shared<D>& tiles) {
    if (threadIdx.x == 0) {
        barrier_init(&tiles.own_full, 1);
        for (int which = 0; which < 2; which++) {
            barrier_init(&tiles.full[which], 1);
            barrier_init(&tiles.empty[which], 4 * CONSUMERS);  // a lane of each warp
        }
        fence_barriers();
    }
    __syncthreads();  // the barriers are there before anyone waits at them
}

// A warp has read a tile: one lane says so.
__device__ inline void let_go(Barrier* empty) {
    __syncwarp();  // what all lanes have loaded of it is there
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

// to: (S, D) of this head, at a multiple of 8 bytes. scale: of both rows; centre: (D), is added, or
// null
template <int D>
__device__ inline void store_rows(float* to, const float (&sum)[D / 2], float2 scale,
                                  const float* centre, const Patch& mine, int S) {
#pragma unroll
    for (int i = 0; i < D / 2; i += 2) {
        int row = mine.row(i), d = mine.at(i);
        float by = i / 2 % 2 ? scale.y : scale.x;
        float2 c = centre ? float2{centre[d], centre[d + 1]} : float2{};
        float2 pair = {sum[i] * by + c.x, sum[i + 1] * by + c.y};
        if (row < S) *reinterpret_cast<float2*>(to + size_t(row) * D + d) = pair;
    }
}

// What is split: (heads, S, D), at a multiple of 16 bytes, into halves (heads * padded, D) with
// zeros from S on, and a scale for each row, every second float of `scales`.
struct Source {
    const float* x;
    __half *high, *low;
    float* scales;
    float* centre;             // subtracted from each row: (heads, D); or null
    const float* keys_centre;  // that of k, if x is q
    float* shifts;             // see Rows
};
enum Tensor { K, V, Q, GRAD_OUT };
struct Sources {
    Source of[4];
};

// The sum of what the D / 4 lanes have that share a row. All lanes of a warp must call it.
template <int D>
__device__ inline float row_total(float x) {
#pragma unroll
    for (int step = D / 8; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ inline float dot(float4 a, float4 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// One thread owns a quad of each of EACH rows, which are all on their way at once. D / 4 lanes own
// a row.
template <int D>
__global__ void __launch_bounds__(SPLITTERS)
    split_heads_kernel(Sources sources, int S, int padded) {
    constexpr int QUADS = D / 4, STEP = SPLITTERS / QUADS;  // rows of the block at once
    Source of = sources.of[blockIdx.z];
    int first = blockIdx.x * EACH * STEP + threadIdx.x / QUADS, lane = threadIdx.x % QUADS;
    unsigned row_mates = QUADS == 32 ? 0xffffffffu : 0xffffu << threadIdx.x % 32 / QUADS * QUADS;
    float4 v[EACH], c = {};
    if (of.centre) c = quad(of.centre + blockIdx.y * D + 4 * lane);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int row = first + i * STEP;
        v[i] = row < S ? quad(of.x + (size_t(blockIdx.y) * S + row) * D + 4 * lane) : c;
        v[i] = {v[i].x - c.x, v[i].y - c.y, v[i].z - c.z, v[i].w - c.w};
    }
    if (of.keys_centre) c = quad(of.keys_centre + blockIdx.y * D + 4 * lane);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        unsigned most = __reduce_max_sync(row_mates, __float_as_uint(largest(v[i])));
        int exponent = exponent_of(__uint_as_float(most));
        float up = ldexpf(1.0f, -exponent);
        float4 scaled = {v[i].x * up, v[i].y * up, v[i].z * up, v[i].w * up};
        int few = __reduce_add_sync(row_mates, imprecise(scaled));  // with too few bits
        Halves h = halves(scaled);
        size_t row = size_t(blockIdx.y) * padded + first + i * STEP, at = row * D + 4 * lane;
        *reinterpret_cast<uint2*>(of.high + at) = h.high;
        *reinterpret_cast<uint2*>(of.low + at) = h.low;
        if (lane == 0) of.scales[2 * row] = scale_of(exponent, few, D);
        if (!of.keys_centre) continue;
        float shift = row_total<D>(dot(v[i], c)) * (1.44269504f * rsqrtf(D));
        if (lane == 0) of.shifts[row] = shift;
    }
}

// Of k and v: the mean of each column that lies far from 0, else 0. It is subtracted from all
// values: what a tensor core truncates then has both signs, and does not add up. Without that of k,
// all scores of a query are less by the same, and weights stay; that of v is added to the result,
// since weights have the sum 1. Gradients of a query's scores have the sum 0, so neither is
// missing. One thread owns every 32nd row of a column. One block owns 32 columns of a head.
template <int D>
__global__ void centre_kernel(Sources sources, int S) {
    __shared__ float sums[32][32], tops[32][32];
    int column = blockIdx.x * 32 + threadIdx.x;
    Source of = sources.of[blockIdx.z];
    const float* x = of.x + size_t(blockIdx.y) * S * D + column;
    float sum = 0.0f, most = 0.0f;
#pragma unroll 8
    for (int row = threadIdx.y; row < S; row += 32) {
        float value = x[size_t(row) * D];
        sum += value;
        most = fmaxf(most, fabsf(value));
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    tops[threadIdx.y][threadIdx.x] = most;
    __syncthreads();  // what all 32 warps have is there before the first one reads it
    if (threadIdx.y > 0) return;
    for (int i = 1; i < 32; i++) {
        sum += sums[i][threadIdx.x];
        most = fmaxf(most, tops[i][threadIdx.x]);
    }
    float mean = sum / S;
    bool far = isfinite(mean) && most <= 8.0f * fabsf(mean);
    of.centre[blockIdx.y * D + column] = far ? mean : 0.0f;
}

// Halves of two tensors with rows of the same kind, queries or keys.
template <int D>
struct Pair {
    int rows;
    Scratch<__half> halves;  // of the first, high and low; of the second
    Scratch<float2> scales;

    explicit Pair(int rows) : rows(rows), halves(size_t(4) * rows * D), scales(rows) {}
    __half* plane(int i) const { return halves.data + size_t(i) * rows * D; }
    Source source(const float* x, int which, float* centre = nullptr) const {
        float* to = reinterpret_cast<float*>(scales.data) + which;
        return {x, plane(2 * which), plane(2 * which + 1), to, centre, nullptr, nullptr};
    }
    void put(CUtensorMap (&maps)[2][2], int tile_rows) const {
        for (int i = 0; i < 4; i++) {
            maps[i / 2][i % 2] = make_map(plane(i), rows, D, tile_rows);
        }
    }
};

// What kernels read: of queries q and grad_out, of keys k and v. Of few heads at a time: halves of
// a row take 32 * D bytes, and a short sequence has padded rows alone.
template <int D>
struct Inputs {
    static constexpr int MOST_ROWS = 1 << 18;
    int S, padded, at_once, heads;  // heads: of this launch, at most at_once
    Pair<D> queries, keys;
    Scratch<float> shifts, centres;  // see Rows; of k and v: (2, at_once, D)

    Inputs(int all_heads, int S)
        : S(S),
          padded((S + BM - 1) / BM * BM),
          at_once(max(1, min(all_heads, MOST_ROWS / padded))),
          heads(at_once),
          queries(at_once * padded),
          keys(at_once * padded),
          shifts(at_once * padded),
          centres(2 * at_once * D) {}
    dim3 blocks(int rows) const { return dim3(padded / rows, heads); }
    float* centre_of_v() const { return centres.data + at_once * D; }

    // grad_out: null, for the forward
    void split(const float* q, const float* k, const float* v, const float* grad_out) const {
        Sources sources = {keys.source(k, 0, centres.data), keys.source(v, 1, centre_of_v()),
                           queries.source(q, 0), queries.source(grad_out, 1)};
        sources.of[Q].keys_centre = centres.data;
        sources.of[Q].shifts = shifts.data;
        centre_kernel<D><<<dim3(D / 32, heads, 2), dim3(32, 32), 0, current_stream()>>>(sources, S);
        dim3 grid = blocks(EACH * SPLITTERS / (D / 4));
        grid.z = grad_out ? 4 : 3;
        split_heads_kernel<D><<<grid, SPLITTERS, 0, current_stream()>>>(sources, S, padded);
    }
    const Pair<D>& own(Result of) const { return owns_queries(of) ? queries : keys; }
    const Pair<D>& others(Result of) const { return owns_queries(of) ? keys : queries; }
    Maps maps(Result of) const {
        Maps maps;
        own(of).put(maps.own, BM);
        others(of).put(maps.others, BN);
        return maps;
    }
    Rows rows(Result of, const float4* of_queries) const {
        return {own(of).scales.data, others(of).scales.data, of_queries, shifts.data,
                centre_of_v()};
    }
};

// Has a kernel take as much shared memory as it needs, and returns that.
template <int D, class Kernel>
int shared_memory(Kernel kernel) {
    int bytes = sizeof(Shared<D>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    return bytes;
}

}  // namespace attention

// --- kernels/14_attention/flash_attention_forward.cu

namespace forwards {
using namespace attention;

// row_max, row_sum: (S), of this head. shifts: see Rows. What row_max loses of its last bits,
// row_sum makes up for: whoever takes the shift off again has the same weights.
__device__ inline void store_statistics(float* row_max, float* row_sum, const float (&most)[2],
                                        const float (&sums)[2], const float* shifts,
                                        const Patch& mine, int S) {
    for (int h = 0; h < 2; h++) {
        int row = mine.row(2 * h);
        if (mine.left > 0 || row >= S) continue;
        float top = most[h] + shifts[row], lost = most[h] - (top - shifts[row]);
        row_max[row] = isnan(sums[h]) ? NAN : top;  // fmaxf has lost it
        row_sum[row] = sums[h] * exp2f(lost);
    }
}

// out: (heads, S, D), at a multiple of 8 bytes; row_max, row_sum: (heads, S): of each query the
// largest score, as an exponent of 2, and the sum of 2^(score - that). Where halves cannot hold the
// range of a row of q, k or v, results that need it are NaN.
// One thread owns two queries' every fourth pair of columns, if its warpgroup multiplies: that owns
// 64 queries. One block owns BM queries of a head.
template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    attention_forward_kernel(const __grid_constant__ Maps maps, Rows rows, float* out,
                             float* row_max, float* row_sum, int S, int padded, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int head = blockIdx.y, row0 = (gridDim.x - 1 - blockIdx.x) * BM;  // the longest walks first
    Walk walk(OUT, row0, S, causal);
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<24>();
        if (threadIdx.x % 128 == 0) bring<D, OUT>(tiles, maps, rows, row0, head * padded, walk);
        return;
    }
    more_registers<240>();
    int top = threadIdx.x / 128 * 64;
    Patch mine(row0 + top, 0);
    const float2* own = rows.own + head * padded;
    float2 scale = {own[mine.row(0)].x, own[mine.row(2)].x};
    Softmax running;
    Range range;
    float sum[D / 2] = {};
    barrier_wait(&tiles.own_full, 0);
    for (int j = walk.first; j < walk.end; j++) {
        float s[BN / 2];
        barrier_wait(&tiles.full[0], j % 2);
        multiply<D>(s, tiles.own[0], tiles.others[0], top);
        scale_scores<D, OUT>(s, tiles, scale, mine, j * BN, S, causal);
        float2 shrink = running.weigh(s);
#pragma unroll
        for (int i = 0; i < BN / 2; i++) s[i] *= tiles.scales[mine.at(i)].y;  // of a row of v
        let_go(&tiles.empty[0]);
        Factors factors;
        float2 more = range.take(factors, s);
        barrier_wait(&tiles.full[1], j % 2);
        add_rows<D>(sum, {shrink.x * more.x, shrink.y * more.y}, factors, tiles.others[1]);
        let_go(&tiles.empty[1]);
    }
    float sums[2] = {quad_sum(running.sum[0]), quad_sum(running.sum[1])};
    float2 scale_out = range.scale({1.0f / sums[0], 1.0f / sums[1]});
    size_t first = size_t(head) * S;
    store_rows<D>(out + first * D, sum, scale_out, rows.centre + head * D, mine, S);
    store_statistics(row_max + first, row_sum + first, running.most, sums,
                     rows.shifts + head * padded, mine, S);
}

template <int D>
void attend(const float* q, const float* k, const float* v, float* out, float* row_max,
            float* row_sum, int heads, int S, int causal) {
    Inputs<D> inputs(heads, S);
    auto kernel = attention_forward_kernel<D>;
    for (int head = 0; head < heads; head += inputs.at_once) {
        size_t row = size_t(head) * S, at = row * D;
        inputs.heads = min(inputs.at_once, heads - head);
        inputs.split(q + at, k + at, v + at, nullptr);
        kernel<<<inputs.blocks(BM), THREADS, shared_memory<D>(kernel), current_stream()>>>(
            inputs.maps(OUT), inputs.rows(OUT, nullptr), out + at, row_max + row, row_sum + row, S,
            inputs.padded, causal);
    }
}

void flash_attention_forward(const float* q, const float* k, const float* v, float* out,
                             float* row_max, float* row_sum, int heads, int S, int D, int causal) {
    auto of_width = D == 64 ? attend<64> : attend<128>;
    of_width(q, k, v, out, row_max, row_sum, heads, S, causal);
}
}


// --- kernels/14_attention/flash_attention_backward.cu

namespace backwards {
using namespace attention;

// Exponents become factors of the last product: s weights, for dv, of grad_out; u gradients of
// scores, for dq and dk, of k and of q. Each takes the scale of its row there with it.
// u: grad_out * v^T, or turned. scales, queries: of both own rows
template <int D, Result OF>
__device__ inline void differentiate(float (&s)[BN / 2], float (&u)[BN / 2], const Shared<D>& tiles,
                                     const float2 (&scales)[2], const float4 (&queries)[2],
                                     const Patch& mine) {
#pragma unroll
    for (int i = 0; i < BN / 2; i++) {
        int h = i / 2 % 2, at = mine.at(i);
        float4 query = OF == DQ ? queries[h] : tiles.queries[at];
        float2 other = tiles.scales[at];
        float weight = exp2_or_0(s[i] - query.x) * query.y;
        float of_score = weight * (u[i] * (scales[h].y * other.y) - query.z);
        bool hidden = s[i] == -INFINITY;
        s[i] = hidden ? 0.0f : weight * other.y;
        u[i] = hidden ? 0.0f : of_score * other.x;
    }
}

// What a warpgroup that multiplies does with all tiles: rows of the results.
// start, row0: the head's first row, and the block's in it. to, to_dv: (S, D), of this head
template <int D, Result OF>
__device__ void add_up(Shared<D>& tiles, Rows rows, Walk walk, int start, int row0, float* to,
                       float* to_dv, int S, int causal) {
    int top = threadIdx.x / 128 * 64;
    Patch mine(row0 + top, 0);
    int mine_from = start + mine.row(0), mine_to = start + mine.row(2);
    float2 scales[2] = {rows.own[mine_from], rows.own[mine_to]};
    float4 queries[2] = {};
    if (OF == DQ) queries[0] = rows.queries[mine_from], queries[1] = rows.queries[mine_to];
    Range range, range_v;
    float sum[D / 2] = {}, sum_v[D / 2] = {};
    barrier_wait(&tiles.own_full, 0);
    for (int j = walk.first; j < walk.end; j++) {
        int parity = (j - walk.first) % 2;
        float s[BN / 2], u[BN / 2];
        Factors factors;
        barrier_wait(&tiles.full[0], parity);
        multiply<D>(s, tiles.own[0], tiles.others[0], top);
        scale_scores<D, OF>(s, tiles, {scales[0].x, scales[1].x}, mine, j * BN, S, causal);
        barrier_wait(&tiles.full[1], parity);
        multiply<D>(u, tiles.own[1], tiles.others[1], top);
        if (OF == DQ) let_go(&tiles.empty[1]);
        differentiate<D, OF>(s, u, tiles, scales, queries, mine);
        if (OF == DK_AND_DV) {
            float2 shrink = range_v.take(factors, s);
            add_rows<D, 32>(sum_v, shrink, factors, tiles.others[1]);
            let_go(&tiles.empty[1]);
        }
        float2 shrink = range.take(factors, u);
        add_rows<D>(sum, shrink, factors, tiles.others[0]);
        let_go(&tiles.empty[0]);
    }
    float by = rsqrtf(D);
    store_rows<D>(to, sum, range.scale({by, by}), nullptr, mine, S);
    if (OF == DQ) return;
    store_rows<D>(to_dv, sum_v, range_v.scale({1.0f, 1.0f}), nullptr, mine, S);
}

// to, to_dv: (heads, S, D), at a multiple of 8 bytes: the gradient of q, and null; or of k and v.
// Where halves cannot hold the range of a row of q, k, v or grad_out, results that need it are
// NaN.
// One thread owns two rows' every fourth pair of columns, if its warpgroup multiplies: that owns 64
// rows. One block owns BM rows of a head.
template <int D, Result OF>
__global__ void __launch_bounds__(THREADS, 1)
    attention_backward_kernel(const __grid_constant__ Maps maps, Rows rows, float* to, float* to_dv,
                              int S, int padded, int causal) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared<D>& tiles = *reinterpret_cast<Shared<D>*>(memory);
    prepare(tiles);
    int start = blockIdx.y * padded;
    int row0 = (OF == DQ ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * BM;  // longest walks first
    Walk walk(OF, row0, S, causal);
    if (threadIdx.x / 128 == CONSUMERS) {
        fewer_registers<24>();
        if (threadIdx.x % 128 == 0) bring<D, OF>(tiles, maps, rows, row0, start, walk);
        return;
    }
    more_registers<240>();
    size_t first = size_t(blockIdx.y) * S * D;
    float* of_v = OF == DQ ? nullptr : to_dv + first;
    add_up<D, OF>(tiles, rows, walk, start, row0, to + first, of_v, S, causal);
}

// queries: (heads * padded): see Rows; from S on, weight 0. grad_out, out: (heads, S, D), at
// multiples of 16 bytes, row_max, row_sum: (heads, S). One thread owns a quad. D / 4 lanes own a
// row.
template <int D>
__global__ void __launch_bounds__(SPLITTERS)
    queries_kernel(const float* grad_out, const float* out, const float* row_max,
                   const float* row_sum, Rows rows, float4* queries, int S, int padded) {
    constexpr int QUADS = D / 4;
    int row = blockIdx.x * (SPLITTERS / QUADS) + threadIdx.x / QUADS, lane = threadIdx.x % QUADS;
    size_t from = size_t(blockIdx.y) * S + row, to = size_t(blockIdx.y) * padded + row;
    float4 a = {}, b = {};
    if (row < S) a = quad(grad_out + from * D + 4 * lane), b = quad(out + from * D + 4 * lane);
    float4 c = quad(rows.centre + blockIdx.y * D + 4 * lane);
    float sum = row_total<D>(dot(a, {b.x - c.x, b.y - c.y, b.z - c.z, b.w - c.w}));
    if (lane > 0) return;
    if (row < S) queries[to] = {row_max[from] - rows.shifts[to], 1.0f / row_sum[from], sum, 0.0f};
    else queries[to] = {};
}

template <int D, Result OF>
void launch(const Inputs<D>& inputs, const float4* of_queries, float* to, float* to_dv,
            int causal) {
    auto kernel = attention_backward_kernel<D, OF>;
    kernel<<<inputs.blocks(BM), THREADS, shared_memory<D>(kernel), current_stream()>>>(
        inputs.maps(OF), inputs.rows(OF, of_queries), to, to_dv, inputs.S, inputs.padded, causal);
}

struct Tensors {
    const float *q, *k, *v, *out, *row_max, *row_sum, *grad_out;
    float *dq, *dk, *dv;

    // Those of the heads from one on.
    Tensors from(int head, int S, int D) const {
        size_t row = size_t(head) * S, at = row * D;
        return {q + at,        k + at,        v + at,  out + at, row_max + row,
                row_sum + row, grad_out + at, dq + at, dk + at,  dv + at};
    }
};
template <int D>
void give_gradients(Tensors all, int heads, int S, int causal) {
    Inputs<D> inputs(heads, S);
    Scratch<float4> of_queries(inputs.queries.rows);
    for (int head = 0; head < heads; head += inputs.at_once) {
        Tensors of = all.from(head, S, D);
        inputs.heads = min(inputs.at_once, heads - head);
        inputs.split(of.q, of.k, of.v, of.grad_out);
        queries_kernel<D><<<inputs.blocks(SPLITTERS / (D / 4)), SPLITTERS, 0, current_stream()>>>(
            of.grad_out, of.out, of.row_max, of.row_sum, inputs.rows(DQ, nullptr), of_queries.data,
            S, inputs.padded);
        launch<D, DQ>(inputs, of_queries.data, of.dq, nullptr, causal);
        launch<D, DK_AND_DV>(inputs, of_queries.data, of.dk, of.dv, causal);
    }
}

void flash_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D,
                              int causal) {
    auto of_width = D == 64 ? give_gradients<64> : give_gradients<128>;
    of_width({q, k, v, out, row_max, row_sum, grad_out, dq, dk, dv}, heads, S, causal);
}
}

// What follows a product of warpgroups in its registers: groups of channels. From exercise 11.7.

// What GroupNorm adds to a variance, from chapter 08 on: PyTorch's own.

constexpr float EPS = 1e-5f;
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
// The calls of `host.cpp`.

void start_attention(const float* q, const float* k, const float* v, float* out, float* row_max,
                     float* row_sum, int heads, int S, int D, int causal) {
    forwards::flash_attention_forward(q, k, v, out, row_max, row_sum, heads, S, D, causal);
}
void start_attention_backward(const float* q, const float* k, const float* v, const float* out,
                              const float* row_max, const float* row_sum, const float* grad_out,
                              float* dq, float* dk, float* dv, int heads, int S, int D,
                              int causal) {
    backwards::flash_attention_backward(q, k, v, out, row_max, row_sum, grad_out, dq, dk, dv, heads,
                                        S, D, causal);
}
void start_linear(const float* x, const float* W, const float* b, float* y, int M, int N, int K) {
    start(linear_bias_kernel<Beside>, Prepared<Beside>(x, W, M, N, K), Channels{b}, y);
}
void start_column_sums(const float* x, float* out, int rows, int channels) {
    add_columns(x, out, rows, channels);
}
void start_dx(const float* dy, const float* W, float* dx, int M, int N, int K) {
    linear_dx(dy, W, dx, M, N, K);
}
void start_dW(const float* dy, const float* x, float* dW, int M, int N, int K) {
    linear_dW(dy, x, dW, M, N, K);
}
"""


def build():
    """The kernels, of which other cards than Hopper have none."""
    if not HOPPER:
        warnings.warn("no Hopper card alone is here: attention is PyTorch's", stacklevel=2)
        return None
    return load_inline(
        NAME,
        cpp_sources=[HOST],
        cuda_sources=[KERNELS],
        functions=["linear", "linear_backward", "attend", "attend_backward"],
        extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
        no_implicit_headers=True,
    )


kernels = build()
