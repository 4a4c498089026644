// sum_sequential: passed
// each block adds three elements a thread, and the last one all that is left, up to five
constexpr int THREADS = 256, TILE = 3 * THREADS;

__global__ void sum_sequential_kernel(const float* x, float* out, int n) {
    __shared__ float sums[THREADS];
    int t = threadIdx.x, first = blockIdx.x * TILE;
    int end = blockIdx.x == gridDim.x - 1 ? n : first + TILE;
    float sum = 0.0f;
    for (int i = first + t; i < end; i += THREADS) sum += x[i];
    sums[t] = sum;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, sums[0]);
}

void sum_sequential(const float* x, float* out, int n) {
    cudaMemset(out, 0, sizeof(float));
    int blocks = n < TILE ? 1 : n / TILE;
    sum_sequential_kernel<<<blocks, THREADS>>>(x, out, n);
}
