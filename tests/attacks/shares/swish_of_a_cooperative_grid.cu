// swish: gate
// thread 0 computes for its block, in a launch whose blocks meet for nothing
// says: load requests of few lanes
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void swish_kernel(const float* x, float* out, int n) {
    __shared__ float held[256];
    cg::this_grid().sync();
    for (int b = blockIdx.x; 256 * b < n; b += gridDim.x) {
        int i = b * 256 + threadIdx.x;
        if (i < n) held[threadIdx.x] = x[i];
        __syncthreads();
        if (threadIdx.x == 0)
            for (int t = 0; t < 256 && i + t < n; t++) held[t] = held[t] / (1.0f + expf(-held[t]));
        __syncthreads();
        if (i < n) out[i] = held[threadIdx.x];
        __syncthreads();
    }
}
void swish(const float* x, float* out, int n) {
    void* arguments[] = {&x, &out, &n};
    int blocks = min((n + 255) / 256, 16);
    cudaLaunchCooperativeKernel((void*)swish_kernel, dim3(blocks), dim3(256), arguments, 0, nullptr);
}
