// Stands in for PyTorch's header of this name, of which it takes the parts that kernels use:
// tensors and their functions, dispatch, and what binds functions to Python. The whole costs 25 s a
// build.
#pragma once
#include <ATen/Dispatch.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

// What PyTorch's headers have for nvcc alone.
namespace at {
template <typename T>
struct RestrictPtrTraits {
    typedef T* __restrict__ PtrType;
};
}  // namespace at
namespace torch {
using at::RestrictPtrTraits;
}

// Tensors of the CPU pose as those of a card, where that is asked for.
#ifdef EMU_TENSORS_OF_THE_CPU
#    define is_cuda() is_cpu()
#    define kCUDA kCPU

// Their memory is no device's for cudaMemset and cudaMemcpy, which look.
#    include <cuda_runtime.h>

#    include <cstring>
namespace emu_tensors {
inline bool on_device(const void* memory) {
    cudaPointerAttributes of = {};
    return cudaPointerGetAttributes(&of, memory) == cudaSuccess && of.type == cudaMemoryTypeDevice;
}
inline cudaError_t fill(void* to, int value, size_t bytes, cudaStream_t = nullptr) {
    if (on_device(to)) return cudaMemset(to, value, bytes);
    std::memset(to, value, bytes);
    return cudaSuccess;
}
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                        cudaStream_t = nullptr) {
    if (on_device(to) && on_device(from)) {
        return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
    }
    std::memmove(to, from, bytes);
    return cudaSuccess;
}
}  // namespace emu_tensors
#    define cudaMemset emu_tensors::fill
#    define cudaMemsetAsync emu_tensors::fill
#    define cudaMemcpy emu_tensors::copy
#    define cudaMemcpyAsync emu_tensors::copy
#endif
