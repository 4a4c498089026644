// Prefix sums by shuffles: within warps, then over the warps of the block.
#include "check.cuh"

__device__ int scan_warp(int v) {
    for (int d = 1; d < 32; d *= 2) {
        const int below = __shfl_up_sync(~0u, v, d);
        if (threadIdx.x % 32 >= d) v += below;
    }
    return v;
}
__global__ void scan_block(int* x) {
    __shared__ int sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int v = scan_warp(x[threadIdx.x]);
    if (lane == 31) sums[warp] = v;
    __syncthreads();  // each warp's sum is there
    if (warp == 0) {
        const int warps = blockDim.x / 32;
        const int s = scan_warp(lane < warps ? sums[lane] : 0);
        __syncwarp();
        if (lane < warps) sums[lane] = s;
    }
    __syncthreads();  // the sums of all warps before
    if (warp > 0) v += sums[warp - 1];
    x[threadIdx.x] = v;
}

int main() {
    const int n = 512;
    std::vector<int> x(n);
    for (int i = 0; i < n; ++i) x[i] = i % 5;
    int* device = to_device(x);
    scan_block<<<1, n>>>(device);
    const std::vector<int> got = to_host(device, n);
    int wrong = 0, sum = 0;
    for (int i = 0; i < n; ++i) wrong += got[i] != (sum += x[i]);
    return verdict("warp_scan", wrong);
}
