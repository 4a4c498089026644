// cumsum_long: gate/timeout
// each tile adds up all before it again
#include "scan.cuh"

constexpr int THREADS = 1024;

__global__ void cumsum_long_kernel(const float* x, float* out, int n) {
    __shared__ float sums[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float before = 0.0f;
    for (int tile = 0; tile <= blockIdx.x; tile++) {
        int i = tile * THREADS + threadIdx.x;
        float upto = warp_scan(i < n ? x[i] : 0.0f);
        if (lane == 31) sums[warp] = upto;
        __syncthreads();
        float earlier = warp_scan(sums[lane]);
        float others = __shfl_sync(0xffffffffu, earlier, (warp + 31) % 32);
        if (tile == blockIdx.x && i < n) out[i] = before + (warp ? others : 0.0f) + upto;
        before += __shfl_sync(0xffffffffu, earlier, 31);
        __syncthreads();
    }
}

void cumsum_long(const float* x, float* out, int n) {
    cumsum_long_kernel<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, out, n);
}
