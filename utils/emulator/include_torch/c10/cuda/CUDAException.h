// Stands in for PyTorch's header of this name: an error of CUDA's becomes an exception.
#pragma once
#include <c10/util/Exception.h>
#include <cuda_runtime.h>

#define C10_CUDA_CHECK(EXPR)                                                                  \
    do {                                                                                      \
        const cudaError_t c10_error = EXPR;                                                   \
        TORCH_CHECK(c10_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(c10_error)); \
    } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
