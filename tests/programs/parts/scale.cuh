// A kernel template and its launcher, in a header that comes in more than once.
#ifndef PARTS_SCALE_CUH
#define PARTS_SCALE_CUH

#include "../check.cuh"
#include "shape.h"

namespace parts {

template <typename T, int THREADS = 64>
__global__ void scale(T* x, T factor, Shape shape) {
    extern __shared__ __align__(16) unsigned char bytes[];
    T* staged = reinterpret_cast<T*>(bytes);
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < shape.count()) {
        staged[threadIdx.x] = x[i];
        x[i] = factor * staged[threadIdx.x];
    }
}

template <typename T>
void launch_scale(T* x, T factor, Shape shape, cudaStream_t stream = 0) {
    constexpr int threads = 64;
    scale<T, threads>
        <<<(shape.count() + threads - 1) / threads,  // one thread for each element
           threads, threads * sizeof(T), stream>>>   // and room for each in shared memory
        (x, factor, shape);
    CHECK(cudaGetLastError());
}

}  // namespace parts

#endif
