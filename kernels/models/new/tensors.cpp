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
