// Tensors in, launches out. Names of sizes: x (M, K), W (N, K), y = x * W^T + b (M, N).
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

void check_size(int64_t most) {  // kernels count in int, and some beyond
    TORCH_CHECK(most < (int64_t(1) << 31) - (1 << 20),
                "x is too large: no matrix may have 2^31 elements");
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

const float* in(const Tensor& tensor) { return tensor.data_ptr<float>(); }
const float* in(const Maybe& tensor) { return tensor ? tensor->data_ptr<float>() : nullptr; }
float* out(const Tensor& tensor) { return tensor.numel() ? tensor.data_ptr<float>() : nullptr; }
float* out(const Maybe& tensor) { return tensor ? tensor->data_ptr<float>() : nullptr; }

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
