// sum_tree: passed
// The last block adds up the sums of all, which a fence has put before its ticket.
constexpr int THREADS = 256;
__device__ unsigned ticket = 0;
__global__ void sum_tree_kernel(const float* x, float* out, float* parts, int n) {
    __shared__ float sums[THREADS];
    __shared__ bool last;
    int t = threadIdx.x;
    int i = blockIdx.x * THREADS + t;
    sums[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    float sum = 0.0f;
    for (unsigned b = t; b < gridDim.x; b += THREADS) sum += __ldcg(&parts[b]);
    sums[t] = sum;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) *out = sums[0];
}
void sum_tree(const float* x, float* out, int n) {
    int blocks = (n + THREADS - 1) / THREADS;
    float* parts;
    cudaMalloc(&parts, blocks * sizeof(float));
    sum_tree_kernel<<<blocks, THREADS>>>(x, out, parts, n);
    cudaFree(parts);
}
