// sum_warp: passed
// the first warp of the block that comes last adds up the sums of all blocks
constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr unsigned ALL = 0xffffffffu;
__device__ unsigned ticket = 0;

__device__ float warp_total(float sum) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    return sum;
}

__global__ void sum_warp_kernel(const float* x, float* out, float* parts, int n) {
    __shared__ float sums[WARPS];
    int i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % 32;
    float sum = warp_total(i < n ? x[i] : 0.0f);
    if (lane == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_total(lane < WARPS ? sums[lane] : 0.0f);
    unsigned before = 0;
    if (lane == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        before = atomicInc(&ticket, gridDim.x - 1);
        __threadfence();
    }
    if (__shfl_sync(ALL, before, 0) != gridDim.x - 1) return;
    __syncwarp();  // a shuffle orders no memory
    sum = 0.0f;
    for (unsigned b = lane; b < gridDim.x; b += 32) sum += __ldcg(&parts[b]);
    sum = warp_total(sum);
    if (lane == 0) *out = sum;
}

void sum_warp(const float* x, float* out, int n) {
    int blocks = (n + THREADS - 1) / THREADS;
    float* parts;
    cudaMalloc(&parts, blocks * sizeof(float));
    sum_warp_kernel<<<blocks, THREADS>>>(x, out, parts, n);
    cudaFree(parts);
}
